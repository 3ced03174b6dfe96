"""How scores are printed: a table for each set of windows, with a row for each model."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dashi.cli.output import add_row, new_table, print_table, print_text

if TYPE_CHECKING:
    from dashi.lab._score_tables import ScoreTables


def print_scores(tables: ScoreTables) -> None:
    """Tables that fit the terminal, one for each set of windows."""
    from dashi.lab._score_tables import HEADINGS

    for number, scores in enumerate(tables):
        if number:
            print_text("")
        print_text(scores.title)
        table = new_table(*HEADINGS)
        for row in scores.rows:
            add_row(table, *row)
        print_table(table)
