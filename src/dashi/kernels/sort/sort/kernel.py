"""sort: the keys in rising or falling order, bit for bit but for NaN; see `dashi.kernels.sort._order`."""

from dashi.kernels._radix_passes import TUNINGS, Passes, pass_cost, pass_count, prefer, shaders
from dashi.kernels.abi import Call, Case, Kernel, Operand, Plan
from dashi.kernels.sort._order import DESCENDING, KEYS, require_direction, sorted_keys, sorted_places
from dashi.kernels.sort._sort_cases import sort_cases
from dashi.types import Cost, HostArray


def reference(keys: HostArray, descending: int) -> HostArray:
    return sorted_keys(keys, sorted_places(keys, require_direction("sort", descending)))


def plan(call: Call) -> Plan:
    descending = require_direction("sort", call.scalars["descending"])
    n = call.dims["n"]
    if n == 0:
        return Plan(())
    passes = Passes(call, n, descending)
    places = ("keys", *("other", "result") * (pass_count(call.dtype) // 2))
    dispatches = (d for i in range(pass_count(call.dtype)) for d in passes.dispatches(i, places[i], places[i + 1]))
    return Plan(tuple(dispatches), {**passes.scratch, "other": ("T", n)})


def cost(call: Call) -> Cost:
    return pass_cost(call.dtype, call.dims["n"])


KERNEL = Kernel(
    summary="the keys in order, NaN last, -0 and +0 equal; stable",
    inputs=(Operand("keys", shape=("n",)),),
    outputs=(Operand("result", shape=("n",)),),
    scalars=(DESCENDING,),
    shaders=shaders(payload=False),
    plan=plan,
    reference=reference,
    cost=cost,
    cases=sort_cases(lambda n: {"keys": (n,)}, {}),
    bench=tuple(Case({"keys": (1 << power,)}, {"descending": 0}) for power in (16, 20, 24)),
    dtypes=KEYS,
    tunings=TUNINGS,
    prefer=prefer,
)
