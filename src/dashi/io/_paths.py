"""Paths as callers pass them: text or an object that stands for one, and nothing else."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from dashi.errors import InputError


def path_of(name: str, value: Any) -> Path:
    """The path that was passed for the parameter `name`. Raises InputError for what is none."""
    if not isinstance(value, str | os.PathLike):
        raise InputError(f"`{name}=` is {value!r:.80}, and a path is needed.", "pass a str or a pathlib.Path.")
    text = os.fspath(value)  # pyright: ignore[reportUnknownVariableType] - any object may be a path
    if not isinstance(text, str):
        raise InputError(f"`{name}=` is a path of bytes.", "pass a str or a pathlib.Path.")
    return Path(text)
