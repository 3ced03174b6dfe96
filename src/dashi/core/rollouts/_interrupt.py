"""Ctrl-C that waits until what is under way is whole; and other signals, where a program makes them mean the same."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Generator
from types import FrameType
from typing import Final

SIGNALS: Final = tuple(
    getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)
)  # fmt: skip
"""Signals that can wait: Ctrl-C; what schedulers, service managers and containers send; a terminal that is gone."""


class Interrupt:
    """Whether Ctrl-C was pressed."""

    asked = False


class Interrupting:
    """A handler that makes a signal mean what Ctrl-C does, and knows which one came last."""

    def __init__(self) -> None:
        self.last: int | None = None

    def note(self, number: int) -> None:
        """The signal of this number came."""
        self.last = number

    def __call__(self, number: int, frame: FrameType | None) -> None:
        self.note(number)
        raise KeyboardInterrupt


@contextlib.contextmanager
def deferred_interrupt() -> Generator[Interrupt]:
    """Within it, a first Ctrl-C only sets `asked`; a second one interrupts at once. Other threads never see Ctrl-C.
    Signals with a handler `Interrupting` do the same."""
    interrupt = Interrupt()
    on_main = threading.current_thread() is threading.main_thread()
    handlers = {number: signal.getsignal(number) for number in SIGNALS} if on_main else {}
    held = {
        number: handler
        for number, handler in handlers.items()
        if handler is signal.default_int_handler or isinstance(handler, Interrupting)
    }

    def note(number: int, frame: FrameType | None) -> None:
        handler = held[number]
        if isinstance(handler, Interrupting):
            handler.note(number)
        if interrupt.asked:
            raise KeyboardInterrupt
        interrupt.asked = True

    for number in held:
        signal.signal(number, note)
    try:
        yield interrupt
    finally:
        for number, handler in held.items():
            signal.signal(number, handler)
