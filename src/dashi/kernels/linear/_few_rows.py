"""Matrix products of few rows, where reading b is what takes time: `_include/gemm_few.glsl`.

Every element of b is read once for up to 16 rows of a. More rows are made side by side, by workgroups that follow each
other, so that b comes from a cache the second time.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from dashi.kernels._work import RUN, ceil_div, next_power_of_two
from dashi.kernels.abi import Binding, Call, Dispatch, Number, Scalar, Shader, Spec

VECTOR_BYTES: Final = 16
STEPS: Final = {4: 16, 8: 16, 16: 8}
"""By rows of a workgroup: how much of a run is under way at a time. Together they fill the registers."""
JOINED: Final = 4
"""Rows whose sums are joined at a time, by as many runs of invocations."""
NUMBERS: Final = ("m", "n", "k", "begin", "end", "down", "fresh", "last")
ELEMENTS: Final = (("wide", "V"), ("any", "T"))


def shaders() -> dict[str, Shader]:
    """Shaders by rows of a workgroup; for rows of whole vectors of 16 bytes, and for any rows."""
    return {f"few_{kind}_{rows}": _shader(element, rows) for kind, element in ELEMENTS for rows in STEPS}


def _shader(element: str, rows: int) -> Shader:
    return Shader(
        (Binding("a", element), Binding("b", element), Binding("result", element, access="readwrite")),
        tuple(Scalar(name, "u32") for name in NUMBERS),
        (Spec("LANES", 8), Spec("DEPTH", 4)),
        local=("LANES", "DEPTH", 1),
        file=f"few_{rows}.comp",
        includes=("portable.glsl",),
        extensions=("GL_EXT_control_flow_attributes",),
    )


@dataclass(frozen=True)
class RowShape:
    """How a workgroup works: rows of a, vectors of a row of b, and runs of 64 that it has."""

    rows: int
    lanes: int
    depth: int


def multiply(
    call: Call, reach: tuple[int, int], target: str, flags: Mapping[str, Number], *, vectors: bool = True
) -> Dispatch | None:
    """The dispatch that adds the products over k from reach[0] to reach[1] to `target`; None where it does not fit.
    Rows of whole vectors are read so, unless `vectors` is false."""
    m, n, k = (call.dims[name] for name in ("m", "n", "k"))
    length = reach[1] - reach[0]
    per_vector = VECTOR_BYTES // call.dtype.size
    wide = vectors and n % per_vector == 0 and k % per_vector == 0
    pitch = n // per_vector if wide else n
    shape = shape_for(call, pitch, ceil_div(length, RUN), 1 if wide else per_vector)
    groups = ceil_div(pitch, shape.lanes) * ceil_div(m, shape.rows)
    trips = _trips(shape, length, per_vector if wide else 1, call.dtype.size)
    fits = shape.lanes * shape.depth <= call.limits.invocations and _shared(call, shape) <= call.limits.shared_bytes
    if length == 0 or not fits or groups > call.limits.groups or trips > call.limits.loop_trips:
        return None
    push = {"m": m, "n": n, "k": k, "begin": reach[0], "end": reach[1], "down": ceil_div(m, shape.rows), **flags}
    name = f"few_{'wide' if wide else 'any'}_{shape.rows}"
    spec = {"LANES": shape.lanes, "DEPTH": shape.depth}
    return Dispatch(name, ("a", "b", target), push, (groups, 1, 1), trips, spec)


def shape_for(call: Call, pitch: int, runs: int, scale: int) -> RowShape:
    """The widest workgroups that are enough to fill a device; where none are, the narrowest, with more runs each.
    `scale` is how many elements lie where otherwise a vector would."""
    numbers, m = call.tuning, call.dims["m"]
    invocations = numbers["few_invocations"]
    shapes = [(rows, lanes * scale) for rows, least in _rows(m) for lanes in (16, 8, 4) if lanes >= least]
    for rows, lanes in shapes:
        if ceil_div(pitch, lanes) * ceil_div(m, rows) >= numbers["few_fill"]:
            break
    else:
        rows, lanes, invocations = shapes[-1][0], 8 * scale, 2 * invocations
    lanes = min(lanes, next_power_of_two(pitch))
    depth = max(JOINED, min(RUN, next_power_of_two(runs), min(invocations, call.limits.invocations) // lanes))
    while depth > JOINED and _shared(call, RowShape(rows, lanes, depth)) > call.limits.shared_bytes:
        depth //= 2
    return RowShape(rows, lanes, depth)


def _rows(m: int) -> tuple[tuple[int, int], ...]:
    """Rows of a workgroup for m rows of a, the best first, each with the fewest vectors that it is good for: measured
    on an H200."""
    if m <= 4:
        return ((4, 4),)
    if m <= 8:
        return ((8, 8), (4, 4))
    return ((8, 8),) if m <= 16 else ((16, 16), (8, 8))


def _shared(call: Call, shape: RowShape) -> int:
    """Bytes of shared memory: a step of a for every row and run with a vector more, and the sums that are joined."""
    staged = shape.rows * shape.depth * (STEPS[shape.rows] * call.dtype.size + VECTOR_BYTES)
    return staged + JOINED * shape.depth * shape.lanes * VECTOR_BYTES + VECTOR_BYTES


def _trips(shape: RowShape, length: int, per_vector: int, element: int) -> int:
    """Loop iterations of an invocation, short loops that are unrolled included."""
    rows, depth, step = shape.rows, shape.depth, STEPS[shape.rows]
    brought = ceil_div(rows * step // per_vector, shape.lanes)
    products = step * element // VECTOR_BYTES * (1 + rows)
    each = 1 + 2 * brought + 4 * step + products
    rounds = ceil_div(length, depth * RUN)
    joins = rounds * (rows // JOINED) * (1 + JOINED + depth)
    return rows + 2 * (rows // JOINED) + step + brought + rounds * (RUN // step) * each + joins
