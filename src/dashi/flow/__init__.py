"""The flow lane: the spectral reference solver of two-dimensional incompressible flow, and what is seen of it.

`simulate`, `fit`, `evaluate` and `follow` are whole jobs: they place a device, run, and leave a folder of files. The
solver alone is `dashi.flow.simulation.simulate`.
"""

from typing import TYPE_CHECKING

from dashi.flow.equations import Flow, Kolmogorov, Stochastic
from dashi.flow.grid import to_field, to_modes
from dashi.flow.initial import ensemble, from_field
from dashi.flow.stepper import stepper
from dashi.flow.windows import Windows, windows_from_dataset, windows_from_run, windows_of

if TYPE_CHECKING:
    from dashi.lab.front import evaluate as evaluate
    from dashi.lab.front import fit as fit
    from dashi.lab.front import follow as follow
    from dashi.lab.front import simulate as simulate

__all__ = [
    "Flow",
    "Kolmogorov",
    "Stochastic",
    "Windows",
    "ensemble",
    "evaluate",
    "fit",
    "follow",
    "from_field",
    "simulate",
    "stepper",
    "to_field",
    "to_modes",
    "windows_from_dataset",
    "windows_from_run",
    "windows_of",
]
_JOBS = ("evaluate", "fit", "follow", "simulate")

if not TYPE_CHECKING:  # to a type checker a name that is not imported above is a mistake

    def __getattr__(name: str) -> object:
        if name not in _JOBS:
            from dashi._lazy import below

            return below(__name__, name)
        from dashi.lab import front

        return getattr(front, name)


def __dir__() -> list[str]:
    return sorted([*globals(), *_JOBS])
