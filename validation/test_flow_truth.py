"""The solver against what is known of flows: exact solutions, invariants, and laws of vortices.

A doubly periodic box changes two laws. Vorticity has mean 0 there, so a patch of circulation G in a box of area A lives
in a background of vorticity -G/A, which turns everything by -G/(2A). And the images of a dipole slow it down by the
factor 1 - pi R^2 / A.
"""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest

from dashi.flow import grid, initial
from dashi.flow.equations import Flow

Floats = Any


def field(states: Floats) -> Floats:
    return grid.to_field(states[0])


@pytest.mark.parametrize("scheme", ["rk4", "heun", "etdrk4"])
def test_taylor_green_decays_to_rounding(solver: Any, scheme: Any) -> None:
    flow = Flow(n=64, nu=0.01, dt=0.01, scheme=scheme, dtype="float64")
    start = initial.ensemble(flow, "taylor-green", [0], wavenumber=2)
    run = solver.run(flow, start, 100)
    exact = field(start) * math.exp(-2 * flow.nu * 4 * run.time)
    assert np.abs(field(run.state) - exact).max() <= 1e-12


def test_without_viscosity_energy_and_enstrophy_stay(solver: Any) -> None:
    flow = Flow(n=128, nu=0.0, dt=0.0025, dtype="float64")
    run = solver.run(flow, initial.ensemble(flow, "random", [0]), 400, look=100)
    first, last = run.records["diagnostics"][0], run.records["diagnostics"][-1]
    assert abs(last.energy[0] / first.energy[0] - 1) <= 1e-6
    assert abs(last.enstrophy[0] / first.enstrophy[0] - 1) <= 1e-5


def test_a_viscous_vortex_widens_as_lamb_and_oseen_say(solver: Any) -> None:
    flow = Flow(n=128, nu=5e-3, dt=0.01, dtype="float64")
    circulation, core = 1.0, 0.3
    start = initial.ensemble(flow, "lamb-oseen", [0], circulation=circulation, core=core)
    run = solver.run(flow, start, 400)
    width = core**2 + 4 * flow.nu * run.time
    background = circulation / flow.length**2
    found = field(run.state).max() + background
    # The images strain the vortex a little; what is left of the law's error is theirs.
    assert found == pytest.approx(circulation / (math.pi * width), rel=2e-3)


def moments(w: Floats, flow: Flow) -> tuple[Floats, float]:
    """The centre of positive vorticity above a tenth of its largest, and the angle of its long axis."""
    line = np.arange(flow.n) * flow.dx
    inside = np.where(w > 0.1 * w.max(), w, 0.0)
    total = inside.sum()
    x, y = (inside * line[None, :]).sum() / total, (inside * line[:, None]).sum() / total
    dx, dy = line[None, :] - x, line[:, None] - y
    xx, yy, xy = ((inside * m).sum() for m in (dx * dx, dy * dy, dx * dy))
    return np.array([x, y]), 0.5 * math.atan2(2 * xy, xx - yy)


def test_an_elliptical_patch_turns_as_kirchhoff_says(solver: Any) -> None:
    flow = Flow(n=256, nu=0.0, dt=0.01, dtype="float64", drag=0.0)
    a, b, vorticity = 0.6, 0.4, 2.0
    start = initial.ensemble(flow, "ellipse", [0], a=a, b=b, vorticity=vorticity)
    angles: list[float] = []

    def note(run: Any, fields: Any) -> None:
        angles.append(moments(fields["vorticity"][0], flow)[1])

    run = solver.run(flow, start, 200, frame=note, frame_every=20)
    turned = np.unwrap(np.array(angles) * 2) / 2
    rate = np.polyfit(np.linspace(0, run.time, len(turned)), turned, 1)[0]
    circulation = math.pi * a * b * vorticity
    expected = vorticity * a * b / (a + b) ** 2 - circulation / (2 * flow.length**2)
    assert rate == pytest.approx(expected, rel=0.01)


def test_a_dipole_moves_as_lamb_and_chaplygin_say(solver: Any) -> None:
    flow = Flow(n=256, nu=0.0, dt=0.004, dtype="float64")
    radius, speed = flow.length / 12, 1.0
    start = initial.ensemble(flow, "lamb-dipole", [0], radius=radius, speed=speed)
    places: list[float] = []

    def note(run: Any, fields: Any) -> None:
        places.append(float(moments(fields["vorticity"][0], flow)[0][0]))

    run = solver.run(flow, start, 200, frame=note, frame_every=20)
    found = np.polyfit(np.linspace(0, run.time, len(places)), places, 1)[0]
    expected = speed * (1 - math.pi * radius**2 / flow.length**2)
    assert found == pytest.approx(expected, rel=0.005)


@pytest.mark.parametrize(("scheme", "order"), [("rk4", 4), ("heun", 2), ("etdrk4", 4)])
def test_each_scheme_has_its_order(solver: Any, scheme: Any, order: int) -> None:
    def solve(steps: int) -> Floats:
        flow = Flow(n=48, nu=5e-3, dt=0.4 / steps, scheme=scheme, dtype="float64", drag=0.1)
        return solver.run(flow, initial.ensemble(flow, "random", [3], peak=4), steps).state

    exact = solve(640)
    errors = [np.linalg.norm(solve(steps) - exact) for steps in (20, 40, 80)]
    rates = [math.log2(a / b) for a, b in itertools.pairwise(errors)]
    # Half a power is what a scheme that is not in its asymptotic regime yet may lose, or seem to gain.
    assert all(order - 0.3 <= rate <= order + 0.5 for rate in rates), rates


def test_a_finer_grid_gives_the_same_resolved_flow(solver: Any) -> None:
    """Spectral accuracy: where all scales are resolved, another grid changes nothing."""
    found: list[Floats] = []
    for n in (96, 128):
        flow = Flow(n=n, nu=0.05, dt=0.005, dtype="float64")
        run = solver.run(flow, initial.ensemble(flow, "random", [1], peak=3), 200)
        found.append(run.state[0, :10, :10])
    assert np.abs(found[0] - found[1]).max() <= 1e-11
