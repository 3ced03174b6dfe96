"""Studies of annihilation: cell by cell, resumed, refused, and judged by rules with a digest."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from dashi import lab
from dashi.cli.main import app
from dashi.errors import InputError
from dashi.flow.annihilation.study import StudyPlan
from dashi.flow.annihilation.verdict import RULES_DIGEST, RULES_TEXT, CellDepth, judge, least_squares, slopes, voters
from dashi.lab import annihilation_studies as studies

SMALL: dict[str, Any] = {
    "flows": {"decaying": [0.0, 0.2]}, "points": [32], "nu": 0.01, "seeds": [1, 2], "surrogates": 3, "power_draws": 1,
    "resamples": 5, "host_fft": True, "courant": 0.5,
}  # fmt: skip
CELL = CellDepth(
    "decaying", 5.0, 1024, 1e-3, "phase", "vorticity", "information", 6.0, 5.5, 6.5, False, False, 1.0, (6.0, 6.2), 7.0
)
POWER = {"information": 0.95, "persistence": 0.2}


def test_the_rules_are_those_whose_digest_is_recorded() -> None:
    assert hashlib.sha256(RULES_TEXT.encode()).hexdigest() == RULES_DIGEST
    # Changed rules are no longer those that were written first: say so in CHANGELOG.md, and look at new seeds.
    assert RULES_DIGEST.startswith("92f640f90e9cc109")


def test_a_study_is_measured_once_and_goes_on_where_it_was(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plan = StudyPlan.model_validate(SMALL)
    request = lab.AnnihilationStudyRequest(out=here / "study", plan=plan)
    first = lab.study_annihilation(request, device="cpu")
    files = sorted(p.name for p in (here / "study").rglob("*.json"))
    assert len(files) == 5
    assert len(first.depths) == 2 * 4
    results = (here / "study" / "results.json").read_bytes()
    with pytest.raises(InputError, match="already"):
        lab.study_annihilation(request, device="cpu")
    next((here / "study" / "cells").glob("*t0.2*")).unlink()
    (here / "study" / "results.json").unlink()
    measured: list[float] = []
    simulated = studies.simulated_fields

    def counted(device: Any, plan: Any, run: Any, times: Any) -> Any:
        measured.extend(times)
        return simulated(device, plan, run, times)

    monkeypatch.setattr(studies, "simulated_fields", counted)
    again = lab.study_annihilation(replace(request, resume=True), device="cpu")
    assert measured == [0.2]
    assert (here / "study" / "results.json").read_bytes() == results
    assert again.verdict == first.verdict
    other = replace(request, plan=plan.model_copy(update={"nu": 0.02}), resume=True)
    with pytest.raises(InputError, match="another study"):
        lab.study_annihilation(other, device="cpu")
    (here / "study" / "power.json").write_text("{")
    with pytest.raises(InputError, match="no JSON"):
        lab.study_annihilation(replace(request, resume=True), device="cpu")


def test_the_command_makes_a_study_and_refuses_plans_that_it_does_not_know(here: Path) -> None:
    (here / "study.yaml").write_text(json.dumps(SMALL))
    words = ["flow", "annihilate", "--study", "study.yaml", "--out", "runs/a", "--device", "cpu"]
    done = CliRunner().invoke(app, [*words, "--json"])
    assert done.exit_code == 0, done.output
    document = json.loads(done.stdout)
    assert document["rules"] == RULES_DIGEST
    assert [j["claim"] for j in document["verdict"]] == ["not chance", "finite", "six", "nothing past K", "signs"]
    assert "not chance" in CliRunner().invoke(app, [*words, "--resume"]).stdout
    for text, message in (
        ('{"unknown": 1}', "unknown"), ('{"nulls": ["other"]}', "other"), ("[1", "no YAML"), ('{"points": [8]}', "32"),
        ('{"flows": {"decaying": [-1]}}', "between 0 and 1000"), ('{"seeds": []}', "seeds"),
    ):  # fmt: skip
        (here / "study.yaml").write_text(text)
        refused = CliRunner().invoke(app, ["flow", "annihilate", "--study", "study.yaml", "--out", "runs/b"])
        assert refused.exit_code == 3, text
        assert message in refused.output
    for words in (["--study", "study.yaml"], [], ["omega.npy", "--out", "runs/c"]):
        assert CliRunner().invoke(app, ["flow", "annihilate", *words]).exit_code == 3


def statuses(cells: list[CellDepth], power: dict[str, float] = POWER) -> dict[str, str]:
    return {j.claim: j.status for j in judge(cells, power)}


def test_claims_are_judged_as_the_rules_say() -> None:
    noise = replace(CELL, time=0.0, octaves=0.0, low=0.0, high=0.0)
    coarse = replace(CELL, n=512, resampled=(6.0, 6.1))
    assert voters(POWER) == ("information",)
    assert statuses([noise, coarse, CELL]) == {
        "not chance": "supported", "finite": "supported", "six": "supported", "nothing past K": "supported",
        "signs": "undecided",
    }  # fmt: skip
    deep = replace(CELL, octaves=9.0, low=8.5, high=9.0, resampled=(9.0, 8.5))
    grown = statuses([noise, coarse, deep])
    assert (grown["finite"], grown["six"]) == ("refuted", "refuted")
    endless = statuses([noise, coarse, replace(CELL, censored=True)])
    assert (endless["finite"], endless["six"], endless["nothing past K"]) == ("refuted", "undecided", "undecided")
    assert statuses([noise, replace(CELL, second_crossing=True)])["nothing past K"] == "refuted"
    assert statuses([noise, noise])["not chance"] == "undecided"
    assert statuses([noise, replace(CELL, octaves=0.0, low=0.0)])["not chance"] == "refuted"
    shallow = replace(CELL, octaves=2.0, low=1.0, high=3.0)
    assert statuses([shallow])["six"] == "refuted"
    assert statuses([replace(shallow, reach=4.0)])["six"] == "undecided"
    signs = replace(CELL, estimator="persistence", least_score=-8.0)
    assert statuses([signs])["signs"] == "refuted"
    voting = {"persistence": 1.0}
    assert statuses([replace(signs, least_score=0.0)], voting)["signs"] == "supported"
    assert statuses([replace(CELL, null="shift"), replace(CELL, gauge="axis")])["six"] == "undecided"


def test_slopes_are_those_of_lines_with_the_spread_of_their_draws() -> None:
    assert least_squares([7, 8, 9], [3.0, 3.5, 4.0]) == pytest.approx(0.5)
    cells = [replace(CELL, n=n, octaves=k, resampled=(k, k + 1)) for n, k in ((128, 3.0), (256, 4.0), (512, 5.0))]
    cells.append(replace(CELL, n=512, nu=5e-4, octaves=7.0, resampled=(7.0, 8.0)))
    found = {s.against: s for s in slopes(cells)}
    assert found["log2 N"].slope == pytest.approx(1.0)
    assert found["log2 N"].cells == 3
    assert found["log2 Re"].slope == pytest.approx(2.0)
    assert found["log2 Re"].low <= 2.0 <= found["log2 Re"].high


@pytest.mark.long
def test_the_reduced_study_finds_structure_where_there_is_some_and_none_in_gaussian_fields(here: Path) -> None:
    plan = StudyPlan(
        flows={"decaying": (0.0, 5.0)}, points=(64,), nu=5e-3, seeds=(1, 2, 3), surrogates=39, power_draws=5,
        resamples=40, host_fft=True, courant=0.4,
    )  # fmt: skip
    study = lab.study_annihilation(lab.AnnihilationStudyRequest(out=here / "study", plan=plan), device="cpu")
    assert {"information", "flatness"} <= set(voters(study.power))
    assert "persistence" not in voters(study.power)
    assert {j.claim: j.status for j in study.verdict}["not chance"] == "supported"
