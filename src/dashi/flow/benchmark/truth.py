"""The truth of the benchmark: trajectories of the full solver, coarsened; with the hash of their last states, so that
whoever makes it again knows that it is the same to the last bit."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np

from dashi.core.rollouts.run import Run
from dashi.errors import FileError
from dashi.flow._operator import Vorticity
from dashi.flow._resample import resample
from dashi.flow.benchmark.setting import BenchmarkSetting, starts
from dashi.flow.evaluation.files import BROKEN, array_json, text_array
from dashi.flow.grid import Floats
from dashi.flow.simulation import simulate
from dashi.io.arrays import read_arrays, write_arrays
from dashi.runtime.device import Device

VERSION: Final = 1


@dataclass(frozen=True, eq=False)
class Truth:
    """Coarse vorticity (trajectories, frames + 1, coarse, coarse), and at its start on `start_n` points a side."""

    setting: BenchmarkSetting
    fields: Floats
    start: Floats
    hash: str
    """Hash of the last states of all trajectories, as certificates have it."""
    operator: str
    """Kind and version of the operator that made it."""
    device: str

    @property
    def times(self) -> Floats:
        """Flow time of the frames, from the end of the spin-up on."""
        count: int = self.fields.shape[1]
        return np.arange(count) * self.setting.frame


def make_truth(
    setting: BenchmarkSetting, *, device: Device, progress: Callable[[int], None] | None = None
) -> tuple[Truth, Run]:
    """The truth, and the Run that it is of, from the start at time 0 on. `progress` is told of steps, `truth_steps` in
    all."""
    flow, every = setting.flow(setting.n), round(setting.frame / setting.dt)
    states, spin_up, steps = starts(setting), round(setting.spin_up / setting.dt), truth_steps(setting)
    stride = math.gcd(spin_up, steps)
    run = simulate(flow, states, spin_up, device=device, hash_every=stride, look_every=every, progress=progress)
    fields = np.empty((len(states), setting.frames + 1, setting.coarse, setting.coarse), np.float32)
    start_fields = np.empty((len(states), setting.start_n, setting.start_n), np.float32)

    def take(step: int, looked_at: Mapping[str, Floats]) -> None:
        at, odd = divmod(step - spin_up, every)
        if odd or at < 0:
            return
        for member, vorticity in enumerate(looked_at["vorticity"]):
            fields[member, at] = resample(vorticity, setting.coarse)
            if not at:
                start_fields[member] = resample(vorticity, setting.start_n)

    simulate(flow, run.state, 0, device=device, frame_every=1, frame=lambda _, looked_at: take(spin_up, looked_at))
    run = simulate(
        flow, states, steps, device=device, hash_every=stride, look_every=every, frame_every=every, frame=take,
        progress=progress, resume=run,
    )  # fmt: skip
    operator = f"{Vorticity.kind}/{Vorticity.version}"
    return Truth(setting, fields, start_fields, run.hashes[-1].digest, operator, device.info.name), run


def truth_steps(setting: BenchmarkSetting) -> int:
    """Steps of the truth from time 0 on."""
    return round(setting.spin_up / setting.dt) + setting.frames * round(setting.frame / setting.dt)


def save_truth(path: Path | str, truth: Truth) -> None:
    """Keeps the truth as an .npz file, all or nothing."""
    head = {
        "version": VERSION, "setting": truth.setting.document, "seeds": list(truth.setting.seeds), "hash": truth.hash,
        "operator": truth.operator, "device": truth.device, "digest": _digest(truth.fields, truth.start),
    }  # fmt: skip
    write_arrays(Path(path), {"head": text_array(json.dumps(head)), "fields": truth.fields, "start": truth.start})


def load_truth(path: Path | str, setting: BenchmarkSetting) -> Truth:
    """The truth of a file, which must be of this setting. Raises FileError where it is of another one, damaged, or made
    of states with another hash than the setting is known to have."""
    arrays = read_arrays(Path(path))
    again = "make it again: leave `truth=` away."
    try:
        head = array_json(arrays["head"])
        fields, start = np.asarray(arrays["fields"], np.float32), np.asarray(arrays["start"], np.float32)
        version, final_hash = head["version"], str(head["hash"])
        own, seeds, operator, device = head["setting"], head["seeds"], str(head["operator"]), str(head["device"])
        digest = head["digest"]
    except (*BROKEN, AttributeError) as error:
        raise FileError(f"{path} is no truth of a benchmark, or damaged: {error}", again) from error
    many = len(setting.seeds)
    shapes = (
        (many, setting.frames + 1, setting.coarse, setting.coarse), (many, setting.start_n, setting.start_n),
    )  # fmt: skip
    if version != VERSION or own != setting.document or seeds != list(setting.seeds):
        raise FileError(f"{path} is the truth of another setting than {setting.name}.", again)
    if (fields.shape, start.shape) != shapes or not (np.isfinite(fields).all() and np.isfinite(start).all()):
        raise FileError(f"{path} is damaged: its fields do not fit the setting, or are not finite.", again)
    if digest != _digest(fields, start):
        raise FileError(f"{path} is damaged: its fields do not have the digest that it claims.", again)
    current = f"{Vorticity.kind}/{Vorticity.version}"
    if setting.truth_hash and operator == current and final_hash != setting.truth_hash:
        raise FileError(
            f"{path} is of states with the hash {final_hash[:32]}, and the setting {setting.name} has "
            f"{setting.truth_hash}.",
            again,
        )
    return Truth(setting, fields, start, final_hash, operator, device)


def _digest(*arrays: Floats) -> str:
    total = hashlib.blake2b(digest_size=16)
    for values in arrays:
        total.update(np.ascontiguousarray(values, "<f4").tobytes())
    return total.hexdigest()
