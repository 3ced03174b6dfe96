"""`dashi graph explain`: a graph from a file, after each pass."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from dashi.cli.main import app

TEXT = """graph tiny
%x = input : f16[2,3]
%rows = input : u32[1]
%y = gather %x %rows : f16[1,3]
%z = equal %y %y : bool[1,3]
return z=%z
"""


def explain(*words: str) -> Any:
    return CliRunner().invoke(app, ["graph", "explain", *words])


def test_a_graph_is_shown_after_a_pass(here: Path) -> None:
    (here / "tiny.txt").write_text(TEXT)
    assert explain("tiny.txt", "--after", "rewrite").stdout == TEXT + "\n"
    assert "1. y: host(x.canonical, rows) -> f16[1,3]" in explain("tiny.txt").stdout
    document = json.loads(explain("tiny.txt", "--after", "fuse", "--json").stdout)
    assert document["host_steps"] == {"y": "no kernel computes gather of these shapes and types"}


@pytest.mark.parametrize(
    ("content", "message"),
    [(b"\xff\xfe", "cannot be read"), (b"nonsense", "is no graph"), (TEXT.replace("2,3", "2,2", 1).encode(), "line 4")],
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
