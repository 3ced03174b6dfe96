"""Traces of a run: written, read, and taken from a device's queue."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dashi._lazy import lazy_names

if TYPE_CHECKING:
    from dashi.core.traces import file as file
    from dashi.core.traces import queue as queue
    from dashi.core.traces import trace as trace

if not TYPE_CHECKING:  # to a type checker a name that is not imported above is a mistake
    __all__, __getattr__, __dir__ = lazy_names(__name__, {}, more=("file", "queue", "trace"))
