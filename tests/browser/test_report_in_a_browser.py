"""The report in a real browser: quiet, without a request, and readable on a phone."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from dashi.cli.main import app
from dashi.report.example import example_report
from dashi.report.page import DeviceUse, Report, write_report

pytestmark = pytest.mark.long
PHONE, DESK = 390, 1280


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Every section, with made-up numbers."""
    file = tmp_path_factory.mktemp("page") / "report.html"
    write_report(file, example_report())
    return file


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of the main job, in its small form."""
    folder = tmp_path_factory.mktemp("demo") / "run"
    done = CliRunner().invoke(app, ["demo", "--quick", "--device", "cpu", "--out", str(folder)])
    assert done.exit_code == 0, done.output
    return folder / "report.html"


@pytest.mark.parametrize("width", [PHONE, DESK])
def test_the_report_of_the_main_job_is_quiet_whole_and_fits(browser: Any, measured: Path, width: int) -> None:
    visit = browser.visit(measured, width)
    assert visit.complaints == ()
    assert [url for url in visit.requests if not url.startswith("data:") and url != measured.as_uri()] == []
    assert browser.evaluate("document.scrollingElement.scrollWidth") <= width
    assert browser.evaluate("[...document.images].every((one) => one.naturalWidth > 0)")
    titles = browser.evaluate("[...document.querySelectorAll('h2, h3')].map((one) => one.textContent)")
    assert {"What it foresees", "How long does it hold?", "Where it ran", "Proof", "Timeline"} <= set(titles)


@pytest.mark.parametrize("width", [PHONE, DESK])
@pytest.mark.parametrize("dark", [False, True])
def test_the_page_is_quiet_and_asks_for_nothing(browser: Any, page: Path, width: int, dark: bool) -> None:
    visit = browser.visit(page, width, dark=dark)
    assert visit.complaints == ()
    outside = [url for url in visit.requests if not url.startswith("data:") and url != page.as_uri()]
    assert outside == []
    assert page.as_uri() in visit.requests  # the check sees requests at all


def test_the_page_fits_a_phone(browser: Any, page: Path) -> None:
    browser.visit(page, PHONE)
    assert browser.evaluate("document.scrollingElement.scrollWidth") <= PHONE
    # Text in figures: 8 points on a phone are small, and still read.
    sizes = browser.evaluate(
        "[...document.querySelectorAll('figure svg text')].map((one) => parseFloat(getComputedStyle(one).fontSize) * "
        "Math.hypot(one.getScreenCTM().a, one.getScreenCTM().b))"
    )
    assert len(sizes) > 100
    assert min(sizes) >= 8
    # What is wider than the phone scrolls within itself.
    assert browser.evaluate(
        "[...document.querySelectorAll('.scroll')].every((one) => one.getBoundingClientRect().right <= innerWidth)"
    )


def test_the_panels_of_the_film_can_be_read_on_a_phone_under_their_own_names(browser: Any, page: Path) -> None:
    for width in (PHONE, 800, DESK):
        browser.visit(page, width)
        boxes = browser.evaluate(
            "[document.querySelector('.film'), ...document.querySelectorAll('.titles span')].map((one) => "
            "[one.getBoundingClientRect().left, one.getBoundingClientRect().width])"
        )
        names = browser.evaluate("[...document.querySelectorAll('.titles span')].map((one) => one.textContent)")
        assert names == ["reference", "proxy alone", "difference"]
        (left, whole), *titles = boxes
        panel = 192 / (3 * 192 + 2 * 6) * whole
        assert panel >= 200
        for place, (at, _) in enumerate(titles):
            assert abs(at - (left + place * (whole - panel) / 2)) < 0.6  # in line with its panel
        ticks = browser.evaluate(
            "[...document.querySelectorAll('[data-film] .ticks span')].map((one) => one.textContent)"
        )
        assert len(ticks) == 5
        assert ticks[2] == "0"


def test_what_is_cut_off_says_that_it_scrolls(browser: Any, page: Path) -> None:
    state = (
        "[...document.querySelectorAll('.wide')].filter((one) => one.checkVisibility()).map((one) => { "
        "const box = one.querySelector('.scroll'); return "
        "[box.scrollWidth > box.clientWidth + 2, one.querySelector('.cue').checkVisibility()]; })"
    )
    browser.visit(page, PHONE)
    found = browser.evaluate(state)
    assert any(cut for cut, _ in found)
    assert all(cut == told for cut, told in found)
    browser.evaluate("document.querySelectorAll('.scroll').forEach((one) => { one.scrollLeft = 1e6; })")
    browser.evaluate("new Promise((done) => setTimeout(done, 200))")
    assert not any(told for _, told in browser.evaluate(state))
    browser.visit(page, DESK)
    assert not any(told for _, told in browser.evaluate(state))


def test_no_word_is_broken_on_a_phone(browser: Any, tmp_path: Path) -> None:
    """A word with a digest's length may be, and nothing else."""
    result, file = example_report(), tmp_path / "names.html"
    assert result.metrics is not None
    told = {"op_device": "llvmpipe (LLVM 15.0.6, 256 bits)", "decode_device": "llvmpipe (LLVM 15.0.6, 256 bits)"}
    write_report(
        file, replace(result, metrics=result.metrics.model_copy(update={**told, "decode_backend_used": "vulkan:0"}))
    )
    browser.visit(file, PHONE)
    broken = browser.evaluate(
        "[...document.querySelectorAll('td, th')].flatMap((cell) => [...cell.childNodes].filter((node) => "
        "node.nodeType == 3).flatMap((node) => [...node.data.matchAll(/[^\\s-]+/g)].filter((word) => { const range = "
        "document.createRange(); range.setStart(node, word.index); range.setEnd(node, word.index + word[0].length); "
        "return range.getClientRects().length > 1 && word[0].length <= 26; }).map((word) => word[0])))"
    )
    assert broken == []


def test_cards_beside_one_another_end_at_the_same_height(browser: Any, page: Path) -> None:
    for width in (800, DESK):
        browser.visit(page, width)
        cards = browser.evaluate(
            "[...document.querySelectorAll('.pair')].flatMap((pair, number) => [...pair.children].map((card) => { "
            "const box = card.getBoundingClientRect(); return [number, Math.round(box.top), box.bottom, box.right, "
            "pair.getBoundingClientRect().right]; }))"
        )
        rows: dict[tuple[int, int], list[list[float]]] = {}
        for number, top, *rest in cards:
            rows.setdefault((number, top), []).append(rest)
        assert any(len(row) == 2 for row in rows.values())
        for row in rows.values():
            assert max(bottom for bottom, _, _ in row) - min(bottom for bottom, _, _ in row) < 1
            assert max(right for _, right, _ in row) > row[0][2] - 1  # no hole at the right


def test_commands_are_copied_by_their_buttons(browser: Any, page: Path) -> None:
    browser.visit(page, DESK)
    for way in (
        "undefined",
        "{ writeText: () => Promise.reject() }",
        "{ writeText: (t) => { window.t = t; return Promise.resolve(); } }",
    ):
        browser.evaluate(f"Object.defineProperty(navigator, 'clipboard', {{ value: {way}, configurable: true }}), 0")
        browser.evaluate("document.execCommand = () => { window.t = getSelection().toString(); return true; }, 0")
        browser.evaluate("window.t = '', document.querySelector('#proof .copy').click()")
        browser.evaluate("new Promise((done) => setTimeout(done, 50))")
        assert browser.evaluate("window.t") == "dashi verify certificate.json"
        assert browser.evaluate("document.querySelector('#proof .copy').textContent") == "Copied"


def test_every_picture_decodes_and_says_what_it_is(browser: Any, page: Path) -> None:
    browser.visit(page, DESK)
    pictures = browser.evaluate("[...document.images].map((one) => [one.naturalWidth, one.alt])")
    assert pictures
    assert all(width > 0 and alt for width, alt in pictures)
    embedded = browser.evaluate(
        "Promise.all([...document.querySelectorAll('svg image')].map((one) => new Promise((done) => { "
        "const copy = new Image(); copy.onload = () => done(copy.naturalWidth); copy.onerror = () => done(0); "
        "copy.src = one.href.baseVal; })))"
    )
    assert len(embedded) >= 12
    assert min(embedded) > 0
    assert browser.evaluate("[...document.querySelectorAll('figure [role=img]')].every((one) => one.ariaLabel)")


def test_the_film_plays_stops_and_can_be_wound(browser: Any, page: Path) -> None:
    browser.visit(page, DESK, 2000)
    film = "document.querySelector('[data-film]')"
    browser.evaluate("new Promise((done) => setTimeout(done, 600))")
    assert browser.evaluate(f"Number({film}.querySelector('input').value)") > 0
    browser.evaluate(f"{film}.querySelector('button').click()")
    stopped = browser.evaluate(f"{film}.querySelector('img').style.transform")
    browser.evaluate("new Promise((done) => setTimeout(done, 400))")
    assert browser.evaluate(f"{film}.querySelector('img').style.transform") == stopped
    browser.evaluate(
        f"{film}.querySelector('input').value = 3, {film}.querySelector('input').dispatchEvent(new Event('input'))"
    )
    assert browser.evaluate(f"{film}.querySelector('output').value").startswith("t = 0.52")


def test_light_and_dark_are_both_readable_and_can_be_chosen(browser: Any, page: Path) -> None:
    """WCAG 2.2, 1.4.3: text stands out from its ground by 4.5 to 1 at least."""
    contrast = """(() => {
        const light = (colour) => colour.match(/[\\d.]+/g).slice(0, 3).map((v) => v / 255)
            .map((v) => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
            .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
        const ground = light(getComputedStyle(document.body).backgroundColor);
        return [...document.querySelectorAll('p, figcaption, td, h1, nav a')].map((one) => {
            const ink = light(getComputedStyle(one).color);
            return (Math.max(ink, ground) + 0.05) / (Math.min(ink, ground) + 0.05);
        });
    })()"""
    for dark in (False, True):
        browser.visit(page, DESK, dark=dark)
        before = browser.evaluate("getComputedStyle(document.body).backgroundColor")
        assert min(browser.evaluate(contrast)) >= 4.5
        browser.evaluate("document.querySelector('#theme').click()")
        assert browser.evaluate("getComputedStyle(document.body).backgroundColor") != before
        assert min(browser.evaluate(contrast)) >= 4.5


def test_a_request_would_be_refused_and_seen(browser: Any, page: Path, tmp_path: Path) -> None:
    """The test of the test: a page that was tampered with is caught, and the page's own policy stops it."""
    bad = tmp_path / "bad.html"
    text = page.read_text().replace("</main>", '<img src="http://127.0.0.1:9/x.png" alt="x"></main>')
    bad.write_text(text)
    complaints = browser_complaints(browser, bad)
    assert any("Content Security Policy" in text for text in complaints)


def browser_complaints(browser: Any, file: Path) -> tuple[str, ...]:
    browser.call("Page.navigate", url=file.as_uri())
    browser.evaluate("new Promise((done) => setTimeout(done, 800))")
    return tuple(event["params"]["entry"]["text"] for event in browser.events if event["method"] == "Log.entryAdded")


@pytest.mark.parametrize("width", [PHONE, DESK])
def test_a_page_of_what_went_wrong_says_so_at_its_top(browser: Any, tmp_path: Path, width: int) -> None:
    """Fields that are not finite, a run that is not finished, a long command, a fallback."""
    result, file = example_report(), tmp_path / "wrong.html"
    assert result.fields is not None
    assert result.fields.proxy is not None
    proxy = result.fields.proxy.copy()
    proxy[9:, 10:20, 5:9] = np.nan
    places = (DeviceUse("windows and fields", "a device with a long name", "vulkan:9", "cpu", 1.5, "it is not there."),)
    warnings = ("This run is not finished. What is missing: score, check.",)
    spoiled = replace(
        result, fields=replace(result.fields, proxy=proxy), warnings=warnings, metrics=None, places=places,
        command="dashi flow evaluate " + " ".join(f"--option-number-{j} value" for j in range(20)),
    )  # fmt: skip
    write_report(file, spoiled)
    visit = browser.visit(file, width)
    assert visit.complaints == ()
    assert browser.evaluate("document.documentElement.scrollWidth") <= width
    tops = browser.evaluate("[...document.querySelectorAll('header .warning')].map((one) => one.offsetTop)")
    assert len(tops) == 2
    assert max(tops) < 700  # seen without scrolling
    command = "[...document.querySelectorAll('#repeat pre')].every((one) => one.scrollWidth <= one.clientWidth)"
    assert browser.evaluate(command)


def test_a_page_without_anything_is_still_a_page(browser: Any, tmp_path: Path) -> None:
    file = tmp_path / "empty.html"
    write_report(file, Report("Nothing"))
    visit = browser.visit(file, PHONE)
    assert visit.complaints == ()
    assert browser.evaluate("document.querySelector('h1').textContent") == "Nothing"
