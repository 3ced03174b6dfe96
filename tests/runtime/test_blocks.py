"""Blocks of memory larger than a binding, and scratch memory that the caller brings."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from dashi import errors
from dashi.kernels.abi import Limits
from dashi.runtime import Device
from dashi.runtime._null_device import NullDevice
from dashi.runtime._vulkan_device import VulkanDevice


def test_parts_of_a_block_are_arrays(device: Device) -> None:
    pitch = device.part_alignment
    with device.block(8 * pitch) as block:
        x = block.array(0, pitch // 4)
        y = block.array(pitch, (2, pitch // 8))
        z = block.array(3 * pitch, 5, np.uint8)
        assert (x.offset, y.offset, z.dtype) == (0, pitch, np.uint8)
        x.write(np.arange(pitch // 4, dtype=np.float32))
        z.write(np.arange(5, dtype=np.uint8))
        device.run("scale", x, a=2.0, out=y.reshape(-1))
    assert block.closed
    # The arrays live on.
    assert np.array_equal(y.numpy().reshape(-1), 2 * np.arange(pitch // 4))
    assert z.numpy().tolist() == [0, 1, 2, 3, 4]


def test_parts_of_a_block_share_their_bytes_and_are_kept_apart_in_a_step(device: Device) -> None:
    pitch = device.part_alignment
    block = device.block(16 * pitch)
    whole = block.array(0, 4 * pitch, np.float32)
    low, same = block.array(0, pitch, np.float32), block.array(0, pitch, np.uint32)
    assert low.overlaps(whole)
    low.write(np.ones(pitch, np.float32))
    assert same.numpy()[0] == np.float32(1).view(np.uint32)
    high = block.array(4 * pitch, pitch, np.float32)
    middle = block.array(pitch, pitch, np.float32)
    with pytest.raises(errors.InputError, match="shares only some of its memory with an input"):
        device.bind("add", low, low, out=middle)
    with pytest.raises(errors.InputError, match=r"cannot write over its own operands\. Fix: "):
        device.bind("state_metrics", low, low, out=[block.array(8 * pitch, 16), block.array(8 * pitch, 4, np.uint32)])
    # Two steps may write the same bytes: they run in order.
    steps = [device.bind("add", low, low, out=high), device.bind("scale", low, a=5.0, out=high)]
    with device.program(steps) as program:
        program.run()
    assert set(high.numpy()) == {5.0}


MISUSES: dict[str, tuple[Any, type[errors.DashiError], str]] = {
    "misaligned": (lambda b: b.array(8, 4), errors.AlignmentError, "cannot start at byte 8 on "),
    "past the end": (lambda b: b.array(0, 1 << 20), errors.ShapeError, "are not within a block of 4096 bytes. Fix: "),
    "before the start": (lambda b: b.array(-256, 1), errors.ShapeError, "4 bytes from byte -256 on are not within"),
    "negative": (lambda b: b.array(0, -1), errors.ShapeError, "are not within"),
    "text": (lambda b: b.array("a", 1), errors.InputError, "a whole number, not 'a'"),
    "no shape": (lambda b: b.array(0, None), errors.ShapeError, "None is not a shape"),
    "closed": (lambda b: (b.close(), b.array(0, 1)), errors.ClosedError, "this block is closed. Fix: make a new one"),
}


@pytest.mark.parametrize("name", MISUSES)
def test_parts_that_do_not_fit_are_refused(device: Device, name: str) -> None:
    misuse, kind, text = MISUSES[name]
    with pytest.raises(kind) as caught:
        misuse(device.block(4096))
    assert text in str(caught.value)
    assert "Fix: " in str(caught.value)


def test_a_block_has_a_size(device: Device) -> None:
    for wrong in (0, -1):
        with pytest.raises(errors.InputError, match=f"a block of {wrong} bytes would hold nothing"):
            device.block(wrong)
    with pytest.raises(errors.InputError, match=r"the size of a block must be a whole number, not 2\.5"):
        device.block(2.5)  # type: ignore[arg-type]
    assert device.block(100).array(0, 0).numpy().shape == (0,)
    assert "100 bytes" in repr(device.block(100))


def test_a_block_may_be_larger_than_a_binding() -> None:
    with NullDevice(Limits(storage_range=1 << 12, invocations=256)) as null:
        with pytest.raises(errors.LimitError, match="larger than"):
            null.empty(1 << 12)
        block = null.block(1 << 16)
        parts = [block.array(start, 1 << 10) for start in range(0, 1 << 16, 1 << 12)]
        with null.program([null.bind("scale", part, out=part, a=2.0) for part in parts]) as program:
            assert (program.dispatches, program.barriers) == (16, 0)
        with pytest.raises(errors.LimitError, match=r"can bind \(4096\)\. Fix: take several arrays of the block"):
            block.array(0, 1 << 11)


def test_kernels_compute_beyond_the_storage_range_of_a_real_device(vulkan: VulkanDevice) -> None:
    limit = vulkan.limits.storage_range
    if limit > 1 << 27:
        pytest.skip("the block would be larger than memory for tests")
    block = vulkan.block(limit + (1 << 20))
    with pytest.raises(errors.LimitError, match="can bind"):
        block.array(0, limit // 4 + 1)
    # Across the limit, and behind it.
    near, far = block.array(limit - 4096, 2048), block.array(limit + 4096, 2048)
    near.write(np.arange(2048, dtype=np.float32))
    with vulkan.program([vulkan.bind("scale", near, out=far, a=3.0)], fetch=[far]) as program:
        program.run()
        assert np.array_equal(program.fetched(far), 3 * np.arange(2048))
    with pytest.raises(errors.LimitError, match=r"allocates at once \(\d+\)\. Fix: make several blocks"):
        vulkan.block(1 << 40)


def test_scratch_memory_is_the_callers(vulkan: VulkanDevice) -> None:
    values = np.random.default_rng(3).standard_normal(100_000).astype(np.float32)
    x = vulkan.array(values)
    needed = vulkan.scratch_bytes("reduce_sum", x)
    assert needed > 0
    block = vulkan.block(needed + vulkan.part_alignment)
    scratch = block.array(vulkan.part_alignment, needed, np.uint8)
    before = vulkan.memory().allocations
    outs = [vulkan.empty(1), vulkan.empty(1)]
    steps = [vulkan.bind("reduce_sum", x, out=out, scratch=scratch) for out in outs]
    assert vulkan.memory().allocations == before + 2
    with vulkan.program(steps) as program:
        # Two sums in one scratch memory run one after the other.
        assert program.barriers >= 2
        program.check()
        program.run()
    wanted = vulkan.run("reduce_sum", x).numpy()
    for out in outs:
        assert np.array_equal(out.numpy(), wanted)


def test_scratch_memory_that_does_not_do_is_refused(vulkan: VulkanDevice) -> None:
    x = vulkan.array(np.ones(100_000, np.float32))
    with pytest.raises(errors.ShapeError, match=r"needs \d+ bytes of scratch memory here.* Fix: ask beforehand"):
        vulkan.bind("reduce_sum", x, scratch=vulkan.empty(4, np.uint8))
    with pytest.raises(errors.InputError, match="its scratch memory overlaps an operand"):
        vulkan.bind("reduce_sum", x, scratch=x)
    with pytest.raises(errors.InputError, match="scratch is a int, not an array of this device"):
        vulkan.bind("reduce_sum", x, scratch=5)  # type: ignore[arg-type]


def test_numpy_needs_no_scratch_memory_and_takes_it_all_the_same(device: Device) -> None:
    x = device.array(np.ones(100_000, np.float32))
    needed = device.scratch_bytes("reduce_sum", x)
    assert device.scratch_bytes("add", x, x) == 0
    step = device.bind("reduce_sum", x, scratch=device.empty(max(needed, 1), np.uint8))
    with device.program([step]) as program:
        program.run()
    assert step.outputs[0].numpy()[0] == 100_000
    with pytest.raises(errors.InputError, match="not an array of this device"):
        device.bind("add", x, x, scratch="much")  # type: ignore[arg-type]
