"""gemm_scalar: result = a b with one result per invocation and no shared memory, in the order tree64.

The bits are those of gemm_tiled. It is the plainest product: for drivers that translate to another interface and for
small matrices.
"""

from collections.abc import Iterator, Mapping
from typing import Final

from dashi.kernels._work import ceil_div, split_work
from dashi.kernels.abi import Binding, Call, Case, Dispatch, Kernel, Number, Operand, Plan, Scalar, Shader
from dashi.kernels.linear import _tiles as tiles
from dashi.kernels.portable import canon, contract
from dashi.types import Cost, HostArray

LOCAL: Final = 128
NUMBERS: Final = ("n", "k", "begin", "end", "first_result", "results", "stride")


def multiply(call: Call, reach: tuple[int, int], target: str, flags: Mapping[str, Number]) -> Iterator[Dispatch]:
    depth, results = reach[1] - reach[0], call.size("result")
    trips = 1 + depth + ceil_div(depth, tiles.RUN)
    numbers = {"n": call.dims["n"], "k": call.dims["k"], "begin": reach[0], "end": reach[1], **flags}
    for share in split_work(ceil_div(results, LOCAL), trips, call.limits):
        place = {
            "first_result": share.first * LOCAL,
            "results": min(results, share.beyond * LOCAL),
            "stride": share.groups * LOCAL,
        }
        yield Dispatch("main", ("a", "b", target), {**numbers, **place}, (share.groups, 1, 1), share.trips)


def plan(call: Call) -> Plan:
    return tiles.in_levels(call, multiply)


def reference(a: HostArray, b: HostArray) -> HostArray:
    return canon(contract(a, b))


def cost(call: Call) -> Cost:
    return tiles.cost(call, len(plan(call).dispatches))


SIZES: Final = (
    (1, 1, 1), (2, 0, 3), (0, 4, 3), (1, 64, 1), (3, 5, 7), (1, 300, 70), (65, 63, 66), (5, 4096, 3), (3, 4097, 5),
    (2, 9000, 3),
)  # fmt: skip
"""(m, k, n)"""

KERNEL = Kernel(
    summary="matrix product a b, one result per invocation",
    inputs=(Operand("a", shape=("m", "k")), Operand("b", shape=("k", "n"))),
    outputs=(Operand("result", shape=("m", "n")),),
    shaders={
        "main": Shader(
            (Binding("a"), Binding("b"), Binding("result", access="readwrite")),
            tuple(Scalar(name, "u32") for name in NUMBERS) + tiles.FLAGS,
            local=(LOCAL, 1, 1),
            includes=("portable.glsl",),
        ),
        "fold": tiles.FOLD,
    },
    plan=plan,
    reference=reference,
    cost=cost,
    cases=tuple(Case({"a": (m, k), "b": (k, n)}) for m, k, n in SIZES),
    bench=(Case({"a": (1024, 1024), "b": (1024, 1024)}),),
)
