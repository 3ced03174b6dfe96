"""Features of states for qfeat and operator_step: band energies and their entropy on the host, and the passes in which
a workgroup makes one of them at a time."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from dashi.errors import ShapeError
from dashi.kernels._segments import segment_sums
from dashi.kernels._work import split_work
from dashi.kernels.abi import Binding, Call, Dispatch, Number, Scalar, Shader, Spec
from dashi.kernels.portable import canon, divide, log, mul, sum64
from dashi.types import HostArray


def require_edges(kernel: str, bands: int, ends: int) -> None:
    """What the shapes alone cannot say."""
    if ends != bands + 1:
        raise ShapeError(
            f"kernel {kernel!r}: {bands} bands need {bands + 1} edges, {ends} given.", "pass bands=len(edges) - 1."
        )


def band_energies(values: HostArray, edges: HostArray) -> HostArray:
    """Sums of squares of the bands of canonical states; NaN for bands that have no meaning."""
    states, width = values.shape
    squares = mul(values, values)
    ends = edges.astype(np.int64)
    good = (ends[:-1] <= ends[1:]) & (ends[1:] <= width)
    starts, lengths = np.where(good, ends[:-1], 0), np.where(good, np.diff(ends), 0)
    sums = [segment_sums(row, starts, lengths) for row in squares]
    energies = np.stack(sums) if states else np.zeros((0, len(good)), values.dtype)
    return canon(np.where(good, energies, np.asarray(np.nan, values.dtype)))


def entropy(energies: HostArray) -> HostArray:
    """The entropy of each row of energies."""
    total = canon(sum64(energies))
    nothing = total == 0
    share = divide(energies, np.where(nothing, 1, total).astype(energies.dtype)[:, None])
    terms = np.where(share == 0, 0, canon(-mul(share, log(share)))).astype(energies.dtype)
    return np.where(nothing, 0, sum64(terms)).astype(energies.dtype)


def shader(file: str, buffers: tuple[Binding, ...], push: tuple[Scalar, ...]) -> Shader:
    """A pass whose workgroups have LANES invocations; `push` holds first_item, items and stride among others."""
    return Shader(buffers, push, (Spec("LANES", 256),), ("LANES", 1, 1), file, ("portable.glsl",))


def dispatches(
    call: Call, name: str, buffers: tuple[str, ...], push: Mapping[str, Number], items: int, trips: int
) -> list[Dispatch]:
    """The pass over so many items, each of which takes a workgroup so many loop iterations."""
    return [
        Dispatch(
            name,
            buffers,
            {**push, "first_item": s.first, "items": s.beyond, "stride": s.groups},
            (s.groups, 1, 1),
            s.trips,
            {"LANES": call.tuning["lanes"]},
        )
        for s in split_work(items, trips, call.limits)
    ]
