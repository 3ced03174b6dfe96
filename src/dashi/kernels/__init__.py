"""Kernels: pure functions over buffers. `get(name)`, `names()`, and `add(folder)` for those outside the project."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dashi.kernels._registry import Registry
    from dashi.kernels.abi import Kernel

__all__ = ["add", "default", "get", "names"]

# The one piece of module state: `dashi.kernels.add` has to remember. Made when first needed, never at import.
_lock = threading.Lock()
_default: list[Registry] = []


def default() -> Registry:
    """The registry that `add`, `get` and `names` use."""
    with _lock:
        if not _default:
            from dashi.kernels._registry import Registry

            _default.append(Registry())
        return _default[0]


def add(folder: str | Path, build: bool = True) -> Kernel:
    """Register a kernel folder from outside the project; missing or stale binaries are built if the compiler
    (the extra `compile`) is installed and `build` is true, otherwise they are an error. Its kernel.py is Python that is
    run here, with all your rights: add only folders that you trust."""
    return default().add(folder, build)


def get(name: str) -> Kernel:
    """The kernel of that name or alias."""
    return default().get(name)


def names() -> tuple[str, ...]:
    """Every kernel's name."""
    return default().names()
