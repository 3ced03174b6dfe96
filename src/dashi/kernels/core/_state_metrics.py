"""What a step did to a state, measured: the passes of `_include/state_measures.glsl`, and the same on the host."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from dashi.kernels._reductions import PUSH, TILE, ReductionPass, passes, values_moved
from dashi.kernels._work import RUN
from dashi.kernels.abi import Binding, Call, Dispatch, Limits, Number, Plan, Scalar, Shader, Spec
from dashi.kernels.portable import canon, divide, mul, order_key, order_value, sqrt, sum64
from dashi.types import Cost, HostArray

WIDEST: Final = 256
NONE: Final = 0xFFFFFFFF
PARTS: Final = 8
SHARED: Final = 20480
TUNINGS: Final = {"staged": {"direct": 0}, "direct": {"direct": 1}}
"""Through shared memory, four sums at a time; or each invocation by itself."""
MADE: Final = (Binding("metrics", access="write"), Binding("counts", "u32", "write"))


def measure(before: HostArray, after: HostArray) -> tuple[HostArray, HostArray]:
    """The metrics and counts of state_metrics."""
    here, there = canon(before.reshape(-1)), canon(after.reshape(-1))
    kind = here.dtype.type
    with np.errstate(all="ignore"):
        change = canon(there - here)
    squares = [sum64(mul(v, v)) for v in (here, there, change)]
    norms = sqrt(np.stack(squares))
    ratio = kind(0) if not norms[:2].any() else divide(norms[1:2], norms[:1])[0]
    extremes = [_top(np.abs(there)), _top(np.abs(change)), _top(-there), _top(there)]
    metrics = np.zeros(16, here.dtype)
    metrics[:10] = [
        *norms[:2], ratio, extremes[0], extremes[1], norms[2], sum64(there), squares[1], -extremes[2], extremes[3],
    ]  # fmt: skip
    odd = np.flatnonzero(~np.isfinite(there))
    place = [int(odd[0]) & NONE, int(odd[0]) >> 32] if odd.size else [NONE, NONE]
    return canon(metrics), np.array([odd.size & NONE, *place, 0], np.uint32)


def _top(values: HostArray) -> Any:
    """Maximum; NaN wins over every number; 0 for an empty array."""
    return order_value(np.asarray(order_key(values).max()))[()] if values.size else values.dtype.type(0)


def lanes_of(call: Call) -> int:
    """Invocations of a workgroup: a power of two, 64 at least. Doubles of 256 of them need more than 16 KiB."""
    room = WIDEST if call.dtype.size < 8 or call.limits.shared_bytes >= SHARED else WIDEST // 2
    return max(RUN, min(room, 1 << call.limits.invocations.bit_length() - 1))


def prefer(limits: Limits, variant: str) -> str:
    """The tuning: a processor has caches, so values need no staging there, and barriers cost."""
    return "direct" if limits.software else "staged"


def shaders(prefix: str = "", *push: Scalar, prelude: str = "") -> dict[str, Shader]:
    """The three shaders: main (values through shared memory), direct, and rest (later passes)."""
    numbers, values = (*PUSH, *push), (Binding("before"), Binding("after"), *MADE)
    more: Any = {"includes": ("portable.glsl",), "extensions": ("GL_EXT_control_flow_attributes",), "prelude": prelude}
    files = {name: f"{prefix}{name}.comp" for name in ("direct", "rest")}
    main = f"{prefix}main.comp" if prefix else "kernel.comp"
    partial = (Binding("partial"), Binding("found", "u32"), *MADE)
    return {
        f"{prefix}main": Shader(values, numbers, (Spec("LANES", WIDEST),), ("LANES", 1, 1), main, **more),
        f"{prefix}direct": Shader(values, numbers, (), (RUN, 1, 1), files["direct"], **more),
        f"{prefix}rest": Shader(partial, numbers, (), (RUN, 1, 1), files["rest"], **more),
    }


def plan(
    call: Call, before: str, after: str, direct: bool, prefix: str = "", push: Mapping[str, Number] | None = None
) -> Plan:
    """The passes that measure two operands."""
    steps = passes(call.size(after), call.limits)
    lanes, more = lanes_of(call), dict(push or {})
    outputs = [("metrics", "counts") if p.last else (p.target("partial"), p.target("found")) for p in steps]
    work = 2 * TILE // lanes * 2 + 4 * RUN * RUN // lanes + 4 * RUN + 64 + 2 * lanes.bit_length() * 4
    dispatches: list[Dispatch] = []
    for p in steps:
        numbers, groups = {**p.push, **more}, (p.groups, 1, 1)
        if p.index:
            buffers = (p.source("partial"), p.source("found"), *outputs[p.index])
            dispatches.append(Dispatch(f"{prefix}rest", buffers, numbers, groups, _joins(p)))
        elif direct:
            buffers = (before, after, *outputs[0])
            dispatches.append(Dispatch(f"{prefix}direct", buffers, numbers, groups, _joins(p)))
        else:
            buffers, trips = (before, after, *outputs[0]), p.rounds * (1 + work)
            dispatches.append(Dispatch(f"{prefix}main", buffers, numbers, groups, trips, {"LANES": lanes}))
    scratch = {p.target("partial"): ("T", PARTS * p.tiles) for p in steps if not p.last}
    counts = {p.target("found"): ("u32", 2 * p.tiles) for p in steps if not p.last}
    return Plan(tuple(dispatches), scratch | counts)


def _joins(p: ReductionPass) -> int:
    """Loop iterations of a pass that joins 64 values of eight numbers in a row, twice."""
    return p.rounds * (1 + 2 * RUN * (3 + 2 * 4) + 32)


def cost(call: Call, before: str, after: str) -> Cost:
    """Cost of measuring two states: each moves once, and what passes leave for each other."""
    steps = passes(call.size(after), call.limits)
    moved = call.bytes(before, after) + values_moved(steps) * (PARTS * call.dtype.size + 8)
    return Cost(12 * call.size(after), moved, len(steps))
