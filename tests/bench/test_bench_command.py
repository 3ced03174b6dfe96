"""`dashi bench kernels` and `dashi kernels tune`: tables, documents, files, exit codes."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from dashi.bench import results
from dashi.bench.kernels import Measurement, measure
from dashi.bench.workloads import Workload
from dashi.cli.main import app
from dashi.kernels.abi import Kernel
from dashi.runtime import _bandwidth as bandwidth
from dashi.runtime._vulkan_device import VulkanDevice


@pytest.fixture(autouse=True)
def short_copies(monkeypatch: pytest.MonkeyPatch) -> None:
    """The copy bandwidth is not what is tested here."""
    monkeypatch.setattr(bandwidth, "_SOFTWARE_BYTES", 1 << 20)


def call(*words: str) -> Any:
    return CliRunner().invoke(app, list(words))


def bench(*words: str) -> Any:
    return call("bench", "kernels", *words, "--device", "cpu", "--size", "small")


def test_the_command_gives_a_document_and_keeps_it(tmp_path: Path, torch: Any) -> None:
    folder = tmp_path / "kept"
    done = bench("axpy", "hash_state", "--json", "--peer", "torch", "--tflops", "1e-6", "--save", str(folder))
    assert done.exit_code == 0, done.output
    document = json.loads(done.stdout)
    assert document["device"]["spec"] == "cpu"
    assert document["peer"]["device"] == "NVIDIA Made Up"
    assert document["date"].startswith("20")
    axpy, hashed = document["rows"]
    assert axpy["shapes"] == {"x": [1 << 17], "y": [1 << 17]}
    assert axpy["bytes"] == 3 * 4 << 17
    assert axpy["gb_per_s"] == pytest.approx(axpy["bytes"] / axpy["us"] * 1e-3)
    assert axpy["floor_us"] == pytest.approx(axpy["flops"] / 1e6 * 1e6)
    assert axpy["over_floor"] == pytest.approx(axpy["us"] / axpy["floor_us"])
    assert axpy["peer"]["speed_of_peer"] == pytest.approx(axpy["peer"]["us"] / axpy["us"])
    assert "peer" not in hashed
    saved, page = sorted(folder.iterdir())
    assert json.loads(saved.read_text()) == document
    assert saved.stem == page.stem
    assert saved.stem.endswith(document["date"][:10] + "-" + document["date"][11:19].replace(":", "-"))
    text = page.read_text()
    assert "| axpy | f32 | x[131072] y[131072] |" in text
    assert "no peer" in text


def test_the_table_tells_what_failed_and_exits_with_1(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(device: Any, work: Workload, tunings: Any, peer: Any) -> Iterator[Measurement]:
        yield Measurement(work, failed="result[0] is 1, not 2")

    monkeypatch.setattr("dashi.bench.kernels.measure", broken)
    done = bench("add")
    assert done.exit_code == 1
    assert "FAILED: result[0] is 1, not 2" in " ".join(done.stdout.split())  # a narrow column breaks between words
    assert "add f32 x[131072] y[131072]: FAILED: result[0] is 1, not 2" in done.stderr


@pytest.mark.parametrize(
    ("words", "what"),
    [
        (["add", "--dtype", "u32"], "kernel 'add' has no variant u32."),
        (["iterate", "--tuning", "tall"], "kernel 'iterate' has no tuning 'tall'."),
        (["iterate", "--case", "99"], "kernel 'iterate' has no benchmark case 99"),
        (["add", "--peer", "jax"], "there is no peer 'jax'."),
    ],
)
def test_the_command_refuses_what_a_kernel_does_not_have(words: list[str], what: str) -> None:
    done = bench(*words)
    assert done.exit_code == 3, done.output
    assert what in done.output


def test_the_null_device_cannot_be_measured() -> None:
    done = call("bench", "kernels", "add", "--device", "null")
    assert (done.exit_code, "computes nothing" in done.output) == (3, True)


@pytest.fixture
def second_stops(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C comes while the second case is measured."""
    calls = list[Workload]()

    def stopping(device: Any, work: Workload, tunings: Any, peer: Any) -> Iterator[Measurement]:
        if calls:
            raise KeyboardInterrupt
        calls.append(work)
        return measure(device, work, tunings, peer)

    monkeypatch.setattr("dashi.bench.kernels.measure", stopping)


@pytest.mark.usefixtures("second_stops")
def test_an_interrupted_run_keeps_what_it_measured(tmp_path: Path) -> None:
    done = bench("add", "sub", "--save", str(tmp_path / "kept"))
    assert done.exit_code == 130
    saved, page = sorted((tmp_path / "kept").iterdir())
    document = json.loads(saved.read_text())
    assert [r["kernel"] for r in document["rows"]] == ["add"]
    assert document["cases"] == {"asked": 2, "measured": 1}
    assert "- stopped: 1 of 2 cases were measured" in page.read_text().splitlines()
    assert f"wrote {saved}" in done.stderr


@pytest.mark.usefixtures("second_stops")
def test_an_interrupted_run_prints_what_it_measured_where_nothing_is_kept() -> None:
    done = bench("add", "sub")
    assert done.exit_code == 130
    assert "stopped: 1 of 2 cases were measured" in done.stdout
    # A table that is wider than the terminal goes on below, with its keys again.
    assert {line.split()[0] for line in done.stdout.splitlines() if line.startswith(("add ", "sub "))} == {"add"}
    assert "nothing is kept without --save" in done.stderr


@pytest.mark.usefixtures("second_stops")
def test_an_interrupted_run_prints_one_document() -> None:
    done = bench("add", "sub", "--json")
    assert done.exit_code == 130
    assert [r["kernel"] for r in json.loads(done.stdout)["rows"]] == ["add"]


def test_rows_are_shown_as_they_come_and_all_of_them_at_the_end(monkeypatch: pytest.MonkeyPatch, torch: Any) -> None:
    shown = list[str]()
    before = list[int]()

    def watched(*given: Any) -> Iterator[Measurement]:
        before.append(len(shown))
        return measure(*given)

    monkeypatch.setattr("dashi.bench.kernels.measure", watched)
    monkeypatch.setattr("dashi.cli.bench.remark", lambda *lines: shown.extend(lines))
    done = bench("add", "hash_state", "--peer", "torch")
    assert done.exit_code == 0, done.output
    assert before == [0, 1]
    added, hashed = shown
    timed = r"[\d.,]+ [um]s, [\d.]+ GB/s, [\d.]+% of copy bandwidth"
    assert re.fullmatch(rf"add f32 x\[131072\] y\[131072\] \w+: {timed}, [\d.]+% of torch", added)
    assert re.fullmatch(rf"hash_state f32 .*: {timed}", hashed)
    assert "stopped" not in done.stdout
    assert [line.split()[0] for line in done.stdout.splitlines() if line.startswith(("add ", "hash"))][:2] == [
        "add",
        "hash_state",
    ]


def test_a_row_that_failed_is_shown_with_its_reason() -> None:
    row = {"kernel": "add", "dtype": "f32", "shapes": {"x": [3]}, "tuning": None, "failed": "wrong", "skipped": ""}
    assert results.line(row, None) == "add f32 x[3]: FAILED: wrong"
    skipped = {**row, "failed": "", "skipped": "needs fp64"}
    assert results.line(skipped, "torch") == "add f32 x[3]: skipped: needs fp64"


def test_a_folder_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    done = bench("add", "--save", str(tmp_path / "file"))
    assert done.exit_code == 3
    assert "cannot be written" in done.output
    assert "measuring" not in done.output  # it was refused before


def test_the_tune_command_shows_all_and_remembers_one(built: Kernel, vulkan: VulkanDevice) -> None:
    where = ("--folder", str(built.folder), "--device", "vulkan:0", "--json")
    done = call("kernels", "tune", "--dtype", "f32", *where)
    assert done.exit_code == 0, done.output
    (row,) = json.loads(done.stdout)["tuned"]
    assert row["best"] in row["seconds"]
    assert set(row["seconds"]) == {"narrow", "wide"}
    again = call("bench", "kernels", "--case", "1", *where)
    (measured,) = json.loads(again.stdout)["rows"]
    assert measured["tuning"] == row["best"]


def test_numpy_has_nothing_to_tune() -> None:
    done = call("kernels", "tune", "--device", "cpu", "--json")
    assert done.exit_code == 0
    assert json.loads(done.stdout)["tuned"] == []


def test_numbers_are_written_for_people() -> None:
    assert [results.duration(t) for t in (1.234, 1234.5, 123456.0)] == ["1.23 us", "1.234 ms", "123 ms"]
    assert [results.rate(r) for r in (0.1234, 12.34, 123.4, 4012.3)] == ["0.12", "12.3", "123", "4,012"]
