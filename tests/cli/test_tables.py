"""Tables fit the width of a terminal, and break between words."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console
from typer.testing import CliRunner

from dashi.bench import fft, flow, results, rollout
from dashi.cli import output, tables
from dashi.cli.bench_peers import PeerBench
from dashi.cli.devices import _print_health as print_findings  # pyright: ignore[reportPrivateUsage]
from dashi.cli.flow_evaluate import print_scores
from dashi.cli.main import app
from dashi.cli.tables import TextTable
from dashi.flow.evaluation._fits import load_fit
from dashi.lab._score_tables import ScoreTables, ScoreText
from dashi.lab.health import Health, PartHealth

MEASURED = Path(__file__).parents[2] / "docs" / "benchmarks"
WIDTHS = (60, 80, 120)
LONGEST = 26
"""A word that is longer may have to be broken in a column of a narrow terminal: a path, for instance."""


@pytest.fixture
def printed(monkeypatch: pytest.MonkeyPatch) -> list[TextTable]:
    """The tables that commands print."""
    seen: list[TextTable] = []
    monkeypatch.setattr(tables, "print_fitted", lambda table, console: seen.append(table))
    return seen


def rendered(table: TextTable, width: int) -> str:
    stream = io.StringIO()
    tables_console = Console(width=width, file=stream, color_system=None, highlight=False)
    REAL(table, tables_console)
    return "\n".join(line.rstrip() for line in stream.getvalue().splitlines())


REAL = tables.print_fitted


def words(table: TextTable) -> set[str]:
    cells = [*table.headings, *(cell.plain for row in table.rows for cell in row)]
    return {word for cell in cells for word in cell.split()}


def require_fit(table: TextTable) -> None:
    """No line is longer than the width, no word is broken, and none is lost."""
    known = words(table)
    long = [word for word in known if len(word) > LONGEST]
    for width in WIDTHS:
        text = rendered(table, width)
        assert max(map(len, text.splitlines())) <= width
        tokens = set(text.split())
        broken = {token for token in tokens - known if not any(token in word for word in long)}
        assert not broken, (width, broken)
        assert not (known - set(long)) - tokens, width


def call(*command: str) -> None:
    done = CliRunner().invoke(app, list(command))
    assert done.exit_code == 0, done.output


@pytest.mark.parametrize(
    "line",
    [
        "kernels list",
        "kernels show gemv",
        "kernels check add --quick --device cpu",
        "devices list",
        "bench fft --case 3 --device cpu",
        "bench flow --n 16 --device cpu",
        "flow parity --n 16 --seeds 1 --k-cut 3 --anchors 2 --device cpu",
        "flow simulate --n 16 --steps 2 --device cpu --host-fft",
    ],
)
def test_no_table_breaks_a_word_or_passes_the_width(line: str, printed: list[TextTable]) -> None:
    call(*line.split())
    assert printed
    for table in printed:
        require_fit(table)


@pytest.mark.parametrize("name", ["kernels", "rollout", "fft", "flow"])
def test_tables_of_benches_fit(name: str, printed: list[TextTable]) -> None:
    prefix = "" if name == "kernels" else f"{name}-"
    document = json.loads(max(MEASURED.glob(f"{prefix}nvidia-*.json")).read_text())
    if name == "kernels":
        output.print_rows(*results.table(document))
    else:
        bench: Any = {"rollout": rollout, "fft": fft, "flow": flow}[name]
        PeerBench(name, bench.tables, bench.page, None).print(document, json=False)
    assert printed
    for table in printed:
        require_fit(table)


def test_scores_of_an_evaluation_fit(fitted: Path, printed: list[TextTable]) -> None:
    evaluations = load_fit(fitted).evaluations
    print_scores(ScoreTables(tuple(ScoreText.of(one) for one in evaluations)))
    assert len(printed) == len(evaluations) > 0
    for table in printed:
        require_fit(table)
    # At 80 columns all horizons stand side by side.
    assert rendered(printed[0], 80).splitlines()[0].split()[:4] == ["model", "t(0.9)", "t(0.8)", "t(0.5)"]


def test_what_doctor_finds_fits(printed: list[TextTable], capsys: pytest.CaptureFixture[str]) -> None:
    parts = (
        PartHealth(
            "driver", "ok", "/usr/share/vulkan/icd.d/a_driver_with_a_long_name.x86_64.json: no device of its kind"
        ),
        PartHealth("validation layers", "optional", "not installed", "apt install vulkan-validationlayers"),
    )
    print_findings(Health(parts))
    require_fit(printed[0])
    assert "Fix: apt install vulkan-validationlayers" in rendered(printed[0], 80)


def test_kernels_are_listed_in_about_two_lines_each(printed: list[TextTable]) -> None:
    from dashi import kernels

    call("kernels", "list")
    assert len(rendered(printed[0], 80).splitlines()) <= 2.2 * len(kernels.names())
    assert len(rendered(printed[0], 120).splitlines()) <= 1.3 * len(kernels.names())


def made(*headings: str, rows: Iterator[tuple[str, ...]] | list[tuple[str, ...]], keys: int = 1) -> TextTable:
    table = output.new_table(*headings, keys=keys)
    for row in rows:
        output.add_row(table, *row)
    return table


def test_columns_that_do_not_fit_follow_below_with_their_keys() -> None:
    headings = [f"column{i}" for i in range(12)]
    table = made(*headings, rows=[tuple(f"value{i}-{row}" for i in range(12)) for row in range(2)])
    lines = rendered(table, 60).splitlines()
    blocks = "\n".join(lines).split("\n\n")
    assert len(blocks) == 3
    for block in blocks:
        first, *rest = block.splitlines()
        assert first.startswith("column0")
        assert [line.split()[0] for line in rest] == ["value0-0", "value0-1"]
    assert [word for block in blocks for word in block.splitlines()[0].split() if word != "column0"] == headings[1:]


def test_a_table_that_fits_is_one_block_as_wide_as_its_text() -> None:
    table = made("a", "b", rows=[("x", "one two three")])
    assert rendered(table, 80) == "a  b\nx  one two three"


def test_only_a_word_longer_than_the_line_is_broken() -> None:
    table = made("", "", rows=[("path", "x" * 100), ("text", "some words " * 12)])
    lines = rendered(table, 40).splitlines()
    assert max(map(len, lines)) == 40
    assert "".join(line[4:].strip() for line in lines if "x" in line.split()[-1]).count("x") == 100
    assert set(" ".join(line for line in lines if "xx" not in line).split()) == {"text", "some", "words"}


@pytest.mark.parametrize(("columns", "width"), [(None, 120), ("72", 72), ("nonsense", 120), ("0", 120)])
def test_what_is_not_a_terminal_has_120_columns_or_as_many_as_it_says(
    columns: str | None, width: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    if columns is not None:
        monkeypatch.setenv("COLUMNS", columns)
    output.print_table(made("", "", rows=[("text", "word " * 100)]))
    lines = capsys.readouterr().out.splitlines()
    assert width - 4 <= max(map(len, lines)) <= width


def test_rows_and_headings_must_be_as_many() -> None:
    table: Any = made("a", "b", rows=[])
    add: Callable[..., None] = table.add_row
    with pytest.raises(ValueError, match="1 cells for 2 headings"):
        add("alone")
