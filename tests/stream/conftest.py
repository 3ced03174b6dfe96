"""No pipeline leaves a thread behind."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator

import pytest


def stream_threads() -> list[str]:
    return [thread.name for thread in threading.enumerate() if thread.name.startswith("dashi-stream")]


@pytest.fixture(autouse=True)
def no_thread_is_left() -> Iterator[None]:
    yield
    end = time.monotonic() + 5
    while stream_threads() and time.monotonic() < end:
        time.sleep(0.01)
    assert not stream_threads()
