"""top_k: the k largest (or smallest) keys, in order, and where they were; see `dashi.kernels.sort._order`.

Of equal keys the first ones are taken. NaN is never larger or smaller than a number: it is taken when numbers run out.
All keys are sorted, so k costs nothing.
"""

from dashi.errors import ShapeError
from dashi.kernels._radix_passes import LANES, TUNINGS, Passes, pass_cost, pass_count, prefer, shaders
from dashi.kernels._work import LOOP_PUSH, loop_plan
from dashi.kernels.abi import Binding, Call, Case, Kernel, Operand, Plan, Scalar, Shader
from dashi.kernels.sort._order import KEYS, require_direction, sorted_keys, sorted_places
from dashi.types import Cost, HostArray


def require_enough(n: int, k: int) -> None:
    """No more keys are taken than there are."""
    if k > n:
        raise ShapeError(f"kernel 'top_k': {k} of {n} keys are asked for.", f"pass a k of {n} at most.")


def reference(keys: HostArray, k: int, largest: int) -> tuple[HostArray, HostArray]:
    require_enough(keys.size, k)
    places = sorted_places(keys, require_direction("top_k", largest, "largest"))[:k]
    return sorted_keys(keys, places), places


def plan(call: Call) -> Plan:
    largest = require_direction("top_k", call.scalars["largest"], "largest")
    n, k = call.dims["n"], call.dims["k"]
    require_enough(n, k)
    if k == 0:
        return Plan(())
    count = pass_count(call.dtype)
    passes = Passes(call, n, largest, payload=1)
    keys = ("keys", *("first", "second") * (count // 2))
    # The first pass numbers the keys itself: what it is bound to is not read.
    numbers = ("counts", *("first_numbers", "second_numbers") * (count // 2))
    sorting = (
        d for i in range(count) for d in passes.dispatches(i, keys[i], keys[i + 1], numbers[i : i + 2], numbered=i == 0)
    )
    take = loop_plan(call, k, (keys[-1], numbers[-1], "result", "places"), {}, shader="take")
    scratch = dict.fromkeys(keys[1:3], ("T", n)) | dict.fromkeys(numbers[1:3], ("u32", n))
    return Plan((*sorting, *take.dispatches), {**passes.scratch, **scratch})


def cost(call: Call) -> Cost:
    if call.dims["k"] == 0:
        return Cost()
    taken = 2 * call.dims["k"] * (call.dtype.size + 4)
    return pass_cost(call.dtype, call.dims["n"], payload=1) + Cost(bytes=taken, dispatches=1)


def case(n: int, k: int, largest: int = 1) -> Case:
    return Case({"keys": (n,)}, {"k": k, "largest": largest})


KERNEL = Kernel(
    summary="the k largest keys in order and their places, the first of equal ones, NaN after all numbers",
    inputs=(Operand("keys", shape=("n",)),),
    outputs=(Operand("result", shape=("k",)), Operand("places", "u32", ("k",))),
    scalars=(
        Scalar("k", "u32", doc="how many"),
        Scalar("largest", "u32", 1, "1: the largest, the largest first; 0: the smallest"),
    ),
    shaders={
        **shaders(payload=True),
        "take": Shader(
            (
                Binding("keys", "W"),
                Binding("numbers", "u32"),
                Binding("result", "W", "write"),
                Binding("places", "u32", "write"),
            ),
            LOOP_PUSH,
            local=(LANES, 1, 1),
            file="take.comp",
        ),
    },
    plan=plan,
    reference=reference,
    cost=cost,
    cases=(case(300, 7), case(1, 1), case(0, 0), case(40, 0), case(5, 5, 0), case(1500, 1400), case(4000, 3, 0)),
    bench=(case(1 << 20, 128), case(1 << 24, 128)),
    dtypes=KEYS,
    tunings=TUNINGS,
    prefer=prefer,
    aliases=("topk",),
)
