"""Checkpoints: where a run stands, and all that its observers saw so far, in one file that is either the old or the new
one.

A checkpoint knows the inputs that it belongs to, and goes on with no others; and the settings of its observers, which
stay what they were. A run that goes on has the records of one that was never interrupted.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np

from dashi.core.operators.operator import Operator
from dashi.core.rollouts.observer import Observer
from dashi.core.rollouts.run import Run
from dashi.errors import FileError
from dashi.io._array_digest import array_digest
from dashi.io.arrays import read_arrays, write_arrays
from dashi.kernels.hash._blake3 import hexdigest128
from dashi.types import HostArray, Shape

VERSION: Final = 2
_HEAD: Final = ("version", "identity", "step", "state")
_INT: Final = np.dtype(np.int64)


def identity(operator: Operator, z0: HostArray | str, **more: Any) -> str:
    """The digest of all that decides the states of a run, but not of how far it goes, nor where; and of what else its
    files depend on, plain values by name. `z0` are the initial states, or their digest."""
    facts = {
        "operator": [operator.kind, operator.version, dict(operator.parameters)],
        "arrays": {name: array_digest(values) for name, values in operator.arrays.items()},
        "z0": z0 if isinstance(z0, str) else array_digest(z0),
        **more,
    }
    return hexdigest128(json.dumps(facts, sort_keys=True).encode())


def write_checkpoint(path: Path, belongs: str, run: Run) -> None:
    """Keeps where a run stands, all or nothing, under its identity. What only the last step of a run was looked at for
    is left out: the run that goes on has nothing there."""
    arrays: dict[str, Any] = {
        "version": np.array(VERSION, np.int64),
        "identity": np.array(belongs),
        "step": np.array(run.steps, np.int64),
        "state": run.state,
    }
    for observer in run.observers:
        name = observer.name
        arrays |= {f"{name}:{key}": np.array(value, np.int64) for key, value in observer.settings.items()}
        columns = observer.columns(run.state.shape)
        if columns:
            records = [one for one in run.records.get(name, ()) if one.step % observer.every == 0]
            rows = [observer.pack(one) for one in records]
            arrays[f"{name}.steps"] = np.array([one.step for one in records], np.int64)
            for column, (shape, dtype) in columns.items():
                values = np.array([row[column] for row in rows], dtype)
                arrays[f"{name}.{column}"] = values.reshape(len(rows), *shape)
    write_arrays(path, arrays)


def read_settings(path: Path) -> dict[str, dict[str, int]]:
    """The settings of the observers of the run that a checkpoint is of, by observer: {"hashes": {"every": 100}}."""
    settings: dict[str, dict[str, int]] = {}
    for key, value in _arrays(path).items():
        name, colon, setting = key.partition(":")
        if colon:
            if value.shape or value.dtype != _INT or value.item() < 0:
                raise _damaged(path, f"{key} is no setting")
            settings.setdefault(name, {})[setting] = int(value.item())
    return settings


def read_checkpoint(
    path: Path, belongs: str, operator: Operator, observers: Sequence[Observer[Any]], shape: Shape, *, what: str = ""
) -> Run:
    """The run as far as it went: states of this shape (m, ...). Refuses a checkpoint of any other run (`what` says what
    is other then), of other observers, and one that is damaged."""
    arrays = _arrays(path)
    if arrays["identity"].item() != belongs:
        raise FileError(
            f"{path} is a checkpoint of a run with {what or 'other inputs'}.",
            "give the inputs of that run, or start a new one in another folder.",
        )
    state, step = arrays["state"], arrays["step"]
    if state.shape != shape or state.dtype != operator.dtype:
        raise _damaged(path, "state does not fit the run")
    if step.shape or step.dtype != _INT or step.item() < 0:
        raise _damaged(path, "step does not fit the run")
    active = tuple(looking for looking in observers if looking.every)
    names = {*_HEAD}
    for observer in active:
        names |= {f"{observer.name}:{setting}" for setting in observer.settings}
        columns = observer.columns(shape)
        names |= {f"{observer.name}.{column}" for column in ("steps", *columns)} if columns else set()
    # Settings of observers that leave no records say what they were, and need not be asked for.
    other = sorted(key for key in set(arrays) ^ names if key in names or ":" not in key)
    if other:
        raise _damaged(path, f"{other[0]} does not fit the run")
    records = {by.name: _records(path, arrays, by, shape, int(step.item())) for by in active}
    done = int(step.item())
    return Run(
        operator=operator.facts, steps=done, state=state, records={k: v for k, v in records.items() if v},
        observers=active, timed_from=done,
    )  # fmt: skip


def _arrays(path: Path) -> Mapping[str, HostArray]:
    try:
        arrays = read_arrays(path)
    except FileError as error:
        raise FileError(error.what, _anew(path)) from error
    version = arrays.get("version")
    if version is None or version.shape or version.dtype.kind not in "iu" or not set(_HEAD[:2]) <= set(arrays):
        raise FileError(f"{path} is not a checkpoint that this dashi reads.", _anew(path))
    if version.item() != VERSION:
        raise FileError(
            f"{path} is a checkpoint of version {version.item()}; this dashi reads version {VERSION}.",
            f"finish that run with the dashi that began it; or {_anew(path)}",
        )
    if arrays["identity"].shape or not set(_HEAD) <= set(arrays):
        raise _damaged(path, "its identity, step or state is missing")
    return arrays


def _records(
    path: Path, arrays: Mapping[str, HostArray], observer: Observer[Any], shape: Shape, last: int
) -> tuple[Any, ...]:
    for setting, value in observer.settings.items():
        kept = arrays[f"{observer.name}:{setting}"]
        if kept.shape or kept.dtype != _INT or kept.item() != value:
            raise _damaged(path, f"{observer.name}:{setting} does not fit the run")
    columns = observer.columns(shape)
    if not columns:
        return ()
    steps = arrays[f"{observer.name}.steps"]
    if steps.ndim != 1 or steps.dtype != _INT or not are_in_order(steps, 0 if observer.at_start else 1, last):
        raise _damaged(path, f"the steps of {observer.name} do not fit")
    for column, (size, dtype) in columns.items():
        values = arrays[f"{observer.name}.{column}"]
        if values.shape != (len(steps), *size) or values.dtype != dtype:
            raise _damaged(path, f"{observer.name}.{column} does not fit the run")
    return tuple(
        observer.unpack(int(step), {column: arrays[f"{observer.name}.{column}"][row] for column in columns})
        for row, step in enumerate(steps)
    )


def are_in_order(steps: HostArray, least: int, last: int) -> bool:
    """Whether steps rise, from at least one step to at most another."""
    listed: list[int] = steps.tolist()
    return all(a < b for a, b in itertools.pairwise(listed)) and all(least <= step <= last for step in listed)


def _anew(path: Path) -> str:
    return f"start anew: remove {path}, and leave `resume=True` away."


def _damaged(path: Path, why: str) -> FileError:
    return FileError(f"{path} is damaged: {why}.", _anew(path))
