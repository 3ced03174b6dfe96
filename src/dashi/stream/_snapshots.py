"""Results of a stage kept in files, and functions that look at them: what runs side-band."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, cast

import numpy as np

from dashi.errors import InputError
from dashi.io.arrays import write_arrays
from dashi.runtime.array import Array
from dashi.stream._side_band import SideTask
from dashi.types import HostArray


def observe(after: str | int, call: Callable[[int, Any], None], *, every: int = 1, label: str = "") -> SideTask:
    """An observer: `call(item, result)` for each `every`-th result of a stage, named by id or number, in order and in a
    thread beside the chain."""
    if every < 1:
        raise InputError(f"`every=` {every!r} is no stride.", "pass a whole number from 1 on.")
    return SideTask(after, every, call, label or getattr(call, "__name__", "observer"))


def snapshot(after: str | int, folder: Path | str, *, every: int = 1) -> SideTask:
    """Keeps each `every`-th result of a stage as `folder/STAGE-ITEM.npz`, each file written all or nothing. Results are
    States, mappings of names to arrays, or arrays (then the name is `value`)."""
    place = Path(folder)
    if place.exists() and not place.is_dir():
        raise InputError(f"{place} is a file.", "name a folder for snapshots.")

    def keep(item: int, result: Any) -> None:
        arrays = _arrays(result)
        place.mkdir(parents=True, exist_ok=True)
        write_arrays(place / f"{after}-{item:08d}.npz", arrays)

    return observe(after, keep, every=every, label=f"snapshots after {after}")


def _arrays(result: Any) -> dict[str, HostArray]:
    payload = getattr(result, "payload", result)
    if isinstance(payload, Mapping):
        named = cast("Mapping[str, Any]", payload)
        arrays = {str(name): _on_host(value) for name, value in named.items()}
    else:
        arrays = {"value": _on_host(payload)}
    for name, values in arrays.items():
        if values.dtype.hasobject:
            raise InputError(
                f"a snapshot cannot keep {name!r}, a {type(result).__name__} that is no array.",
                "return arrays from that stage, or look at its results with `dashi.stream.observe`.",
            )
    return arrays


def _on_host(value: Any) -> HostArray:
    return value.numpy() if isinstance(value, Array) else np.asarray(value)
