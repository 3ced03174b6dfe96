"""Steps z' = z + dt (z L + Q(z, z) + f) with a sparse L and a list of triads Q: reference, operands and cases of triad,
quadratic_step and quadratic_rollout, which has the same lists side by side (dashi.kernels._interleaved_lists).

Output k has two lists. Column k of L holds the entries e from offsets[k] up to offsets[k + 1]: values[e] in row
sources[e]. Its triads are those from ends[k] up to ends[k + 1]: triad e adds weights[e] z[i] z[j] with i, j = pairs[e];
z[i] z[j] is rounded first, then its product with the weight. Each list is summed in the order in which it is stored,
tree64; then rate = (linear + quadratic) + f and z' = z + dt rate, each rounded. With every entry of L stored, in rising
order of rows, z L has the bits of gemv.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from dashi.errors import InputError
from dashi.kernels._interleaved_lists import interleave
from dashi.kernels._lists import LinearForm, Lists, prepare_sums
from dashi.kernels.abi import Binding, Call, Case, Fill, Number, Operand, Scalar
from dashi.kernels.portable import canon, mul
from dashi.kernels.portable._bits import Floats
from dashi.types import HostArray, Shape


def triad_inputs(lists: str) -> tuple[Operand, ...]:
    """The operands of Q, with what describes its lists: ends or heads_triads."""
    return (
        Operand("weights", shape=("triads",)),
        Operand("pairs", "u32", ("triads", 2)),
        Operand(lists, "u32", ("lists",)),
    )


def inputs(lists: tuple[str, str]) -> tuple[Operand, ...]:
    """All operands, with what describes the lists of L and of Q."""
    return (
        Operand("z", shape=("m", "d")),
        Operand("values", shape=("entries",)),
        Operand("sources", "u32", ("entries",)),
        Operand(lists[0], "u32", ("columns",)),
        *triad_inputs(lists[1]),
        Operand("force", shape=("d",)),
    )


def bindings(lists: tuple[str, str]) -> tuple[Binding, ...]:
    """The buffers of the shaders, the result after the operands."""
    words = {"sources", "pairs", *lists}
    read = (Binding(o.name, "u32" if o.name in words else "T") for o in inputs(lists))
    return (*read, Binding("result", access="write"))


def operands(lists: tuple[str, str]) -> tuple[str, ...]:
    """The names of the operands and of the result."""
    return (*(o.name for o in inputs(lists)), "result")


SCALARS: Final = (
    Scalar("dt", doc="length of a step"),
    Scalar("longest_linear", "u32", 4096, "no column of L has more entries"),
    Scalar("longest_triads", "u32", 4096, "no output has more triads"),
)
COUNTS: Final = ("width", "entries", "triads", "longest_linear", "longest_triads")
PUSH: Final = (*(Scalar(name, "u32") for name in COUNTS), Scalar("dt"))


def require_length(kernel: str, scalars: Mapping[str, Number]) -> None:
    """Refuses a step whose length is NaN."""
    if scalars["dt"] != scalars["dt"]:
        raise InputError(f"kernel {kernel!r}: dt is not a number.", "pass the length of a step.")


def numbers(call: Call) -> dict[str, Number]:
    """The values of `PUSH`."""
    sizes = {"width": call.dims["d"], "entries": call.dims["entries"], "triads": call.dims["triads"]}
    return {**sizes, **{s.name: call.scalars[s.name] for s in SCALARS}}


class QuadraticForm:
    """Q(z, z) on the host, its lists prepared once."""

    def __init__(self, weights: HostArray, pairs: HostArray, lists: Lists, width: int) -> None:
        self._sums = prepare_sums(lists)
        places = pairs.astype(np.int64)[lists.order]
        self._outside = (places[:, 0] >= width) | (places[:, 1] >= width)
        self._i, self._j = (np.where(self._outside, 0, places[:, side]) for side in (0, 1))
        self._weights = canon(weights)[lists.order]

    def __call__(self, state: Floats) -> Floats:
        """The form of canonical states."""
        nan = np.asarray(np.nan, state.dtype)
        if state.shape[1] == 0:
            return canon(self._sums(np.full((len(state), len(self._weights)), nan)))
        products = mul(self._weights, canon(mul(state[:, self._i], state[:, self._j])))
        return canon(self._sums(np.where(self._outside, nan, products)))


def advance(
    z: HostArray, linear: LinearForm, quadratic: QuadraticForm, force: HostArray, steps: int, length: Number
) -> Floats:
    """The states after `steps` steps of `length`."""
    dt, driven = canon(np.asarray(length, z.dtype)), canon(force)
    state = canon(z)
    with np.errstate(all="ignore"):
        for _ in range(steps):
            rate = canon((linear(state) + quadratic(state)) + driven)
            state = canon(state + mul(dt, rate))
    return state


def spread(d: int, each: int, hot: int = 0) -> npt.NDArray[Any]:
    """Lengths of d lists: from 2 each down to 0 and again, the middle one longer by `hot`."""
    counts = np.resize(np.arange(2 * each + 1)[::-1], d)
    counts[d // 2 : d // 2 + 1] += hot
    return counts


def case(
    m: int,
    d: int,
    linear: int,
    each: int,
    scalars: Mapping[str, Number],
    hot: int = 0,
    reach: int = 0,
    short: int = 0,
    slabs: bool = False,
) -> Case:
    """About `linear` entries in every column of L and `each` triads for every output; lists are declared `short`er."""
    counts = {"columns": spread(d, linear), "triads": spread(d, each, hot)}
    ends = {name: np.concatenate([[0], np.cumsum(n)]).astype(np.uint32) for name, n in counts.items()}
    sizes = {name: int(n.sum()) for name, n in counts.items()}
    if slabs:
        moved_lists = {name: interleave(ends[name], np.zeros(sizes[name], np.uint8)) for name in counts}
        ends = {name: heads for name, (heads, _) in moved_lists.items()}
        sizes = {name: len(moved[0]) for name, (_, moved) in moved_lists.items()}

    def constant(values: npt.NDArray[np.uint32]) -> Fill:
        return lambda rng, shape: values

    def places(rng: np.random.Generator, shape: Shape) -> HostArray:
        return rng.integers(0, reach or max(1, d), shape, dtype=np.uint32)

    entries, count = sizes["columns"], sizes["triads"]
    first, second = ("heads", "heads_triads") if slabs else ("offsets", "ends")
    shapes: dict[str, Shape] = {"z": (m, d), "values": (entries,), "sources": (entries,), "weights": (count,)}
    more: dict[str, Shape] = {"pairs": (count, 2), "force": (d,)}
    lists: dict[str, Shape] = {first: ends["columns"].shape, second: ends["triads"].shape}
    longest = {
        "longest_linear": int(counts["columns"].max(initial=0)),
        "longest_triads": max(0, int(counts["triads"].max(initial=0)) - short),
    }
    return Case(
        {**shapes, **more, **lists},
        {"dt": 0.01, **scalars, **longest},
        {"sources": places, "pairs": places, first: constant(ends["columns"]), second: constant(ends["triads"])},
    )
