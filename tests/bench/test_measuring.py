"""Right results are timed, on a warm device, from memory and not from its cache."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from dashi import kernels
from dashi.bench import kernels as kernelbench
from dashi.bench.kernels import Measurement, measure
from dashi.bench.workloads import WorkLimit, Workload
from dashi.errors import LimitError
from dashi.kernels.abi import Call, Case, Kernel, Plan
from dashi.runtime import _bandwidth as bandwidth
from dashi.runtime import _stopwatch as stopwatch
from dashi.runtime._cpu_device import CpuDevice, CpuProgram
from dashi.runtime._vulkan_device import VulkanDevice
from dashi.runtime.device import Device, Program, Step
from dashi.runtime.info import Heap
from dashi.types import Cost


class Clock:
    """Batches that take as long as they are told; the first `cold` runs take five times that."""

    def __init__(self, each: int, cold: int = 0) -> None:
        self.each, self.cold, self.open = each, cold, 0
        self.ran = list[int]()

    def prepare(self, calls: int) -> stopwatch.TimedCalls:
        clock = self

        class Made:
            def run(self) -> int:
                clock.ran.append(calls)
                return clock.each * calls * (5 if len(clock.ran) <= clock.cold else 1)

            def close(self) -> None:
                clock.open -= 1

        self.open += 1
        return Made()


def test_batches_are_long_enough_even_if_the_first_were_slow() -> None:
    effort = stopwatch.Effort(batch=1_000_000, warm=0, total=10_000_000, runs=7)
    clock = Clock(1000, cold=2)
    times = stopwatch.measure(clock.prepare, effort, multiple=3)
    assert times.median == times.least == pytest.approx(1e-6)
    assert times.calls * 1000 >= 1_000_000
    assert all(calls % 3 == 0 for calls in clock.ran)
    assert (times.runs, clock.open) == (7, 0)


def test_long_calls_are_not_repeated_for_ever() -> None:
    effort = stopwatch.Effort(batch=1_000_000, warm=0, total=10_000_000, runs=7)
    times = stopwatch.measure(Clock(8_000_000).prepare, effort)
    assert (times.calls, times.runs) == (1, 2)


def test_a_device_works_for_as_long_as_was_asked_before_it_is_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    now = iter(range(0, 1000, 100))
    monkeypatch.setattr(stopwatch.time, "perf_counter_ns", lambda: next(now))
    ran = iter(range(10))
    assert stopwatch.warm(lambda: next(ran), 250) == 2
    assert stopwatch.HARDWARE.warm >= 400_000_000  # an H200's clock is up after 0.2 to 0.3 s


class Changed(CpuDevice):
    """A device that computes right, then flips a bit of the results for which `spoils` says so."""

    def __init__(self) -> None:
        super().__init__()
        self.info = replace(self.info, type="other")
        self.bound = list[tuple[str, int, str | None]]()

    def spoils(self, step: Step) -> bool:
        return True

    def bind(self, kernel: Any, *inputs: Any, **options: Any) -> Step:
        step = super().bind(kernel, *inputs, **options)
        self.bound.append((step.kernel.name, inputs[0].size, step.tuning))
        return step

    def program(self, steps: Any, **options: Any) -> Program:
        spoils = self.spoils

        class Spoiling(CpuProgram):
            def compute(self) -> None:
                super().compute()
                for step in self.steps:
                    assert isinstance(step, Step)
                    if spoils(step):
                        step.outputs[0].storage[-1] ^= 1

        return Spoiling(self, steps, "")


class SpoilsB(Changed):
    def spoils(self, step: Step) -> bool:
        return step.tuning == "b"


class SpoilsNothing(Changed):
    def spoils(self, step: Step) -> bool:
        return False


def workload(kernel: Kernel) -> Workload:
    return Workload(kernel, kernel.dtypes[0], kernel.cases[-1], None)


def test_wrong_results_are_not_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernelbench, "_WHOLE", WorkLimit(4 << 20, 1 << 40))
    large = replace(kernels.get("add"), cases=(Case(dict.fromkeys("xy", (1 << 20,))),))
    with Changed() as device:
        (whole,) = measure(device, workload(kernels.get("reduce_sum")))
        (ends,) = measure(device, workload(large))
    assert whole.times is None
    assert whole.failed.startswith("result[0] is ")
    assert ends.times is None
    assert ends.failed.endswith("; 1 of 131072 elements differ")


@pytest.mark.parametrize("kind", [SpoilsNothing, SpoilsB])
def test_large_results_are_checked_by_a_smaller_case_and_by_the_bits_of_the_first_tuning(
    kind: type[Changed], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kernelbench, "_WHOLE", WorkLimit(1 << 20, 1 << 40))
    monkeypatch.setattr(kernelbench, "CHECKED", WorkLimit(1 << 16, 1 << 40))
    total = kernels.get("reduce_sum")

    def plan(call: Call) -> Plan:
        return total.plan(replace(call, tuning=next(iter(total.tunings.values()), {})))

    asked = replace(total, cases=(Case({"x": (1 << 19,)}),), tunings={"a": {}, "b": {}}, prefer=None, plan=plan)
    with kind() as device:
        first, second = measure(device, workload(asked), ("a", "b"))
    sizes = [size for name, size, tuning in device.bound if (name, tuning) == ("reduce_sum", "a")]
    assert (sizes[0], len(sizes)) == (1 << 19, 2)
    assert sizes[1] < 1 << 15
    assert first.times is not None
    assert first.checked == f"at x[{sizes[1]}]"
    if kind is SpoilsB:
        assert (second.times, second.failed) == (None, "the result differs from that of a")
    else:
        assert second.times is not None
        assert second.checked == "same bits as a"


def test_missing_features_are_a_reason_to_skip() -> None:
    with CpuDevice() as device:
        device.info = replace(device.info, features=frozenset())
        (found,) = measure(device, Workload(kernels.get("add"), "f64", kernels.get("add").cases[0], None))
    assert (found.times, found.skipped) == (None, "needs fp64, int64")


def test_a_limit_fails_what_the_device_chose_and_skips_what_it_did_not(twice: Kernel) -> None:
    def refuse(call: Call) -> Plan:
        raise LimitError("it is too much.", "do less.")

    with CpuDevice() as device:
        (own,) = measure(device, workload(replace(twice, plan=refuse)))
        (other,) = measure(device, workload(replace(twice, plan=refuse)), ("wide",))
    assert own.failed == "it is too much. Fix: do less."
    assert other.skipped == "does not fit: it is too much."


def test_a_floor_is_the_bytes_at_the_bandwidth_or_the_operations_at_the_rate(twice: Kernel) -> None:
    found = Measurement(workload(twice), cost=Cost(flops=1000, bytes=500))
    assert found.floor(1e3) == 0.5
    assert found.floor(1e3, 1e3) == 1.0


def test_bandwidth_is_measured_on_every_device_that_computes(device: Device) -> None:
    measurement = bandwidth.measure(device)
    assert measurement.nbytes == min(64 << 20, device.limits.storage_range)
    # From a slow machine under load to more than any device has.
    assert 1e7 < measurement.copy < 1e14
    assert 1e7 < measurement.scale < 1e14
    assert measurement.best == max(measurement.copy, measurement.scale)


def test_measurements_name_their_tuning_and_what_was_checked(built: Kernel, bare_vulkan: VulkanDevice) -> None:
    measurements = list(measure(bare_vulkan, Workload(built, "f32", built.bench[1], 1), tuple(built.tunings)))
    assert [m.tuning for m in measurements] == ["narrow", "wide", "huge"]
    assert [m.checked for m in measurements] == ["all", "all", ""]
    assert measurements[2].skipped.startswith("does not fit: ")
    for m in measurements[:2]:
        assert m.times is not None
        assert 0 < m.times.least <= m.times.median < 1
        assert m.cost == Cost(1 << 12, 8 << 12, 1)


class Recording(CpuDevice):
    """Hardware, as far as one can tell; notes what is recorded: input sets, barriers, output sets."""

    def __init__(self, barriers: int) -> None:
        super().__init__()
        self.info = replace(self.info, type="discrete", heaps=(Heap(1 << 30, True),))
        self.placed, self.recorded = barriers, list[tuple[int, str, int]]()

    def program(self, steps: Any, *, barriers: Any = "auto", **options: Any) -> Program:
        result = CpuProgram(self, steps, "")
        result.dispatches, result.barriers = 2, self.placed
        inputs, outputs = {id(s.inputs[0]) for s in steps}, {id(s.outputs[0]) for s in steps}
        self.recorded.append((len(inputs), barriers, len(outputs)))
        return result


@pytest.mark.parametrize(("placed", "barriers", "outputs"), [(1, "all", 4), (0, "auto", 1)])
def test_sets_that_fit_a_cache_are_rotated_and_calls_do_not_overlap(
    placed: int, barriers: str, outputs: int, twice: Kernel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stopwatch, "HARDWARE", stopwatch.Effort(batch=1, warm=0, total=1, runs=2))
    monkeypatch.setattr(kernelbench, "_CACHED", range(1 << 14, 1 << 17))
    with Recording(placed) as device:
        (measurement,) = measure(device, Workload(twice, "f32", twice.bench[1], 1))
        assert device.recorded[-1] == (4, barriers, outputs)
        (alone,) = measure(device, Workload(twice, "f32", twice.bench[1], None))
        assert device.recorded[-1] == (1, "auto", 1)
    assert (measurement.sets, alone.sets) == (4, 1)
    assert measurement.times is not None
    assert measurement.times.calls % 4 == 0
