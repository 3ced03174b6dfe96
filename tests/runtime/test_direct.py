"""Kernels that read and write the slot of a run: where they may, and that it changes no bit of what comes back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from dashi.errors import InputError
from dashi.runtime import Array, Device
from dashi.runtime._memory import suits
from dashi.runtime._vulkan_device import VulkanDevice
from dashi.runtime.info import MemoryType

N = 1000


def values_of(number: float) -> Any:
    return np.arange(N, dtype=np.float32) + np.float32(number)


def doubling(device: Device, **options: Any) -> tuple[Array, Array, Any]:
    x, y = device.zeros(N), device.zeros(N)
    step = device.bind("scale", x, out=y, a=2.0)
    return x, y, device.program([step], feed=[x], fetch=[y], label="double", direct=True, **options)


def test_no_copy_stands_between_the_host_and_the_kernel(vulkan: VulkanDevice) -> None:
    x, y, program = doubling(vulkan)
    with program:
        (run,) = program.schedule()
        assert list(run.names) == ["scale"]
        assert program.check().hazards == 0
        memory = program._first.memory
        assert run.commands[0].reads[0][0] == memory.uploads[0].key
        assert run.commands[0].writes[0][0] == memory.landing[0].key
        program.run(feed={x: values_of(1)})
        assert np.array_equal(program.fetched(y), 2 * values_of(1))
        assert not x.numpy().any()  # nothing went there
        assert not y.numpy().any()


@pytest.mark.parametrize("timed", [False, True, "steps"])
def test_every_run_computes_with_the_values_of_its_slot(device: Device, timed: Any) -> None:
    x, y, program = doubling(device, slots=3, timed=timed)
    with program:
        tickets = list[Any]()
        for turn in range(3):
            tickets = [program.submit(feed={x: values_of(10 * turn + i)}) for i in range(3)]
            for i in (1, 2, 0):
                assert np.array_equal(tickets[i].fetched(y), 2 * values_of(10 * turn + i))
        if timed == "steps":
            assert "scale" in [step.label for step in tickets[2].step_times()]


def test_direct_programs_need_something_to_be_direct_with(device: Device) -> None:
    with pytest.raises(
        InputError, match=r"uses the memory of arrays that are fed or fetched, and there are none\. Fix: n"
    ):
        device.program([device.bind("scale", device.zeros(4), a=1.0)], direct=True)


def test_a_description_says_what_kernels_use_in_the_slot(vulkan: VulkanDevice) -> None:
    x, y, program = doubling(vulkan)
    with program:
        text = str(program.describe())
    assert text.endswith("from the host: b0 (in the slot)\n  to the host: b1 (in the slot)")
    with vulkan.program([vulkan.copy_step(x, y)], feed=[x], fetch=[y], direct=True) as program:
        assert str(program.describe()).endswith(
            "from the host: b0 (copied: copy copies it)\n  to the host: b1 (copied: copy writes it)"
        )
    with vulkan.program([vulkan.copy_step(x, y)], feed=[x]) as program:
        assert str(program.describe()).endswith("from the host: b0")


Steps = Callable[[Device, Array, Array], list[Any]]
BIG = (1 << 18) + 64

COPIED: dict[str, tuple[Steps, str, str]] = {
    "in place": (lambda d, x, y: [d.bind("scale", x, out=x, a=2.0), d.bind("scale", x, out=y, a=2.0)], "writes", ""),
    "filled": (lambda d, x, y: [d.bind("scale", x, out=y, a=2.0), d.fill_step(x, 1.0)], "fill writes it", ""),
    "copied": (lambda d, x, y: [d.copy_step(x, y)], "copy copies it", "copy writes it"),
    "unused": (lambda d, x, y: [], "no kernel reads it", "no kernel writes it"),
    "twice": (
        lambda d, x, y: [d.bind("scale", x, out=y, a=2.0)] * 2,
        "",
        "scale and scale write it",
    ),
    "read again": (
        lambda d, x, y: [d.bind("scale", x, out=y, a=2.0), d.bind("scale", y, a=2.0)],
        "",
        "scale reads it",
    ),
    "a part": (
        lambda d, x, y: [d.bind("scale", x[:512], out=y[:512], a=2.0)],
        "",
        "scale writes a part of it",
    ),
    "a host step": (
        lambda d, x, y: [d.bind("scale", x, out=y, a=2.0), d.host_step(lambda _: None, [x])],
        "a step of the host cuts the program",
        "a step of the host cuts the program",
    ),
    "read in the making": (
        lambda d, x, y: [d.bind("gemm_scalar", d.zeros((N, 4)), x[:4].reshape(4, 1), out=y.reshape(N, 1))],
        "",
        "gemm_scalar reads it",
    ),
    "neither": (lambda d, x, y: [d.bind("add", x, x, out=y)] + [d.bind("scale", x, a=3.0)] * 3, "", ""),
}


@pytest.mark.parametrize("name", COPIED)
def test_arrays_are_copied_where_a_slot_would_not_do(vulkan: VulkanDevice, name: str) -> None:
    steps, feed, fetch = COPIED[name]
    results: list[Any] = []
    for direct in (True, False):
        x, y = vulkan.array(values_of(5)), vulkan.array(values_of(6))
        with vulkan.program(steps(vulkan, x, y), feed=[x], fetch=[y], direct=direct) as program:
            if direct:
                assert program.copied_feeds is not None
                assert program.copied_fetches is not None
                ((copied,), (back,)) = program.copied_feeds, program.copied_fetches
                assert (feed in copied, fetch in back) == (True, True), (copied, back)
                assert (bool(copied), bool(back)) == (bool(feed), bool(fetch)), (copied, back)
            program.check()
            tickets = [program.submit(feed={x: values_of(7 + i)}) for i in range(2)]
            results.append([ticket.fetched(y).tobytes() for ticket in tickets])
    assert results[0] == results[1]


def test_large_empty_and_shared_arrays_are_copied(vulkan: VulkanDevice) -> None:
    block = vulkan.zeros(4 * BIG)
    step = vulkan.bind("scale", block[:BIG], out=block[BIG : 2 * BIG], a=2.0)
    none = vulkan.zeros(0)
    part = vulkan.bind("scale", block[:1024], a=2.0)
    for steps, feed, fetch, why in (
        ([step], block[:BIG], block[BIG : 2 * BIG], "it has more than 1 MiB"),
        ([part], none, none, "it is empty"),
        ([part], block[:1024], block[64:128], "others that go to or from the host share its memory"),
    ):
        with vulkan.program(steps, feed=[feed], fetch=[fetch], direct=True) as program:
            assert program.copied_feeds == program.copied_fetches == (why,)
    with vulkan.program([part], feed=[block[:1024]], fetch=part.outputs, barriers="all", direct=True) as program:
        assert program.copied_feeds == ("its barriers are not placed automatically",)


def test_parts_of_a_fed_array_are_read_in_the_slot(vulkan: VulkanDevice) -> None:
    x, y, z = vulkan.zeros((2, 512)), vulkan.zeros(512), vulkan.zeros(512)
    steps = [vulkan.bind("add", x[0], x[1], out=y), vulkan.bind("scale", x[1], out=z, a=3.0)]
    values = np.arange(1024, dtype=np.float32).reshape(2, 512)
    with vulkan.program(steps, feed=[x], fetch=[y, z], direct=True) as program:
        assert [list(batch.names) for batch in program.schedule()] == [["add", "scale"]]
        ticket = program.submit(feed={x: values})
        assert np.array_equal(ticket.fetched(y), values[0] + values[1])
        assert np.array_equal(ticket.fetched(z), 3 * values[1])


def test_long_programs_are_copied_for(vulkan: VulkanDevice, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vulkan, "work_per_dispatch", 10)
    x, y, program = doubling(vulkan)
    with program:
        assert program.copied_feeds == ("the program is submitted in several parts",)
        assert np.array_equal(program.submit(feed={x: values_of(1)}).fetched(y), 2 * values_of(1))


TYPES = {
    "unified": ([MemoryType(0, True, True, True, True)], True, True),
    "discrete": (
        [
            MemoryType(0, True, False, False, False),
            MemoryType(1, False, True, True, False),
            MemoryType(1, False, True, True, True),
        ],
        False,
        True,
    ),
    "mapped": ([MemoryType(0, True, True, True, False), MemoryType(1, False, True, True, False)], True, False),
}


@pytest.mark.parametrize("name", TYPES)
def test_slots_are_used_where_the_device_has_memory_for_them(name: str) -> None:
    types, feed, readback = TYPES[name]
    assert suits(types, "feed") is feed
    assert suits(types, "readback") is readback
