"""ternary_majority_weighted: ternary_majority with any integer weights: their middle one belongs to the site itself.

weights[i, j] belongs to the neighbour i - p // 2 rows down and j - q // 2 columns on; a ring takes one row of weights.
Sums are taken modulo 2^32.
"""

from dataclasses import replace

import numpy as np

from dashi.errors import ShapeError
from dashi.kernels._torus import GRID, SHAPES, grid, moved, trits
from dashi.kernels._trits import FIELDS, random_trits
from dashi.kernels._work import LOCAL, LOOP_PUSH, ceil_div, loop_plan
from dashi.kernels.abi import Binding, Call, Case, Kernel, Number, Operand, Plan, Scalar, Shader, Spec
from dashi.types import Cost, HostArray, Shape

NAME = "ternary_majority_weighted"
FOUR = 4
"""Sites of a word."""
ETA = Scalar("eta", "i32", 1, "the least magnitude of a sum that decides; below 1 it is 1")
GROW = Scalar("grow", "u32", 0, "1: sites without support may gain it")


def reference(s: HostArray, weights: HostArray, *, eta: int, grow: int) -> HostArray:
    require_weights(s.shape, weights.shape)
    field = trits(s)
    sums = np.zeros(s.shape, np.int32)
    numbers = weights.astype(np.int32)
    p, q = numbers.shape
    for i, j in np.ndindex(p, q):
        shift = (i - p // 2, j - q // 2)
        sums += numbers[i, j] * moved(field, shift[-s.ndim :])
    least = max(eta, 1)
    chosen = np.where(sums >= least, 1, np.where(sums <= -least, -1, 0))
    return np.where((field != 0) | bool(grow), chosen, 0).astype(np.int8)


def require_weights(shape: Shape, weights: Shape) -> None:
    """An error unless the weights have a middle, and one row for a ring."""
    grid(NAME, shape)
    if not (weights[0] % 2 and weights[1] % 2) or (len(shape) == 1 and weights[0] != 1):
        raise ShapeError(
            f"kernel {NAME!r}: weights of shape {weights} have no middle for a field of shape {shape}.",
            "pass an odd number of rows and columns; one row for a field of one dimension.",
        )


def plan(call: Call) -> Plan:
    shape, (p, q) = call.shapes["s"], call.shapes["weights"]
    require_weights(shape, (p, q))
    h, w = grid(NAME, shape)
    buffers = ("s", "weights", "result")
    push: dict[str, Number] = {"h": h, "eta": max(int(call.scalars["eta"]), 1), "grow": call.scalars["grow"]}
    if h * w and w % FOUR == 0 and q <= 2 * FOUR + 1:
        push |= {"across": w // FOUR, "rise": p // 2 % h}
        made = loop_plan(call, h * w // FOUR, buffers, push, shader="words", trips=p * (1 + 3 * FOUR + q))
        return replace(made, dispatches=tuple(replace(d, spec={"TALL": p, "WIDE": q}) for d in made.dispatches))
    push |= {"w": w, "tall": p, "wide": q}
    return loop_plan(call, ceil_div(h * w, FOUR), buffers, push, trips=FOUR * (1 + p * (1 + q)))


def cost(call: Call) -> Cost:
    n = call.size("s")
    return Cost(bytes=2 * n + 4 * call.size("weights"), dispatches=int(n > 0))


def random_weights(rng: np.random.Generator, shape: Shape) -> HostArray:
    return rng.integers(-3, 6, shape).astype(np.int32)


def any_weights(rng: np.random.Generator, shape: Shape) -> HostArray:
    """Random weights so large that sums wrap round."""
    return rng.integers(-(1 << 31), 1 << 31, shape).astype(np.int32)


def case(number: int, shape: Shape) -> Case:
    sizes = ((1, 3), (1, 5), (1, 1)) if len(shape) == 1 else ((3, 3), (5, 3), (1, 1), (3, 7), (1, 9), (3, 11))
    weights = any_weights if number % 5 == 4 else random_weights
    return Case(
        {"s": shape, "weights": sizes[number % len(sizes)]},
        ({}, {"eta": 3}, {"grow": 1})[number % 3],
        {"s": FIELDS[number % len(FIELDS)], "weights": weights},
    )


KERNEL = Kernel(
    summary="on the support, the sign of a weighted sum over a periodic neighbourhood where it reaches eta, else 0",
    inputs=(Operand("s", "i8"), Operand("weights", "i32", ("p", "q"))),
    outputs=(Operand("result", "i8"),),
    scalars=(ETA, GROW),
    shaders={
        "main": Shader(
            (Binding("s", "u32"), Binding("weights", "i32"), Binding("result", "u32", "write")),
            (*LOOP_PUSH, *GRID, Scalar("tall", "u32"), Scalar("wide", "u32"), ETA, GROW),
            local=(LOCAL, 1, 1),
        ),
        "words": Shader(
            (Binding("s", "u32"), Binding("weights", "i32"), Binding("result", "u32", "write")),
            (*LOOP_PUSH, Scalar("h", "u32"), Scalar("across", "u32"), Scalar("rise", "u32"), ETA, GROW),
            (Spec("TALL", 3), Spec("WIDE", 3)),
            local=(LOCAL, 1, 1),
            file="words.comp",
            extensions=("GL_EXT_control_flow_attributes",),
        ),
    },
    plan=plan,
    reference=reference,
    cost=cost,
    cases=tuple(case(i, shape) for i, shape in enumerate((*SHAPES, (5, 4), (37, 48), (2, 8), (40, 12)))),
    bench=(Case({"s": (1 << 13, 1 << 13), "weights": (3, 3)}, fill={"s": random_trits, "weights": random_weights}),),
    dtypes=("u32",),
)
