"""What Fourier transforms take on a device's own clock, everything resident; checked first."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from dashi import kernels
from dashi.bench.results import markdown_page
from dashi.errors import LimitError
from dashi.fft._composed import require_line
from dashi.fft.plans import Kind, Plan, plan
from dashi.kernels.fft._roots import is_length
from dashi.runtime import _stopwatch as stopwatch
from dashi.runtime._cpu_device import CpuDevice
from dashi.runtime.device import Device, Program
from dashi.types import HostArray

if TYPE_CHECKING:
    from dashi.bench.peers.fft import TorchFft

REPEATS: Final = 20
"""Transforms of a program, one after the other."""
ROUNDS: Final = 7
DEVICE_CLASS: Final = "device class"
FAST_BOUND: Final = 2e-6
"""The largest relative L2 difference of the device class from the portable result: some roundings of both."""


@dataclass(frozen=True)
class TransformCase:
    """Square fields of n by n, so many of them."""

    kind: Kind
    n: int
    dtype: str = "float32"
    batch: int = 1

    @property
    def name(self) -> str:
        many = f"{self.batch} x " if self.batch > 1 else ""
        return f"{self.kind} {many}{self.n}^2, {'fp64' if self.dtype == 'float64' else 'fp32'}"

    @property
    def shape(self) -> tuple[int, ...]:
        return (self.batch, self.n, self.n)

    def values(self, shape: tuple[int, ...]) -> HostArray:
        """Random values of the plan's source."""
        return np.random.default_rng(self.n).standard_normal(shape, dtype=np.dtype(self.dtype).type)


FIELDS: Final = tuple(TransformCase("fft2", n) for n in (1024, 2048, 4096))
"""Complex fields, whose time is that of memory."""
CASES: Final = (
    *FIELDS,
    *(TransformCase(kind, n) for n in (128, 256, 1024, 2048) for kind in ("rfft2", "irfft2")),
    TransformCase("fft2", 1024, "float64"),
    TransformCase("fft2", 64, batch=1024),
    TransformCase("fft2", 960),
)


@dataclass(frozen=True)
class Time:
    """Microseconds of one transform with one tuning: the median and the least of the rounds; or why there are none."""

    tuning: str
    us: float | None = None
    least_us: float | None = None
    checked: str = ""
    skipped: str = ""


def measure(device: Device, case: TransformCase, tunings: tuple[str | None, ...] = (None,)) -> tuple[Time, ...]:
    """The case with each of the tunings (None: the device's own choice)."""
    planned = plan(device, case.shape, case.kind, dtype=case.dtype)
    values = case.values(planned.source_shape)
    with CpuDevice() as reference:
        expected = plan(reference, case.shape, case.kind, dtype=case.dtype).run(reference.array(values)).numpy()
    return tuple(_timed(device, planned, values, expected, name) for name in tunings)


def measure_fast(device: Device, case: TransformCase) -> Time | None:
    """The case in the device class, where it has one, compared with the portable result first."""
    if case.kind != "fft2" or case.dtype != "float32" or not device.info.is_hardware or not is_length(case.n):
        return None
    planned = plan(device, case.shape, case.kind, portable=False)
    source = device.array(case.values(planned.source_shape))
    target = device.empty(planned.target_shape, planned.dtype)
    steps = planned.steps(source, target)
    expected: Any = plan(device, case.shape, case.kind).run(source).numpy().astype(np.float64)
    with device.program(steps * REPEATS, label="fft2_fast", timed=device.info.timestamp_ns > 0) as program:
        program.run()
        error = float(np.linalg.norm(target.numpy() - expected) / np.linalg.norm(expected))
        if not error <= FAST_BOUND:
            return Time(DEVICE_CLASS, checked=f"WRONG: relative error {error:.1e}")
        taken = _rounds(device, program)
    return Time(DEVICE_CLASS, statistics.median(taken), min(taken), f"relative error {error:.1e}")


def cases_of_lengths(lengths: Sequence[int], dtype: str = "float32") -> tuple[TransformCase, ...]:
    """Complex and real fields of these sides. Raises InputError for what no line can have."""
    for n in lengths:
        require_line(n)
    return tuple(TransformCase(kind, n, dtype) for n in lengths for kind in ("fft2", "rfft2"))


def tunings_of(case: TransformCase) -> tuple[str | None, ...]:
    """Every tuning of the kernel of a case; none where it takes several kernels."""
    if not is_length(case.n):
        return (None,)
    return tuple(kernels.get(case.kind.removeprefix("i") if case.kind == "ifft2" else case.kind).tunings)


def _timed(device: Device, planned: Plan, values: HostArray, expected: HostArray, tuning: str | None) -> Time:
    source, target = device.array(values), device.empty(planned.target_shape, planned.dtype)
    chosen = replace(planned, tuning=tuning)
    try:
        steps = chosen.steps(source, target)
    except LimitError as error:
        return Time(tuning or "", skipped=error.what)
    name = (steps[0].tuning or "") if len(steps) == 1 else f"{len(steps)} kernels"
    with device.program(steps * REPEATS, label=planned.kind, timed=device.info.timestamp_ns > 0) as program:
        program.run()
        if target.numpy().tobytes() != expected.tobytes():
            return Time(name, checked="WRONG: other bits than NumPy")
        taken = _rounds(device, program)
    return Time(name, statistics.median(taken), min(taken), "same bits as NumPy")


def _rounds(device: Device, program: Program) -> list[float]:
    """Microseconds of a transform in each round."""
    if device.info.is_hardware:
        stopwatch.warm(program.run, stopwatch.HARDWARE.warm)
    return [_microseconds(program) for _ in range(ROUNDS)]


def _microseconds(program: Any) -> float:
    timing = program.run_timed()
    return (timing.wall if timing.device is None else timing.device) / 1000 / REPEATS


def floor_bytes(case: TransformCase) -> int:
    """What two passes must move: everything read and written twice."""
    full = case.batch * case.n * case.n * np.dtype(case.dtype).itemsize
    modes = case.batch * case.n * (case.n // 2 + 1) * 2 * np.dtype(case.dtype).itemsize
    return 8 * full if case.kind in ("fft2", "ifft2") else full + 3 * modes


def document(case: TransformCase, times: tuple[Time, ...], peers: dict[str, Any]) -> dict[str, Any]:
    """A row of the results as plain data: microseconds per transform; the best is that of the portable class."""
    timed = [t for t in times if t.us is not None and t.tuning != DEVICE_CLASS]
    best = min(timed, key=lambda t: t.us or 0.0, default=None)
    return {
        "case": case.name,
        "kind": case.kind,
        "n": case.n,
        "batch": case.batch,
        "dtype": case.dtype,
        "bytes": floor_bytes(case),
        "best_tuning": best.tuning if best else None,
        "best_us": best.us if best else None,
        "times": [
            {"tuning": t.tuning, "us": t.us, "least_us": t.least_us, "checked": t.checked, "skipped": t.skipped}
            for t in times
        ],
        "peers_us": peers,
    }


def measured_row(
    device: Device, case: TransformCase, peers: Sequence[TorchFft], tunings: tuple[str | None, ...] = (None,)
) -> dict[str, Any]:
    """A case in both classes, and by the peers, as a row of the results."""
    times = measure(device, case, tunings)
    fast = measure_fast(device, case)
    return document(case, (*times, fast) if fast else times, {p.name: p.us(case) for p in peers})


def has_wrong(rows: Sequence[dict[str, Any]]) -> bool:
    """Whether some result had other bits."""
    return any(t["checked"].startswith("WRONG") for r in rows for t in r["times"])


def cells(rows: Sequence[dict[str, Any]]) -> list[list[str]]:
    """Rows of the results as text; the first line has the headings."""
    peers = list(rows[0]["peers_us"]) if rows else []
    lines = [["case", "tuning", "us", "GB/s", *(f"{p} (us)" for p in peers), "ratio", "checked"]]
    for row in rows:
        theirs = [row["peers_us"][p] for p in peers]
        for time in row["times"]:
            us = time["us"]
            ratio = f"{us / min(theirs):.2f}" if us and theirs else "-"
            rate = f"{row['bytes'] / us / 1000:.0f}" if us else "-"
            took = f"{us:.2f}" if us else "-"
            said = time["checked"] or time["skipped"]
            lines.append([row["case"], time["tuning"], took, rate, *(f"{t:.2f}" for t in theirs), ratio, said])
    return lines


def tables(results: dict[str, Any]) -> list[list[list[str]]]:
    """The tables of the whole document."""
    return [cells(results["rows"])]


def page(results: dict[str, Any]) -> str:
    """The whole document as Markdown."""
    about = (
        "Microseconds per transform, medians on the device's own clock, arrays resident; GB/s counts two passes that",
        "read and write everything once.",
    )
    return markdown_page("Fourier transforms", about, results, tables(results))
