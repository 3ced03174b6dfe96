"""Chains on chains: contiguous groups of ops for stages in fixed order, exactly.

The programme of A. Pinar, E. Tabak and C. Aykanat (J. Parallel Distrib. Comput. 68, 2008, doi
10.1016/j.jpdc.2008.05.004) for chains and heterogeneous processors in a fixed order: the bottleneck is one of finitely
many numbers, a dynamic programme says whether each can be kept to, and bisection finds the least. Links, their windows
and the cores of the host count as well. Among assignments with the least bottleneck, a best-first search takes the one
of the least latency, then the fewest bytes over slow links.

A group is (stage, first op, end). Stages before the first group and after the last are left out; those between pass
States through.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Group = tuple[int, int, int]
_ROUNDING: Final = 1 + 1e-12
"""Sums in another order differ by so much at most."""


@dataclass(frozen=True, eq=False)
class ChainProblem:
    """Seconds of n ops in k stages, (n, k), infinite where a rule excludes one; of the links, (k - 1, n + 1), by how
    many ops lie before. `penalties` count for latency alone. `windows` are those of the links, infinite where they are
    to follow from the period. `core_times` and `core_transfers` are what cores of the host are busy. `stays` are ops
    that leave the stage of the op before only where a rule excludes them there, `glued` those that never do. `bytes`
    over links that are slow, as transfers."""

    times: Floats
    penalties: Floats
    transfers: Floats
    windows: Floats
    core_times: Floats
    core_transfers: Floats
    cores: int
    stays: npt.NDArray[np.bool_]
    glued: npt.NDArray[np.bool_]
    slow_bytes: Floats

    @property
    def ops(self) -> int:
        return len(self.times)

    @property
    def stages(self) -> int:
        return self.times.shape[1]


@dataclass(frozen=True)
class ChainSolution:
    """The groups, in order, with the period (windows that follow from it left aside), the latency with its penalties,
    and the bytes over slow links."""

    groups: tuple[Group, ...]
    period: float
    latency: float
    slow_bytes: float


def solve(problem: ChainProblem, latency_limit: float = math.inf) -> ChainSolution | None:
    """The assignment of the least period whose latency is within the limit; of these the one of the least latency, then
    of the fewest bytes. None where no assignment is allowed."""
    return _Solver(problem).best(latency_limit)


def solve_latency(problem: ChainProblem) -> ChainSolution | None:
    """The assignment of the least latency; of these the one of the least period."""
    solver = _Solver(problem)
    least = solver.least(math.inf, solver.latencies)
    return solver.best(least * _ROUNDING) if math.isfinite(least) else None


@dataclass(frozen=True, eq=False)
class _Costs:
    """A sum over stages and links: of the groups, [stage][begin, end], and of the links, [link][ops before]."""

    groups: Floats
    links: Floats


class _Solver:
    def __init__(self, problem: ChainProblem) -> None:
        self.problem = problem
        self.spans = _spans(problem.times)
        self.latencies = _Costs(_spans(problem.times + problem.penalties), problem.transfers)
        self.core = _Costs(
            _spans(np.where(np.isfinite(problem.times), problem.core_times, math.inf)), problem.core_transfers
        )
        busy = np.isfinite(problem.times) & (problem.core_times > 0)
        self.uses_cores = bool(busy.any() or (problem.core_transfers > 0).any())
        n, k = problem.times.shape
        # May a group of stage s end before op b? Not where op b has to stay with the op before it.
        leaves = ~problem.glued[:, None] & ~(problem.stays[:, None] & np.isfinite(problem.times))
        self.leaves = np.concatenate([leaves, np.ones((1, k), np.bool_)])
        self.leaves[0] = True
        self.lengths = n

    # The least period

    def best(self, limit: float) -> ChainSolution | None:
        """See `solve`."""
        period = self._least_period(limit)
        if period is None:
            return None
        core_limit = period * self.problem.cores * _ROUNDING
        path = self._search(period, self.latencies, self.core, core_limit)
        if path is None or path[0] > limit * _ROUNDING:
            return None
        return ChainSolution(path[2], period, path[0], path[1])

    def _least_period(self, limit: float) -> float | None:
        candidates = self._candidates()
        if not len(candidates) or not self._feasible(math.inf, limit):
            return None
        low, high = 0, len(candidates)  # the first that is feasible; beyond the last, cores alone rule
        while low < high:
            middle = (low + high) // 2
            if self._feasible(candidates[middle], limit):
                high = middle
            else:
                low = middle + 1
        bottleneck = candidates[low] if low < len(candidates) else math.inf
        if not self.uses_cores or low == 0:
            return float(bottleneck)
        # Between two candidates the cores may decide.
        below = self._core_seconds(candidates[low - 1], limit) / self.problem.cores
        return float(min(bottleneck, max(below, candidates[low - 1])))

    def _feasible(self, period: float, limit: float) -> bool:
        core_limit = period * self.problem.cores * _ROUNDING if self.uses_cores else math.inf
        largest = float(np.finfo(np.float64).max)
        if self.least(period, self.core) > min(core_limit, largest):
            return False
        if math.isinf(limit):
            return True
        if self.least(period, self.latencies) > limit * _ROUNDING:
            return False
        if math.isinf(core_limit):
            return True
        path = self._search(period, self.latencies, self.core, core_limit)
        return path is not None and path[0] <= limit * _ROUNDING

    def _core_seconds(self, period: float, limit: float) -> float:
        """The least that the cores of the host are busy within a bottleneck and a latency."""
        if math.isinf(limit):
            return self.least(period, self.core)
        path = self._search(period, self.core, self.latencies, limit * _ROUNDING)
        return math.inf if path is None else path[0]

    def _candidates(self) -> Floats:
        """What the bottleneck can be: the time of a group or a link, or of two groups and a link in a window."""
        n, windows = self.lengths, self.problem.windows
        parts = [self.spans[np.isfinite(self.spans) & (self.spans > 0)], self.problem.transfers.ravel(), np.zeros(1)]
        for link in np.flatnonzero(np.isfinite(windows)):
            x, before, after = self.problem.transfers[link], self.spans[link], self.spans[link + 1]
            for b in range(n + 1):
                ahead = np.append(before[:b, b], 0.0)
                behind = np.append(after[b, b + 1 :], 0.0)
                total = (ahead[:, None] + x[b] + behind) / windows[link]
                parts.append(total[np.isfinite(total)])
        least = float(self.problem.times.min(axis=1).max(initial=0.0))
        values = np.unique(np.concatenate(parts))
        return values[np.isfinite(values) & (values >= least / _ROUNDING)]

    # The dynamic programme

    def least(self, period: float, costs: _Costs) -> float:
        """The least sum of an assignment within a bottleneck."""
        return self._start(self._to_go(period, costs), period, costs)

    def _start(self, to_go: list[Floats], period: float, costs: _Costs) -> float:
        n = self.lengths
        fits = [
            np.where(self.spans[s][0] <= period, costs.groups[s][0] + to_go[s][0], math.inf)[1:]
            for s in range(len(to_go))
        ]
        return float(np.min(fits)) if n else 0.0

    def _to_go(self, period: float, costs: _Costs) -> list[Floats]:
        """By stage: for a group [begin, end] there, the least sum of all that comes after it."""
        n, k = self.problem.times.shape
        to_go = [np.full((n + 1, n + 1), math.inf) for _ in range(k)]
        for s in reversed(range(k)):
            to_go[s][:, n] = 0.0
            for after in range(s + 1, k):
                following = np.where(self.spans[after] <= period, costs.groups[after] + to_go[after], math.inf)
                if after == s + 1:
                    value = self._through_window(s, period, following)
                else:
                    value = self._through_empty(s, after, period, following)
                value = value + costs.links[s:after].sum(axis=0)
                value[:, ~self.leaves[:, s]] = math.inf
                to_go[s][:, :n] = np.minimum(to_go[s][:, :n], value[:, :n])
        return to_go

    def _through_window(self, s: int, period: float, following: Floats) -> Floats:
        """The least over the ends of the next group, [begin, end] of this one."""
        transfers, window = self.problem.transfers[s], self.problem.windows[s]
        if math.isinf(window):
            return np.where(transfers <= period, following.min(axis=1), math.inf) + np.zeros((len(transfers), 1))
        # The longer the next group, the more of the window it takes: those that fit are the first few ends.
        room = np.where(transfers <= period, period * window * _ROUNDING - transfers, -math.inf)
        value = np.full_like(following, math.inf)
        for cut in range(1, len(transfers) - 1):
            ends = self.spans[s + 1][cut, cut + 1 :]
            own = self.spans[s][:cut, cut]
            left = np.where(np.isinf(own), -math.inf, room[cut] - np.where(np.isinf(own), 0.0, own))
            fitting: npt.NDArray[np.int64] = np.searchsorted(ends, left, side="right").astype(np.int64)
            best = np.minimum.accumulate(following[cut, cut + 1 :])
            value[:cut, cut] = np.where(fitting > 0, best[fitting - 1], math.inf)
        return value

    def _through_empty(self, s: int, after: int, period: float, following: Floats) -> Floats:
        """The least over the ends of the next group, across stages that have none."""
        transfers, windows = self.problem.transfers, self.problem.windows
        crossed = transfers[s:after]
        passes = (crossed <= period).all(axis=0) & (crossed <= period * windows[s:after, None] * _ROUNDING).all(axis=0)
        ahead = self.spans[s] + transfers[s] <= period * windows[s] * _ROUNDING
        last = after - 1
        behind = self.spans[after] + transfers[last][:, None] <= period * windows[last] * _ROUNDING
        least = np.where(behind, following, math.inf).min(axis=1)
        return np.where(ahead & passes, least, math.inf)

    # The best-first search

    def _search(
        self, period: float, costs: _Costs, bounded: _Costs, bound: float
    ) -> tuple[float, float, tuple[Group, ...]] | None:
        """The groups of the least sum within a bottleneck whose other sum is within a bound: (sum, bytes, groups)."""
        to_go, other_to_go = self._to_go(period, costs), self._to_go(period, bounded)
        heap: list[tuple[float, float, float, float, tuple[Group, ...]]] = []
        visited: dict[Group, list[tuple[float, float, float]]] = {}

        def push(total: float, other: float, moved: float, groups: tuple[Group, ...]) -> None:
            s, a, b = groups[-1]
            ahead = total + to_go[s][a, b]
            if not math.isfinite(ahead) or other + other_to_go[s][a, b] > bound:
                return
            labels = visited.setdefault(groups[-1], [])
            if not any(x <= total and y <= other and z <= moved for x, y, z in labels):
                labels.append((total, other, moved))
                heapq.heappush(heap, (ahead, moved, total, other, groups))

        for s in range(self.problem.stages):
            for b in range(1, self.lengths + 1):
                if self.spans[s][0, b] <= period:
                    push(float(costs.groups[s][0, b]), float(bounded.groups[s][0, b]), 0.0, ((s, 0, b),))
        while heap:
            _, moved, total, other, groups = heapq.heappop(heap)
            s, a, b = groups[-1]
            if b == self.lengths:
                return total, moved, groups
            for after, end in self._next(period, s, a, b):
                push(
                    total + float(costs.links[s:after, b].sum() + costs.groups[after][b, end]),
                    other + float(bounded.links[s:after, b].sum() + bounded.groups[after][b, end]),
                    moved + float(self.problem.slow_bytes[s:after, b].sum()),
                    (*groups, (after, b, end)),
                )
        return None

    def _next(self, period: float, s: int, a: int, b: int) -> Iterator[tuple[int, int]]:
        """The groups (stage, end) that may follow a group."""
        if not self.leaves[b, s]:
            return
        transfers, windows = self.problem.transfers, self.problem.windows
        for after in range(s + 1, self.problem.stages):
            if transfers[after - 1, b] > period:
                return
            for end in range(b + 1, self.lengths + 1):
                span = self.spans[after][b, end]
                if span <= period and self._window_holds(period, windows, (s, after), (self.spans[s][a, b], span), b):
                    yield after, end

    def _window_holds(
        self, period: float, windows: Floats, between: tuple[int, int], spans: tuple[float, float], cut: int
    ) -> bool:
        first, after = between
        for link in range(first, after):
            held = self.problem.transfers[link, cut]
            held += spans[0] if link == first else 0.0
            held += spans[1] if link == after - 1 else 0.0
            if held > period * windows[link] * _ROUNDING:
                return False
        return True


def _spans(times: Floats) -> Floats:
    """Sums over contiguous ops, [stage][begin, end]: infinite where one of them is excluded, and where begin >= end."""
    n, k = times.shape
    total = np.zeros((k, n + 1))
    count = np.zeros((k, n + 1), np.int64)
    finite = np.isfinite(times)
    total[:, 1:] = np.cumsum(np.where(finite, times, 0.0), axis=0).T
    count[:, 1:] = np.cumsum(~finite, axis=0).T
    spans = total[:, None, :] - total[:, :, None]
    excluded = count[:, None, :] > count[:, :, None]
    places = np.arange(n + 1, dtype=np.int64)
    return np.where(excluded | (places[:, None] >= places), math.inf, np.maximum(spans, 0.0))
