"""The live page in a real browser: quiet, follows a run that is under way, says when it is over, and fits a phone."""

from __future__ import annotations

import threading
import time
from typing import Any

import numpy as np
import pytest

import dashi
from dashi.flow import Flow
from dashi.report import LivePage, LiveView

pytestmark = pytest.mark.long


def wait_for(browser: Any, expression: str, seconds: float = 60.0) -> None:
    deadline = time.monotonic() + seconds
    while not browser.evaluate(expression):
        assert time.monotonic() < deadline, f"never true: {expression}"
        time.sleep(0.1)


@pytest.mark.parametrize("width", [390, 1280])
@pytest.mark.parametrize("dark", [False, True])
def test_the_live_page_is_quiet_and_shows_what_it_is_given(browser: Any, width: int, dark: bool) -> None:
    view = LiveView()
    view.begin("flow", 100, "steps")(40)
    view.show_field(40, "vorticity", np.sin(np.arange(4096.0)).reshape(64, 64))
    for step in range(41):
        view.show_row(step, "energy spectrum", np.exp(-np.arange(20.0)))
    with LivePage(view) as page:
        visit = browser.visit(page.url, width, dark=dark)
        wait_for(browser, "[...document.images].every((one) => one.complete && one.naturalWidth > 0)")
        assert visit.complaints == ()
        assert [url for url in visit.requests if not url.startswith((page.url, "data:"))] == []
        assert f"{page.url}state.json" in visit.requests
        assert browser.evaluate("document.scrollingElement.scrollWidth") <= width
        assert "flow: 40 of 100 steps" in browser.evaluate("document.body.innerText")
        view.show_field(60, "vorticity", np.ones((64, 64)))
        wait_for(browser, "document.querySelector('#field h2').textContent === 'vorticity after step 60'")
        view.end()
        wait_for(browser, "document.body.innerText.includes('The run is over.')")
    wait_for(browser, "document.body.innerText.includes('the program has ended')")


def test_a_run_is_followed_while_it_goes_on(browser: Any) -> None:
    view = LiveView()
    flow = Flow(n=32, nu=0.01, dt=0.01)
    over = threading.Event()

    def press(_step: int) -> None:
        if over.is_set():
            raise RuntimeError("enough")

    class Stop(dashi.core.Observer[None]):
        name, every = "stop", 10

        def bind(self, context: Any) -> Any:
            return dashi.core.Bound(take=lambda step, _: press(step))

    def run() -> None:
        with pytest.raises(RuntimeError, match="enough"):
            dashi.flow.simulate(flow, steps=10**6, device="cpu", host_fft=True, live=view, observers=[Stop()])

    thread = threading.Thread(target=run)
    with LivePage(view) as page:
        thread.start()
        try:
            browser.visit(page.url, 1280)
            wait_for(browser, "!document.querySelector('#field').hidden && !document.querySelector('#sheet').hidden")
            first = browser.evaluate("document.querySelector('#where').textContent")
            wait_for(browser, f"document.querySelector('#where').textContent !== {first!r}")
        finally:
            over.set()
            thread.join(60)
        wait_for(browser, "document.body.innerText.includes('The run is over.')")
    assert not thread.is_alive()
