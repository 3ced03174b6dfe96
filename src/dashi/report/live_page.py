"""`LivePage`: a view of a run as a page on this machine alone.

It is served on the loopback interface, at a port that the system chooses and under a path that nobody guesses. It only
reads, and only from the view that it was given; it loads nothing from elsewhere, and its policy forbids the browser to.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import secrets
import threading
from collections.abc import Callable, Mapping
from dataclasses import asdict
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.resources import files
from types import TracebackType
from typing import Any, Final, Self

from dashi.errors import FileError
from dashi.report.live import LiveView

_HOST: Final = "127.0.0.1"
_MOST: Final = 8
"""Connections at the same time; more are closed at once."""
_SECONDS: Final = 10.0
"""A connection that says nothing for so long is closed."""
_SECURE: Final = {
    "Cache-Control": "no-store", "X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin", "X-Frame-Options": "DENY",
}  # fmt: skip

Answer = tuple[str, bytes]
"""A media type, and what is sent."""


class LivePage:
    """Serves a view while its `with` block lasts; `url` is for a browser on this machine."""

    def __init__(self, view: LiveView) -> None:
        page = files("dashi.report").joinpath("live.html").read_bytes()
        token = secrets.token_urlsafe(24)
        try:
            self._server = _Server(view, page, token)
        except OSError as error:
            raise FileError(
                f"no page can be served on {_HOST}: {error.strerror or error}.",
                'leave `live=` away, or look in the terminal with `live="terminal"`.',
            ) from error
        self.url = f"http://{_HOST}:{self._server.server_port}/{token}/"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.1,), name="dashi live", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


class _Server(ThreadingHTTPServer):
    """Answers a few connections at a time, each in a thread that holds nobody up."""

    daemon_threads = True
    block_on_close = False
    allow_reuse_address = False

    def __init__(self, view: LiveView, page: bytes, token: str) -> None:
        self.token = token
        self.policy = _policy(page)
        self.answers: Mapping[str, Callable[[], Answer | None]] = {
            "": lambda: ("text/html; charset=utf-8", page),
            "state.json": lambda: ("application/json", json.dumps(asdict(view.state())).encode()),
            "field.png": lambda: _picture(view.field_png()),
            "sheet.png": lambda: _picture(view.sheet_png()),
        }
        self._room = threading.BoundedSemaphore(_MOST)
        super().__init__((_HOST, 0), _Handler)

    def process_request(self, request: Any, client_address: Any) -> None:
        if not self._room.acquire(blocking=False):
            self.shutdown_request(request)
            return
        try:
            super().process_request(request, client_address)
        except BaseException:
            self._room.release()
            raise

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._room.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Whoever hung up is not told about, and the run has nothing to do with it."""


class _Handler(BaseHTTPRequestHandler):
    """One connection: a request for what is there, or a refusal."""

    timeout = _SECONDS
    server: _Server  # pyright: ignore[reportIncompatibleVariableOverride]
    server_version, sys_version = "dashi", ""

    def do_GET(self) -> None:
        self._answer(body=True)

    def do_HEAD(self) -> None:
        self._answer(body=False)

    def _answer(self, *, body: bool) -> None:
        answer = self._answer_to_path()
        if answer is None:
            self._send(404, "text/plain; charset=utf-8", b"There is nothing here.\n", body=body)
        else:
            self._send(200, *answer, body=body)

    def _answer_to_path(self) -> Answer | None:
        """What was asked for; nothing for whoever does not know the token, or came by another name of this machine."""
        names = [f"{name}:{self.server.server_port}" for name in (_HOST, "localhost")]
        if self.headers.get("Host") not in names:
            return None
        path, _, _ = self.path.partition("?")
        _, _, rest = path.partition("/")
        token, slash, name = rest.partition("/")
        if not hmac.compare_digest(token.encode("utf-8", "replace"), self.server.token.encode()) or not slash:
            return None
        make = self.server.answers.get(name)
        return None if make is None else make()

    def _send(self, status: int, media: str, data: bytes, *, body: bool) -> None:
        self.send_response(status)
        headers = {
            "Content-Type": media, "Content-Length": str(len(data)), "Content-Security-Policy": self.server.policy,
            "Connection": "close", **_SECURE,
        }  # fmt: skip
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        if body:
            self.wfile.write(data)

    def log_message(self, format: str, *args: Any) -> None:
        """Says nothing: what is looked at is nobody else's business."""

    def finish(self) -> None:
        try:
            super().finish()
        except (TimeoutError, OSError):
            return


def _picture(data: bytes | None) -> Answer | None:
    return None if data is None else ("image/png", data)


def _policy(page: bytes) -> str:
    """What the browser may do with the page: run its own script, show its own pictures, ask where it came from."""
    script = page.split(b"<script>")[1].split(b"</script>")[0]
    style = page.split(b"<style>")[1].split(b"</style>")[0]
    digests = [base64.b64encode(hashlib.sha256(part).digest()).decode() for part in (script, style)]
    return (
        f"default-src 'none'; script-src 'sha256-{digests[0]}'; style-src 'sha256-{digests[1]}'; img-src 'self' data:; "
        "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )
