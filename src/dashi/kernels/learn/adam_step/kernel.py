"""adam_step: one step of Adam (D. P. Kingma and J. Ba, 2015, arXiv:1412.6980, algorithm 1).

mean' = beta1 mean + (1 - beta1) g, square' = beta2 square + (1 - beta2) g^2, and the weights move by
-rate (c1 mean') / (sqrt(c2 square') + epsilon). The corrections c1 = 1 / (1 - beta1^t) and c2 = 1 / (1 - beta2^t)
stand in the row `place` of a table, so that a recorded step serves any t.
"""

from typing import Final

import numpy as np

from dashi.errors import InputError
from dashi.kernels._work import groups_for
from dashi.kernels.abi import Binding, Call, Case, Dispatch, Kernel, Operand, Plan, Scalar, Shader
from dashi.kernels.portable import canon, divide, mul, sqrt
from dashi.types import Cost, HostArray, Shape

LOCAL: Final = 256
READ: Final = ("weights", "gradient", "mean", "square")
MADE: Final = ("weights_next", "mean_next", "square_next")
NUMBERS: Final = ("rate", "beta1", "beta2", "epsilon")


def reference(
    weights: HostArray,
    gradient: HostArray,
    mean: HostArray,
    square: HostArray,
    corrections: HostArray,
    place: int,
    rate: float,
    beta1: float,
    beta2: float,
    epsilon: float,
) -> tuple[HostArray, HostArray, HostArray]:
    w, g, m, v = (canon(x) for x in (weights, gradient, mean, square))
    unity = w.dtype.type(1)
    step, keep_mean, keep_square, least = (canon(w.dtype.type(x)) for x in (rate, beta1, beta2, epsilon))
    first, second = canon(corrections[int(place)])
    with np.errstate(all="ignore"):
        m = canon(mul(keep_mean, m) + mul(unity - keep_mean, g))
        v = canon(mul(keep_square, v) + mul(unity - keep_square, mul(g, g)))
        change = divide(mul(step, mul(m, first)), sqrt(mul(v, second)) + least)
        return canon(w - change), m, v


def plan(call: Call) -> Plan:
    n, place = call.dims["size"], call.scalars["place"]
    if not place < call.dims["t"]:
        raise InputError(
            f"kernel 'adam_step': there is no row {place} of {call.dims['t']}.", "pass a row of `corrections`."
        )
    if n == 0:
        return Plan(())
    groups, trips = groups_for(n, LOCAL, call.limits)
    push = {"n": n, "stride": groups * LOCAL, "place": place, **{name: call.scalars[name] for name in NUMBERS}}
    return Plan((Dispatch("main", (*READ, "corrections", *MADE), push, (groups, 1, 1), trips),))


def cost(call: Call) -> Cost:
    n = call.dims["size"]
    # The root and the quotient count as one operation each: they are mostly integer work.
    return Cost(14 * n, 7 * n * call.dtype.size, int(n > 0))


def case(shape: Shape, t: int, place: int, tame: bool = True, **numbers: float) -> Case:
    """A state as training makes it, or one of the harness."""

    def positive(rng: np.random.Generator, shape: Shape) -> HostArray:
        return np.square(rng.standard_normal(shape))

    def corrections(rng: np.random.Generator, shape: Shape) -> HostArray:
        return 1 / (1 - np.array([[0.9, 0.999]]) ** np.arange(1, shape[0] + 1)[:, None])

    values = {"rate": 1e-3, "beta1": 0.9, "beta2": 0.999, "epsilon": 1e-8, "place": place, **numbers}
    fill = {"square": positive, "corrections": corrections} if tame else {}
    return Case({**dict.fromkeys(READ, shape), "corrections": (t, 2)}, values, fill)


KERNEL = Kernel(
    summary="one step of Adam: weights, running mean and running square of the gradient",
    inputs=(*(Operand(name) for name in READ), Operand("corrections", shape=("t", 2))),
    outputs=tuple(Operand(name) for name in MADE),
    scalars=(
        Scalar("place", "u32", default=0, doc="row of corrections of this step"),
        Scalar("rate", default=1e-3, doc="how far a weight moves at most, about"),
        Scalar("beta1", default=0.9, doc="what the running mean keeps"),
        Scalar("beta2", default=0.999, doc="what the running square keeps"),
        Scalar("epsilon", default=1e-8, doc="added to the root of the square"),
    ),
    shaders={
        "main": Shader(
            (
                *(Binding(name) for name in (*READ, "corrections")),
                *(Binding(name, access="write") for name in MADE),
            ),
            (*(Scalar(name, "u32") for name in ("n", "stride", "place")), *(Scalar(name) for name in NUMBERS)),
            local=(LOCAL, 1, 1),
            includes=("portable.glsl",),
        )
    },
    plan=plan,
    reference=reference,
    cost=cost,
    cases=(
        case((0,), 1, 0), case((1,), 1, 0), case((65,), 3, 2), case((9, 31), 5, 1, rate=0.1), case((4099,), 64, 63),
        case((257,), 2, 1, tame=False), case((300,), 1, 0, tame=False, epsilon=0.0, beta1=0.0),
    ),
    bench=(case((1 << 26,), 1, 0),),
)  # fmt: skip
