"""The stages of the main job: simulate, fit, roll out alone, decode, score, check."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Final

import numpy as np

from dashi.core.rollouts.rollout import rollout
from dashi.flow.decode import Decoder
from dashi.flow.evaluation import evaluate, require_disjoint
from dashi.flow.evaluation._fits import fit_model
from dashi.flow.evaluation.scores import largest_energy
from dashi.flow.grid import Floats
from dashi.flow.proxy.galerkin._model import GalerkinModel
from dashi.flow.proxy.galerkin._operator import modes_of
from dashi.flow.proxy.states import encoded, with_updated_scalars
from dashi.flow.windows.simulated import simulated_steps, windows_of
from dashi.kernels.portable import canon
from dashi.lab._job import until_interrupted
from dashi.lab.demos._leaving import keep
from dashi.lab.demos._work import STAGES, Work
from dashi.lab.events import Advance
from dashi.runtime._cpu_device import CpuDevice

_PARTS: Final = 8
"""Parts of a fit, for its progress: as many as a Galerkin model tells of."""


class _Parts:
    """The progress of one model, which does not say beforehand how often it will tell."""

    def __init__(self, advance: Advance) -> None:
        self._advance, self._left = advance, _PARTS

    def advance(self, amount: int) -> None:
        step = min(amount, self._left - 1)
        self._left -= step
        self._advance(step)

    def finish(self) -> None:
        self._advance(self._left)


def run_stages(work: Work) -> None:
    """All stages in order. What a stage gave is on the disk before the next one begins."""
    works: tuple[Callable[[Work], None], ...] = (simulate, fit, roll_out, decode, score, check)
    for name, stage in zip(STAGES, works, strict=True):
        stage(work)
        work.finished.append(name)
        keep(work, name)


def simulate(work: Work) -> None:
    """All seeds together; then they part into training, validation and test."""
    s = work.setting
    asked = (s.steps, s.interval, s.windows, s.spin_up_steps)
    total = simulated_steps(s.flow, s.seeds, *asked)
    work.events.remark(f"simulating {len(s.seeds)} seeds of {s.flow.n} x {s.flow.n} points, {total} steps")
    with work.stage("simulate", total, "steps", "sim") as advance:
        windows = windows_of(
            s.flow, s.seeds, device=work.device, steps=s.steps, interval=s.interval, windows=s.windows,
            spin_up=s.spin_up_steps, host_fft=work.device.info.type == "reference", progress=advance,
        )  # fmt: skip
    for name in ("train", "validation", "test"):
        work.results.windows[name] = windows.take(np.isin(windows.seeds, getattr(s, name)))


def fit(work: Work) -> None:
    """All models on the same windows."""
    r, s = work.results, work.setting
    with work.stage("fit", _PARTS * len(s.models), "parts", "learn") as advance:
        for name in s.models:
            parts = _Parts(advance)
            r.models[name] = fit_model(
                name, s.schema, r.windows["train"], r.windows["validation"], device=work.device, progress=parts.advance
            )
            parts.finish()
            keep(work, "fit")
    work.events.remark(f"fitted: {r.models[s.ours].description}")


def roll_out(work: Work) -> None:
    """Our model by itself, from the start of a window that nothing has seen, for twice as long as truth is there.
    On NumPy only the first steps are certified: its portable kernels are slow, and the rest runs another way."""
    r, s = work.results, work.setting
    model, test = r.models[s.ours], r.windows["test"]
    assert isinstance(model, GalerkinModel)
    z0 = encoded(s.schema, test.take([r.shown[1]]), device=work.device)[:, 0]
    frames, every = 2 * (test.frames - 1), model.steps
    r.z0 = canon(modes_of(s.schema, z0))
    r.operator = model.operator("triads")  # not the faster form of this device: the hashes are to be compared
    slow = work.device.info.type == "reference"
    steps = min(s.certified, frames * every) if slow else frames * every
    states: list[Floats] = [r.z0]
    with work.stage("roll out", steps, "steps", "rollout") as advance:
        alone = partial(
            rollout, r.operator, r.z0, steps, device=work.device, hash_every=every, keep_every=every,
            keep=lambda run: states.append(run.state.copy()), progress=advance,
        )  # fmt: skip
        r.run, stopped = until_interrupted(alone)
        if not slow:
            r.z = with_updated_scalars(s.schema, z0, np.stack(states, axis=1))[0]
        if stopped:
            raise KeyboardInterrupt
        if slow:
            r.z = model.rollout(z0, frames, device=work.device)[0]


def decode(work: Work) -> None:
    """Fields of the model's states, and the energies of what the proxy of the truth holds."""
    r, s = work.results, work.setting
    assert r.z is not None
    truth = encoded(s.schema, r.windows["test"].take(list(r.shown)), device=work.device)
    past_and_now = truth.reshape(-1, s.schema.size)
    fields, energies, proxies = list[Floats](), list[float](), list[float]()
    with (
        work.stage("decode", len(r.z) + len(past_and_now), "fields", "decode") as advance,
        Decoder(s.schema, work.device) as decoder,
    ):
        for z in r.z:
            snapshot = decoder.decode(z, "snapshots")
            assert snapshot is not None
            assert snapshot.fields is not None
            fields.append(snapshot.fields)
            energies.append(float(snapshot.energy))
            advance(1)
        for z in past_and_now:
            measured = decoder.decode(z, "metrics")
            assert measured is not None
            proxies.append(float(measured.energy))
            advance(1)
        r.decoder = {
            "decode_observer": "snapshots", "decode_dtype": decoder.settings.dtype,
            "decode_residual": decoder.settings.residual, "decode_gate": decoder.settings.gate,
            "decode_snapshots": decoder.snapshots, "decode_bytes_read": decoder.bytes_read,
            "decode_dispatches": decoder.dispatches("snapshots"),
        }  # fmt: skip
    r.fields, r.alone, r.proxy = np.stack(fields), np.array(energies), np.array(proxies)


def score(work: Work) -> None:
    """All models on the unseen seeds, ours on its training data besides."""
    r, s = work.results, work.setting
    train, test = r.windows["train"], r.windows["test"]
    require_disjoint([train, r.windows["validation"]], test)
    largest = largest_energy(train)
    total = len(r.models) * len(test) + len(train)
    with work.stage("score", total, "windows") as advance:
        asked: dict[str, Any] = {"device": work.device, "train_energy": largest, "progress": advance}
        r.test, stopped = until_interrupted(partial(evaluate, r.models, test, split="test", **asked))
        if stopped:
            raise KeyboardInterrupt
        ours = {s.ours: r.models[s.ours]}
        r.train, stopped = until_interrupted(partial(evaluate, ours, train, split="train", **asked))
        if stopped:
            raise KeyboardInterrupt


def check(work: Work) -> None:
    """NumPy repeats the first steps of the certified rollout."""
    r, s = work.results, work.setting
    assert r.run is not None
    assert r.operator is not None
    assert r.z0 is not None
    every = r.run.hashes[0].step
    steps = min(s.checked // every * every, r.run.steps)
    with CpuDevice() as numpy_device, work.stage("check", steps, "steps") as advance:
        again = rollout(r.operator, r.z0, steps, device=numpy_device, hash_every=every, progress=advance)
    pairs = zip(r.run.hashes, again.hashes, strict=False)
    r.differs = next((ours.step for ours, theirs in pairs if ours.digest != theirs.digest), None)
    name = work.device.info.name
    if r.differs is not None:
        r.checked = f"FAILED: other bits on {name} than on NumPy after {r.differs} steps"
    elif work.device.info.type == "reference":
        r.checked = f"same bits in two runs of NumPy over {steps} steps (no other device took part)"
    else:
        r.checked = f"same bits on {name} and NumPy over the first {steps} steps"
