"""Who is scored against the truth: the solver on coarser grids, and models of z of no more numbers than the coarse
field has. All start from the truth at the end of its spin-up, reduced to what they hold."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from dashi.errors import InputError
from dashi.flow import grid
from dashi.flow._resample import resample
from dashi.flow.benchmark.scoring import Score, score
from dashi.flow.benchmark.setting import PEAK, BenchmarkSetting
from dashi.flow.benchmark.truth import Truth
from dashi.flow.grid import Floats
from dashi.flow.initial import from_field
from dashi.flow.proxy.catalogue import model_class
from dashi.flow.proxy.encode import encode
from dashi.flow.proxy.lowpass import decode
from dashi.flow.proxy.model import Model
from dashi.flow.proxy.schema import Schema
from dashi.flow.simulation import simulate
from dashi.flow.windows import Windows
from dashi.flow.windows.simulated import windows_of
from dashi.runtime.device import Device

START_SPEED = 3.0
"""The rms speed that training trajectories start with: that of fields whose largest is about 7."""


@dataclass(frozen=True, eq=False)
class TrainingData:
    """Windows that models are fitted to and chosen on; their seeds are none of the truth's."""

    train: Windows
    validation: Windows


def training_data(
    setting: BenchmarkSetting, *, device: Device, progress: Callable[[int], None] | None = None
) -> TrainingData:  # fmt: skip
    """Simulates the training and validation seeds of a setting."""
    if set(setting.seeds) & {*setting.train_seeds, *setting.validation_seeds}:
        raise InputError("seeds of the truth are among those of training.", "use others for training.")
    flow = setting.flow(setting.train_n)
    interval, spin_up = round(setting.frame / flow.dt), round(setting.spin_up / flow.dt)
    train, validation = (
        windows_of(
            flow, seeds, device=device, steps=round(setting.train_length / setting.frame) * interval,
            interval=interval, spin_up=spin_up, options={"peak": PEAK, "speed": START_SPEED}, progress=progress,
        )
        for seeds in (setting.train_seeds, setting.validation_seeds)
    )  # fmt: skip
    return TrainingData(train, validation)


def fitted(setting: BenchmarkSetting, name: str, data: TrainingData, *, device: Device) -> Model:
    """A model of the setting, whose state may not be larger than the coarse field."""
    schema = Schema(setting.train_n, setting.k_cut)
    if 2 * len(schema.modes) > setting.coarse**2:
        raise InputError(
            f"modes up to {setting.k_cut:g} are {2 * len(schema.modes)} numbers, more than {setting.coarse}^2.",
            "use a smaller k_cut.",
        )
    return model_class(name).fit(schema, data.train, data.validation, device=device, **setting.models[name])


def score_model(name: str, model: Model, truth: Truth, *, device: Device) -> Score:
    """The score of a model from the modes that it holds."""
    setting, schema = truth.setting, model.schema
    start = np.ascontiguousarray(resample(truth.start, schema.n))
    z0 = encode(schema, start, device=device)
    began = time.perf_counter()
    z = model.rollout(z0, setting.frames, device=device, stop_on_nonfinite=False)
    seconds = time.perf_counter() - began
    fields = np.stack([_coarse(decode_finite(schema, states, device), setting.coarse) for states in z])
    return score(name, model.state_size, fields, truth.fields, truth.times, setting.seeds, seconds)


def score_solver(n: int, truth: Truth, *, device: Device) -> Score:
    """The score of the solver on an n x n grid, from the modes that it keeps."""
    setting = truth.setting
    flow = setting.flow(n)
    states = from_field(flow, resample(truth.start, n))
    for state in states:
        grid.clear_aliased(state)
    fields = np.zeros(truth.fields.shape, np.float32)
    every = round(setting.frame / flow.dt)

    def take(step: int, made: Any) -> None:
        fields[:, step // every] = _coarse(made["vorticity"], setting.coarse)

    began = time.perf_counter()
    simulate(
        flow, states, setting.frames * every, device=device, frame_every=every, frame=take, stop_on_nonfinite=False
    )
    seconds = time.perf_counter() - began
    numbers = int((grid.counted(n) * grid.dealiased(n)).sum()) - 1
    return score(f"solver {n}", numbers, fields, truth.fields, truth.times, setting.seeds, seconds)


def decode_finite(schema: Schema, states: Floats, device: Device) -> Floats:
    """Fields of frames of z; not a number where a frame is not finite."""
    fields = np.full((len(states), schema.n, schema.n), np.nan, np.float32)
    finite = np.flatnonzero(np.isfinite(states).all(-1))
    if len(finite):
        fields[finite] = decode(schema, np.ascontiguousarray(states[finite]), device=device)
    return fields


def _coarse(fields: Floats, n: int) -> Floats:
    """Fields on n x n points; one that is not finite becomes 0, which correlates with nothing."""
    finite = np.isfinite(fields).all(axis=(-2, -1))
    coarse = np.zeros((*fields.shape[:-2], n, n), np.float32)
    if finite.any():
        coarse[finite] = resample(fields[finite], n)
    return coarse
