"""The rollout of `dashi demo`: its operator, its initial state, and what of it is shown."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import numpy as np

from dashi.cli.stopping import until_stopped
from dashi.core.operators.affine import Linear
from dashi.core.rollouts.rollout import rollout
from dashi.core.rollouts.run import Run
from dashi.runtime.device import Device
from dashi.types import Array as HostArray

CHUNK: Final = 100
"""Steps after which the state is hashed."""

TRACE: Final = 384
"""Steps whose states are kept for the picture."""


@dataclass(frozen=True, eq=False)
class Track:
    """What a rollout leaves behind; `states` and `norms` only where they were asked for."""

    run: Run
    operator: Linear
    states: HostArray
    norms: tuple[float, ...]
    interrupted: bool
    """Whether Ctrl-C came, though perhaps too late to leave a step out."""

    @property
    def us_per_step(self) -> float:
        return self.run.seconds / max(1, self.run.steps) * 1e6

    @property
    def stopped(self) -> bool:
        """Whether nothing more is to be done."""
        return self.run.stopped or self.interrupted


def operator(n: int) -> HostArray:
    """An orthogonal matrix, rounded to fp32: a wave in a ring of n sites.

    Every pair (0, 1), (2, 3), ... is rotated by the angle whose cosine is 3/5, then every pair (1, 2), ... (n-1, 0).
    Only products and sums of doubles make it, so it has the same bits on every machine.
    """
    matrix = np.eye(n)
    for first in (0, 1):
        left, right = np.arange(first, n, 2), np.arange(first + 1, n + 1, 2) % n
        a, b = matrix[:, left].copy(), matrix[:, right].copy()
        matrix[:, left] = 0.6 * a - 0.8 * b
        matrix[:, right] = 0.8 * a + 0.6 * b
    return matrix.astype(np.float32)


def start(n: int) -> HostArray:
    """Two smooth bumps of different widths."""
    site = np.arange(n, dtype=np.float64)
    wide, narrow = (site - n // 4) / 6.0, (site - 2 * n // 3) / 2.5
    return (1.0 / (1.0 + wide * wide) ** 2 - 0.6 / (1.0 + narrow * narrow) ** 2).astype(np.float32)


def roll_out(device: Device, n: int, steps: int, advance: Callable[[int], None], *, keep: bool = False) -> Track:
    """Steps of z' = z A; the state is hashed after every CHUNK steps. Ctrl-C ends it, and what was finished is kept."""
    wave, z0 = Linear(operator(n)), start(n)
    norms: list[float] = []
    states: list[Any] = [z0]
    if keep:
        # The picture shows single steps; they are computed apart, outside the measured run.
        count = min(steps, TRACE)
        rollout(wave, z0, count, device=device, keep_every=1, keep=lambda run: states.append(run.state[0]))
    # Makes the pipelines, which is not measured.
    rollout(wave, z0, min(steps, CHUNK), device=device, hash_every=CHUNK)
    work = partial(
        rollout,
        wave,
        z0,
        steps,
        device=device,
        hash_every=CHUNK,
        keep_every=CHUNK if keep else 0,
        keep=lambda run: norms.append(_norm(run.state)),
        progress=advance,
    )
    run, interrupted = until_stopped(work)
    return Track(run, wave, np.array(states), tuple(norms), interrupted)


def _norm(values: HostArray) -> float:
    wide = values.astype(np.float64)
    return float(np.sqrt(np.sum(wide * wide)))
