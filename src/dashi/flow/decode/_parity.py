"""Parity: the same z decoded on NumPy and on a device, and once more plainly in float64; what differs, in numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from dashi.errors import NoResultError
from dashi.flow.decode import _tables as tables
from dashi.flow.decode._plain import Plain, decode_plainly
from dashi.flow.decode.decoder import Decoded, Decoder
from dashi.flow.decode.settings import Settings
from dashi.flow.decode.statistics import Statistics
from dashi.flow.grid import Floats
from dashi.flow.proxy.encode import encode
from dashi.flow.proxy.schema import Schema
from dashi.runtime._cpu_device import CpuDevice
from dashi.runtime.device import Device


@dataclass(frozen=True)
class Parity:
    """One field: what NumPy and the device make of its z. Errors of fields are relative to the field's rms."""

    seed: int
    residual: str
    gate: str
    dtype: str
    same_bits: bool
    """Whether fields and masks have the same bits on both devices."""
    mean_error: float
    max_error: float
    d_energy: float
    """Relative difference of the energies."""
    d_enstrophy: float
    hamming: int
    """Sites at which the masks differ."""
    sites: int
    plain_max_error: float
    """Largest error of NumPy's decode beside float64 and numpy.fft, where the masks agree."""
    plain_hamming: int
    support: float
    wanted: tuple[float, float]
    """Energies of the mid and the high band that z tells."""
    synthesised: tuple[float, float]
    """Energies of those bands before the gate, anchors counted."""
    achieved: tuple[float, float]
    """And those of the decoded field."""
    error: float
    """Relative L2 error of the decoded field beside the field that was encoded."""
    lowpass_error: float
    """Relative L2 error without a residual."""


ROUNDINGS: Final = 64
"""Roundings of the largest value that a decode may be away from float64: transforms of a few thousand points make
about ten, and the smoothing and the gate add theirs."""


def agrees(parity: Parity) -> bool:
    """Whether the bits are the same and float64 is no further away than rounding. Sites of the mask whose detail lies
    within rounding of the threshold may fall on either side: a tenth of a percent of them."""
    close = ROUNDINGS * float(np.finfo(parity.dtype).eps)
    return parity.same_bits and parity.plain_max_error <= close and parity.plain_hamming <= 1 + parity.sites // 1000


def compare(
    schema: Schema,
    fields: Floats,
    seeds: Iterable[int],
    settings: Settings,
    *,
    device: Device,
    statistics: Statistics | None = None,
    progress: Callable[[int], None] | None = None,
) -> list[Parity]:
    """Parity of every field (seeds, n, n); the residual of each draws from its own seed."""
    results: list[Parity] = []
    for seed, truth in zip(seeds, np.asarray(fields, settings.numpy_dtype), strict=True):
        seeded = replace(settings, seed=seed)
        with CpuDevice() as cpu:
            z = encode(schema, truth, device=cpu)
            ours, _ = _decoded(schema, z, seeded, cpu, statistics)
        theirs, synthesised = _decoded(schema, z, seeded, device, statistics)
        results.append(
            _parity(schema, truth, z, seeded, decode_plainly(schema, z, seeded, statistics), ours, theirs, synthesised)
        )
        if progress:
            progress(1)
    return results


def _decoded(
    schema: Schema, z: Floats, settings: Settings, device: Device, statistics: Statistics | None
) -> tuple[Decoded, tuple[float, float]]:
    """What a device decodes, and the energies of the bands before the gate, from the arrays that it left."""
    with Decoder(schema, device, settings=settings, statistics=statistics) as decoder:
        decoded = decoder.decode(z, "snapshots")
        if decoded is None:
            raise NoResultError("the null device computes nothing.", "compare another: cpu, or vulkan:0.")
        before: Floats = decoder.pipeline.low.numpy().astype(np.float64)
        if settings.draws:
            before = before + decoder.pipeline.residual.numpy()
    return decoded, _bands(schema, before[0])


def _parity(
    schema: Schema, truth: Floats, z: Floats, settings: Settings, plain: Plain, ours: Decoded, theirs: Decoded,
    synthesised: tuple[float, float],
) -> Parity:  # fmt: skip
    a, b = (np.asarray(one.fields, np.float64) for one in (ours, theirs))
    masks = [np.asarray(one.mask) for one in (ours, theirs)]
    rms = max(float(np.sqrt(np.mean(a * a))), 1e-300)
    apart = np.abs(a - b) / rms
    alike = masks[0] == plain.mask
    against = np.abs(a - plain.field)[alike] / rms
    known = z.astype(np.float64)
    targets = tuple(float(known[schema.parts[name]][0]) for name in ("mid_energy", "high_energy"))
    return Parity(
        seed=settings.seed, residual=settings.residual, gate=settings.gate, dtype=settings.dtype,
        same_bits=_bits(ours) == _bits(theirs), mean_error=float(apart.mean()), max_error=float(apart.max()),
        d_energy=_relative(theirs.energy, ours.energy), d_enstrophy=_relative(theirs.enstrophy, ours.enstrophy),
        hamming=int(np.count_nonzero(masks[0] != masks[1])), sites=a.size,
        plain_max_error=float(against.max(initial=0.0)), plain_hamming=int(np.count_nonzero(~alike)),
        support=float(theirs.support), wanted=(targets[0], targets[1]),
        synthesised=synthesised, achieved=_bands(schema, b),
        error=_l2(b, truth), lowpass_error=_l2(plain.low, truth),
    )  # fmt: skip


def _bits(decoded: Decoded) -> bytes:
    return np.asarray(decoded.fields).tobytes() + np.asarray(decoded.mask).tobytes()


def _relative(a: Floats, b: Floats) -> float:
    return float((a - b) / b) if float(b) else float(a - b)


def _l2(made: Floats, truth: Floats) -> float:
    return float(np.linalg.norm(made - truth) / max(float(np.linalg.norm(truth)), 1e-300))


def _bands(schema: Schema, field: Floats) -> tuple[float, float]:
    """Energies of the mid and the high band of a field, by numpy.fft."""
    power = np.abs(np.fft.rfft2(field) / field.size) ** 2
    sums = (tables.looks(schema) * power).sum(axis=(1, 2))
    return float(sums[3]), float(sums[4])
