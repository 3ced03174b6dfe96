"""proxy_to_modes: the half spectra of compact states, 0 where nothing is held: the inverse of `modes_to_proxy`.

codes says what each mode of the half spectrum is: 0 nothing, 2 j + 2 the pair z[2 j], z[2 j + 1], and 2 j + 3 its
conjugate (of modes in the first column both of a pair are stored). A code past the end of z is nothing.
"""

import numpy as np

from dashi.kernels.abi import Binding, Call, Case, Kernel, Operand, Plan, Scalar
from dashi.kernels.portable import canon
from dashi.kernels.spectral._modes import MODES, shader, spread
from dashi.types import Cost, HostArray, Shape


def reference(z: HostArray, codes: HostArray) -> HostArray:
    values = canon(z)
    numbers = codes.astype(np.int64)
    first = numbers // 2 * 2 - 2
    held = (numbers >= 2) & (first + 1 < z.shape[1])
    at = np.where(held, first, 0)
    if not z.shape[1]:
        return np.zeros((len(z), *codes.shape, 2), z.dtype)
    wide = np.concatenate([values, np.zeros((len(z), 1), z.dtype)], axis=1)
    real = np.where(held, wide[:, at], z.dtype.type(0))
    imaginary = np.where(held, wide[:, at + 1], z.dtype.type(0))
    return canon(np.stack([real, np.where(numbers % 2 == 1, -imaginary, imaginary)], axis=-1))


def plan(call: Call) -> Plan:
    plane = call.dims["n"] * call.dims["modes"]
    push = {"plane": plane, "size": call.dims["size"]}
    return spread(call, ("z", "codes", "result"), call.dims["members"] * plane, push)


def cost(call: Call) -> Cost:
    return Cost(bytes=call.bytes("z", "result") + 4 * call.size("codes"), dispatches=int(call.size("result") > 0))


def case(members: int, size: int, table: Shape, beyond: int = 0) -> Case:
    def codes(rng: np.random.Generator, wanted: Shape) -> HostArray:
        return rng.integers(0, size + 2 + beyond, wanted).astype(np.uint32)

    return Case({"z": (members, size), "codes": table}, fill={"codes": codes})


KERNEL = Kernel(
    summary="half spectra of compact states",
    inputs=(Operand("z", shape=("members", "size")), Operand("codes", "u32", ("n", "modes"))),
    outputs=(Operand("result", shape=MODES),),
    shaders={
        "main": shader(
            Binding("z"),
            Binding("codes", "u32"),
            Binding("result", "P", "write"),
            push=(Scalar("plane", "u32"), Scalar("size", "u32")),
        )
    },
    plan=plan,
    reference=reference,
    cost=cost,
    cases=(
        case(1, 2, (1, 1)), case(2, 18, (8, 5)), case(3, 7, (6, 4), beyond=9), case(2, 0, (4, 3), beyond=3),
        case(0, 4, (4, 3)), case(4, 1376, (64, 33)),
    ),
    bench=(case(16, 1376, (128, 65)),),
)  # fmt: skip
