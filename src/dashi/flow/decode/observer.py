"""Decode as an observer: fields of the z of a run, made behind its steps on the device, while the run goes on.

with Decoder(schema, device) as decoder:
run = dashi.core.rollout(operator, z0, 1000, device=device, observers=[Decodes(decoder, 10, "metrics")])
[decode.decoded.energy for decode in run.records["decodes"]]
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from dashi.core.rollouts.observer import Bound, Context, Observer, Values
from dashi.core.rollouts.run import Run
from dashi.errors import InputError, ShapeError
from dashi.flow.decode.decoder import Decoded, Decoder
from dashi.flow.decode.settings import OBSERVERS, one_of
from dashi.runtime.array import Array
from dashi.runtime.device import Step
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
    or kept in the records where there is none."""

    name = "decodes"
    at_start = True
    needs_finite = True
    certified = False

    def __init__(
        self, decoder: Decoder, every: int, observer: str = "metrics", snapshot: Snapshot | None = None
    ) -> None:
        if every < 1:
            raise InputError(f"a field after every {every} steps cannot be decoded.", "use 1 or more.")
        one_of("observer", observer, OBSERVERS)
        self.every, self.observer = every, observer
        self._decoder, self._snapshot = decoder, snapshot
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

        def steps(_: Array, after: Array, slots: Sequence[Array]) -> Sequence[Step]:
            return decoder.observed_steps(after, self.observer, slots)

        return Bound(decoder.slots(self.observer), steps, self._take)

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
        if context.device is not decoder.device:
            raise InputError(
                f"the run is on {context.device.info.name!r}, the decoder on {decoder.device.info.name!r}.",
                "make the decoder with the open device that the run is given.",
            )

    def _take(self, step: int, values: Values) -> DecodeRecord:
        decoder, before = self._decoder, self._decoder.bytes_read - self._not_counted
        self._not_counted = 0
        decoder.snapshots += 1
        decoded = decoder.decoded(self.observer, values) if values else None
        began = time.perf_counter()
        if decoded is not None and self._snapshot is not None:
            self._snapshot(step, decoded)
        kept = None if self._snapshot is not None else decoded
        return DecodeRecord(step, kept, time.perf_counter() - began, decoder.bytes_read - before)


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
