"""The work of `dashi demo`: simulate, fit, roll out alone, decode, score, certify, and tell."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np

from dashi.cli.demo_folder import OWNER, beside, require_place
from dashi.cli.demo_leave import draw, keep, show
from dashi.cli.demo_results import Results
from dashi.cli.demo_setting import Setting
from dashi.cli.demo_story import command_of
from dashi.cli.output import remark
from dashi.cli.progress import Advance, progress
from dashi.cli.stopping import until_stopped
from dashi.core.metrics.document import Stages
from dashi.core.metrics.placement import Placement, place
from dashi.core.rollouts.rollout import rollout
from dashi.core.traces.queue import watch
from dashi.core.traces.trace import Trace
from dashi.errors import NoResultError
from dashi.flow.decode import Decoder
from dashi.flow.evaluation import evaluate, require_disjoint
from dashi.flow.evaluation.fits import fit_model
from dashi.flow.evaluation.scores import largest_energy
from dashi.flow.grid import Floats
from dashi.flow.proxy.carried import encoded, followed
from dashi.flow.proxy.galerkin import GalerkinModel
from dashi.flow.proxy.galerkin_operator import modes_of
from dashi.flow.simulated import simulated_steps, windows_of
from dashi.kernels.portable import canon
from dashi.runtime.device import Device

STAGES: Final = ("simulate", "fit", "roll out", "decode", "score", "check")
_PARTS: Final = 8
"""Of a fit, for its progress: what a Galerkin model tells of."""


class _Parts:
    """The progress of one model, which does not say beforehand how often it will tell."""

    def __init__(self, advance: Advance) -> None:
        self._advance, self._left = advance, _PARTS

    def told(self, amount: int) -> None:
        step = min(amount, self._left - 1)
        self._left -= step
        self._advance(step)

    def finish(self) -> None:
        self._advance(self._left)


class Job:
    """One call of the command."""

    def __init__(
        self, setting: Setting, device: str, out: Path, *, open_report: bool, json: bool, overwrite: bool = False
    ) -> None:
        self.setting, self.requested, self.out = setting, device, out
        self.owner = replace(OWNER, settings={"form": " ".join(setting.words) or "full"}, overwrite=overwrite)
        self.open_report, self.json = open_report, json
        self.stages, self.trace, self.results = Stages(), Trace(), Results()
        self.began = time.perf_counter()
        self.finished: list[str] = []
        self.summary: dict[str, Any] = {}
        """As it was kept last."""
        self.keep: Callable[[str], None] = lambda stage: None
        """Writes what a stage has finished so far."""

    @property
    def seconds(self) -> float:
        """Since the command began."""
        return round(time.perf_counter() - self.began, 1)

    def do(self) -> None:
        """Everything, from the seeds to what is printed. What a stage gave is on the disk before the next one begins;
        what will be refused is refused before the first."""
        place_of_run = require_place(self.out, self.owner)
        with place(self.requested) as placed:
            if placed.device.info.type == "null":
                raise NoResultError("the null device computes nothing.", "use --device auto, cpu or vulkan:0.")
            self._say_where(placed)
            with beside(place_of_run, command_of(self, placed), self.owner) as folder:
                self.keep = partial(keep, self, placed, folder)
                try:
                    with watch(placed.device, self.trace):
                        self._stages(placed.device)
                    self.keep(STAGES[-1])  # again: now the trace has all that the queue did
                    draw(self, folder, place_of_run)
                except KeyboardInterrupt:
                    self._stop(folder)
                    raise
            show(self, place_of_run)

    def _stages(self, device: Device) -> None:
        works = (self.simulate, self.fit, self.roll_out, self.decode, self.score, self.check)
        for name, work in zip(STAGES, works, strict=True):
            work(device)
            self.finished.append(name)
            self.keep(name)

    def _stop(self, folder: Path) -> None:
        """Keeps what the stage that was stopped has finished, draws what there is, unless that was stopped itself, and
        tells it."""
        if not self.results.windows:
            return
        if self.missing:
            self.keep(self.missing[0])
            draw(self, folder, folder)
        self.summary["stopped"] = True
        show(self, folder)

    @property
    def missing(self) -> tuple[str, ...]:
        """Stages that are not finished."""
        return tuple(name for name in STAGES if name not in self.finished)

    def _say_where(self, placed: Placement) -> None:
        info = placed.device.info
        remark(f"the main job on {info.name} ({info.spec}, {info.type})")
        if info.type == "reference":
            why = "as asked" if self.requested == "cpu" else "since there is no Vulkan device here"
            note = f"All ran on NumPy, {why}, with its own transforms where they are faster."
            self.results.notes.append(note)
            remark(note if self.requested == "cpu" else f"{note} `dashi doctor` says how to get one.")

    @contextmanager
    def stage(self, name: str, total: int, unit: str, clock: str = "") -> Generator[Advance]:
        """A stage: told, traced, with progress, and timed under a name of the metrics where they have one."""
        began = time.perf_counter()
        timed = self.stages.time(clock) if clock else nullcontext()
        with timed, self.trace.stage(name), progress(name, total, unit) as advance:
            yield advance
        remark(f"{name}: {time.perf_counter() - began:.1f} s")

    def simulate(self, device: Device) -> None:
        """All seeds together; then they part into training, validation and test."""
        s = self.setting
        asked = (s.steps, s.interval, s.windows, s.spin_up_steps)
        total = simulated_steps(s.flow, s.seeds, *asked)
        remark(f"simulating {len(s.seeds)} seeds of {s.flow.n} x {s.flow.n} points, {total} steps")
        with self.stage("simulate", total, "steps", "sim") as advance:
            made = windows_of(
                s.flow, s.seeds, device=device, steps=s.steps, interval=s.interval, windows=s.windows,
                spin_up=s.spin_up_steps, host_fft=device.info.type == "reference", progress=advance,
            )  # fmt: skip
        for name in ("train", "validation", "test"):
            self.results.windows[name] = made.take(np.isin(made.seeds, getattr(s, name)))

    def fit(self, device: Device) -> None:
        """All models on the same windows."""
        r, s = self.results, self.setting
        with self.stage("fit", _PARTS * len(s.models), "parts", "learn") as advance:
            for name in s.models:
                parts = _Parts(advance)
                r.models[name] = fit_model(
                    name, s.schema, r.windows["train"], r.windows["validation"], device=device, progress=parts.told
                )
                parts.finish()
                self.keep("fit")
        remark(f"fitted: {r.models[s.ours].story}")

    def roll_out(self, device: Device) -> None:
        """Our model by itself, from the start of a window that nothing has seen, for twice as long as truth is there.
        On NumPy only the first steps are certified: its portable kernels are slow, and the rest runs another way."""
        r, s = self.results, self.setting
        model, test = r.models[s.ours], r.windows["test"]
        assert isinstance(model, GalerkinModel)
        z0 = encoded(s.schema, test.take([r.shown[1]]), device=device)[:, 0]
        frames, every = 2 * (test.frames - 1), model.steps
        r.z0 = canon(modes_of(s.schema, z0))
        r.operator = model.operator("triads")  # not the faster form of this device: the hashes are to be compared
        slow = device.info.type == "reference"
        steps = min(s.certified, frames * every) if slow else frames * every
        kept: list[Floats] = [r.z0]
        with self.stage("roll out", steps, "steps", "rollout") as advance:
            work = partial(
                rollout, r.operator, r.z0, steps, device=device, hash_every=every, keep_every=every,
                keep=lambda run: kept.append(run.state.copy()), progress=advance,
            )  # fmt: skip
            r.run, stopped = until_stopped(work)
            if not slow:
                r.z = followed(s.schema, z0, np.stack(kept, axis=1))[0]
            if stopped:
                raise KeyboardInterrupt
            if slow:
                r.z = model.rollout(z0, frames, device=device)[0]

    def decode(self, device: Device) -> None:
        """Fields of the model's states, and the energies of what the proxy of the truth holds."""
        r, s = self.results, self.setting
        assert r.z is not None
        truth = encoded(s.schema, r.windows["test"].take(list(r.shown)), device=device)
        past_and_now = truth.reshape(-1, s.schema.size)
        fields, energies, proxies = list[Floats](), list[float](), list[float]()
        with (
            self.stage("decode", len(r.z) + len(past_and_now), "fields", "decode") as advance,
            Decoder(s.schema, device) as decoder,
        ):
            for z in r.z:
                seen = decoder.decode(z, "snapshots")
                assert seen is not None
                assert seen.fields is not None
                fields.append(seen.fields)
                energies.append(float(seen.energy))
                advance(1)
            for z in past_and_now:
                looked = decoder.decode(z, "metrics")
                assert looked is not None
                proxies.append(float(looked.energy))
                advance(1)
            r.decoder = {
                "decode_observer": "snapshots", "decode_dtype": decoder.settings.dtype,
                "decode_residual": decoder.settings.residual, "decode_gate": decoder.settings.gate,
                "decode_snapshots": decoder.snapshots, "decode_bytes_read": decoder.bytes_read,
                "decode_dispatches": decoder.dispatches("snapshots"),
            }  # fmt: skip
        r.fields, r.alone, r.proxy = np.stack(fields), np.array(energies), np.array(proxies)

    def score(self, device: Device) -> None:
        """All models on the unseen seeds, ours on its training data besides."""
        r, s = self.results, self.setting
        train, test = r.windows["train"], r.windows["test"]
        require_disjoint([train, r.windows["validation"]], test)
        largest = largest_energy(train)
        total = len(r.models) * len(test) + len(train)
        with self.stage("score", total, "windows") as advance:
            asked: dict[str, Any] = {"device": device, "train_energy": largest, "progress": advance}
            r.test, stopped = until_stopped(partial(evaluate, r.models, test, split="test", **asked))
            if stopped:
                raise KeyboardInterrupt
            ours = {s.ours: r.models[s.ours]}
            r.train, stopped = until_stopped(partial(evaluate, ours, train, split="train", **asked))
            if stopped:
                raise KeyboardInterrupt

    def check(self, device: Device) -> None:
        """NumPy repeats the first steps of the certified rollout."""
        from dashi.runtime.cpu_device import CpuDevice

        r, s = self.results, self.setting
        assert r.run is not None
        assert r.operator is not None
        assert r.z0 is not None
        every = r.run.hashes[0].step
        steps = min(s.checked // every * every, r.run.steps)
        with CpuDevice() as numpy_device, self.stage("check", steps, "steps") as advance:
            again = rollout(r.operator, r.z0, steps, device=numpy_device, hash_every=every, progress=advance)
        pairs = zip(r.run.hashes, again.hashes, strict=False)
        r.differs = next((ours.step for ours, theirs in pairs if ours.digest != theirs.digest), None)
        name = device.info.name
        if r.differs is not None:
            r.checked = f"FAILED: other bits on {name} than on NumPy after {r.differs} steps"
        elif device.info.type == "reference":
            r.checked = f"same bits in two runs of NumPy over {steps} steps (no other device took part)"
        else:
            r.checked = f"same bits on {name} and NumPy over the first {steps} steps"
