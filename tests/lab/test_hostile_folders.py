"""A folder from anyone is read by every command that reads, and not a byte changes, in it or beside it."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from dashi.cli.main import app
from dashi.io._run_mark import MARK

SIMULATE = "flow simulate --n 16 --nu 0.01 --set peak=2 --device cpu --host-fft --steps 12 --frame-every 2 --members 2"
READERS = (
    "verify evil/certificate.json --device cpu",
    "verify evil/unfinished/certificate.json --device cpu",
    "report evil --out page.html",
    "sheet view evil/sheet_energy.npy --device cpu --out sheet.png",
    (
        "flow fit --from evil --train-steps 4 --windows 1 --k-cut 3 --validation-seeds 0 --baseline persistence "
        "--device cpu --out fitted.npz"
    ),
    "flow evaluate model.npz --from evil --start 8 --eval-steps 4 --allow-overlap --device cpu",
    "flow rollout --model model.npz --from evil --steps 1 --decode-every 1 --no-stage-times --device cpu",
    "flow rollout --fit-from evil --k-cut 2 --steps 1 --decode-every 1 --no-stage-times --device cpu",
    "rollout --z0 evil/inputs.npz --A evil/inputs.npz --steps 1 --device cpu",
)
NAMES = ("certificate.json", "inputs.npz", "fields.zarr", "sheet_energy.npy", "metrics.json", "state.npz")


def dashi(*words: str) -> Any:
    return CliRunner().invoke(app, [word for text in words for word in text.split()])


def listing(*folders: Path) -> dict[str, Any]:
    """All that is below folders: kinds, times, what links lead to, and every byte."""
    by_name: dict[str, Any] = {}
    for folder in folders:
        for path in [folder, *sorted(folder.rglob("*"))]:
            status = path.lstat()
            content = os.readlink(path) if path.is_symlink() else path.read_bytes() if path.is_file() else None
            by_name[str(path)] = (status.st_mode, status.st_ino, status.st_nlink, status.st_mtime_ns, content)
    return by_name


@pytest.fixture(scope="module")
def room(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of a run that has everything, and a model."""
    room = tmp_path_factory.mktemp("room")
    here = Path.cwd()
    os.chdir(room)
    try:
        fit = "flow fit --from evil --train-steps 4 --windows 1 --k-cut 3 --validation-seeds 0 --baseline persistence"
        lines = (
            f"{SIMULATE} --out evil", f"{fit} --device cpu --out model.npz",
            "demo --rollout --steps 100 --device cpu --out wave",
            ("rollout --z0 wave/inputs.npz --A wave/inputs.npz --steps 4 --hash-every 2 --sheet-every 2 --device cpu "
            "--out turn"),
        )  # fmt: skip
        for line in lines:
            done = dashi(line)
            assert done.exit_code == 0, done.output
    finally:
        os.chdir(here)
    for name in ("certificate.json", "inputs.npz", "sheet_energy.npy"):
        shutil.copy(room / "turn" / name, room / "evil" / name)
    for name in ("wave", "turn"):
        shutil.rmtree(room / name)
    return room


@pytest.fixture
def evil(room: Path, here: Path) -> Path:
    """A copy of it to spoil, beside what is somebody's own."""
    shutil.copytree(room, here, dirs_exist_ok=True)
    (here / "victim").mkdir()
    (here / "victim" / ".bashrc").write_text("# mine\n")
    (here / "evil" / "pictures").mkdir()
    for mine in ("pictures/w.jpg", "z.npz", "decoded.npz", "film.png", "evaluation-notes.md", "report.html"):
        (here / "evil" / mine).write_text("mine")
    return here / "evil"


def mark(folder: Path, **more: Any) -> None:
    folder.mkdir(exist_ok=True)
    document = {"command": "$(touch PWNED)", "finished": True, "aside": True, "lines": ["$(touch PWNED)"], **more}
    (folder / MARK).write_text(json.dumps(document))


def spoil(evil: Path, how: str) -> None:
    victim = evil.parent / "victim"
    aside = evil / "unfinished"
    if how == "a linked mark":
        (evil / MARK).unlink()
        (evil / MARK).symlink_to(victim / ".bashrc")
        mark(aside, files=["certificate.json", "inputs.npz"])
    elif how == "a linked folder":
        mark(victim, files=["certificate.json"])
        aside.symlink_to(victim)
    elif how == "a garbage certificate":
        (evil / "certificate.json").write_text("garbage")
        mark(aside, files=["certificate.json"])
    elif how == "names that lead out":
        mark(aside, files=["../x", "/etc/passwd", str(victim / ".bashrc"), "..", ".", "", MARK, "metrics.json"])
        (aside / "metrics.json").symlink_to(victim / ".bashrc")
    elif how == "links out of it":
        mark(aside, files=[*NAMES])
        for name in ("certificate.json", "inputs.npz", "sheet_energy.npy", "metrics.json"):
            (evil / name).unlink()
            (evil / name).symlink_to(victim / ".bashrc")
        chunk = evil.joinpath("fields.zarr", "vorticity", "c", "0", "0", "0", "0")
        chunk.unlink()
        chunk.symlink_to(victim / ".bashrc")
        (evil / "story.json").symlink_to(victim / ".bashrc")
    elif how == "parts of others":
        for name in ("certificate.json", "fields.zarr", "report.html", "sheet_energy.npy"):
            (evil / f".{name}.part").write_text("half")
        (evil / ".page.html.part").symlink_to(victim / ".bashrc")
    elif how == "not in its place yet":
        for name in NAMES[:3]:
            (aside).mkdir(exist_ok=True)
            (evil / name).rename(aside / name)
        mark(aside, command="flow simulate", files=[*NAMES], settings={})


@pytest.mark.parametrize(
    "how",
    [
        "a linked mark", "a linked folder", "a garbage certificate", "names that lead out", "links out of it",
        "parts of others", "not in its place yet",
    ],
)  # fmt: skip
def test_whoever_reads_a_folder_changes_no_byte_in_it_or_beside_it(evil: Path, how: str) -> None:
    spoil(evil, how)
    before = listing(evil, evil.parent / "victim")
    for line in READERS:
        done = dashi(line)
        assert done.exception is None or isinstance(done.exception, SystemExit), (line, done.output)
        assert listing(evil, evil.parent / "victim") == before, line
        if how == "not in its place yet" and not line.startswith("verify evil/unfinished"):
            assert done.exit_code == 0, (line, done.output)  # a finished run is found where it lies
        if how == "links out of it" and "model.npz --from" not in line:
            assert done.exit_code == 3, (line, done.output)
    assert not (evil.parent / "PWNED").exists()
    assert not (evil.parent / "x").exists()


@pytest.mark.parametrize("target", ["victim/page.html", "victim/.bashrc"])
def test_a_report_is_never_written_through_a_link_in_the_folder(evil: Path, target: str) -> None:
    (evil / "report.html").unlink()
    (evil / "report.html").symlink_to(evil.parent / target)  # to nothing, or to an empty file
    (evil.parent / "victim" / ".bashrc").write_text("")
    before = listing(evil, evil.parent / "victim")
    refused = dashi("report evil")
    assert refused.exit_code == 3
    assert "error: evil/report.html is a link, which may lead anywhere.\nFix: remove it, or name a" in refused.stderr
    assert listing(evil, evil.parent / "victim") == before


def test_a_run_in_a_hostile_folder_is_refused_or_touches_nothing_but_its_own(evil: Path) -> None:
    victim = evil.parent / "victim"
    (victim / "thesis.tex").write_text("mine")
    mark(victim, finished=False, aside=False, command="flow simulate")
    (evil / "unfinished").symlink_to(victim)
    before = listing(evil, victim)
    for more in ("", "--overwrite"):
        done = dashi(SIMULATE, "--out evil", more)
        assert done.exit_code == 3, done.output
        assert "evil/unfinished is a link: a run writes in its own folder alone.\nFix: remove it" in done.stderr
    assert listing(evil, victim) == before
    (evil / "unfinished").unlink()
    done = dashi(SIMULATE, "--out evil --overwrite")
    assert done.exit_code == 3, done.output
    assert " is there, and no run left it: it is not replaced.\nFix: move it away" in done.stderr
    for name in ("certificate.json", "inputs.npz"):
        (evil / name).unlink()
    done = dashi(SIMULATE, "--out evil --overwrite --seed 3")
    assert done.exit_code == 0, done.output
    mine = ("pictures/w.jpg", "z.npz", "decoded.npz", "film.png", "evaluation-notes.md", "report.html")
    assert {(evil / name).read_text() for name in mine} == {"mine"}
    assert {name: value for name, value in before.items() if name.startswith(str(victim))} == listing(victim)
