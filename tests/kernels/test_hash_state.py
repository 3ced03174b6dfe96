"""hash_state and its host twin against the PyPI package blake3, which is the oracle."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import blake3
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dashi import kernels
from dashi.kernels.abi import Call
from dashi.kernels.hash._blake3 import chunk_values, digest128, hexdigest128
from dashi.runtime import Device
from dashi.runtime._cpu_device import CpuDevice
from dashi.runtime._vulkan_device import VulkanDevice
from dashi.types import DTYPES

CHUNK = 1024
# Around words, blocks, chunks, and every shape that the tree's right edge can have up to some depth.
LENGTHS = sorted(
    {0, 4, 60, 64, 68, 1020, 1024, 1028, 2048, 3 * CHUNK, 5 * CHUNK + 4, 7 * CHUNK, 11 * CHUNK - 4, 700 * CHUNK + 8}
    | {(1 << k) * CHUNK + d for k in (1, 2, 3, 5, 7, 8, 9) for d in (-CHUNK, -4, 0, 4, CHUNK)}
)
EMPTY = "af1349b9f5f9a1a6a0404dea36dcc949"


def oracle(data: bytes) -> np.ndarray[Any, Any]:
    return np.frombuffer(blake3.blake3(data).digest(length=16), "<u4")


def words(nbytes: int, seed: int = 0) -> np.ndarray[Any, Any]:
    return np.frombuffer(np.random.default_rng([seed, nbytes]).bytes(nbytes), np.uint32)


def on(device: Device, array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    return device.run("hash_state", array).numpy()


@pytest.mark.parametrize("nbytes", LENGTHS)
def test_hash_is_blake3_at_every_edge_of_blocks_chunks_and_tree(device: Device, nbytes: int) -> None:
    data = words(nbytes)
    result = on(device, data)
    assert result.dtype == np.uint32
    assert result.shape == (4,)
    assert np.array_equal(result, oracle(data.tobytes()))


@pytest.mark.parametrize("dtype", ["f32", "f64", "u32", "i32", "u64", "i64"])
def test_hash_sees_the_raw_bits_of_every_type(device: Device, dtype: str) -> None:
    data = words(3 * CHUNK + 8).view(DTYPES[dtype].numpy)
    assert np.array_equal(on(device, data), oracle(data.tobytes()))


# Above the chunks the tree takes two passes, then three, with the last chunk carried up alone.
@pytest.mark.parametrize("nbytes", [3_000_004, (1 << 26) + 4])
def test_hash_of_megabytes(device: Device, nbytes: int) -> None:
    data = words(nbytes)
    assert np.array_equal(on(device, data), oracle(data.tobytes()))


@pytest.mark.gpu
def test_hash_of_a_gibibyte(vulkan: VulkanDevice) -> None:
    data = words(1 << 30)
    assert np.array_equal(on(vulkan, data), oracle(data.tobytes()))


@given(count=st.integers(0, 20_000), seed=st.integers(0, 1000))
def test_device_gives_blake3_for_any_length(vulkan_session: VulkanDevice, count: int, seed: int) -> None:
    data = words(4 * count, seed)
    assert np.array_equal(on(vulkan_session, data), oracle(data.tobytes()))


@given(count=st.integers(0, 5_000), seed=st.integers(0, 1000))
def test_host_gives_blake3_for_any_length_in_bytes(count: int, seed: int) -> None:
    data = np.random.default_rng([seed, count]).bytes(count)
    assert np.array_equal(digest128(data), oracle(data))


def test_hash_depends_on_the_place_of_every_word(device: Device) -> None:
    data = words(70 * CHUNK).copy()
    before = on(device, data)
    for one, other in ((0, 1), (15, 16), (3, 259), (255, 256), (7, 64 * 256 + 7)):
        swapped = data.copy()
        swapped[[one, other]] = swapped[[other, one]]
        assert not np.array_equal(on(device, swapped), before)


def test_hash_tells_apart_what_canonical_arithmetic_would_not(device: Device) -> None:
    zeros = on(device, np.zeros(8, np.float32))
    assert not np.array_equal(on(device, np.full(8, -0.0, np.float32)), zeros)
    assert not np.array_equal(on(device, np.full(8, 1e-40, np.float32)), zeros)
    assert not np.array_equal(on(device, np.zeros(9, np.float32)), zeros)


def test_hash_ignores_the_shape_and_takes_c_order() -> None:
    flat = words(24 * CHUNK)
    grid = flat.reshape(6, -1)
    with CpuDevice() as cpu:
        assert np.array_equal(on(cpu, grid), oracle(flat.tobytes()))
    assert np.array_equal(digest128(grid.T), oracle(grid.T.tobytes()))
    assert np.array_equal(digest128(flat[::2]), oracle(flat[::2].tobytes()))


@pytest.mark.parametrize("wrap", [bytes, bytearray, memoryview])
def test_host_takes_anything_that_holds_bytes(wrap: Any) -> None:
    text = b"a" * 1025
    assert hexdigest128(wrap(text)) == blake3.blake3(text).digest(length=16).hex()


def test_hex_digest_has_32_lower_case_digits() -> None:
    assert hexdigest128(b"") == EMPTY
    assert hexdigest128(np.empty((0, 3))) == EMPTY


def test_host_counts_chunks_with_64_bits() -> None:
    """A chunk's counter is a word pair; two chunks 2^32 apart must differ, though no test can hold all between."""
    chunk = np.zeros(CHUNK, np.uint8)
    values = [chunk_values(chunk, first, root=False) for first in (0, 1 << 32, 1)]
    assert not np.array_equal(values[0], values[1])
    assert not np.array_equal(values[1], values[2])


@pytest.mark.parametrize(
    ("nbytes", "dispatches"), [(0, 1), (1024, 1), (1028, 2), (1 << 18, 2), (1 << 26, 3), (1 << 30, 4)]
)
def test_plan_needs_few_dispatches(nbytes: int, dispatches: int) -> None:
    kernel = kernels.get("hash_state")
    call = Call(DTYPES["f32"], {"x": (nbytes // 4,), "result": (4,)}, {"size": nbytes // 4}, {})
    plan = kernel.plan(call)
    assert len(plan.dispatches) == dispatches == kernel.cost(call).dispatches
    assert plan.dispatches[-1].buffers[1] == "result"


def test_cost_counts_every_compression_once() -> None:
    kernel = kernels.get("hash_state")
    call = Call(DTYPES["f64"], {"x": (3 * 128 + 1,), "result": (4,)}, {"size": 385}, {})
    # 49 blocks in four chunks, three parents.
    assert kernel.cost(call).flops == (49 + 3) * (7 * 8 * 14 + 8)
    assert kernel.cost(call).bytes == 385 * 8 + 2 * 4 * 32 + 16


def test_long_lists_take_several_dispatches_with_the_same_hash(fresh_vulkan: VulkanDevice) -> None:
    values = np.arange(70_000, dtype=np.uint32)
    whole = fresh_vulkan.run("hash_state", values).numpy()
    fresh_vulkan._limits = replace(fresh_vulkan.limits, groups=2)  # pyright: ignore[reportPrivateUsage]
    array = fresh_vulkan.array(values)
    step = fresh_vulkan.bind("hash_state", array)
    assert len(step.lowered.dispatches) > 4
    with fresh_vulkan.program([step]) as program:
        program.run()
    assert np.array_equal(step.outputs[0].numpy(), whole)
