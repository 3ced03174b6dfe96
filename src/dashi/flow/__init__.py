"""The flow lane: the spectral reference solver of two-dimensional incompressible flow, and what is seen of it."""

from dashi.flow.equations import Flow, Kolmogorov, Stochastic
from dashi.flow.grid import to_field, to_modes
from dashi.flow.initial import ensemble, from_field
from dashi.flow.simulation import simulate
from dashi.flow.stepper import stepper
from dashi.flow.windows import Windows, windows_from_dataset, windows_from_run, windows_of

__all__ = [
    "Flow",
    "Kolmogorov",
    "Stochastic",
    "Windows",
    "ensemble",
    "from_field",
    "simulate",
    "stepper",
    "to_field",
    "to_modes",
    "windows_from_dataset",
    "windows_from_run",
    "windows_of",
]
