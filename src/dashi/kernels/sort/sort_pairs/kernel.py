"""sort_pairs: keys in order, and with each of them its row of values; see `dashi.kernels.sort._order`.

Values are words of 32 bits, moved as they are: one for every key, or two for values of 64 bits, or any number. An array
of another type is such words by `array.view(np.uint32).reshape(n, -1)`, without a copy.
"""

import numpy as np

from dashi.errors import ShapeError
from dashi.kernels._radix_passes import TUNINGS, Passes, pass_cost, pass_count, prefer, shaders
from dashi.kernels.abi import Call, Case, Kernel, Operand, Plan
from dashi.kernels.sort._order import DESCENDING, KEYS, require_direction, sorted_keys, sorted_places
from dashi.kernels.sort._sort_cases import sort_cases
from dashi.types import Cost, HostArray, Shape


def require_words(words: int) -> None:
    """A row holds at least one word."""
    if words == 0:
        raise ShapeError(
            "kernel 'sort_pairs': the rows of values are empty.", "pass values of shape (n, 1) or more, or use `sort`."
        )


def reference(keys: HostArray, values: HostArray, descending: int) -> tuple[HostArray, HostArray]:
    require_words(values.shape[1])
    places = sorted_places(keys, require_direction("sort_pairs", descending))
    return sorted_keys(keys, places), values[places]


def plan(call: Call) -> Plan:
    descending = require_direction("sort_pairs", call.scalars["descending"])
    n, words = call.dims["n"], call.dims["words"]
    require_words(words)
    if n == 0:
        return Plan(())
    turns = pass_count(call.dtype) // 2
    passes = Passes(call, n, descending, payload=words)
    keys = ("keys", *("other_keys", "result") * turns)
    rows = ("values", *("other_values", "moved") * turns)
    dispatches = (d for i in range(2 * turns) for d in passes.dispatches(i, keys[i], keys[i + 1], rows[i : i + 2]))
    return Plan(tuple(dispatches), {**passes.scratch, "other_keys": ("T", n), "other_values": ("u32", n * words)})


def cost(call: Call) -> Cost:
    return pass_cost(call.dtype, call.dims["n"], call.dims["words"])


def numbered(rng: np.random.Generator, shape: Shape) -> HostArray:
    """Every word another: what belongs to a key can be told."""
    return np.arange(shape[0] * shape[1], dtype=np.uint32).reshape(shape)


FILL = {"values": numbered}
KERNEL = Kernel(
    summary="the keys in order, NaN last, -0 and +0 equal, and their rows of words with them; stable",
    inputs=(Operand("keys", shape=("n",)), Operand("values", "u32", ("n", "words"))),
    outputs=(Operand("result", shape=("n",)), Operand("moved", "u32", ("n", "words"))),
    scalars=(DESCENDING,),
    shaders=shaders(payload=True),
    plan=plan,
    reference=reference,
    cost=cost,
    cases=sort_cases(lambda n: {"keys": (n,), "values": (n, 1 + n % 2)}, FILL),
    bench=tuple(
        Case({"keys": (1 << power,), "values": (1 << power, 1)}, {"descending": 0}, FILL) for power in (16, 20, 24)
    ),
    dtypes=KEYS,
    tunings=TUNINGS,
    prefer=prefer,
    aliases=("sort_by_key",),
)
