"""reduce_argmax: where the largest element is (in the flattened array): the first of equals, the first NaN if any."""

import numpy as np

from dashi.kernels.abi import Binding, Call, Dispatch, Kernel, Operand, Plan, Shader
from dashi.kernels.portable import order_key
from dashi.kernels.reductions import LOCAL, PUSH, cases, passes, require_elements
from dashi.types import Array, Cost

MADE = (Binding("values", access="write"), Binding("places", "u32", "write"))


def reference(x: Array) -> Array:
    require_elements(x.size)
    return np.asarray(order_key(x.reshape(-1)).argmax(), np.uint32).reshape(1)


def plan(call: Call) -> Plan:
    require_elements(call.size("x"))
    steps = passes(call.size("x"), 2 * call.dtype.size, call.limits)
    dispatches: list[Dispatch] = []
    for p in steps:
        made = (p.target("values"), "result" if p.last else p.target("places"))
        found = ("x",) if p.index == 0 else (p.source("values"), p.source("places"))
        shader = "main" if p.index == 0 else "next"
        dispatches.append(Dispatch(shader, found + made, p.push, (p.groups, 1, 1), p.trips))
    scratch = {p.target("values"): ("T", p.tiles) for p in steps}
    return Plan(tuple(dispatches), scratch | {p.target("places"): ("u32", p.tiles) for p in steps if not p.last})


def cost(call: Call) -> Cost:
    first, *later = passes(call.size("x"), 2 * call.dtype.size, call.limits)
    pair = call.dtype.size + 4
    moved = first.n * call.dtype.size + first.tiles * pair + sum((p.n + p.tiles) * pair for p in later)
    return Cost(flops=call.size("x"), bytes=moved, dispatches=1 + len(later))


KERNEL = Kernel(
    summary="flat index of the largest element, as u32 of shape (1,)",
    inputs=(Operand("x"),),
    outputs=(Operand("result", "u32", (1,)),),
    shaders={
        "main": Shader((Binding("x"), *MADE), PUSH, local=(LOCAL, 1, 1), includes=("portable.glsl",)),
        "next": Shader(
            (Binding("x"), Binding("origin", "u32"), *MADE),
            PUSH,
            local=(LOCAL, 1, 1),
            file="next.comp",
            includes=("portable.glsl",),
        ),
    },
    plan=plan,
    reference=reference,
    cost=cost,
    cases=cases(empty=False),
    aliases=("argmax",),
)
