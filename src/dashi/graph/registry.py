"""Every op by its name, from the modules of `ops/`."""

from __future__ import annotations

from functools import cache

from dashi.errors import GraphError, suggestion
from dashi.graph.op import Op


@cache
def all_ops() -> dict[str, Op]:
    """Every op by its name."""
    from dashi.graph.ops import (
        _fused,
        _leaves,
        _pieces,
        _window_products,
        activations,
        attention,
        contractions,
        convolution,
        elementwise,
        indexing,
        joining,
        movement,
        norms,
        order,
        packed,
        pools,
        positions,
        products,
        quantization,
        random,
        recurrent,
        resizing,
        rows,
        scans,
        scattering,
        shaping,
        spectral,
        state_scans,
    )

    basic = (_leaves, movement, elementwise, activations, products, rows, attention, positions, packed)
    moves = (indexing, joining, scattering, shaping, order, scans)
    vision = (convolution, pools, resizing, norms, quantization, contractions, spectral)
    sequences = (recurrent, state_scans, random)
    families = (*basic, *moves, *vision, *sequences, _window_products, _fused, _pieces)
    return {op.name: op for family in families for op in family.OPS}


def get(name: str) -> Op:
    """The op of that name."""
    op = all_ops().get(name)
    if op is None:
        raise GraphError(f"there is no op {name!r}.", f"{suggestion(name, all_ops())}dashi.graph.all_ops() lists them.")
    return op
