"""The predicted period against chains in virtual time: the same counts that threads go by, and no noise."""

from __future__ import annotations

import heapq

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dashi.stream import predict
from dashi.stream._chain import ChainState

MS = st.integers(1, 20)


class VirtualChain:
    """A chain of such times whose clock is a number, driven by `ChainState`; source and sink take no time."""

    def __init__(self, compute: list[float], transfer: list[float], windows: list[int], n: int) -> None:
        self.chain = ChainState(windows)
        self.compute, self.transfer, self.n = compute, [0.0, *transfer, 0.0], n
        self.busy: set[tuple[str, int]] = set()
        self.events: list[tuple[float, int, str, int]] = []
        self.now, self.count = 0.0, 0
        self.times: list[float] = []

    def begin(self, seconds: float, what: str, where: int) -> None:
        self.busy.add((what, where))
        self.count += 1
        heapq.heappush(self.events, (self.now + seconds, self.count, what, where))

    def turn(self) -> None:
        chain = self.chain
        if chain.written[0] < self.n and chain.may_push():
            chain.push()
        for i, seconds in enumerate(self.compute):
            if ("compute", i) not in self.busy and chain.may_begin(i):
                chain.begin(i)
                self.begin(seconds, "compute", i)
            if chain.may_release(i):
                chain.release(i)
        for j, seconds in enumerate(self.transfer):
            if ("move", j) not in self.busy and chain.may_deliver(j):
                self.begin(seconds, "move", j)
        if chain.may_pop():
            chain.pop()
            self.times.append(self.now)

    def run(self) -> list[float]:
        """When each item comes out."""
        while len(self.times) < self.n:
            for _ in range(4 * len(self.transfer)):  # until nothing more happens at this moment
                self.turn()
            if self.events:
                self.now, _, what, where = heapq.heappop(self.events)
                self.busy.discard((what, where))
                change = self.chain.finish if what == "compute" else self.chain.deliver
                change(where)
        return self.times


@settings(max_examples=25)
@given(st.data())
def test_measured_period_is_the_predicted_one(data: st.DataObject) -> None:
    stages = data.draw(st.integers(2, 4))
    compute = [float(t) for t in data.draw(st.lists(MS, min_size=stages, max_size=stages))]
    transfer = [float(t) for t in data.draw(st.lists(MS, min_size=stages - 1, max_size=stages - 1))]
    windows = data.draw(st.lists(st.integers(1, 4), min_size=stages - 1, max_size=stages - 1))
    n = 160
    # Source and sink are never in the way.
    times = VirtualChain(compute, transfer, [4, *windows, 4], n).run()
    period = (times[-1] - times[n // 2 - 1]) / (n - n // 2)
    assert period == pytest.approx(predict(compute, transfer, windows)[0].period, rel=0.03)
