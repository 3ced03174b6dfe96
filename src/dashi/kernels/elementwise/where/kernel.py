"""where: x where the condition is not zero, else y, bit for bit (np.where). The condition has the type of x and y.

NaN is not zero, and no more are subnormals; -0 is.
"""

import numpy as np

from dashi.kernels._words import word_moves, words_of
from dashi.kernels.abi import Call, Case, Number, Scalar
from dashi.kernels.patterns import SHAPES
from dashi.types import HostArray, Shape

INPUTS = ("condition", "x", "y")


def reference(condition: HostArray, x: HostArray, y: HostArray) -> HostArray:
    bits = words_of(condition)
    if condition.dtype.kind == "f":
        bits = bits << bits.dtype.type(1)
    return np.where(bits != 0, words_of(x), words_of(y)).view(x.dtype).reshape(x.shape)


def push(call: Call) -> dict[str, Number]:
    """Bytes of an element, and which bits of a word (the upper one of a pair) tell it from zero."""
    size, signed = call.dtype.size, call.dtype.is_float
    return {"size": size, "counted": (0x7FFF7FFF if size == 2 else 0x7FFFFFFF) if signed else 0xFFFFFFFF}


def half_of_them(rng: np.random.Generator, shape: Shape) -> HostArray:
    return rng.integers(0, 2, shape)


def case(number: int, shape: Shape) -> Case:
    """Every other one with a condition that is zero at half of the elements."""
    return Case(dict.fromkeys(INPUTS, shape), fill={"condition": half_of_them} if number % 2 else {})


KERNEL = word_moves(
    summary="x where the condition is not zero, else y, bit for bit",
    inputs=INPUTS,
    push=push,
    pushed=(Scalar("size", "u32"), Scalar("counted", "u32")),
    cases=tuple(case(number, shape) for number, shape in enumerate(SHAPES)),
    reference=reference,
)
