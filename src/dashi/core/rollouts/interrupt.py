"""Ctrl-C that waits until what is under way is whole."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Generator
from types import FrameType


class Interrupt:
    """Whether Ctrl-C was pressed."""

    asked = False


@contextlib.contextmanager
def deferred_interrupt() -> Generator[Interrupt]:
    """Within it, a first Ctrl-C only sets `asked`; a second one interrupts at once. Other threads never see Ctrl-C."""
    interrupt = Interrupt()
    before = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or before is not signal.default_int_handler:
        yield interrupt
        return

    def note(number: int, frame: FrameType | None) -> None:
        if interrupt.asked:
            raise KeyboardInterrupt
        interrupt.asked = True

    signal.signal(signal.SIGINT, note)
    try:
        yield interrupt
    finally:
        signal.signal(signal.SIGINT, before)
