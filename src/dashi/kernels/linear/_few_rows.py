"""Matrix products of few rows, where reading b is what takes time: `_include/gemm_few.glsl`.

Every element of b is read once for up to 16 rows of a. More rows are made side by side, by workgroups that follow each
other, so that b comes from a cache the second time.
"""

from __future__ import annotations

from collections.abc import Mapping
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


def multiply(call: Call, reach: tuple[int, int], target: str, flags: Mapping[str, Number]) -> Dispatch | None:
    """The dispatch that adds the products over k from reach[0] to reach[1] to `target`; None where it does not fit."""
    m, n, k = (call.dims[name] for name in ("m", "n", "k"))
    depth_of_k = reach[1] - reach[0]
    rows = next((rows for rows in STEPS if rows >= m), max(STEPS))
    per_vector = VECTOR_BYTES // call.dtype.size
    wide = n % per_vector == 0 and k % per_vector == 0
    pitch = n // per_vector if wide else n
    down = ceil_div(m, rows)
    lanes, depth = _workgroup(call, rows, pitch, down, ceil_div(depth_of_k, RUN), wide)
    groups = ceil_div(pitch, lanes) * down
    trips = _trips(depth_of_k, rows, lanes, depth, per_vector if wide else 1, call.dtype.size)
    shared = _shared(rows, lanes, depth, call.dtype.size, VECTOR_BYTES if wide else call.dtype.size)
    fits = lanes * depth <= call.limits.invocations and shared <= call.limits.shared_bytes
    if depth_of_k == 0 or not fits or groups > call.limits.groups or trips > call.limits.loop_trips:
        return None
    push = {"m": m, "n": n, "k": k, "begin": reach[0], "end": reach[1], "down": down, **flags}
    name = f"few_{'wide' if wide else 'any'}_{rows}"
    return Dispatch(name, ("a", "b", target), push, (groups, 1, 1), trips, {"LANES": lanes, "DEPTH": depth})


def _workgroup(call: Call, rows: int, pitch: int, down: int, runs: int, wide: bool) -> tuple[int, int]:
    """Vectors of a row of b and runs of 64 that a workgroup has: fewer vectors where there would be too few workgroups
    to fill a device; what they leave over goes to runs."""
    numbers = call.tuning
    invocations = min(numbers["few_invocations"], call.limits.invocations)
    scale = 1 if wide else VECTOR_BYTES // call.dtype.size
    lanes = numbers["few_lanes"] * scale
    while lanes > 2 * scale and ceil_div(pitch, lanes) * down < numbers["few_fill"]:
        lanes //= 2
    lanes = min(lanes, max(2, next_power_of_two(pitch)))
    depth = max(JOINED, min(RUN, next_power_of_two(runs), invocations // lanes))
    while depth > JOINED and _shared(rows, lanes, depth, call.dtype.size, VECTOR_BYTES) > call.limits.shared_bytes:
        depth //= 2
    return lanes, depth


def _shared(rows: int, lanes: int, depth: int, element: int, vector: int) -> int:
    """Bytes of shared memory: a step of a for every row and run with a vector more, and the sums that are joined."""
    return rows * depth * (STEPS[rows] * element + VECTOR_BYTES) + JOINED * depth * lanes * vector + VECTOR_BYTES


def _trips(depth_of_k: int, rows: int, lanes: int, depth: int, per_vector: int, element: int) -> int:
    """Loop iterations of an invocation, short loops that are unrolled included."""
    step, lanes_of_p = STEPS[rows], VECTOR_BYTES // element
    brought = ceil_div(rows * depth * step // per_vector, lanes * depth)
    products = step // lanes_of_p * (1 + rows)
    each = 1 + 2 * brought + 4 * step + products
    rounds = ceil_div(depth_of_k, depth * RUN)
    joins = rounds * (rows // JOINED) * (1 + JOINED + depth)
    return rows + 2 * (rows // JOINED) + step + brought + rounds * (RUN // step) * each + joins
