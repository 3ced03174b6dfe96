"""fold_run_sums: the levels of gemv's sums above the runs of 64, result[j] = tree64 over r of sums[r, j].

What comes in are the sums of `gemv_run_sums`, of all blocks of rows in their order; they are taken as they are.
"""

from dashi.errors import LimitError
from dashi.kernels._work import LOCAL, LOOP_PUSH, RUN, loop_plan
from dashi.kernels.abi import Binding, Call, Case, Kernel, Operand, Plan, Scalar, Shader
from dashi.kernels.linear._run_sums import random_sums
from dashi.kernels.portable import canon, sum64
from dashi.types import Cost, HostArray


def reference(sums: HostArray) -> HostArray:
    return canon(sum64(sums, axis=0))


def plan(call: Call) -> Plan:
    runs, n = call.dims["runs"], call.dims["n"]
    if runs > RUN**4:
        raise LimitError(f"kernel 'fold_run_sums': {runs} runs are more than {RUN**4}.", "cut the matrix in two.")
    return loop_plan(call, n, ("sums", "result"), {"runs": runs}, trips=runs)


def cost(call: Call) -> Cost:
    runs, n = call.dims["runs"], call.dims["n"]
    return Cost(runs * n, (runs + 1) * n * call.dtype.size, int(n > 0))


def case(runs: int, n: int) -> Case:
    return Case({"sums": (runs, n)}, fill={"sums": random_sums})


KERNEL = Kernel(
    summary="sums of runs of 64 rows, of all blocks of a matrix, added up as gemv does",
    inputs=(Operand("sums", shape=("runs", "n")),),
    outputs=(Operand("result", shape=("n",)),),
    shaders={
        "main": Shader(
            (Binding("sums"), Binding("result", access="write")),
            (*LOOP_PUSH, Scalar("runs", "u32")),
            local=(LOCAL, 1, 1),
            includes=("portable.glsl",),
        )
    },
    plan=plan,
    reference=reference,
    cost=cost,
    cases=tuple(case(*size) for size in ((0, 3), (1, 5), (63, 4), (64, 3), (65, 33), (4096, 2), (4097, 3), (2, 1000))),
    bench=(case(128, 8192),),
)
