"""Chains of stages on devices: the bits of one device, whatever the windows, the ways of links, and delays."""

from __future__ import annotations

import itertools
import random
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pytest

from dashi import errors
from dashi.runtime import Array, Device, Ticket, open_device
from dashi.runtime._steps import AnyStep
from dashi.stream import (
    DeviceSpec,
    Field,
    LinkSpec,
    OpSpec,
    PayloadSchema,
    Pipeline,
    PlannedLink,
    PlannedStage,
    Prediction,
    StageSpec,
    State,
    StreamConfig,
    StreamPlan,
    Worker,
)
from dashi.stream._device_chain import DeviceChain
from dashi.types import Cost

N = 96
ITEMS = 12
RNG = np.random.default_rng(5)
MATRIX = (RNG.standard_normal((N, N)) / 10).astype(np.float32)


@dataclass(frozen=True)
class Gemv:
    """x A, a kernel with a constant."""

    spec: OpSpec = field(default_factory=lambda: OpSpec("gemv", 0, 1))
    reads: tuple[str, ...] = ("x",)

    def makes(self, given: PayloadSchema) -> Mapping[str, Field]:
        return {"x": given["x"]}

    def cost(self, given: PayloadSchema) -> Cost:
        return Cost(2 * N * N)

    def load(self, device: Device) -> Mapping[str, Array]:
        return {"A": device.array(MATRIX)}

    def bind(
        self, device: Device, constants: Mapping[str, Array], inputs: Mapping[str, Array], outputs: Mapping[str, Array]
    ) -> Sequence[AnyStep]:
        return [device.bind("gemv", inputs["x"], constants["A"], out=outputs["x"])]


@dataclass(frozen=True)
class Elementwise:
    """One kernel of one field, into that or another."""

    kernel: str
    source: str = "x"
    target: str = "x"
    scalars: Mapping[str, Any] = field(default_factory=dict)
    io_class: str = "CORE"

    @property
    def spec(self) -> OpSpec:
        return OpSpec(f"{self.kernel} {self.target}", 1, 1, io_class=self.io_class)  # type: ignore[arg-type]

    @property
    def reads(self) -> tuple[str, ...]:
        return (self.source,)

    def makes(self, given: PayloadSchema) -> Mapping[str, Field]:
        shape = (1,) if self.kernel.startswith("reduce") else given[self.source].shape
        return {self.target: Field(shape)}

    def cost(self, given: PayloadSchema) -> Cost:
        return Cost(N)

    def load(self, device: Device) -> Mapping[str, Array]:
        return {}

    def bind(
        self, device: Device, constants: Mapping[str, Array], inputs: Mapping[str, Array], outputs: Mapping[str, Array]
    ) -> Sequence[AnyStep]:
        return [device.bind(self.kernel, inputs[self.source], out=outputs[self.target], **self.scalars)]


@dataclass(frozen=True)
class Reversed:
    """A function of the host."""

    spec: OpSpec = field(default_factory=lambda: OpSpec("reversed", 1, 1, host_only=True))
    reads: tuple[str, ...] = ("x",)

    def makes(self, given: PayloadSchema) -> Mapping[str, Field]:
        return {"x": given["x"]}

    def cost(self, given: PayloadSchema) -> Cost:
        return Cost()

    def call(self, payload: Mapping[str, np.ndarray]) -> Mapping[str, np.ndarray]:
        return {"x": payload["x"][::-1].copy()}


STAGES = (
    ("one", (Gemv(), Elementwise("tanh"))),
    ("cpu", (Reversed(),)),
    ("two", (Gemv(), Elementwise("scale", target="y", scalars={"a": 3.0}))),
    ("one", (Gemv(), Elementwise("sin", "y", "y"))),
)
TAKEN = PayloadSchema({"x": Field((N,)), "k": Field((5,), "i8")})
RESULT = ("k", "x", "y")


def plan_of(
    stages: Sequence[tuple[str, Sequence[object]]] = STAGES,
    window: int = 3,
    observers: Sequence[Sequence[object]] = (),
    every: int = 1,
    **link: Any,
) -> StreamPlan:
    """A plan by hand: all fields travel."""
    planned, links, schema = [], [], TAKEN
    for number, (device, ops) in enumerate(stages):
        after = schema
        for op in ops:
            after = after.with_fields(op.makes(after))  # type: ignore[attr-defined]
        stage = StageSpec(f"s{number}", device)
        looking = tuple(observers[number]) if number < len(observers) else ()
        strides = {op.spec.id: every for op in looking}  # type: ignore[attr-defined]
        spec = DeviceSpec(device, device)
        planned.append(PlannedStage(stage, spec, tuple(ops), looking, schema, after, 0, 1, 0.0, every=strides))  # type: ignore[arg-type]
        schema = after
    for source, target in itertools.pairwise(planned):
        one = LinkSpec(source.stage.id, target.stage.id, **{"mode": None, **link})  # type: ignore[arg-type]
        links.append(PlannedLink(one, source.after, source.after.nbytes, window, 0.0))
    config = StreamConfig(tuple(s.stage for s in planned), tuple(one.link for one in links))
    return StreamPlan(config, tuple(planned), tuple(links), Prediction(0.0, 0.0, ""))


def payloads(items: int) -> Iterator[dict[str, np.ndarray]]:
    for t in range(items):
        rng = np.random.default_rng(t)
        yield {"x": rng.standard_normal(N).astype(np.float32), "k": rng.integers(-1, 2, 5).astype(np.int8)}


@pytest.fixture
def devices(vulkan: Device) -> Iterator[dict[str, Device]]:
    with open_device("vulkan:0") as two, open_device("cpu") as cpu:
        yield {"one": vulkan, "two": two, "cpu": cpu}
        assert not getattr(getattr(two, "instance", None), "messages", None)


def serial_digests(device: Device, items: int = ITEMS) -> list[str]:
    """All ops in one stage on one device: no links, no windows."""
    ops = [op for _, ops in STAGES for op in ops]
    with DeviceChain(plan_of([("only", ops)]), {"only": device}) as chain:
        return [result.digest for result in chain.run(payloads(items))]


@pytest.fixture(scope="module")
def expected() -> list[str]:
    with open_device("cpu") as cpu:
        digests = serial_digests(cpu)
    assert len(set(digests)) == ITEMS
    return digests


def test_a_serial_run_has_the_same_digests_on_software_vulkan(vulkan: Device, expected: list[str]) -> None:
    assert serial_digests(vulkan) == expected


@pytest.mark.parametrize("window", [1, 2, 3, 8])
def test_chains_have_the_digests_of_one_device_for_every_window_and_delay(
    devices: dict[str, Device], expected: list[str], window: int
) -> None:
    rng = random.Random(window)
    timers: list[threading.Timer] = []

    def hold(stage: str, step: int) -> Sequence[Ticket]:
        """Delays on the host, and on devices: events that somebody signals later."""
        if rng.random() < 0.2:
            time.sleep(rng.random() * 2e-3)
        if rng.random() < 0.3:
            event = devices["one"].event(f"{stage} {step}")
            timers.append(threading.Timer(rng.random() * 5e-3, event.signal))
            timers[-1].start()
            return [event]
        return ()

    with DeviceChain(plan_of(window=window), devices, hold=hold, keep=True) as chain:
        results = list(chain.run(payloads(ITEMS)))
        record = chain.record()
    assert [result.step for result in results] == list(range(ITEMS))
    assert [result.digest for result in results] == expected
    assert set(results[0].fields) == set(RESULT)
    assert [stage["items_out"] for stage in record] == [ITEMS] * 4
    assert [stage["link"] and stage["link"]["way"] for stage in record] == ["host", "host", "exported", None]
    assert all(stage["device_us"] > 0 for stage in record)
    assert len(timers) > 3


@pytest.mark.parametrize("way", [{"mode": "HOST_STAGING"}, {"mode": "P2P", "fallback": True}])
def test_the_mode_of_links_changes_no_bit(devices: dict[str, Device], expected: list[str], way: dict[str, Any]) -> None:
    with DeviceChain(plan_of(**way), devices) as chain:
        assert [result.digest for result in chain.run(payloads(ITEMS))] == expected


def test_stages_of_one_device_share_its_memory(vulkan: Device, expected: list[str]) -> None:
    plan = plan_of([("only", ops) for _, ops in STAGES])
    with DeviceChain(plan, {"only": vulkan}) as chain:
        assert [result.digest for result in chain.run(payloads(ITEMS))] == expected
        assert {link.way for link in chain.links} == {"device"}


def test_lossy_codecs_change_digests_and_the_record_says_so(devices: dict[str, Device], expected: list[str]) -> None:
    with DeviceChain(plan_of(codec="f16"), devices) as chain:
        digests = [result.digest for result in chain.run(payloads(ITEMS))]
        record = chain.record()
    assert digests != expected
    assert [stage["link"]["lossy"] for stage in record[:-1]] == [True, True, True]
    with DeviceChain(plan_of(codec="planes"), devices) as chain:
        assert [result.digest for result in chain.run(payloads(ITEMS))] == expected
        assert [stage["link"]["lossy"] for stage in chain.record()[:-1]] == [False, False, False]


def test_observers_look_every_so_many_steps_and_change_nothing(devices: dict[str, Device], expected: list[str]) -> None:
    observed: list[tuple[int, str, dict[str, np.ndarray]]] = []
    size, most = Elementwise("abs", "x", "size", io_class="OBSERVER"), Elementwise("reduce_max", "size", "most")
    plan = plan_of(observers=[(), (), (size, most)], every=5)

    with DeviceChain(plan, devices, observe=lambda *found: observed.append(found), keep=True) as chain:
        results = list(chain.run(payloads(ITEMS)))
    assert [result.digest for result in results] == expected
    assert [(step, stage, list(values)) for step, stage, values in observed] == [
        (t, "s2", ["most"]) for t in (0, 5, 10)
    ]
    for step, _, values in observed:
        state = np.random.default_rng(step).standard_normal(N).astype(np.float32)
        state = np.tanh(state.astype(np.float64) @ MATRIX)[::-1] @ MATRIX
        assert values["most"][0] == pytest.approx(np.abs(state).max(), rel=1e-4)


def test_no_host_wait_stands_between_the_stages_of_an_item(devices: dict[str, Device], expected: list[str]) -> None:
    """All windows' worth of items is submitted before the first one begins."""
    go = devices["one"].event("go")
    with DeviceChain(
        plan_of(window=2), devices, hold=lambda stage, step: [go] if (stage, step) == ("s0", 0) else ()
    ) as chain:
        items = payloads(ITEMS)
        states = [chain.submit(next(items)) for _ in range(4)]
        assert not any(state.payload.after[0].done for state in states)  # type: ignore[union-attr]
        go.signal()
        assert [chain.read(state).digest for state in states] == expected[:4]


def test_errors_of_host_ops_reach_whoever_reads(devices: dict[str, Device]) -> None:
    class Broken(Reversed):
        def call(self, payload: Mapping[str, np.ndarray]) -> Mapping[str, np.ndarray]:
            raise ValueError("no more")

    plan = plan_of([("one", (Gemv(),)), ("cpu", (Broken(),)), ("two", (Gemv(),))])
    with (
        DeviceChain(plan, devices) as chain,
        pytest.raises(errors.HostStepError, match=r"'reversed' failed: ValueError: no more"),
    ):
        list(chain.run(payloads(ITEMS)))


def test_a_plan_needs_its_devices(devices: dict[str, Device]) -> None:
    with pytest.raises(errors.InputError, match=r"needs the device 'cpu', which was not passed\. Fix: pass `devices`"):
        DeviceChain(plan_of(), {"one": devices["one"], "two": devices["two"]})


def test_windows_that_make_too_many_programs_are_refused_before_memory_is_taken(
    devices: dict[str, Device], monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = plan_of()
    windows = [4095, 4096, *[1] * (len(plan.links) - 2)]
    plan = replace(plan, links=tuple(replace(link, window=w) for link, w in zip(plan.links, windows, strict=True)))
    monkeypatch.setattr("dashi.stream._device_chain.Link", None)  # no link is made
    message = (
        r"stage 's1' between links of windows 4095 and 4096 would have 16773120 programs, more than 4096: one for each "
        r"pair of slots\. Fix: give both links the same window, or one a multiple of the other's\."
    )
    with pytest.raises(errors.StreamError, match=message):
        DeviceChain(plan, devices)


def resident_bytes() -> int:
    """Memory of this process."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096


CHEAP = (Elementwise("scale", scalars={"a": 1.0}),)
PAYLOAD = {"x": np.arange(N, dtype=np.float32), "k": np.zeros(5, np.int8)}


@pytest.mark.long
@pytest.mark.parametrize(("places", "items"), [("one one one one", 100_000), ("cpu one two one", 5_000)])
def test_items_without_end_go_through_four_stages_in_constant_memory(
    bare_vulkan: Device, places: str, items: int
) -> None:
    sizes, digests, last = list[int](), set[str](), -1
    with open_device("cpu") as cpu, open_device("vulkan:0", validation=False) as two:
        plan = plan_of([(place, CHEAP) for place in places.split()])
        with DeviceChain(plan, {"one": bare_vulkan, "two": two, "cpu": cpu}, timed=False) as chain:
            for result in chain.run(itertools.repeat(PAYLOAD, items)):
                digests.add(result.digest)
                last = result.step
                if last % (items // 10) == items // 20:
                    sizes.append(resident_bytes())
    assert (len(digests), last) == (1, items - 1)
    assert max(sizes[1:]) - sizes[1] < 4 << 20, sizes


@pytest.mark.long
def test_ten_thousand_chains_are_made_and_closed_without_growth(bare_vulkan: Device) -> None:
    with open_device("cpu") as cpu:
        devices = {"one": bare_vulkan, "cpu": cpu}
        sizes, digests = list[int](), set[str]()
        for count in range(10_000):
            with DeviceChain(plan_of([("cpu", CHEAP), ("one", CHEAP)], window=1), devices) as chain:
                digests.update(result.digest for result in chain.run([PAYLOAD]))
            if count % 1000 == 999:
                sizes.append(resident_bytes())
        used = bare_vulkan.memory().used  # type: ignore[attr-defined]
    assert len(digests) == 1
    assert max(sizes[1:]) - sizes[1] < 8 << 20, sizes
    assert used < 1 << 20


def test_stages_run_in_the_threads_of_a_pipeline_too(devices: dict[str, Device], expected: list[str]) -> None:
    with DeviceChain(plan_of(), devices) as chain:
        states = (State(t, payload, 0) for t, payload in enumerate(payloads(ITEMS)))
        with Pipeline([Worker(stage.id, compute=stage) for stage in chain.stages]) as pipeline:
            results = [chain.read(state) for state in pipeline.run(states)]
        report = pipeline.report()
    assert [(result.step, result.digest) for result in results] == list(enumerate(expected))
    assert [stage.items_out for stage in report.stages] == [ITEMS] * 4
