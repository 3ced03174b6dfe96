"""`LiveView`: what can be seen of a run that is under way. It hands in what it has; whoever looks takes the newest.

    view = LiveView()
    with LivePage(view) as page:
        print(page.url)
        dashi.flow.simulate(flow, steps=10_000, live=view)

Handing in costs the run a lock and a reference: nothing is copied and nothing is drawn until somebody looks, and what
nobody looked at in time is never drawn.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from dashi.core.observations.png import Pixels
from dashi.report._live_pictures import field_pixels, png, sheet_pixels
from dashi.types import HostArray

DRAW_PAUSE: Final = 0.25
"""Seconds between two pictures, however many ask."""
MOST_ROWS: Final = 1024
"""Rows of a sheet that are kept: of more, every second is forgotten."""


@dataclass(frozen=True)
class LiveState:
    """Where a run stands, in plain values."""

    title: str
    state: str
    """`waiting`, `running` or `over`."""
    done: int
    total: int | None
    unit: str
    seconds: float
    field: str
    field_step: int | None
    field_span: float | None
    """The value of the last colour; None before a picture was made."""
    field_stride: int | None
    """Points along a side for each that is drawn."""
    sheet: str
    sheet_rows: int
    sheet_step: int | None


class LiveView:
    """Holds the newest field and the sheet so far of one run; thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._title, self._state, self._unit = "", "waiting", ""
        self._done, self._total = 0, None
        self._began = self._ended = time.monotonic()
        self._field: tuple[int, str, HostArray] | None = None
        self._sheet = ""
        self._rows: list[tuple[int, HostArray]] = []
        self._every = self._passed = 0
        self._drawn: tuple[int, bytes, float, int] | None = None
        self._sheet_drawn: bytes | None = None
        self._field_at = self._sheet_at = 0.0
        """When each was drawn."""
        self._making = threading.Lock()
        """Held by who draws: of two that ask at once, one draws and both have it."""

    def begin(self, title: str, total: int | None, unit: str) -> Callable[[int], None]:
        """A part of the work begins that counts its units; call what it gives with units that were finished."""
        with self._lock:
            self._title, self._total, self._unit = title, total, unit
            self._done, self._state, self._began = 0, "running", time.monotonic()
        return self._advance

    def end(self) -> None:
        """The run is over."""
        with self._lock:
            self._state, self._ended = "over", time.monotonic()

    def show_field(self, step: int, name: str, field: HostArray) -> None:
        """The newest field (n, n), which nobody changes from now on."""
        with self._lock:
            self._field = step, name, field

    def show_row(self, step: int, name: str, energies: HostArray) -> None:
        """Another row of the sheet."""
        with self._lock:
            self._sheet = name
            self._passed += 1
            if self._passed <= self._every:
                return
            self._passed = 0
            self._rows.append((step, energies))
            if len(self._rows) > MOST_ROWS:
                del self._rows[1::2]
                self._every = 2 * self._every + 1

    def state(self) -> LiveState:
        """Where it stands."""
        with self._lock:
            field, drawn, rows = self._field, self._drawn, self._rows
            now = self._ended if self._state == "over" else time.monotonic()
            known = drawn is not None and field is not None and drawn[0] == field[0]
            return LiveState(
                self._title, self._state, self._done, self._total, self._unit, now - self._began,
                field[1] if field else "", field[0] if field else None,
                drawn[2] if known and drawn else None, drawn[3] if known and drawn else None,
                self._sheet, len(rows), rows[-1][0] if rows else None,
            )  # fmt: skip

    def field_png(self) -> bytes | None:
        """A picture of the newest field, drawn once and not often; None before there is one."""
        with self._making:
            with self._lock:
                field, drawn = self._field, self._drawn
            if field is None:
                return None
            if drawn is None or (drawn[0] != field[0] and self._may_draw(self._field_at)):
                picture, span, stride = field_pixels(field[2])
                drawn = field[0], png(picture), span, stride
                self._field_at = time.monotonic()
                with self._lock:
                    self._drawn = drawn
            return drawn[1]

    def sheet_png(self) -> bytes | None:
        """A picture of the sheet so far, drawn not often; None before there is a row."""
        with self._making:
            rows = self._energies() if self._may_draw(self._sheet_at) else None
            if rows is not None:
                self._sheet_drawn, self._sheet_at = png(sheet_pixels(rows)), time.monotonic()
            return self._sheet_drawn

    def pictures(self, width: int) -> list[Pixels]:
        """The newest field and the sheet so far in at most so many pixels across, for a terminal."""
        with self._lock:
            field = self._field
        rows = self._energies()
        pictures = [] if field is None else [field_pixels(field[2], width)[0]]
        if rows is not None:
            picture = sheet_pixels(rows)
            across, down = -(-picture.shape[1] // width), max(1, picture.shape[0] // 16)
            pictures.append(picture[::down, ::across])
        return pictures

    def _may_draw(self, last: float) -> bool:
        """Whether the last picture is old enough; of a run that is over any is drawn."""
        return self._state == "over" or time.monotonic() - last >= DRAW_PAUSE

    def _energies(self) -> HostArray | None:
        with self._lock:
            rows = [row for _, row in self._rows]
        return np.stack(rows) if rows else None

    def _advance(self, amount: int) -> None:
        # One thread counts, and a reader that sees the number before it sees one that was true.
        self._done += amount


def half_blocks(picture: Pixels) -> list[list[tuple[Any, Any]]]:
    """Rows of pairs of colours, that of the upper and of the lower half of a character `▀`."""
    even = picture if len(picture) % 2 == 0 else np.concatenate([picture, picture[-1:]])
    upper, lower = even[0::2].tolist(), even[1::2].tolist()
    return [[*zip(top, bottom, strict=True)] for top, bottom in zip(upper, lower, strict=True)]
