"""defect_reduce: result = [max |b - a|, sum of |b - a| in tree64 order], both 0 where there are no elements.

A NaN anywhere makes both NaN. The addends are exactly those of defect_local.
"""

import numpy as np

from dashi.kernels.abi import Binding, Call, Case, Dispatch, Kernel, Operand, Plan, Shader, StreamDefaults
from dashi.kernels.portable import canon, order_key, order_value, sum64
from dashi.kernels.reductions import LOCAL, PUSH, SHAPES, passes, traffic
from dashi.types import Array, Cost


def reference(a: Array, b: Array) -> Array:
    defect = canon(np.abs(canon(b.reshape(-1)) - canon(a.reshape(-1))))
    most = order_value(np.asarray(order_key(np.append(defect, defect.dtype.type(0))).max()))
    return canon(np.stack([most, sum64(defect)]))


def plan(call: Call) -> Plan:
    steps = passes(call.size("a"), 2 * call.dtype.size, call.limits)
    dispatches = tuple(
        Dispatch(
            "rest" if p.index else "main",
            (*((p.source("pairs"),) if p.index else ("a", "b")), "result" if p.last else p.target("pairs")),
            p.push,
            (p.groups, 1, 1),
            p.trips,
        )
        for p in steps
    )
    return Plan(dispatches, {p.target("pairs"): ("T", 2 * p.tiles) for p in steps if not p.last})


def cost(call: Call) -> Cost:
    """Two numbers per element in every pass: a and b, then the largest and the sum."""
    steps = passes(call.size("a"), 2 * call.dtype.size, call.limits)
    return Cost(3 * call.size("a"), traffic(steps, 2 * call.dtype.size), len(steps))


KERNEL = Kernel(
    summary="[max |b - a|, sum of |b - a|], as shape (2,); none give 0",
    inputs=(Operand("a"), Operand("b")),
    outputs=(Operand("result", shape=(2,)),),
    shaders={
        "main": Shader(
            (Binding("a"), Binding("b"), Binding("result", access="write")),
            PUSH,
            local=(LOCAL, 1, 1),
            includes=("portable.glsl",),
        ),
        "rest": Shader(
            (Binding("pairs"), Binding("result", access="write")),
            PUSH,
            local=(LOCAL, 1, 1),
            file="rest.comp",
            includes=("portable.glsl",),
        ),
    },
    plan=plan,
    reference=reference,
    cost=cost,
    cases=tuple(Case({"a": shape, "b": shape}) for shape in SHAPES),
    stream=StreamDefaults(io_class="OBSERVER"),
)
