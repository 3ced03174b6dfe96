"""pq_rank: how many supported sites lie before given positions; past the end: all of them."""

import numpy as np

from dashi.kernels._trits import SITES, all_set, one_site, random_trits, words_to_bits
from dashi.kernels._work import LOCAL, LOOP_PUSH, loop_plan
from dashi.kernels.abi import Binding, Call, Case, Fill, Kernel, Operand, Plan, Shader, StreamDefaults
from dashi.kernels.pq._planes import PLANES, plane_case, ranks
from dashi.types import Cost, HostArray, Shape

TABLES = (PLANES[0], *PLANES[2:])


def reference(support: HostArray, blocks: HostArray, supers: HostArray, positions: HostArray, *, n: int) -> HostArray:
    within = ranks(support, blocks, supers, n)
    flags = words_to_bits(support, n)
    after = np.concatenate([[0], within + flags])
    return after[np.minimum(positions.astype(np.int64), n)].astype(np.uint32)


def plan(call: Call) -> Plan:
    buffers = (*(o.name for o in TABLES), "positions", "result")
    return loop_plan(call, call.dims["m"], buffers, {"n": call.scalars["n"]}, trips=16)


def cost(call: Call) -> Cost:
    # A position, its result, a word of the plane and one of each table; the rest of a block is not always needed.
    m = call.dims["m"]
    return Cost(bytes=m * 5 * 4, dispatches=int(m > 0))


def case(n: int, m: int, fill: Fill) -> Case:
    """Positions everywhere, the last site, the end and far past it."""

    def positions(rng: np.random.Generator, shape: Shape) -> HostArray:
        chosen = rng.integers(0, n + 1, shape).astype(np.uint32)
        chosen[:4] = (n, 0, max(n, 1) - 1, 0xFFFFFFFF)[:m]
        return chosen

    made = plane_case(n, fill, extra={"positions": ((m,), positions)})
    return Case({k: v for k, v in made.shapes.items() if k != "signs"}, made.scalars, made.fill)


KERNEL = Kernel(
    summary="the number of supported sites before each position, from the support plane and its tables",
    inputs=(*TABLES, Operand("positions", "u32", ("m",))),
    outputs=(Operand("result", "u32", ("m",)),),
    scalars=(SITES,),
    shaders={
        "main": Shader(
            (*(Binding(o.name, "u32") for o in TABLES), Binding("positions", "u32"), Binding("result", "u32", "write")),
            (*LOOP_PUSH, SITES),
            local=(LOCAL, 1, 1),
        )
    },
    plan=plan,
    reference=reference,
    cost=cost,
    stream=StreamDefaults(io_class="PQ"),
    cases=(
        case(0, 3, random_trits), case(1, 4, all_set), case(31, 64, random_trits), case(33, 65, one_site),
        case(512, 600, all_set), case(513, 600, random_trits), case(16384, 1000, all_set),
        case(16385, 1000, random_trits), case(70000, 5000, random_trits), case(70000, 0, random_trits),
    ),
    bench=(case(1 << 26, 1 << 22, random_trits),),
    dtypes=("u32",),
)  # fmt: skip
