"""The attention of a transformer's layer, from its input to its output: projections, heads, attention, projection."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from dashi.errors import GraphError
from dashi.graph._arguments import checked
from dashi.graph.ops.attention import attention
from dashi.graph.ops.positions import rope

if TYPE_CHECKING:
    from dashi.graph.builder import Tensor


@checked
def attention_block(
    x: Tensor,
    weights: Sequence[Tensor],
    heads: int,
    *,
    biases: Sequence[Tensor | None] = (None, None, None, None),
    tables: tuple[Tensor, Tensor] | None = None,
    scale: float | None = None,
    mask: Tensor | None = None,
    bias: Tensor | None = None,
    lengths: Tensor | None = None,
    causal: bool = False,
    window: int = 0,
) -> Tensor:
    """Self-attention of x (B, S, D): queries, keys and values are x times the first three of four `weights`, (D, H d),
    (D, G d) and (D, G d), plus their `biases`; `heads` is H, and G divides it. What `attention` makes of them, without
    their order changed in memory, is multiplied with the fourth, (H d, E), plus its bias. With `tables`, cosines and
    sines of `rope_tables` for S positions, queries and keys are turned by their positions. The rest is as in
    `attention`.

    The projections need not wait for one another, and biases are their tails: five dispatches, the longest chain 3.
    """
    if len(x.shape) != 3 or len(weights) != 4 or len(biases) != 4:
        raise GraphError(
            f"{len(weights)} weights and {len(biases)} biases for x of {len(x.shape)} axes.",
            "pass x (B, S, D), the weights of queries, keys, values and results, and a bias or None for each.",
        )
    batch, length, _ = x.shape
    width = weights[0].shape[-1]
    depth = width // heads if heads > 0 else 0
    if not depth or any(w.shape[-1] % depth for w in weights[:3]) or width % heads:
        shapes = ", ".join(str(w.shape) for w in weights[:3])
        raise GraphError(f"weights {shapes} are none of {heads} heads.", "pass weights of whole heads of one depth.")
    parts: list[Tensor] = []
    for weight, added in zip(weights[:3], biases, strict=False):
        part = x @ weight if added is None else x @ weight + added
        parts.append(part.reshape(batch, length, part.shape[-1] // depth, depth))
    q, k, v = parts
    if tables is not None:
        q, k = (rope(part, *tables, heads_last=True) for part in (q, k))
    mixed = attention(
        q, k, v, mask, scale=scale, bias=bias, lengths=lengths, causal=causal, window=window, heads_last=True
    )
    result = mixed.reshape(batch, length, width) @ weights[3]
    return result if biases[3] is None else result + biases[3]
