"""modes_to_proxy: chosen modes of half spectra, then a tail: [re, im, re, im, ... | tail] for every member.

Mode j of a result is the one at places[j] of a half spectrum, flat; a place past its end gives 0. Words are moved, bit
for bit. `size` is 2 len(places) + len(tail): how long a result is.
"""

import numpy as np

from dashi.errors import ShapeError
from dashi.kernels.abi import Binding, Call, Case, Kernel, Operand, Plan, Scalar
from dashi.kernels.spectral._modes import MODES, shader, spread
from dashi.types import Cost, HostArray, Shape


def require_size(held: int, tail: int, size: int) -> None:
    if size != 2 * held + tail:
        raise ShapeError(
            f"kernel 'modes_to_proxy': {held} modes and a tail of {tail} make {2 * held + tail} numbers, not {size}.",
            "pass size = 2 len(places) + tail.shape[1].",
        )


def reference(x: HostArray, places: HostArray, tail: HostArray, size: int) -> HostArray:
    require_size(places.size, tail.shape[1], size)
    plane = x.shape[1] * x.shape[2]
    flat = np.concatenate([x.reshape(len(x), plane, 2), np.zeros((len(x), 1, 2), x.dtype)], axis=1)
    chosen = flat[:, np.minimum(places.astype(np.int64), plane)]
    return np.concatenate([chosen.reshape(len(x), 2 * places.size), tail], axis=1)


def plan(call: Call) -> Plan:
    held, tail, size = call.dims["held"], call.dims["tail"], int(call.scalars["size"])
    require_size(held, tail, size)
    push = {"plane": call.dims["n"] * call.dims["modes"], "held": held, "tail_size": tail, "size": size}
    return spread(call, ("x", "places", "tail", "result"), call.dims["members"] * size, push)


def cost(call: Call) -> Cost:
    size = call.size("result")
    return Cost(bytes=2 * size * call.dtype.size + 2 * size, dispatches=int(size > 0))


def case(shape: Shape, held: int, tail: int, beyond: int = 0) -> Case:
    plane = shape[1] * shape[2]

    def places(rng: np.random.Generator, wanted: Shape) -> HostArray:
        return rng.integers(0, plane + beyond, wanted).astype(np.uint32)

    return Case(
        {"x": shape, "places": (held,), "tail": (shape[0], tail)}, {"size": 2 * held + tail}, {"places": places}
    )


KERNEL = Kernel(
    summary="chosen modes of half spectra and a tail, as compact states",
    inputs=(
        Operand("x", shape=MODES),
        Operand("places", "u32", ("held",)),
        Operand("tail", shape=("members", "tail")),
    ),
    outputs=(Operand("result", shape=("members", "size")),),
    shaders={
        "main": shader(
            Binding("x", "W"),
            Binding("places", "u32"),
            Binding("tail", "W"),
            Binding("result", "W", "write"),
            push=tuple(Scalar(name, "u32") for name in ("plane", "held", "tail_size", "size")),
        )
    },
    plan=plan,
    reference=reference,
    cost=cost,
    cases=(
        case((1, 1, 1, 2), 1, 0), case((2, 8, 5, 2), 7, 4), case((3, 6, 4, 2), 0, 2),
        case((2, 8, 5, 2), 9, 1, beyond=5), case((0, 4, 3, 2), 3, 4), case((5, 64, 33, 2), 686, 4),
    ),
    bench=(case((16, 128, 65, 2), 686, 4),),
    scalars=(Scalar("size", "u32", doc="numbers of a result"),),
)  # fmt: skip
