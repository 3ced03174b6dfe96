"""`dashi graph`: a graph from a file, after each pass; run; and tuned."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import dashi
from dashi import graph as dg
from dashi.cli.main import app
from dashi.graph import TunedCall, tuning
from dashi.io._array_digest import array_digest
from dashi.io.arrays import read_arrays, write_arrays
from dashi.runtime.device import Device

TEXT = """graph tiny
%x = input : i32[2,3]
%base = input : i32[1,3]
%rows = input : u32[2,1]
%y = scatter_nd %base %rows %x {join="add"} : i32[1,3]
%z = equal %y %y : bool[1,3]
return z=%z
"""


def explain(*words: str) -> Any:
    return CliRunner().invoke(app, ["graph", "explain", *words])


def test_a_graph_is_shown_after_a_pass(here: Path) -> None:
    (here / "tiny.txt").write_text(TEXT)
    assert explain("tiny.txt", "--after", "rewrite").stdout == TEXT + "\n"
    assert "3. y.put_6: host(y.reshape_4, y.reshape_5, y.reshape_6) -> i32[3]" in explain("tiny.txt").stdout
    assert "on null" in explain("tiny.txt", "--after", "record").stdout
    assert "on cpu" in explain("tiny.txt", "--after", "record", "--device", "cpu").stdout
    assert explain("tiny.txt", "--after", "cut", "--class", "device").exit_code == 0
    document = json.loads(explain("tiny.txt", "--after", "fuse", "--json").stdout)
    assert document["host_steps"] == {"y.put_6": "no kernel computes put of these shapes and types"}


@pytest.mark.parametrize(
    ("content", "message"),
    [(b"\xff\xfe", "cannot be read"), (b"nonsense", "is no graph"), (TEXT.replace("2,3", "2,2", 1).encode(), "line 5")],
)
def test_a_file_that_is_no_graph_is_an_error_with_a_fix(here: Path, content: bytes, message: str) -> None:
    (here / "bad.txt").write_bytes(content)
    done = explain("bad.txt")
    assert done.exit_code == 3
    assert message in done.output
    assert "Fix:" in done.output


def test_a_missing_file_is_an_error_with_a_fix(here: Path) -> None:
    done = explain("gone.txt")
    assert (done.exit_code, "cannot be read" in done.output) == (3, True)


MODEL = """graph model
%x = input : f32[3,4]
%w = param : f32[4,5]
%h = matmul %x %w : f32[3,5]
%y = softmax %h : f32[3,5]
return y=%y h=%h
"""


def graph(*words: str) -> Any:
    return CliRunner().invoke(app, ["graph", *words])


def test_a_graph_is_run_with_values_from_files_or_random_ones(here: Path) -> None:
    (here / "model.txt").write_text(MODEL)
    rng = np.random.default_rng(1)
    x, w = rng.standard_normal((3, 4)).astype(np.float32), rng.standard_normal((4, 5)).astype(np.float32)
    write_arrays(here / "x.npz", {"x": x})
    write_arrays(here / "w.npz", {"w": w})
    words = ("run", "model.txt", "--inputs", "x.npz", "--params", "w.npz", "--out", "y.npz", "--device", "cpu")
    done = graph(*words, "--json")
    assert done.exit_code == 0, done.output
    document = json.loads(done.stdout)
    expected = dg.evaluate(dg.parse_graph(MODEL), {"x": x}, {"w": w})
    results = read_arrays(here / "y.npz")
    assert {title: values.tobytes() for title, values in results.items()} == {
        title: values.tobytes() for title, values in expected.items()
    }
    assert document["outputs"]["y"] == {"shape": [3, 5], "dtype": "float32", "hash": array_digest(expected["y"])}
    assert document["ms"] >= document["ms_least"] > 0
    assert document["report"]["kernels"] == {"matmul": 1, "softmax": 1}
    shown = graph(*words)
    assert document["outputs"]["y"]["hash"] in shown.output
    first, second, other = (
        json.loads(graph("run", "model.txt", "--device", "cpu", "--seed", seed, "--json").stdout)["outputs"]
        for seed in ("1", "1", "2")
    )
    assert first == second != other


def test_hashes_are_the_same_on_every_device(here: Path, vulkan: Device) -> None:
    (here / "model.txt").write_text(MODEL)
    hashes = [
        {
            title: about["hash"]
            for title, about in json.loads(graph("run", "model.txt", "--device", name, "--json").stdout)[
                "outputs"
            ].items()
        }
        for name in ("cpu", vulkan.info.spec)
    ]
    assert hashes[0] == hashes[1]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--inputs", "none.npz"), "none.npz"),
        (("--inputs", "z.npz"), "has no input 'z'"),
        (("--device", "nonsense"), "nonsense"),
        (("--out", "model.txt/y.npz"), "model.txt"),
    ],
)
def test_a_run_that_cannot_be_is_an_error_with_a_fix(here: Path, words: tuple[str, ...], message: str) -> None:
    (here / "model.txt").write_text(MODEL)
    write_arrays(here / "z.npz", {"z": np.ones(1, np.float32)})
    done = graph("run", "model.txt", *(("--device", "cpu") if "--device" not in words else ()), *words)
    assert done.exit_code != 0
    assert message in " ".join(done.output.split())
    assert "Fix:" in done.output


def test_a_graph_is_tuned_and_the_choice_is_kept(
    here: Path, vulkan: Device, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DASHI_CACHE_DIR", str(tmp_path / "cache"))
    (here / "model.txt").write_text(MODEL)
    parsed = dg.parse_graph(MODEL)
    values = dg.random_values(parsed, "input")
    params = dg.random_values(parsed, "param")

    def compiled() -> tuple[str, bytes]:
        with dashi.open(vulkan.info.spec) as device, dg.compile(parsed, device, params=params) as pipeline:
            return pipeline.id, pipeline.dispatch(values)["y"].tobytes()

    before = compiled()
    done = graph("tune", "model.txt", "--device", vulkan.info.spec, "--json")
    assert done.exit_code == 0, done.output
    tuned = json.loads(done.stdout)["tuned"]
    assert [call["call"] for call in tuned if call["kernel"] == "matmul"] == ["(f32[3,4] f32[4,5]) -> f32[3,5]"]
    assert all(call["best"] in call["us"] and not call["notes"] for call in tuned)
    after = compiled()
    assert after[1] == before[1]
    changed = any(call["best"] != call["before"] for call in tuned)
    assert (after[0] != before[0]) == changed  # tunings are a part of the id
    again = json.loads(graph("tune", "model.txt", "--device", vulkan.info.spec, "--json").stdout)["tuned"]
    assert [call["before"] for call in again] == [call["best"] for call in tuned]
    assert json.loads(graph("tune", "model.txt", "--device", "cpu", "--json").stdout)["tuned"] == []


@pytest.mark.parametrize("words", [("--out", "model.txt"), ("--inputs", "x.npz", "--out", "linked.npz")])
def test_results_never_replace_what_they_are_computed_from(here: Path, words: tuple[str, ...]) -> None:
    (here / "model.txt").write_text(MODEL)
    write_arrays(here / "x.npz", {"x": np.ones((3, 4), np.float32)})
    (here / "linked.npz").symlink_to("x.npz")
    before = {path.name: path.read_bytes() for path in here.iterdir()}
    done = graph("run", "model.txt", "--device", "cpu", *words)
    assert (done.exit_code, "the results would replace it" in " ".join(done.output.split())) == (3, True)
    assert "Fix: name another file as --out." in done.output
    assert {path.name: path.read_bytes() for path in here.iterdir()} == before


def test_a_stopped_tuning_shows_and_keeps_what_was_measured(
    here: Path, vulkan: Device, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DASHI_CACHE_DIR", str(tmp_path / "cache"))
    (here / "model.txt").write_text(MODEL)
    measured = TunedCall("matmul", "f32[3,4] f32[4,5]", 1, {"fitted": 2.0, "small": 1.0}, None, "small")

    def stopped(*_: object, on_call: Callable[[TunedCall], None], **__: object) -> list[TunedCall]:
        on_call(measured)
        raise KeyboardInterrupt

    monkeypatch.setattr(tuning, "tune", stopped)
    done = graph("tune", "model.txt", "--device", vulkan.info.spec)
    assert done.exit_code == 130
    assert "matmul f32[3,4] f32[4,5]: small" in done.stderr
    assert "small 1.0, fitted 2.0" in " ".join(done.stdout.split())
    document = json.loads(graph("tune", "model.txt", "--device", vulkan.info.spec, "--json").stdout)
    assert [call["best"] for call in document["tuned"]] == ["small"]


def test_each_call_of_a_graph_is_told_of_when_it_is_tuned(vulkan: Device) -> None:
    calls: list[TunedCall] = []
    assert dg.tune(dg.parse_graph(MODEL), vulkan, keep=False, on_call=calls.append) == calls != []
