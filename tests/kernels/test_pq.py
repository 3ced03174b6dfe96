"""What the PQ codec promises beyond agreeing with its references: lossless, exact, signs once, ties low."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from dashi import kernels
from dashi.errors import InputError, ShapeError
from dashi.kernels.abi import Call, Kernel, Plan
from dashi.kernels.pq._planes import BLOCK, SUPER, encode, encode_repeated
from dashi.runtime._cpu_device import CpuDevice
from dashi.runtime._vulkan_device import VulkanDevice
from dashi.runtime.device import Device

SHARED_DEVICE = settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
EDGES = [e + d for e in (0, 32, BLOCK, 4 * BLOCK, SUPER, 2 * SUPER) for d in (-1, 0, 1) if e + d >= 0]


@st.composite
def fields(draw: st.DrawFn) -> np.ndarray:
    """Fields of awkward lengths: all zero, all set, one site, sparse, dense, and long gaps."""
    n = draw(st.one_of(st.integers(0, 200), st.sampled_from(EDGES)))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    density = draw(st.sampled_from([0.0, 0.001, 0.3, 0.97, 1.0]))
    signs = 2 * rng.integers(0, 2, n, dtype=np.int8) - 1
    field = np.where(rng.random(n) < density, signs, 0).astype(np.int8)
    if n and draw(st.booleans()):
        field[draw(st.integers(0, n - 1))] = draw(st.sampled_from([-1, 1]))
    return field


def round_trip(device: Device, field: np.ndarray) -> np.ndarray:
    *planes, count = device.run("pq_pack_bits", field)
    assert count.numpy().tolist() == [np.count_nonzero(field)]
    return device.run("pq_unpack_bits", *planes, n=field.size).numpy()


@SHARED_DEVICE
@given(field=fields())
@example(field=np.zeros(0, np.int8))
@example(field=np.ones(SUPER + 1, np.int8))
@example(field=-np.ones(3 * SUPER, np.int8))
def test_every_field_comes_back_as_it_went_in(device: Device, field: np.ndarray) -> None:
    assert np.array_equal(round_trip(device, field), field)


def test_fields_with_superblocks_between_that_hold_nothing_come_back(device: Device) -> None:
    # Words of the sign plane that take bits from many superblocks, empty ones between them.
    field = np.zeros(40 * SUPER + 7, np.int8)
    field[::SUPER] = -1
    field[5 * SUPER : 30 * SUPER] = 0
    field[-1] = 1
    assert np.array_equal(round_trip(device, field), field)


def test_a_grid_packs_like_its_sites_in_a_row(device: Device) -> None:
    field = np.random.default_rng(3).integers(-1, 2, (17, 61), dtype=np.int8)
    whole = [a.numpy().tobytes() for a in device.run("pq_pack_bits", field)]
    assert whole == [a.numpy().tobytes() for a in device.run("pq_pack_bits", field.reshape(-1))]


def test_planes_of_a_repeated_field_are_made_quickly_and_right() -> None:
    field = np.random.default_rng(5).integers(-1, 2, 2 * SUPER, dtype=np.int8)
    with pytest.raises(InputError, match="does not repeat in whole words"):
        encode_repeated(np.append(np.ones(SUPER - 1, np.int8), 0), 2)
    held = np.flatnonzero(field)
    field[held[held.size - held.size % 32 :]] = 0
    for ours, theirs in zip(encode_repeated(field, 3), encode(np.tile(field, 3)), strict=True):
        assert np.array_equal(ours, theirs)


@SHARED_DEVICE
@given(field=fields(), seed=st.integers(0, 2**32 - 1))
def test_a_rank_is_the_number_of_supported_sites_before(device: Device, field: np.ndarray, seed: int) -> None:
    support, _, blocks, supers, _ = device.run("pq_pack_bits", field)
    places = np.random.default_rng(seed).integers(0, field.size + 2, 50).astype(np.uint32)
    got = device.run("pq_rank", support, blocks, supers, places, n=field.size).numpy()
    assert got.tolist() == [np.count_nonzero(field[:place]) for place in places]


@SHARED_DEVICE
@given(field=fields())
def test_a_real_field_is_rebuilt_from_signs_and_magnitudes(device: Device, field: np.ndarray) -> None:
    real = (field * np.random.default_rng(field.size).uniform(0.5, 2, field.size)).astype(np.float32)
    *planes, _ = device.run("pq_pack_bits", field)
    magnitudes = np.abs(real[field != 0])
    assert np.array_equal(device.run("pq_reconstruct", *planes, magnitudes, n=field.size).numpy(), real)


def test_the_sign_is_applied_once_whatever_sign_a_magnitude_has(device: Device) -> None:
    field = np.array([1, -1, 0, -1, 1], np.int8)
    *planes, _ = device.run("pq_pack_bits", field)
    signed = np.array([2, -3, -4, 5], np.float32)
    got = device.run("pq_reconstruct", *planes, signed, n=5).numpy()
    assert got.tolist() == [2, -3, 0, -4, 5]
    # A magnitude of zero has no sign: -0 is never stored.
    nothing = device.run("pq_reconstruct", *planes, np.zeros(4, np.float32), n=5).numpy()
    assert nothing.tobytes() == bytes(20)


@SHARED_DEVICE
@given(codes=st.lists(st.integers(0, 15), max_size=100))
def test_four_bit_codes_come_back(device: Device, codes: list[int]) -> None:
    packed = device.run("pack_u4", np.array(codes, np.uint8))
    assert packed.shape == (-(-len(codes) // 8),)
    assert device.run("unpack_u4", packed, n=len(codes)).numpy().tolist() == codes


def test_the_first_code_lies_in_the_lowest_bits(device: Device) -> None:
    assert device.run("pack_u4", np.arange(1, 10, dtype=np.uint8)).numpy().tolist() == [0x87654321, 9]


def test_the_nearest_of_equals_has_the_lowest_index(device: Device) -> None:
    table = np.array([[1, 2, 0], [5, 0, 5]], np.float32)
    codes = np.tile(np.array([[1, 0], [2, 1]], np.uint8), (40000, 1))
    codes[:70001] = [1, 0]
    distances, nearest = device.run("pq_distance_argmin", table, codes)
    assert nearest.numpy().tolist() == [70001]
    assert distances.numpy()[[0, 70001, 70002]].tolist() == [7, 0, 7]
    codes[:] = [0, 2]
    assert device.run("pq_distance_argmin", table, codes)[1].numpy().tolist() == [0]
    codes[77777] = [0, 1]
    assert device.run("pq_distance_argmin", table, codes)[1].numpy().tolist() == [77777]


def test_a_code_that_the_table_lacks_is_never_nearest_unless_all_are(device: Device) -> None:
    table = np.array([[3, 4]], np.float32)
    distances, nearest = device.run("pq_distance_argmin", table, np.array([[2], [255], [1]], np.uint8))
    assert distances.numpy().tolist() == [np.inf, np.inf, 4]
    assert nearest.numpy().tolist() == [2]
    assert device.run("pq_distance_argmin", table, np.array([[9], [9]], np.uint8))[1].numpy().tolist() == [0]


def test_the_first_nan_comes_before_all_distances(device: Device) -> None:
    table = np.array([[3, -np.nan, -np.inf]], np.float32)
    nearest = device.run("pq_distance_argmin", table, np.array([[0], [2], [1], [1]], np.uint8))[1]
    assert nearest.numpy().tolist() == [2]


def test_the_nearest_of_nothing_is_refused(device: Device) -> None:
    with pytest.raises(ShapeError) as caught:
        device.run("pq_distance_argmin", np.zeros((2, 3), np.float32), np.zeros((0, 2), np.uint8))
    assert str(caught.value) == ("the nearest of no items is not defined. Fix: pass codes of at least one item.")


def test_table_and_lookup_find_the_coded_vector_that_is_nearest(device: Device) -> None:
    rng = np.random.default_rng(8)
    m, k, d = 4, 16, 3
    books = rng.standard_normal((m, k, d)).astype(np.float32)
    codes = rng.integers(0, k, (500, m)).astype(np.uint8)
    query = books[np.arange(m), codes[321]]
    table = device.run("pq_lut_build", query, books)
    distances, nearest = device.run("pq_distance_argmin", table, codes)
    assert nearest.numpy().tolist() == [321]
    assert distances.numpy()[321] == 0
    exact = ((books[np.arange(m), codes] - query).astype(np.float64) ** 2).sum((1, 2))
    # A sum of 12 squares, each rounded a few times in single precision.
    assert np.allclose(distances.numpy(), exact, rtol=2e-6, atol=0)


@SHARED_DEVICE
@given(field=fields(), bits=st.integers(0, 2**32 - 1), rest=st.integers(0, 2**32 - 1))
def test_the_description_length_is_exact(device: Device, field: np.ndarray, bits: int, rest: int) -> None:
    support = device.run("pq_pack_bits", field)[0]
    n, k = field.size, int(np.count_nonzero(field))
    got = device.run("description_length", support, n=n, bits_per_code=bits, residual_bytes=rest).numpy()
    assert got.tolist() == [n + k + k * bits + 8 * rest]


def test_planes_of_another_length_are_refused(device: Device) -> None:
    lists: list[Any] = [np.zeros(n, np.uint32) for n in (2, 1, 1, 1)]
    with pytest.raises(ShapeError) as caught:
        device.run("pq_unpack_bits", *lists, n=33)
    assert str(caught.value) == (
        "kernel 'pq_unpack_bits': signs has shape (1,) for (n/32), but n/32 is 2. Fix: give signs the length 2 there."
    )


def test_a_field_of_a_million_sites_has_the_same_planes_everywhere(vulkan: VulkanDevice) -> None:
    field = np.random.default_rng(9).integers(-1, 2, 1_000_003, dtype=np.int8)
    with CpuDevice() as cpu:
        expected = [a.numpy().tobytes() for a in cpu.run("pq_pack_bits", field)]
    assert [a.numpy().tobytes() for a in vulkan.run("pq_pack_bits", field)] == expected


def test_more_superblocks_than_a_workgroup_adds_at_once_keep_their_ranks(vulkan: VulkanDevice) -> None:
    many = 1100
    field = np.resize(np.random.default_rng(12).integers(-1, 2, 100_003, dtype=np.int8), many * SUPER)
    *planes, count = vulkan.run("pq_pack_bits", field)
    held = np.count_nonzero(field.reshape(many, SUPER), axis=1)
    assert planes[3].numpy().tolist() == [0, *np.cumsum(held)[:-1].tolist()]
    assert count.numpy().tolist() == [held.sum()]
    assert np.array_equal(vulkan.run("pq_unpack_bits", *planes, n=field.size).numpy(), field)


def planned(name: str, **changes: Any) -> Kernel:
    """The kernel as it is planned within other limits."""
    kernel = kernels.get(name)

    def plan(call: Call) -> Plan:
        return kernel.plan(replace(call, limits=replace(call.limits, **changes)))

    return replace(kernel, plan=plan)


def test_the_number_of_workgroups_does_not_change_the_bits(vulkan: VulkanDevice) -> None:
    field = np.random.default_rng(10).integers(-1, 2, 10 * SUPER + 77, dtype=np.int8)
    *planes, count = vulkan.run("pq_pack_bits", field)
    few = vulkan.run(planned("pq_pack_bits", groups=3), field)
    assert [a.numpy().tobytes() for a in few] == [a.numpy().tobytes() for a in (*planes, count)]
    assert np.array_equal(vulkan.run(planned("pq_unpack_bits", groups=3), *planes, n=field.size).numpy(), field)
    ones = np.ones(int(count.numpy()[0]), np.float32)
    real = vulkan.run(planned("pq_reconstruct", groups=3), *planes, ones, n=field.size).numpy()
    assert np.array_equal(real, field)
    length = vulkan.run(planned("description_length", groups=3), planes[0], n=field.size).numpy()
    assert length.tolist() == [field.size + ones.size]


def test_the_nearest_is_found_among_more_candidates_than_a_workgroup_has_members(vulkan: VulkanDevice) -> None:
    codes = np.ones((80000, 1), np.uint8)
    codes[[78000, 79999]] = 0
    kernel = planned("pq_distance_argmin", software=False)
    assert vulkan.run(kernel, np.array([[1, 2]], np.float32), codes)[1].numpy().tolist() == [78000]
