"""The graph of all-MiniLM-L6-v2: BERT with 6 layers of width 384 and 12 heads, mean pooling, unit length.

N. Reimers and I. Gurevych, Sentence-BERT, 2019, doi 10.18653/v1/D19-1410; W. Wang et al., MiniLM, 2020,
arXiv 2002.10957."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Final

import numpy as np

from dashi.errors import FileError, InputError
from dashi.graph import (
    Builder,
    Graph,
    Tensor,
    attention,
    cast,
    expand,
    gather,
    gelu,
    greater,
    layer_norm,
    maximum,
    slice_,
    sum_,
    unit,
    where,
)  # fmt: skip
from dashi.types import HostArray

WIDTH: Final = 384
HEADS: Final = 12
LAYERS: Final = 6
POSITIONS: Final = 512
EPSILON: Final = 1e-12


def build_minilm(tensors: Mapping[str, HostArray], rows: int, tokens: int, layers: int = LAYERS) -> Graph:
    """Inputs `ids` (uint32) and `counts` (bool) of shape (rows, tokens); the result `embedding` has a row of unit
    length for each text, which depends on its own tokens that count alone."""
    if not 1 <= tokens <= POSITIONS or rows < 1:
        raise InputError(f"{rows} texts of {tokens} tokens cannot be.", f"use up to {POSITIONS} tokens.")
    return _Model(Builder("minilm"), tensors, rows, tokens).graph(layers)


class _Model:
    def __init__(self, builder: Builder, tensors: Mapping[str, HostArray], rows: int, tokens: int) -> None:
        self.builder = builder
        self.tensors = tensors
        self.rows, self.tokens = rows, tokens

    def graph(self, layers: int) -> Graph:
        ids = self.builder.input("ids", (self.rows, self.tokens), "u32")
        counts = cast(self.builder.input("counts", (self.rows, self.tokens), "bool"), "f32")
        x = self.embeddings(ids)
        for layer in range(layers):
            x = self.layer(x, counts, f"encoder.layer.{layer}")
        return self.builder.graph(embedding=self.pooled(x, counts))

    def weight(self, name: str) -> Tensor:
        values = self.tensors.get(name)
        if values is None or values.dtype != np.float32:
            raise FileError(f"the model has no float32 tensor {name!r}.", "use the weights of all-MiniLM-L6-v2.")
        return self.builder.param(name, values)

    def linear(self, x: Tensor, name: str) -> Tensor:
        return x @ self.weight(f"{name}.weight").transpose() + self.weight(f"{name}.bias")

    def norm(self, x: Tensor, name: str) -> Tensor:
        return layer_norm(x, self.weight(f"{name}.weight"), self.weight(f"{name}.bias"), EPSILON)

    def embeddings(self, ids: Tensor) -> Tensor:
        words = gather(self.weight("embeddings.word_embeddings.weight"), ids)
        kinds = slice_(self.weight("embeddings.token_type_embeddings.weight"), [0], [1])
        places = slice_(self.weight("embeddings.position_embeddings.weight"), [0], [self.tokens])
        return self.norm(words + kinds + places, "embeddings.LayerNorm")

    def heads(self, x: Tensor) -> Tensor:
        return x.reshape(self.rows, self.tokens, HEADS, WIDTH // HEADS)

    def layer(self, x: Tensor, counts: Tensor, name: str) -> Tensor:
        q, k, v = (self.heads(self.linear(x, f"{name}.attention.self.{part}")) for part in ("query", "key", "value"))
        mixed = attention(q, k, v, counts, scale=float(np.float32(1 / math.sqrt(WIDTH // HEADS))), heads_last=True)
        joined = mixed.reshape(self.rows, self.tokens, WIDTH)
        x = self.norm(self.linear(joined, f"{name}.attention.output.dense") + x, f"{name}.attention.output.LayerNorm")
        inner = gelu(self.linear(x, f"{name}.intermediate.dense"))
        return self.norm(self.linear(inner, f"{name}.output.dense") + x, f"{name}.output.LayerNorm")

    def pooled(self, x: Tensor, counts: Tensor) -> Tensor:
        """The mean over the tokens that count, scaled to unit length."""
        chosen = expand(counts.reshape(self.rows, self.tokens, 1), x.shape)
        number = maximum(sum_(counts, 1, keepdims=True), 1.0)
        mean = sum_(where(greater(chosen, 0.0), x, 0.0), 1) / number
        return unit(mean)
