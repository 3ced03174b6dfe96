"""Claims about live views: the newest is shown, nothing grows, and the page answers nobody else."""

from __future__ import annotations

import http.client
import json
import socket
import threading
import zlib
from collections.abc import Iterator
from urllib.parse import urlsplit

import numpy as np
import pytest

from dashi.report import LivePage, LiveView
from dashi.report._live_pictures import field_pixels, sheet_pixels
from dashi.report.live import MOST_ROWS, half_blocks


@pytest.fixture
def view() -> LiveView:
    return LiveView()


@pytest.fixture
def page(view: LiveView) -> Iterator[LivePage]:
    with LivePage(view) as served:
        yield served
    assert not [one for one in threading.enumerate() if one.name == "dashi live"]


def ask(page: LivePage, name: str = "", method: str = "GET", **headers: str) -> tuple[int, dict[str, str], bytes]:
    """An answer of the page's server to a request for a name below its address, or for a whole path."""
    url = urlsplit(page.url)
    connection = http.client.HTTPConnection("127.0.0.1", url.port, timeout=30)
    connection.request(method, name if name.startswith("/") else url.path + name, headers=headers)
    answer = connection.getresponse()
    return answer.status, dict(answer.getheaders()), answer.read()


def test_only_the_newest_field_is_kept_and_drawn_once_for_all_who_ask(view: LiveView) -> None:
    assert view.field_png() is None
    assert view.sheet_png() is None
    for step in range(5):
        view.show_field(step, "vorticity", np.full((8, 8), step, np.float32))
    first = view.field_png()
    assert first is not None
    assert first.startswith(b"\x89PNG")
    assert view.field_png() is first
    told = view.state()
    assert (told.field, told.field_step, told.field_span, told.field_stride) == ("vorticity", 4, 4.0, 1)
    view.show_field(5, "vorticity", np.zeros((8, 8)))
    assert view.state().field_span is None  # of a picture that nobody has asked for


def test_pictures_are_not_drawn_often_while_a_run_goes_on(view: LiveView, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dashi.report.live.DRAW_PAUSE", 1000.0)
    view.begin("flow", 10, "steps")
    pictures = set()
    for step in range(5):
        view.show_field(step, "vorticity", np.full((8, 8), step, np.float32))
        view.show_row(step, "energy spectrum", np.full(3, step + 1.0))
        pictures |= {view.field_png(), view.sheet_png()}
    assert len(pictures) == 2
    view.end()
    assert not {view.field_png(), view.sheet_png()} & pictures


def test_a_sheet_of_any_length_stays_small_and_keeps_its_first_rows(view: LiveView) -> None:
    for step in range(10 * MOST_ROWS):
        view.show_row(step, "band energies", np.array([step, 1.0]))
    told = view.state()
    assert MOST_ROWS / 2 <= told.sheet_rows <= MOST_ROWS
    rows = [row for row, _ in view._rows]
    gaps = set(np.diff(rows).tolist())
    assert (rows[0], len(gaps)) == (0, 1)


def test_progress_is_counted_and_ends(view: LiveView) -> None:
    assert view.state().state == "waiting"
    advance = view.begin("flow", 10, "steps")
    advance(4)
    told = view.state()
    assert (told.title, told.state, told.done, told.total, told.unit) == ("flow", "running", 4, 10, "steps")
    view.end()
    assert view.state().state == "over"


def test_a_field_is_blue_red_and_magenta_where_it_is_not_finite() -> None:
    field = np.array([[-1.0, 1.0], [np.nan, 0.0]])
    picture, span, stride = field_pixels(field)
    assert (span, stride) == (1.0, 1)
    (blue, red), (broken, white) = picture.tolist()
    assert blue[2] > blue[0]
    assert red[0] > red[2]
    assert broken == [255, 0, 255]
    assert min(white) > 240
    large, _, stride = field_pixels(np.zeros((1024, 1024), np.float32))
    assert (large.shape, stride) == ((256, 256, 3), 4)
    assert field_pixels(np.full((2, 2), np.inf))[0].tolist() == [[[255, 0, 255]] * 2] * 2


def test_a_sheet_has_time_to_the_right_and_bands_upwards() -> None:
    picture = sheet_pixels(np.array([[1.0, 0.0], [1.0, np.nan]]))
    assert picture.shape == (192, 2, 3)
    assert picture[-1].tolist() == [[255, 255, 255]] * 2  # the first band, below, is the largest
    assert picture[0].tolist() == [[0, 0, 0], [255, 0, 255]]


def test_half_blocks_pair_rows() -> None:
    picture = np.arange(18, dtype=np.uint8).reshape(3, 2, 3)
    rows = half_blocks(picture)
    assert len(rows) == 2
    assert rows[0][0] == ([0, 1, 2], [6, 7, 8])
    assert rows[1][0] == ([12, 13, 14], [12, 13, 14])


def test_the_page_is_served_to_this_machine_with_what_it_shows(view: LiveView, page: LivePage) -> None:
    assert page.url.startswith("http://127.0.0.1:")
    status, headers, body = ask(page)
    assert (status, headers["Content-Type"]) == (200, "text/html; charset=utf-8")
    assert b"dashi, live" in body
    assert "default-src 'none'" in headers["Content-Security-Policy"]
    assert headers["Cache-Control"] == "no-store"
    assert ask(page, "field.png")[0] == 404  # there is none yet
    view.show_field(3, "vorticity", np.zeros((16, 16)))
    view.show_row(3, "band energies", np.ones(4))
    status, headers, body = ask(page, "field.png?3")
    assert (status, headers["Content-Type"], body[:4]) == (200, "image/png", b"\x89PNG")
    assert ask(page, "sheet.png")[0] == 200
    told = json.loads(ask(page, "state.json")[2])
    assert (told["field_step"], told["sheet_rows"], told["field_stride"]) == (3, 1, 1)
    status, headers, body = ask(page, "state.json", "HEAD")
    assert (status, body) == (200, b"")


def test_nobody_without_the_address_sees_anything_and_nothing_is_written(view: LiveView, page: LivePage) -> None:
    view.show_field(3, "vorticity", np.zeros((16, 16)))
    token = urlsplit(page.url).path.strip("/")
    for path in ("/", "/state.json", "/x/state.json", f"/{token}", f"/{token[:-1]}/state.json"):
        assert ask(page, path)[0] == 404, path
    for name in ("..", "../../etc/passwd", "live.html", "state.json/", "%2e%2e/"):
        assert ask(page, name)[0] == 404, name
    for method in ("POST", "PUT", "DELETE", "OPTIONS"):
        assert ask(page, "", method)[0] == 501
    # A name that another site gives to this machine is none of ours.
    assert ask(page, "state.json", Host="evil.example")[0] == 404
    assert ask(page, "state.json", Host=f"localhost:{urlsplit(page.url).port}")[0] == 200


def test_who_asks_nonsense_or_too_much_holds_nobody_up(view: LiveView, page: LivePage) -> None:
    port = urlsplit(page.url).port or 0
    silent = [socket.create_connection(("127.0.0.1", port), 30) for _ in range(7)]
    try:
        silent[0].sendall(b"\x00\xff\r\n\r\n")
        silent[1].sendall(b"GET /" + b"a" * 100_000)
        silent[2].sendall(b"GET /\xc3\xa9/state.json HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n\r\n" % port)
        assert silent[2].recv(12) == b"HTTP/1.0 404"
        assert ask(page, "state.json")[0] == 200
    finally:
        for one in silent:
            one.close()
    assert ask(page, "state.json")[0] == 200


def test_pictures_are_valid_files(view: LiveView) -> None:
    view.show_field(0, "vorticity", np.linspace(-1, 1, 64).reshape(8, 8))
    data = view.field_png()
    assert data is not None
    start = data.index(b"IDAT") + 4
    length = int.from_bytes(data[start - 8 : start - 4], "big")
    assert len(zlib.decompress(data[start : start + length])) == 8 * (1 + 3 * 8)
