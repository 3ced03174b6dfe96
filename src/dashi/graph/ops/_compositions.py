"""Ops that are written in others: their definition is that of what they are written in, one op after another."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from dashi.graph.ir import Node, TensorType
from dashi.graph.op import Op, by_expansion

if TYPE_CHECKING:
    from dashi.graph.builder import Tensor


def composition(
    name: str,
    infer: Callable[[Node, Sequence[TensorType]], TensorType],
    expand: Callable[..., Tensor],
    arity: tuple[int, int],
) -> Op:
    """An op that is what `expand` makes of it, compiled or not."""
    return Op(name, infer, by_expansion, arity=arity, expand=expand)
