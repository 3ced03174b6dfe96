"""Steps that are no kernels: copies, fills and functions of the host, recorded among kernels."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from dashi.errors import BusyError, DTypeError, HostStepError, InputError, ShapeError
from dashi.runtime import Device
from dashi.runtime._null_device import NullDevice
from dashi.runtime._vulkan_device import VulkanDevice


def test_copies_and_fills_keep_their_order_among_kernels(device: Device) -> None:
    x, y, z = device.array(np.arange(50, dtype=np.float32)), device.zeros(50), device.empty(50)
    steps = [
        device.copy_step(x, y),
        device.bind("scale", y, out=z, a=3.0),
        device.fill_step(y, 7),
        device.bind("add", y, z, out=x),
        device.copy_step(x, z),
    ]
    with device.program(steps, fetch=[z]) as program:
        assert program.check().hazards >= 6
        program.run()
        assert np.array_equal(program.fetched(z), 3 * np.arange(50) + 7)
        program.run()
        assert np.array_equal(program.fetched(z), 3 * (3 * np.arange(50) + 7) + 7)


@pytest.mark.parametrize(
    ("dtype", "value"),
    [
        (np.float32, 1.5), (np.float64, -2.25), (np.uint8, 200), (np.int8, -3), (np.float16, 0.1), (np.int64, -1),
        (np.uint64, 1 << 40), (np.float64, 0.0), (np.uint32, 0xDEADBEEF), (np.bool_, True),
    ],
)  # fmt: skip
@pytest.mark.parametrize("count", [0, 1, 5, 64, 20001])
def test_a_fill_writes_the_bits_of_the_number_and_nothing_else(
    device: Device, dtype: Any, value: Any, count: int
) -> None:
    whole = device.array(np.full((count + 12) * 8, 255, np.uint8))
    # Not at a word, where the element allows it.
    start = np.dtype(dtype).itemsize
    part = device.view(whole, start, (count,), device.empty(1, dtype).dtype)
    with device.program([device.fill_step(part, value)]) as program:
        program.run()
    assert np.array_equal(part.numpy(), np.full(count, value, dtype))
    rest = whole.numpy()
    assert (rest[:start] == 255).all()
    assert (rest[start + part.nbytes :] == 255).all()


def test_fills_and_copies_of_disjoint_parts_need_no_barriers(vulkan: VulkanDevice) -> None:
    whole = vulkan.zeros(64)
    halves = whole[:32], whole[32:]
    with vulkan.program([vulkan.fill_step(halves[0], 1), vulkan.fill_step(halves[1], 2)]) as program:
        assert (program.dispatches, program.barriers) == (0, 0)
        program.run()
    assert sorted(set(whole.numpy())) == [1, 2]
    with vulkan.program([vulkan.fill_step(halves[0], 3), vulkan.copy_step(*halves)]) as program:
        assert program.barriers == 1
        program.run()
    assert set(whole.numpy()) == {3}


def test_a_host_step_sees_what_was_written_and_is_seen(device: Device) -> None:
    x, y = device.array(np.arange(6, dtype=np.float32).reshape(2, 3)), device.zeros((2, 3))
    total = device.zeros(1)
    entries: list[Any] = []

    def turn(values: Any, earlier: Any) -> tuple[Any, Any]:
        entries.append(values.copy())
        assert not values.flags.writeable
        return values[::-1] + earlier, np.array([values.sum()], np.float32)

    steps = [
        device.bind("scale", x, out=x, a=2.0),
        device.host_step(turn, [x, y], [y, total]),
        device.bind("add", x, y, out=x),
    ]
    assert repr(steps[1]) == "<HostStep turn: (2, 3), (2, 3) -> (2, 3), (1,)>"
    with device.program(steps, fetch=[x, total]) as program:
        state, other = np.arange(6, dtype=np.float32).reshape(2, 3), np.zeros((2, 3), np.float32)
        for _ in range(3):
            program.run()
            state = 2 * state
            other, summed = state[::-1] + other, state.sum()
            state = state + other
            assert np.array_equal(program.fetched(x), state)
            assert program.fetched(total)[0] == summed
    assert len(entries) == 3


def test_host_steps_may_follow_each_other_and_stand_at_the_ends(device: Device) -> None:
    x = device.array(np.zeros(4, np.int32))
    calls: list[str] = []

    def count(values: Any) -> Any:
        calls.append("count")
        return values + 1

    note = device.host_step(lambda values: calls.append("note"), [x], name="note")
    one = device.host_step(count, [x], [x])
    with device.program([one, one, note, one], feed=[x], fetch=[x], slots=2) as program:
        assert program.check().commands >= 4
        ticket = program.submit(feed={x: np.full(4, 5, np.int32)})
        assert ticket.fetched(x).tolist() == [8] * 4
    assert calls == ["count", "count", "note", "count"]


def wrong(*_: Any) -> Any:
    raise ZeroDivisionError("by nothing")


HOST_ERRORS: dict[str, tuple[Any, type[Exception], str]] = {
    "raises": (wrong, HostStepError, "the host step 'wrong' failed: ZeroDivisionError: by nothing. Fix: mend the"),
    "too many": (lambda v: (v, v), HostStepError, "returned 2 values for 1 outputs. Fix: return an array for each"),
    "shape": (lambda v: v[:2], ShapeError, "returned values of shape (2,) for Array("),
    "dtype": (lambda v: v.astype(np.float64), DTypeError, "returned values of float64 for Array("),
}


@pytest.mark.parametrize("name", HOST_ERRORS)
def test_errors_of_host_steps_are_typed_and_name_the_step(device: Device, name: str) -> None:
    function, kind, text = HOST_ERRORS[name]
    x, y = device.array(np.ones(4, np.float32)), device.zeros(4)
    steps = [device.host_step(function, [x], [y]), device.bind("add", x, x, out=x)]
    with device.program(steps, fetch=[x], slots=1) as program:
        with pytest.raises(kind) as caught:
            program.run()
        assert text in str(caught.value)
        if name == "raises":
            assert isinstance(caught.value.__cause__, ZeroDivisionError)
            with pytest.raises(HostStepError):
                program.run()  # the slot came back, and so did the program
    assert x.numpy().tolist() == [1] * 4  # what comes after did not run


def test_a_host_step_cannot_run_its_own_program(vulkan: VulkanDevice) -> None:
    x = vulkan.zeros(4)
    held: list[Any] = []
    with vulkan.program([vulkan.host_step(lambda v: held[0].run(), [x])], label="round") as program:
        held.append(program)
        with pytest.raises(HostStepError, match="submits the program that it is a part of"):
            program.run()
        assert issubclass(BusyError, Exception)


def test_a_host_step_may_use_the_device(device: Device) -> None:
    x = device.array(np.ones(4, np.float32))
    with device.program(
        [device.host_step(lambda v: device.run("add", v.copy(), v.copy()).numpy(), [x], [x])]
    ) as program:
        program.run()
    assert x.numpy().tolist() == [2] * 4


STEPS: dict[str, tuple[Any, type[Exception], str]] = {
    "copy shapes": (lambda d, x: d.copy_step(x, d.empty(5)), ShapeError, "cannot copy"),
    "copy to itself": (lambda d, x: d.copy_step(x, x), ShapeError, "cannot copy"),
    "copy overlap": (lambda d, x: d.copy_step(x[:3], x[1:]), InputError, "share memory"),
    "copy of host": (lambda d, x: d.copy_step(np.ones(4), x), InputError, "not an array of this device"),
    "fill text": (lambda d, x: d.fill_step(x, "a"), InputError, "Fix: "),
    "fill array": (lambda d, x: d.fill_step(x, [1.0, 2.0]), ShapeError, "Fix: "),
    "fill fraction": (lambda d, x: d.fill_step(d.empty(3, np.int32), 0.5), DTypeError, "Fix: convert"),
    "host nothing": (lambda d, x: d.host_step(None, [x]), InputError, "None is no function. Fix: pass a function"),
    "host array": (lambda d, x: d.host_step(len, x), InputError, "is a list of arrays, not Array. Fix: pass [array]"),
    "host outputs": (lambda d, x: d.host_step(len, [], [x, x[1:]]), InputError, "two outputs of the host step"),
    "host foreign": (lambda d, x: d.host_step(len, [np.ones(3)]), InputError, "not an array of this device"),
    "one copy": (lambda d, x: d.program(d.copy_step(x, d.empty(4))), InputError, "not from one CopyStep. Fix: "),
}  # fmt: skip


@pytest.mark.parametrize("name", STEPS)
def test_steps_of_what_does_not_fit_are_refused(device: Device, name: str) -> None:
    misuse, kind, text = STEPS[name]
    with pytest.raises(kind) as caught:
        misuse(device, device.array(np.ones(4, np.float32)))
    assert text in str(caught.value)


def test_the_null_device_records_all_steps_and_calls_nothing() -> None:
    with NullDevice() as null:
        x, y = null.empty(64), null.empty(64)
        steps = [null.fill_step(x, 1), null.copy_step(x, y), null.host_step(wrong, [y], [x]), null.bind("add", x, y)]
        with null.program(steps, feed=[x], slots=1) as program:
            assert (program.dispatches, program.barriers) == (1, 3)
            assert program.check().hazards > 3
            program.run(feed={x: np.zeros(64, np.float32)})


def test_steps_say_what_they_are(device: Device) -> None:
    x, y = device.zeros(4), device.zeros(4)
    copy, fill = device.copy_step(x, y), device.fill_step(x, 2)
    assert (copy.name, copy.cost.bytes, fill.name, fill.cost.bytes) == ("copy", 32, "fill", 16)
    assert repr(copy).startswith("<CopyStep: Array(")
    assert repr(fill).startswith("<FillStep: 2.0 -> Array(")
    with device.program([copy, fill]) as program:
        assert program.steps == (copy, fill)
