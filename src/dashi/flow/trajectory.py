"""A simulation on disk: frames and series in `fields.zarr`, and the checkpoint that a killed run goes on from."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np

from dashi.core.certificates.checkpoint import are_in_order
from dashi.core.observations.observation import Hash
from dashi.errors import FileError
from dashi.flow.equations import Flow
from dashi.flow.fields import FieldStore, Variable, series_variable
from dashi.flow.grid import Floats
from dashi.flow.observers import UNITS, Look, shells
from dashi.flow.simulation import Every, Simulation, courant
from dashi.io.arrays import read_arrays, write_arrays
from dashi.kernels.hash.blake3 import hexdigest128

VERSION: Final = 1
_LOOKS: Final = ("energy_spectrum", "enstrophy_spectrum", "palinstrophy", "speed")
_MEANINGS: Final = {
    "vorticity": "vorticity", "streamfunction": "streamfunction", "velocity_x": "velocity along x",
    "velocity_y": "velocity along y", "strain_normal": "twice the normal strain, 2 du/dx",
    "strain_shear": "shear strain, du/dy + dv/dx", "pressure": "pressure over density",
}  # fmt: skip


class Trajectory:
    """Writes a simulation as it goes."""

    def __init__(
        self, path: Path, flow: Flow, members: Sequence[int], fields: Sequence[str], every: Every, *, transfer: bool,
        provenance: Mapping[str, Any], resume: bool = False,
    ) -> None:  # fmt: skip
        self.flow, self.every, self.fields, self.transfer = flow, every, tuple(fields), transfer
        self._members = len(members)
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
            self._store.put("wavenumber", np.arange(shells(flow).count) * (2 * np.pi / flow.length))

    def require_frames(self, steps: int) -> None:
        """Refuses to go on after so many steps where frames that were written before are gone or cut short."""
        for name in self.fields:
            lacking = self._store.missing(name, steps // self.every.frame + 1)
            if lacking is not None:
                raise FileError(
                    f"{self._store.path} has no whole frame {lacking} of {name}, written before step {steps}.",
                    "put it back; or start anew: remove the checkpoint, and leave --resume away.",
                )

    def _coordinates(self) -> dict[str, Variable]:
        n = self.flow.n
        made = {
            axis: Variable((axis,), "float64", (n,), {"units": "L", "long_name": f"position along {axis}"})
            for axis in ("x", "y")
        }
        made["member"] = Variable(("member",), "int64", (self._members,), {"long_name": "seed of the member"})
        made["time"] = series_variable("time", (), (), "float64", units="T", long_name="time since the start")
        made["step"] = series_variable("time", (), (), "int64", units="1", long_name="steps done")
        return made

    def _frames(self) -> dict[str, Variable]:
        shape = (self._members, self.flow.n, self.flow.n)
        return {
            name: Variable(("member", "y", "x"), self.flow.dtype, shape, _attributes(name), "time")
            for name in self.fields
        }

    def _series(self) -> dict[str, Variable]:
        count = shells(self.flow).count
        wave = Variable(("wavenumber",), "float64", (count,), {"units": "1/L", "long_name": "wave number of a shell"})
        grows, members = "time_look", self._members
        made = {
            "wavenumber": wave,
            "time_look": series_variable(grows, (), (), "float64", units="T", long_name="time of a look"),
            "courant": series_variable(grows, (), (), "float64", units="1", long_name="dt max(|u| + |v|) / dx"),
        }
        totals = {"energy": "L^2/T^2", "enstrophy": "1/T^2", "palinstrophy": "1/(L^2 T^2)"}
        for name, units in totals.items():
            made[name] = series_variable(
                grows, ("member",), (members,), "float64", units=units, long_name=f"{name} per area"
            )
        spectra = {"energy_spectrum": "L^2/T^2", "enstrophy_spectrum": "1/T^2"}
        spectra |= {"energy_transfer": "L^2/T^3"} if self.transfer else {}
        for name, units in spectra.items():
            made[name] = series_variable(
                grows, ("member", "wavenumber"), (members, count), "float64", units=units,
                long_name=name.replace("_", " ") + ", per shell",
            )  # fmt: skip
        return made

    def add(self, run: Simulation, fields: Mapping[str, Floats]) -> None:
        """Writes a frame, and the series up to it."""
        index = run.steps // self.every.frame
        for name in self.fields:
            self._store.frame(name, index, fields[name])
        steps = np.arange(index + 1) * self.every.frame
        self._store.series("step", steps)
        self._store.series("time", steps * self.flow.dt)
        self.finish(run)

    def finish(self, run: Simulation) -> None:
        """Writes the series as they stand."""
        if self.every.look and run.looks:
            looks = run.looks
            self._store.series("time_look", np.array([look.step * self.flow.dt for look in looks]))
            self._store.series("courant", np.array([courant(self.flow, look) for look in looks]))
            for name in ("energy", "enstrophy", "palinstrophy", "energy_spectrum", "enstrophy_spectrum"):
                self._store.series(name, np.stack([getattr(look, name) for look in looks]))
            if self.transfer:
                moved = [look.transfer for look in looks]
                self._store.series("energy_transfer", np.stack(moved))
        self._store.commit()


def _attributes(name: str) -> dict[str, str]:
    return {"units": UNITS[name], "long_name": _MEANINGS[name]}


def identity(flow: Flow, states: Floats, every: Every, fields: Sequence[str], *, transfer: bool, fast: bool) -> str:
    """The digest of all that decides a run's states and files, but not of how far it goes, nor where."""
    facts = [flow.parameters, [every.look, every.frame, every.hash], list(fields), transfer, fast]
    return hexdigest128(json.dumps(facts, sort_keys=True).encode() + np.ascontiguousarray(states).tobytes())


def write_checkpoint(path: Path, belongs: str, run: Simulation, every: Every) -> None:
    """Keeps where a simulation stands, all or nothing. A hash or look that only the last step had is left out: the run
    that goes on has none there."""
    hashes = [h for h in run.hashes if every.hash and h.step % every.hash == 0]
    looks = [look for look in run.looks if every.look and look.step % every.look == 0]
    digests = b"".join(bytes.fromhex(h.digest) for h in hashes)
    arrays: dict[str, Any] = {
        "version": np.array(VERSION, np.int64),
        "identity": np.array(belongs),
        "strides": np.array([every.look, every.frame, every.hash], np.int64),
        "step": np.array(run.steps, np.int64),
        "states": run.states,
        "hash_steps": np.array([h.step for h in hashes], np.int64),
        "hash_digests": np.frombuffer(digests, np.uint8).reshape(-1, 16),
        "look_steps": np.array([look.step for look in looks], np.int64),
    }
    for name in _LOOKS if looks else ():
        arrays[name] = np.array([getattr(look, name) for look in looks], np.float64)
    if looks and looks[0].transfer is not None:
        arrays["transfer"] = np.array([look.transfer for look in looks], np.float64)
    write_arrays(path, arrays)


def kept_strides(path: Path) -> Every | None:
    """Those of the run that a checkpoint is of, where it tells them."""
    found = _arrays(path).get("strides")
    if found is None or found.shape != (3,) or found.dtype != np.int64 or found.min() < 0:
        return None
    return Every(*(int(value) for value in found))


def _arrays(path: Path) -> Mapping[str, Any]:
    try:
        return read_arrays(path)
    except FileError as error:
        raise FileError(error.what, _anew(path)) from error


def read_checkpoint(path: Path, belongs: str, start: Simulation) -> Simulation:
    """The simulation as far as it went; refuses a checkpoint of any other, and one that is damaged."""
    found = _arrays(path)
    fix = _anew(path)
    needed = {"version", "identity", "step", "states", "hash_steps", "hash_digests", "look_steps"}
    if not needed <= set(found) or found["version"].shape or found["version"].item() != VERSION:
        raise FileError(f"{path} is not a checkpoint that this dashi reads.", fix)
    if found["identity"].shape or found["identity"].item() != belongs:
        raise FileError(
            f"{path} is a checkpoint of a run with another flow, start, fields or strides.",
            "give those of that run, or start a new one in another folder with --out.",
        )
    _check(path, found, start)
    count = len(found["look_steps"])
    looks = [
        Look(
            int(found["look_steps"][j]),
            found["energy_spectrum"][j],
            found["enstrophy_spectrum"][j],
            found["palinstrophy"][j],
            float(found["speed"][j]),
            found["transfer"][j] if "transfer" in found else None,
        )
        for j in range(count)
    ]  # fmt: skip
    hashes = [
        Hash(int(step), bytes(digest).hex())
        for step, digest in zip(found["hash_steps"], found["hash_digests"], strict=True)
    ]
    return Simulation(start.flow, int(found["step"].item()), found["states"], tuple(looks), tuple(hashes))


def _anew(path: Path) -> str:
    return f"start anew: remove {path}, and leave --resume away."


def _check(path: Path, found: Mapping[str, Any], start: Simulation) -> None:
    """The identity says that the file was meant for this run; this, that it is whole."""
    count = len(found["look_steps"]) if found["look_steps"].ndim else -1
    hashes = len(found["hash_steps"]) if found["hash_steps"].ndim else -1
    members, bands = len(start.states), shells(start.flow).count
    shapes: dict[str, tuple[int, ...]] = {
        "step": (), "states": start.states.shape, "hash_steps": (hashes,), "hash_digests": (hashes, 16),
        "look_steps": (count,),
    }  # fmt: skip
    if count:
        shapes |= {"energy_spectrum": (count, members, bands), "enstrophy_spectrum": (count, members, bands)}
        shapes |= {"palinstrophy": (count, members), "speed": (count,)}
    kinds = {"states": start.states.dtype, "step": np.dtype(np.int64), "hash_digests": np.dtype(np.uint8)}
    for name, shape in shapes.items():
        if name not in found or found[name].shape != shape or found[name].dtype != kinds.get(name, found[name].dtype):
            raise FileError(f"{path} is damaged: {name} does not fit the run.", _anew(path))
    step = found["step"].item()
    if any(found[name].dtype != np.int64 for name in ("hash_steps", "look_steps")) or any(
        found[name].dtype.kind != "f" for name in (*_LOOKS, "transfer") if count and name in found
    ):
        raise FileError(f"{path} is damaged: its steps or looks are no such numbers.", _anew(path))
    if not are_in_order(found["hash_steps"], 1, step) or not are_in_order(found["look_steps"], 0, step):
        raise FileError(f"{path} is damaged: its hashes or looks are out of order.", _anew(path))
    if step < 0 or ("transfer" in found and found["transfer"].shape != (count, members, bands)):
        raise FileError(f"{path} is damaged: its step or looks do not fit.", _anew(path))
