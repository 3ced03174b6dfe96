"""What the main job does: the flow, its seeds and windows, the proxy, the models."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from dashi.flow.equations import Flow, Kolmogorov
from dashi.flow.proxy.schema import Schema


@dataclass(frozen=True)
class DemoSetting:
    """All that decides the main job. Times are in units of the flow; every seed gives `windows` windows, one after
    another, so that the last one has a past."""

    flow: Flow
    k_cut: float
    spin_up: float
    window: float
    interval: int
    """Steps between frames."""
    windows: int = 2
    train: tuple[int, ...] = (1, 2)
    validation: tuple[int, ...] = (3,)
    test: tuple[int, ...] = (4, 5)
    models: tuple[str, ...] = ("galerkin", "truncation", "ridge", "damped", "persistence", "perfect")
    ours: str = "galerkin"
    certified: int = 320
    """Steps that are certified on the NumPy device, whose portable kernels are slow."""
    checked: int = 320
    """Steps that NumPy repeats."""
    words: tuple[str, ...] = ()
    """The words that choose it on the command line."""

    @property
    def form(self) -> str:
        """The name of this setting in run folders."""
        return " ".join(self.words) or "full"

    @property
    def seeds(self) -> tuple[int, ...]:
        """Seeds to train, to choose and to judge, in this order."""
        return (*self.train, *self.validation, *self.test)

    @property
    def schema(self) -> Schema:
        return Schema(self.flow.n, self.k_cut, length=self.flow.length)

    @property
    def steps(self) -> int:
        """Steps of a window: whole frames."""
        return round(self.window / self.flow.dt / self.interval) * self.interval

    @property
    def spin_up_steps(self) -> int:
        return round(self.spin_up / self.flow.dt)


FULL: Final = DemoSetting(
    Flow(64, nu=5e-3, dt=0.0125, drag=0.1, forcing=Kolmogorov(4, 1.0), scheme="etdrk4"),
    k_cut=8, spin_up=12.0, window=8.0, interval=8,
)  # fmt: skip
"""A Kolmogorov flow at a resolution that two processor cores simulate in seconds."""
QUICK: Final = DemoSetting(
    Flow(32, nu=1e-2, dt=0.02, drag=0.1, forcing=Kolmogorov(4, 1.0), scheme="etdrk4"),
    k_cut=5, spin_up=4.0, window=2.0, interval=5, certified=40, checked=20, words=("--quick",),
)  # fmt: skip
"""A smaller flow, to see that everything works: too short to say much about skill."""
