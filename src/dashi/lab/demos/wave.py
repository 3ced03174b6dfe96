"""A demonstration of one rollout: a wave in a ring, its hashes verified against NumPy, a picture and a summary."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np

from dashi.core.certificates._certificate import write_certificate
from dashi.core.certificates._certify import certify
from dashi.core.certificates.inputs import save_inputs
from dashi.core.operators.affine import Linear
from dashi.core.rollouts.rollout import rollout
from dashi.core.rollouts.run import Run
from dashi.errors import InputError, Interrupted
from dashi.io._files import write_text
from dashi.io._run_names import CERTIFICATE, INPUTS, PICTURE, SUMMARY
from dashi.lab._arguments import require_request
from dashi.lab._job import AnyPath, Request, interrupted_with, uninterruptible, until_interrupted
from dashi.lab.demos._folder import begin_demo
from dashi.lab.events import SILENT, Events
from dashi.report._wave import draw_wave
from dashi.runtime._cpu_device import CpuDevice
from dashi.runtime._notebook import html_facts
from dashi.runtime.device import Device
from dashi.runtime.info import DeviceInfo
from dashi.types import HostArray

DIMENSION: Final = 128
STEPS: Final = 5_000
CHUNK: Final = 100
"""Steps after which the state is hashed."""

TRACE: Final = 384
"""Steps whose states are kept for the picture."""


@dataclass(frozen=True, eq=False)
class Track:
    """What a rollout leaves behind; `states` and `norms` only where they were asked for."""

    run: Run
    operator: Linear
    states: HostArray
    norms: tuple[float, ...]
    interrupted: bool
    """Whether Ctrl-C came, though perhaps too late to leave a step out."""

    @property
    def us_per_step(self) -> float:
        return self.run.seconds / max(1, self.run.steps) * 1e6

    @property
    def stopped(self) -> bool:
        """Whether nothing more is to be done."""
        return self.run.stopped or self.interrupted


def operator(n: int) -> HostArray:
    """An orthogonal matrix, rounded to fp32: a wave in a ring of n sites.

    Every pair (0, 1), (2, 3), ... is rotated by the angle whose cosine is 3/5, then every pair (1, 2), ... (n-1, 0).
    Only products and sums of doubles make it, so it has the same bits on every machine.
    """
    matrix = np.eye(n)
    for first in (0, 1):
        left, right = np.arange(first, n, 2), np.arange(first + 1, n + 1, 2) % n
        a, b = matrix[:, left].copy(), matrix[:, right].copy()
        matrix[:, left] = 0.6 * a - 0.8 * b
        matrix[:, right] = 0.8 * a + 0.6 * b
    return matrix.astype(np.float32)


def start(n: int) -> HostArray:
    """Two smooth bumps of different widths."""
    site = np.arange(n, dtype=np.float64)
    wide, narrow = (site - n // 4) / 6.0, (site - 2 * n // 3) / 2.5
    return (1.0 / (1.0 + wide * wide) ** 2 - 0.6 / (1.0 + narrow * narrow) ** 2).astype(np.float32)


def roll_out(device: Device, n: int, steps: int, advance: Callable[[int], None], *, keep: bool = False) -> Track:
    """Steps of z' = z A; the state is hashed after every CHUNK steps. Ctrl-C ends it, and what was finished is kept."""
    wave, z0 = Linear(operator(n)), start(n)
    norms: list[float] = []
    states: list[Any] = [z0]
    if keep:
        # The picture shows single steps; they are computed apart, outside the measured run.
        count = min(steps, TRACE)
        rollout(wave, z0, count, device=device, keep_every=1, keep=lambda run: states.append(run.state[0]))
    # Makes the pipelines, which is not measured.
    rollout(wave, z0, min(steps, CHUNK), device=device, hash_every=CHUNK)
    work = partial(
        rollout,
        wave,
        z0,
        steps,
        device=device,
        hash_every=CHUNK,
        keep_every=CHUNK if keep else 0,
        keep=lambda run: norms.append(_norm(run.state)),
        progress=advance,
    )
    run, interrupted = until_interrupted(work)
    return Track(run, wave, np.array(states), tuple(norms), interrupted)


def _norm(values: HostArray) -> float:
    wide = values.astype(np.float64)
    return float(np.sqrt(np.sum(wide * wide)))


@dataclass(frozen=True, kw_only=True)
class WaveRequest(Request):
    """Steps of z' = z A, dimension 128, in fp32."""

    steps: int = STEPS


@dataclass(frozen=True, eq=False)
class WaveResult:
    """What the demonstration leaves."""

    run: Run
    """On the device, as far as it came."""
    summary: Mapping[str, Any]
    """What the folder keeps as summary.json."""
    folder: Path

    @property
    def same(self) -> bool:
        """Whether NumPy gave no other hash than the device, as far as both went."""
        return self.summary["first_difference"] is None

    def __repr__(self) -> str:
        return f"<WaveResult: {self.folder}, {self.run.steps} steps, {self.summary['verified']}>"

    def _repr_html_(self) -> str:
        names = ("steps", "dimension", "us_per_step", "numpy_us_per_step", "hash", "verified")
        return html_facts(f"Rollout in {self.folder}", [(name, self.summary[name]) for name in names])


@interrupted_with(WaveResult)
def demo_wave(
    request: WaveRequest | None = None,
    *,
    device: str | Device = "auto",
    out: AnyPath = "runs/demo-rollout",
    overwrite: bool = False,
    events: Events = SILENT,
) -> WaveResult:
    """Rolls out z' = z A on a device, verifies its bits against NumPy, and draws it.

    A is a wave operator of dimension 128 in fp32: rotations by the 3-4-5 angle of neighbouring sites. Every hundred
    steps the state is hashed on the device; NumPy must give the same hashes. Writes summary.json, the inputs, a
    certificate for `verify` and, with the extra `plot`, state.png. Ctrl-C raises `Interrupted` and keeps what was
    finished.
    """
    asked = request or WaveRequest()
    require_request(asked, WaveRequest)
    steps = asked.steps
    settings, words = {"form": "--rollout", "steps": steps}, ("--rollout", "--steps", str(steps))
    begun = begin_demo(asked, settings, words, device=device, out=out, overwrite=overwrite, events=events)
    with begun.job.place() as placed:
        info = placed.device.info
        with begun.open_folder(placed) as folder:
            events.remark(f"rolling out {steps} steps of dimension {DIMENSION} on {info.name}")
            with events.progress("device", steps, "steps") as advance:
                track = roll_out(placed.device, DIMENSION, steps, advance)
            summary = _keep(folder, info, track, None)
            if info.type != "null" and not track.stopped:
                events.remark("computing the same on NumPy")
                with CpuDevice() as numpy_device, events.progress("NumPy", steps, "steps") as advance:
                    reference = roll_out(numpy_device, DIMENSION, steps, advance, keep=True)
                summary = _keep(folder, info, track, reference)
                if not reference.stopped:
                    _draw(folder, reference, summary, events)
                    summary = _keep(folder, info, track, reference)
            if summary["stopped"]:
                raise Interrupted(WaveResult(track.run, summary, folder))
    return WaveResult(track.run, summary, begun.place)


def _keep(folder: Path, info: DeviceInfo, track: Track, reference: Track | None) -> dict[str, Any]:
    """Writes the inputs, the certificate and the summary of what is finished so far; the summary."""
    with uninterruptible():
        summary = _summary(info, track, reference)
        _certify(folder, info, track)
        summary["files"] = sorted({*(path.name for path in folder.iterdir() if path.name[0] != "."), SUMMARY})
        write_text(folder / SUMMARY, json.dumps(summary, indent=2) + "\n")
    return summary


def _first_difference(track: Track, reference: Track) -> int | None:
    """The step after which the hashes first differ, as far as both went."""
    pairs = zip(track.run.hashes, reference.run.hashes, strict=False)
    return next((ours.step for ours, theirs in pairs if ours.digest != theirs.digest), None)


def _verdict(info: DeviceInfo, track: Track, reference: Track | None, differs: int | None) -> str:
    if reference is None and track.run.stopped:
        return f"nothing: stopped after {track.run.steps} steps"
    if reference is None:
        return "nothing: null computes nothing" if info.type == "null" else "nothing yet: NumPy has not repeated it"
    if differs is not None:
        return f"FAILED: other bits on {info.name} than on NumPy after {differs} steps"
    if info.type == "reference":
        return "same bits in two runs of NumPy (no other device took part)"
    part = f" in the first {reference.run.steps} steps (stopped there)" if reference.run.stopped else ""
    return f"same bits on {info.name} and NumPy{part}"


def _summary(info: DeviceInfo, track: Track, reference: Track | None) -> dict[str, Any]:
    differs = _first_difference(track, reference) if reference else None
    hashes = track.run.hashes
    return {
        "schema": 1,
        "device": {"spec": info.spec, "name": info.name, "type": info.type, "driver": info.driver_info or info.driver},
        "dimension": DIMENSION,
        "steps": track.run.steps,
        "us_per_step": round(track.us_per_step, 3),
        "numpy_us_per_step": round(reference.us_per_step, 3) if reference else None,
        "hash": hashes[-1].digest if hashes else None,
        "hashes": [{"step": h.step, "hash": h.digest} for h in hashes],
        "verified": _verdict(info, track, reference, differs),
        "first_difference": differs,
        "stopped": track.stopped or (reference is not None and reference.stopped),
        "finished": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
    }


def _certify(folder: Path, info: DeviceInfo, track: Track) -> None:
    """The inputs, and the certificate of what was hashed."""
    sources = save_inputs(folder / INPUTS, track.operator, start(DIMENSION))
    run = track.run
    if not run.hashes or run.hashes[-1].step != run.steps:
        return
    write_certificate(folder / CERTIFICATE, certify(run, folder / CERTIFICATE, sources))


def _draw(folder: Path, reference: Track, summary: dict[str, Any], events: Events) -> None:
    try:
        draw_wave(folder / PICTURE, reference.states, reference.norms, CHUNK, summary)
    except InputError as error:
        events.remark(f"no picture: {error}")
