"""`dashi filament rate`: a field or a frame of a record, as a table and as JSON."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
from typer.testing import CliRunner

from dashi.cli.main import app

POINTS = np.arange(16) * (2 * math.pi / 16)


def test_a_field_has_a_row_for_each_code_and_error(here: Path) -> None:
    np.save(here / "field.npy", np.sin(3 * POINTS)[:, None] * np.cos(2 * POINTS)[None])
    done = CliRunner().invoke(app, ["filament", "rate", "field.npy", "--error", "0.3", "--error", "0.1", "--json"])
    assert done.exit_code == 0, done.output
    document = json.loads(done.stdout)
    assert [(p["code"], p["asked"]) for p in document["points"]] == [
        (code, error) for code in ("atoms", "modes", "wavelets") for error in (0.3, 0.1)
    ]
    table = CliRunner().invoke(app, ["filament", "rate", "field.npy", "--error", "0.3"])
    assert table.exit_code == 0
    assert len(table.stdout.splitlines()) == 4
    assert "coherent vortices: " in table.stderr


def test_errors_speak_of_flags(here: Path) -> None:
    np.save(here / "field.npy", np.ones((8, 8)))
    done = CliRunner().invoke(app, ["filament", "rate", "field.npy", "--error", "2"])
    assert (done.exit_code, "--error 2.0" in done.stderr, "Fix: " in done.stderr) == (3, True, True), done.stderr
