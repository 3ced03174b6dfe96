"""gemv_run_sums: the first level of gemv's sums, result[r, j] = sum over i of x[64 r + i] A[64 r + i, j], i < 64.

A matrix cut into blocks of rows, at multiples of 64, gives the sums of gemv in parts: `fold_run_sums` adds those of all
blocks up, with the bits of gemv. The sums are not flushed, as they are not between the levels of gemv; NaN is stored as
one pattern.
"""

import numpy as np

from dashi.kernels._work import LOCAL, LOOP_PUSH, RUN, ceil_div, loop_plan
from dashi.kernels.abi import Binding, Call, Case, Kernel, Operand, Plan, Scalar, Shader
from dashi.kernels.linear._run_sums import one_nan
from dashi.kernels.portable import canon, mul, sum64
from dashi.types import Cost, HostArray


def reference(x: HostArray, a: HostArray) -> HostArray:
    rows, columns = a.shape
    products = np.pad(mul(canon(x)[:, None], canon(a)), ((0, -rows % RUN), (0, 0)))
    return one_nan(sum64(products.reshape(-1, RUN, columns), axis=1))


def plan(call: Call) -> Plan:
    k, n = call.dims["k"], call.dims["n"]
    return loop_plan(call, ceil_div(k, RUN) * n, ("x", "A", "result"), {"k": k, "n": n}, trips=RUN)


def cost(call: Call) -> Cost:
    k, n = call.dims["k"], call.dims["n"]
    sums = ceil_div(k, RUN) * n
    return Cost(2 * k * n, (k * n + k + sums) * call.dtype.size, int(sums > 0))


def case(k: int, n: int) -> Case:
    return Case({"x": (k,), "A": (k, n)})


KERNEL = Kernel(
    summary="sums of every run of 64 rows of a vector times a matrix, as gemv adds them up",
    inputs=(Operand("x", shape=("k",)), Operand("A", shape=("k", "n"))),
    outputs=(Operand("result", shape=("k/64", "n")),),
    shaders={
        "main": Shader(
            (Binding("x"), Binding("A"), Binding("result", access="write")),
            (*LOOP_PUSH, Scalar("k", "u32"), Scalar("n", "u32")),
            local=(LOCAL, 1, 1),
            includes=("portable.glsl",),
        )
    },
    plan=plan,
    reference=reference,
    cost=cost,
    cases=tuple(
        case(*size) for size in ((0, 3), (1, 1), (63, 31), (64, 32), (65, 33), (1000, 5), (4097, 3), (70, 820))
    ),
    bench=(case(8192, 8192),),
)
