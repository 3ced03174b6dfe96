"""Lists of entries: what lies side by side is the same lists, and a part of a list is never taken for the whole."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dashi.core.operators.sparse import Csr
from dashi.errors import LimitError, ShapeError
from dashi.kernels._interleaved_lists import SLAB, interleave, lists_in_slabs
from dashi.kernels._lists import lists_at, prepare_sums
from dashi.kernels.portable import sum64
from dashi.runtime.device import Device

lengths = st.lists(st.integers(0, 70), max_size=80)


def ends_of(counts: list[int]) -> Any:
    return np.concatenate([[0], np.cumsum(counts)]).astype(np.uint32)


@given(lengths)
def test_lists_side_by_side_hold_the_same_entries_in_the_same_order(counts: list[int]) -> None:
    entries = np.arange(sum(counts), dtype=np.uint32)
    heads, (moved,) = interleave(ends_of(counts), entries)
    result = lists_in_slabs(heads, len(counts), len(moved), 70)
    assert result.whole.all()
    assert result.lengths.tolist() == counts
    assert np.array_equal(moved[result.order], entries)
    assert len(heads) == len(counts) + -(-len(counts) // SLAB)


@given(lengths)
def test_neighbouring_lists_lie_in_neighbouring_places(counts: list[int]) -> None:
    heads, (moved,) = interleave(ends_of(counts), np.zeros(sum(counts)))
    found = lists_in_slabs(heads, len(counts), len(moved), 70)
    firsts = {int(k): int(at) for k, p, at in zip(found.owner, found.place, found.order, strict=True) if p == 0}
    for k, at in firsts.items():
        if k + 1 in firsts and k // SLAB == (k + 1) // SLAB:
            assert firsts[k + 1] == at + 1


@given(lengths, st.integers(0, 3))
def test_sums_of_lists_are_tree64_of_each(counts: list[int], seed: int) -> None:
    values = np.random.default_rng(seed).standard_normal((2, sum(counts))).astype(np.float32)
    ends = ends_of(counts)
    made = prepare_sums(lists_at(ends, sum(counts), 70))(values)
    for k in range(len(counts)):
        assert np.array_equal(made[:, k], sum64(values[:, ends[k] : ends[k + 1]]))


def test_a_list_that_leaves_the_entries_or_is_longer_than_declared_gives_nan(device: Device) -> None:
    operator = Csr.from_dense(np.triu(np.ones((40, 40))))
    z, b = np.ones((1, 40)), np.zeros(40)
    arrays = operator.arrays
    ends = arrays["indptr"].copy()
    ends[-1] += 1
    made = device.run("csr_step", z, arrays["data"], arrays["indices"], ends, b, longest=38).numpy()[0]
    assert np.isnan(made[38:]).all()
    assert made[:38].tolist() == list(range(1, 39))
    heads, (values, sources) = interleave(arrays["indptr"], arrays["data"], arrays["indices"])
    heads[5] = values.size
    heads[40 + 1] = values.size - 8
    rolled = device.run("csr_rollout", z, values, sources, heads, b, steps=1, longest=4096).numpy()[0]
    assert np.isnan(rolled[5])
    assert np.isnan(rolled[32:]).all()
    assert np.delete(rolled[:32], 5).tolist() == [n for n in range(1, 33) if n != 6]


def test_lists_that_do_not_fit_the_state_are_refused(device: Device) -> None:
    z, first, none = np.ones((1, 3)), np.ones(1), np.zeros(1, np.uint32)
    with pytest.raises(ShapeError, match=r"3 outputs need 4 offsets, 3 given.*Fix: give one list for each"):
        device.run("csr_step", z, first, none, np.zeros(3, np.uint32), np.zeros(3))
    with pytest.raises(ShapeError, match=r"3 outputs need 4 heads, 3 given.*Fix: make them with"):
        device.run("csr_rollout", z, first, none, np.zeros(3, np.uint32), np.zeros(3), steps=1)
    with pytest.raises(LimitError, match=r"lists of 262145 entries are longer than 262144.*Fix: split"):
        device.run("csr_step", z, first, none, np.zeros(4, np.uint32), np.zeros(3), longest=262145)
    with pytest.raises(ShapeError, match=r"states of 3 are not 1 block columns of 2.*Fix: "):
        device.run("block_step", z, np.ones((1, 2, 2)), none, np.array([0, 1], np.uint32), np.zeros(3))
