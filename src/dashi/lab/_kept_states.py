"""States that a job keeps in its run folder, for its certificate: what may be asked, and what is left there."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final, Protocol

import numpy as np

from dashi.core.rollouts._state_files import BITS, StateFiles, require_bits, state_name
from dashi.core.rollouts.run import Run
from dashi.errors import InputError
from dashi.io import _run_folder as run_folder
from dashi.io._run_names import is_folder
from dashi.lab._capacity import require_disk
from dashi.types import HostArray

_HEADER: Final = 128
"""Bytes of a file before its values, about."""


class KeepsStates(Protocol):
    """A request of a run whose certificate may name states on the way."""

    @property
    def steps(self) -> int: ...

    @property
    def states_every(self) -> int | None: ...

    @property
    def states_bits(self) -> int | None: ...


def check_states(request: KeepsStates, out: Path | None, *, portable: bool) -> None:
    """Refuses kept states that nothing could be made of."""
    every, bits = request.states_every, request.states_bits
    if bits is not None:
        require_bits(bits)
    if every is None:
        if bits is not None:
            raise InputError("`states_bits=` is of kept states, and none are kept.", "give `states_every=` too.")
        return
    if every < 1:
        raise InputError(f"`states_every=` is {every}.", "give a stride of 1 or more, or leave it away.")
    if every > request.steps:
        raise InputError(f"`states_every=` is {every}, and there are {request.steps} steps.", "keep states more often.")
    if out is None:
        raise InputError("states are kept in a run folder.", "name one with `out=`.")
    if not portable:
        raise InputError(
            "a run that is not portable has no certificate, and kept states are for that.",
            "leave `states_every=` away.",
        )


def require_no_states(request: KeepsStates) -> None:
    """Refuses kept states in a shard: `merge` joins hashes of shards, not states."""
    if request.states_every is not None:
        raise InputError(
            "a shard keeps no states on the way.", "leave `states_every=` away, or run the whole without `shard=`."
        )


def claimed_stride(states_every: int | None, asked: int | None, usual: int) -> int:
    """Steps between hashes: those asked for, or the usual ones, if each state that is kept has a hash."""
    stride = usual if asked is None else asked
    if states_every is None or (stride and states_every % stride == 0):
        return stride
    if asked is None:
        return states_every
    raise InputError(
        f"`states_every=` is {states_every} and `hash_every=` {asked}: a state is kept where no hash is.",
        f"keep states after a multiple of {asked} steps." if asked else "leave `hash_every=` away.",
    )


def require_states_room(out: Path | None, request: KeepsStates, z0: HostArray) -> None:
    """Refuses more states than there is disk for."""
    if out is not None and request.states_every is not None:
        count = request.steps // request.states_every
        require_disk(
            out, count * (z0.nbytes + _HEADER), f"{count} kept states would", "use a larger `states_every=`."
        )  # fmt: skip


def require_same_states(request: KeepsStates, every: int, bits: int) -> None:
    """Refuses to go on with a run that keeps states otherwise."""
    for name, asked, before in (
        ("states_every", request.states_every, every), ("states_bits", request.states_bits, bits),
    ):  # fmt: skip
        if asked not in (None, before):
            fix = f"leave `{name}=` away, or start a new run."
            raise InputError(f"the run that goes on has `{name}=` {before or 'away'}, not {asked}.", fix)


def state_files(folder: Path | None, every: int, bits: int | None) -> list[StateFiles]:
    """What writes the states of a run into its folder; nothing where none are kept."""
    return [StateFiles(every, folder / run_folder.STATES, bits or BITS[0])] if folder is not None and every else []


def require_states(folder: Path, run: Run, shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
    """Refuses to go on with a run of which a kept state is gone, or is another."""
    observer = next((one for one in run.observers if isinstance(one, StateFiles)), None)
    if observer is not None:
        files = StateFiles(observer.every, folder / run_folder.STATES, observer.bits)
        files.require_files(run.records.get(StateFiles.name, ()), shape, dtype)


def remove_other_states(folder: Path, run: Run) -> None:
    """Removes what a killed run kept beyond the end of the one that went on with it: files that runs name so, and no
    others."""
    place = folder / run_folder.STATES
    keeps = any(isinstance(observer, StateFiles) for observer in run.observers)
    if run.stopped or not keeps or not is_folder(place):
        return
    own = {state_name(one.step) for one in run.records.get(StateFiles.name, ())}
    for path in [path for path in place.iterdir() if _is_state(path.name) and path.name not in own]:
        if not is_folder(path):
            path.unlink()


def _is_state(name: str) -> bool:
    """Whether a file is named as states are."""
    step = name.removesuffix(".npy")
    return step.isascii() and step.isdecimal() and name == state_name(int(step))
