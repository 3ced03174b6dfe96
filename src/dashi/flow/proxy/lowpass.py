"""`decode`: z back to vorticity, on a device: the modes that z holds, and nothing else. Exact on those."""

from __future__ import annotations

from typing import Any

import numpy as np

from dashi.core.operators.operator import require_finite
from dashi.errors import DTypeError, ShapeError
from dashi.flow.grid import Floats
from dashi.flow.proxy.encode import BATCH
from dashi.flow.proxy.schema import Ints, Schema, places_of
from dashi.kernels.fft._roots import real_table, table
from dashi.runtime.array import Array
from dashi.runtime.device import Device, Step
from dashi.runtime.using import using_device


def codes(n: int, modes: Ints) -> Floats:
    """What the modes of the half spectrum of an n x n grid are, for the kernel `proxy_to_modes`, where z holds these
    modes (ky, kx) in order."""
    code = np.zeros(n * (n // 2 + 1), np.uint32)
    code[places_of(n, modes)] = 2 * np.arange(len(modes)) + 2
    first = np.flatnonzero((modes[:, 1] == 0) & (modes[:, 0] != 0))
    code[places_of(n, -modes[first])] = 2 * first + 3
    return code.reshape(n, n // 2 + 1)


class Lowpass:
    """Binds what makes half spectra and fields of z (members, D) on one device; with or without the anchors."""

    def __init__(self, schema: Schema, device: Device, kind: Any = np.float32, *, anchors: bool = True) -> None:
        self.schema, self.device, self.kind = schema, device, np.dtype(kind)
        n = schema.n
        self._codes = device.array(codes(n, schema.modes if anchors else schema.low))
        self._twiddles = (device.array(real_table(n, self.kind)), device.array(table(n, self.kind)))

    def state_steps(self, z: Array, out: Array) -> list[Step]:
        """The steps that make half spectra (members, n, n/2 + 1, 2)."""
        return [self.device.bind("proxy_to_modes", z, self._codes, out=out)]

    def steps(self, z: Array, out: Array) -> list[Step]:
        """The steps that make fields (members, n, n)."""
        n = self.schema.n
        states = self.device.empty((z.shape[0], n, n // 2 + 1, 2), self.kind)
        return [*self.state_steps(z, states), self.device.bind("irfft2", states, *self._twiddles, out=out)]


def decode(schema: Schema, z: Any, *, device: Device | str, anchors: bool = True) -> Floats:
    """Vorticity (..., n, n) of the modes that z (..., D) holds, in its element type; `anchors` may be left away."""
    return _through(schema, z, device, (schema.n, schema.n), anchors=anchors)


def decode_states(schema: Schema, z: Any, *, device: Device | str, anchors: bool = True) -> Floats:
    """The solver's states (..., n, n/2 + 1, 2) of the modes that z holds."""
    return _through(schema, z, device, (schema.n, schema.n // 2 + 1, 2), anchors=anchors)


def _through(schema: Schema, z: Any, device: Device | str, shape: tuple[int, ...], *, anchors: bool) -> Floats:
    if not isinstance(device, Device):
        with using_device(device) as opened:
            return _through(schema, z, opened, shape, anchors=anchors)
    states = require_z(schema, z)
    flat = states.reshape(-1, schema.size)
    most = max(1, min(len(flat), BATCH // schema.n**2))
    lowpass = Lowpass(schema, device, states.dtype, anchors=anchors)
    source = device.empty((most, schema.size), states.dtype)
    out = device.empty((most, *shape), states.dtype)
    fields = np.empty((len(flat), *shape), states.dtype)
    steps = lowpass.steps(source, out) if len(shape) == 2 else lowpass.state_steps(source, out)
    with device.program(steps, label="lowpass", fetch=[out]) as program:
        for first in range(0, len(flat), most):
            part = flat[first : first + most]
            device.write(source, np.ascontiguousarray(flat[np.minimum(np.arange(first, first + most), len(flat) - 1)]))
            program.run()
            fields[first : first + len(part)] = program.fetched(out)[: len(part)]
    return fields.reshape(*states.shape[:-1], *shape)


def require_z(schema: Schema, z: Any) -> Floats:
    """The values as an array of z; refuses what this schema did not lay out, and what is not finite."""
    states = np.asarray(z)
    if states.ndim < 1 or states.shape[-1] != schema.size or not states.size:
        raise ShapeError(
            f"z has shape {states.shape}; a z of this schema (n = {schema.n}, k_cut = {schema.k_cut:g}, "
            f"{len(schema.anchors)} anchors) has {schema.size} numbers.",
            f"pass z of shape (..., {schema.size}), or the schema that it was made with.",
        )
    if states.dtype.name not in ("float32", "float64"):
        raise DTypeError(f"z is {states.dtype}.", "convert it: z.astype(np.float32), or np.float64.")
    require_finite("z", states)
    return states
