"""The flow lane: the spectral reference solver of two-dimensional incompressible flow, and what is seen of it."""

from dashi.flow.equations import Flow, Kolmogorov, Stochastic
from dashi.flow.grid import to_field, to_modes
from dashi.flow.initial import ensemble, from_field
from dashi.flow.simulate import Every, Simulation, simulate
from dashi.flow.stepper import stepper

__all__ = [
    "Every",
    "Flow",
    "Kolmogorov",
    "Simulation",
    "Stochastic",
    "ensemble",
    "from_field",
    "simulate",
    "stepper",
    "to_field",
    "to_modes",
]
