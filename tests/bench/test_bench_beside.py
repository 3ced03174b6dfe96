"""Benches beside peers: what is refused before, what is kept while they run."""

from __future__ import annotations

import json
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import dashi
from dashi.bench import fft as fft_bench
from dashi.bench import flow as flow_bench
from dashi.bench.fft import DEVICE_CLASS, TransformCase
from dashi.cli import bench_peers
from dashi.cli.bench_peers import PeerBench, bench_device, cases_of
from dashi.cli.main import app
from dashi.errors import InputError, NoResultError
from dashi.runtime import _stopwatch as stopwatch
from dashi.runtime._cpu_device import CpuDevice


def tables(document: dict[str, Any]) -> list[list[list[str]]]:
    return [[["us"], *([str(row["us"])] for row in document["rows"])]]


def page(document: dict[str, Any]) -> str:
    return f"{len(document['rows'])} rows\n"


@pytest.mark.parametrize("name", ["fft", "flow", "rollout"])
def test_a_folder_that_cannot_be_written_is_refused_before_a_device_is_opened(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*words: Any, **named: Any) -> Any:
        raise AssertionError("a device was opened")

    monkeypatch.setattr(dashi, "open", refuse)
    (tmp_path / "file").write_text("")
    done = CliRunner().invoke(app, ["bench", name, "--save", str(tmp_path / "file")])
    assert (done.exit_code, "cannot be written" in done.output) == (3, True), done.output


def test_what_was_measured_before_ctrl_c_is_kept(tmp_path: Path) -> None:
    def row(work: int) -> dict[str, Any]:
        if work == 2:
            raise KeyboardInterrupt
        return {"us": work}

    job = PeerBench("made", tables, page, tmp_path / "kept")
    job.require_writable()
    with bench_device("cpu") as (_, document), pytest.raises(KeyboardInterrupt):
        job.measure(document, [], [0, 1, 2, 3], "cases", row)
    data, text = sorted((tmp_path / "kept").iterdir())
    assert json.loads(data.read_text())["rows"] == [{"us": 0}, {"us": 1}]
    assert text.read_text() == "2 rows\n"
    assert data.name.startswith("made-numpy")


@pytest.mark.long
def test_the_transforms_beneath_the_steps_are_timed_where_no_size_is_given(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    @contextmanager
    def opened(spec: str) -> Generator[tuple[Any, dict[str, Any]]]:
        with bench_device("cpu") as (_, document), CpuDevice() as device:
            device.info = replace(device.info, type="discrete")  # as if it were a GPU
            yield device, document

    monkeypatch.setattr(bench_peers, "bench_device", opened)
    monkeypatch.setattr(fft_bench, "FIELDS", (TransformCase("fft2", 8), TransformCase("fft2", 16)))
    monkeypatch.setattr(flow_bench, "SIZES", (8,))
    monkeypatch.setattr(stopwatch, "HARDWARE", replace(stopwatch.HARDWARE, warm=0))
    done = CliRunner().invoke(app, ["bench", "flow", "--json", "--save", str(tmp_path / "kept")])
    assert done.exit_code == 0, done.output
    document = json.loads(done.stdout)
    assert [row["case"] for row in document["transforms"]] == ["fft2 8^2, fp32", "fft2 16^2, fp32"]
    times = [time for row in document["transforms"] for time in row["times"]]
    assert {time["checked"] for time in times if time["tuning"] != DEVICE_CLASS} == {"same bits as NumPy"}
    data, text = sorted((tmp_path / "kept").iterdir())
    assert json.loads(data.read_text())["transforms"] == document["transforms"]
    assert "| 8 | float32 |" in text.read_text()
    assert "| fft2 16^2, fp32 |" in text.read_text()
    for words in (["--n", "8"], ["--dtype", "float64"]):
        alone = CliRunner().invoke(app, ["bench", "flow", *words, "--json"])
        assert (alone.exit_code, "transforms" in json.loads(alone.stdout)) == (0, False)


def test_nothing_is_kept_where_nothing_was_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    job = PeerBench("made", tables, page, None)
    job.require_writable()
    with bench_device("cpu") as (_, document):
        job.measure(document, [], [5], "cases", lambda work: {"us": work})
    job.keep(document)
    assert (document["rows"], list(tmp_path.iterdir())) == ([{"us": 5}], [])


def test_a_device_that_computes_nothing_is_refused() -> None:
    with pytest.raises(NoResultError, match="the null device computes nothing"), bench_device("null"):
        pass


def test_cases_are_those_of_the_numbers_or_the_usual_ones() -> None:
    assert cases_of("abc", None, "ab") == ["a", "b"]
    assert cases_of("abc", [2, 0], "ab") == ["c", "a"]
    for numbers in ([0, 3], [-1]):
        with pytest.raises(InputError) as error:
            cases_of("abc", numbers, "ab")
        assert str(error.value) == f"there is no case {numbers[-1]}. Fix: use 0 to 2."
