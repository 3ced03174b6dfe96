"""How fast devices are: measured, kept with suspicion, and what plans make of it."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest

import dashi
from dashi.errors import InputError
from dashi.runtime._cpu_device import cpu_info
from dashi.stream import Calibration, DeviceSpec, DeviceSpeed, LinkSpec, OpSpec, PayloadSchema, calibrate, predict
from dashi.stream import Field as PayloadField
from dashi.stream import _times as times
from dashi.stream import calibration as calibrating
from dashi.types import Cost


@pytest.fixture(autouse=True)
def empty_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("DASHI_CACHE_DIR", str(tmp_path))
    return tmp_path


def counted(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Measures nothing, and says what it was asked to."""
    asked: list[str] = []

    def measured(device: Any, spec: str = "") -> DeviceSpeed:
        asked.append(spec)
        return DeviceSpeed(spec, device.info.name, 10.0, 5.0, 1e-5)

    monkeypatch.setattr(calibrating, "measure_device", measured)
    return asked


def test_a_device_is_measured_once_and_again_when_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = counted(monkeypatch)
    first = calibrate(["cpu"])
    assert calibrate(["cpu"]).devices == first.devices
    assert asked == ["cpu"]
    calibrate(["cpu"], fresh=True)
    assert asked == ["cpu", "cpu"]
    assert calibrating.cached({"cpu": cpu_info()}).devices == first.devices


@pytest.mark.parametrize(
    "document",
    [
        "[]",
        "{}",
        '{"fp32_gflops": 1e400}',
        "nonsense",
        "[" * 5000,
        '{"fp32_gflops": "10", "mem_bw_gbs": 1, "launch_s": 1}',
    ],
)
def test_what_makes_no_sense_in_the_cache_is_measured_anew(
    document: str, empty_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = counted(monkeypatch)
    calibrate(["cpu"])
    (file,) = (empty_cache / "calibration").iterdir()
    from dashi._cache import write_cache

    write_cache(file, document.encode())
    assert calibrating.cached({"cpu": cpu_info()}).devices == {}
    calibrate(["cpu"])
    assert asked == ["cpu", "cpu"]


def test_negative_and_infinite_speeds_are_not_believed(empty_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    counted(monkeypatch)
    calibrate(["cpu"])
    (file,) = (empty_cache / "calibration").iterdir()
    from dashi._cache import write_cache

    for odd in (0.0, -1.0, math.inf, 1e30):
        write_cache(file, json.dumps({"fp32_gflops": odd, "mem_bw_gbs": 1.0, "launch_s": 1.0}).encode())
        assert calibrating.cached({"cpu": cpu_info()}).devices == {}


def test_what_is_measured_of_numpy_is_a_speed() -> None:
    speed = calibrate(["cpu"]).devices["cpu"]
    assert speed.fp32_gflops > 0.01
    assert speed.mem_bw_gbs > 0.01
    assert 0 < speed.launch_s < 1


def test_links_are_measured_by_whoever_knows_how(monkeypatch: pytest.MonkeyPatch) -> None:
    counted(monkeypatch)
    result = calibrate(["cpu", "vulkan:0"], links=True, measure_link=lambda a, b, nbytes: 1e-4 + nbytes / 1e9)
    assert [(one.source, one.target) for one in result.links.values()] == [("cpu", "vulkan:0"), ("vulkan:0", "cpu")]
    link = result.links["cpu", "vulkan:0"]
    assert link.bandwidth == pytest.approx(1e9, rel=1e-3)
    assert link.latency == pytest.approx(1e-4, rel=1e-3)
    assert result.link_rows()[0] == ("cpu", "vulkan:0", "1", "100")
    assert "<table>" in result._repr_html_()


def test_links_are_kept_and_plans_use_them(monkeypatch: pytest.MonkeyPatch) -> None:
    counted(monkeypatch)
    calibrate(["cpu", "vulkan:0"], links=True, measure_link=lambda a, b, nbytes: 1e-4 + nbytes / 1e9)
    monkeypatch.setattr(calibrating, "link_speed", None)
    assert calibrate(["cpu", "vulkan:0"], links=True).links["cpu", "vulkan:0"].bandwidth == pytest.approx(1e9, rel=1e-3)
    config = dashi.stream.parse(
        "stages: [{id: a, device: cpu, ops: [neg]}, {id: b, device: 'vulkan:0', ops: [abs]}]\nresult: [abs]\n"
        "ops: {neg: {inputs: {x: z}}, abs: {inputs: {x: neg}}}\nsource: {fields: {z: {shape: [25000]}}}"
    )
    (link,) = dashi.stream.make_plan(config).links
    assert link.seconds == pytest.approx(2e-4, rel=1e-2)
    assert link.notes == ("no link was asked for: HOST_STAGING",)


def test_by_default_links_are_measured_by_copies_through_the_host() -> None:
    with dashi.open("cpu") as first, dashi.open("cpu") as second:
        link = calibrating.link_speed(first, second, ("cpu", "cpu"), calibrating.through_host)
    assert link.bandwidth > 1e6


def test_the_null_device_has_no_speed() -> None:
    with pytest.raises(InputError, match=r"the null device computes nothing, so it has no speed\."):
        calibrate(["null"])


DEVICE = DeviceSpec("g", "vulkan:0", fp32_gflops=100.0, mem_bw_gbs=10.0, launch_s=1e-5, host_cores=4)


def test_an_op_takes_the_longer_of_arithmetic_and_memory_and_its_dispatches() -> None:
    op = OpSpec("op")
    assert times.op_seconds(op, Cost(flops=10**9, bytes=10**6, dispatches=2), DEVICE) == pytest.approx(0.01 + 2e-5)
    assert times.op_seconds(op, Cost(flops=10, bytes=10**9, dispatches=1), DEVICE) == pytest.approx(0.1 + 1e-5)
    assert times.core_seconds(op, 0.1, DEVICE) == pytest.approx(0.4)


def test_a_time_that_somebody_gave_counts_instead() -> None:
    op = OpSpec("op", seconds={"g": 0.5, "*": 0.25})
    assert times.op_seconds(op, Cost(10**12), DEVICE) == 0.5
    assert times.op_seconds(op, Cost(10**12), DeviceSpec("h", "cpu")) == 0.25
    assert times.core_seconds(op, 0.5, DEVICE) == 0


def test_codecs_and_links_are_counted() -> None:
    schema = PayloadSchema({"z": PayloadField((1000,)), "s": PayloadField((16384,), "i8")})
    assert times.coded_bytes("none", schema, {}) == 4000 + 16384
    assert times.coded_bytes("bf16", schema, {}) == 2000 + 16384
    # Two planes of 512 words, 32 ranks of blocks and one of a superblock.
    assert times.coded_bytes("planes", schema, {}) == 4000 + 4 * (2 * 512 + 32 + 1)
    assert times.coded_bytes("prune", schema, {"keep": 0.25}) == 250 * 8 + 16384
    assert times.link_seconds(LinkSpec("a", "b", bandwidth=1e6, latency=1e-3), 1000) == pytest.approx(2e-3)
    assert times.link_seconds(LinkSpec("a", "b", seconds=0.5), 10**9) == 0.5


def test_the_prediction_is_the_largest_of_its_terms() -> None:
    stages, links = (0.002, 0.005, 0.001), (0.001, 0.003)
    free, windows = predict(stages, links, (None, None))
    assert (free.period, free.latency, free.bound_by) == (0.005, pytest.approx(0.012), "stage 1")
    # 8 and 9 ms held, 5 ms a period.
    assert windows == (2, 2)
    narrow, windows = predict(stages, links, (1, None))
    assert (narrow.period, narrow.bound_by) == (pytest.approx(0.008), "window 1 of 0->1")
    # The wider period needs fewer slots elsewhere.
    assert windows == (1, 2)
    assert predict(stages, links, (None, None), core_seconds=0.02, cores=2)[0].bound_by == "cores of the host"
    slow, _ = predict((0.001, 0.001), (0.004,), (None,), names=("a", "b"))
    assert (slow.bound_by, slow.period) == ("link a->b", 0.004)


def test_a_window_that_is_chosen_never_rules() -> None:
    for scale in (1e-7, 1.0, 3.7):
        stages, links = tuple(scale * t for t in (0.1, 0.3, 0.2)), tuple(scale * x for x in (0.1, 0.2))
        prediction, windows = predict(stages, links, (None, None))
        again, _ = predict(stages, links, windows)
        assert again.period == pytest.approx(prediction.period, rel=1e-9)
        assert windows == (2, 3)


def test_plans_use_what_is_given_before_what_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = counted(monkeypatch)
    text = "stages: [{id: a, device: mine, ops: [neg]}]\nops: {neg: {inputs: {x: z}}}\n"
    text += "source: {fields: {z: {shape: [1000]}}}\n"
    config = dashi.stream.parse(
        text + "devices: {mine: {spec: cpu, fp32_gflops: 2, mem_bw_gbs: 0.008, launch_s: 1e-3}}"
    )
    known = Calibration({"cpu": DeviceSpeed("cpu", "n", 1.0, 1.0, 0.5)})
    # 8000 bytes at 8 MB/s, and a dispatch of 1 ms: nothing of what is known counts.
    assert dashi.stream.make_plan(config, calibration=known).stages[0].seconds == pytest.approx(0.002)
    assert dashi.stream.make_plan(config).notes == ()
    assert asked == []
    bare = dashi.stream.parse(text + "devices: {mine: cpu}")
    plan = dashi.stream.make_plan(bare)
    assert asked == ["cpu"]
    assert plan.notes == ("measured now: cpu (kept for the next time)",)
    assert dashi.stream.make_plan(bare).notes == ()


def test_a_plan_without_measuring_says_that_it_is_rough() -> None:
    config = dashi.stream.parse(
        "stages: [{id: a, device: cpu, ops: [neg]}]\nops: {neg: {inputs: {x: z}}}\nsource: {fields: {z: {shape: [4]}}}"
    )
    notes = dashi.stream.make_plan(config, measure=False).notes
    assert notes == ("never measured, so times are rough: cpu (dashi devices calibrate)",)
