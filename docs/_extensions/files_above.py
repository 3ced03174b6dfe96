"""Pages made of files above docs/ (the README and its like), and links to them from all others.

The repository is read on the web too, where these files have to be at its root and links have to lead there.
"""

from __future__ import annotations

import os
import re
from pathlib import Path, PurePosixPath
from typing import Any, Final

DOCS: Final = Path(__file__).parents[1]
ABOVE: Final = {
    "project/readme": "README.md",
    "project/contributing": "CONTRIBUTING.md",
    "project/changelog": "CHANGELOG.md",
}
"""Pages by what they are made of; the files under docs/project are only there to have a place in the navigation."""
_PAGES: Final = {file: f"docs/{page}.md" for page, file in ABOVE.items()}
_LINK: Final = re.compile(r"(?<=\]\()(?!\w+:|#)([^)#\s]+)")


def moved_links(text: str, folder: str, target: str) -> str:
    """A text from one folder of the repository, to be read in another, with links to the files above docs/ led to
    their pages."""

    def moved(link: re.Match[str]) -> str:
        file = os.path.normpath(PurePosixPath(folder, link[1]))
        return os.path.relpath(_PAGES.get(file, file), target)

    return _LINK.sub(moved, text)


def _read(app: Any, page: str, source: list[str]) -> None:
    folder = str(PurePosixPath("docs", page).parent)
    if page in ABOVE:
        file = DOCS.parent / ABOVE[page]
        app.env.note_dependency(str(file))
        source[0] = moved_links(file.read_text(), ".", folder)
    elif not page.startswith("api/"):
        source[0] = moved_links(source[0], folder, folder)


def setup(app: Any) -> dict[str, bool]:
    """Sphinx calls this."""
    app.connect("source-read", _read)
    return {"parallel_read_safe": True}
