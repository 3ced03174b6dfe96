"""`dashi demo` that is stopped, killed, or has nowhere to write: nothing finished is lost, nothing else is replaced."""

from __future__ import annotations

import errno
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

import pytest
from typer.testing import CliRunner

from dashi.cli.main import app
from dashi.cli.progress import Shown
from dashi.core.traces.trace import write_trace
from dashi.errors import FileError
from dashi.flow.equations import Flow, Kolmogorov
from dashi.io._files import unwritable
from dashi.io._run_mark import MARK, Mark, write_mark
from dashi.lab.demos import _files as files
from dashi.lab.demos import _folder as folder
from dashi.lab.demos import _leaving as leaving
from dashi.lab.demos import _stages as stages
from dashi.lab.demos import setting, wave
from dashi.lab.demos._folder import publish_folder, require_place
from dashi.lab.demos.setting import DemoSetting
from dashi.lab.demos.wave import roll_out

TINY = DemoSetting(
    Flow(16, nu=2e-2, dt=0.02, drag=0.1, forcing=Kolmogorov(2, 1.0), scheme="etdrk4"),
    k_cut=3, spin_up=0.4, window=0.4, interval=5, certified=20, checked=10, words=("--quick",),
)  # fmt: skip
"""So small that it takes a second; what comes of it means nothing."""
WAITING = """
import sys

from dashi.lab.demos import setting
from dashi.cli.main import main
from dashi.flow.proxy._persistence import Persistence
from test_demos_stopped import TINY


def waits(*words, rollout=Persistence.rollout, **options):
    print("scoring", file=sys.stderr, flush=True)
    sys.stdin.readline()
    return rollout(*words, **options)


setting.QUICK, Persistence.rollout = TINY, waits
main()
"""
"""A program: `dashi` whose small demo waits for a line of input while it scores."""
ALL = folder.FILES - {"state.png", "report.html"}


def call(*words: str) -> Any:
    return CliRunner().invoke(app, list(words))


def demo(*words: str) -> Any:
    return call("demo", "--quick", "--device", "cpu", *words)


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()} - {MARK}


def earlier_demo(folder: Path, form: str = "--quick") -> None:
    """A finished demo of that form, or of none."""
    folder.mkdir(parents=True)
    (folder / "summary.json").write_text("old")
    write_mark(folder, Mark("demo", True, ("summary.json",), settings={"form": form} if form else {}))


@pytest.fixture
def tiny(here: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(setting, "QUICK", TINY)
    return here


@pytest.fixture
def undrawn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)  # the page is not what this is about


def interrupted(*args: Any, **kwargs: Any) -> NoReturn:
    raise KeyboardInterrupt


def press(then: Callable[..., Any]) -> Callable[..., Any]:
    """Ctrl-C, once, and then what was asked for."""
    pressed = list[bool]()

    def both(*args: Any, **kwargs: Any) -> Any:
        if not pressed:
            pressed.append(True)
            os.kill(os.getpid(), signal.SIGINT)
        return then(*args, **kwargs)

    return both


def test_ctrl_c_while_the_report_is_drawn_loses_nothing(tiny: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("matplotlib")
    earlier = tiny / "runs" / "demo-quick"
    earlier_demo(earlier)
    with monkeypatch.context() as during:
        during.setattr("dashi.report.page.write_report", interrupted)
        stopped = demo()
    assert stopped.exit_code == 130
    assert names(earlier) == {"summary.json"}
    left = tiny / "runs" / "demo-quick-unfinished"
    assert names(left) == ALL
    assert json.loads((left / "summary.json").read_text())["files"] == sorted(ALL)
    lines = stopped.stderr.splitlines()
    assert lines[-4] == "no report yet: stopped while it was drawn"
    assert re.match(r"runs/demo-quick-unfinished holds what was finished \(\d+ files\)", lines[-3])
    assert "certificate.json" not in stopped.stdout + stopped.stderr  # the files are in the folder, not in a line
    assert lines[-3].endswith("), and runs/demo-quick is as it was")
    again = "dashi demo --quick --device cpu --out runs/demo-quick"
    assert lines[-2:] == [f"`dashi report runs/demo-quick-unfinished` shows it, `{again}` begins anew", "stopped"]
    assert call("verify", "runs/demo-quick-unfinished/certificate.json", "--device", "cpu").exit_code == 0
    assert call("report", "runs/demo-quick-unfinished").exit_code == 0
    assert 'class="warning"' not in (left / "report.html").read_text()  # only the page was missing


@pytest.mark.usefixtures("undrawn")
def test_ctrl_c_while_files_are_written_waits_until_they_are(tiny: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "save_evaluation", press(files.save_evaluation))
    stopped = demo("--out", "run")
    assert stopped.exit_code == 130
    assert not (tiny / "run").exists()
    assert names(tiny) == {"run-unfinished"}
    assert names(tiny / "run-unfinished") >= {"evaluation-test.npz", "continuation.npz", "certificate.json"}
    story = json.loads((tiny / "run-unfinished" / "story.json").read_text())
    assert story["warnings"] == ["This run is not finished. What is missing: check."]


@pytest.mark.usefixtures("undrawn")
@pytest.mark.parametrize(
    ("stage", "there", "missing"),
    [
        ("fit", {"fields.zarr"}, {"model.npz", "z.npz"}),
        ("decode", {"fields.zarr", "model.npz", "z.npz", "certificate.json", "sheet_energy.npy"}, {"continuation.npz"}),
    ],
)
def test_ctrl_c_keeps_the_stages_that_are_finished(
    tiny: Path, monkeypatch: pytest.MonkeyPatch, stage: str, there: set[str], missing: set[str]
) -> None:
    monkeypatch.setattr(stages, stage, interrupted)
    stopped = demo("--out", "run", "--json")
    assert stopped.exit_code == 130
    names_before = names(tiny / "run-unfinished")
    assert names_before >= {*there, "summary.json", "story.json", "trace.perfetto-trace"}
    assert not names_before & missing
    summary = json.loads(stopped.stdout)
    assert summary["folder"] == "run-unfinished"
    assert set(summary["files"]) == names_before
    assert summary["notes"][0].startswith(f"This run is not finished. What is missing: {stage}, ")


@pytest.mark.usefixtures("undrawn")
def test_before_anything_is_finished_nothing_is_left(tiny: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stages, "simulate", interrupted)
    stopped = demo("--out", "run")
    assert stopped.exit_code == 130
    assert "nothing was finished yet; `dashi demo --quick --device cpu --out run` begins anew" in stopped.stderr
    assert names(tiny) == set()


@pytest.mark.usefixtures("undrawn")
def test_a_full_disk_keeps_what_was_written_before(tiny: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(path: Path, *rest: Any) -> NoReturn:
        raise unwritable(path, OSError(errno.ENOSPC, "No space left on device"))

    monkeypatch.setattr(files, "save_evaluation", full)
    ended = demo("--out", "run")
    assert ended.exit_code == 3
    assert "No space left on device.\nFix: make room on that disk" in ended.stderr
    assert re.search(r"run-unfinished holds what was finished \(\d+ files\)", ended.stderr)
    assert names(tiny / "run-unfinished") >= {"model.npz", "z.npz", "certificate.json", "fields.zarr", "story.json"}


@pytest.mark.usefixtures("undrawn")
def test_runs_that_were_stopped_keep_their_folders_and_a_finished_one_takes_its_place(
    tiny: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as during:
        for _ in range(2):
            during.setattr(leaving, "write_trace", press(write_trace))
            assert demo("--out", "run").exit_code == 130
    assert names(tiny) == {"run-unfinished", "run-unfinished-2"}
    earlier_demo(tiny / "run", "--rollout")
    (tiny / "run" / "state.png").touch()  # of the other form of the demo
    refused = demo("--out", "run")
    assert refused.exit_code == 3
    said = (
        "error: run holds a finished run of `dashi demo` with other settings (form is --rollout there, --quick here)."
    )
    assert refused.stderr == f"{said}\nFix: replace it with --overwrite, or choose another with --out.\n"
    done = demo("--out", "run", "--overwrite")
    assert done.exit_code == 0, done.output
    assert names(tiny) == {"run", "run-unfinished", "run-unfinished-2"}
    assert names(tiny / "run") == ALL


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_a_demo_that_is_stopped_or_killed_has_a_report_as_far_as_it_came(here: Path, how: signal.Signals) -> None:
    pytest.importorskip("matplotlib")
    command = [sys.executable, "-c", WAITING, "demo", "--quick", "--device", "cpu"]
    found = os.pathsep.join([str(Path(__file__).parent), *sys.path])
    pipes: dict[str, Any] = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    with subprocess.Popen(command, **pipes, text=True, cwd=here, env={**os.environ, "PYTHONPATH": found}) as running:
        assert running.stderr is not None
        said = ""
        while "scoring" not in said and running.poll() is None:
            said += running.stderr.readline()
        assert "decode: " in said
        running.send_signal(how)
        _, err = running.communicate("\n" if how == signal.SIGINT else None, timeout=120)
    left = here / "runs" / "demo-quick-unfinished"
    assert names(left.parent) == {"demo-quick-unfinished"}
    if how == signal.SIGINT:
        assert running.returncode == 130, err
        assert err.endswith("stopped\n")
        assert "Traceback" not in err
    else:
        assert call("report", str(left)).exit_code == 0
    assert {"certificate.json", "model.npz", "z.npz", "fields.zarr", "report.html"} <= names(left)
    assert "This run is not finished. What is missing: " in (left / "report.html").read_text()
    assert call("verify", str(left / "certificate.json"), "--device", "cpu").exit_code == 0


def foreign(here: Path, kind: str) -> str:
    """A place that a demo may not have, by its name."""
    run = here / "run"
    if kind != "a file":
        run.mkdir()
    if kind == "somebody's":
        (run / "thesis.txt").write_text("all of it")
    elif kind == "a demo with notes":
        (run / "summary.json").write_text("{}")
        (run / "thesis.txt").write_text("all of it")
    elif kind == "a repository":
        (run / ".git").mkdir()
    elif kind == "another run":
        (run / "metrics.json").write_text('{"command": "rollout"}')
    elif kind == "a file":
        run.write_text("all of it")
    elif kind == "where I am":
        os.chdir(run)
        return "."
    elif kind == "nowhere":
        return "/proc/none/run"
    return "run"


@pytest.mark.parametrize("form", ["--quick", "--rollout"])
@pytest.mark.parametrize(
    ("kind", "what"),
    [
        ("somebody's", "run is there already and is not the folder of a run."),
        ("a demo with notes", "run holds thesis.txt, which no demo left there, and would be replaced as a whole."),
        ("a repository", "run holds .git, which no demo left there, and would be replaced as a whole."),
        ("another run", "run holds a run of `dashi rollout`"),
        ("a file", "run is there already and is not the folder of a run."),
        ("where I am", ". is the folder you are in: it cannot be replaced as a whole."),
        ("nowhere", "/proc/none/run cannot be written: "),
    ],
)
def test_a_place_that_is_not_a_demo_s_is_refused_before_the_work(
    here: Path, monkeypatch: pytest.MonkeyPatch, kind: str, what: str, form: str
) -> None:
    monkeypatch.setattr("dashi.lab._job.place", pytest.fail)
    result = call("demo", form, "--device", "cpu", "--out", foreign(here, kind))
    assert result.exit_code == 3, result.output
    assert result.stderr.startswith(f"error: {what}")
    assert "\nFix: " in result.stderr
    assert names(here) == {"run"}
    for file in [here / "run"] if kind == "a file" else (here / "run").glob("thesis.txt"):
        assert file.read_text() == "all of it"


def test_a_link_keeps_pointing_to_where_the_demo_is(here: Path) -> None:
    (here / "disk").mkdir()
    (here / "run").symlink_to(here / "disk" / "run")
    place = require_place(here / "run")
    with publish_folder(place, "again") as folder:
        assert folder == here / "disk" / "run-unfinished"
        (folder / "summary.json").write_text("{}")
    assert (here / "run" / "summary.json").read_text() == "{}"
    assert (here / "run").is_symlink()


def test_what_came_there_in_the_meantime_is_not_replaced(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def come(folder: Path) -> None:
        (folder / "summary.json").write_text("{}")
        (here / "run").mkdir()
        (here / "run" / "thesis.txt").write_text("all of it")

    with (
        pytest.raises(FileError, match=r"run is there already"),
        publish_folder(here / "run", "again", events=Shown()) as folder,
    ):
        come(folder)
    assert (here / "run" / "thesis.txt").read_text() == "all of it"
    assert (here / "run-unfinished" / "summary.json").is_file()
    assert "holds what was finished (1 file)" in capsys.readouterr().err


def test_an_earlier_demo_comes_back_if_it_cannot_be_replaced(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    earlier_demo(here / "run", "")
    rename = os.rename

    def fails(source: Path, target: Path) -> None:
        if Path(source).name == "run-unfinished":
            raise OSError(errno.EIO, "Input/output error")
        rename(source, target)

    monkeypatch.setattr(os, "rename", fails)
    with (
        pytest.raises(FileError, match=r"run cannot be written: Input/output"),
        publish_folder(here / "run", "x") as folder,
    ):
        (folder / "summary.json").write_text("new")
    assert (here / "run" / "summary.json").read_text() == "old"
    assert (here / "run-unfinished" / "summary.json").read_text() == "new"
    assert names(here) == {"run", "run-unfinished"}


def test_a_second_ctrl_c_between_the_renames_brings_the_earlier_demo_back(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    earlier_demo(here / "run", "")
    rename = os.rename

    def pressed_twice(source: Path, target: Path) -> None:
        if Path(source).name == "run-unfinished":
            raise KeyboardInterrupt
        rename(source, target)

    monkeypatch.setattr(os, "rename", pressed_twice)
    with pytest.raises(KeyboardInterrupt), publish_folder(here / "run", "x") as folder:
        (folder / "summary.json").write_text("new")
    assert (here / "run" / "summary.json").read_text() == "old"
    assert (here / "run-unfinished" / "summary.json").read_text() == "new"
    assert names(here) == {"run", "run-unfinished"}


def test_a_rollout_that_is_killed_before_numpy_repeats_it_does_not_say_that_nothing_was_computed(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def killed(*words: Any, keep: bool = False) -> Any:
        if keep:  # of NumPy, which comes second
            raise SystemExit(9)
        return roll_out(*words)

    monkeypatch.setattr(wave, "roll_out", killed)
    assert call("demo", "--rollout", "--device", "cpu", "--steps", "100", "--out", "run").exit_code == 9
    summary = json.loads((here / "run-unfinished" / "summary.json").read_text())
    assert summary["verified"] == "nothing yet: NumPy has not repeated it"
    monkeypatch.undo()
    told = call("demo", "--rollout", "--device", "null", "--steps", "100", "--out", str(here / "null"), "--json")
    assert json.loads(told.stdout)["verified"] == "nothing: null computes nothing"
