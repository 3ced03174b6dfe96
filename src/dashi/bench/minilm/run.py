"""Sentences through MiniLM on a device: similarities, a hash for each, and what it took."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dashi.bench.minilm.model import build_minilm
from dashi.bench.minilm.tokens import Tokeniser
from dashi.bench.minilm.weights import find_files, read_files
from dashi.graph import compile as compile_graph
from dashi.graph.compiler import Class
from dashi.types import HostArray

if TYPE_CHECKING:
    from dashi.bench.peers.minilm import ModelTimes, TorchMiniLm
    from dashi.graph.report import PipelineReport
    from dashi.runtime.device import Device


@dataclass(frozen=True)
class MiniLmRun:
    """Embeddings of texts, and the pipeline that made them. `ms` is the median time of a dispatch, `cpu_ms` that of all
    cores that it kept busy, a software driver's too."""

    embeddings: HostArray
    report: PipelineReport
    ms: float
    cpu_ms: float
    compile_s: float
    device_ms: float | None = None
    """Median time of a run on the device's clock, copies of tokens and embeddings included; None without a clock."""
    peer: ModelTimes | None = None

    @property
    def row_hashes(self) -> list[str]:
        """A digest of each text's embedding, whatever the others are."""
        return [hashlib.sha256(row.tobytes()).hexdigest()[:32] for row in self.embeddings]

    @property
    def similarities(self) -> list[list[float]]:
        """Cosines between all pairs."""
        rows = np.asarray(self.embeddings, np.float64)
        lengths = np.linalg.norm(rows, axis=1)
        return [[round(float(c), 6) for c in row] for row in rows @ rows.T / np.outer(lengths, lengths)]

    def as_dict(self) -> dict[str, Any]:
        """What `dashi bench graph minilm --json` prints."""
        report = self.report
        return {
            "similarities": self.similarities,
            "row_hashes": self.row_hashes,
            "ms": self.ms,
            "cpu_ms": self.cpu_ms,
            "device_ms": self.device_ms,
            "peer": None if self.peer is None else self.peer.as_dict(),
            "compile_s": self.compile_s,
            "longest_chain": report.longest_chain,
            "dispatches": report.dispatches,
            "barriers": report.barriers,
            "barriers_avoided": report.barriers_avoided,
            "planned_bytes": report.arena_bytes,
            "liveness_bytes": report.liveness_bytes,
            "stored_bytes": report.stored_bytes,
            "host_steps": sorted(report.host_steps),
            "kernels": report.kernels,
            "program_id": report.program_id,
            "id": report.id,
        }


def run_minilm(
    device: Device,
    texts: Sequence[str],
    *,
    tokens: int = 128,
    class_: Class = "portable",
    weights: Path | None = None,
    repeats: int = 1,
    peer: TorchMiniLm | None = None,
) -> MiniLmRun:
    """The embeddings of texts, each cut off after so many tokens. A peer computes the same, and is timed."""
    files = read_files(find_files(weights))
    ids, counts = Tokeniser(files.vocabulary).batch(texts, tokens)
    start = time.perf_counter()
    graph = build_minilm(files.tensors, len(texts), tokens)
    with compile_graph(graph, device, class_=class_) as pipeline:
        compiled = time.perf_counter() - start
        times: list[float] = []
        busy: list[float] = []
        results: dict[str, HostArray] = {}
        for _ in range(max(1, repeats)):
            begin, used = time.perf_counter(), time.process_time()
            results = pipeline.dispatch({"ids": ids, "counts": counts})
            times.append(1e3 * (time.perf_counter() - begin))
            busy.append(1e3 * (time.process_time() - used))
        ms, cpu_ms = (float(np.median(numbers)) for numbers in (times, busy))
        embeddings = results["embedding"]
        runs = [pipeline.dispatch_timed({"ids": ids, "counts": counts})[1].device for _ in range(max(1, repeats))]
        stamps = [nanoseconds / 1e6 for nanoseconds in runs if nanoseconds is not None]
        beside = None if peer is None else peer.measure(files.tensors, ids, counts, embeddings, max(3, repeats))
        device_ms = float(np.median(stamps)) if stamps else None
        return MiniLmRun(embeddings, pipeline.report(), ms, cpu_ms, compiled, device_ms, beside)
