"""The documentation site: whole, and quiet on the network. What its extensions do to docstrings and links."""

from __future__ import annotations

import importlib.util
import pkgutil
import re
import sys
from html.parser import HTMLParser
from importlib import import_module
from pathlib import Path
from types import ModuleType
from urllib.parse import unquote

import pytest

import dashi

ROOT = Path(__file__).parents[2]
FOR_COMMANDS = {"dashi.cli"}
"""Packages without a page: nobody imports them."""


def extension(name: str) -> ModuleType:
    """A module of docs/_extensions, which is on no path but Sphinx's."""
    spec = importlib.util.spec_from_file_location(name, ROOT / "docs" / "_extensions" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Page(HTMLParser):
    """What a page has loaded by the browser, where its links lead, and the places that links can lead to."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.loaded: list[str] = []
        self.links: list[str] = []
        self.ids: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        by_name = {name: value or "" for name, value in attrs}
        if "id" in by_name:
            self.ids.add(by_name["id"])
        if tag == "a":
            self.links.append(by_name.get("href", ""))
        else:
            self.loaded += [by_name[name] for name in ("src", "href", "data", "poster", "srcset") if name in by_name]


def fetched(pages: dict[Path, Page], site: Path) -> list[str]:
    """Scripts, styles, fonts and images that come from anywhere else."""
    loaded = [f"{file.name}: {url}" for file, page in pages.items() for url in page.loaded if re.match(r"\w+:|//", url)]
    outside = re.compile(r"(?:url\(\s*['\"]?|@import\s+['\"]?)(?!data:)(?:\w+:|//)")
    return [
        *(one for one in loaded if not one.split(": ", 1)[1].startswith("data:")),
        *(str(style) for style in site.rglob("*.css") if outside.search(style.read_text())),
    ]


def broken(pages: dict[Path, Page]) -> list[str]:
    """Links between pages that lead to no file, or to no place in one."""
    wrong: list[str] = []
    for file, page in pages.items():
        for link in page.links:
            if re.match(r"\w+:", link):
                continue
            name, _, place = unquote(link).partition("#")
            target = (file.parent / name).resolve() if name else file
            known = pages[target].ids if target in pages else set[str]()
            if not target.is_file() or (place and target in pages and place not in known):
                wrong.append(f"{file.name}: {link}")
    return wrong


def undescribed(pages: dict[Path, Page]) -> list[str]:
    """Public classes and functions that no page describes, under any of their names."""
    api = sys.modules.get("public_api") or extension("public_api")
    ids = {name for page in pages.values() for name in page.ids}
    return [name for name in api.homes().values() if name not in ids]


@pytest.mark.long
def test_site_is_built_without_a_warning_is_whole_and_loads_nothing_from_elsewhere(site: Path) -> None:
    pages = {file.resolve(): Page(file.read_text()) for file in site.rglob("*.html")}
    assert fetched(pages, site) == []
    assert broken(pages) == []
    assert undescribed(pages) == []
    # Every page of docs/ is there, the files above it too, and the search has an index that a file:// page can load.
    written = {file.relative_to(ROOT / "docs").with_suffix(".html") for file in (ROOT / "docs").rglob("*.md")}
    assert not [name for name in written if not (site / name).is_file()]
    assert "<h2>Set up and test" in (site / "project" / "contributing.html").read_text()
    assert (site / "searchindex.js").read_text().startswith("Search.setIndex(")


def test_every_package_that_is_imported_has_a_page_of_its_api() -> None:
    api = extension("public_api")
    inside = {entry.name for entry in pkgutil.iter_modules(dashi.__path__, "dashi.") if entry.ispkg}
    assert set(api.PACKAGES) >= inside - FOR_COMMANDS | {"dashi", "dashi.errors", "dashi.types"}
    for name in api.PACKAGES:
        page = ROOT / "docs" / "api" / f"{name.rpartition('.')[2]}.rst"
        assert page.read_text() == f"{name}\n{'=' * len(name)}\n\n.. public-api:: {name}\n"
        assert f"\napi/{page.stem}\n" in (ROOT / "docs" / "index.md").read_text()


def test_an_object_that_several_packages_offer_is_described_once() -> None:
    api = extension("public_api")
    described = api.homes()
    assert len(set(described.values())) == len(described)
    assert described[id(dashi.open)] == "dashi.open"
    runtime = import_module("dashi.runtime")
    lines = api.lines_of(runtime, {**described, id(runtime.Array): "dashi.Array"})
    assert not [line for line in lines if line.startswith(".. ") and line.endswith(".Array")]
    assert any("described elsewhere" in line and "`Array <dashi.Array>`" in line for line in lines)


@pytest.mark.parametrize(
    ("docstring", "rst"),
    [
        ("Adds `x` and `y`.", "Adds ``x`` and ``y``.\n"),
        ("Some `Array`s.", "Some ``Array``\\ s.\n"),
        ("`x`[0] of n=`k`, (`y`).", "``x``\\ [0] of n=\\ ``k``, (``y``).\n"),
        ("Takes *args, |x| and name_ of\nx * y.", "Takes \\*args, \\|x\\| and name\\_ of\nx \\* y.\n"),
        ("A code `a *b* c_` stays.", "A code ``a *b* c_`` stays.\n"),
        ("Text.\n\n    with x as y:\n        z()\n\nMore.", "Text.\n\n::\n\n    with x as y:\n        z()\n\nMore.\n"),
        ("Text:\n    x = 1", "Text:\n\n::\n\n    x = 1\n"),
        ("Kinds:\n- `a`: one\n  and more\n- b", "Kinds:\n\n- ``a``: one\n  and more\n- b\n"),
        ("A `name that\nis broken` over lines.", "A ``name that is broken`` over lines.\n"),
        ("One ` alone.", "One \\` alone.\n"),
        ("A sentence\n  indented a little.", "A sentence\nindented a little.\n"),
    ],
)
def test_docstrings_mean_in_sphinx_what_they_mean_in_the_code(docstring: str, rst: str) -> None:
    assert extension("markdown_docstrings").to_rst(docstring.splitlines()) == rst.split("\n")


def test_links_to_files_above_docs_lead_to_their_pages() -> None:
    moved = extension("files_above").moved_links
    assert moved("[a](../README.md#install) [b](words.md)", "docs", "docs") == (
        "[a](project/readme.md#install) [b](words.md)"
    )
    text = "[a](docs/flow.md#speed) ![b](docs/pictures/report.png) [c](CONTRIBUTING.md) [d](https://x.org/y) [e](#here)"
    assert moved(text, ".", "docs/project") == (
        "[a](../flow.md#speed) ![b](../pictures/report.png) [c](contributing.md) [d](https://x.org/y) [e](#here)"
    )
