"""Claims about the state of the engine: whole quanta, separate fields, hostile documents, events that balance."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from dashi.errors import FileError, InputError
from dashi.filament import AtomEvent, Atoms, Ledger, Transfer, read_atoms, write_atoms


def pair() -> Atoms:
    return Atoms.of([[0.0, 0.0], [1.0, 0.5]], [1.0, -0.3], [0.1, 0.2], domain="periodic")


def same(a: Atoms, b: Atoms) -> bool:
    return json.dumps(a.document()) == json.dumps(b.document())


def test_circulations_are_whole_quanta_as_exact_as_doubles() -> None:
    atoms = pair()
    assert abs(atoms.circulation - [1.0, -0.3]).max() < 2.0**-50
    assert atoms.signed_quanta == int(atoms.quanta[0] - atoms.quanta[1])
    assert atoms.sign.tolist() == [1, -1]


def test_a_document_gives_the_same_atoms_bit_for_bit(tmp_path: Path) -> None:
    curve = np.array([[0.0, 0, 0], [1, 0, 0], [0, 1, 0], [2, 0, 1], [3, 0, 1], [2, 1, 1], [2, 2, 2]])
    states = [
        pair(), Atoms.empty(), pair().taken([1]),
        Atoms.of([[0.1, 0.2]], [2.0], [0.3], jet=[[0.2, -0.5]], core="algebraic"),
        Atoms.of([[0.3, 0.3, 0], [2.2, 0.6, 1]], [1.0, 2.0], 0.1, vertices=curve, offsets=[0, 3, 7]),
    ]  # fmt: skip
    for atoms in states:
        write_atoms(tmp_path / "atoms.json", atoms)
        again = read_atoms(tmp_path / "atoms.json")
        assert same(again, atoms)
        assert np.array_equal(again.place, atoms.place)


def test_taken_atoms_keep_ids_counter_and_curves() -> None:
    curve = np.arange(14.0).reshape(7, 2)
    atoms = Atoms.of([[0, 0], [1, 1]], [1.0, 2.0], 0.1, vertices=curve, offsets=[0, 3, 7])
    last = atoms.taken([1])
    assert (last.ids.tolist(), last.next_id) == ([1], 2)
    assert np.array_equal(np.asarray(last.vertices), curve[3:])
    assert np.asarray(last.offsets).tolist() == [0, 4]


@pytest.mark.parametrize(
    ("document", "words"),
    [
        ({}, "no list `atoms`"),
        ({"atoms": [{"x": 0, "y": 0, "gamma": 1}]}, "`radius` of atom 0"),
        ({"atoms": [{"x": 0, "y": 0, "gamma": 1, "radius": 0}]}, "core radii above 0"),
        ({"atoms": [{"x": 0, "y": 0, "gamma": 0, "radius": 1}]}, "without circulation"),
        ({"atoms": [{"x": float("nan"), "y": 0, "gamma": 1, "radius": 1}]}, "finite"),
        ({"atoms": [{"x": 0, "y": 0, "gamma": 1, "radius": 1, "r": 2}]}, "no key 'r'"),
        ({"atoms": [{"x": 0, "y": 0, "gamma": 1, "radius": 1}], "quantum": 4.0}, "too coarse"),
        ({"atoms": [], "version": 2}, "version 2"),
        ({"atoms": [{"x": 0, "y": 0, "sign": 1, "quanta": 1, "radius": 1}]}, "no `quantum`"),
        ({"atoms": [{"x": 0, "y": 0, "sign": 3, "quanta": 1, "radius": 1}], "quantum": 1.0}, "use 1 or -1"),
        ({"atoms": [{"id": 1, "x": 0, "y": 0, "gamma": 1, "radius": 1}] * 2}, "each id once"),
        ({"atoms": [{"x": 0, "y": 0, "gamma": 1, "radius": 1, "jet": [1.0, 0.5]}]}, "below 1"),
        ({"atoms": [{"x": 0, "y": 0, "gamma": 1, "radius": 1}], "domain": "sphere"}, "`domain=`"),
        ({"atoms": [{"x": 0, "y": 0, "gamma": 1, "radius": 1}], "box": True}, "use a number"),
        ({"atoms": [7]}, "atom 0 is 7"),
    ],
)
def test_hostile_documents_are_refused_with_a_fix(document: dict[str, object], words: str) -> None:
    with pytest.raises(InputError, match=r"Fix: ") as caught:
        Atoms.from_document(document)
    assert words in str(caught.value)


def test_files_that_are_no_state_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "atoms.json"
    for text in ("", "[1]", "{", '{"atoms": ' + "[" * 100_000):
        file.write_text(text)
        with pytest.raises(FileError):
            read_atoms(file)
    with pytest.raises(FileError):
        read_atoms(tmp_path / "nothing.json")


def test_a_ledger_takes_events_that_balance_and_no_others() -> None:
    merge = AtomEvent(1, "merge", ((0, 5), (1, 3)), ((2, 8),))
    meet = AtomEvent(2, "annihilate", ((2, 8), (3, -3)), ((4, 5),), (Transfer("annihilated", 0, 6),))
    prune = AtomEvent(2, "prune", ((5, -1),), (), (Transfer("pruned", -1, 1),))
    ledger = Ledger([merge, meet, prune])
    assert ledger.unattributed((5 + 3 - 3 - 1, 5 + 3 + 3 + 1), (5, 5)) == (0, 0)
    assert ledger.balances["annihilated"] == (0, 6)
    assert ledger.counts == {"annihilate": 1, "merge": 1, "prune": 1}
    assert Ledger.from_document(json.loads(json.dumps(ledger.document()))).document() == ledger.document()
    with pytest.raises(InputError, match="unexplained"):
        ledger.record(AtomEvent(3, "merge", ((4, 5), (6, 1)), ((7, 5),)))
    with pytest.raises(InputError, match="order of steps"):
        ledger.record(merge)


def test_a_planted_leak_of_a_quantum_is_in_the_books() -> None:
    ledger = Ledger([AtomEvent(1, "prune", ((5, -1),), (), (Transfer("pruned", -1, 1),))])
    assert ledger.unattributed((10, 12), (10, 11)) == (1, 0)
