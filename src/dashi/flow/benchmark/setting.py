"""The setting of D. Kochkov and others, Proc. Natl. Acad. Sci. 118, 2021, doi 10.1073/pnas.2101784118: a Kolmogorov
flow at nu 1e-3 in a box of 2 pi, forced by sin(4 y) on the velocity along x, with a drag of 0.1.

Starts are random below wave number 4 or so, their largest speed is 7, and 40 units of time pass before anything counts.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from dashi.errors import InputError, suggestion
from dashi.flow._host_fft import Transforms
from dashi.flow.equations import Flow, Kolmogorov
from dashi.flow.grid import Floats, waves
from dashi.flow.initial import ensemble

THRESHOLDS: Final = (0.95, 0.8, 0.5)
_SPEED_GRID: Final = 64
"""Points along each side where the largest speed of a start is looked for."""


@dataclass(frozen=True)
class BenchmarkSetting:
    """All that decides the truth and who takes part. Times are in units of the flow."""

    name: str
    n: int
    """Points of the truth along each side."""
    coarse: int
    """Points along each side of the vorticity that is compared, and coarse^2 numbers are the most of a state."""
    dt: float
    nu: float
    wavenumber: int
    spin_up: float
    length: float
    frame: float
    seeds: tuple[int, ...]
    train_n: int
    train_seeds: tuple[int, ...]
    validation_seeds: tuple[int, ...]
    train_length: float
    k_cut: float
    solvers: tuple[int, ...]
    """Grids of the solver itself, started from the coarse field."""
    models: Mapping[str, Mapping[str, Any]]
    """Models that are fitted, with their options."""
    truth_hash: str = ""
    """Hash of the last states of the truth; empty where no one has made it yet."""

    def flow(self, n: int) -> Flow:
        """The flow on a grid of n x n points, with as long a step as its largest speeds allow."""
        longest = self.dt * self.n / n
        steps = max(1, math.ceil(self.frame / min(longest, 0.02) - 1e-9))
        dt = self.dt if n == self.n else self.frame / steps
        force = Kolmogorov(self.wavenumber)
        return Flow(n=n, nu=self.nu, dt=dt, drag=0.1, forcing=force, scheme="etdrk4")

    @property
    def frames(self) -> int:
        """Frames after the start."""
        return round(self.length / self.frame)

    @property
    def start_n(self) -> int:
        """Points along each side of the fields that models start from: they hold all modes up to k_cut."""
        return max(2 * self.coarse, 4 * math.ceil(self.k_cut))

    @property
    def document(self) -> dict[str, Any]:
        """What decides the truth, as plain numbers."""
        return {
            "name": self.name, "n": self.n, "coarse": self.coarse, "dt": self.dt, "nu": self.nu, "drag": 0.1,
            "wavenumber": self.wavenumber, "spin_up": self.spin_up, "length": self.length, "frame": self.frame,
            "start_n": self.start_n,
        }  # fmt: skip


FULL: Final = BenchmarkSetting(
    name="full", n=1024, coarse=64, dt=1e-3, nu=1e-3, wavenumber=4, spin_up=40.0, length=15.0, frame=0.1,
    seeds=tuple(range(7501, 7517)), train_n=512, train_seeds=tuple(range(1, 7)), validation_seeds=(7, 8),
    train_length=15.0, k_cut=36.0, solvers=(64, 128, 256, 512),
    models={"truncation": {}, "galerkin": {}, "slaved": {}},
)  # fmt: skip
"""The published size: 16 trajectories, a state of 64^2 numbers at most. Work for a GPU."""
QUICK: Final = BenchmarkSetting(
    name="quick", n=64, coarse=16, dt=0.0125, nu=8e-3, wavenumber=2, spin_up=2.0, length=4.0, frame=0.1,
    seeds=(7601, 7602), train_n=64, train_seeds=(1, 2), validation_seeds=(3,), train_length=4.0, k_cut=7.0,
    solvers=(16, 32), models={"truncation": {}, "galerkin": {}}, truth_hash="1dbfd7f439d01abb8f9a090b2c032064",
)  # fmt: skip
"""Small, easy and few: it shows that all of it runs, and its numbers mean nothing."""
SETTINGS: Final = {setting.name: setting for setting in (FULL, QUICK)}


def setting_named(name: str) -> BenchmarkSetting:
    """A setting by its name. Raises InputError."""
    if name not in SETTINGS:
        raise InputError(
            f"there is no setting {name!r}.", f"{suggestion(name, SETTINGS)}use one of {', '.join(SETTINGS)}."
        )
    return SETTINGS[name]


@dataclass(frozen=True)
class Published:
    """Times that the paper's figures show, digitised from the authors' notebook: of another truth (finite volumes at
    2048^2), so to be read beside ours, not against them."""

    name: str
    numbers: int
    times: Mapping[float, float]


PUBLISHED: Final = (
    Published("finite volumes, 64^2", 2 * 64**2, {0.95: 1.2, 0.8: 2.7}),
    Published("finite volumes, 128^2", 2 * 128**2, {0.95: 2.3, 0.8: 3.9}),
    Published("finite volumes, 256^2", 2 * 256**2, {0.95: 3.5, 0.8: 5.2}),
    Published("finite volumes, 1024^2", 2 * 1024**2, {0.95: 6.65, 0.8: 8.56, 0.5: 10.83}),
    Published("learned interpolation, 64^2", 2 * 64**2, {0.95: 6.0, 0.8: 7.91, 0.5: 10.01}),
)
"""A state of these is two velocities on the grid."""
LARGEST_SPEED: Final = 7.0
PEAK: Final = 4.0


def starts(setting: BenchmarkSetting) -> Floats:
    """States of the truth at time 0, one for each seed."""
    flow = setting.flow(setting.n)
    states = ensemble(flow, "random", setting.seeds, peak=PEAK)
    # A grid that every size shares, and a rounded factor: the same bits whichever transforms a machine has.
    small = ensemble(Flow(_SPEED_GRID, length=flow.length, dtype="float64"), "random", setting.seeds, peak=PEAK)
    factors = np.round(LARGEST_SPEED / largest_speeds(small), 3).astype(flow.numpy_dtype)
    return states * factors[:, None, None, None]


def largest_speeds(states: Floats) -> Floats:
    """The largest speed of each state (m, n, n/2 + 1, 2), on its own points."""
    n = states.shape[1]
    wave_x, wave_y, inverse = waves(Flow(n))
    modes = (states[..., 0] + 1j * states[..., 1]) * float(n * n)
    x, y = wave_x[None, :], wave_y[:, None]
    u, v = Transforms(n).back(np.stack([1j * y * inverse * modes, -1j * x * inverse * modes]))
    return np.sqrt((u * u + v * v).max(axis=(-2, -1)))
