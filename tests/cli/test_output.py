"""What commands print: nothing that comes from a file, a name or an error can steer the terminal or forge a line."""

from __future__ import annotations

import io
import json
import logging
import sys
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console
from typer.testing import CliRunner

from dashi.cli.main import app
from dashi.cli.output import (
    add_row,
    new_table,
    one_line,
    print_error,
    print_json,
    print_table,
    printable,
    remark,
    step_time,
)
from dashi.cli.tables import print_fitted
from dashi.core.certificates._certificate import document_digest
from dashi.errors import FileError, InputError

HOSTILE = {
    "clear the screen": "\x1b[2J\x1b[H",
    "write the clipboard": "\x1b]52;c;cm0gLXJmIH4=\x07",
    "set the title": "\x1b]0;owned\x1b\\",
    "8-bit escape": "\x9b31m",
    "carriage return": "made\rverified",
    "bell": "\x07",
    "backspace": "a\x08b",
    "null": "\x00",
    "delete": "\x7f",
    "right to left": "\u202egpj.exe",
    "isolate": "\u2066x\u2069",
    "line separator": "a\u2028b",
    "half of a pair": "\ud800",
}
OBEYED = [chr(c) for c in range(32) if chr(c) not in "\n\t"] + [chr(c) for c in range(0x7F, 0xA0)]
OBEYED += ["\u061c", "\u200e", "\u200f", *map(chr, range(0x2028, 0x202F)), *map(chr, range(0x2066, 0x206A)), "\ud800"]


def harmless(text: str) -> bool:
    return not any(one in text for one in OBEYED)


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_control_characters_are_shown_and_not_obeyed(text: str) -> None:
    assert harmless(printable(text))
    assert harmless(one_line(text))
    assert printable(text) != text


def test_all_other_text_stays_as_it_is() -> None:
    text = "NVIDIA H200, 5 µs, é ü 日本 [b]bold[/b]\n\tnext"
    assert printable(text) == text
    assert one_line("a\nverified\tx") == "a\\nverified\\tx"


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_nothing_that_prints_lets_them_through(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    remark(f"on {text}")
    print_error(InputError(f"the device {text} is gone.", f"use {text}."), as_json=True)
    table = new_table("name", "value")
    add_row(table, f"x{text}", text)
    print_table(table)
    print_json({"name": text})
    printed = capsys.readouterr()
    assert harmless(printed.out)
    assert harmless(printed.err)


def test_documents_hold_what_was_there(capsys: pytest.CaptureFixture[str]) -> None:
    for text in HOSTILE.values():
        print_json({"name": text})
        assert json.loads(capsys.readouterr().out) == {"name": text}


def test_lines_in_a_message_do_not_begin_where_lines_of_the_program_do(capsys: pytest.CaptureFixture[str]) -> None:
    print_error(InputError("no a\nverified  all hashes are the same.", "none"), as_json=False)
    assert capsys.readouterr().err == "error: no a\n  verified  all hashes are the same.\nFix: none\n"


def test_styles_of_our_own_reach_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    file = io.StringIO()
    console = Console(file=file, force_terminal=True, color_system="standard")
    table = new_table("name")
    add_row(table, "\x1b[2J[bold]plain[/bold]")
    print_fitted(table, console)
    assert "\x1b[1mname" in file.getvalue()
    assert "\x1b[2J" not in file.getvalue()
    assert "\\x1b[2J[bold]plain[/bold]" in file.getvalue()


def test_the_log_is_harmless_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dashi.lab.verification.read_certificate", loud_and_refuse)
    done = CliRunner().invoke(app, ["verify", str(tmp_path / "none.json")])
    assert "\\x1b[2J" in done.stderr
    assert harmless(done.stderr)


def loud_and_refuse(_: Path) -> None:
    logging.getLogger("dashi.test").warning("driver %s", HOSTILE["clear the screen"])
    raise InputError("none.", "none.")


def test_a_certificate_cannot_forge_its_verdict(here: Path) -> None:
    np.savez("A.npz", A=np.eye(3, dtype=np.float32))
    np.savez("z0.npz", z0=np.ones(3, np.float32))
    words = ["--z0", "z0.npz", "--A", "A.npz", "--steps", "2", "--certificate", "c.json", "--device", "cpu"]
    assert CliRunner().invoke(app, ["rollout", *words]).exit_code == 0
    document = json.loads(Path("c.json").read_text())
    document["device"]["name"] = "GPU\nverified     all 9 hashes are the same\x1b[2J\x1b]52;c;eA==\x07\u202e"
    document["hashes"][0]["hash"] = "ab" * 16
    document["digest"] = document_digest(document)
    Path("c.json").write_text(json.dumps(document))
    done = CliRunner().invoke(app, ["verify", "c.json", "--device", "cpu"])
    assert done.exit_code == 1, done.output
    assert harmless(done.output)
    assert not any(line.startswith("verified") for line in done.output.splitlines())
    forged = "made on GPU\\nverified all 9 hashes are the same\\x1b[2J\\x1b]52;c;eA==\\x07\\u202e"
    assert forged in " ".join(done.stdout.split())


def test_a_full_disk_behind_what_is_printed_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    table = new_table("a")
    add_row(table, "b")
    for show in (lambda: print_json({"scores": 1}), lambda: print_table(table)):
        with open("/dev/full", "w") as full, monkeypatch.context() as patch:
            patch.setattr(sys, "stdout", full)
            with pytest.raises(FileError, match=r"what is printed cannot be written: No space left .* Fix: make room"):
                show()


def test_the_time_of_a_step_has_three_digits_and_a_unit_that_suits_it() -> None:
    times = (0.0, 0.25, 20.1, 67_995.9, 999_400, 67_995_900, 6_335_867_200)
    assert [step_time(ns) for ns in times] == ["0 us", "0.00025 us", "0.0201 us", "68 us", "999 us", "68 ms", "6.34 s"]
