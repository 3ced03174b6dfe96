"""The element types at the edges of a formula: what its operands are in memory, and what it is computed in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import numpy as np

from dashi.errors import DTypeError, InputError
from dashi.kernels._formulas import Formula
from dashi.kernels._fused_glsl import FLOAT_STORAGE, width
from dashi.kernels._storage import COMPUTE, check_storage
from dashi.types import DTYPES

_VARIANTS: Final = ("f32", "f64", "i32", "u32", "f16", "i64", "u64", "i16", "u16", "i8", "u8", "bool")
"""What T may be. NumPy cannot tell bf16 from u16, so that an operand is bf16 by name only."""
_COMPUTED: Final = ("f32", "f64", "i32", "u32", "i64", "u64")


@dataclass(frozen=True)
class Edges:
    """Element types of inputs and outputs by name, "T" where it is the variant's, and the variants that there are.
    `compute` is the type that all of them are computed in; None where that follows from the variant."""

    inputs: Mapping[str, str]
    outputs: Mapping[str, str]
    variants: tuple[str, ...]
    compute: str | None = None

    def compute_of(self, variant: str) -> str:
        """The type that a variant is computed in."""
        return self.compute or COMPUTE[variant]

    def storages(self, variant: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The element types of inputs and outputs in memory."""
        reading, writing = (
            tuple(variant if kind == "T" else kind for kind in named.values()) for named in (self.inputs, self.outputs)
        )
        return reading, writing

    def uniform(self, variant: str) -> bool:
        """Whether all operands have the type that is computed in: nothing is converted."""
        reading, writing = self.storages(variant)
        return {*reading, *writing} == {self.compute_of(variant)}

    @cached_property
    def mixed(self) -> dict[str, str]:
        """The variants in which something is converted, with the types that they are computed in."""
        return {v: self.compute_of(v) for v in self.variants if not self.uniform(v)}

    @cached_property
    def same_widths(self) -> bool:
        """Whether in every variant all elements have as many bytes, so that a result can be written over an input."""
        return all(len({width(kind) for part in self.storages(v) for kind in part}) == 1 for v in self.variants)

    @property
    def text(self) -> str:
        """What tells kernels of one formula apart; nothing where all operands have one type."""
        kinds = [*self.inputs.values(), *self.outputs.values(), self.compute or "T"]
        return "" if set(kinds) == {"T"} else f"\ntypes {' '.join(kinds)}"

    def variant_of(self, dtypes: Sequence[np.dtype[Any]]) -> str:
        """The variant of arrays of NumPy, by the first input of type T."""
        for kind, dtype in zip(self.inputs.values(), dtypes, strict=True):
            if kind == "T":
                return next(v for v in _VARIANTS if DTYPES[v].numpy == dtype)
        return self.variants[0]


def edges_of(computed: Formula, outputs: Sequence[str], types: Mapping[str, str], compute: str | None) -> Edges:
    """The element types of a formula's operands: those that `types` names are fixed, the others are T."""
    operands = (*computed.inputs, *outputs)
    if unknown := sorted(set(types) - set(operands)):
        raise InputError(
            f"`types` names {unknown[0]!r}, which is no operand of the formula.", f"use {', '.join(operands)}."
        )
    if compute is not None and compute not in _COMPUTED:
        raise InputError(f"formulas are not computed in {compute!r}.", f"use one of {', '.join(_COMPUTED)}.")
    reading = {name: types.get(name, "T") for name in computed.inputs}
    writing = {name: types.get(name, "T") for name in outputs}
    if compute is None and "T" not in reading.values():
        compute = "f32"
    variants = (compute,) if compute else tuple(v for v in _VARIANTS if _possible(computed, v, types))
    for name, kind in types.items():
        check_storage(name, kind, compute or ("f32" if not variants else COMPUTE[variants[0]]))
    if not variants or not computed.serves(variants[0]):
        raise DTypeError(
            f"the formula has no meaning for {variants[0] if variants else 'any element type'}: its functions and "
            "constants do not go together.",
            "choose another `compute`, or other functions.",
        )
    return Edges(reading, writing, variants, compute)


def _possible(computed: Formula, variant: str, types: Mapping[str, str]) -> bool:
    floats = DTYPES[COMPUTE[variant]].is_float
    return computed.serves(variant) and (floats or not set(types.values()) & set(FLOAT_STORAGE))
