"""Claims about the normal form: idempotent, exact in quanta, moments kept, ties decided."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dashi.errors import InputError
from dashi.filament import AtomRules, Atoms, Ledger, normal_form

RULES = AtomRules(weakest=8, merge=0.8, widest=0.5, budget=12)


def crowd(seed: int, n: int, domain: str = "periodic") -> Atoms:
    rng = np.random.default_rng(seed)
    strength = rng.choice([-1, 1], n) * rng.integers(1, 200, n)
    return Atoms.of(rng.uniform(0, 3, (n, 2)), strength, rng.uniform(0.1, 0.9, n), quantum=1.0, domain=domain, box=3.0)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10_000), st.integers(1, 24), st.sampled_from(["free", "periodic"]))
def test_the_normal_form_is_its_own_and_loses_no_quantum(seed: int, n: int, domain: str) -> None:
    atoms = crowd(seed, n, domain)
    result, events = normal_form(atoms, RULES, step=7)
    books = Ledger(events)
    before, after = ((a.signed_quanta, a.total_quanta) for a in (atoms, result))
    assert books.unattributed(before, after) == (0, 0)
    again, none = normal_form(result, RULES)
    assert none == ()
    assert again.document() == result.document()
    assert len(result) <= 12
    assert result.quanta.min(initial=8) >= 8
    assert all(event.step == 7 for event in events)


def moments(atoms: Atoms) -> np.ndarray:
    gamma, (x, y) = atoms.circulation, atoms.place.T
    return np.array(
        [gamma.sum(), (gamma * x).sum(), (gamma * y).sum(), (gamma * (x**2 + y**2 + atoms.radius**2)).sum()]
    )


def test_merging_keeps_circulation_and_both_impulses() -> None:
    atoms = Atoms.of([[0, 0], [0.05, 0.02]], [3.0, 5.0], [0.1, 0.2])
    result, events = normal_form(atoms, AtomRules(merge=0.5))
    assert [event.kind for event in events] == ["merge"]
    assert result.ids.tolist() == [2]
    assert abs(moments(result) - moments(atoms)).max() <= 1e-15


def test_splitting_keeps_circulation_and_both_impulses() -> None:
    atoms = Atoms.of([[0.5, 0.25]], [4.0], 0.6)
    result, events = normal_form(atoms, AtomRules(widest=0.5))
    assert [event.kind for event in events] == ["split"]
    assert len(result) == 4
    assert abs(moments(result) - moments(atoms)).max() <= 1e-14


def test_whole_quanta_are_split_without_loss() -> None:
    result, _ = normal_form(Atoms.of([[0, 0]], [-7.0], 0.6, quantum=1.0), AtomRules(widest=0.5))
    assert sorted(result.quanta.tolist()) == [1, 2, 2, 2]
    assert result.sign.tolist() == [-1] * 4


def test_where_opposite_signs_meet_the_net_remains_with_the_larger() -> None:
    atoms = Atoms.of([[0, 0], [0.01, 0]], [3.0, -5.0], [0.1, 0.1], quantum=1.0)
    result, (event,) = normal_form(atoms, AtomRules(merge=0.5))
    assert (result.circulation.tolist(), result.place.tolist()) == ([-2.0], [[0.01, 0.0]])
    assert Ledger([event]).balances["annihilated"] == (0, 6)
    nothing, (event,) = normal_form(Atoms.of([[0, 0], [0, 0]], [3.0, -3.0], 0.1, quantum=1.0), AtomRules(merge=0.5))
    assert (len(nothing), event.children, nothing.next_id) == (0, (), 2)


def test_ties_go_to_the_larger_circulation_then_to_the_smaller_id() -> None:
    atoms = Atoms.of(np.zeros((4, 2)), [1.0, 2.0, 2.0, 1.0], 0.1, quantum=1.0)
    _, events = normal_form(atoms, AtomRules(merge=0.5))
    assert events[0].parents == ((1, 2), (2, 2))
    kept, events = normal_form(atoms, AtomRules(budget=3))
    assert kept.ids.tolist() == [0, 1, 2]
    assert events[0].parents == ((3, 1),)


def test_atoms_merge_across_the_border_of_a_periodic_box() -> None:
    atoms = Atoms.of([[0.01, 1], [2.99, 1]], [1.0, 1.0], 0.1, domain="periodic", box=3.0)
    result, _ = normal_form(atoms, AtomRules(merge=0.5))
    assert len(result) == 1
    assert abs(result.wrapped().place[0, 0] - 3.0) % 3.0 <= 1e-12


@pytest.mark.parametrize(
    "rules", [{"merge": 1.0}, {"merge": -0.1}, {"budget": -1}, {"weakest": 0.5}, {"widest": float("nan")}]
)
def test_rules_that_cannot_hold_are_refused(rules: dict[str, float]) -> None:
    with pytest.raises(InputError, match="Fix: "):
        AtomRules(**rules)  # pyright: ignore[reportArgumentType]


def test_splitting_without_end_is_refused_before_memory_is_taken() -> None:
    with pytest.raises(InputError, match="larger `widest=`"):
        normal_form(Atoms.of([[0, 0]], [1.0], 1.0), AtomRules(widest=1e-6))
