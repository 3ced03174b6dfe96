"""A small causal transformer with a cache, and random weights: what language models consist of, without any.

Root-mean-square norms, rotary embeddings, heads of queries that share keys (grouped queries), a gated inner layer
(SwiGLU), logits by the table of embeddings. Every value depends on its own tokens and positions alone: a prompt may be
run whole, in chunks or token by token, in any batch, and no bit changes.

H. Touvron et al., LLaMA, 2023, arXiv 2302.13971; J. Ainslie et al., GQA, 2023, arXiv 2305.13245."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np

from dashi.graph import (
    Builder,
    Graph,
    Tensor,
    attention,
    cast,
    equal,
    gather,
    max_,
    min_,
    rms_norm,
    rope,
    rope_tables,
    sigmoid,
    slice_,
    where,
    write_rows,
)  # fmt: skip
from dashi.types import HostArray

_EPSILON: Final = 1e-6


@dataclass(frozen=True)
class DecoderShape:
    """Lengths of a model: `length` is how many positions its caches hold."""

    vocabulary: int = 97
    width: int = 32
    layers: int = 2
    heads: int = 4
    key_heads: int = 2
    depth: int = 8
    inner: int = 48
    length: int = 80

    def cache_names(self) -> list[str]:
        """The inputs that hold keys and values, of the shape (batch, length, key_heads, depth); the results that are
        the same caches with the new rows have `new_` in front."""
        return [f"{kind}.{layer}" for layer in range(self.layers) for kind in ("keys", "values")]

    def nbytes(self, batch: int) -> int:
        """Bytes of the weights, and of the caches of so many rows."""
        heads, keys = self.heads * self.depth, self.key_heads * self.depth
        layer = self.width * (2 * heads + 2 * keys + 3 * self.inner + 2) + 2 * batch * self.length * keys
        return 4 * (self.layers * layer + self.width * (self.vocabulary + 1))

    def empty_caches(self, batch: int, fill: float = math.nan) -> dict[str, HostArray]:
        """Caches without a row in use; what lies there does not matter."""
        shape = (batch, self.length, self.key_heads, self.depth)
        return {name: np.full(shape, fill, np.float32) for name in self.cache_names()}


def random_weights(shape: DecoderShape, seed: int = 0) -> dict[str, HostArray]:
    """Weights by name, of a size at which values stay near 1."""
    rng = np.random.default_rng(seed)
    queries, keys = shape.heads * shape.depth, shape.key_heads * shape.depth
    sizes: dict[str, tuple[int, int]] = {"embedding": (shape.vocabulary, shape.width)}
    for layer in range(shape.layers):
        each = {
            "query": (shape.width, queries), "key": (shape.width, keys), "value": (shape.width, keys),
            "mix": (queries, shape.width), "gate": (shape.width, shape.inner), "up": (shape.width, shape.inner),
            "down": (shape.inner, shape.width),
        }  # fmt: skip
        sizes |= {f"{layer}.{name}": size for name, size in each.items()}
    weights: dict[str, HostArray] = {
        name: (rng.standard_normal(size) / math.sqrt(size[0 if "." in name else 1])).astype(np.float32)
        for name, size in sizes.items()
    }
    norms = ["norm", *(f"{layer}.{name}" for layer in range(shape.layers) for name in ("norm", "inner_norm"))]
    return weights | {name: (1 + rng.random(shape.width) / 8).astype(np.float32) for name in norms}


def build_decoder(
    shape: DecoderShape, weights: Mapping[str, HostArray], batch: int, tokens: int, steps: int = 1
) -> Graph:
    """Inputs `ids` (batch, tokens) and `positions` (batch,), uint32, where the first token of each row stands; and the
    caches. Results are `logits` (batch, tokens, vocabulary), the caches with the new rows, `next_ids` (batch, 1), the
    most probable token behind the last, and `next_positions`, where that stands: fed back, they are the next run's
    inputs. With several `steps` each token so chosen is run too: `chosen.0` is the first of them, and so on; the other
    results are those of the last step."""
    return _Decoder(Builder("decoder"), shape, weights, batch).graph(tokens, steps)


class _Decoder:
    def __init__(self, builder: Builder, shape: DecoderShape, weights: Mapping[str, HostArray], batch: int) -> None:
        self.builder, self.shape, self.batch = builder, shape, batch
        self.weights = {name: builder.param(name, values) for name, values in weights.items()}
        tables = rope_tables(shape.length, shape.depth)
        self.angles = [builder.param(name, table) for name, table in zip(("cos", "sin"), tables, strict=True)]

    def graph(self, tokens: int, steps: int) -> Graph:
        size = (self.batch, self.shape.length, self.shape.key_heads, self.shape.depth)
        ids = self.builder.input("ids", (self.batch, tokens), "u32")
        positions = self.builder.input("positions", (self.batch,), "u32")
        caches = {name: self.builder.input(name, size) for name in self.shape.cache_names()}
        chosen: list[Tensor] = []
        logits = self.step(ids, positions, caches)
        for step in range(steps):
            positions = positions + ids.shape[1]
            ids = self.most_probable(logits)
            chosen.append(ids)
            if step + 1 < steps:
                logits = self.step(ids, positions, caches)
        results = {"logits": logits, "next_ids": ids, "next_positions": positions}
        results |= {f"chosen.{step}": token for step, token in enumerate(chosen[:-1])}
        return self.builder.graph(**results, **{f"new_{name}": cache for name, cache in caches.items()})

    def step(self, ids: Tensor, positions: Tensor, caches: dict[str, Tensor]) -> Tensor:
        """The logits of some tokens; their keys and values are written into the caches."""
        count = ids.shape[1]
        places = positions.reshape(self.batch, 1) + self.builder.constant(np.arange(count, dtype=np.uint32)[None])
        angles = [gather(table, places) for table in self.angles]
        x = gather(self.weights["embedding"], ids)
        for layer in range(self.shape.layers):
            x = x + self.mixed(self.norm(x, f"{layer}.norm"), layer, positions, angles, caches)
            x = x + self.inner(self.norm(x, f"{layer}.inner_norm"), layer)
        return self.norm(x, "norm") @ self.weights["embedding"].transpose()

    def norm(self, x: Tensor, name: str) -> Tensor:
        return rms_norm(x, self.weights[name], epsilon=_EPSILON)

    def mixed(
        self, x: Tensor, layer: int, positions: Tensor, angles: list[Tensor], caches: dict[str, Tensor]
    ) -> Tensor:
        """Attention to all tokens up to each one's own."""
        shape, rows = self.shape, x.shape[:2]

        def heads(name: str, count: int) -> Tensor:
            return (x @ self.weights[f"{layer}.{name}"]).reshape(*rows, count, shape.depth)

        q, k = (
            rope(heads(name, count), angles[0], angles[1], heads_last=True)
            for name, count in (("query", shape.heads), ("key", shape.key_heads))
        )
        for name, new in (("keys", k), ("values", heads("value", shape.key_heads))):
            caches[f"{name}.{layer}"] = write_rows(caches[f"{name}.{layer}"], new, positions)
        scale = float(np.float32(1 / math.sqrt(shape.depth)))
        keys, values = caches[f"keys.{layer}"], caches[f"values.{layer}"]
        y = attention(q, keys, values, positions=positions, causal=True, scale=scale, heads_last=True)
        return y.reshape(*rows, shape.heads * shape.depth) @ self.weights[f"{layer}.mix"]

    def inner(self, x: Tensor, layer: int) -> Tensor:
        """down(silu(gate x) up x)."""
        gate, up = (x @ self.weights[f"{layer}.{name}"] for name in ("gate", "up"))
        return (gate * sigmoid(gate) * up) @ self.weights[f"{layer}.down"]

    def most_probable(self, logits: Tensor) -> Tensor:
        """The token of the largest logit of each last row, the first among equals; the vocabulary's size, which is
        none, where a logit is NaN."""
        last = logits.reshape(self.batch, -1, self.shape.vocabulary)
        if logits.shape[1] > 1:
            last = slice_(last, [0, logits.shape[1] - 1], [None, None])
        numbers = self.builder.constant(np.arange(self.shape.vocabulary, dtype=np.float32))
        largest = equal(last, max_(last, 2, keepdims=True))
        return cast(min_(where(largest, numbers, float(self.shape.vocabulary)), 2), "u32")
