"""`encode`: vorticity to z, on a device: the transform, the chosen modes and the sums are kernels."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from dashi.core.operators.operator import require_finite
from dashi.errors import DTypeError, InputError, ShapeError
from dashi.flow import grid
from dashi.flow.equations import Flow
from dashi.flow.grid import Floats
from dashi.flow.proxy.schema import MID, SCALARS, Schema
from dashi.kernels.fft._roots import real_table, table
from dashi.runtime.array import Array
from dashi.runtime.device import Device, Step
from dashi.runtime.using import using_device

BATCH: Final = 1 << 21
"""Points that are on the device at a time, unless one field has more."""
_PIECE: Final = 1 << 18
"""Modes of a sum; longer ones are added in pieces."""


class FieldEncoder:
    """Binds what makes z of half spectra (members, n, n/2 + 1, 2) on one device."""

    def __init__(self, schema: Schema, device: Device, kind: Any = np.float32) -> None:
        self.schema, self.device, self.kind = schema, device, np.dtype(kind)
        self._places = device.array(schema.places.astype(np.uint32))
        places, weights, offsets, longest, owners = _sums(schema)
        self._sums = (device.array(weights.astype(self.kind)), device.array(places), device.array(offsets))
        self._count, self._longest = len(offsets) - 1, longest
        self._gather = None if self._count == len(SCALARS) else device.array(owners.astype(self.kind))
        self._twiddles: tuple[Array, Array] | None = None

    def steps(self, states: Array, out: Array) -> list[Step]:
        """The steps that make z (members, D) of half spectra."""
        device, members = self.device, states.shape[0]
        sums = device.empty((members, self._count), self.kind)
        count, longest = self._count, self._longest
        steps = [device.bind("mode_shells", states, states, *self._sums, out=sums, shells=count, longest=longest)]
        if self._gather is not None:
            steps.append(device.bind("gemm_scalar", sums, self._gather))
            sums = steps[-1].outputs[0]
        steps.append(device.bind("modes_to_proxy", states, self._places, sums, out=out, size=self.schema.size))
        return steps

    def field_steps(self, fields: Array, out: Array) -> list[Step]:
        """The steps that make z of fields (members, n, n)."""
        n = self.schema.n
        if self._twiddles is None:
            self._twiddles = (self.device.array(real_table(n, self.kind)), self.device.array(table(n, self.kind)))
        states = self.device.empty((fields.shape[0], n, n // 2 + 1, 2), self.kind)
        scale = 1.0 / (n * n)
        taken = self.device.bind("rfft2", fields, *self._twiddles, out=states, modes=n // 2 + 1, scale=scale)
        return [taken, *self.steps(states, out)]


def encode(schema: Schema, values: Any, *, device: Device | str) -> Floats:
    """z (..., D) of vorticity (..., n, n), or of the solver's states (..., n, n/2 + 1, 2), in their element type.

    Modes that the solver does not keep, and the mean, count for nothing. Fields go through the device in batches.
    """
    if not isinstance(device, Device):
        with using_device(device) as opened:
            return encode(schema, values, device=opened)
    fields, is_state = _checked(schema, values)
    item = fields.ndim - (3 if is_state else 2)
    flat = fields.reshape(-1, *fields.shape[item:])
    z = np.empty((len(flat), schema.size), fields.dtype)
    most = max(1, min(len(flat), BATCH // schema.n**2))
    encoder = FieldEncoder(schema, device, fields.dtype)
    source = device.empty((most, *flat.shape[1:]), fields.dtype)
    out = device.empty((most, schema.size), fields.dtype)
    steps = encoder.steps(source, out) if is_state else encoder.field_steps(source, out)
    with device.program(steps, label="encode", fetch=[out]) as program:
        for first in range(0, len(flat), most):
            part = flat[first : first + most]
            # The last batch is filled up with fields that are encoded already: nobody looks at those.
            device.write(source, np.ascontiguousarray(flat[np.minimum(np.arange(first, first + most), len(flat) - 1)]))
            program.run()
            z[first : first + len(part)] = program.fetched(out)[: len(part)]
    return z.reshape(*fields.shape[:item], schema.size)


def choose_anchors(schema: Schema, fields: Any, count: int, *, device: Device | str) -> Schema:
    """The schema with those `count` modes of its mid band as anchors that hold the most energy on average over the
    fields (..., n, n), the strongest first."""
    require_anchors(schema, count)
    every = tuple((int(ky), int(kx)) for ky, kx in schema.mid)
    whole = Schema(schema.n, schema.k_cut, schema.mid_cut, every, schema.length)
    pairs = encode(whole, fields, device=device)[..., whole.parts["anchors"]].astype(np.float64)
    power = (pairs.reshape(-1, len(every), 2) ** 2).sum(axis=(0, 2)) / (schema.mid**2).sum(axis=1)
    order = np.argsort(-power, kind="stable")[:count]
    return Schema(schema.n, schema.k_cut, schema.mid_cut, tuple(every[int(j)] for j in order), schema.length)


def enstrophy_share(schema: Schema, fields: Floats) -> float:
    """The part of the enstrophy of vorticity (..., n, n) that lies in the modes of z, 0 to 1; of the sum of all fields.
    Its square root is the correlation of fields with what z holds of them."""
    modes = np.fft.rfft2(np.asarray(fields, np.float64))
    squared = (modes.real**2 + modes.imag**2).reshape(-1, schema.n * (schema.n // 2 + 1)).sum(axis=0)
    both = np.full((schema.n, schema.n // 2 + 1), 2.0)  # a mode, and its conjugate that is not stored
    both[:, 0] = both[:, -1] = 1.0
    total = float((squared * both.reshape(-1)).sum() - squared[0])
    # Of the modes that are stored with their conjugates (kx = 0), z holds one of each pair.
    return 2.0 * float(squared[schema.places].sum()) / total if total > 0 else 1.0


def require_anchors(schema: Schema, count: int) -> None:
    """Refuses more anchors than the mid band has modes."""
    if not 0 <= count <= len(schema.mid):
        # Near the last wave number of the grid there is little room, or none, above k_cut.
        cut_off = schema.mid_cut < MID * schema.k_cut
        raise InputError(
            f"{count} anchors were asked for; the mid band of {schema.k_cut:g} to {schema.mid_cut:g} has "
            f"{len(schema.mid)} modes.",
            f"ask for {len(schema.mid)} at most, or use "
            + ("a smaller k_cut or a finer grid." if cut_off else "a larger k_cut (or mid_cut, in Python)."),
        )


def _checked(schema: Schema, values: Any) -> tuple[Floats, bool]:
    """The values as they are, and whether they are states."""
    fields = np.asarray(values)
    n = schema.n
    is_state = fields.shape[-3:] == (n, n // 2 + 1, 2)
    if not is_state and fields.shape[-2:] != (n, n):
        raise ShapeError(
            f"the values have shape {fields.shape}, the schema is for a grid of {n} x {n} points.",
            f"pass vorticity of shape (..., {n}, {n}) or states (..., {n}, {n // 2 + 1}, 2), or make another schema.",
        )
    if fields.dtype.name not in ("float32", "float64"):
        raise DTypeError(f"the values are {fields.dtype}.", "convert them: .astype(np.float32), or np.float64.")
    if not fields.size:
        raise ShapeError("there are no fields to encode.", "pass at least one.")
    require_finite("the field", fields)
    return fields, is_state


def _sums(schema: Schema) -> tuple[Floats, Floats, Floats, int, Floats]:
    """The scalars as weighted sums over the half spectrum: places, weights, ends of the lists, the longest list, and
    which scalar each list adds to."""
    n = schema.n
    square, keep = grid.squares(n), grid.dealiased(n)
    keep[0, 0] = False
    half = 0.5 * grid.counted(n)
    energy = half * grid.waves(Flow(n, length=schema.length))[2]
    mid = (square > schema.k_cut**2) & (square <= schema.mid_cut**2)
    lists = [(keep, energy), (keep, half), (keep & mid, energy), (keep & (square > schema.mid_cut**2), energy)]
    places: list[Any] = []
    weights: list[Any] = []
    owners: list[int] = []
    for owner, (where, weight) in enumerate(lists):
        chosen = np.flatnonzero(where)
        for first in range(0, max(1, len(chosen)), _PIECE):
            places.append(chosen[first : first + _PIECE])
            weights.append(weight.reshape(-1)[places[-1]])
            owners.append(owner)
    ends = np.cumsum([0, *(len(p) for p in places)]).astype(np.uint32)
    which = np.zeros((len(owners), len(SCALARS)))
    which[np.arange(len(owners)), owners] = 1.0
    longest = max(len(p) for p in places)
    return np.concatenate(places).astype(np.uint32), np.concatenate(weights), ends, longest, which
