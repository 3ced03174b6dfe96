"""Surrogates on a device: the steps that fill an array of modes (batch, n, n/2 + 1, 2), recorded once for a null."""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np

from dashi import fft, kernels
from dashi.errors import ShapeError
from dashi.flow.annihilation.scales import octave_numbers, scale_count
from dashi.flow.annihilation.settings import MOST, AnnihilationSettings
from dashi.flow.grid import columns, rows, squares
from dashi.kernels._philox import philox
from dashi.kernels.abi import Kernel, View
from dashi.kernels.expressions import Expression, apply, arguments, cos, sin, sqrt, square, where
from dashi.kernels.portable import pow as power_of
from dashi.runtime.array import Array
from dashi.runtime.device import AnyStep, Device

SHIFT_STREAM: Final = 5
"""The last word of the counter of shifts; solver, initial conditions and residuals have 0 to 3."""


class SurrogateMaker:
    """Makes surrogates of one field at a time, `batch` of them with each run of `steps`."""

    def __init__(self, device: Device, n: int, batch: int, settings: AnnihilationSettings) -> None:
        self.device, self.n, self.batch, self.settings = device, n, batch, settings
        self.kind = settings.numpy_dtype
        self.modes = device.empty((batch, n, n // 2 + 1, 2), self.kind)
        self.field = device.empty((n, n), self.kind)
        """The field whose surrogates are made, and its modes."""
        self.field_modes = device.empty((n, n // 2 + 1, 2), self.kind)
        self.amplitude = device.array(self._amplitude())
        self._keys = device.zeros((2,), np.uint32)
        self._words = device.zeros((batch, 4), np.uint32)
        self._shifts = device.zeros((batch, scale_count(n) + 1, 1, 1, 2), self.kind)
        self.loading = self._loading()
        """Steps that are run once for every field, before its surrogates."""
        self.steps = self._steps()

    def _amplitude(self) -> Any:
        square_k = squares(self.n).astype(np.float64)
        if self.settings.null == "power":
            scaled = power_of(np.where(square_k > 0, square_k, 1.0), np.asarray(-0.25 * self.settings.slope))
            return np.where(square_k > 0, scaled, 0.0).astype(self.kind)
        return np.ones(square_k.shape, self.kind)

    def _loading(self) -> list[AnyStep]:
        planned = fft.plan(self.device, (self.n, self.n), "rfft2", dtype=self.kind)
        steps: list[AnyStep] = [*planned.steps(self.field, self.field_modes)]
        if self.settings.null in ("phase", "iaaft"):
            shape = (self.n, self.n // 2 + 1)
            steps.append(self.device.bind(_sizes(shape), self.field_modes, self.field_modes, out=self.amplitude))
        if self.settings.null == "iaaft":
            self._sorted = self.device.empty((self.n * self.n,), self.kind)
            steps.append(self.device.bind("sort", self.field.reshape(-1), out=self._sorted))
        return steps

    def _steps(self) -> list[AnyStep]:
        match self.settings.null:
            case "phase" | "iaaft":
                drawn = self._drawn(gaussian=0)
                return drawn if self.settings.null == "phase" else [*drawn, *self._adjusted()]
            case "shift":
                return self._shifted()
            case "shuffle":
                return self._shuffled()
            case _:
                return self._drawn(gaussian=1)

    def draw(self, field: int, first: int, seed: int) -> None:
        """Chooses the surrogates that the next run makes: from number `first` on, of field number `field`."""
        if not 0 <= field < 1 << 12 or not 0 <= first < MOST:
            raise ShapeError(f"there is no surrogate {first} of field {field}.", "pass fewer fields at once.")
        base = field * MOST + first
        self._keys[...] = np.array([base, seed], np.uint32)
        words = np.zeros((self.batch, 4), np.uint32)
        words[:, 0], words[:, 2] = seed, base + np.arange(self.batch)
        self._words[...] = words
        if self.settings.null == "shift":
            scales = np.arange(scale_count(self.n) + 1)
            drawn = philox((scales, 0, seed, SHIFT_STREAM), (words[:, 2:3].astype(np.int64), 0))
            shifts = np.stack([(part % np.uint32(self.n)) for part in drawn[:2]], axis=-1)
            self._shifts[...] = shifts.astype(self.kind)[:, :, None, None, :]

    def _drawn(self, gaussian: int) -> list[AnyStep]:
        bind = self.device.bind
        return [
            bind("residual_draw", self.amplitude, self._keys, out=self.modes, members=self.batch, gaussian=gaussian)
        ]

    def _shifted(self) -> list[AnyStep]:
        """Every octave moved by whole points, (x, y): its modes turned."""
        n, device = self.n, self.device
        scales, shape = scale_count(n) + 1, (n, n // 2 + 1)
        numbers = octave_numbers(n)
        inside = device.array(np.stack([numbers == j for j in range(scales)]).astype(self.kind)[None, ..., None])
        moves = device.empty((self.batch, *shape, 2), self.kind)
        mask, shift = arguments("mask shift")
        chosen = kernels.reduce_rows("sum", mask * shift, axes=1, inputs="mask shift")
        waves = np.broadcast_arrays(columns(n)[None, :], rows(n)[:, None])
        tables = [device.array(np.ascontiguousarray(wave)[None, :, :, None].astype(self.kind)) for wave in waves]
        sign = device.array(np.array([1.0, -1.0], self.kind).reshape(1, 1, 1, 2))
        z, other, x, y, kx, ky, part = arguments("z other x y kx ky part")
        turns = (kx * x + ky * y) / float(n)
        angle = (turns - apply("floor", turns)) * (2.0 * math.pi)
        turned = kernels.fuse(
            z * cos(angle) + other * (sin(angle) * part), inputs="z other x y kx ky part",
            views={
                "other": View((1, *shape, 2), (0, 2 * shape[1], 2, -1), 1),
                "x": View((self.batch, *shape, 1), (2 * math.prod(shape), 2 * shape[1], 2, 1)),
                "y": View((self.batch, *shape, 1), (2 * math.prod(shape), 2 * shape[1], 2, 1), 1),
            },
        )  # fmt: skip
        z_modes = self.field_modes.reshape(1, *shape, 2)
        return [
            device.bind(chosen, inside, self._shifts, out=moves),
            device.bind(turned, z_modes, z_modes, moves, moves, *tables, sign, out=self.modes),
        ]

    def _shuffled(self) -> list[AnyStep]:
        """Values in the order of random keys."""
        n, bind = self.n, self.device.bind
        keys = self.device.empty((self.batch, n * n), np.float32)
        values = self.device.empty((self.batch, n, n), self.kind)
        ordered = self.device.empty((n * n,), np.float32)
        steps: list[AnyStep] = [bind("random_draw", self._words, out=keys, count=n * n, kind=0, stream=0)]
        for member in range(self.batch):
            words = values[member].view(np.uint32).reshape(n * n, -1)
            source = self.field.view(np.uint32).reshape(n * n, -1)
            steps.append(bind("sort_pairs", keys[member], source, out=(ordered, words)))
        return [*steps, *fft.plan(self.device, values.shape, "rfft2", dtype=self.kind).steps(values, self.modes)]

    def _adjusted(self) -> list[AnyStep]:
        """IAAFT: the values of the data in the order of the surrogate's, then the sizes of the data's modes, again and
        again. T. Schreiber and A. Schmitz, Phys. Rev. Lett. 77, 1996, doi 10.1103/PhysRevLett.77.635."""
        n, device, kind = self.n, self.device, self.kind
        values = device.empty((self.batch, n, n), kind)
        other = device.empty(self.modes.shape, kind)
        inverse = fft.plan(device, values.shape, "irfft2", dtype=kind)
        forth = fft.plan(device, values.shape, "rfft2", dtype=kind).steps(values, self.modes)
        resized = device.bind(
            _resized(self.batch, (n, n // 2 + 1)), self.modes, self.modes, self.modes,
            self.amplitude.reshape(1, n, n // 2 + 1, 1), out=other,
        )  # fmt: skip
        ranked = [step for member in range(self.batch) for step in self._ranked(values[member])]
        again = [resized, *inverse.steps(other, values), *ranked, *forth]
        return [*inverse.steps(self.modes, values), *ranked, *forth, *again * (self.settings.rounds - 1)]

    def _ranked(self, values: Array) -> list[AnyStep]:
        """Replaces the values of a field by those of the data that have the same ranks."""
        bind, size = self.device.bind, self.n * self.n
        places = self.device.empty((size, 1), np.uint32)
        ordered, numbers = self.device.empty((size,), self.kind), self.device.empty((size,), np.uint32)
        index = self.device.array(np.arange(size, dtype=np.uint32).reshape(-1, 1))
        words = self._sorted.view(np.uint32).reshape(size, -1)
        return [
            bind("sort_pairs", values.reshape(-1), index, out=(ordered, places)),
            bind("sort_pairs", places.reshape(-1), words, out=(numbers, values.view(np.uint32).reshape(size, -1))),
        ]


def _sizes(shape: tuple[int, int]) -> Kernel:
    """The sizes of modes (n, m, 2)."""
    real, imaginary = arguments("real imaginary")
    views = {name: View(shape, (2 * shape[1], 2), part) for part, name in enumerate(("real", "imaginary"))}
    return kernels.fuse(_size(real, imaginary), inputs="real imaginary", views=views)


def _size(real: Expression, imaginary: Expression) -> Expression:
    return sqrt(square(real) + square(imaginary))


def _resized(batch: int, shape: tuple[int, int]) -> Kernel:
    """Modes with their own phases and other sizes; 0 where they have no phase."""
    z, real, imaginary, wanted = arguments("z real imaginary wanted")
    strides = (2 * shape[0] * shape[1], 2 * shape[1], 2, 1)
    views = {name: View((batch, *shape, 1), strides, part) for part, name in enumerate(("real", "imaginary"))}
    there = _size(real, imaginary)
    resized = where(there > 0, z * (wanted / where(there > 0, there, 1.0)), 0.0)
    return kernels.fuse(resized, inputs="z real imaginary wanted", views=views)
