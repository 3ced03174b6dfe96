"""What the ternary kernels promise beyond agreeing with their references: support, signs, projection, exact counts."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dashi import kernels
from dashi.errors import InputError, ShapeError
from dashi.kernels._torus import box_sums, moved, shifts
from dashi.kernels.abi import Call, Kernel, Plan
from dashi.runtime._cpu_device import CpuDevice
from dashi.runtime._vulkan_device import VulkanDevice
from dashi.runtime.device import Device

SHARED_DEVICE = settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
SHAPES = st.one_of(
    st.tuples(st.integers(1, 300)),
    st.tuples(st.integers(1, 20), st.integers(1, 40)),
    st.tuples(st.integers(1, 20), st.sampled_from([16, 32, 48])),
)


@st.composite
def fields(draw: st.DrawFn) -> np.ndarray:
    shape = draw(SHAPES)
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    density = draw(st.sampled_from([0.0, 0.05, 0.5, 1.0]))
    signs = 2 * rng.integers(0, 2, shape, dtype=np.int8) - 1
    return np.where(rng.random(shape) < density, signs, 0).astype(np.int8)


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_threshold_admits_rejects_and_projects(device: Device, kind: Any) -> None:
    less = np.nextafter(kind(0.5), kind(0))
    x = np.array([0.5, less, -0.5, -less, np.inf, -np.inf, np.nan, -0.0], kind)
    assert device.run("ternary_threshold", x, tau=0.5).numpy().tolist() == [1, 0, -1, 0, 1, -1, 0, 0]


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_a_threshold_of_zero_admits_every_number(device: Device, kind: Any) -> None:
    tiny = np.finfo(kind).smallest_subnormal
    x = np.array([0.0, -0.0, -tiny, tiny, -1e-20, 1e-20, np.nan], kind)
    # What counts as zero is +1, whatever its sign.
    assert device.run("ternary_threshold", x, tau=0).numpy().tolist() == [1, 1, 1, 1, -1, 1, 0]


@pytest.mark.parametrize("tau", [-1.0, float("nan")])
def test_a_negative_threshold_is_refused(device: Device, tau: float) -> None:
    with pytest.raises(InputError) as caught:
        device.run("ternary_threshold", np.zeros(3, np.float32), tau=tau)
    assert str(caught.value) == f"a threshold of {tau} admits nothing sensible. Fix: pass tau >= 0."


@SHARED_DEVICE
@given(field=fields(), radius=st.integers(0, 3), eta=st.integers(-1, 12), centre=st.integers(-2, 40))
def test_majority_never_grows_support(device: Device, field: np.ndarray, radius: int, eta: int, centre: int) -> None:
    got = device.run("ternary_majority", field, radius=radius, eta=eta, centre=centre).numpy()
    assert not np.any(got[field == 0])
    assert set(np.unique(got)) <= {-1, 0, 1}


def test_majority_grows_support_when_asked(device: Device) -> None:
    for width in (16, 15):
        field = np.zeros((9, width), np.int8)
        field[4, 0] = -1
        got = device.run("ternary_majority", field, grow=1).numpy()
        expected = np.zeros_like(field)
        expected[3:6, [0, 1, width - 1]] = -1
        assert np.array_equal(got, expected)


@SHARED_DEVICE
@given(field=fields(), eta=st.integers(1, 9), grow=st.integers(0, 1))
def test_majority_treats_both_signs_alike(device: Device, field: np.ndarray, eta: int, grow: int) -> None:
    got = device.run("ternary_majority", field, eta=eta, grow=grow).numpy()
    assert np.array_equal(device.run("ternary_majority", -field, eta=eta, grow=grow).numpy(), -got)


@SHARED_DEVICE
@given(field=fields(), steps=st.integers(-9, 9), axis=st.integers(0, 1))
def test_majority_moves_with_the_field(device: Device, field: np.ndarray, steps: int, axis: int) -> None:
    axis = min(axis, field.ndim - 1)
    moved = device.run("ternary_majority", np.roll(field, steps, axis)).numpy()
    assert np.array_equal(moved, np.roll(device.run("ternary_majority", field).numpy(), steps, axis))


@SHARED_DEVICE
@given(field=fields(), eta=st.integers(-1, 9), grow=st.integers(0, 1))
def test_weights_of_one_give_the_plain_majority(device: Device, field: np.ndarray, eta: int, grow: int) -> None:
    weights = np.ones((1 if field.ndim == 1 else 3, 3), np.int32)
    got = device.run("ternary_majority_weighted", field, weights, eta=eta, grow=grow).numpy()
    assert np.array_equal(got, device.run("ternary_majority", field, eta=eta, grow=grow).numpy())


def test_a_weight_points_to_the_neighbour_at_its_place(device: Device) -> None:
    field = np.array([[1, -1, 0], [0, 1, 1], [-1, 1, 1]], np.int8)
    weights = np.zeros((3, 3), np.int32)
    weights[0, 2] = 1  # one row up, one column on
    got = device.run("ternary_majority_weighted", field, weights, grow=1).numpy()
    assert np.array_equal(got, np.roll(field, (1, -1), (0, 1)))


def test_weights_without_a_middle_are_refused(device: Device) -> None:
    with pytest.raises(ShapeError) as caught:
        device.run("ternary_majority_weighted", np.zeros((4, 4), np.int8), np.ones((2, 3), np.int32))
    assert str(caught.value) == (
        "kernel 'ternary_majority_weighted': weights of shape (2, 3) have no middle for a field of shape (4, 4). "
        "Fix: pass an odd number of rows and columns; one row for a field of one dimension."
    )


def test_a_field_of_three_dimensions_is_refused(device: Device) -> None:
    with pytest.raises(ShapeError) as caught:
        device.run("ternary_majority", np.zeros((2, 2, 2), np.int8))
    assert str(caught.value) == (
        "kernel 'ternary_majority': s has shape (2, 2, 2); neighbours are known on rings and grids. "
        "Fix: pass a field of shape (w,) or (h, w)."
    )


def opposite_pairs(field: np.ndarray) -> int:
    """Neighbours, along any axis and round the ends, of opposite sign."""
    return sum(int(np.sum(field * np.roll(field, 1, axis) == -1)) for axis in range(field.ndim))


@SHARED_DEVICE
@given(field=fields(), radius=st.integers(0, 3))
def test_annihilation_of_pairs_is_a_projector(device: Device, field: np.ndarray, radius: int) -> None:
    got = device.run("ternary_annihilate_pairs", field, radius=radius).numpy()
    assert np.all((got == field) | (got == 0))
    assert np.array_equal(device.run("ternary_annihilate_pairs", got, radius=radius).numpy(), got)
    assert opposite_pairs(got) <= (0 if radius else opposite_pairs(field))


@SHARED_DEVICE
@given(field=fields(), eps=st.sampled_from([0.0, 0.5, -0.25, 1.0]), seed=st.integers(0, 2**32 - 1))
def test_annihilation_by_coherence_is_a_projector(device: Device, field: np.ndarray, eps: float, seed: int) -> None:
    coherence = np.random.default_rng(seed).choice([0, 0.5, 0.75, 1, np.nan, np.inf], field.shape).astype(np.float32)
    got = device.run("ternary_annihilate", field, coherence, eps=eps).numpy()
    assert np.array_equal(got, np.where(coherence > eps, field, 0))
    assert np.array_equal(device.run("ternary_annihilate", got, coherence, eps=eps).numpy(), got)
    assert opposite_pairs(got) <= opposite_pairs(field)


@pytest.mark.parametrize(("way", "share"), [("trits2", 16), ("trits5", 20)])
@SHARED_DEVICE
@given(field=fields())
def test_packed_trits_come_back(device: Device, way: str, share: int, field: np.ndarray) -> None:
    packed = device.run(f"pack_{way}", field)
    assert packed.shape == (-(-field.size // share),)
    assert np.array_equal(device.run(f"unpack_{way}", packed, n=field.size).numpy(), field.reshape(-1))


def test_packed_trits_lie_where_the_format_says(device: Device) -> None:
    field = np.array([1, -1, 0, 1, -1, 0, 0, 1], np.int8)
    assert device.run("pack_trits2", field).numpy().tolist() == [0b01_00_00_11_01_00_11_01]
    data = device.run("pack_trits5", field).numpy().view(np.uint8)
    assert data.tolist() == [1 + 2 * 3 + 0 * 9 + 1 * 27 + 2 * 81, 0 + 0 * 3 + 1 * 9, 0, 0]


@SHARED_DEVICE
@given(field=fields(), seed=st.integers(0, 2**32 - 1))
def test_dot_and_popcount_count_exactly(device: Device, field: np.ndarray, seed: int) -> None:
    other = np.random.default_rng(seed).integers(-1, 2, field.shape, dtype=np.int8)
    a, b = device.run("pack_trits2", field), device.run("pack_trits2", other)
    assert device.run("ternary_dot", a, b).numpy().tolist() == [int((field.astype(int) * other).sum())]
    counts = device.run("ternary_popcount", a, n=field.size).numpy()
    assert counts.tolist() == [int((field == v).sum()) for v in (1, -1, 0)]


def as_hardware(name: str) -> Kernel:
    """The kernel as it is planned for hardware, which takes more workgroups."""
    kernel = kernels.get(name)

    def plan(call: Call) -> Plan:
        return kernel.plan(replace(call, limits=replace(call.limits, software=False)))

    return replace(kernel, plan=plan)


def test_counts_go_on_past_one_partial_sum_per_invocation(vulkan: VulkanDevice) -> None:
    # More workgroups in the first pass than the second has invocations.
    field = np.full(16 * 256 * 300 + 5, -1, np.int8)
    packed, flipped = vulkan.run("pack_trits2", field), vulkan.run("pack_trits2", -field)
    popcount, dot = as_hardware("ternary_popcount"), as_hardware("ternary_dot")
    assert vulkan.run(popcount, packed, n=field.size).numpy().tolist() == [0, field.size, 0]
    assert vulkan.run(dot, packed, packed).numpy().tolist() == [field.size]
    assert vulkan.run(dot, packed, flipped).numpy().tolist() == [-field.size]


@pytest.mark.parametrize("name", ["ternary_majority", "ternary_annihilate_pairs", "pack_trits2", "pack_trits5"])
def test_the_number_of_workgroups_does_not_change_the_bits(vulkan: VulkanDevice, name: str) -> None:
    kernel = kernels.get(name)

    def plan(call: Call) -> Plan:
        return kernel.plan(replace(call, limits=replace(call.limits, groups=3)))

    for shape in ((512, 256), (255, 257)):
        field = np.random.default_rng(11).integers(-1, 2, shape, dtype=np.int8)
        expected = vulkan.run(name, field).numpy()
        assert vulkan.run(replace(kernel, plan=plan), field).numpy().tobytes() == expected.tobytes()


@pytest.mark.parametrize(("shape", "radius"), [((0,), 1 << 31), ((0, 4), 1 << 28), ((5,), 1 << 31), ((3, 4), 1 << 28)])
def test_a_radius_beyond_every_field_ends_on_the_host(shape: tuple[int, ...], radius: int) -> None:
    field = np.resize(np.array([1, 0, -1, 1], np.int8), shape)
    with CpuDevice() as cpu:
        assert cpu.run("ternary_annihilate_pairs", field, radius=radius).numpy().tolist() == (0 * field).tolist()
        assert cpu.run("ternary_majority", field, radius=radius).numpy().shape == shape


@pytest.mark.parametrize("shape", [(1,), (5,), (3, 4), (6, 5)])
@pytest.mark.parametrize("radius", [0, 1, 2, 7, 11])
def test_sums_over_boxes_count_every_turn_round_the_field(shape: tuple[int, ...], radius: int) -> None:
    field = np.random.default_rng(radius).integers(-1, 2, shape).astype(np.int32)
    assert (box_sums(field, radius) == sum(moved(field, shift) for shift in shifts(shape, radius))).all()
