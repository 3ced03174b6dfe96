"""Steps z' = psi(z A + b) with a sparse A stored by columns: reference, operands and cases of csr_step and csr_rollout.

Column j of A holds the entries e from offsets[j] up to offsets[j + 1]: values[e] in row sources[e], so each output
gathers. Their products with z are added in the order in which they are stored, tree64: with every entry of A stored, in
rising order of rows, the bits are those of gemv, and of spmv_csr on the transpose. csr_rollout has the same lists side
by side (dashi.kernels._interleaved_lists).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np

from dashi.kernels import _psi as nonlinear
from dashi.kernels._interleaved_lists import interleave
from dashi.kernels._lists import LinearForm
from dashi.kernels.abi import Binding, Call, Case, Number, Operand, Scalar
from dashi.kernels.portable import canon
from dashi.types import HostArray, Shape


def inputs(lists: str) -> tuple[Operand, ...]:
    """The operands, with what describes the lists: offsets or heads."""
    entries = (Operand("values", shape=("entries",)), Operand("sources", "u32", ("entries",)))
    return (Operand("z", shape=("m", "d")), *entries, Operand(lists, "u32", ("ends",)), Operand("b", shape=("d",)))


def operands(lists: str) -> tuple[str, ...]:
    """Their names and the result's, in the order of `bindings`."""
    return ("z", "values", "sources", lists, "b", "result")


def bindings(lists: str) -> tuple[Binding, ...]:
    """The buffers of the shaders."""
    entries = (Binding("values"), Binding("sources", "u32"), Binding(lists, "u32"))
    return (Binding("z"), *entries, Binding("b"), Binding("result", access="write"))


LONGEST: Final = Scalar("longest", "u32", 4096, "no column of A has more entries")
PUSH: Final = (*(Scalar(name, "u32") for name in ("width", "entries", "longest")), *nonlinear.NUMBERS)


def numbers(call: Call) -> dict[str, Number]:
    """The values of `PUSH`."""
    psi = {s.name: call.scalars[s.name] for s in nonlinear.NUMBERS}
    return {"width": call.dims["d"], "entries": call.dims["entries"], "longest": call.scalars["longest"], **psi}


def advance(z: HostArray, product: LinearForm, b: HostArray, steps: int, scalars: Mapping[str, Number]) -> HostArray:
    """The states after `steps` steps."""
    state, bias = canon(z), canon(b)
    with np.errstate(all="ignore"):
        for _ in range(steps):
            made = product(state) + bias
            state = nonlinear.apply_psi(int(scalars["psi"]), made, scalars["alpha"], scalars["low"], scalars["high"])
    return state


def case(
    m: int,
    d: int,
    each: int,
    scalars: Mapping[str, Number],
    longest: int | None = None,
    hot: int = 0,
    reach: int = 0,
    slabs: bool = False,
) -> Case:
    """About `each` entries in every column, from 2 each down to 0 and again; the middle column has `hot` more. Sources
    are below d, or below `reach`."""
    counts = np.resize(np.arange(2 * each + 1)[::-1], d)
    counts[d // 2 : d // 2 + 1] += hot
    size = int(counts.sum())

    ends = np.concatenate([[0], np.cumsum(counts)]).astype(np.uint32)
    heads, (filled,) = interleave(ends, np.zeros(size, np.uint8))
    size = len(filled) if slabs else size

    def described(rng: np.random.Generator, shape: Shape) -> HostArray:
        return heads if slabs else ends

    def sources(rng: np.random.Generator, shape: Shape) -> HostArray:
        return rng.integers(0, reach or max(1, d), shape, dtype=np.uint32)

    most = int(counts.max(initial=0)) if longest is None else longest
    name, number = ("heads", heads.size) if slabs else ("offsets", d + 1)
    return Case(
        {"z": (m, d), "values": (size,), "sources": (size,), name: (number,), "b": (d,)},
        {**scalars, "longest": most},
        {name: described, "sources": sources},
    )
