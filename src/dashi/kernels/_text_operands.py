"""What `dashi.kernel` takes beside GLSL text: its options, and operands in words ("x y", "x[m,n] index:u32[n]")."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypedDict

from dashi.errors import AbiError
from dashi.kernels.abi import Call, Case, Operand, Scalar
from dashi.types import DTYPES

_NAME: Final = r"[A-Za-z][A-Za-z0-9_]*"
_OPERAND: Final = re.compile(rf"(?P<name>{_NAME})(?::(?P<dtype>\w+))?(?:\[(?P<dims>[^\]]*)\])?")


class TextOptions(TypedDict, total=False):
    """What `dashi.kernel` takes beside GLSL text."""

    inputs: str
    """Arrays by name ("x y"), with types and shapes where the text is a whole shader ("x[m,n] index:u32[n]")."""
    outputs: str
    scalars: str
    reference: Callable[..., Any]
    """What the text computes, in NumPy. For an apply of values: of canonical values, and of scalars as arrays of one
    element."""
    dtypes: Sequence[str]
    portable: bool
    bound: float | None
    """Largest relative error, where `portable` is false."""
    flops: int
    """Operations per element, for cost models."""
    trips: int | Callable[[Call], int]
    """Iterations of the loops inside that over the elements, of a whole shader."""
    cases: Sequence[Case]
    """What a check tries, instead of small cases of random numbers."""
    name: str
    types: Mapping[str, Sequence[str]]
    """Type variables of a whole shader beside T, and what they may stand for: {"U": ("u32", "u64")} for "index:U[n]".
    The arrays of a call say what they are; in the text they are names of types."""


def read_operands(text: str, what: str) -> tuple[Operand, ...]:
    """Arrays: a name, perhaps `:dtype` (T where there is none), perhaps `[dims]` (any shape where there are none)."""
    listed: list[Operand] = []
    for word in text.split():
        match = _OPERAND.fullmatch(word)
        if match is None:
            raise AbiError(
                f"{what}: {word!r} is no operand.", 'write names with spaces between, "x y[m,n] index:u32[n]".'
            )
        dims = match["dims"]
        shape = None if dims is None else tuple(int(d) if d.isdigit() else d for d in dims.split(",") if d)
        listed.append(Operand(match["name"], _dtype(what, word, match["dtype"]), shape))
    if not listed:
        raise AbiError(f"{what} is empty.", "name at least one array.")
    return tuple(listed)


def read_scalars(text: str) -> tuple[Scalar, ...]:
    """Numbers passed by name: a name, perhaps `:dtype`."""
    listed: list[Scalar] = []
    for word in text.split():
        match = _OPERAND.fullmatch(word)
        if match is None or match["dims"] is not None:
            raise AbiError(f"scalars: {word!r} is no scalar.", 'write names with spaces between, "a count:u32".')
        listed.append(Scalar(match["name"], _dtype("scalars", word, match["dtype"])))
    return tuple(listed)


def _dtype(what: str, word: str, dtype: str | None) -> str:
    if dtype is None or dtype in DTYPES or dtype == "T":
        return dtype or "T"
    raise AbiError(f"{what}: {word!r} has the element type {dtype!r}.", f"use T, or one of {', '.join(DTYPES)}.")
