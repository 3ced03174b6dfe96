"""MiniLM by torch, in fp32, for comparison only: eagerly, and replayed from a CUDA graph."""

from __future__ import annotations

import statistics
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from dashi.bench.minilm.model import EPSILON, HEADS, LAYERS, WIDTH
from dashi.bench.peers.cuda_timing import Timed, replays_us
from dashi.bench.peers.gpu_library import load_library
from dashi.runtime import _stopwatch as stopwatch
from dashi.types import HostArray

NAMES: Final = ("torch",)
_LEAST: Final = 1e-12


@dataclass(frozen=True)
class ModelTimes:
    """Median milliseconds on the GPU's clock, without copies from and to the host; and the largest difference of an
    element from ours."""

    version: str
    graph_ms: float
    eager_ms: float
    difference: float

    def as_dict(self) -> dict[str, Any]:
        return {"name": "torch", **self.__dict__}


class TorchMiniLm:
    """The model of `dashi.bench.minilm` with torch's own attention, norms and products; `device` is where it runs."""

    name = "torch"

    def __init__(self, torch: Any, device: str = "cuda", layers: int = LAYERS) -> None:
        self._torch, self._device, self._layers = torch, device, layers
        self.version = f"torch {torch.__version__}"

    def load(self, tensors: Mapping[str, HostArray], ids: HostArray, counts: HostArray) -> tuple[Any, Any, Any]:
        """Weights, token numbers and which of them count, on the device."""
        put = self._torch.from_numpy
        floats = {name: array for name, array in tensors.items() if array.dtype == np.float32}
        weights = {name: put(array.copy()).to(self._device) for name, array in floats.items()}
        return weights, put(ids.astype(np.int64)).to(self._device), put(counts.copy()).to(self._device)

    def embeddings(self, weights: Mapping[str, Any], ids: Any, counts: Any) -> Any:
        """A row of unit length for each text."""
        torch, layers = self._torch, self._torch.nn.functional
        rows, tokens = ids.shape

        def linear(x: Any, name: str) -> Any:
            return layers.linear(x, weights[f"{name}.weight"], weights[f"{name}.bias"])

        def norm(x: Any, name: str) -> Any:
            return layers.layer_norm(x, (WIDTH,), weights[f"{name}.weight"], weights[f"{name}.bias"], EPSILON)

        def heads(x: Any) -> Any:
            return x.reshape(rows, tokens, HEADS, WIDTH // HEADS).transpose(1, 2)

        words = layers.embedding(ids, weights["embeddings.word_embeddings.weight"])
        places = weights["embeddings.position_embeddings.weight"][:tokens]
        x = norm(words + weights["embeddings.token_type_embeddings.weight"][0] + places, "embeddings.LayerNorm")
        mask = counts[:, None, None, :]
        for layer in range(self._layers):
            name = f"encoder.layer.{layer}"
            q, k, v = (heads(linear(x, f"{name}.attention.self.{part}")) for part in ("query", "key", "value"))
            mixed = layers.scaled_dot_product_attention(q, k, v, attn_mask=mask)
            joined = mixed.transpose(1, 2).reshape(rows, tokens, WIDTH)
            x = norm(linear(joined, f"{name}.attention.output.dense") + x, f"{name}.attention.output.LayerNorm")
            inner = layers.gelu(linear(x, f"{name}.intermediate.dense"))
            x = norm(linear(inner, f"{name}.output.dense") + x, f"{name}.output.LayerNorm")
        chosen = counts[:, :, None].to(x.dtype)
        mean = (x * chosen).sum(1) / chosen.sum(1).clamp(min=1.0)
        return mean / torch.linalg.vector_norm(mean, dim=1, keepdim=True).clamp(min=_LEAST)

    def measure(
        self, tensors: Mapping[str, HostArray], ids: HostArray, counts: HostArray, ours: HostArray, repeats: int
    ) -> ModelTimes:
        """How long the model takes, of which our embeddings are known."""
        torch = self._torch
        torch.backends.cuda.matmul.allow_tf32 = False  # fp32, as ours
        with torch.inference_mode():
            loaded = self.load(tensors, ids, counts)

            def work() -> Any:
                return self.embeddings(*loaded)

            difference = float(np.abs(work().cpu().numpy() - ours).max(initial=0))
            eager = Timed(torch, work)
            stopwatch.warm(eager.milliseconds, stopwatch.HARDWARE.warm)
            eager_ms = statistics.median(eager.milliseconds() for _ in range(repeats))
            graph_ms = statistics.median(us / 1e3 for us in replays_us(torch, work, repeats, runs=3))
        return ModelTimes(self.version, graph_ms, eager_ms, difference)


def load(name: str) -> TorchMiniLm:
    """The peer of that name, on a GPU: on a processor its numbers would compare nothing."""
    return TorchMiniLm(load_library(name, NAMES))
