"""Every op by its name, from the modules of `ops/`."""

from __future__ import annotations

from functools import cache

from dashi.errors import GraphError, suggestion
from dashi.graph.op import Op


@cache
def all_ops() -> dict[str, Op]:
    """Every op by its name."""
    from dashi.graph.ops import _fused, _leaves, attention, elementwise, indexing, movement, products, rows

    families = (_leaves, movement, elementwise, products, rows, attention, indexing, _fused)
    return {op.name: op for family in families for op in family.OPS}


def get(name: str) -> Op:
    """The op of that name."""
    op = all_ops().get(name)
    if op is None:
        raise GraphError(f"there is no op {name!r}.", f"{suggestion(name, all_ops())}dashi.graph.all_ops() lists them.")
    return op
