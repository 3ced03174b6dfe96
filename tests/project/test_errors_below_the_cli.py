"""Errors below the command line speak of Python parameters (`hash_every=`), which the command line turns into flags."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "src" / "dashi"
FLAG = re.compile(r"(?<![\w-])--[A-Za-z][\w-]*")


def text_of(node: ast.expr) -> str:
    """The words of a string, also of one with values in it or of a sum; those of everything else are empty."""
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else ""
    if isinstance(node, ast.JoinedStr):
        return "".join(text_of(part) if isinstance(part, ast.Constant) else "..." for part in node.values)
    if isinstance(node, ast.BinOp):
        return text_of(node.left) + text_of(node.right)
    return ""


def error_texts(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """What errors are made with, and what their texts are joined from: the arguments of every call of a class that ends
    in Error, and names that hold a fix."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            if name.endswith("Error") or name in ("remark", "unwritable"):
                yield from ((part.lineno, text_of(part)) for part in node.args)
        elif isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
            target = node.targets[0] if isinstance(node, ast.Assign) else node.target
            if isinstance(target, ast.Name) and re.search("fix|again", target.id, re.IGNORECASE):
                yield node.lineno, text_of(node.value)


def flags_in(tree: ast.AST) -> list[tuple[int, str]]:
    """Flags in texts of errors and remarks, each with its line: a command has none either."""
    return [(line, flag) for line, text in error_texts(tree) for flag in FLAG.findall(text)]


def test_no_error_below_the_command_line_speaks_of_a_flag() -> None:
    places: list[str] = []
    for path in sorted(SOURCE.rglob("*.py")):
        inside = path.relative_to(SOURCE)
        text = path.read_text()
        if inside.parts[0] != "cli" and FLAG.search(text):
            places += [f"{inside}:{line} {flag}" for line, flag in flags_in(ast.parse(text))]
    assert not places, "\n".join(["name the parameter, `like_this=` (cli/flags.py translates):", *places])


@pytest.mark.parametrize(
    ("code", "flags"),
    [
        ('raise InputError("no.", "use --resume.")', ["--resume"]),
        ('raise errors.FileError(f"{x} is --A file", "a" + "b --out")', ["--A", "--out"]),
        ('raise InputError("no.", "name a run of `dashi flow simulate --out`.")', ["--out"]),
        ('raise InputError("no.", "use `resume=True`; three --- dashes, a--b.")', []),
        ('_AGAIN = "evaluate again with --out."', ["--out"]),
        ('events.remark("faster with --fast")', ["--fast"]),
        ('run([tool, "--version"])', []),
    ],
)
def test_flags_are_seen_in_every_kind_of_text(code: str, flags: list[str]) -> None:
    assert [flag for _, flag in flags_in(ast.parse(code))] == flags
