"""Decode as an observer: fields of the z of a run, made behind its steps on the device, while the run goes on.

with Decoder(schema, device) as decoder:
run = dashi.core.rollout(operator, z0, 1000, device=device, observers=[Decodes(decoder, 10, "metrics")])
[decode.decoded.energy for decode in run.records["decodes"]]
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dashi.core.rollouts.observer import Bound, Context, Observer, Values
from dashi.core.rollouts.run import Run
from dashi.errors import InputError, NoResultError, ShapeError
from dashi.flow.decode._beside import WINDOW, DecodeThread
from dashi.flow.decode.decoder import Decoded, Decoder
from dashi.flow.decode.settings import OBSERVERS, one_of
from dashi.runtime.array import Array
from dashi.runtime.device import AnyStep
from dashi.types import HostArray

Snapshot = Callable[[int, Decoded], None]
"""Is given the step and what was decoded after it."""


@dataclass(frozen=True, eq=False)
class DecodeRecord:
    """A decode of the states after a step."""

    step: int
    decoded: Decoded | None
    """What came back; None where nothing was asked for, and where `snapshot` was given it."""
    looking: float
    """Seconds that whoever was given the snapshot took; the run goes on meanwhile."""
    nbytes: int
    """Bytes that came back from the device for it."""


class Decodes(Observer[DecodeRecord]):
    """Decodes the states of a run, which are z (members, D): z0 and those on a stride. What the observer asks for
    (none, metrics, snapshots, visualize) comes back with the block in which it was decoded; it is given to `snapshot`,
    or kept in the records where there is none.

    A decoder of another device, or of another queue of the same one, decodes beside the run: z comes back with its
    block, and a thread decodes it in its turn, calls `snapshot` and fills the records, while the run goes on. Up to
    `window` of them wait; then the run does. The bits are the same."""

    name = "decodes"
    at_start = True
    needs_finite = True
    certified = False

    def __init__(
        self, decoder: Decoder, every: int, observer: str = "metrics", snapshot: Snapshot | None = None, *,
        window: int = WINDOW,
    ) -> None:  # fmt: skip
        if every < 1:
            raise InputError(f"a field after every {every} steps cannot be decoded.", "use 1 or more.")
        if window < 1:
            raise InputError(f"`window=` is {window}.", "use 1 or more states that wait; 3 is the default.")
        one_of("observer", observer, OBSERVERS)
        self.every, self.observer, self.window = every, observer, window
        self.waited = 0.0
        """Seconds that the run waited for the thread that decodes beside it, in the last run that is over."""
        self._decoder, self._snapshot = decoder, snapshot
        self._beside: DecodeThread[DecodeRecord] | None = None
        self._not_counted = 0
        """Bytes that came back before the first decode, to choose colours."""

    def bind(self, context: Context) -> Bound:
        decoder = self._decoder
        self._require_fit(context)
        decoder.restart_residual()
        if self.observer == "visualize":
            before = decoder.bytes_read
            decoder.choose_span(context.states)
            self._not_counted = decoder.bytes_read - before
        if decoder.device is not context.device or decoder.queue:
            return self._bind_beside(context)
        self._beside = None

        def steps(_: Array, after: Array, slots: Sequence[Array]) -> Sequence[AnyStep]:
            return decoder.observed_steps(after, self.observer, slots)

        return Bound(decoder.slots(self.observer), steps, self._take)

    def _bind_beside(self, context: Context) -> Bound:
        """The observer on a run that another device or queue decodes: the states come back, and a thread has them."""
        self._beside = thread = DecodeThread(self._decoded_beside, self.window)

        def steps(_: Array, after: Array, slots: Sequence[Array]) -> Sequence[AnyStep]:
            return [context.device.bind("copy", after, out=slots[0])]

        def take(step: int, values: Values) -> None:
            if values:
                thread.put(step, values[0].copy())

        def close() -> None:
            thread.close()
            self.waited = thread.waited

        return Bound([(context.shape, context.operator.dtype)], steps, take, late=thread.rows, close=close)

    def _decoded_beside(self, step: int, states: HostArray) -> DecodeRecord:
        before = self._decoder.bytes_read - self._not_counted
        self._not_counted = 0
        if self.observer == "none":
            self._decoder.run(states)
            return self._record(step, None, before)
        return self._record(step, self._decoder.decode(states, self.observer), before)

    def measure(self, stepper: Any) -> Values | None:
        return None if self._beside is None else [stepper.states()]

    def wait(self) -> None:
        """Until all states that were handed to the thread beside the run are decoded."""
        if self._beside is not None:
            self._beside.wait()

    def _require_fit(self, context: Context) -> None:
        decoder = self._decoder
        shape, dtype = (decoder.members, decoder.schema.size), decoder.settings.numpy_dtype
        if context.shape[1:] != shape[1:]:
            raise ShapeError(
                f"the operator advances states of shape {context.shape[1:]}, a z of this schema has {shape[1]}.",
                "pass the operator that was fitted to z of this schema.",
            )
        if context.shape != shape:
            raise ShapeError(
                f"the run has {context.shape[0]} states, the decoder takes {shape[0]}.",
                f"make a decoder with members={context.shape[0]}.",
            )
        if context.operator.dtype != dtype:
            raise InputError(
                f"the operator is {context.operator.dtype}, and fields are {dtype}.", "use one element type for both."
            )
        computes = [one.info.type != "null" for one in (context.device, decoder.device)]
        if any(computes) and not all(computes):
            raise NoResultError(
                f"the run is on {context.device.info.name!r}, the decoder on {decoder.device.info.name!r}: one of them "
                "computes nothing.",
                "use the null device for both, or for neither.",
            )

    def _take(self, step: int, values: Values) -> DecodeRecord:
        decoder, before = self._decoder, self._decoder.bytes_read - self._not_counted
        self._not_counted = 0
        decoder.snapshots += 1
        return self._record(step, decoder.decoded(self.observer, values) if values else None, before)

    def _record(self, step: int, decoded: Decoded | None, before: int) -> DecodeRecord:
        """What is kept of a decode, once whoever wants it has it; `before` it so many bytes had come back."""
        began = time.perf_counter()
        if decoded is not None and self._snapshot is not None:
            self._snapshot(step, decoded)
        kept = None if self._snapshot is not None else decoded
        return DecodeRecord(step, kept, time.perf_counter() - began, self._decoder.bytes_read - before)


@dataclass(frozen=True)
class DecodeTotals:
    """What all decodes of a run came to."""

    count: int
    looking: float
    """Seconds that whoever was given the snapshots took."""
    bytes_read: int

    @classmethod
    def of(cls, run: Run) -> DecodeTotals:
        """What `run.records["decodes"]` adds up to."""
        decodes: tuple[DecodeRecord, ...] = run.records.get(Decodes.name, ())
        return cls(len(decodes), sum(one.looking for one in decodes), sum(one.nbytes for one in decodes))


def residual_cost(decoder: Decoder, z: HostArray, truth: HostArray) -> tuple[float, float] | None:
    """Relative L2 errors of the fields decoded from z beside the truth (members, n, n): with the residual, and without
    it. A residual has the right energies and wrong phases, so the first is the larger one."""
    decoded = decoder.decode(z, "snapshots")
    if decoded is None:
        return None
    expected = np.asarray(truth, np.float64)
    size = max(float(np.linalg.norm(expected)), 1e-300)
    low = decoder.pipeline.low.numpy()
    decoder.bytes_read += low.nbytes
    fields = (np.asarray(field, np.float64) for field in (decoded.fields, low))
    errors = [float(np.linalg.norm(field - expected)) / size for field in fields]
    return errors[0], errors[1]
