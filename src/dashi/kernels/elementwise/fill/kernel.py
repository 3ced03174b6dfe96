"""fill: an array of the shape and type of x with one value everywhere; x is not read (np.full_like)."""

from dataclasses import replace

import numpy as np

from dashi.kernels import patterns
from dashi.kernels._words import word_moves
from dashi.kernels.abi import Call, Number, Scalar
from dashi.types import HostArray


def reference(x: HostArray, value: Number) -> HostArray:
    return np.full_like(x, value)


def push(call: Call) -> dict[str, Number]:
    """The value's bits, repeated to two words."""
    low, high = np.full(8 // call.dtype.size, call.scalars["value"], call.dtype.numpy).view(np.uint32).tolist()
    return {"low": low, "high": high}


MOVED = word_moves(
    summary="one value everywhere, in the shape and type of x, which is not read",
    inputs=("x",),
    read=(),
    scalars=(Scalar("value", doc="what every element becomes, rounded to the type of x"),),
    push=push,
    pushed=(Scalar("low", "u32"), Scalar("high", "u32")),
    cases=patterns.cases(("x",), ({"value": 1}, {"value": 0}, {"value": 119})),
    reference=reference,
)
# A truth value is no number: device.full writes arrays of them.
KERNEL = replace(MOVED, dtypes=tuple(name for name in MOVED.dtypes if name != "bool"))
