"""A simulation on disk: frames and series in `fields.zarr`, and the checkpoint that a killed run goes on from."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Self

import numpy as np

from dashi.core.rollouts._checkpoint import read_settings, write_checkpoint
from dashi.core.rollouts.run import Run
from dashi.errors import FileError
from dashi.flow._derived_fields import UNITS
from dashi.flow._diagnostics import DiagnosticsRecord, courant, shell_count
from dashi.flow._fields import FieldStore, Variable, series_variable
from dashi.flow.equations import Flow
from dashi.flow.grid import Floats
from dashi.io._writer import Writer

PAUSE: Final = 2.0
"""Seconds between two checkpoints, at least."""
_SHARE: Final = 20
"""And so many times what the last one took."""
_MEANINGS: Final = {
    "vorticity": "vorticity", "streamfunction": "streamfunction", "velocity_x": "velocity along x",
    "velocity_y": "velocity along y", "strain_normal": "twice the normal strain, 2 du/dx",
    "strain_shear": "shear strain, du/dy + dv/dx", "pressure": "pressure over density",
}  # fmt: skip


@dataclass(frozen=True)
class FlowStrides:
    """Steps between two looks, frames and hashes of a simulation; 0 is never."""

    look: int = 0
    frame: int = 0
    hash: int = 0


class Trajectory:
    """Writes a simulation as it goes."""

    def __init__(
        self, path: Path, flow: Flow, members: Sequence[int], fields: Sequence[str], every: FlowStrides, *,
        transfer: bool, provenance: Mapping[str, Any], resume: bool = False,
    ) -> None:  # fmt: skip
        self.flow, self.every, self.fields, self.transfer = flow, every, tuple(fields), transfer
        self._members = len(members)
        self._shells = shell_count(flow) if every.look else 0
        variables = self._coordinates() | self._frames() | (self._series() if every.look else {})
        attributes = {
            "title": "two-dimensional incompressible flow in a doubly periodic box",
            "Conventions": "axis 0 is y, axis 1 is x; u = psi_y, v = -psi_x, vorticity = v_x - u_y",
            "history": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
            **{f"flow_{name}": value for name, value in flow.parameters.items()},
            **provenance,
        }
        self._store = FieldStore(path, variables, attributes, resume=resume)
        line = np.arange(flow.n) * flow.dx
        self._store.put("x", line)
        self._store.put("y", line)
        self._store.put("member", np.asarray(members, np.int64))
        if every.look:
            self._store.put("wavenumber", np.arange(self._shells) * (2 * np.pi / flow.length))

    def require_frames(self, steps: int) -> None:
        """Refuses to go on after so many steps where frames that were written before are gone or cut short."""
        for name in self.fields:
            lacking = self._store.missing(name, steps // self.every.frame + 1)
            if lacking is not None:
                raise FileError(
                    f"{self._store.path} has no whole frame {lacking} of {name}, written before step {steps}.",
                    "put it back; or start anew: remove the checkpoint, and leave `resume=True` away.",
                )

    def _coordinates(self) -> dict[str, Variable]:
        n = self.flow.n
        variables = {
            axis: Variable((axis,), "float64", (n,), {"units": "L", "long_name": f"position along {axis}"})
            for axis in ("x", "y")
        }
        variables["member"] = Variable(("member",), "int64", (self._members,), {"long_name": "seed of the member"})
        variables["time"] = series_variable("time", (), (), "float64", units="T", long_name="time since the start")
        variables["step"] = series_variable("time", (), (), "int64", units="1", long_name="steps done")
        return variables

    def _frames(self) -> dict[str, Variable]:
        shape = (self._members, self.flow.n, self.flow.n)
        return {
            name: Variable(("member", "y", "x"), self.flow.dtype, shape, _attributes(name), "time")
            for name in self.fields
        }

    def _series(self) -> dict[str, Variable]:
        count = self._shells
        wave = Variable(("wavenumber",), "float64", (count,), {"units": "1/L", "long_name": "wave number of a shell"})
        grows, members = "time_look", self._members
        variables = {
            "wavenumber": wave,
            "time_look": series_variable(grows, (), (), "float64", units="T", long_name="time of a look"),
            "courant": series_variable(grows, (), (), "float64", units="1", long_name="dt max(|u| + |v|) / dx"),
        }
        totals = {"energy": "L^2/T^2", "enstrophy": "1/T^2", "palinstrophy": "1/(L^2 T^2)"}
        for name, units in totals.items():
            variables[name] = series_variable(
                grows, ("member",), (members,), "float64", units=units, long_name=f"{name} per area"
            )
        spectra = {"energy_spectrum": "L^2/T^2", "enstrophy_spectrum": "1/T^2"}
        spectra |= {"energy_transfer": "L^2/T^3"} if self.transfer else {}
        for name, units in spectra.items():
            variables[name] = series_variable(
                grows, ("member", "wavenumber"), (members, count), "float64", units=units,
                long_name=name.replace("_", " ") + ", per shell",
            )  # fmt: skip
        return variables

    def add(self, step: int, fields: Mapping[str, Floats]) -> None:
        """Writes a frame. It is part of the store once `commit` has counted it."""
        index = step // self.every.frame
        for name in self.fields:
            self._store.frame(name, index, fields[name])

    def make_durable(self) -> None:
        """Waits until the frames are on the disk."""
        self._store.make_durable()

    def commit(self, run: Run) -> None:
        """Makes the frames up to the steps of a run part of the store, and writes its series."""
        steps = np.arange(run.steps // self.every.frame + 1) * self.every.frame
        for name in self.fields:
            self._store.count(name, len(steps))
        self._store.series("step", steps)
        self._store.series("time", steps * self.flow.dt)
        looks: tuple[DiagnosticsRecord, ...] = run.records.get("diagnostics", ())
        if self.every.look and looks:
            self._store.series("time_look", np.array([look.step * self.flow.dt for look in looks]))
            self._store.series("courant", np.array([courant(self.flow, look) for look in looks]))
            for name in ("energy", "enstrophy", "palinstrophy", "energy_spectrum", "enstrophy_spectrum"):
                self._store.series(name, np.stack([getattr(look, name) for look in looks]))
            if self.transfer:
                moved = [look.transfer for look in looks]
                self._store.series("energy_transfer", np.stack(moved))
        self._store.commit()


def kept_strides(path: Path) -> FlowStrides:
    """Strides of the run that a checkpoint is of; what it says nothing of is never looked at."""
    every = {name: one["every"] for name, one in read_settings(path).items() if "every" in one}
    return FlowStrides(every.get("diagnostics", 0), every.get("frames", 0), every.get("hashes", 0))


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


def _attributes(name: str) -> dict[str, str]:
    return {"units": UNITS[name], "long_name": _MEANINGS[name]}
