"""What kernels take on a device, beside what they must move and what a peer takes. Wrong results are never timed.

Inputs are made and uploaded once, a kernel is bound once, and a recorded batch of calls is timed on the device's own
clock. Calls run one after the other, as a chain of steps would. A set of arrays that would stay in a cache is rotated
with copies of itself, so that memory is what is measured.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np

from dashi import kernels
from dashi.bench.peers.kernels import TorchPeer
from dashi.bench.workloads import CHECKED, WorkLimit, Workload, fits, host_inputs, smaller, workloads
from dashi.errors import ClosedError, DashiError, DeviceLostError, FeatureError, LimitError, OutOfMemoryError
from dashi.kernels.abi import Kernel, Limits
from dashi.runtime import _stopwatch as stopwatch
from dashi.runtime._bandwidth import TimedProgram, effort_for
from dashi.runtime.array import Array as DeviceArray
from dashi.runtime.conformance import Result, Sample, compare, missing_features
from dashi.runtime.device import Device, Step
from dashi.runtime.info import Barriers
from dashi.types import Cost, HostArray

_CACHED: Final = range(8 << 20, 256 << 20)
"""Bytes of a set of arrays that a large cache (60 MB on an H200) would help. Smaller ones are meant to be small."""
_WHOLE: Final = WorkLimit(64 << 20, 1 << 28)
_SLICE: Final = 1 << 16
_SAMPLED: Final = 1 << 20


@dataclass(frozen=True)
class Peer:
    """What a peer took for the same call: seconds (the median; None where it `failed`), how it was run, and the
    relative L2 distance of its result from ours."""

    name: str
    seconds: float | None
    how: str
    difference: float | None
    failed: str = ""


@dataclass(frozen=True)
class Measurement:
    """One kernel on one case with one tuning. Without `times` it was `skipped` (the device lacks something) or it
    `failed` (an error or a wrong result); `checked` says what was compared with the reference."""

    workload: Workload
    tuning: str | None = None
    times: stopwatch.Times | None = None
    cost: Cost = field(default_factory=Cost)
    sets: int = 1
    checked: str = ""
    skipped: str = ""
    failed: str = ""
    peer: Peer | None = None

    def floor(self, bandwidth: float, flops: float | None = None) -> float:
        """The least seconds that the counted work takes at that bandwidth, and at that rate if it is known."""
        return max(self.cost.bytes / bandwidth, self.cost.flops / flops if flops else 0.0)


def measure(
    device: Device, workload: Workload, tunings: Sequence[str | None] = (None,), peer: TorchPeer | None = None
) -> Iterator[Measurement]:
    """Measures a workload with each tuning (None: the device's choice), on one set of inputs; then the peer."""
    missing = missing_features(device, workload.kernel, workload.variant, case=workload.case)
    if missing:
        yield Measurement(workload, skipped=f"needs {', '.join(missing)}")
        return
    host = host_inputs(workload)
    try:
        bench = _Bench(device, workload, host)
    except (LimitError, OutOfMemoryError) as error:
        yield Measurement(workload, failed=str(error))
        return
    done = [bench.measure(tuning) for tuning in tunings]
    ran = next((m for m in done if m.times is not None), None)
    if peer is not None and ran is not None:
        beside = _beside(peer, workload, host, ran.sets, bench.finish())
        done = [replace(m, peer=beside) if m.times is not None else m for m in done]
    yield from done


class _Bench:
    """A workload on a device: its arrays, and the judge of its results."""

    def __init__(self, device: Device, workload: Workload, host: Sequence[HostArray]) -> None:
        self._device, self._workload, self._host = device, workload, host
        self._arrays = [device.array(values) for values in host]
        self._judge = _Judge(device, workload, host)
        self._step: Step | None = None

    def _bind(self, arrays: Sequence[DeviceArray], out: Sequence[DeviceArray] | None, tuning: str | None) -> Step:
        return self._device.bind(
            self._workload.kernel, *arrays, out=out, tuning=tuning, scratch=None, **self._workload.case.scalars
        )

    def measure(self, tuning: str | None) -> Measurement:
        measurement = Measurement(self._workload, tuning)
        try:
            step = self._step = self._bind(self._arrays, None, tuning)
            measurement = replace(measurement, tuning=step.tuning, cost=step.cost)
            with self._device.program([step]) as program:
                program.run()
                chained = program.barriers + 1 == program.dispatches
            checked, wrong = self._judge.look(step)
            if wrong:
                return replace(measurement, failed=wrong)
            steps, barriers = self._rotated(step, chained)
            times = self._time(steps, barriers)
        except (DeviceLostError, ClosedError):
            raise
        except DashiError as error:
            own = tuning is None or tuning == self._device.tuning_for(self._workload.kernel, self._workload.variant)
            if isinstance(error, (FeatureError, LimitError)) and not own:
                return replace(measurement, skipped=f"does not fit: {error.what}")
            return replace(measurement, failed=str(error))
        return replace(measurement, times=times, sets=len(steps), checked=checked)

    def _rotated(self, step: Step, chained: bool) -> tuple[list[Step], Barriers]:
        """The step, and its like on other memory if its own would stay in a cache; and the barriers between them.

        Calls must not overlap, as those of a peer do not. Where each dispatch of a call waits for the one before
        anyway, a barrier before each does that; otherwise all calls write the same outputs.
        """
        nbytes = sum(a.nbytes for a in (*step.inputs, *step.outputs))
        rotate = self._device.info.is_hardware and self._workload.number is not None and nbytes in _CACHED
        steps = [step]
        for _ in range(-(-_CACHED.stop // nbytes) - 1 if rotate else 0):
            arrays = [self._device.array(values) for values in self._host]
            steps.append(self._bind(arrays, None if chained else step.outputs, step.tuning))
        return steps, "all" if rotate and chained else "auto"

    def _time(self, steps: Sequence[Step], barriers: Barriers) -> stopwatch.Times:
        def prepare(calls: int) -> stopwatch.TimedCalls:
            cycle = [*steps] * (calls // len(steps))
            return TimedProgram(self._device.program(cycle, barriers=barriers, timed=True))

        return stopwatch.measure(prepare, effort_for(self._device), len(steps))

    def finish(self) -> HostArray:
        """The first output of the last call. Frees the arrays."""
        assert self._step is not None
        values = self._step.outputs[0].numpy()
        self._step = None
        self._arrays = []
        return values


class _Judge:
    """Compares results with the NumPy reference: all of them where that is quick, both ends of large elementwise
    ones, else those of a smaller case run with the same tuning. Further tunings on a large case must give the bits of
    the first that was right."""

    def __init__(self, device: Device, workload: Workload, host: Sequence[HostArray]) -> None:
        self._device = device
        self._kernel, self._variant, self._scalars = workload.kernel, workload.variant, workload.case.scalars
        operands = (*workload.kernel.inputs, *workload.kernel.outputs)
        if fits(workload, device.limits, _WHOLE):
            self._how = "all"
        elif workload.kernel.in_place and all(o.shape is None for o in operands):
            self._how, host = "both ends", [_ends(values) for values in host]
        else:
            other = smaller(workload, device.limits, CHECKED)
            self._how, host, self._scalars = f"at {other.shapes}", host_inputs(other), other.case.scalars
        self._sample = Sample(workload.kernel, workload.variant, self._scalars, host)
        self._known: tuple[str, list[bytes]] | None = None

    def look(self, step: Step) -> tuple[str, str]:
        """What was compared, and what is wrong with it if anything is."""
        if self._device.info.type == "reference":
            return "is the reference", ""
        digests = self._digests(step)
        if digests and self._known:
            first, expected = self._known
            return f"same bits as {first}", "" if digests == expected else f"the result differs from that of {first}"
        values = self._rerun(step) if self._how.startswith("at ") else [array.numpy() for array in step.outputs]
        if self._how == "both ends":
            values = [_ends(v) for v in values]
        result = Result(self._kernel.name, self._variant, 0, "", "", ok=True)
        with np.errstate(all="ignore"):
            result = compare(self._kernel, result, values, self._sample.expected)
        if digests and result.ok:
            self._known = (step.tuning or "", digests)
        return self._how, result.message

    def _digests(self, step: Step) -> list[bytes]:
        """Hashes of large results of portable kernels, made on the device: tunings must agree in every bit."""
        hashable = kernels.get("hash_state").dtypes
        if self._how == "all" or not self._kernel.portable or any(a.dtype.name not in hashable for a in step.outputs):
            return []
        return [self._device.run("hash_state", array).numpy().tobytes() for array in step.outputs]

    def _rerun(self, step: Step) -> list[HostArray]:
        arrays = [self._device.array(values) for values in self._sample.inputs]
        like = self._device.bind(self._kernel, *arrays, out=None, tuning=step.tuning, scratch=None, **self._scalars)
        with self._device.program([like]) as program:
            program.run()
        return [array.numpy() for array in like.outputs]


def _ends(values: HostArray) -> HostArray:
    """The first and the last elements; a last axis of pairs, as complex numbers have, stays whole."""
    rows = values.reshape(-1, values.shape[-1] if values.ndim > 1 else 1)
    count = max(1, _SLICE // rows.shape[-1])
    ends = np.concatenate([rows[:count], rows[-count:]])
    return ends if values.ndim > 1 else ends.reshape(-1)


def _beside(peer: TorchPeer, workload: Workload, host: Sequence[HostArray], sets: int, ours: HostArray) -> Peer | None:
    try:
        measured = peer.measure(workload.kernel, host, workload.call(Limits()).scalars, sets)
        peer.close()
    except Exception as error:  # whatever another library raises, our own numbers stand
        return Peer(peer.name, None, "", None, f"{type(error).__name__}: {error}".splitlines()[0])
    if measured is None:
        return None
    return Peer(peer.name, measured.times.median, measured.how, _distance(ours.reshape(-1), measured.result))


def _distance(ours: HostArray, theirs: HostArray) -> float | None:
    """The relative L2 distance, over a sample of large arrays; None where it has no meaning."""
    if ours.size != theirs.size or not ours.size:
        return None
    every = -(-ours.size // _SAMPLED)
    a, b = ours[::every].astype(np.float64), theirs[::every].astype(np.float64)
    with np.errstate(all="ignore"):
        found = float(np.linalg.norm(a - b) / max(float(np.linalg.norm(b)), np.finfo(np.float64).tiny))
    return found if np.isfinite(found) else None


@dataclass(frozen=True)
class Tuned:
    """The tunings of a kernel variant, by name: seconds per case where all could be measured; the best of them."""

    kernel: Kernel
    variant: str
    seconds: Mapping[str, tuple[float, ...]]
    best: str | None
    notes: tuple[str, ...] = ()


def tune(device: Device, kernel: Kernel, variant: str) -> Tuned:
    """Measures every tuning on the kernel's benchmark cases, and remembers the best for this device and driver: the
    one with the least geometric mean of times."""
    missing = missing_features(device, kernel, variant)
    if missing:
        return Tuned(kernel, variant, {}, None, (f"needs {', '.join(missing)}",))
    rows: dict[str, list[Measurement]] = {name: [] for name in kernel.tunings}
    for workload in workloads(kernel, variant, device, "full"):
        for row in measure(device, workload, tuple(kernel.tunings)):
            rows[row.tuning or ""].append(row)
    notes = tuple(f"{name}: {m.skipped or m.failed}" for name, row in rows.items() for m in row if m.times is None)
    whole = {name: tuple(m.times.median for m in row if m.times is not None) for name, row in rows.items()}
    seconds = {name: times for name, times in whole.items() if times and len(times) == len(rows[name])}
    best = min(seconds, key=lambda name: statistics.geometric_mean(seconds[name]), default=None)
    if best is not None:
        device.tunings.put(kernel, variant, best)
    return Tuned(kernel, variant, seconds, best, notes)
