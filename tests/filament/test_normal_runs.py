"""Claims about runs whose atoms are brought to their normal form: books close, hashes repeat, runs go on."""

from __future__ import annotations

import json
import signal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from dashi import lab
from dashi.cli.main import app
from dashi.core import rollout
from dashi.errors import InputError, Interrupted
from dashi.filament import AtomRules, Atoms, Ledger, NormalAtoms
from dashi.filament._atoms_json import read_document
from dashi.filament.normal import table_atoms, table_of
from dashi.runtime import Device

RULES = AtomRules(weakest=2, merge=0.8, widest=0.45, budget=24)


def crowd(n: int = 16) -> Atoms:
    rng = np.random.default_rng(n)
    strength = rng.choice([-1, 1], n) * rng.integers(1, 60, n)
    radius = rng.uniform(0.2, 0.45, n)
    return Atoms.of(rng.uniform(0, 3, (n, 2)), strength / 16, radius, quantum=1 / 16, domain="periodic", box=4.0)


def request(**more: Any) -> lab.FilamentRequest:
    asked: dict[str, Any] = {"atoms": crowd(), "steps": 60, "dt": 0.02, "nu": 0.02, "rules": RULES, "hash_every": 10}
    return lab.FilamentRequest(**{**asked, **more})


def test_whole_runs_have_the_same_hashes_on_every_device(vulkan: Device) -> None:
    atoms = crowd()
    runs = [
        rollout(NormalAtoms.of(atoms, RULES, dt=0.02, nu=0.02), table_of(atoms, 24), 20, device=device, hash_every=5)
        for device in ("cpu", vulkan)
    ]
    assert runs[0].hashes == runs[1].hashes
    assert table_atoms(runs[0].state[0], atoms).next_id > atoms.next_id


def test_the_books_of_a_run_close_and_its_certificate_is_verified(tmp_path: Path) -> None:
    result = lab.run_filament(request(), device="cpu", out=tmp_path / "run")
    kinds = {event.kind for event in result.ledger.events}
    assert kinds >= {"merge", "split", "annihilate"}
    before, after = ((a.signed_quanta, a.total_quanta) for a in (crowd(), result.atoms))
    assert result.ledger.unattributed(before, after) == (0, 0)
    assert len(result.atoms) <= 24
    assert lab.verify(lab.VerifyRequest(certificate=tmp_path / "run"), device="auto").same
    stored = Ledger.from_document(read_document(tmp_path / "run" / "events.json"))
    assert stored.document() == result.ledger.document()


def test_a_stopped_run_goes_on_with_hashes_and_events_of_a_whole_one(tmp_path: Path) -> None:
    from dashi.lab import filament_runs

    whole = lab.run_filament(request(), device="cpu")
    real = filament_runs.write_checkpoint
    presses = iter([signal.SIGINT])

    def pressed(*rest: Any) -> None:
        real(*rest)
        for number in presses:
            signal.raise_signal(number)

    out = tmp_path / "run"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(filament_runs, "write_checkpoint", pressed)
        with pytest.raises(Interrupted) as stopped:
            lab.run_filament(request(checkpoint_every=5), device="cpu", out=out)
    assert 0 < stopped.value.partial.run.steps < 60
    again = lab.run_filament(request(checkpoint_every=5), device="cpu", out=out, resume=True)
    assert again.run.hashes == whole.run.hashes
    assert again.ledger.document() == whole.ledger.document()
    assert again.atoms.document() == whole.atoms.document()


def test_two_equal_vortices_that_are_close_merge_once(here: Path) -> None:
    rows = [{"x": 0.0, "y": 0.0, "gamma": 1.0, "radius": 0.1}, {"x": 0.05, "y": 0, "gamma": 1, "radius": 0.1}]
    (here / "pair.json").write_text(json.dumps({"atoms": rows}))
    line = "filament run --atoms pair.json --dt 0.1 --steps 3 --merge 0.8 --device cpu --json"
    done = CliRunner().invoke(app, line.split())
    assert done.exit_code == 0, done.output
    printed = json.loads(done.stdout)
    assert [(event["kind"], event["step"]) for event in printed["events"]] == [("merge", 1)]
    assert [atom["id"] for atom in printed["atoms"]] == [2]


@pytest.mark.parametrize(
    ("more", "words"),
    [({"rules": AtomRules(widest=0.4)}, "need a budget"), ({"dtype": "float32"}, "float64 alone")],
)
def test_rules_that_cannot_be_held_are_refused(more: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError, match=words):
        lab.run_filament(request(**more), device="cpu")
