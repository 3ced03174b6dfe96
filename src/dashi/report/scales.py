"""Scales of a flow, measured on its recorded energies and spectra: speed, length, eddy turnover, Reynolds number.

    u_rms = sqrt(2 E),  l = 2 pi sum_k E(k) / k / sum_k E(k),  T = l / u_rms,  Re = u_rms l / nu

E is mean(u^2 + v^2) / 2, averaged over all windows and frames, E(k) its spectrum by shells, and l the integral scale. T
is the turnover time of eddies of that size and speed (U. Frisch, Turbulence, Cambridge 1995, ch. 7).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from dashi.errors import DashiError
from dashi.flow.equations import Flow, Kolmogorov
from dashi.flow.evaluation.result import Evaluation
from dashi.flow.grid import Floats, unit


@dataclass(frozen=True)
class Scales:
    """What a flow's own time and length are."""

    speed: float
    """u_rms: the root mean square of |u|."""
    length: float
    """The integral scale l."""

    @property
    def turnover(self) -> float:
        """Flow time of an eddy turnover, l / u_rms."""
        return self.length / self.speed

    def reynolds(self, nu: float) -> float | None:
        """u_rms l / nu; None without viscosity."""
        return self.speed * self.length / nu if nu > 0 else None


def measured_scales(energy: Floats, spectrum: Floats, flow: Flow) -> Scales | None:
    """Scales from energies of any shape and spectra (..., shells), whose shell s is at s 2 pi / L. What is not finite
    is left out; None where nothing moves."""
    energies = np.asarray(energy, np.float64)
    energies = energies[np.isfinite(energies)]
    shells = np.asarray(spectrum, np.float64).reshape(-1, np.shape(spectrum)[-1])
    mean = shells[np.isfinite(shells).all(axis=1)]
    if not energies.size or not mean.size or mean.shape[1] < 2:
        return None
    by_shell = mean.mean(axis=0)[1:]
    total, speed = float(by_shell.sum()), math.sqrt(2 * max(0.0, float(energies.mean())))
    if total <= 0 or speed <= 0 or not math.isfinite(speed):
        return None
    waves = np.arange(1, len(by_shell) + 1) * unit(flow)
    return Scales(speed, 2 * math.pi * float((by_shell / waves).sum()) / total)


def flow_of_evaluation(evaluation: Evaluation) -> Flow | None:
    """The flow that windows were recorded of; None where its parameters are not all known."""
    try:
        return Flow.restore(evaluation.parameters)
    except (DashiError, TypeError, ValueError, OverflowError):
        return None


def evaluated_scales(evaluation: Evaluation) -> Scales | None:
    """Scales of the reference, from energies of all windows and frames and the spectrum of the last frame."""
    flow = flow_of_evaluation(evaluation)
    return None if flow is None else measured_scales(evaluation.energy, evaluation.spectrum, flow)


def forcing_reynolds(flow: Flow) -> float | None:
    """sqrt(F) (L / 2 pi)^(3/2) / nu of a Kolmogorov flow with a force of amplitude F: the number that its literature
    goes by (G. Chandler and R. Kerswell, J. Fluid Mech. 722, 2013, doi 10.1017/jfm.2013.122)."""
    if not isinstance(flow.forcing, Kolmogorov) or flow.nu <= 0:
        return None
    return math.sqrt(abs(flow.forcing.amplitude)) * (flow.length / (2 * math.pi)) ** 1.5 / flow.nu
