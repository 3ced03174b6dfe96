"""The filament engine against what is known of vortices: exact motions of points, invariants, orders.

Places are those of points wherever cores are far smaller than distances: a Gaussian core changes a velocity by
exp(-r^2/delta^2) of it, which is 0 in float64 from r = 6.1 delta on. Periods and velocities are those of point vortices
(P. K. Newton, The N-Vortex Problem, doi 10.1007/978-1-4684-9290-3).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from dashi.core import rollout
from dashi.filament import Atoms
from dashi.filament._invariants import invariants
from dashi.filament.free import FreeAtoms
from dashi.filament.state import atoms_of, rows_of

Floats = Any
PI = math.pi


def moved(solver: Any, atoms: Atoms, dt: float, steps: int, **more: Any) -> Atoms:
    operator = FreeAtoms.of(atoms, dt=dt, **more)
    run = rollout(operator, rows_of(atoms, operator.dtype), steps, device=solver.device)
    return atoms_of(run.state[0], atoms)


def turned(place: Floats, angle: float) -> Floats:
    c, s = math.cos(angle), math.sin(angle)
    return np.asarray(place) @ np.array([[c, s], [-s, c]])


def test_two_equal_vortices_turn_about_their_centre(solver: Any) -> None:
    atoms = Atoms.of([[-0.5, 0], [0.5, 0]], [1.0, 1.0], 0.05)
    quarter = (PI / 2) * PI  # the angular velocity is (1 + 1) / (2 pi 1^2)
    place = moved(solver, atoms, quarter / 250, 250).place
    assert abs(place - turned(atoms.place, PI / 2)).max() <= 1e-10


def test_opposite_vortices_go_straight_ahead(solver: Any) -> None:
    atoms = Atoms.of([[0, -0.5], [0, 0.5]], [-1.0, 1.0], 0.05)
    place = moved(solver, atoms, 0.1, 50).place
    assert abs(place - atoms.place - np.array([5 / (2 * PI), 0])).max() <= 1e-13


@pytest.mark.parametrize("n", [3, 5, 7])
def test_polygons_of_equal_vortices_turn_as_a_whole(solver: Any, n: int) -> None:
    angles = 2 * PI * np.arange(n) / n
    atoms = Atoms.of(np.stack([np.cos(angles), np.sin(angles)], axis=1), np.ones(n), 0.05)
    rate = (n - 1) / (4 * PI)
    time = PI / 4 / rate
    place = moved(solver, atoms, time / 160, 160).place
    assert abs(place - turned(atoms.place, PI / 4)).max() <= 1e-10


@pytest.mark.parametrize(("ratio", "passes"), [(0.15, False), (0.2, True)])
def test_pairs_leapfrog_above_the_critical_ratio_alone(solver: Any, ratio: float, passes: bool) -> None:
    """Two pairs on one axis, side by side, of widths 1 and `ratio`: they pass each other again and again where the
    ratio is above 3 - 2 sqrt 2 = 0.1716 (A. E. H. Love 1893, doi 10.1112/plms/s1-25.1.185)."""
    wide, narrow = 0.5, ratio / 2
    atoms = Atoms.of([[0, wide], [0, -wide], [0, narrow], [0, -narrow]], [1.0, -1, 1, -1], 0.002)
    apart: list[float] = []
    for dt in (0.01, *11 * [0.04]):
        atoms = moved(solver, atoms, dt, 30)
        apart.append(float(atoms.place[2, 0] - atoms.place[0, 0]))
    assert (min(apart) < 0) == passes, apart


def test_three_vortices_collapse_at_the_time_of_the_similarity_solution(solver: Any) -> None:
    """Sum of 1/Gamma and sum of Gamma_i Gamma_j l_ij^2 are 0: sides shrink as sqrt(1 - t/t*), t* = 3 sqrt(2) pi here
    (W. Groebli 1877; H. Aref 1979, doi 10.1063/1.862605)."""
    collapse = 3 * math.sqrt(2) * PI
    sides: list[float] = []
    for mirror in (1, -1):
        atoms = Atoms.of([[-1, 0], [1, 0], [1, mirror * math.sqrt(2)]], [2.0, 2.0, -1.0], 0.01)
        later = moved(solver, atoms, 0.9 * collapse / 250, 250).place
        sides.append(float(((later[0] - later[1]) ** 2).sum()) / 4)
    # One of the mirror images collapses, the other grows for ever.
    assert abs(0.9 / (1 - min(sides)) - 1) <= 1e-3
    assert abs(max(sides) - 1.9) <= 1e-3


@pytest.mark.parametrize("domain", ["free", pytest.param("periodic", marks=pytest.mark.long)])
def test_invariants_stay_without_viscosity(solver: Any, domain: str) -> None:
    rng = np.random.default_rng(3)
    place = rng.uniform(0, 2 * PI, (64, 2))
    strength = rng.choice([-1, 1], 64) * rng.uniform(0.2, 0.6, 64)
    atoms = Atoms.of(place, strength, rng.uniform(0.3, 0.5, 64), domain=domain)
    later = moved(solver, atoms, 0.05, 200)
    first, last = invariants(atoms), invariants(later)
    assert last.quanta == first.quanta
    for name in ("impulse_x", "impulse_y"):
        assert abs(getattr(last, name) - getattr(first, name)) <= 1e-12
    assert abs(last.hamiltonian - first.hamiltonian) <= 1e-8


def test_steps_are_of_order_four(solver: Any) -> None:
    rng = np.random.default_rng(4)
    atoms = Atoms.of(rng.uniform(-1, 1, (6, 2)), rng.uniform(0.5, 1, 6), 0.4)
    exact = moved(solver, atoms, 2 / 256, 256).place
    errors = [abs(moved(solver, atoms, 2 / steps, steps).place - exact).max() for steps in (8, 16, 32)]
    orders = np.log2(np.array(errors[:-1]) / np.array(errors[1:]))
    assert (abs(orders - 4) <= 0.25).all(), orders


def test_a_spreading_core_is_the_vortex_of_lamb_and_oseen(solver: Any) -> None:
    atoms = Atoms.of([[0.25, -0.5]], [2.0], 0.1)
    later = moved(solver, atoms, 0.05, 40, nu=0.03)
    assert abs(later.radius[0] ** 2 - (0.01 + 4 * 0.03 * 2)) <= 1e-15
    assert np.array_equal(later.place, atoms.place)
