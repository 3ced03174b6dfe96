"""`dashi stream run`: it asks the library and prints; hashes are those of one device."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from dashi.cli.main import app

EXAMPLE = str(Path(__file__).parents[2] / "examples" / "stream" / "worked_example.yaml")
ON_NUMPY = ["--bind", "gpu_weak=cpu", "--bind", "gpu_mid=cpu", "--bind", "gpu_strong=cpu", "--no-measure"]


@pytest.fixture(autouse=True)
def empty_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DASHI_CACHE_DIR", str(tmp_path / "cache"))


def test_run_prints_stages_and_a_document_with_a_hash_for_each_item() -> None:
    words = ["stream", "run", EXAMPLE, "--items", "4", *ON_NUMPY]
    done = CliRunner(env={"COLUMNS": "160"}).invoke(app, words)
    assert done.exit_code == 0, done.output
    assert [line.split()[0] for line in done.stdout.splitlines()] == ["stage", "cpu0", "gpu0", "gpu1", "gpu2"]
    assert "4 items, in order; period" in done.stderr
    document = json.loads(CliRunner().invoke(app, [*words, "--json"]).stdout)
    assert {"items", "in_order", "hashes", "period_us", "predicted_period_us", "stages"} <= document.keys()
    assert (document["items"], document["in_order"], len(set(document["hashes"]))) == (4, True, 4)
    serial = json.loads(CliRunner().invoke(app, [*words, "--serial", "cpu", "--json"]).stdout)
    assert serial["hashes"] == document["hashes"]
    assert len(serial["stages"]) == 1


def test_run_says_what_is_wrong_with_a_file(tmp_path: Path) -> None:
    path = tmp_path / "chain.yaml"
    path.write_text("window: 0\nstages: []\n")
    done = CliRunner().invoke(app, ["stream", "run", str(path), "--json"])
    assert done.exit_code == 3
    assert "Fix:" in done.output or "fix" in done.output


def test_stopped_runs_print_what_has_come_out(monkeypatch: pytest.MonkeyPatch) -> None:
    from dashi import stream
    from dashi.errors import Interrupted

    real = stream.run

    def stopped(*args: object, **options: object) -> None:
        raise Interrupted(real(args[0], 2))  # type: ignore[arg-type]

    monkeypatch.setattr(stream, "run", stopped)
    done = CliRunner().invoke(app, ["stream", "run", EXAMPLE, "--items", "9", *ON_NUMPY, "--json"])
    assert done.exit_code == 130
    assert json.loads(done.stdout)["items"] == 2


NODES = str(Path(__file__).parents[2] / "examples" / "stream" / "two_nodes.yaml")


@pytest.mark.parametrize(
    ("file", "words", "rank", "message"),
    [
        (
            NODES,
            ["--ranks", "3", "--serial", "cpu"],
            None,
            "--ranks 3 asks for ranks, and --serial cpu runs all ops on",
        ),
        (
            NODES,
            ["--ranks", "3"],
            "1",
            "this process is rank 1 of a job that has its ranks already. Fix: leave --ranks",
        ),
        (
            NODES,
            ["--serial", "cpu"],
            "1",
            "this process is rank 1 of a job, and --serial cpu runs all ops on one device.",
        ),
        (EXAMPLE, ["--ranks", "3"], None, "the stages (cpu0, gpu0, gpu1, gpu2) lie on one node: every rank would run"),
        (EXAMPLE, [], "1", "Fix: give stages `node: NAME` in the file, or start one process without MPI."),
    ],
)
def test_ranks_that_would_each_run_the_whole_chain_are_refused(
    monkeypatch: pytest.MonkeyPatch, file: str, words: list[str], rank: str | None, message: str
) -> None:
    monkeypatch.setattr("dashi.stream.planning.find_spec", lambda name: name)  # mpi4py is not needed to refuse
    if rank is not None:
        monkeypatch.setenv("OMPI_COMM_WORLD_RANK", rank)
        monkeypatch.setenv("OMPI_COMM_WORLD_SIZE", "3")
    bound = ["--bind", "gpu=cpu", "--no-measure"] if file is NODES else ON_NUMPY
    done = CliRunner().invoke(app, ["stream", "run", file, "--items", "2", *bound, *words])
    assert done.exit_code == 3
    assert message in " ".join(done.stderr.split())
    assert done.stdout == ""


def test_a_job_of_one_process_runs_a_chain_without_nodes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMPI_COMM_WORLD_RANK", "0")
    monkeypatch.setenv("OMPI_COMM_WORLD_SIZE", "1")
    done = CliRunner().invoke(app, ["stream", "run", EXAMPLE, "--items", "2", *ON_NUMPY, "--json"])
    assert json.loads(done.stdout)["items"] == 2


def test_a_run_folder_snapshots_and_a_page(tmp_path: Path) -> None:
    out, words = str(tmp_path / "run"), ["stream", "run", EXAMPLE, "--items", "4", *ON_NUMPY]
    more = ["--out", out, "--snapshot", "gpu1=2", "--restarts", "1", "--elsewhere", "neighbour", "--adapt"]
    done = CliRunner().invoke(app, [*words, *more, "--json"])
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["events"] == []
    assert sorted(file.name for file in (tmp_path / "run").iterdir() if not file.name.startswith(".")) == [
        "metrics.json", "snapshots", "stream.json"
    ]  # fmt: skip
    other = CliRunner().invoke(app, [*words[:3], "--items", "5", *ON_NUMPY, "--out", out])
    assert other.exit_code == 3
    assert "--overwrite" in other.stderr


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["--snapshot", "gpu1=2"], 3, "name one with --out"),
        (["--snapshot", "gpu1=x"], 2, "'gpu1=x' is not STAGE=N"),
        (["--snapshot", "gpu9=2", "--out", "there"], 3, "--snapshot names the stage 'gpu9'"),
        (["--elsewhere", "nowhere"], 3, "Fix: "),
        (["--restarts", "-1"], 2, "--restarts"),
    ],
)
def test_options_that_cannot_be_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: list[str], code: int, message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(app, ["stream", "run", EXAMPLE, "--items", "2", *ON_NUMPY, *words])
    assert done.exit_code == code, done.output
    assert message in " ".join(done.stderr.split())


def test_options_for_one_machine_are_refused_for_nodes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dashi.stream.planning.find_spec", lambda name: name)
    words = ["stream", "run", NODES, "--bind", "gpu=cpu", "--no-measure", "--ranks", "3", "--restarts", "2"]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 3
    assert "--restarts is for stages of one machine" in " ".join(done.stderr.split())
