"""Bits against error: atoms win where vortices are few, waves where there are waves, and nothing is lost by asking."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from dashi.errors import InputError
from dashi.filament import pack, unpack
from dashi.filament.code import Rates, rate
from dashi.filament.code import _atom_code as atom_code


def vortices(n: int, count: int, seed: int = 0) -> Any:
    random = np.random.default_rng(seed)
    atoms = [
        atom_code.Gaussian(random.uniform(0, n), random.uniform(0, n), random.uniform(2, 4), random.choice([-1.0, 1.0]))
        for _ in range(count)
    ]
    field = np.sum([atom_code.drawn(atom, n) for atom in atoms], axis=0)
    return field - field.mean()


@pytest.fixture(scope="module")
def few() -> Rates:
    return rate(vortices(64, 8), (0.4, 0.1))


def test_atoms_are_shorter_where_vortices_are_few_and_never_much_longer(few: Rates) -> None:
    assert few.bits("atoms", 0.1) < 0.7 * min(few.bits("modes", 0.1), few.bits("wavelets", 0.1))
    assert few.crossover is None
    points = np.arange(64) * (2 * math.pi / 64)
    waves = rate(np.sin(5 * points)[:, None] * np.cos(3 * points)[None] + np.cos(9 * points)[None], (0.4, 0.1))
    for error in (0.4, 0.1):
        assert waves.bits("atoms", error) <= min(waves.bits("modes", error), waves.bits("wavelets", error))
    assert waves.crossover == 0.4


def test_points_are_what_codes_decode_to(few: Rates) -> None:
    field = vortices(64, 8)
    for point in few.points:
        assert point.error <= point.asked
        assert point.correlation == pytest.approx(math.sqrt(1 - point.error**2), abs=0.01)
        assert point.spectrum_error < 0.25
    data = pack(field, max_error=0.1, basis="modes", atoms=0).data
    assert 8 * len(data) == pytest.approx(few.bits("modes", 0.1), abs=16)
    assert np.linalg.norm(unpack(data).field - field) <= 0.1 * np.linalg.norm(field)


def test_coherent_vortices_are_few_coefficients_above_noise() -> None:
    noise = np.random.default_rng(1).standard_normal((64, 64)) * 0.05
    coherent = rate(vortices(64, 6) + noise - noise.mean(), (0.3,)).coherent
    assert coherent.share < 0.1
    assert coherent.rest_flatness == pytest.approx(3.0, abs=0.2)  # what is left is the noise: Gaussian
    assert coherent.flatness > 6


@pytest.mark.parametrize(
    ("field", "errors"), [(np.zeros((8, 8)), (0.1,)), (vortices(16, 2), ()), (vortices(16, 2), (1.0,))]
)
def test_rates_of_nothing_and_at_no_error_are_refused(field: Any, errors: Any) -> None:
    with pytest.raises(InputError):
        rate(field, errors)
