"""iterate: x -> 1664525 x + 1013904223 mod 2^32, `steps` times; the probe for how long a shader's loop may be.

The generator is that of Knuth and Lewis (Numerical Recipes, section 7.1): every step counts, so a driver that ends
the loop early is found out by its result.
"""

from typing import Final

import numpy as np

from dashi.kernels._work import ceil_div
from dashi.kernels.abi import Binding, Call, Case, Dispatch, Kernel, Operand, Plan, Scalar, Shader
from dashi.types import Cost, HostArray, Shape

LOCAL: Final = 64
FACTOR: Final = 1664525
OFFSET: Final = 1013904223
MASK: Final = np.uint64(0xFFFFFFFF)


def reference(x: HostArray, steps: int) -> HostArray:
    # The composition of affine maps is affine: powers by squaring, so that long probes cost nothing here.
    factor, offset = _power(steps)
    return ((np.uint64(factor) * x.astype(np.uint64) + np.uint64(offset)) & MASK).astype(np.uint32)


def _power(steps: int) -> tuple[int, int]:
    """Factor and offset of `steps` steps at once, mod 2^32."""
    whole, result, square = (1 << 32) - 1, (1, 0), (FACTOR, OFFSET)
    while steps:
        if steps & 1:
            result = (square[0] * result[0] & whole, square[0] * result[1] + square[1] & whole)
        square = (square[0] * square[0] & whole, square[0] * square[1] + square[1] & whole)
        steps >>= 1
    return result


def plan(call: Call) -> Plan:
    n = call.size("x")
    if n == 0:
        return Plan(())
    groups = min(ceil_div(n, LOCAL), call.limits.groups)
    push = {"n": n, "stride": groups * LOCAL, "steps": call.scalars["steps"]}
    # The trips are understated on purpose: this kernel measures the very limit that honest ones are held to.
    return Plan((Dispatch("main", ("x", "result"), push, (groups, 1, 1), trips=1),))


def cost(call: Call) -> Cost:
    n = call.size("x")
    return Cost(flops=2 * n * int(call.scalars["steps"]), bytes=2 * call.bytes("x"), dispatches=int(n > 0))


def _words(rng: np.random.Generator, shape: Shape) -> HostArray:
    return rng.integers(0, 1 << 32, shape, dtype=np.uint32)


KERNEL = Kernel(
    summary="steps of a linear congruential generator: finds how long a loop may be",
    inputs=(Operand("x", "u32", ("n",)),),
    outputs=(Operand("result", "u32", ("n",)),),
    scalars=(Scalar("steps", "u32", doc="how many steps"),),
    shaders={
        "main": Shader(
            (Binding("x", "u32"), Binding("result", "u32", "write")),
            (Scalar("n", "u32"), Scalar("stride", "u32"), Scalar("steps", "u32")),
            local=(LOCAL, 1, 1),
        )
    },
    plan=plan,
    reference=reference,
    cost=cost,
    cases=tuple(
        Case({"x": (n,)}, {"steps": steps}, {"x": _words})
        for n, steps in ((0, 3), (1, 0), (1, 1), (63, 64), (65, 1000), (1000, 7), (5000, 100))
    ),
    dtypes=("u32",),
)
