"""What sort, argsort and sort_pairs promise beyond agreeing with their references."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as nps

from dashi import kernels
from dashi.errors import InputError, ShapeError
from dashi.kernels._calls import resolve_call
from dashi.kernels._segments import segments
from dashi.kernels._validate import check_plan
from dashi.kernels.abi import Limits
from dashi.kernels.sort._order import KEYS, order_words
from dashi.runtime._vulkan_device import VulkanDevice
from dashi.runtime.device import Device
from dashi.types import DTYPES

QUIET = {np.float32: 0x7FC00000, np.float64: 0x7FF8000000000000}
FLOATS = pytest.mark.parametrize("kind", list(QUIET))


@pytest.mark.parametrize("name", KEYS)
def test_keys_are_sorted_as_numpy_sorts_them(device: Device, name: str) -> None:
    keys = np.frombuffer(np.random.default_rng(3).bytes(3000 * 8), DTYPES[name].numpy)[:3000]
    keys = keys[~np.isnan(keys)] if keys.dtype.kind == "f" else keys
    assert (device.run("sort", keys).numpy() == np.sort(keys)).all()
    assert (device.run("sort", keys, descending=1).numpy() == np.sort(keys)[::-1]).all()


@pytest.mark.parametrize("name", KEYS)
def test_equal_keys_stay_in_the_order_in_which_they_came_both_ways(device: Device, name: str) -> None:
    keys = np.random.default_rng(4).integers(0, 5, 2000).astype(DTYPES[name].numpy)
    for descending in (0, 1):
        places = device.run("argsort", keys, descending=descending).numpy().astype(np.int64)
        equal = keys[places][1:] == keys[places][:-1]
        assert (np.diff(places)[equal] > 0).all()
        assert sorted(places.tolist()) == list(range(2000))


@FLOATS
def test_every_nan_comes_last_both_ways_and_leaves_canonical(device: Device, kind: Any) -> None:
    quiet = np.dtype(f"u{np.dtype(kind).itemsize}").type(QUIET[kind])
    sign = quiet.dtype.type(1 << (8 * quiet.itemsize - 1))
    odd = np.array([quiet | quiet.dtype.type(0x123), quiet | sign, quiet - quiet.dtype.type(1)]).view(kind)
    keys = np.concatenate([odd[:2], np.array([np.inf, 1, -np.inf], kind), odd[2:]])
    for descending, first in ((0, [-np.inf, 1, np.inf]), (1, [np.inf, 1, -np.inf])):
        got = device.run("sort", keys, descending=descending).numpy()
        assert got[:3].tolist() == first
        assert got[3:].view(quiet.dtype).tolist() == [int(quiet)] * 3
        assert device.run("argsort", keys, descending=descending).numpy()[3:].tolist() == [0, 1, 5]


@FLOATS
def test_both_zeros_are_equal_and_keep_their_signs(device: Device, kind: Any) -> None:
    keys = np.array([0.0, -1.0, -0.0, 0.0, -0.0], kind)
    assert device.run("argsort", keys).numpy().tolist() == [1, 0, 2, 3, 4]
    assert np.signbit(device.run("sort", keys).numpy()).tolist() == [True, False, True, False, True]
    assert np.signbit(device.run("sort", keys, descending=1).numpy()).tolist() == [False, True, False, True, True]


@FLOATS
def test_subnormals_are_neither_flushed_nor_equal(device: Device, kind: Any) -> None:
    tiny = np.finfo(kind).smallest_subnormal
    keys = np.array([3 * tiny, -tiny, tiny, 0, 2 * tiny, -2 * tiny], kind)
    got = device.run("sort", keys).numpy()
    assert got.tobytes() == np.array([-2 * tiny, -tiny, 0, tiny, 2 * tiny, 3 * tiny], kind).tobytes()


@pytest.mark.parametrize("kind", [np.float32, np.int32, np.float64, np.uint64])
def test_values_of_any_32_or_64_bits_go_with_their_keys(device: Device, kind: Any) -> None:
    keys = np.random.default_rng(5).permutation(1500).astype(np.uint32)
    values = np.frombuffer(np.random.default_rng(6).bytes(1500 * np.dtype(kind).itemsize), kind)
    ours = device.array(values)
    got, moved = device.run("sort_pairs", device.array(keys), ours.view(np.uint32).reshape(1500, -1))
    assert (got.numpy() == np.arange(1500)).all()
    assert moved.reshape(-1).view(kind).numpy().tobytes() == values[np.argsort(keys)].tobytes()


@FLOATS
def test_the_largest_and_smallest_are_taken_with_the_first_of_equal_ones(device: Device, kind: Any) -> None:
    keys = np.array([2, np.nan, 5, -1, 5, 0, -1], kind)
    for largest, values, places in ((1, [5, 5, 2], [2, 4, 0]), (0, [-1, -1, 0], [3, 6, 5])):
        got, at = device.run("top_k", keys, k=3, largest=largest)
        assert got.numpy().tolist() == values
        assert at.numpy().tolist() == places
    assert np.isnan(device.run("top_k", keys, k=7)[0].numpy()[-1])


def test_more_than_all_keys_are_refused(device: Device) -> None:
    with pytest.raises(ShapeError) as error:
        device.run("top_k", np.zeros(3, np.float32), k=4)
    assert str(error.value) == "kernel 'top_k': 4 of 3 keys are asked for. Fix: pass a k of 3 at most."


def test_places_of_sorted_targets_are_the_order_of_segments(device: Device) -> None:
    targets = np.random.default_rng(10).integers(0, 40, 1000).astype(np.uint32)
    order, offsets, longest = segments(targets, 30)
    ours = device.run("argsort", targets)
    assert (ours.numpy() == order).all()
    base, values = np.zeros(30, np.float32), np.random.default_rng(11).standard_normal(1000).astype(np.float32)
    sums = [
        device.run("scatter_add_segmented", base, values, o, offsets, longest=longest).numpy().tobytes()
        for o in (order, ours.numpy())
    ]
    assert sums[0] == sums[1]


def test_the_empty_list_and_a_single_key_are_sorted(device: Device) -> None:
    for n in (0, 1):
        keys = np.arange(n, dtype=np.float64) - 0.5
        assert device.run("sort", keys).numpy().tobytes() == keys.tobytes()
        assert device.run("argsort", keys).numpy().tolist() == [0] * n
        got, moved = device.run("sort_pairs", keys, np.full((n, 3), 7, np.uint32))
        assert got.numpy().tobytes() == keys.tobytes()
        assert moved.numpy().tolist() == [[7, 7, 7]] * n


@pytest.mark.parametrize(
    ("tuning", "name"),
    [
        ("items15", "u32"),
        # A software driver takes seconds to compile each of them.
        *(
            pytest.param(t, n, marks=pytest.mark.long)
            for t, n in [("items15", "f64"), ("items9", "u32"), ("items9", "f64")]
        ),
    ],
)
def test_tunings_for_hardware_give_the_same_places(vulkan: VulkanDevice, tuning: str, name: str) -> None:
    # Two tiles of the largest, and an end.
    keys = np.random.default_rng(7).integers(0, 1 << 20, 7700).astype(DTYPES[name].numpy)
    step = vulkan.bind("argsort", vulkan.array(keys), tuning=tuning)
    with vulkan.program([step]) as program:
        program.run()
    assert (step.outputs[0].numpy() == np.argsort(keys, kind="stable")).all()


@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(keys=nps.arrays(np.uint32, st.integers(1, 3000)), descending=st.integers(0, 1))
def test_any_bits_are_sorted_alike_everywhere(vulkan: VulkanDevice, keys: np.ndarray, descending: int) -> None:
    floats = keys.view(np.float32)
    expected = kernels.get("argsort").reference(floats, descending=descending)
    assert (vulkan.run("argsort", floats, descending=descending).numpy() == expected).all()


@pytest.mark.parametrize("name", KEYS)
def test_order_words_rise_with_the_keys(name: str) -> None:
    keys: Any = np.sort(np.random.default_rng(8).integers(-1000, 1000, 200).astype(DTYPES[name].numpy))
    rising, falling = order_words(keys, False), order_words(keys, True)
    assert ((keys[1:] > keys[:-1]) == (rising[1:] > rising[:-1])).all()
    assert ((keys[1:] > keys[:-1]) == (falling[1:] < falling[:-1])).all()


@pytest.mark.parametrize("name", ["sort", "argsort", "sort_pairs"])
@pytest.mark.parametrize("variant", ["u32", "u64"])
def test_two_thousand_million_keys_are_planned_within_the_limits(name: str, variant: str) -> None:
    n = 1 << 31
    kernel = kernels.get(name)
    shapes = [(n,), (n, 1)][: len(kernel.inputs)]
    for tuning in kernel.tunings.values():
        call = resolve_call(kernel, variant, shapes, {}, Limits(), tuning)
        plan = check_plan(kernel, call, kernel.plan(call))
        assert len(plan.dispatches) == 3 * DTYPES[variant].size


def test_what_is_no_direction_is_refused(device: Device) -> None:
    with pytest.raises(InputError) as error:
        device.run("sort", np.zeros(3, np.float32), descending=2)
    assert str(error.value) == "kernel 'sort': descending is 2. Fix: pass 0 (smallest first) or 1."


def test_rows_without_words_are_refused(device: Device) -> None:
    with pytest.raises(ShapeError) as error:
        device.run("sort_pairs", np.zeros(3, np.float32), np.zeros((3, 0), np.uint32))
    assert str(error.value) == (
        "kernel 'sort_pairs': the rows of values are empty. Fix: pass values of shape (n, 1) or more, or use `sort`."
    )


@pytest.mark.long
@pytest.mark.parametrize("name", ["u32", "f64"])
def test_a_million_keys_are_sorted_stably(vulkan: VulkanDevice, name: str) -> None:
    keys = np.random.default_rng(9).integers(0, 1 << 18, 1 << 20).astype(DTYPES[name].numpy)
    assert (vulkan.run("argsort", keys).numpy() == np.argsort(keys, kind="stable")).all()
