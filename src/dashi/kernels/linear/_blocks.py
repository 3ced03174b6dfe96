"""Steps z' = psi(z A + b) with an A of which some square blocks are stored: reference, operands and cases of block_step
and block_rollout.

Blocks are stored by block column, as in block_sparse: those of column c are t = offsets[c] to offsets[c + 1], block t
lies in block row places[t], and blocks[t, i, j] = A[places[t] side + i, c side + j]. Products are added in the order of
the stored blocks, and in a block in the order of its rows i, tree64: with every block stored, in order of rows, the
bits are those of gemv. A block column of more than `longest` blocks, one that leaves the lists, and a block row past
the end give NaN.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import Final

import numpy as np

from dashi.errors import LimitError, ShapeError
from dashi.kernels import _psi as nonlinear
from dashi.kernels._lists import LONGEST as MOST
from dashi.kernels.abi import Binding, Call, Case, Fill, Number, Operand, Scalar, Spec
from dashi.kernels.portable import Matrix, canon, contract, prepare
from dashi.types import HostArray, Shape

INPUTS: Final = (
    Operand("z", shape=("m", "d")),
    Operand("blocks", shape=("count", "side", "side")),
    Operand("places", "u32", ("count",)),
    Operand("offsets", "u32", ("ends",)),
    Operand("b", shape=("d",)),
)
OPERANDS: Final = ("z", "blocks", "places", "offsets", "b", "result")
BINDINGS: Final = (
    Binding("z"), Binding("blocks"), Binding("places", "u32"), Binding("offsets", "u32"), Binding("b"),
    Binding("result", access="write"),
)  # fmt: skip
LONGEST: Final = Scalar("longest", "u32", 64, "no block column has more blocks")
SPEC: Final = (Spec("SIDE", 1), nonlinear.SPEC)
PUSH: Final = (*(Scalar(name, "u32") for name in ("width", "count", "longest")), *nonlinear.NUMBERS)


def require(kernel: str, call: Call) -> None:
    """What a plan asks first."""
    require_fit(kernel, call.dims["d"], call.dims["ends"], call.dims["side"], call.scalars)


def require_fit(kernel: str, width: int, ends: int, side: int, scalars: Mapping[str, Number]) -> None:
    """What the shapes alone cannot say."""
    if max(0, ends - 1) * side != width or ends < 1:
        raise ShapeError(
            f"kernel {kernel!r}: states of {width} are not {ends - 1} block columns of {side}.",
            "give one list of blocks for every block column, and states of whole blocks.",
        )
    if int(scalars["longest"]) * side > MOST:
        raise LimitError(
            f"kernel {kernel!r}: columns of {scalars['longest']} blocks of {side} rows are longer than {MOST}.",
            "pass a smaller `longest`, or split the matrix by rows and add the products.",
        )
    nonlinear.require_psi(kernel, scalars)


def numbers(call: Call) -> dict[str, Number]:
    """The values of `PUSH`."""
    psi = {s.name: call.scalars[s.name] for s in nonlinear.NUMBERS}
    return {"width": call.dims["d"], "count": call.dims["count"], "longest": call.scalars["longest"], **psi}


def constants(call: Call) -> dict[str, int]:
    """The values of `SPEC`."""
    return {"SIDE": max(1, call.dims["side"]), "PSI": int(call.scalars["psi"])}


def advance(
    z: HostArray,
    blocks: HostArray,
    places: HostArray,
    offsets: HostArray,
    b: HostArray,
    steps: int,
    scalars: Mapping[str, Number],
) -> HostArray:
    """The states after `steps` steps."""
    columns = prepare_columns(blocks, offsets, int(scalars["longest"]))
    side = blocks.shape[1]
    rows = places.astype(np.int64)
    state, bias = canon(z), canon(b)
    nan = np.full((len(state), 1, side), np.nan, state.dtype)
    with np.errstate(all="ignore"):
        for _ in range(steps):
            cut = np.concatenate([state.reshape(len(state), len(columns), side), nan], axis=1)
            factors = cut[:, np.minimum(rows, len(columns))]
            sums = np.full((len(state), len(columns), side), np.nan, state.dtype)
            for c, column in enumerate(columns):
                if column is not None:
                    stored = factors[:, int(offsets[c]) : int(offsets[c + 1])]
                    sums[:, c] = contract(stored.reshape(len(state), stored.shape[1] * side), column)
            total = canon(sums).reshape(state.shape) + bias
            state = nonlinear.apply_psi(int(scalars["psi"]), total, scalars["alpha"], scalars["low"], scalars["high"])
    return state


def prepare_columns(blocks: HostArray, offsets: HostArray, longest: int) -> list[Matrix | None]:
    """The stored rows of every block column, or None for one that has no sum."""
    ends = offsets.astype(np.int64)
    side = blocks.shape[1]
    columns: list[Matrix | None] = []
    for start, beyond in pairwise(ends.tolist()):
        good = start <= beyond <= len(blocks) and beyond - start <= longest
        columns.append(prepare(blocks[start:beyond].reshape(-1, side)) if good else None)
    return columns


def fills(rows: int, columns: int, each: int, wrong: int) -> dict[str, Fill]:
    """`each` blocks in every block column but the first, which has none; the last `wrong` are in no row of blocks."""

    def places(rng: np.random.Generator, shape: Shape) -> HostArray:
        made = rng.integers(0, max(1, rows), shape, dtype=np.uint32)
        made[made.size - wrong :] = rows
        return made

    def offsets(rng: np.random.Generator, shape: Shape) -> HostArray:
        return np.maximum(0, np.arange(columns + 1) - 1).astype(np.uint32) * np.uint32(each)

    return {"places": places, "offsets": offsets}


def case(
    m: int,
    columns: int,
    side: int,
    each: int,
    scalars: Mapping[str, Number],
    longest: int | None = None,
    wrong: int = 0,
) -> Case:
    """Lists as `fills` makes them, for states of as many block rows as columns."""
    count = max(0, columns - 1) * each

    shapes: dict[str, Shape] = {"z": (m, columns * side), "blocks": (count, side, side), "places": (count,)}
    return Case(
        {**shapes, "offsets": (columns + 1,), "b": (columns * side,)},
        {**scalars, "longest": each if longest is None else longest},
        fills(columns, columns, each, wrong),
    )
