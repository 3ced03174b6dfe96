"""The documentation site in a real browser, from the disk: a page, the search, the API of a package."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.long
PHONE, DESK = 390, 1280


def require_quiet(visit: Any, site: Path) -> None:
    """No complaint of the browser, and no request but for files of the site."""
    assert visit.complaints == ()
    assert [url for url in visit.requests if not url.startswith(("data:", site.as_uri()))] == []
    assert visit.requests


@pytest.mark.parametrize("width", [PHONE, DESK])
def test_front_page_has_the_picture_and_the_navigation_in_order(browser: Any, site: Path, width: int) -> None:
    require_quiet(browser.visit(site / "index.html", width), site)
    assert browser.evaluate("document.scrollingElement.scrollWidth") <= width
    assert browser.evaluate("[...document.images].every((one) => one.naturalWidth > 0)")
    assert browser.evaluate("document.images.length") >= 1
    captions = browser.evaluate(
        "[...document.querySelectorAll('.sidebar-tree .caption')].map((one) => one.textContent)"
    )
    assert captions == ["Start", "How to", "Explanation", "Reference", "API"]


def test_page_of_an_api_shows_signatures_and_fits_a_phone(browser: Any, site: Path) -> None:
    for width in (PHONE, DESK):
        require_quiet(browser.visit(site / "api" / "flow.html", width), site)
        assert browser.evaluate("document.scrollingElement.scrollWidth") <= width
    signature = browser.evaluate("document.getElementById('dashi.flow.Flow').textContent")
    assert "nu: float" in signature
    described = browser.evaluate("document.getElementById('dashi.flow.Flow').nextElementSibling.textContent")
    assert "A flow to be solved" in described
    assert "`" not in described


@pytest.mark.parametrize(("word", "page"), [("lavapipe", "gpu-tests-without-a-gpu.html"), ("Flow", "api/flow.html")])
def test_search_works_from_the_disk(browser: Any, site: Path, word: str, page: str) -> None:
    browser.visit(site / "index.html", DESK)
    browser.evaluate(
        f"document.querySelector('.sidebar-search').value = '{word}', document.querySelector('form').submit()"
    )
    names: list[str] = []
    deadline = time.monotonic() + 30
    while not any(page in link for link in names):
        assert time.monotonic() < deadline, names
        time.sleep(0.3)
        names = browser.evaluate("[...document.querySelectorAll('#search-results a')].map((one) => one.href)")
    assert all(link.startswith(site.as_uri()) for link in names)
