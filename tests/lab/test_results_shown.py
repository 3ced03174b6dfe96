"""What a notebook shows of results: a short line, and a table in which every word is escaped. Progress without a
terminal."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dashi
from dashi import lab
from dashi.flow import Flow
from dashi.lab.health import PartHealth

ROOT = Path(__file__).parents[2]
HOSTILE = "<b>&"


class Tags(HTMLParser):
    """The tags of a page."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.names = set[str]()
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.names.add(tag)


def require_shown(result: Any, *words: str) -> None:
    """The result has a short line and a table, both with these words, and no tag from them."""
    page = result._repr_html_()
    assert len(repr(result)) < 300
    assert Tags(page).names <= {"table", "caption", "thead", "tbody", "tr", "th", "td"}
    assert not [word for word in words if word not in page.replace("&lt;b&gt;&amp;", HOSTILE)]


def test_a_verification_and_a_certificate(here: Path) -> None:
    folder = Path("runs <b>&")
    run = dashi.rollout(dashi.Linear(np.eye(2)), np.ones(2), 4, device="cpu", out=folder)
    require_shown(run.certificate, HOSTILE, run.hashes[-1].digest, "linear")
    verification = run.certificate.verify("cpu")
    require_shown(verification, HOSTILE, "all are the same", "cpu")
    assert repr(verification) == f"<Verification of {folder / 'certificate.json'}: {verification.sentences[0]}>"


def test_a_fitted_model_and_its_scores() -> None:
    fit = dashi.flow.fit(
        "persistence", Flow(n=16, nu=0.005, dt=0.02), train=[1], validate=0, k_cut=3, train_steps=4, frame_every=2,
        spin_up=0, baselines=["damped"], device="cpu", host_fft=True,
    )  # fmt: skip
    require_shown(fit, "persistence", "damped", "windows: train (1)")


def test_a_demonstration_of_a_rollout(here: Path) -> None:
    result = lab.demo_wave(lab.WaveRequest(steps=100), device="cpu", out="wave")
    require_shown(result, result.summary["hash"], result.summary["verified"])
    assert repr(result) == f"<WaveResult: {result.folder}, 100 steps, {result.summary['verified']}>"


def test_the_main_job() -> None:
    from dashi.lab.demos._results import Results

    summary = {"horizons": {HOSTILE: 2.5}}
    require_shown(lab.DemoResult(Results(checked="same"), summary, Path("runs/x"), None, 3.0), HOSTILE, "2.5", "runs/x")


def test_the_health_of_an_installation() -> None:
    health = lab.Health((PartHealth("cpu device", "failed", HOSTILE, "reinstall"),))
    require_shown(health, HOSTILE, "reinstall", "dashi does not work here: cpu device.")
    assert repr(health) == "<Health: dashi does not work here: cpu device.>"


def test_checks_of_kernels() -> None:
    checks = lab.check_kernels([dashi.kernel("axpy")], devices=["cpu"], quick=True)
    require_shown(checks, "axpy", "cpu")
    assert repr(checks) == "<KernelChecks: 1 kernels on devices, 0 trials failed>"
    require_shown(lab.BuiltKernels([{"name": "a", "differences": [HOSTILE]}]), HOSTILE)


def test_comparisons_of_decodes_and_of_v4() -> None:
    parity = lab.compare_decodes(lab.ParityRequest(n=16, k_cut=3, anchors=0, seeds=1), device="cpu")
    require_shown(replace(parity, device=replace(parity.device, name=HOSTILE)), HOSTILE, "seeded")
    compared = lab.compare_v4(lab.V4Request(n=32, steps=30), device="cpu")
    require_shown(compared, compared.rows[0].name)
    assert repr(compared).endswith("no golden numbers>")


def test_pictures_of_a_sheet(tmp_path: Path) -> None:
    pictures = lab.draw_sheet(lab.SheetRequest(out=tmp_path / "sheet.png", example=True), device="cpu")
    require_shown(pictures, "sheet.png")


def test_progress_is_printed_where_there_is_no_terminal() -> None:
    code = (
        "import numpy as np, dashi\n"
        "events = dashi.lab.PrintedEvents(every=0)\n"
        "dashi.rollout(dashi.Linear(np.eye(2)), np.ones(2), 2000, device='cpu', events=events)\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert (done.stdout, "\x1b" in done.stderr, "\r" in done.stderr) == ("", False, False)
    assert done.stderr.startswith("rolling out 2000 steps of linear on NumPy")
    assert "rollout: 2,000 of 2,000 steps, " in done.stderr


def test_progress_is_printed_to_the_stream_that_a_notebook_puts_in_place(monkeypatch: pytest.MonkeyPatch) -> None:
    class Cell:
        """A stream of IPython's kernel: text is sent away, and there is neither a terminal nor a file beneath it."""

        encoding = "UTF-8"

        def __init__(self) -> None:
            self.text = ""

        def write(self, text: str) -> int:
            self.text += text
            return len(text)

        def flush(self) -> None: ...

        def isatty(self) -> bool:
            return False

        def fileno(self) -> int:
            raise OSError("a cell has no file")

    events = lab.PrintedEvents(every=0)
    cells = [Cell(), Cell()]
    for cell in cells:
        monkeypatch.setattr(sys, "stderr", cell)
        dashi.rollout(dashi.Linear(np.eye(2)), np.ones(2), 10, device="cpu", events=events)
    assert [cell.text.count("rollout: 10 of 10 steps") > 0 for cell in cells] == [True, True]


def test_machine_code() -> None:
    from dashi.lab.isa.machine_code import MachineCode

    row = MachineCode("gfx <b>&", "radv", "axpy", "main", "f32", (), portable=True)
    require_shown(lab.MachineCodeReport(lab.MachineCodeRequest("amd"), (row,)), HOSTILE, "axpy")
