"""A rollout of z with decodes on a stride: steps and decodes on one device, nothing in between comes back."""

from __future__ import annotations

import statistics
import time
import warnings
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from dashi.core.metrics._dispatch_count import counted
from dashi.core.operators.operator import Operator, OperatorFacts
from dashi.core.rollouts._interrupt import deferred_interrupt
from dashi.core.rollouts.observer import Bound, Context, Observer
from dashi.core.rollouts.rollout import rollout
from dashi.core.rollouts.run import Run
from dashi.errors import InputError, Interrupted, NonFiniteError, ShapeError
from dashi.flow._finite import finite_frames
from dashi.flow.decode.decoder import NOTHING, Decoded, Decoder
from dashi.flow.proxy.carried import no_progress
from dashi.flow.proxy.model import Model
from dashi.runtime._cpu_device import cpu_info
from dashi.runtime.array import Array
from dashi.runtime.device import Device
from dashi.types import HostArray

Snapshot = Callable[[int, Decoded], None]
"""Is given the step and what was decoded after it."""
Keep = Callable[[int, HostArray], None]
"""Is given the step and the z after it."""
HOST_REASON: Final = "the model's own rollout, by NumPy on the host: it has no kernels"
PIECE: Final = 64
"""Frames of a model between two chances to stop: few enough for seconds, enough to hide what each piece records anew.
The same whatever is asked for, so that a rollout that goes on from a z has the same pieces."""


@dataclass(frozen=True)
class DecodeRecord:
    """What a decode took and brought back."""

    step: int
    seconds: float
    """With what its observer brought back."""
    looking: float
    """Seconds that whoever was given the snapshot took."""
    nbytes: int


@dataclass(frozen=True, eq=False)
class DecodedRun:
    """A rollout, and what its decodes took and brought back."""

    rollout: Run
    step_seconds: float
    """Seconds of the steps alone."""
    each: tuple[float, ...]
    """Seconds of every decode, with what its observer brought back."""
    looking: float
    """Seconds that whoever was given the snapshots took."""
    bytes_read: int

    @classmethod
    def of(cls, run: Run) -> DecodedRun:
        """What `run.records["decodes"]` says. All decodes but that of z0, and all looks at them but that one, happen
        between the steps of a rollout, whose seconds count them; those of a model with a rollout of its own do not."""
        decodes: tuple[DecodeRecord, ...] = run.records.get(Decodes.name, ())
        between = sum(one.seconds + one.looking for one in decodes[1:]) if run.stride(Decodes.name) else 0.0
        return cls(
            run,
            max(0.0, run.seconds - between),
            tuple(one.seconds for one in decodes),
            sum(one.looking for one in decodes),
            sum(one.nbytes for one in decodes),
        )

    @property
    def snapshots(self) -> int:
        return len(self.each)

    @property
    def decode_seconds(self) -> float:
        """Seconds of all decodes."""
        return sum(self.each)

    @property
    def usual(self) -> float:
        """Seconds of a decode, the median: the first ones are recorded before they run."""
        return statistics.median(self.each) if self.each else 0.0


class Decodes(Observer[DecodeRecord]):
    """Decodes the states of a run where they are, on the device: z0 and those on a stride. What comes back is given to
    `snapshot`; the records say how long that took."""

    name = "decodes"
    at_start = True
    certified = False

    def __init__(self, decoder: Decoder, decode_every: int, observer: str, snapshot: Snapshot | None) -> None:
        if decode_every < 1:
            raise InputError(f"a field after every {decode_every} steps cannot be decoded.", "use 1 or more.")
        self.every = decode_every
        self._decoder, self._observer, self._snapshot = decoder, observer, snapshot

    def bind(self, context: Context) -> Bound:
        if context.shape != (self._decoder.members, self._decoder.schema.size):
            raise ShapeError(
                f"the run has states of shape {context.shape}, the decoder takes "
                f"{(self._decoder.members, self._decoder.schema.size)}.",
                "make a decoder of the schema and the members of the run.",
            )
        return Bound(visit=self.decode)

    def decode(self, step: int, z: Array | HostArray) -> DecodeRecord:
        """Decodes the z of a step."""
        before, began = self._decoder.bytes_read, time.perf_counter()
        decoded = self._decoder.decode(z, self._observer)
        done = time.perf_counter()
        if decoded is not None and self._snapshot is not None:
            self._snapshot(step, decoded)
        read = self._decoder.bytes_read - before
        return DecodeRecord(step, done - began, time.perf_counter() - done, read)


def roll_and_decode(
    operator: Operator,
    z0: HostArray,
    steps: int,
    decoder: Decoder,
    *,
    decode_every: int,
    observer: str,
    snapshot: Snapshot | None = None,
    **options: Any,
) -> DecodedRun:
    """Advances z0 (members, D) by so many steps, and decodes z0 and the states after every `decode_every` steps.

    States are decoded where they are: the rollout leaves them on the device. `options` are those of `core.rollout`.
    The `rollout` of a NonFiniteError is the Run until then (`DecodedRun.of`), the `partial` of Interrupted the
    `DecodedRun`.
    """
    if operator.shape != (decoder.schema.size,):
        raise ShapeError(
            f"the operator advances states of shape {operator.shape}, a z of this schema has {decoder.schema.size}.",
            "pass the operator that was fitted to z of this schema.",
        )
    if operator.dtype != decoder.settings.kind or z0.dtype != operator.dtype:
        raise InputError(
            f"the operator is {operator.dtype}, z0 is {z0.dtype} and fields are {decoder.settings.dtype}.",
            "use one element type for all three.",
        )
    with _silent():
        try:
            decodes = Decodes(decoder, decode_every, observer, snapshot)
            run = rollout(operator, z0, steps, device=decoder.device, observers=[decodes], **options)
        except Interrupted as stop:
            raise Interrupted(DecodedRun.of(stop.partial)) from stop
    return DecodedRun.of(run)


def follow_and_decode(
    model: Model,
    z0: HostArray,
    steps: int,
    decoder: Decoder,
    *,
    decode_every: int,
    observer: str,
    snapshot: Snapshot | None = None,
    keep: Keep | None = None,
    progress: Callable[[int], None] | None = None,
) -> DecodedRun:
    """Decodes along a model of proxies, which has a rollout of its own: it advances z0 by so many of its frames, and
    brings their z to the host, `PIECE` frames at a time. Ctrl-C ends it after the piece that is under way, a second one
    at once: Interrupted, whose `partial` is the run with all that was decoded. `keep` is given the step and the z after
    every piece. Its dispatches are the model's own, those of decodes left out: none are those of a model that runs on
    the host."""
    decodes = Decodes(decoder, decode_every, observer, snapshot)
    followed = _Followed(model, np.ascontiguousarray(z0.astype(decoder.settings.kind)), decoder)
    told = progress or no_progress
    interrupted = False
    with _silent(), deferred_interrupt() as interrupt:
        try:
            followed.decoded(decodes.decode(0, followed.last))
            for first, part in followed.parts(steps):
                good = finite_frames(part)
                for at in (at for at in range(first, first + good) if at % decode_every == 0):
                    followed.decoded(decodes.decode(at, np.ascontiguousarray(part[:, at - first])))
                    followed.note(at, part[:, at - first])
                if good < part.shape[1]:
                    if good:
                        followed.note(first + good - 1, part[:, good - 1])
                    raise followed.not_finite(first + good)
                followed.note(first + good - 1, part[:, -1])
                told(good)
                if keep:
                    keep(followed.at, followed.last)
                if interrupt.asked:
                    break
        except KeyboardInterrupt:
            interrupted = True  # a second Ctrl-C: what was noted is whole
    result = DecodedRun.of(followed.run(stopped=followed.at < steps))
    if interrupted or interrupt.asked:
        raise Interrupted(result)
    return result


class _Followed:
    """A model under way: how far it came, and what it took."""

    def __init__(self, model: Model, z0: HostArray, decoder: Decoder) -> None:
        self._model, self._decoder = model, decoder
        self.at, self.last = 0, z0
        self._seconds, self._dispatches = 0.0, 0
        self._decodes: list[DecodeRecord] = []

    def parts(self, steps: int) -> Generator[tuple[int, HostArray]]:
        """The z of the frames after z0, (m, frames, D) at a time, each with the number of its first frame."""
        device, kind = self._decoder.device, self._decoder.settings.kind
        pieces, first = self._model.advance_by_pieces(self.last, steps, device=device, most=PIECE), 1
        while True:
            began = time.perf_counter()
            with counted(device) as count:
                part = next(pieces, None)
            if part is None:
                return
            with np.errstate(over="ignore"):  # what float32 cannot hold is told as not finite
                made = np.ascontiguousarray(part.astype(kind))
            self._seconds += time.perf_counter() - began
            self._dispatches += count.dispatches
            yield first, made
            first += part.shape[1]

    def note(self, at: int, z: HostArray) -> None:
        """So far everything is whole."""
        self.at, self.last = at, np.ascontiguousarray(z)

    def decoded(self, record: DecodeRecord) -> None:
        """One of its frames was."""
        self._decodes.append(record)

    def run(self, *, stopped: bool) -> Run:
        """The run so far."""
        device, model = self._decoder.device, self._model
        facts = OperatorFacts(model.name, self.last.shape[1:], self.last.dtype, portable=False)
        return Run(
            operator=facts, steps=self.at, state=self.last, records={Decodes.name: tuple(self._decodes)},
            seconds=self._seconds, stopped=stopped,
            reason=_reason(model, device, len(self.last), self._dispatches), dispatches=self._dispatches,
            device=cpu_info() if on_host(device, self._dispatches) else device.info,
        )  # fmt: skip

    def not_finite(self, frame: int) -> NonFiniteError:
        error = NonFiniteError(
            f"the z of the model {self._model.name} is not finite after frame {frame}.",
            "fit it again, with more data; what came before is kept.",
        )
        error.rollout = self.run(stopped=True)
        return error


def _reason(model: Model, device: Device, states: int, dispatches: int) -> str:
    """How a model ran, in its own words where it has some."""
    if on_host(device, dispatches):
        return HOST_REASON
    told = model.explain(device, states)
    return f"the model's own rollout, {told[1]}" if told else "the model's own rollout"


def on_host(device: Device, dispatches: int) -> bool:
    """Whether a model that dispatched so much ran beside the device that was asked for."""
    return not dispatches and device.info.type not in ("reference", "null")


def residual_cost(decoder: Decoder, z: HostArray, truth: HostArray) -> tuple[float, float] | None:
    """Relative L2 errors of the fields decoded from z beside the truth (members, n, n): with the residual, and without
    it. A residual has the right energies and wrong phases, so the first is the larger one."""
    made = decoder.decode(z, "snapshots")
    if made is None:
        return None
    wanted = np.asarray(truth, np.float64)
    size = max(float(np.linalg.norm(wanted)), 1e-300)
    low = decoder.pipeline.low.numpy()
    decoder.bytes_read += low.nbytes
    found = (np.asarray(one, np.float64) for one in (made.fields, low))
    errors = [float(np.linalg.norm(one - wanted)) / size for one in found]
    return errors[0], errors[1]


@contextmanager
def _silent() -> Generator[None]:
    """Without the warning that nothing is read back: whoever calls these functions chose the observer."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=NOTHING.split(":")[0])
        yield
