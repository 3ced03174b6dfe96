"""A command that is killed before any file-system operation: nothing finished is lost, and nothing bars the next."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

PROGRAM = Path(__file__).parent / "killed_at.py"


def tried(case: str, variant: str, what: str) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, str(PROGRAM), case, variant, what], capture_output=True, text=True, timeout=900
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def check(case: str, variant: str, step: int) -> None:
    answer = tried(case, variant, str(step))
    assert answer["wrong"] == []
    assert answer["tried"] > (answer["operations"] - 2) // step


@pytest.mark.parametrize("case", ["whole", "sheet", pytest.param("rollout", marks=pytest.mark.long)])
def test_folders_copied_before_each_operation_are_those_that_killed_commands_leave(case: str) -> None:
    answer = tried(case, "over", "compare")
    assert answer["wrong"] == []
    assert answer["tried"] > 3


@pytest.mark.parametrize("case", ["whole", pytest.param("fit", marks=pytest.mark.long)])
def test_a_command_that_is_killed_before_any_operation_loses_nothing(case: str) -> None:
    answer = tried(case, "over", "states")
    assert answer["wrong"] == []
    assert 3 < answer["tried"] <= answer["operations"]


@pytest.mark.parametrize(
    ("case", "variant", "step"),
    [
        ("rollout", "over", 13),
        ("demo", "over", 37),
        ("whole", "over", 2),
        ("sheet", "over", 2),
        ("rollout", "same", 29),
        ("merge", "over", 29),
    ],
)
def test_a_command_that_is_killed_loses_nothing_and_is_done_again(case: str, variant: str, step: int) -> None:
    check(case, variant, step)


@pytest.mark.long
@pytest.mark.parametrize(
    ("case", "variant", "step"),
    [
        ("rollout", "fresh", 3), ("rollout", "same", 3), ("rollout", "over", 3), ("simulate", "over", 19),
        ("simulate", "fresh", 29), ("shard", "fresh", 17), ("merge", "fresh", 7), ("merge", "over", 7),
        ("decode", "over", 3), ("beside", "over", 3), ("evaluate", "over", 3), ("fit", "fresh", 2),
        ("fit", "over", 2), ("demo", "fresh", 7), ("demo", "over", 4), ("whole", "fresh", 1), ("whole", "same", 1),
        ("whole", "over", 1), ("sheet", "fresh", 1),
    ],
)  # fmt: skip
def test_all_commands_that_are_killed_lose_nothing_and_are_done_again(case: str, variant: str, step: int) -> None:
    check(case, variant, step)
