"""`Decoder`: fields from proxies, recorded once, run for microseconds; the caller says what comes back."""

from __future__ import annotations

import warnings
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Final, Self, cast

import numpy as np

from dashi.core.rollouts.observer import Slot
from dashi.errors import InputError, ShapeError
from dashi.flow.decode import _tables as tables
from dashi.flow.decode._looks import Looks, Pictures, nice_span
from dashi.flow.decode._pipeline import DecodePipeline
from dashi.flow.decode.settings import OBSERVERS, Settings, one_of
from dashi.flow.decode.statistics import Statistics
from dashi.flow.grid import Floats
from dashi.flow.proxy.lowpass import require_z
from dashi.flow.proxy.schema import Schema
from dashi.kernels.portable import canon
from dashi.runtime import _stopwatch as stopwatch
from dashi.runtime.array import Array
from dashi.runtime.device import AnyStep, Device, Program
from dashi.runtime.using import using_device
from dashi.types import HostArray

NOTHING = (
    "nothing is read back with the observer 'none': decode() returns None. Ask for metrics, snapshots or visualize."
)
_REMEMBERED: Final = 16
"""Recordings that are kept: whoever decodes from ever new arrays must not fill the memory."""


@dataclass(frozen=True, eq=False)
class Decoded:
    """What an observer asked for. Arrays have the leading axes of z; what was not asked for is None."""

    observer: str
    energy: Floats
    """(u^2 + v^2) / 2 on average over the box."""
    enstrophy: Floats
    """w^2 / 2."""
    bands: Floats
    """Energy of the low, the mid and the high band, (..., 3): what was achieved."""
    support: Floats
    """The part of the sites where the mask is not 0."""
    signs: Floats
    """Sites that are +1 and -1, (..., 2)."""
    fields: HostArray | None
    """Vorticity, (..., n, n)."""
    mask: HostArray | None
    """-1, 0 and +1 as int8, (..., n, n)."""
    images: HostArray | None
    """Red, green and blue as bytes, (..., n, n, 3)."""
    dtype: str
    residual: str
    bytes_read: int
    """That came back from the device for this."""
    stage_ns: Mapping[str, float] = field(default_factory=dict[str, float])
    """Device time by stage, if `Decoder.calibrate` was called."""


@dataclass(frozen=True, eq=False)
class _Recorded:
    program: Program
    fetch: tuple[Array, ...]
    z: Array


class Decoder:
    """Makes fields of z on a device: `settings`, or the fields of `Settings` by name.

    Everything is recorded once for each observer, the arrays are made once, and states that live on the device
    already are decoded where they are. Statistics are needed for the residual of that name. `span` is the end of the
    scale of colours; unless given, it is that of the first field that is looked at. `queue` is the device's compute
    queue that it runs on; `fft_device` another open device that computes the transforms, for the same bits.
    """

    def __init__(
        self,
        schema: Schema,
        device: Device | str,
        *,
        settings: Settings | None = None,
        members: int = 1,
        statistics: Statistics | None = None,
        span: float | None = None,
        queue: int = 0,
        fft_device: Device | None = None,
        **options: Any,
    ) -> None:
        if members < 1:
            raise InputError(f"{members} members cannot be decoded.", "use 1 or more.")
        self.settings = _settings(settings, options)
        self._opened = ExitStack()
        """Holds a device that was named, and so opened here."""
        device = self._opened.enter_context(using_device(device))
        self.schema, self.device, self.members = schema, device, members
        self.queue = queue
        self.pipeline = DecodePipeline(schema, device, self.settings, members, statistics, fft_device)
        self.stage_ns: Mapping[str, float] = MappingProxyType({})
        self.bytes_read = 0
        """Bytes that came back from the device since this was made."""
        self.snapshots = 0
        self._z = device.empty((members, schema.size), self.settings.numpy_dtype)
        self._out: dict[str, tuple[Array, ...]] = {}
        self._frame = 0
        self._looks: Looks | None = None
        self._pictures: Pictures | None = None
        self._span = span
        self._warned = False
        self._programs: OrderedDict[tuple[str, int], _Recorded] = OrderedDict()

    def decode(self, z: Any, observer: str = "none", *, frame: int = 0) -> Decoded | None:
        """Decodes z: (D,), (members, D), or an array of the device of that shape. `frame` draws another residual.

        Nothing is allocated and nothing is read back for the observer `none`: it returns None, and warns, once.
        """
        one_of("observer", observer, OBSERVERS)
        recorded, lead = self._run(z, observer, frame)
        if observer == "none":
            self._warn()
            return None
        if self.device.info.type == "null":
            return None
        return self.decoded(observer, [recorded.program.fetched(array) for array in recorded.fetch], lead)

    def run(self, z: Any, *, frame: int = 0) -> None:
        """Decodes z as `decode` does, and reads nothing back: `field` and `mask` stay on the device."""
        self._run(z, "none", frame)

    def _run(self, z: Any, observer: str, frame: int) -> tuple[_Recorded, tuple[int, ...]]:
        """What decoded z, and the leading axes of that."""
        self._draw_frame(frame)
        if isinstance(z, Array):
            lead: tuple[int, ...] = (self.members,)
            recorded = self._recorded(observer, self._require_own(z))
            recorded.program.run()
        else:
            # They come with the run, so that nothing else that the device does is waited for.
            states, lead = self._host_states(z)
            if observer == "visualize":
                self.choose_span(states)
            recorded = self._recorded(observer, self._z)
            recorded.program.run(feed={self._z: states})
        self.snapshots += 1
        return recorded, lead

    def steps(self, z: Array) -> list[AnyStep]:
        """The steps that fill `field` and `mask` from z (members, D) on the device, for programs of one's own."""
        return [step for stage in self.pipeline.stages(z).values() for step in stage]

    def slots(self, observer: str) -> list[Slot]:
        """Shape and element type of what comes back of one decode for this observer."""
        one_of("observer", observer, OBSERVERS)
        n, members, dtype = self.schema.n, self.members, self.settings.numpy_dtype
        sums: list[Slot] = [((members, len(tables.LOOKS)), dtype), ((members, 2), np.dtype(np.uint32))]
        images: dict[str, list[Slot]] = {
            "snapshots": [((members, n, n), dtype), ((members, n, n), np.dtype(np.int8))],
            "visualize": [((members * n, n), np.dtype(np.uint32))],
        }
        return [] if observer == "none" else [*sums, *images.get(observer, ())]

    def observed_steps(self, z: Array, observer: str, out: Sequence[Array]) -> list[AnyStep]:
        """The steps that decode z (members, D) and fill arrays of these `slots`, for programs of one's own. The colours
        of pictures need `choose_span` before."""
        field, mask = out[2:] if observer == "snapshots" else (self.field, self.mask)
        steps = [step for stage in self.pipeline.stages(z, field, mask).values() for step in stage]
        if observer != "none":
            steps += self._look().steps(field, mask, out[0], out[1])
        if observer == "visualize":
            assert self._pictures is not None  # choose_span
            steps += self._pictures.steps(field, out[2])
        return steps

    def choose_span(self, z: Any) -> None:
        """Makes the end of the scale of colours that of the field of z, unless one was given or chosen before."""
        if self._pictures is None:
            span = self._span_of(self._on_device(z)) if self._span is None else self._span
            self._pictures = Pictures(self.pipeline, span)

    def restart_residual(self) -> None:
        """Draws the residual of the first frame, as every rollout does."""
        self._draw_frame(0)

    @property
    def field(self) -> Array:
        """Where the field is left, (members, n, n)."""
        return self.pipeline.field

    @property
    def mask(self) -> Array:
        """Where the mask is left, (members, n, n), int8."""
        return self.pipeline.mask

    def dispatches(self, observer: str = "none") -> int:
        """Dispatches of one decode."""
        return self._recorded(observer, self._z).program.dispatches

    def close(self) -> None:
        """Frees the recordings, and closes a device that was given by its name."""
        for recorded in self._programs.values():
            recorded.program.close()
        self._programs.clear()
        self.pipeline.transforms.close()
        self._opened.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _on_device(self, z: Any) -> Array:
        """z on the device."""
        if isinstance(z, Array):
            return self._require_own(z)
        self.device.write(self._z, self._host_states(z)[0])
        return self._z

    def _require_own(self, z: Array) -> Array:
        """z, if it is of this device, and what is decoded here."""
        shape = (self.members, self.schema.size)
        if z.device is not self.device or z.shape != shape or z.dtype.numpy != self.settings.numpy_dtype:
            raise ShapeError(
                f"z is {z!r}; this decoder takes {self.settings.dtype} of shape {shape} of its own device.",
                "make a decoder for it, or pass it as a NumPy array.",
            )
        return z

    def _host_states(self, z: Any) -> tuple[HostArray, tuple[int, ...]]:
        """z as states (members, D), and its leading axes."""
        shape = (self.members, self.schema.size)
        host = require_z(self.schema, z)
        lead = host.shape[:-1]
        if lead not in ((self.members,), () if self.members == 1 else (self.members,)):
            raise ShapeError(
                f"z has shape {host.shape}, this decoder takes {self.members} member(s).",
                f"pass z of shape {shape}, or make a decoder with members={int(np.prod(lead))}.",
            )
        states: Any = canon(np.ascontiguousarray(host.reshape(shape).astype(self.settings.numpy_dtype)))
        return states, lead

    def _draw_frame(self, frame: int) -> None:
        if self.settings.draws and frame != self._frame:
            self.pipeline.keys.write(np.array([self.settings.seed, frame % (1 << 32)], np.uint32))
            self._frame = frame

    def _recorded(self, observer: str, z: Array) -> _Recorded:
        key = (observer, id(z))
        if key not in self._programs:
            while len(self._programs) >= _REMEMBERED:
                self._programs.popitem(last=False)[1].program.close()
            if observer == "visualize":
                self.choose_span(z)
            fetch = self._arrays(observer)
            steps = self.observed_steps(z, observer, fetch)
            feed = [z] if z is self._z else []
            program = self.device.program(steps, label=f"decode {observer}", fetch=fetch, feed=feed, queue=self.queue)
            self._programs[key] = _Recorded(program, fetch, z)
        self._programs.move_to_end(key)
        return self._programs[key]

    def _look(self) -> Looks:
        if self._looks is None:
            self._looks = Looks(self.pipeline)
        return self._looks

    def _arrays(self, observer: str) -> tuple[Array, ...]:
        """The decoder's own arrays for what an observer asks for."""
        if observer not in self._out:
            there = (self.field, self.mask) if observer == "snapshots" else ()
            slots = self.slots(observer)
            arrays = [self.device.empty(shape, dtype) for shape, dtype in slots[: len(slots) - len(there)]]
            self._out[observer] = (*arrays, *there)
        return self._out[observer]

    def _span_of(self, z: Array) -> float:
        extremes = self.device.empty((4,), self.settings.numpy_dtype)
        steps = [*self.steps(z), self.device.bind("reduce_statistics", self.field, out=extremes)]
        with self.device.program(steps, label="decode span", fetch=[extremes], queue=self.queue) as program:
            program.run()
            if self.device.info.type == "null":
                return 1.0
            least, most, *_ = program.fetched(extremes).tolist()
            self.bytes_read += extremes.nbytes
            return nice_span(least, most)

    def decoded(self, observer: str, values: Sequence[HostArray], lead: tuple[int, ...] | None = None) -> Decoded:
        """What came back of the `slots` of one decode; `lead` are the leading axes of z, (members,)."""
        lead = (self.members,) if lead is None else lead
        read = sum(value.nbytes for value in values)
        self.bytes_read += read
        sums, counts, *rest = values
        n = self.schema.n
        wide = sums.astype(np.float64).reshape(*lead, len(tables.LOOKS))
        signs = counts.astype(np.int64).reshape(*lead, 2)
        fields = rest[0].reshape(*lead, n, n) if observer == "snapshots" else None
        mask = rest[1].reshape(*lead, n, n) if observer == "snapshots" else None
        images = None
        if observer == "visualize" and self._pictures is not None:
            images = self._pictures.pictures(rest[0]).reshape(*lead, n, n, 3)
        return Decoded(
            observer, wide[..., 0], wide[..., 1], wide[..., 2:], signs.sum(axis=-1) / (n * n), signs, fields, mask,
            images, self.settings.dtype, self.settings.residual, read, self.stage_ns,
        )  # fmt: skip

    def _warn(self) -> None:
        if not self._warned:
            self._warned = True
            warnings.warn(NOTHING, stacklevel=3)

    def calibrate(self, repeats: int = 8) -> Mapping[str, float]:
        """Measures every stage by itself, on the device's own clock where there is one: nanoseconds by stage, and
        `decode` for all of them together. What decode() runs stays as it is: it is never timed."""
        stages = self.pipeline.stages(self._z)
        groups = {**stages, "decode": [step for steps in stages.values() for step in steps]}
        if self.device.info.is_hardware:
            with self.device.program(groups["decode"] * repeats, label="warming", queue=self.queue) as program:
                stopwatch.warm(program.run, stopwatch.HARDWARE.warm)
        self.stage_ns = MappingProxyType({name: self._timed(steps, repeats) for name, steps in groups.items()})
        return self.stage_ns

    def _timed(self, steps: list[AnyStep], repeats: int) -> float:
        took: list[float] = []
        with self.device.program(steps * repeats, label="decode stage", timed=True, queue=self.queue) as program:
            for _ in range(4):
                timing = program.run_timed()
                took.append((timing.wall if timing.device is None else timing.device) / repeats)
        return min(took[1:])


def _settings(settings: Settings | None, options: Mapping[str, Any]) -> Settings:
    if settings is not None and options:
        raise InputError(f"settings were given, and {next(iter(options))} besides.", "give one or the other.")
    try:
        return settings or Settings(**cast("Any", options))
    except TypeError as error:
        known = ", ".join(Settings.__dataclass_fields__)
        raise InputError(f"a decode has no such setting: {error}.", f"use {known}.") from error
