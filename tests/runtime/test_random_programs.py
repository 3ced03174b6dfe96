"""Random programs over parts of one block: the checker, synchronisation validation and NumPy agree, bit for bit."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dashi.errors import HazardError, InputError, ShapeError
from dashi.runtime import Array, Block, Device, open_device
from dashi.runtime._cpu_device import CpuDevice
from dashi.runtime._hazards import check_barriers
from dashi.runtime._null_device import NullDevice
from dashi.runtime._vulkan_device import VulkanDevice
from dashi.runtime.device import AnyStep, Program

PITCH = 256
PIECES = 8
"""The block has so many pieces of PITCH bytes; parts are one to three of them."""
LENGTH = PITCH // 4


@dataclass(frozen=True)
class Part:
    start: int
    pieces: int

    def of(self, block: Block) -> Array:
        return block.array(self.start * PITCH, self.pieces * LENGTH, np.float32)

    def meets(self, other: Part) -> bool:
        return self.start < other.start + other.pieces and other.start < self.start + self.pieces


@dataclass(frozen=True)
class Action:
    """A step to be: its kind, the parts that it may use, and a number."""

    kind: str
    parts: tuple[Part, ...]
    number: int


@dataclass(frozen=True)
class Plot:
    """A program: what it does, what it is fed with, what comes back, and where it is cut in two; `direct`: it is not
    cut, and its kernels may use slots themselves."""

    actions: tuple[Action, ...]
    feeds: tuple[Part, ...]
    fetches: tuple[Part, ...]
    cut: int
    direct: bool


def parts(pieces: int) -> st.SearchStrategy[Part]:
    return st.builds(Part, st.integers(0, PIECES - pieces), st.just(pieces))


ACTIONS = st.integers(1, 3).flatmap(
    lambda pieces: st.builds(
        Action,
        st.sampled_from(["add", "scale", "sum", "copy", "fill", "view copy", "host"]),
        st.tuples(parts(pieces), parts(pieces), parts(pieces)),
        st.integers(-3, 3),
    )
)
PLOTS = st.builds(
    Plot,
    st.lists(ACTIONS, min_size=1, max_size=10).map(tuple),
    st.lists(parts(1), max_size=2, unique_by=lambda part: part.start).map(tuple),
    st.lists(parts(2), max_size=2, unique_by=lambda part: part.start).map(tuple),
    st.integers(0, 10),
    st.booleans(),
)


def step(device: Device, block: Block, action: Action) -> AnyStep:
    a, b, c = (part.of(block) for part in action.parts)
    number = float(action.number)
    match action.kind:
        case "add":
            return device.bind("add", a, b, out=c)
        case "scale":
            return device.bind("scale", a, out=b, a=number)
        case "sum":
            return device.bind("reduce_sum", a, out=b[:1])
        case "copy":
            return device.copy_step(a, b)
        case "fill":
            return device.fill_step(a, number)
        case "view copy":  # bytes that no shader could start at
            return device.copy_step(a[1 : 1 + LENGTH // 2], b[3 : 3 + LENGTH // 2])
        case _:
            return device.host_step(lambda x: x + np.float32(number), [a], [b])


def run(device: Device, plot: Plot) -> list[bytes]:
    """What a program in two parts, each on a queue of its own where there are several, brings back in two runs, and
    what it leaves in the block; all hazards within the parts are proved covered."""
    block = device.block(PIECES * PITCH)
    whole = block.array(0, PIECES * LENGTH)
    whole.write(np.arange(PIECES * LENGTH, dtype=np.float32))
    steps: list[AnyStep] = []
    for action in plot.actions:
        try:
            steps.append(step(device, block, action))
        except (InputError, ShapeError):
            continue  # it would write over what it reads, which the house refuses
    feeds, fetches = [part.of(block) for part in plot.feeds], [part.of(block) for part in plot.fetches]
    if plot.direct and (feeds or fetches):
        return run_direct(device, steps, feeds, fetches)
    with (
        device.program(steps[: plot.cut], feed=feeds, slots=2) as first,
        device.program(steps[plot.cut :], fetch=fetches, queue=queues(device) - 1, slots=2) as second,
    ):
        for program in (first, second):
            check(device, program)
        tickets: list[Any] = []
        for turn in range(2):
            values = {array: np.full(array.shape, 100 * turn + i, np.float32) for i, array in enumerate(feeds)}
            begun = first.submit(after=tickets, feed=values or None)
            tickets.append(second.submit(after=[begun]))
        if isinstance(device, NullDevice):
            return []
        results = [ticket.fetched(array).tobytes() for ticket in tickets for array in fetches]
        return [*results, whole.numpy().tobytes()]


def run_direct(device: Device, steps: list[AnyStep], feeds: list[Array], fetches: list[Array]) -> list[bytes]:
    """What a direct program brings back in three runs; what it leaves in the block is undefined."""
    results: list[bytes] = []
    with device.program(steps, feed=feeds, fetch=fetches, slots=2, direct=True) as program:
        check(device, program)
        for turn in range(3):
            values = {array: np.full(array.shape, 100 * turn + i, np.float32) for i, array in enumerate(feeds)}
            ticket = program.submit(feed=values or None)
            results += [] if isinstance(device, NullDevice) else [ticket.fetched(array).tobytes() for array in fetches]
    return results


def check(device: Device, program: Program) -> None:
    """Barriers suffice, and none of them could be weaker."""
    assert program.check().commands >= len(program.steps)
    for batch in program.schedule() if isinstance(device, VulkanDevice) else ():
        for i, kind in enumerate(batch.barriers):
            if kind:
                with pytest.raises(HazardError):
                    check_barriers(batch.commands[: i + 1], [*batch.barriers[:i], kind - 1])


def queues(device: Device) -> int:
    """Compute queues of a device: as many as are named, where it computes on the host."""
    return len(device.by_role.compute) if isinstance(device, VulkanDevice) else 2


def with_queues(device: VulkanDevice, validation: bool | None) -> VulkanDevice:
    """The same device, with two compute queues, which share one of the driver's where that has no more."""
    assert device.info.spec == "vulkan:0"
    both = open_device("vulkan:0", validation=validation, queues=2)
    assert isinstance(both, VulkanDevice)
    assert len(both.by_role.compute) == 2
    return both


@pytest.fixture(scope="module")
def plain(vulkan_session: VulkanDevice) -> Iterator[VulkanDevice]:
    with with_queues(vulkan_session, None) as device:
        yield device
    assert not device.instance.messages


@pytest.fixture(scope="module")
def validated(vulkan_session: VulkanDevice) -> Iterator[VulkanDevice]:
    """A device whose validation layers look for missing barriers."""
    with with_queues(vulkan_session, validation=True) as device:
        yield device


@given(PLOTS)
@settings(max_examples=25)
def test_random_programs_have_the_bits_of_numpy(plain: VulkanDevice, plot: Plot) -> None:
    with CpuDevice() as cpu, NullDevice() as null:
        assert run(plain, plot) == run(cpu, plot)
        run(null, plot)


@pytest.mark.validation
@given(PLOTS)
@settings(max_examples=25)
def test_random_programs_race_nowhere_that_validation_sees(validated: VulkanDevice, plot: Plot) -> None:
    validated.instance.messages.clear()
    with CpuDevice() as cpu:
        assert run(validated, plot) == run(cpu, plot)
    assert validated.instance.messages == []
