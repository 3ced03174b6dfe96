"""Scatters that join the values of a place in the order in which they came, by tree64.

A stable radix sort of the targets brings the values of a segment together, bisection finds where segments begin, and
every level of tree64 is one dispatch over all segments, however long they are. Indices past the end of base are
ignored. Sums begin from 0, products from 1, maxima and minima from an infinity; NaN wins over both.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, Literal

import numpy as np

from dashi.kernels._radix_passes import DIGIT_BITS, TUNINGS, Passes, pass_cost, prefer, shaders
from dashi.kernels._segments import segment_joins, segments
from dashi.kernels._work import LOOP_PUSH, RUN, ceil_div, loop_plan
from dashi.kernels.abi import Binding, Call, Dispatch, Kernel, Plan, Scalar, Shader
from dashi.kernels.index._scattering import CASES, INPUTS, LOCAL, OUTPUTS, case
from dashi.kernels.portable import canon, mul
from dashi.types import DTYPES, Cost, HostArray

Join = Literal["add", "mul", "max", "min"]
KEY: Final = DTYPES["u32"]
_JOINS: Final[dict[Join, tuple[Callable[..., Any], float]]] = {
    "add": (np.add, 0.0),
    "mul": (mul, 1.0),
    "max": (np.maximum, -np.inf),
    "min": (np.minimum, np.inf),
}
"""By what two values are joined, and what they are joined to first."""


def pass_number(m: int) -> int:
    """Passes that sort keys from 0 to m."""
    return ceil_div(m.bit_length(), DIGIT_BITS)


def level_steps(n: int) -> list[int]:
    """How far the addends of every level after the first lie apart, where a segment may have all n values."""
    steps: list[int] = []
    while (step := RUN ** (len(steps) + 1)) < n:
        steps.append(step)
    return steps


def sorting(call: Call, passes: Passes) -> tuple[Dispatch, ...]:
    """From targets in `index` to sorted ones in "keys", and their places in "places"."""
    m, count = call.dims["m"], pass_number(call.dims["m"])
    # Buffers alternate so that the last pass writes to these two.
    keys = ("keys", "other_keys") if count % 2 == 0 else ("other_keys", "keys")
    places = ("places", "other_places") if count % 2 == 0 else ("other_places", "places")
    clamp = loop_plan(call, passes.n, ("index", keys[0]), {"m": m}, shader="clamp").dispatches
    # The first pass numbers the keys itself: the places that it is bound to are not read.
    return clamp + tuple(
        d
        for i in range(count)
        for d in passes.dispatches(i, keys[i % 2], keys[1 - i % 2], (places[i % 2], places[1 - i % 2]), numbered=i == 0)
    )


def summing(call: Call) -> tuple[Dispatch, ...]:
    """The levels of tree64, from sorted targets and their places to `sums`."""
    m, n = call.dims["m"], call.dims["n"]
    lists = ("keys", "begins", "places", "values", "sums")
    levels = loop_plan(call, n, lists, {"m": m}, shader="runs", trips=RUN).dispatches
    for step in level_steps(n):
        numbers = {"m": m, "step": step, "span": min(RUN * step, 1 << 32) - 1}
        levels += loop_plan(call, n // step, ("keys", "begins", "sums"), numbers, shader="levels", trips=RUN).dispatches
    return levels


def plan(call: Call) -> Plan:
    m, n = call.dims["m"], call.dims["n"]
    if m == 0:
        return Plan(())
    # Bisection of n places takes as many steps as n has bits.
    begins = loop_plan(call, m + 1, ("keys", "begins"), {"n": n}, shader="begins", trips=n.bit_length()).dispatches
    add = loop_plan(call, m, ("base", "begins", "sums", "result"), {}, shader="add").dispatches
    scratch = {"keys": ("u32", max(n, 1)), "begins": ("u32", m + 1), "sums": ("T", max(n, 1))}
    if n == 0:
        return Plan((*begins, *add), scratch)
    passes = Passes(call, n, descending=False, payload=1, key=KEY)
    scratch |= dict.fromkeys(("other_keys", "places", "other_places"), ("u32", n))
    return Plan((*sorting(call, passes), *begins, *summing(call), *add), {**passes.scratch, **scratch})


def cost(call: Call) -> Cost:
    """The targets are clamped and sorted, begins written and read; a value, its place and its target are read once.
    Levels after the first move a 64th of that or less."""
    m, n = call.dims["m"], call.dims["n"]
    if m == 0:
        return Cost()
    size = call.dtype.size
    ends = Cost(flops=m, bytes=m * (2 * size + 8), dispatches=2)
    if n == 0:
        return ends
    levels = 1 + len(level_steps(n))
    moved = Cost(flops=n, bytes=n * (8 + 4 + 4 + size), dispatches=1 + levels)
    return pass_cost(KEY, n, 1, pass_number(m)) + moved + ends


KEYS, BEGINS, SUMS = Binding("keys", "u32"), Binding("begins", "u32"), Binding("sums")
M = Scalar("m", "u32")
PORTABLE = ("portable.glsl",)


_ADD_CASES: Final = (
    *CASES, case(1, 64), case(1, 65), case(1, 4096), case(1, 4097), case(3, 9000, reach=5), case(2, 262200, 1),
)  # fmt: skip
"""Segments of one to four levels; the lengths 64 and 4096 exactly, and one more."""
_CASES: Final = (
    case(1, 1), case(63, 65), case(257, 600), case(1, 64), case(1, 65), case(3, 4300, reach=2), case(65, 0),
    case(0, 65, reach=8), case(100, 257, reach=1 << 32),
)  # fmt: skip
"""What the others share with the sum is tested there."""


def sorted_scatter(join: Join, summary: str) -> Kernel:
    """The kernel of one way to join."""
    function, start = _JOINS[join]
    prelude = "" if join == "add" else f"#define JOIN_{join.upper()}\n"

    def reference(base: HostArray, index: HostArray, values: HostArray) -> HostArray:
        order, offsets, _ = segments(index, base.size)
        ends = offsets.astype("i8")
        with np.errstate(all="ignore"):
            joined = segment_joins(canon(values)[order], ends[:-1], ends[1:] - ends[:-1], function, start)
            return canon(function(canon(base), joined))

    return Kernel(
        summary=summary,
        inputs=INPUTS,
        outputs=OUTPUTS,
        shaders={
            **shaders(payload=True, key="u32"),
            "clamp": Shader(
                (Binding("index", "u32"), Binding("keys", "u32", "write")),
                (*LOOP_PUSH, M),
                local=(LOCAL, 1, 1),
                file="clamp.comp",
            ),
            "begins": Shader(
                (KEYS, Binding("begins", "u32", "write")),
                (*LOOP_PUSH, Scalar("n", "u32")),
                local=(LOCAL, 1, 1),
                file="begins.comp",
            ),
            "runs": Shader(
                (KEYS, BEGINS, Binding("places", "u32"), Binding("values"), Binding("sums", access="write")),
                (*LOOP_PUSH, M),
                local=(LOCAL, 1, 1),
                file="runs.comp",
                includes=PORTABLE,
                prelude=prelude,
            ),
            "levels": Shader(
                (KEYS, BEGINS, Binding("sums", access="readwrite")),
                (*LOOP_PUSH, M, Scalar("step", "u32"), Scalar("span", "u32")),
                local=(LOCAL, 1, 1),
                file="levels.comp",
                includes=PORTABLE,
                prelude=prelude,
            ),
            "add": Shader(
                (Binding("base"), BEGINS, SUMS, Binding("result", access="write")),
                LOOP_PUSH,
                local=(LOCAL, 1, 1),
                file="add.comp",
                includes=PORTABLE,
                prelude=prelude,
            ),
        },
        plan=plan,
        reference=reference,
        cost=cost,
        # Segments of one to four levels; the lengths 64 and 4096 exactly, and one more.
        cases=_ADD_CASES if join == "add" else _CASES,
        bench=(case(1 << 20, 1 << 24), case(64, 1 << 24)),
        tunings=TUNINGS,
        prefer=prefer,
    )
