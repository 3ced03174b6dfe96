"""The parts of the checker: what is shrunk ends small, energies never rise, symmetries are those of the torus."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from dashi.core.carriers._check_claims import Violation
from dashi.core.carriers._check_shrink import shrink
from dashi.core.carriers.check_defects import majority_energy
from dashi.core.carriers.check_kernel import check_kernel, on_device
from dashi.core.carriers.check_samples import FieldSample, Symmetry, fields, picture, torus
from dashi.runtime._cpu_device import CpuDevice

CPU = CpuDevice()


@settings(max_examples=30)
@given(st.integers(0, 2**32 - 1), st.integers(1, 6), st.integers(2, 9), st.integers(2, 9))
def test_shrinking_ends_at_the_fewest_sites_that_a_fault_needs(seed: int, need: int, h: int, w: int) -> None:
    field = np.random.default_rng(seed).integers(-1, 2, (h, w), dtype=np.int8)
    need = min(need, int(np.count_nonzero(field)))

    def test(sample: FieldSample) -> Violation | None:
        return Violation("", sample, sample.field) if np.count_nonzero(sample.field) >= need else None

    small = shrink(Violation("", FieldSample(field), field), test).sample.field
    assert np.count_nonzero(small) == need
    assert max(small.shape) <= max(need, 1)  # every row and column holds one of them
    assert not np.any(small < 0)


def test_shrinking_stops_when_its_budget_is_spent_and_keeps_what_it_has() -> None:
    tried: list[int] = []

    def test(sample: FieldSample) -> Violation | None:
        tried.append(sample.field.size)
        return Violation("", sample, sample.field)

    field = np.ones((64, 64), np.int8)
    small = shrink(Violation("", FieldSample(field), field), test, budget=2).sample.field
    assert len(tried) == 2
    assert small.shape == (16, 64)


def test_fields_too_large_to_read_are_not_drawn() -> None:
    assert picture(np.array([[1, 0, -1]], np.int8)) == ["+.-"]
    assert picture(np.zeros((2, 2, 2), np.int8)) == ()
    assert picture(np.zeros((100, 3), np.int8)) == ()


@settings(max_examples=60)
@given(
    st.integers(0, 2**32 - 1),
    st.sampled_from([(1,), (2,), (7,), (30,), (2, 2), (3, 5), (8, 9)]),
    st.integers(0, 2),
    st.integers(-1, 9),
    st.integers(-4, 6),
)
def test_the_energy_of_the_majority_never_rises(
    seed: int, shape: tuple[int, ...], radius: int, eta: int, centre: int
) -> None:
    field = np.random.default_rng(seed).integers(-1, 2, shape, dtype=np.int8)
    energy = majority_energy(radius, eta, centre)
    majority = on_device(CPU, "ternary_majority", radius=radius, eta=eta, centre=centre)
    before = energy(field)
    assert (before == 0) == (not field.any())
    for _ in range(8):
        field = majority(field)
        after = energy(field)
        assert 0 <= after <= before
        before = after


def test_symmetries_of_three_dimensions_are_translations_reflections_and_the_sign() -> None:
    assert [s.name for s in torus(3)] == [
        "translation by 1 along axis 0", "reflection of axis 0", "translation by 1 along axis 1",
        "reflection of axis 1", "translation by 1 along axis 2", "reflection of axis 2", "sign flip",
    ]  # fmt: skip
    assert check_kernel(lambda s: s, [*fields((3, 4, 5))]).ok
    assert Symmetry("twice", lambda s: s).of(FieldSample(np.ones(3, np.int8))).field.tolist() == [1, 1, 1]
