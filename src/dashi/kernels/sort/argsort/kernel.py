"""argsort: the places of the keys in rising or falling order; see `dashi.kernels.sort._order`."""

from dashi.kernels._radix_passes import TUNINGS, Passes, pass_cost, pass_count, prefer, shaders
from dashi.kernels.abi import Call, Case, Kernel, Operand, Plan
from dashi.kernels.sort._order import DESCENDING, KEYS, require_direction, sorted_places
from dashi.kernels.sort._sort_cases import sort_cases
from dashi.types import Cost, HostArray


def reference(keys: HostArray, descending: int) -> HostArray:
    return sorted_places(keys, require_direction("argsort", descending))


def plan(call: Call) -> Plan:
    descending = require_direction("argsort", call.scalars["descending"])
    n = call.dims["n"]
    if n == 0:
        return Plan(())
    count = pass_count(call.dtype)
    passes = Passes(call, n, descending, payload=1)
    keys = ("keys", *("first", "second") * (count // 2))
    # The first pass numbers the keys itself: what it is bound to is not read. The last leaves the keys behind.
    places = ("counts", *("other", "result") * (count // 2))
    dispatches = (
        d
        for i in range(count)
        for d in passes.dispatches(
            i, keys[i], keys[i + 1], places[i : i + 2], numbered=i == 0, writes_keys=i < count - 1
        )
    )
    scratch = {"first": ("T", n), "second": ("T", n), "other": ("u32", n)}
    return Plan(tuple(dispatches), {**passes.scratch, **scratch})


def cost(call: Call) -> Cost:
    return pass_cost(call.dtype, call.dims["n"], payload=1)


KERNEL = Kernel(
    summary="the places of the keys in order, NaN last, -0 and +0 equal; stable",
    inputs=(Operand("keys", shape=("n",)),),
    outputs=(Operand("result", "u32", ("n",)),),
    scalars=(DESCENDING,),
    shaders=shaders(payload=True),
    plan=plan,
    reference=reference,
    cost=cost,
    cases=sort_cases(lambda n: {"keys": (n,)}, {}),
    bench=tuple(Case({"keys": (1 << power,)}, {"descending": 0}) for power in (16, 20, 24)),
    dtypes=KEYS,
    tunings=TUNINGS,
    prefer=prefer,
)
