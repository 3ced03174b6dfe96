"""The files of the main job: what each stage leaves as soon as it is finished."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

import numpy as np

from dashi.core.certificates._certify import certify_folder
from dashi.core.observations.sheet import save_sheet
from dashi.flow._fields import FieldStore, Variable, series_variable
from dashi.flow.evaluation import save_evaluation
from dashi.flow.evaluation._fits import Fit, save_fit
from dashi.flow.evaluation._training import Training
from dashi.flow.evaluation.overlap import Seen
from dashi.flow.evaluation.scores import largest_energy
from dashi.flow.grid import Floats, shell_numbers
from dashi.flow.proxy import save_z
from dashi.flow.proxy.schema import Schema
from dashi.flow.proxy.states import power, squares
from dashi.io import _run_folder as run_folder
from dashi.io._run_names import EVALUATION, FIELDS, MODEL, TRAINING, Z
from dashi.io.arrays import write_arrays
from dashi.lab.demos._work import Work
from dashi.report.run import PROXY


def keep_fields(work: Work) -> None:
    """The shown window: what happened, and what was decoded of the model's states."""
    r, flow = work.results, work.setting.flow
    if not r.windows:
        return
    test, now = r.windows["test"], r.shown[1]
    frame = {"units": "1/T"}
    variables = {
        axis: Variable((axis,), "float64", (flow.n,), {"units": "L", "long_name": f"position along {axis}"})
        for axis in ("x", "y")
    }
    variables["time"] = series_variable("time", (), (), "float64", units="T", long_name="time since the window began")
    names = {"vorticity": ("vorticity", test.fields[now])}
    if r.fields is not None:
        names[PROXY] = ("vorticity decoded of the model left alone", r.fields[: test.frames])
    for name, (meaning, _) in names.items():
        shape = (flow.n, flow.n)
        variables[name] = Variable(("y", "x"), "float32", shape, {**frame, "long_name": meaning}, "time")
    attributes = {f"flow_{name}": value for name, value in flow.parameters.items()} | {"seed": test.seeds[now]}
    # Going on in the store of an earlier stage: what is in it already needs its last frame alone, which counts them.
    there = {name for name in names if (work.folder / FIELDS / name / "zarr.json").is_file()}
    store = FieldStore(work.folder / FIELDS, variables, attributes, resume=True)
    for axis in ("x", "y"):
        store.put(axis, np.arange(flow.n) * flow.dx)
    for name, (_, values) in names.items():
        for index in range(len(values) - 1 if name in there else 0, len(values)):
            store.frame(name, index, values[index])
    store.series("time", test.times)
    store.commit()


def keep_model(work: Work) -> None:
    """The model with its baselines, and what they were fitted to: whatever is fitted so far."""
    r, s = work.results, work.setting
    if s.ours not in r.models:
        return
    train, validation = r.windows["train"], r.windows["validation"]
    training = Training(
        s.flow, s.interval, s.steps, s.train, s.validation, Seen.of(train, validation),
        largest_energy(train, validation), spin_up=s.spin_up_steps,
    )  # fmt: skip
    # The perfect model is of the flow that is scored on, and is asked for there: `dashi flow evaluate --perfect`.
    others = {name: model for name, model in r.models.items() if name not in (s.ours, "perfect")}
    save_fit(work.folder / MODEL, Fit(r.models[s.ours], others, training, (r.train,) if r.train else ()))


def keep_rollout(work: Work) -> None:
    """The states of the model left alone, their sheet, and the certificate of what was hashed."""
    r = work.results
    if r.z is not None:
        save_z(work.folder / Z, work.setting.schema, r.z)
        save_sheet(work.folder / run_folder.SHEET, shell_energies(work.setting.schema, r.z)[:, 1:])
    if r.run is None or r.operator is None or r.z0 is None or not r.run.hashes:
        return
    r.digest = certify_folder(r.run, work.folder, r.operator, r.z0)


def keep_scores(work: Work) -> None:
    """All scores, as far as they are there, and the canonical figure's data."""
    r = work.results
    if r.test is not None:
        save_evaluation(work.folder / EVALUATION, r.test)
    if r.train is not None:
        save_evaluation(work.folder / TRAINING, r.train)
        keep_model(work)
    if r.test is None or r.alone is None or r.proxy is None:
        return
    past, now = r.shown
    test = r.windows["test"]
    length, interval = test.frames, float(test.times[1])
    after = len(r.alone) - length
    empty = np.full(after, np.nan)
    arrays = {
        "times": interval * np.arange(-length, length + after),
        "reference": np.concatenate([r.test.energy[past], r.test.energy[now], empty]),
        "proxy": np.concatenate([r.proxy, empty]),
        "alone": np.concatenate([np.full(length, np.nan), r.alone]),
    }
    write_arrays(work.folder / run_folder.CONTINUATION, arrays)


KEEPERS: Final[Mapping[str, Callable[[Work], None]]] = {
    "simulate": keep_fields,
    "fit": keep_model,
    "roll out": keep_rollout,
    "decode": keep_fields,
    "score": keep_scores,
}
"""What keeps the results of a stage."""


def shell_energies(schema: Schema, z: Floats) -> Floats:
    """Energy by shells of |k| of the modes that z (frames, D) holds, (frames, shells) from 0 on."""
    weights = power(schema, z) / squares(schema)
    number = shell_numbers((schema.modes**2).sum(axis=1))
    energies = np.zeros((len(z), int(number.max()) + 1))
    for shell in range(energies.shape[1]):
        energies[:, shell] = weights[:, number == shell].sum(axis=1)
    return energies
