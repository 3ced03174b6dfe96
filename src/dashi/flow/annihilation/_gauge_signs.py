"""The sign of every point of every band in a gauge, on a device. Support does not depend on it.

The local direction at a point is the tangent of the band's ridges, the axis of least change by the structure tensor
(products of the band's gradient, smoothed over its scale), turned to where the band's own velocity goes. The sign is
that of its product with the direction of the gauge.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from dashi import fft, kernels
from dashi.flow.annihilation.scales import centres, octave_numbers
from dashi.flow.grid import columns, rows, squares
from dashi.kernels.abi import View
from dashi.kernels.expressions import Expression, absolute, arguments, atan2, cos, sign, sin
from dashi.kernels.portable import cos as cosine
from dashi.kernels.portable import exp
from dashi.kernels.portable import sin as sine
from dashi.runtime.array import Array
from dashi.runtime.device import AnyStep, Device

GAUGES: Final = ("vorticity", "circulation", "axis", "streamfunction", "strain")
LOW_SCALES: Final = 2
"""The coarsest octaves, k < 4: what gauges of the large flow are made of."""


class GaugeSigns:
    """Steps that make `signed` (batch, scales, n, n), |band| with the sign in the gauge, of bands and their modes."""

    def __init__(self, device: Device, modes: Array, spectra: Array, bands: Array, gauge: str, angle: float) -> None:
        self.device, self.modes, self.bands = device, modes, bands
        self.kind = bands.dtype.numpy
        self.n = bands.shape[-1]
        self.signed = device.empty(bands.shape, self.kind)
        self.steps: list[AnyStep] = []
        half = self.n // 2 + 1
        self._kx = np.broadcast_to(columns(self.n)[None, :].astype(np.float64), (self.n, half))
        self._ky = np.broadcast_to(rows(self.n)[:, None].astype(np.float64), (self.n, half))
        square = squares(self.n).astype(np.float64)
        self._inverse = np.where(square > 0, 1.0 / np.where(square > 0, square, 1.0), 0.0)
        self._low = (octave_numbers(self.n) < LOW_SCALES).astype(np.float64)
        if gauge == "circulation":
            self._with_circulation()
        else:
            self._with_tangents(spectra, gauge, angle)

    def _with_circulation(self) -> None:
        low = self._derived(self.modes, self._low, imaginary=False)
        band, around = arguments("band around")
        self._bind(absolute(band) * (sign(band) * sign(around)), self.bands, low, out=self.signed)

    def _with_tangents(self, spectra: Array, gauge: str, angle: float) -> None:
        slope_x, slope_y = (self._derived(spectra, k, imaginary=True) for k in (self._kx, self._ky))
        u = self._derived(spectra, self._ky * self._inverse, imaginary=True)
        v = self._derived(spectra, -self._kx * self._inverse, imaginary=True)
        a, b = arguments("a b")
        products = [self._smoothed(a * b, *pair) for pair in (
            (slope_x, slope_x), (slope_x, slope_y), (slope_y, slope_y))]  # fmt: skip
        xx, xy, yy, band, to_x, to_y = arguments("xx xy yy band to_x to_y")
        steepest = atan2(2.0 * xy, xx - yy) * 0.5
        across_x, across_y = -sin(steepest), cos(steepest)
        turn = sign(across_x * to_x + across_y * to_y)
        ridge = self.device.empty(self.bands.shape, self.kind), self.device.empty(self.bands.shape, self.kind)
        for part, made in zip((across_x, across_y), ridge, strict=True):
            self._bind(part * turn, *products, u, v, out=made, inputs="xx xy yy to_x to_y")
        x, y, gauge_x, gauge_y = arguments("x y gauge_x gauge_y")
        along = absolute(band) * sign(x * gauge_x + y * gauge_y)
        directions = self._direction(gauge, angle)
        self._bind(along, self.bands, *ridge, *directions, out=self.signed, inputs="band x y gauge_x gauge_y")

    def _direction(self, gauge: str, angle: float) -> list[Array]:
        """The two parts of the gauge's direction, (batch, 1, n, n) or (1, 1, 1, 1)."""
        if gauge == "axis":
            parts = np.array([cosine(np.array(angle)), sine(np.array(angle))]).astype(self.kind)
            return [self.device.array(part.reshape(1, 1, 1, 1)) for part in parts]
        if gauge == "streamfunction":
            flow = (self._ky, -self._kx)
            return [self._derived(self.modes, self._low * k * self._inverse, imaginary=True) for k in flow]
        gap = self._derived(self.modes, -2.0 * self._low * self._kx * self._ky * self._inverse, imaginary=False)
        shear = self._low * (self._kx**2 - self._ky**2) * self._inverse
        sheared = self._derived(self.modes, shear, imaginary=False)
        a, b = arguments("a b")
        found: list[Array] = []
        for function in (cos, sin):
            made = self.device.empty(gap.shape, self.kind)
            self._bind(function(atan2(b, a) * 0.5), gap, sheared, out=made, inputs="a b")
            found.append(made)
        return found

    def _derived(self, modes: Array, table: Any, *, imaginary: bool) -> Array:
        """The field of modes times a real table, and times i: (batch, scales or 1, n, n)."""
        n, half = self.n, self.n // 2 + 1
        lead = modes.shape[:-3] if len(modes.shape) == 5 else (modes.shape[0], 1)
        source = modes.reshape(*lead, n, half, 2)
        weight = np.stack([-table, table] if imaginary else [table, table], axis=-1)
        weight[n // 2] = 0.0
        weight[:, n // 2] = 0.0
        made, field = self.device.empty(source.shape, self.kind), self.device.empty((*lead, n, n), self.kind)
        z, factor = arguments("z factor")
        strides = (lead[1] * n * half * 2, n * half * 2, half * 2, 2, -1)
        views = {"z": View((*lead, n, half, 2), strides, 1)} if imaginary else None
        factors = self.device.array(np.ascontiguousarray(weight[None, None].astype(self.kind)))
        kernel = kernels.fuse(z * factor, inputs="z factor", views=views)
        self.steps.append(self.device.bind(kernel, source, factors, out=made))
        self.steps += fft.plan(self.device, field.shape, "irfft2", dtype=self.kind).steps(made, field)
        return field

    def _smoothed(self, product: Expression, first: Array, second: Array) -> Array:
        """A product of fields, smoothed over the scale of each band."""
        n, half, shape = self.n, self.n // 2 + 1, self.bands.shape
        made, field = self.device.empty(shape, self.kind), self.device.empty(shape, self.kind)
        forth, back = (self.device.empty((*shape[:2], n, half, 2), self.kind) for _ in range(2))
        self._bind(product, first, second, out=made, inputs="a b")
        self.steps += fft.plan(self.device, shape, "rfft2", dtype=self.kind).steps(made, forth)
        square = squares(n).astype(np.float64)
        tables = np.stack([exp(-0.5 * square / (centre * centre)) for centre in centres(n)])
        z, weight = arguments("z weight")
        self._bind(z * weight, forth, self.device.array(tables[None, ..., None].astype(self.kind)), out=back)
        self.steps += fft.plan(self.device, shape, "irfft2", dtype=self.kind).steps(back, field)
        return field

    def _bind(self, formula: Expression, *arrays: Array, out: Array, inputs: str = "") -> None:
        self.steps.append(self.device.bind(kernels.fuse(formula, inputs=inputs), *arrays, out=out))
