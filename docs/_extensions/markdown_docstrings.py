"""Docstrings are written for people who read code: Markdown's `names` and indented programs. Sphinx wants its own."""

from __future__ import annotations

import re
from typing import Any, Final

_CODE: Final = re.compile(r"(`+)(.+?)\1", re.DOTALL)
# What has a meaning in reStructuredText and none in our sentences: *args, |x|, name_, a backslash.
_BEFORE: Final = "'\"([{<-/:"
_AFTER: Final = "'\")]}>-/\\:.,;!?"
"""Characters that may stand right beside inline code."""
_SPECIAL: Final = re.compile(r"[\\*|_`]")
_LIST: Final = re.compile(r"(?:-|\d+\.) +")


def to_rst(lines: list[str]) -> list[str]:
    """Markdown's paragraphs, lists, code and indented programs in reStructuredText."""
    written: list[str] = []
    inside_list = False
    for paragraph in _paragraphs(lines):
        if _indented(paragraph[0]) and not inside_list:
            written += ["::", "", *paragraph, ""]
            continue
        inside_list = bool(_LIST.match(paragraph[0])) or (inside_list and paragraph[0].startswith(" "))
        # Sentences that are indented a little are not a quotation.
        text = "\n".join(paragraph if inside_list else map(str.strip, paragraph))
        written += [*_escaped(text).splitlines(), ""]
    return written


def _paragraphs(lines: list[str]) -> list[list[str]]:
    """Lines between blank ones; an indented program stays one paragraph, and begins one even right after text."""
    paragraphs: list[list[str]] = [[]]
    for line in lines:
        last = paragraphs[-1]
        if not line.strip():
            paragraphs.append([])
        elif last and not _LIST.match(last[0]) and (_LIST.match(line) or _indented(line) != _indented(last[-1])):
            paragraphs.append([line])
        else:
            last.append(line)
    return [paragraph for paragraph in paragraphs if paragraph]


def _indented(line: str) -> bool:
    return line.startswith("    ")


def _escaped(text: str) -> str:
    """The text with code as code, and everything else meaning itself."""
    written: list[str] = []
    place = 0
    bullet = _LIST.match(text)
    if bullet:
        written.append(bullet[0])
        place = bullet.end()
    for code in _CODE.finditer(text, place):
        written += [_SPECIAL.sub(r"\\\g<0>", text[place : code.start()]), _literal(code, text)]
        place = code.end()
    return "".join([*written, _SPECIAL.sub(r"\\\g<0>", text[place:])])


def _literal(code: re.Match[str], text: str) -> str:
    """Inline code; what stands right beside it (`Array`s, `x`[0]) is held apart by an escaped space, as
    reStructuredText asks for most characters."""
    words = " ".join(code[2].split())
    before, following = text[: code.start()][-1:], text[code.end() :][:1]
    apart = [
        "\\ " if c and not c.isspace() and c not in fine else "" for c, fine in ((before, _BEFORE), (following, _AFTER))
    ]
    return f"{apart[0]}``{words}``{apart[1]}"


def _process(app: object, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    lines[:] = to_rst(lines)


def setup(app: Any) -> dict[str, bool]:
    """Sphinx calls this."""
    app.connect("autodoc-process-docstring", _process)
    return {"parallel_read_safe": True}
