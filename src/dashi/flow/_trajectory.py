"""A simulation on disk: frames and series in `fields.zarr`, and the checkpoint that a killed run goes on from."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Self

import numpy as np

from dashi.core.rollouts._checkpoint import read_settings, write_checkpoint
from dashi.core.rollouts._state_files import BITS, StateFiles
from dashi.core.rollouts.run import Run
from dashi.errors import FileError
from dashi.flow._diagnostics import DiagnosticsRecord, courant
from dashi.flow._fields import FieldStore, Octets
from dashi.flow._trajectory_layout import SPECTRA, TOTALS, TRANSFER, FlowStrides, TrajectoryLayout
from dashi.flow.equations import Flow
from dashi.flow.grid import Floats
from dashi.io._writer import Writer
from dashi.types import HostArray

PAUSE: Final = 2.0
"""Seconds between two checkpoints, at least."""
_SHARE: Final = 20
"""And so many times what the last one took."""


class Trajectory:
    """Writes a simulation as it goes."""

    def __init__(
        self, path: Path, flow: Flow, members: Sequence[int], fields: Sequence[str], every: FlowStrides, *,
        transfer: bool, provenance: Mapping[str, Any], resume: bool = False,
    ) -> None:  # fmt: skip
        self.flow, self.every, self.fields, self.transfer = flow, every, tuple(fields), transfer
        layout = TrajectoryLayout(flow, len(members), self.fields, every, transfer)
        attributes = {
            "title": "two-dimensional incompressible flow in a doubly periodic box",
            "Conventions": "axis 0 is y, axis 1 is x; u = psi_y, v = -psi_x, vorticity = v_x - u_y",
            "history": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
            **{f"flow_{name}": value for name, value in flow.parameters.items()},
            **provenance,
        }
        self._store = FieldStore(path, layout.variables, attributes, resume=resume)
        line = np.arange(flow.n) * flow.dx
        self._store.put("x", line)
        self._store.put("y", line)
        self._store.put("member", np.asarray(members, np.int64))
        if every.look:
            self._store.put("wavenumber", np.arange(layout.shells) * (2 * np.pi / flow.length))

    def require_frames(self, steps: int) -> None:
        """Refuses to go on after so many steps where frames that were written before are gone or cut short."""
        for name in self.fields:
            lacking = self._store.missing(name, steps // self.every.frame + 1)
            if lacking is not None:
                raise FileError(
                    f"{self._store.path} has no whole frame {lacking} of {name}, written before step {steps}.",
                    "put it back; or start anew: remove the checkpoint, and leave `resume=True` away.",
                )

    def add(self, step: int, fields: Mapping[str, Floats]) -> None:
        """Writes a frame. It is part of the store once `commit` has counted it."""
        self._store.frames(step // self.every.frame, {name: fields[name] for name in self.fields})

    def make_durable(self) -> None:
        """Waits until the frames are on the disk."""
        self._store.make_durable()

    def add_from(self, step: int, pieces: Mapping[str, Iterable[Octets]]) -> None:
        """Writes a frame whose fields come in pieces of bytes, of the members in order."""
        for name in self.fields:
            self._store.frame_from(name, step // self.every.frame, pieces[name])

    def commit(self, run: Run) -> None:
        """Makes the frames up to the steps of a run part of the store, and writes its series."""
        self.commit_series(run.steps, self._series_of(run))

    def commit_series(self, done: int, series: Mapping[str, HostArray]) -> None:
        """Makes the frames up to a step part of the store, and writes the series of its looks by name."""
        steps = np.arange(done // self.every.frame + 1) * self.every.frame
        for name in self.fields:
            self._store.count(name, len(steps))
        self._store.series("step", steps)
        self._store.series("time", steps * self.flow.dt)
        for name, values in series.items():
            self._store.series(name, values)
        self._store.commit()

    def _series_of(self, run: Run) -> dict[str, HostArray]:
        looks: tuple[DiagnosticsRecord, ...] = run.records.get("diagnostics", ())
        if not self.every.look or not looks:
            return {}
        series: dict[str, HostArray] = {
            "time_look": np.array([look.step * self.flow.dt for look in looks]),
            "courant": np.array([courant(self.flow, look) for look in looks]),
        }
        series |= {name: np.stack([getattr(look, name) for look in looks]) for name in (*TOTALS, *SPECTRA)}
        if self.transfer:
            series |= dict.fromkeys(TRANSFER, np.stack([look.transfer for look in looks]))
        return series


def kept_strides(path: Path) -> FlowStrides:
    """Strides of the run that a checkpoint is of; what it says nothing of is never looked at."""
    settings = read_settings(path)
    every = {name: one["every"] for name, one in settings.items() if "every" in one}
    bits = settings.get(StateFiles.name, {}).get("bits", BITS[0])
    strides = [every.get(name, 0) for name in ("diagnostics", "frames", "hashes", StateFiles.name)]
    return FlowStrides(*strides, bits=bits)


class TrajectoryWriter:
    """Writes a run under way, beside it: its frames, and now and then a checkpoint with the series up to it. Use it in
    a `with` block, and hand `frame` and `keep` to `simulate`; at most one checkpoint in `pause()` seconds pays."""

    def __init__(self, trajectory: Trajectory, checkpoint: Path, belongs: Callable[[], str]) -> None:
        self._trajectory, self._checkpoint, self._belongs = trajectory, checkpoint, belongs
        self._writer = Writer()
        self._took = 0.0

    def __enter__(self) -> Self:
        self._writer.__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        self._writer.__exit__(*error)

    def pause(self) -> float:
        """Seconds between two checkpoints: the longer, the longer one takes."""
        return max(PAUSE, _SHARE * self._took)

    def frame(self, step: int, fields: Mapping[str, Floats]) -> None:
        """Takes the fields of a step."""
        self._writer.put(lambda: self._frame(step, fields), sum(field.nbytes for field in fields.values()))

    def keep(self, run: Run) -> None:
        """Takes the run so far, whose frames it was given."""
        self._writer.put(lambda: self._keep(run), run.state.nbytes)

    def finish(self, run: Run) -> None:
        """Hands in the rest: of a run that was stopped, the checkpoint too. It is written when `wait` returns."""
        self._writer.put(lambda: self._finish(run))

    def wait(self) -> None:
        """Until all that was handed in is written."""
        self._writer.wait()

    def _finish(self, run: Run) -> None:
        self._trajectory.commit(run)
        if run.stopped:
            write_checkpoint(self._checkpoint, self._belongs(), run)

    def _frame(self, step: int, fields: Mapping[str, Floats]) -> None:
        self._trajectory.add(step, fields)
        if self._writer.idle:
            self._trajectory.make_durable()

    def _keep(self, run: Run) -> None:
        began = time.monotonic()
        self._trajectory.commit(run)
        write_checkpoint(self._checkpoint, self._belongs(), run)
        self._took = time.monotonic() - began
