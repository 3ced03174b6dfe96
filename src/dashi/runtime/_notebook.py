"""HTML for notebooks (`_repr_html_`): tables and text, every word of it escaped."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape


def html_table(head: Sequence[object], rows: Iterable[Sequence[object]], caption: str = "") -> str:
    """A table with a head and a caption; either may be empty."""
    title = f"<caption>{escape(caption)}</caption>" if caption else ""
    top = f"<thead>{_row('th', head)}</thead>" if head else ""
    body = "".join(_row("td", row) for row in rows)
    return f"<table>{title}{top}<tbody>{body}</tbody></table>"


def html_facts(caption: str, facts: Iterable[tuple[str, object]]) -> str:
    """A table of names and values."""
    return html_table((), facts, caption)


def html_text(text: str) -> str:
    """Lines as they stand."""
    return f"<pre>{escape(text)}</pre>"


def _row(tag: str, cells: Sequence[object]) -> str:
    return f"<tr>{''.join(f'<{tag}>{escape(str(cell))}</{tag}>' for cell in cells)}</tr>"
