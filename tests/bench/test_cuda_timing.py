"""What is timed by torch, call by call: what runs first, what is captured, what lies between two events."""

from __future__ import annotations

import contextlib
import statistics
import types
from collections.abc import Callable, Generator, Iterator
from dataclasses import replace
from itertools import count
from typing import Any

import numpy as np
import pytest

from dashi.bench.fft import REPEATS, TransformCase
from dashi.bench.fft import ROUNDS as FFT_ROUNDS
from dashi.bench.peers import fft as fft_peers
from dashi.bench.peers import flow as flow_peers
from dashi.bench.peers import rollout as rollout_peers
from dashi.bench.peers.cuda_timing import CudaGraph, Timed
from dashi.flow import Flow
from dashi.runtime import _stopwatch as stopwatch

PREPARED = ["synchronize", "new graph", "capture"]
ROUND = ["event", "event", "record start", "replay", "record end", "wait for end"]
LEFT = ["reset", "empty cache"]
STAGE = [*["irfft2"] * 4, "rfft2"]


class Tensor:
    """A tensor that notes what is copied to it; arithmetic gives itself."""

    def __init__(self, values: Any, calls: list[str]) -> None:
        self.values, self._calls = values, calls

    def cuda(self) -> Tensor:
        return self

    def clone(self) -> Tensor:
        return self

    def copy_(self, other: Tensor) -> None:
        self._calls.append("copy")

    def _same(self, *others: Any) -> Tensor:
        return self

    __add__ = __mul__ = __neg__ = _same


class NotingTorch:
    """A torch that notes the calls that matter; runs take 3/7, 4/7, 5/7, ... milliseconds."""

    __version__ = "0.0"
    float32 = np.float32

    def __init__(self) -> None:
        self.calls: list[str] = []
        self._events, self._times = count(), (n / 7 for n in count(3))
        self.cuda = self
        self.fft = types.SimpleNamespace(rfft2=self._noting("rfft2"), irfft2=self._noting("irfft2"))
        matmul = types.SimpleNamespace(allow_tf32=True)
        self.backends = types.SimpleNamespace(cuda=types.SimpleNamespace(matmul=matmul))

    def _noting(self, name: str) -> Callable[..., Any]:
        def call(*operands: Any) -> Any:
            self.calls.append(name)
            return operands[0] if operands else None

        return call

    def from_numpy(self, values: Any) -> Tensor:
        return Tensor(values, self.calls)

    def empty_like(self, like: Tensor) -> Tensor:
        return like

    def randn(self, shape: Any, device: str, dtype: Any) -> Tensor:
        return Tensor(None, self.calls)

    def mm(self, one: Tensor, other: Tensor, out: Tensor) -> None:
        self.calls.append("mm")

    def synchronize(self) -> None:
        self.calls.append("synchronize")

    def empty_cache(self) -> None:
        self.calls.append("empty cache")

    def Event(self, *, enable_timing: bool) -> Any:
        assert enable_timing
        self.calls.append("event")
        which = ("start", "end")[next(self._events) % 2]

        def elapsed_time(other: Any) -> float:
            assert (which, other.which) == ("start", "end")
            return next(self._times)

        return types.SimpleNamespace(
            which=which,
            record=self._noting(f"record {which}"),
            synchronize=self._noting(f"wait for {which}"),
            elapsed_time=elapsed_time,
        )

    def CUDAGraph(self) -> Any:
        self.calls.append("new graph")
        return types.SimpleNamespace(replay=self._noting("replay"), reset=self._noting("reset"))

    @contextlib.contextmanager
    def graph(self, graph: Any) -> Generator[None]:
        self.calls.append("capture")
        yield
        self.calls.append("captured")


def times(rounds: range) -> Iterator[float]:
    """Microseconds of these runs of `NotingTorch`."""
    return ((3 + i) / 7 * 1000 for i in rounds)


@pytest.fixture(autouse=True)
def warm_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """One round is enough to warm up."""
    monkeypatch.setattr(stopwatch, "HARDWARE", replace(stopwatch.HARDWARE, warm=0))


def test_a_rollout_is_warm_before_it_is_timed() -> None:
    torch = NotingTorch()
    peer = rollout_peers.TorchRollout(torch)
    measurement = peer.us_per_step(np.eye(2, dtype=np.float32), np.ones((1, 2), np.float32))
    steps, rounds = rollout_peers.STEPS, rollout_peers.ROUNDS
    work = ["mm"] * steps
    assert torch.calls == [*work, *PREPARED, *work, "captured", *ROUND * (rounds + 1), *LEFT]
    assert measurement == statistics.median(us / steps for us in times(range(1, rounds + 1)))
    assert torch.backends.cuda.matmul.allow_tf32 is False


def test_transforms_are_warm_before_they_are_timed() -> None:
    torch = NotingTorch()
    measurement = fft_peers.TorchFft(torch).us(TransformCase("rfft2", 8))
    work = ["rfft2"] * REPEATS
    assert torch.calls == [*work, *PREPARED, *work, "captured", *ROUND * (FFT_ROUNDS + 1), *LEFT]
    assert measurement == statistics.median(us / REPEATS for us in times(range(1, FFT_ROUNDS + 1)))


def test_a_flow_starts_every_round_from_its_first_state_and_leaves_the_first_round_out() -> None:
    torch = NotingTorch()
    states = np.zeros((1, 8, 5, 2), np.float32)
    measurement = flow_peers.TorchFlow(torch).us_per_step(Flow(n=8), states, 3)
    work = [*STAGE * 4, "copy"] * 3
    rounds = flow_peers.ROUNDS
    assert torch.calls == [*work * 2, *PREPARED, *work, "captured", *["copy", *ROUND] * (rounds + 1), *LEFT]
    assert measurement == statistics.median(us / 3 for us in times(range(1, rounds + 1)))


def test_a_batch_keeps_its_events_and_a_graph_only_replays() -> None:
    torch = NotingTorch()
    graph = CudaGraph(torch, lambda: torch.calls.append("work"))
    assert torch.calls == ["new graph", "event", "event", "capture", "work", "captured"]
    torch.calls.clear()
    assert [graph.run(), graph.run()] == [round(3 / 7 * 1e6), round(4 / 7 * 1e6)]
    graph.close()
    assert torch.calls == [*ROUND[2:] * 2, "reset"]
    torch.calls.clear()
    eager = Timed(torch, lambda: torch.calls.append("work"))
    assert eager.run() == round(5 / 7 * 1e6)
    eager.close()
    assert torch.calls == ["event", "event", "record start", "work", "record end", "wait for end"]
