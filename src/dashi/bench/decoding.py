"""A decode loop with its caches on the device, beside the loop that uploads everything: the same bits, and times."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from dashi.bench.decoder import DecoderShape, build_decoder, random_weights
from dashi.errors import InputError
from dashi.graph import compile as compile_graph
from dashi.graph.compiler import Class
from dashi.types import HostArray

if TYPE_CHECKING:
    from dashi.graph.pipeline import CompiledPipeline
    from dashi.runtime.device import Device

_CHECKED: Final = 4
"""Runs of the loop that uploads everything."""
_MOST_LAYERS: Final = 256
_MOST_BYTES: Final = 8 << 30


@dataclass(frozen=True)
class DecodeTimes:
    """Tokens that a model with random weights chose behind a prompt, a digest of all rows of logits that came to the
    host, whether the first were those of the loop that uploads everything, milliseconds for each token in both loops
    (medians over runs), and what crosses between host and device in a resident run."""

    tokens: list[int]
    logits_hash: str
    same_bits: bool
    ms_per_token: float
    uploaded_ms_per_token: float
    tokens_per_run: int
    fed_bytes: int
    fetched_bytes: int
    cache_bytes: int
    dispatches: int
    longest_chain: int
    host_steps: list[str] = field(default_factory=list[str])

    def as_dict(self) -> dict[str, Any]:
        """What `dashi bench graph decode --json` prints."""
        return asdict(self)


def run_decoding(
    device: Device,
    shape: DecoderShape,
    *,
    prompt: int = 16,
    tokens: int = 32,
    steps: int = 1,
    batch: int = 1,
    class_: Class = "portable",
    seed: int = 0,
) -> DecodeTimes:
    """Runs a prompt of random tokens, then decodes about `tokens` more, `steps` of them in each submission. The tokens
    are those of the first row of the batch."""
    runs = -(-tokens // steps)
    if prompt < 1 or prompt + runs * steps > shape.length:
        raise InputError(
            f"{prompt} tokens and {runs * steps} more do not fit into a cache of {shape.length}.",
            "make the cache longer, or decode fewer.",
        )
    if shape.layers > _MOST_LAYERS or shape.nbytes(batch) > _MOST_BYTES:
        raise InputError(
            f"{shape.layers} layers with weights and caches for {batch} rows would take {shape.nbytes(batch)} bytes.",
            f"use at most {_MOST_LAYERS} layers, and {_MOST_BYTES} bytes: a smaller model, fewer positions or rows.",
        )
    weights = random_weights(shape, seed)
    ids = np.random.default_rng(seed).integers(0, shape.vocabulary, (batch, prompt)).astype(np.uint32)
    inputs = {"ids": ids, "positions": np.zeros(batch, np.uint32), **shape.empty_caches(batch)}
    with compile_graph(build_decoder(shape, weights, batch, prompt), device, class_=class_, slots=1) as whole:
        state = next_inputs(whole.dispatch(inputs))
    asked = ["logits", *(f"chosen.{step}" for step in range(steps - 1)), "next_ids"]
    graph = build_decoder(shape, weights, batch, 1, steps)
    with compile_graph(graph, device, class_=class_, slots=2) as pipeline:
        expected, uploaded = _upload(pipeline, state, asked, min(runs, _CHECKED))
        fed, fetched = make_resident(pipeline, state), dict[str, HostArray]()
        results, times = list[dict[str, HostArray]](), list[float]()
        for _ in range(runs):
            start = time.perf_counter()
            fetched = pipeline.dispatch_resident({}, asked)
            times.append(1e3 * (time.perf_counter() - start))
            results.append(fetched)
        report = pipeline.report()
    digests = [_digest([result]) for result in results]
    return DecodeTimes(
        tokens=[int(result[name][0, 0]) for result in results for name in asked[1:]],
        logits_hash=_digest(results),
        same_bits=digests[: len(expected)] == [_digest([result]) for result in expected],
        ms_per_token=float(np.median(times)) / steps,
        uploaded_ms_per_token=float(np.median(uploaded)) / steps,
        tokens_per_run=steps,
        fed_bytes=fed,
        fetched_bytes=sum(array.nbytes for array in fetched.values()),
        cache_bytes=sum(state[name].nbytes for name in shape.cache_names()),
        dispatches=report.dispatches,
        longest_chain=report.longest_chain,
        host_steps=sorted(report.host_steps),
    )


def next_inputs(results: Mapping[str, HostArray]) -> dict[str, HostArray]:
    """What the results of a run of a decoder are for the next run, by the names of its inputs."""
    return {
        name.removeprefix(prefix): array
        for name, array in results.items()
        for prefix in ("new_", "next_")
        if name.startswith(prefix)
    }


def make_resident(pipeline: CompiledPipeline, state: Mapping[str, HostArray]) -> int:
    """Binds the inputs of a decoder, each fed by the result that is its next value. Bytes of inputs that still come
    from the host with every run: none."""
    for name, values in state.items():
        pipeline.feed(pipeline.bind(name, values), f"{'new_' if '.' in name else 'next_'}{name}")
    bound = sum(array.nbytes for array in state.values())
    return pipeline.report().input_bytes - bound


def _upload(
    pipeline: CompiledPipeline, state: Mapping[str, HostArray], asked: list[str], runs: int
) -> tuple[list[dict[str, HostArray]], list[float]]:
    """Results and milliseconds of runs in which everything goes to the host and back."""
    values, results, times = dict(state), list[dict[str, HostArray]](), list[float]()
    for _ in range(runs):
        start = time.perf_counter()
        whole = pipeline.dispatch(values)
        values = next_inputs(whole)
        times.append(1e3 * (time.perf_counter() - start))
        results.append({name: whole[name] for name in asked})
    return results, times


def _digest(results: list[dict[str, HostArray]]) -> str:
    digest = hashlib.sha256()
    for result in results:
        for _, array in sorted(result.items()):
            digest.update(array.tobytes())
    return digest.hexdigest()[:32]
