"""pq_lut_build: table[j, c] = squared distance between part j of a query and code c of codebook j, in canonical order.

A product quantiser cuts vectors into m parts of length d and names each part by the nearest of k codes (H. Jegou,
M. Douze, C. Schmid, doi 10.1109/TPAMI.2010.57, section III). With this table the distance of the query to a coded
vector is a sum of m entries: pq_distance_argmin.
"""

from dashi.kernels._trits import sum64_trips
from dashi.kernels._work import LOCAL, LOOP_PUSH, loop_plan
from dashi.kernels.abi import Binding, Call, Case, Kernel, Operand, Plan, Scalar, Shader, StreamDefaults
from dashi.kernels.portable import canon, mul, sum64
from dashi.types import Cost, HostArray


def reference(query: HostArray, codebooks: HostArray) -> HostArray:
    apart = canon(query)[:, None, :] - canon(codebooks)
    return canon(sum64(mul(apart, apart)))


def plan(call: Call) -> Plan:
    m, k, d = (call.dims[name] for name in "mkd")
    return loop_plan(call, m * k, ("query", "codebooks", "result"), {"k": k, "d": d}, trips=sum64_trips(d))


def cost(call: Call) -> Cost:
    m, k, d = (call.dims[name] for name in "mkd")
    moved = (m * d + m * k * d + m * k) * call.dtype.size
    return Cost(flops=3 * m * k * d, bytes=moved, dispatches=int(m * k > 0))


def case(m: int, k: int, d: int) -> Case:
    return Case({"query": (m, d), "codebooks": (m, k, d)})


KERNEL = Kernel(
    summary="squared distances of a query's parts (m, d) to the codes (m, k, d): a table (m, k)",
    inputs=(Operand("query", shape=("m", "d")), Operand("codebooks", shape=("m", "k", "d"))),
    outputs=(Operand("result", shape=("m", "k")),),
    shaders={
        "main": Shader(
            (Binding("query"), Binding("codebooks"), Binding("result", access="write")),
            (*LOOP_PUSH, Scalar("k", "u32"), Scalar("d", "u32")),
            local=(LOCAL, 1, 1),
            includes=("portable.glsl",),
        )
    },
    plan=plan,
    reference=reference,
    cost=cost,
    stream=StreamDefaults(io_class="PQ"),
    cases=(
        case(1, 1, 1),
        case(8, 16, 8),
        case(3, 5, 0),
        case(0, 4, 4),
        case(2, 7, 65),
        case(1, 3, 4097),
        case(4, 256, 4),
    ),
    bench=(case(16, 256, 8), case(1024, 256, 8)),
)
