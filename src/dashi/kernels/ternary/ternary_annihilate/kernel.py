"""ternary_annihilate: s where its coherence is above eps, else 0. A projector: no sign changes, no support appears.

A NaN is no coherence: the site becomes 0.
"""

import numpy as np

from dashi.kernels._torus import trits
from dashi.kernels._trits import FIELDS, random_trits
from dashi.kernels._work import LOCAL, LOOP_PUSH, ceil_div, loop_plan
from dashi.kernels.abi import Binding, Call, Case, Kernel, Operand, Plan, Scalar, Shader
from dashi.kernels.portable import canon
from dashi.types import Cost, HostArray, Shape

EPS = Scalar("eps", default=0.0, doc="what coherence must exceed")

SIZES = (0, 1, 3, 4, 5, 6, 7, 63, 64, 65, 257, 4097)


def reference(s: HostArray, coherence: HostArray, *, eps: float) -> HostArray:
    keep = canon(coherence) > canon(np.asarray(eps, coherence.dtype))
    return np.where(keep, trits(s), 0).astype(np.int8)


def plan(call: Call) -> Plan:
    n = call.size("s")
    return loop_plan(call, ceil_div(n, 4), ("s", "coherence", "result"), {"n": n, "eps": call.scalars["eps"]})


def cost(call: Call) -> Cost:
    n = call.size("s")
    return Cost(bytes=n * (2 + call.dtype.size), dispatches=int(n > 0))


def case(number: int, shape: Shape) -> Case:
    eps = (0.0, 0.5, -0.5, 2.0**-101)[number % 4]
    return Case({"s": shape, "coherence": shape}, {"eps": eps}, {"s": FIELDS[number % len(FIELDS)]})


KERNEL = Kernel(
    summary="a ternary field where its coherence exceeds eps, 0 elsewhere",
    inputs=(Operand("s", "i8"), Operand("coherence")),
    outputs=(Operand("result", "i8"),),
    scalars=(EPS,),
    shaders={
        "main": Shader(
            (Binding("s", "u32"), Binding("coherence", "u32x4"), Binding("result", "u32", "write")),
            (*LOOP_PUSH, Scalar("n", "u32"), EPS),
            local=(LOCAL, 1, 1),
            includes=("portable.glsl",),
        )
    },
    plan=plan,
    reference=reference,
    cost=cost,
    cases=(*(case(i, (n,)) for i, n in enumerate(SIZES)), case(1, (9, 11))),
    bench=(Case({"s": (1 << 26,), "coherence": (1 << 26,)}, {"eps": 0.5}, {"s": random_trits}),),
)
