"""tree64 in NumPy: one order, that of the definition, whatever the shape and the path taken."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dashi.errors import DTypeError, ShapeError
from dashi.kernels import portable
from dashi.kernels.portable import canon, contract, mul, prefix64, prepare, sum64

KINDS = [np.float32, np.float64]
TINY = {np.float32: 2.0**-102, np.float64: 2.0**-969}


def tree64(values: list[np.floating]) -> np.floating:
    """The definition, one addition at a time."""
    kind = type(values[0])
    while True:
        sums = []
        for start in range(0, len(values), 64):
            total = kind(0)
            for v in values[start : start + 64]:
                total = total + v
            sums.append(total)
        if len(sums) == 1:
            return sums[0]
        values = sums


def scan64(values: list[np.floating]) -> list[np.floating]:
    """The definition of the inclusive scan."""
    kind = type(values[0])
    runs = [values[i : i + 64] for i in range(0, len(values), 64)]
    local = []
    for run in runs:
        total, sums = kind(0), []
        for v in run:
            total = total + v
            sums.append(total)
        local.append(sums)
    carries = [kind(0)]
    if len(runs) > 1:
        carries += scan64([sums[-1] for sums in local])[:-1]
    return [c + s for c, sums in zip(carries, local, strict=True) for s in sums]


def spread(
    rng: np.random.Generator, shape: tuple[int, ...], kind: type, low: float = -8, high: float = 8
) -> np.ndarray:
    """Values of many magnitudes, so that another order of additions gives other bits."""
    return canon((rng.standard_normal(shape) * 2.0 ** rng.uniform(low, high, shape)).astype(kind))


def same_bits(a: npt.ArrayLike, b: npt.ArrayLike) -> bool:
    return np.asarray(a).tobytes() == np.asarray(b).tobytes()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("length", [1, 2, 63, 64, 65, 128, 1000, 4095, 4096, 4097, 5000])
def test_sum64_adds_in_the_defined_order(kind, length):
    values = spread(np.random.default_rng(length), (length,), kind)
    assert same_bits(sum64(values), tree64(list(values)))


@pytest.mark.parametrize("kind", KINDS)
def test_the_order_matters_so_these_tests_can_fail(kind):
    values = spread(np.random.default_rng(0), (5000,), kind)
    assert not same_bits(sum64(values), tree64(list(values[::-1])))


@pytest.mark.parametrize("kind", KINDS)
def test_sum64_of_nothing_is_positive_zero(kind):
    assert same_bits(sum64(np.zeros(0, kind)), kind(0))
    assert sum64(np.zeros((3, 0), kind)).shape == (3,)
    assert sum64(np.zeros((0, 100), kind)).shape == (0,)


@pytest.mark.parametrize("kind", KINDS)
def test_sum64_over_any_axis_equals_row_by_row(kind):
    values = spread(np.random.default_rng(1), (3, 200, 5), kind)
    expected = [[tree64(list(values[i, :, j])) for j in range(5)] for i in range(3)]
    assert same_bits(sum64(values, axis=1), np.array(expected, kind))


@pytest.mark.parametrize("kind", KINDS)
def test_padding_with_zeros_changes_no_sum(kind):
    values = spread(np.random.default_rng(2), (100,), kind)
    assert same_bits(sum64(values), sum64(np.concatenate([values, np.zeros(28, kind)])))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("length", [1, 64, 65, 4096, 4097, 4200])
def test_prefix64_follows_its_definition(kind, length):
    values = spread(np.random.default_rng(length), (length,), kind)
    assert same_bits(prefix64(values), np.array(scan64(list(values)), kind))


def test_prefix64_of_nothing_is_nothing():
    assert prefix64(np.zeros(0, np.float32)).shape == (0,)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("m", "k", "n"), [(1, 1, 1), (3, 64, 2), (2, 65, 3), (4, 130, 5), (1, 4100, 2), (2, 0, 3)])
def test_contract_is_tree64_of_flushed_products(kind, m, k, n):
    rng = np.random.default_rng(k)
    x, a = spread(rng, (m, k), kind), spread(rng, (k, n), kind)
    products = mul(x[:, :, None], a[None, :, :])
    expected = sum64(products, axis=1)
    assert same_bits(contract(x, a), expected)
    assert same_bits(contract(x[0], a), expected[0])


@pytest.mark.parametrize("kind", KINDS)
def test_contract_flushes_products_below_the_threshold(kind):
    rng = np.random.default_rng(3)
    x = canon((rng.standard_normal((5, 200)) * 2.0 ** rng.uniform(-4, 4, (5, 200)) * np.sqrt(TINY[kind])).astype(kind))
    a = canon((rng.standard_normal((200, 7)) * 2.0 ** rng.uniform(-4, 4, (200, 7)) * np.sqrt(TINY[kind])).astype(kind))
    plain = x[:, :, None] * a[None, :, :]
    flushed = mul(x[:, :, None], a[None, :, :])
    assert np.any(plain != flushed), "the case must exercise the flush"
    assert same_bits(contract(x, a), sum64(flushed, axis=1))


@pytest.mark.parametrize("kind", KINDS)
def test_contract_in_blocks_gives_the_same_bits(kind, monkeypatch):
    rng = np.random.default_rng(4)
    x, a = spread(rng, (9, 300), kind), spread(rng, (300, 11), kind)
    whole = contract(x, a)
    monkeypatch.setattr("dashi.kernels.portable._sums._BLOCK", 16)
    assert same_bits(contract(x, a), whole)


@pytest.mark.parametrize("kind", KINDS)
def test_a_prepared_matrix_gives_the_same_bits(kind):
    rng = np.random.default_rng(5)
    x, a = spread(rng, (2, 100), kind), spread(rng, (100, 3), kind)
    assert same_bits(contract(x, prepare(a)), contract(x, a))


def test_contract_keeps_nan_and_infinity():
    x = np.array([np.inf, 1, 0], np.float32)
    a = np.array([[1, 0, np.nan], [1, -np.inf, 1], [1, 1, 1]], np.float32)
    out = canon(contract(x, a))
    assert out[0] == np.inf
    assert np.isnan(out[1])
    assert np.isnan(out[2])


def test_contract_refuses_what_does_not_fit():
    with pytest.raises(ShapeError, match=r"rows of shape \(3,\) with a matrix of 4 rows"):
        contract(np.zeros(3, np.float32), np.zeros((4, 2), np.float32))
    with pytest.raises(ShapeError, match=r"needs a matrix, not an array of shape \(4,\)"):
        prepare(np.zeros(4, np.float32))
    with pytest.raises(DTypeError, match="contract mixes float64 with float32"):
        contract(np.zeros(4), np.zeros((4, 2), np.float32))
    with pytest.raises(DTypeError, match="portable maths has no int64 version"):
        portable.canon(np.arange(3, dtype=np.int64))
    with pytest.raises(ShapeError, match="prefix64 scans a list"):
        prefix64(np.zeros((2, 2), np.float32))


@given(st.lists(st.integers(0, 2**32 - 1), min_size=1, max_size=200))
def test_sums_of_canonical_values_are_never_subnormal(words):
    values = canon(np.array(words, np.uint32).view(np.float32))
    # Scaling down to the threshold makes sums as small as they can be.
    small = canon(np.where(np.abs(values) < 1, values, np.float32(2.0**-102)).astype(np.float32))
    with np.errstate(all="ignore"):
        sums = np.concatenate([prefix64(small), [sum64(small)]])
    size = sums.view(np.uint32) & np.uint32(0x7FFFFFFF)
    assert np.all((size == 0) | (size >= np.uint32(0x00800000)))
