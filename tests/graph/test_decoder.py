"""A causal transformer with a cache: one value for each token, however its prompt is cut, batched, padded and run."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from dashi import graph as dg
from dashi.bench.decoder import DecoderShape, build_decoder, random_weights
from dashi.runtime.device import Device
from dashi.types import HostArray

SHAPE = DecoderShape(length=80)
WEIGHTS = random_weights(SHAPE)
PROMPT = np.random.default_rng(1).integers(0, SHAPE.vocabulary, 70).astype(np.uint32)
Values = dict[str, HostArray]


def run_in_chunks(pipeline: dg.CompiledPipeline, prompt: HostArray, chunk: int) -> tuple[list[bytes], Values]:
    """The logits of every token of a prompt, and the caches behind it. The last chunk is filled up with tokens that are
    none of it."""
    caches, rows = SHAPE.empty_caches(1), list[bytes]()
    for first in range(0, len(prompt), chunk):
        part = prompt[first : first + chunk]
        ids = np.full((1, chunk), 5, np.uint32)
        ids[0, : len(part)] = part
        results = pipeline.dispatch({"ids": ids, "positions": np.array([first], np.uint32), **caches})
        caches = {name: results[f"new_{name}"] for name in caches}
        rows += [row.tobytes() for row in results["logits"][0, : len(part)]]
    return rows, {name: cache[:, : len(prompt)] for name, cache in caches.items()}


@pytest.fixture(scope="module")
def whole() -> tuple[list[bytes], Values]:
    """The logits of each token, and the caches, of the prompt in one run, by definition."""
    graph = build_decoder(SHAPE, WEIGHTS, 1, len(PROMPT))
    results = dg.evaluate(graph, {"ids": PROMPT[None], "positions": np.zeros(1, np.uint32), **SHAPE.empty_caches(1)})
    assert np.isfinite(results["logits"]).all()
    caches = {name: results[f"new_{name}"][:, : len(PROMPT)] for name in SHAPE.cache_names()}
    return [row.tobytes() for row in results["logits"][0]], caches


@pytest.mark.parametrize("chunk", [1, 7, 64, len(PROMPT)])
def test_a_prompt_has_the_same_bits_whole_in_chunks_and_token_by_token(
    chunk: int, whole: tuple[list[bytes], Values], device: Device
) -> None:
    with dg.compile(build_decoder(SHAPE, WEIGHTS, 1, chunk), device) as pipeline:
        assert pipeline.report().host_steps == {}
        rows, caches = run_in_chunks(pipeline, PROMPT, chunk)
    assert rows == whole[0]
    assert {n: c.tobytes() for n, c in caches.items()} == {n: c.tobytes() for n, c in whole[1].items()}


@pytest.mark.parametrize("batch", [1, 3, 8, 32])
def test_a_row_has_the_same_bits_in_every_batch_beside_rows_of_nan(
    batch: int, whole: tuple[list[bytes], Values], device: Device
) -> None:
    positions = np.full(batch, 40, np.uint32)  # rows of NaN: all that their tokens see is NaN
    ids = np.random.default_rng(2).integers(0, SHAPE.vocabulary, (batch, 2)).astype(np.uint32)
    caches = SHAPE.empty_caches(batch)
    own = {0: 30, batch // 2: 68, batch - 1: 0}  # rows that count, and how much of the prompt each has seen
    for row, count in own.items():
        positions[row], ids[row] = count, PROMPT[count : count + 2]
        for name, cache in caches.items():
            cache[row, :count] = whole[1][name][0, :count]
    with dg.compile(build_decoder(SHAPE, WEIGHTS, batch, 2), device) as pipeline:
        logits = pipeline.dispatch({"ids": ids, "positions": positions, **caches})["logits"]
    for row, count in own.items():
        assert [token.tobytes() for token in logits[row]] == whole[0][count : count + 2]
    assert np.isnan(np.delete(logits, list(own), axis=0)).all()


def test_logits_are_those_of_the_model_in_fp64(whole: tuple[list[bytes], Values]) -> None:
    logits = np.frombuffer(b"".join(whole[0]), np.float32).reshape(len(PROMPT), -1)
    # fp32 in some thirty steps, at values up to 4.
    assert np.abs(logits - by_float64()).max() < 2e-5


def by_float64() -> Any:
    """The same model without caches, in NumPy's fp64."""
    w: dict[str, Any] = {name: values.astype(np.float64) for name, values in WEIGHTS.items()}
    count, depth = len(PROMPT), SHAPE.depth
    angles = np.arange(count)[:, None] * 10000.0 ** (-np.arange(0, depth, 2) / depth)
    spin = np.exp(1j * angles)[:, None]

    def norm(x: Any, name: str) -> Any:
        return x / np.sqrt((x**2).mean(axis=-1, keepdims=True) + 1e-6) * w[name]

    def turned(x: Any) -> Any:
        pairs = (x[..., : depth // 2] + 1j * x[..., depth // 2 :]) * spin
        return np.concatenate([pairs.real, pairs.imag], axis=-1)

    x = w["embedding"][PROMPT]
    for layer in range(SHAPE.layers):
        h = norm(x, f"{layer}.norm")
        q, k, v = ((h @ w[f"{layer}.{name}"]).reshape(count, -1, depth) for name in ("query", "key", "value"))
        shared = SHAPE.heads // SHAPE.key_heads
        k, v = (np.repeat(part, shared, axis=1) for part in (turned(k), v))
        scores = np.einsum("ihd,jhd->hij", turned(q), k) / np.sqrt(depth)
        weights = np.exp(np.where(np.tri(count, dtype=bool), scores, -np.inf))
        mixed = np.einsum("hij,jhd->ihd", weights / weights.sum(axis=-1, keepdims=True), v)
        x = x + mixed.reshape(count, -1) @ w[f"{layer}.mix"]
        h = norm(x, f"{layer}.inner_norm")
        gate = h @ w[f"{layer}.gate"]
        x = x + (gate / (1 + np.exp(-gate)) * (h @ w[f"{layer}.up"])) @ w[f"{layer}.down"]
    return norm(x, "norm") @ w["embedding"].T
