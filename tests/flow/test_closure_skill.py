"""Claims about benchmarks/closure_skill.py: it runs whole, and a run that was stopped goes on as if it had not been."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from typing import Any

import pytest

from dashi.errors import InputError
from dashi.flow import Flow, Kolmogorov
from dashi.flow.proxy import Model

SIZES = [
    "--device",
    "cpu",
    "--k-cut",
    "3",
    "--slaved",
    "3",
    "--option",
    "iterations=1",
    "--option",
    "long_iterations=0",
]


@pytest.fixture
def skill(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The script, on flows that take no time."""
    path = Path(__file__).parents[2] / "benchmarks" / "closure_skill.py"
    spec = importlib.util.spec_from_file_location("closure_skill", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(__import__("sys").modules, "closure_skill", module)
    spec.loader.exec_module(module)

    def settings(*_: Any, **__: Any) -> dict[str, Any]:
        forced = Flow(n=16, nu=5e-3, dt=0.02, drag=0.1, forcing=Kolmogorov(2))
        free = Flow(n=16, nu=5e-3, dt=0.02)
        return {
            name: module.Setting(flow, [1, 2], [3], [4, 5], 1, 20, 40, 5, 2.0)
            for name, flow in (("kolmogorov", forced), ("decaying", free))
        }

    monkeypatch.setattr(module, "settings", settings)
    # PyDMD takes seconds to import.
    monkeypatch.setattr(module, "find_spec", lambda _: None)
    return module


def scores(folder: Path) -> Any:
    """What was found, without how long it took."""
    document = json.loads((folder / "skill.json").read_text())["flows"]
    for part in document.values():
        for row in part["rows"]:
            del row["seconds"]
    return document


def test_a_run_that_was_stopped_goes_on_and_finds_the_same(
    skill: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    skill.main([*SIZES, "--out", str(whole)])
    assert set(scores(whole)) == {"kolmogorov", "decaying"}
    table = (whole / "skill.md").read_text()
    assert "galerkin | 3 | 28 | 896 |" in table
    assert "| 3 | slaved | trained-eddy |" in table
    save, stored = skill.save_model, list[str]()

    def stopped(path: Path, model: Model) -> None:
        if path.name == "decaying-galerkin-3.npz":
            raise KeyboardInterrupt
        stored.append(path.name)
        save(path, model)

    monkeypatch.setattr(skill, "save_model", stopped)
    with pytest.raises(KeyboardInterrupt):
        skill.main([*SIZES, "--out", str(broken)])
    assert set(scores(broken)) == {"kolmogorov"}
    before, fits = {name: (broken / name).read_bytes() for name in stored}, list[str]()
    assert len(before) > 8
    monkeypatch.setattr(skill, "save_model", lambda path, model: (fits.append(path.name), save(path, model)))
    capsys.readouterr()
    skill.main([*SIZES, "--out", str(broken)])
    assert "kolmogorov: scored before" in capsys.readouterr().out
    # What was fitted before is read; what was not is fitted, and no more.
    assert fits == ["decaying-galerkin-3.npz"]
    assert {name: (broken / name).read_bytes() for name in stored} == before
    assert scores(broken) == scores(whole)


def test_a_folder_of_another_run_is_refused_before_any_work(skill: Any, tmp_path: Path) -> None:
    skill.begun(skill.parsed([*SIZES, "--out", str(tmp_path / "a")]))
    with pytest.raises(InputError, match=r"holds a run with k_cut = '3', and this one has '4'. Fix: name another"):
        skill.main([*SIZES, "--k-cut", "4", "--out", str(tmp_path / "a")])
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "letter.txt").write_text("mine")
    with pytest.raises(InputError, match=r"holds files, and no run of this command. Fix: name another folder"):
        skill.main([*SIZES, "--out", str(tmp_path / "b")])
    assert [path.name for path in (tmp_path / "b").iterdir()] == ["letter.txt"]
