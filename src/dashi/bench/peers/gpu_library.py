"""Other array libraries on a GPU, which benches compare with: imported only when they are asked for."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import Any

from dashi.errors import InputError


def load_library(name: str, known: Sequence[str]) -> Any:
    """torch or jax, if a peer of that name is known and has a GPU: on a processor its numbers would compare nothing."""
    if name not in known:
        raise InputError(f"there is no peer {name!r}.", f"use {'one of ' * (len(known) > 1)}{', '.join(known)}.")
    try:
        library: Any = importlib.import_module(name)
    except ImportError as error:
        raise InputError(
            f"{name} is not installed, and the peer's times come from it.", f"pip install {name}."
        ) from error
    found = library.cuda.is_available() if name == "torch" else library.devices()[0].platform != "cpu"
    if not found:
        raise InputError(
            f"{name} {library.__version__} finds no GPU here.",
            f"run it on a machine with one, and a build of {name} for it, or leave `peer=` away.",
        )
    return library
