"""What gather, scatter and scatter-add promise beyond agreeing with their references."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dashi import kernels
from dashi.errors import InputError, LimitError, ShapeError
from dashi.kernels._calls import resolve_call
from dashi.kernels._segments import segments
from dashi.kernels.portable import mul, prod64, sum64
from dashi.runtime.device import Device

# Signalling and quiet NaNs with payloads, a negative zero, a subnormal: what arithmetic would change.
WORDS = {
    np.float32: np.array([0x7F800001, 0xFFC00123, 0x80000000, 1, 0x3F800000], np.uint32),
    np.float64: np.array([0x7FF0000000000001, 0xFFF8000000000123, 1 << 63, 1, 0x3FF0000000000000], np.uint64),
}
FLOATS = pytest.mark.parametrize("kind", list(WORDS))


@FLOATS
def test_gather_moves_bits_and_gives_zero_out_of_range(device: Device, kind: Any) -> None:
    words = WORDS[kind]
    index = np.array([4, 0, 1, 2, 3, 5, 0xFFFFFFFF, 0], np.uint32)
    got = device.run("gather", words.view(kind), index).numpy().view(words.dtype)
    assert got.tolist() == [*words[[4, 0, 1, 2, 3]].tolist(), 0, 0, words[0]]


@FLOATS
def test_scatter_moves_bits_and_ignores_indices_out_of_range(device: Device, kind: Any) -> None:
    words = WORDS[kind]
    index = np.array([3, 5, 0xFFFFFFFF], np.uint32)
    got = device.run("scatter", words.view(kind), index, words[[1, 2, 0]].view(kind)).numpy().view(words.dtype)
    assert got.tolist() == [*words[:3].tolist(), words[1], words[4]]


def test_scatter_lets_the_highest_place_win(device: Device) -> None:
    n = 100_000
    index = np.random.default_rng(1).integers(0, 7, n).astype(np.uint32)
    got = device.run("scatter", np.zeros(8, np.uint32), index, np.arange(n, dtype=np.uint32)).numpy()
    last = [int(np.flatnonzero(index == j)[-1]) for j in range(7)]
    assert got.tolist() == [*last, 0]


def test_scatter_forgets_the_owners_of_an_earlier_run(device: Device) -> None:
    base, values = device.array(np.zeros(4, np.int32)), device.array(np.array([5, 6], np.int32))
    index = device.array(np.array([1, 2], np.uint32))
    step = device.bind("scatter", base, index, values)
    with device.program([step]) as program:
        program.run()
        index.write(np.array([3, 3], np.uint32))
        program.run()
    assert step.outputs[0].numpy().tolist() == [0, 0, 0, 6]


@FLOATS
def test_scatter_add_sums_each_target_in_canonical_order(device: Device, kind: Any) -> None:
    rng = np.random.default_rng(2)
    index = np.concatenate([np.full(5000, 1), np.full(300, 3), rng.integers(0, 6, 900)])
    rng.shuffle(index)
    values = rng.standard_normal(index.size).astype(kind)
    base = rng.standard_normal(6).astype(kind)
    order, offsets, longest = segments(index, 6)
    got = device.run("scatter_add", base, values, order, offsets, longest=longest).numpy()
    expected = np.array([base[s] + sum64(values[index == s]) for s in range(6)], kind)
    assert got.tobytes() == expected.tobytes()


@FLOATS
@pytest.mark.parametrize(("count", "n"), [(6, 6000), (300, 5000), (70_000, 3000), (1, 4097), (5, 0)])
def test_scatter_add_sorted_has_the_bits_of_lists_from_the_host(device: Device, kind: Any, count: int, n: int) -> None:
    rng = np.random.default_rng(count)
    index = rng.integers(0, count + 2, n).astype(np.uint32)
    index[n // 2 : n // 2 + n // 4] = count // 2
    index[:: max(1, n // 5)] = 0xFFFFFFFF
    values, base = rng.standard_normal(n).astype(kind), rng.standard_normal(count).astype(kind)
    order, offsets, longest = segments(index, count)
    expected = device.run("scatter_add_segmented", base, values, order, offsets, longest=longest).numpy()
    assert device.run("scatter_add_sorted", base, index, values).numpy().tobytes() == expected.tobytes()


def test_scatter_add_sorted_sums_segments_of_more_than_three_levels(device: Device) -> None:
    # A long segment between others: its runs begin at no multiple of 64, and its last sums have one addend or few.
    lengths = (3, 262144 + 4096 + 1, 64, 0, 4097 + 64, 1)
    index = np.repeat(np.arange(6, dtype=np.uint32), lengths)
    rng = np.random.default_rng(4)
    rng.shuffle(index)
    values = rng.standard_normal(index.size).astype(np.float32)
    got = device.run("scatter_add_sorted", np.zeros(6, np.float32), index, values).numpy()
    expected = np.array([sum64(values[index == s]) for s in range(6)], np.float32)
    assert got.tobytes() == expected.tobytes()


@FLOATS
def test_sorted_scatters_multiply_by_tree64_and_let_nan_win(device: Device, kind: Any) -> None:
    rng = np.random.default_rng(8)
    index = rng.permutation(np.repeat(np.arange(5, dtype=np.uint32), (70, 4200, 0, 1, 64)))
    values, base = rng.uniform(0.9, 1.1, index.size).astype(kind), rng.uniform(0.9, 1.1, 5).astype(kind)
    segment = [values[index == place] for place in range(5)]
    products = np.array([prod64(listed) for listed in segment], kind)
    result = device.run("scatter_mul_sorted", base, index, values).numpy()
    assert result.tobytes() == mul(base, products).tobytes()
    values[index == 3] = np.nan
    for name, join in (("max", np.max), ("min", np.min)):
        joined = [join([start, *values[index == place]]) for place, start in enumerate(base)]
        result = device.run(f"scatter_{name}_sorted", base, index, values).numpy()
        np.testing.assert_array_equal(result, np.array(joined, kind))
        assert np.isnan(result).tolist() == [False, False, False, True, False]


def test_scatter_add_sorted_ignores_values_out_of_range_even_if_they_are_nan(device: Device) -> None:
    index = np.array([1, 4, 0xFFFFFFFF, 1, 256], np.uint32)
    values = np.array([1, np.nan, np.nan, 2, np.inf], np.float32)
    got = device.run("scatter_add_sorted", np.full(4, 0.5, np.float32), index, values).numpy()
    assert got.tolist() == [0.5, 3.5, 0.5, 0.5]


def test_scatter_add_sorted_follows_targets_that_change_on_the_device(device: Device) -> None:
    base, values = device.array(np.zeros(3, np.float32)), device.array(np.array([1, 2, 4], np.float32))
    index = device.array(np.array([0, 0, 2], np.uint32))
    step = device.bind("scatter_add_sorted", base, index, values)
    with device.program([step]) as program:
        program.run()
        first = step.outputs[0].numpy().tolist()
        index.write(np.array([1, 9, 1], np.uint32))
        program.run()
    assert (first, step.outputs[0].numpy().tolist()) == ([3, 0, 4], [0, 5, 0])


@pytest.mark.parametrize(("count", "n", "passes", "levels"), [(255, 64, 1, 1), (256, 65, 2, 2), (1 << 24, 4097, 4, 3)])
def test_scatter_add_sorted_dispatches_what_its_cost_counts(count: int, n: int, passes: int, levels: int) -> None:
    kernel = kernels.get("scatter_add_sorted")
    call = resolve_call(kernel, "f32", [(count,), (n,), (n,)], {}, tuning=kernel.tunings["items5"])
    used = [dispatch.shader for dispatch in kernel.plan(call).dispatches]
    assert (used.count("main"), used.count("runs") + used.count("levels")) == (passes, levels)
    assert len(used) == kernel.cost(call).dispatches


def test_scatter_add_atomic_adds_what_belongs_to_each_place_and_ignores_the_rest(device: Device) -> None:
    # Whole numbers add up exactly in any order.
    rng = np.random.default_rng(3)
    index = np.concatenate([rng.integers(0, 40, 5000), [40, 0xFFFFFFFF]]).astype(np.uint32)
    values = rng.integers(-9, 10, index.size).astype(np.float32)
    base = rng.integers(-9, 10, 40).astype(np.float32)
    expected = [base[j] + values[index == j].sum() for j in range(40)]
    assert device.run("scatter_add_atomic", base, index, values).numpy().tolist() == expected


def test_scatter_add_atomic_says_that_its_order_is_not_fixed() -> None:
    kernel = kernels.get("scatter_add_atomic")
    assert (kernel.tier, kernel.portable) == (2, False)


@FLOATS
def test_tile_repeats_bits_like_numpy_and_cuts_the_last_copies(device: Device, kind: Any) -> None:
    words = np.stack([WORDS[kind], WORDS[kind][::-1], np.roll(WORDS[kind], 2)])
    got = device.run("tile", words.view(kind), rows=6, columns=15).numpy().view(words.dtype)
    assert got.tobytes() == np.tile(words, (2, 3)).tobytes()
    row = device.run("tile", words[:1].view(kind), rows=1, columns=13).numpy().view(words.dtype)
    assert row.tobytes() == np.tile(words[0], 3)[:13].tobytes()


def test_tile_refuses_to_fill_something_with_nothing(device: Device) -> None:
    with pytest.raises(ShapeError) as caught:
        device.run("tile", np.zeros((0, 4), np.float32), rows=2, columns=3)
    assert str(caught.value) == (
        "kernel 'tile': x of shape (0, 4) has nothing to fill 2 x 3 with. Fix: pass an array with at least one element."
    )


@pytest.mark.parametrize("longest", [2, 64, 65, 4096])
def test_a_segment_longer_than_declared_gives_nan_and_harms_no_other(device: Device, longest: int) -> None:
    index = np.repeat([0, 1, 2], [1, longest + 1, 2])
    order, offsets, actual = segments(index, 4)
    assert actual == longest + 1
    got = device.run("scatter_add", np.ones(4, np.float32), np.ones(index.size, np.float32), order, offsets,
                     longest=longest).numpy()  # fmt: skip
    assert got[[0, 2, 3]].tolist() == [2, 3, 1]
    assert got.view(np.uint32)[1] == 0x7FC00000


@pytest.mark.parametrize("longest", [8, 100])
def test_segments_that_leave_the_lists_give_nan(device: Device, longest: int) -> None:
    # Backwards; past the end; an order entry that is no place; and one that is in order.
    offsets = np.array([2, 1, 9, 1, 2], np.uint32)
    order = np.array([0, 4, 2, 7], np.uint32)
    values, base = np.arange(1, 5, dtype=np.float32), np.zeros(4, np.float32)
    assert np.isnan(device.run("scatter_add", base, values, order, offsets, longest=longest).numpy()).all()
    offsets = np.array([0, 1, 2, 3, 3], np.uint32)
    got = device.run("scatter_add", base, values, order, offsets, longest=longest).numpy()
    assert np.isnan(got).tolist() == [False, True, False, False]
    assert got[[0, 2, 3]].tolist() == [1, 3, 0]


def test_scatter_add_says_how_many_offsets_it_needs(device: Device) -> None:
    lists = np.zeros(3, np.float32), np.zeros(2, np.float32), np.zeros(2, np.uint32), np.zeros(3, np.uint32)
    with pytest.raises(ShapeError) as caught:
        device.run("scatter_add", *lists)
    assert str(caught.value) == (
        "kernel 'scatter_add_segmented': 3 segments need 4 offsets, 3 given. "
        "Fix: pass offsets with one entry more than base; dashi.kernels._segments.segments makes them."
    )


def test_scatter_add_refuses_segments_of_more_than_three_levels(device: Device) -> None:
    lists = np.zeros(1, np.float32), np.zeros(2, np.float32), np.zeros(2, np.uint32), np.zeros(2, np.uint32)
    with pytest.raises(LimitError) as caught:
        device.run("scatter_add", *lists, longest=262145)
    assert str(caught.value) == (
        "kernel 'scatter_add_segmented': segments of 262145 values are longer than 262144. "
        "Fix: split the values into several calls, each adding to the result of the last."
    )


@given(st.lists(st.integers(0, 9)), st.integers(0, 8))
def test_segments_list_the_places_of_every_target_in_order(index: list[int], count: int) -> None:
    order, offsets, longest = segments(np.array(index, np.int64), count)
    assert sorted(order.tolist()) == list(range(len(index)))
    groups = [order[offsets[s] : offsets[s + 1]].tolist() for s in range(count)]
    assert groups == [[i for i, target in enumerate(index) if target == s] for s in range(count)]
    assert longest == max((len(g) for g in groups), default=0)
    assert order.dtype == offsets.dtype == np.uint32


@given(st.lists(st.integers(0, 300), max_size=12), st.integers(0, 2**32 - 1))
def test_segment_sums_are_the_canonical_sums(lengths: list[int], seed: int) -> None:
    values = np.random.default_rng(seed).standard_normal(sum(lengths)).astype(np.float32)
    ends = np.cumsum([0, *lengths])
    base = np.zeros(len(lengths), np.float32)
    order = np.arange(values.size, dtype=np.uint32)
    got = kernels.get("scatter_add").reference(base, values, order, ends.astype(np.uint32), longest=300)
    expected = np.array([sum64(values[a:b]) for a, b in pairwise(ends)], np.float32)
    assert np.asarray(got).tobytes() == expected.tobytes()


def test_segments_refuse_what_is_no_list_of_targets() -> None:
    with pytest.raises(InputError) as caught:
        segments(np.array([0.5, 1.0]), 3)
    assert str(caught.value) == (
        "targets must be a list of whole numbers, not float64 of shape (2,). "
        "Fix: pass a list such as np.array([0, 2, 2], np.uint32)."
    )
    with pytest.raises(InputError) as caught:
        segments(np.array([3, -2]), 3)
    assert str(caught.value) == "a target is negative: -2. Fix: number the targets from 0."
