"""Work of torch timed on the GPU's own clock: between two CUDA events, and replayed from a CUDA graph."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dashi.runtime import _stopwatch as stopwatch

Work = Callable[[], Any]


class Timed:
    """Something timed between two CUDA events."""

    def __init__(self, torch: Any, work: Work) -> None:
        self._work = work
        self._start = torch.cuda.Event(enable_timing=True)
        self._end = torch.cuda.Event(enable_timing=True)

    def milliseconds(self) -> float:
        """Runs it, and waits for it."""
        self._start.record()
        self._work()
        self._end.record()
        self._end.synchronize()
        return self._start.elapsed_time(self._end)

    def run(self) -> int:
        """`milliseconds` in nanoseconds: what a `stopwatch.Batch` does."""
        return round(self.milliseconds() * 1e6)

    def close(self) -> None:
        """torch frees by itself."""


class CudaGraph(Timed):
    """Something captured in a CUDA graph; what is timed is its replay."""

    def __init__(self, torch: Any, work: Work) -> None:
        self._graph = torch.cuda.CUDAGraph()
        super().__init__(torch, self._graph.replay)
        with torch.cuda.graph(self._graph):
            work()

    def close(self) -> None:
        self._graph.reset()


def replays_us(torch: Any, work: Work, rounds: int, *, runs: int = 1, before: Work | None = None) -> list[float]:
    """Microseconds of each replay of the work from a graph. The work is run `runs` times before it is captured, and
    replayed until the GPU is warm before it is timed; `before` is done ahead of each round, and not timed."""
    for _ in range(runs):
        work()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        work()

    def one_round() -> float:
        if before is not None:
            before()
        return Timed(torch, graph.replay).milliseconds() * 1000

    stopwatch.warm(one_round, stopwatch.HARDWARE.warm)
    taken = [one_round() for _ in range(rounds)]
    graph.reset()
    torch.cuda.empty_cache()
    return taken
