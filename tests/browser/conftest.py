"""A real browser, driven through a pipe by the DevTools protocol (https://chromedevtools.github.io/devtools-protocol):
messages of JSON that end with a zero byte, on file descriptors 3 and 4. Nothing is installed for it but the browser."""

from __future__ import annotations

import base64
import json
import os
import select
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

PROGRAMS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
OPTIONS = (
    "--headless=new", "--no-sandbox", "--disable-gpu", "--remote-debugging-pipe", "--no-first-run",
    "--disable-extensions", "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--disable-dev-shm-usage", "--hide-scrollbars", "about:blank",
)  # fmt: skip
_LAUNCH = """
import fcntl, os, sys
theirs, ours = (fcntl.fcntl(int(word), fcntl.F_DUPFD, 10) for word in sys.argv[1:3])
os.dup2(theirs, 3), os.dup2(ours, 4)
os.execv(sys.argv[3], sys.argv[3:])
"""
"""Puts the two ends of the pipe where the browser looks for them."""


@dataclass(frozen=True)
class Visit:
    """What a page did: all requests, and all that the console and the browser complained about."""

    requests: tuple[str, ...]
    complaints: tuple[str, ...]


class Browser:
    """One page of a headless browser."""

    def __init__(self, program: str, profile: Path) -> None:
        theirs_in, self._out = os.pipe()
        self._in, theirs_out = os.pipe()

        self._process = subprocess.Popen(
            [sys.executable, "-c", _LAUNCH, str(theirs_in), str(theirs_out), program, f"--user-data-dir={profile}",
             *OPTIONS],
            pass_fds=(theirs_in, theirs_out), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        os.close(theirs_in)
        os.close(theirs_out)
        self._next, self._left = 0, b""
        self.events: list[dict[str, Any]] = []
        targets = self._call("Target.getTargets")["targetInfos"]
        page = next(target["targetId"] for target in targets if target["type"] == "page")
        self._session = self._call("Target.attachToTarget", targetId=page, flatten=True)["sessionId"]
        for domain in ("Page", "Network", "Runtime", "Log"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Asks the page."""
        return self._call(method, self._session, **parameters)

    def visit(self, place: Path | str, width: int, height: int = 844, *, dark: bool = False) -> Visit:
        """Opens a file, or an address, in a window of that size and waits until it is quiet."""
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 500}
        self.call("Emulation.setDeviceMetricsOverride", **size)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", features=[scheme])
        self.events.clear()
        self.call("Page.navigate", url=place if isinstance(place, str) else place.absolute().as_uri())
        deadline = time.monotonic() + 60
        while not any(event["method"] == "Page.loadEventFired" for event in self.events):
            assert time.monotonic() < deadline, "the page did not load"
            self._read(0.2)
        self.evaluate("Promise.all([...document.images].filter((one) => one.src).map((one) => one.decode()))")
        self.evaluate("new Promise((done) => setTimeout(done, 500))")
        return Visit(tuple(self._requests()), tuple(self._complaints()))

    def evaluate(self, expression: str) -> Any:
        """The value of an expression in the page, awaited if it is a promise."""
        found = self.call("Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True)
        assert "exceptionDetails" not in found, found["exceptionDetails"]
        return found["result"].get("value")

    def screenshot(self, file: Path) -> None:
        """The whole page as a picture."""
        taken = self.call("Page.captureScreenshot", captureBeyondViewport=True)
        file.write_bytes(base64.b64decode(taken["data"]))

    def close(self) -> None:
        """Ends the browser."""
        self._process.terminate()
        self._process.wait(30)
        os.close(self._in)
        os.close(self._out)

    def _requests(self) -> Iterator[str]:
        for event in self.events:
            if event["method"] == "Network.requestWillBeSent":
                yield event["params"]["request"]["url"]

    def _complaints(self) -> Iterator[str]:
        for event in self.events:
            parameters = event["params"]
            if event["method"] == "Runtime.exceptionThrown":
                yield json.dumps(parameters["exceptionDetails"])
            elif event["method"] == "Runtime.consoleAPICalled" and parameters["type"] in ("error", "warning", "assert"):
                yield json.dumps(parameters["args"])
            elif event["method"] == "Log.entryAdded" and parameters["entry"]["level"] in ("error", "warning"):
                yield parameters["entry"]["text"]

    def _call(self, method: str, session: str | None = None, **parameters: Any) -> dict[str, Any]:
        self._next += 1
        number = self._next
        message = {"id": number, "method": method, "params": parameters, **({"sessionId": session} if session else {})}
        os.write(self._out, json.dumps(message).encode() + b"\0")
        deadline = time.monotonic() + 60
        while True:
            assert time.monotonic() < deadline, f"the browser does not answer {method}"
            for found in self._read(1.0):
                if found.get("id") == number:
                    assert "error" not in found, f"{method}: {found['error']}"
                    return found["result"]

    def _read(self, seconds: float) -> list[dict[str, Any]]:
        """Messages that have come; events are kept."""
        if not select.select([self._in], [], [], seconds)[0]:
            assert self._process.poll() is None, "the browser has ended"
            return []
        *whole, self._left = (self._left + os.read(self._in, 1 << 20)).split(b"\0")
        messages = [json.loads(text) for text in whole]
        self.events += [message for message in messages if "method" in message]
        return messages


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """Chromium; `./dev test --long` installs it where it may."""
    program = next((found for name in PROGRAMS if (found := shutil.which(name))), None)
    if program is None:
        pytest.skip("no browser here, and none could be installed. Fix: as root, apt-get install chromium")
    made = Browser(program, tmp_path_factory.mktemp("profile"))
    yield made
    made.close()
