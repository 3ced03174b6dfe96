"""Training of the slaved closure through its own rollouts: short ones from frames of the training windows, their
correlation with what followed, and its gradient in every table, by the adjoint of every stage.

The discrete adjoint is written out (A. Griewank and A. Walther, Evaluating Derivatives, 2nd ed., 2008,
ch. 3), the descent is Adam (D. Kingma and J. Ba, 2015, arXiv 1412.6980). That closures must be trained through
rollouts, and not on the missing tendency alone: H. Frezat and others, J. Adv. Model. Earth Syst. 14, 2022, doi
10.1029/2022MS003124.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Final, Protocol

import numpy as np

from dashi.flow import grid
from dashi.flow._schemes import Tableau
from dashi.flow.equations import Flow
from dashi.flow.grid import Floats
from dashi.flow.proxy.closure._energy import THETA
from dashi.flow.proxy.closure._host import Chain, Stack, TableGradients, Tape
from dashi.flow.proxy.closure._plan import Phase, TrainingSchedule
from dashi.flow.proxy.closure._tables import Band, Closure
from dashi.flow.proxy.galerkin import _terms as terms

Complex = Any
COURANT: Final = 2.5
"""u_max k_max dt of the steps of training, which may be longer than the flow's own: RK4 is stable up to 2.8."""
DECAYS: Final = (0.9, 0.99)
MOST_BYTES: Final = 1 << 29
"""What rollouts may leave behind for the adjoint, on a processor; more members go one after another."""
LONGEST: Final = 0.1
"""Gradients longer than this are shortened: rollouts are chaotic."""


@dataclass(frozen=True, eq=False)
class TrainingSetup:
    """What rollouts of training share: steps between frames, as long as is safe, tables of their time scheme, and the
    share of the viscous dissipation that the closure may feed back (None: whatever it does)."""

    flow: Flow
    band: Band
    steps: int
    tableau: Tableau
    theta: float | None = THETA

    @property
    def allowance(self) -> float | None:
        """theta nu."""
        return None if self.theta is None else self.theta * self.flow.nu

    @classmethod
    def of(
        cls, flow: Flow, band: Band, frame: float, fastest: float, theta: float | None = THETA
    ) -> TrainingSetup:  # fmt: skip
        """`frame` is the time between frames, `fastest` about the largest speed."""
        modes = band.schema.modes
        largest = float(np.sqrt((modes**2).sum(axis=1).max())) * grid.unit(flow)
        steps = max(1, min(round(frame / flow.dt), math.ceil(frame * fastest * largest / COURANT)))
        longer = replace(flow, dt=frame / steps)
        return cls(longer, band, steps, terms.mode_tables(longer, modes, np.zeros(len(modes), flow.numpy_dtype)), theta)


class ClosureLoss:
    """1 - correlation of rollouts of a closure with the frames that followed, and its gradient, by a library's
    transforms; `dashi.flow.proxy.closure._device_loss` computes it by kernels."""

    def __init__(self, setup: TrainingSetup) -> None:
        self._chain = Chain(setup.band, setup.flow.numpy_dtype)
        self._steps, self._stages, self._allowance = setup.steps, setup.tableau.stages, setup.allowance
        self._tables = {name: self._chain.on_grid(table) for name, table in setup.tableau.tables.items()}
        force = terms.force_of(setup.flow, setup.band.schema.modes)
        self._force = self._chain.enter(force.reshape(1, -1))[0]

    def __call__(self, closure: Closure, z: Floats) -> tuple[float, Closure]:
        """Loss of modes (members, frames + 1, 2 K), a mean over members and frames, and its gradient in every table."""
        stack, total = Stack(self._chain, closure, self._allowance), TableGradients(self._chain, closure.depth)
        # Every advection leaves four fields behind.
        left = 4 * self._chain.n**2 * z.itemsize * (closure.depth + 1) * len(self._stages) * self._steps * z.shape[1]
        parts = np.array_split(z, min(len(z), -(-len(z) * left // MOST_BYTES)))
        loss = sum(self._through(stack, part, len(part) / len(z), total) for part in parts)
        return loss, total.of_modes()

    def _through(self, stack: Stack, z: Floats, share: float, total: TableGradients) -> float:
        """The loss of some of the members, weighted by their share; gradients are added to `total`."""
        chain, frames = self._chain, z.shape[1] - 1
        now, tapes = chain.enter(z[:, 0]), list[list[Tape]]()
        states = np.empty_like(z[:, 1:])
        for j in range(frames):
            for _ in range(self._steps):
                now, tape = self._step(stack, now)
                tapes.append(tape)
            states[:, j] = chain.leave(now)
        loss, state_gradient = correlation_loss(states, z[:, 1:])
        adjoint = np.zeros_like(now)
        for j in reversed(range(frames)):
            adjoint = adjoint + chain.enter(share * state_gradient[:, j])
            for _ in range(self._steps):
                adjoint = self._back(stack, tapes.pop(), adjoint, total)
        return share * loss

    def close(self) -> None:
        """Nothing to free."""

    def _step(self, stack: Stack, state: Complex) -> tuple[Complex, list[Tape]]:
        known, now, tapes = [state], state, list[Tape]()
        for stage in self._stages:
            tendency, tape = stack.tendency(now)
            known.append(tendency + self._force)
            tapes.append(tape)
            now = _added([self._tables[name] * known[j] for j, name in stage.terms])
        return now, tapes

    def _back(self, stack: Stack, tapes: list[Tape], adjoint: Complex, total: TableGradients) -> Complex:
        known_adjoints = [np.zeros_like(adjoint) for _ in range(len(self._stages) + 1)]
        for number in range(len(self._stages), 0, -1):
            for j, name in self._stages[number - 1].terms:
                known_adjoints[j] += self._tables[name] * adjoint
            adjoint = stack.back(tapes[number - 1], known_adjoints[number], total)
        return known_adjoints[0] + adjoint


def correlation_loss(states: Floats, reference: Floats) -> tuple[float, Floats]:
    """1 - correlation of modes (members, frames, 2 K), its mean, and its gradient in the states: the field g of which
    the change is the mean of g times that of the states, over the box."""
    a, b = (np.asarray(values, np.float64) for values in (states, reference))
    size, other, both = (2 * np.einsum("mfk,mfk->mf", x, y) for x, y in ((a, a), (b, b), (a, b)))
    scale = 1 / np.sqrt(np.maximum(size * other, np.finfo(np.float64).tiny))
    found: Floats = both * scale
    pull = scale[..., None] * b - (found / np.maximum(size, np.finfo(np.float64).tiny))[..., None] * a
    return float(np.mean(1 - found)), -pull / found.size


class SearchedNumbers(Protocol):
    """What a search asks of the numbers that stand for a closure."""

    size: int

    def start(self, lift_time: float, /) -> Floats: ...

    def unpack(self, numbers: Floats, kind: Any = ...) -> Closure: ...

    def gradient(self, table_gradients: Closure) -> Floats: ...


class AnyLoss(Protocol):
    """What training asks of a loss."""

    def __call__(self, closure: Closure, z: Floats) -> tuple[float, Closure]: ...

    def close(self) -> None: ...


def descend(
    losses: Callable[[int], AnyLoss], parameters: SearchedNumbers, plan: TrainingSchedule, z: Floats,
    check: Callable[[Closure], float], progress: Callable[[int], None],
) -> tuple[Closure, float]:  # fmt: skip
    """The closure that did best in `check` (the last one of equals), and its loss. `losses` makes the loss of rollouts
    of so many frames; z are the modes of the training windows, (windows, frames, 2 K); `progress` is called with 1
    after every iteration."""
    search = Search(parameters, plan, z, check, progress)
    for phase in plan.phases(z.shape[1] - 1):
        loss = losses(phase.frames)
        try:
            search.descend(loss, phase)
        finally:
            loss.close()
    return search.best, search.loss


class Search:
    """The numbers of a closure on their way down, and the best of those that were checked."""

    def __init__(
        self, parameters: SearchedNumbers, plan: TrainingSchedule, z: Floats, check: Callable[[Closure], float],
        progress: Callable[[int], None],
    ) -> None:  # fmt: skip
        self._parameters, self._plan, self._z, self._check, self._progress = parameters, plan, z, check, progress
        self._draw = np.random.default_rng(plan.seed)
        self._numbers, self._score = parameters.start(plan.lift_time), -math.inf
        self.best, self.loss = parameters.unpack(self._numbers, z.dtype), math.nan

    def descend(self, loss: AnyLoss, phase: Phase) -> None:
        """All iterations of a phase; running means start anew."""
        means, every = np.zeros((2, self._parameters.size)), math.ceil(phase.iterations / self._plan.checks)
        self.loss = math.nan
        for turn in range(1, phase.iterations + 1):
            now = self._parameters.unpack(self._numbers, self._z.dtype)
            with np.errstate(all="ignore"):
                value, table_gradients = loss(now, self._batch(phase.frames))
                gradient = self._parameters.gradient(table_gradients)
            self.loss = value if math.isnan(self.loss) else 0.95 * self.loss + 0.05 * value
            self._numbers = self._numbers - phase.rate_at(turn) * _descent(gradient, means, turn)
            self._progress(1)
            if turn % every == 0 or turn == phase.iterations:
                self._keep()

    def _batch(self, frames: int) -> Floats:
        z, many = self._z, self._plan.batch
        window, first = self._draw.integers(len(z), size=many), self._draw.integers(z.shape[1] - frames, size=many)
        return np.stack([z[w, f : f + frames + 1] for w, f in zip(window, first, strict=True)])

    def _keep(self) -> None:
        tried = self._parameters.unpack(self._numbers, self._z.dtype)
        score = self._check(tried)
        if score >= self._score:
            self.best, self._score = tried, score


def _descent(gradient: Floats, means: Floats, turn: int) -> Floats:
    """Adam's direction; its running means are changed. A gradient that is not finite counts as 0."""
    size = float(np.sqrt((gradient * gradient).sum()))
    gradient = gradient * min(1.0, LONGEST / max(size, LONGEST)) if math.isfinite(size) else np.zeros_like(gradient)
    decay = np.array(DECAYS)[:, None]
    means[:] = decay * means + (1 - decay) * np.stack([gradient, gradient * gradient])
    first, second = means / (1 - decay**turn)
    return first / (np.sqrt(second) + 1e-8)


def _added(parts: list[Complex]) -> Complex:
    total = parts[0]
    for part in parts[1:]:
        total += part
    return total
