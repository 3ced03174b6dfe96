"""Numbers of 16 bits: conversions at every pattern and every edge, and elementwise kernels on halves."""

from __future__ import annotations

import numpy as np
import pytest

from dashi.kernels._float16 import BF16_NAN, F16_NAN
from dashi.runtime.device import Device

PATTERNS = np.arange(1 << 16, dtype=np.uint32).astype(np.uint16)


def halves(*values: float) -> np.ndarray:
    return np.array(values, np.float32).astype(np.float16)


def test_every_half_comes_back_from_fp32(device: Device) -> None:
    wide = device.run("from_f16", PATTERNS.view(np.float16)).numpy()
    back = device.run("to_f16", wide).numpy().view(np.uint16)
    nan = (PATTERNS & 0x7FFF) > 0x7C00
    assert np.array_equal(back[nan], np.full(nan.sum(), F16_NAN, np.uint16))
    assert back[0x8000] == 0  # -0 is never stored
    kept = ~nan & (PATTERNS != 0x8000)
    assert np.array_equal(back[kept], PATTERNS[kept])


def test_every_bf16_comes_back_from_fp32_unless_it_is_below_the_threshold(device: Device) -> None:
    wide = device.run("from_bf16", PATTERNS).numpy()
    back = device.run("to_bf16", wide).numpy()
    size = PATTERNS & 0x7FFF
    nan, tiny = size > 0x7F80, size < (127 - 102) << 7
    assert np.all(back[nan] == BF16_NAN)
    assert not back[tiny].any()
    assert np.array_equal(back[~nan & ~tiny], PATTERNS[~nan & ~tiny])


def test_halfway_between_two_halves_goes_to_the_even_one_and_a_little_more_or_less_to_the_nearer(
    device: Device,
) -> None:
    # fp64 holds the middle of two halves exactly, fp32 too: halves have 13 bits fewer.
    finite = np.arange(0x7BFF, dtype=np.uint16)
    low, high = finite.view(np.float16), (finite + np.uint16(1)).view(np.float16)
    middle = (low.astype(np.float32) + high.astype(np.float32)) / 2
    even = np.where(finite % 2 == 0, low, high)
    assert np.array_equal(device.run("to_f16", middle).numpy(), even)
    assert np.array_equal(device.run("to_f16", np.nextafter(middle, np.float32(np.inf))).numpy(), high)
    assert np.array_equal(device.run("to_f16", np.nextafter(middle, np.float32(0))).numpy(), low)
    assert np.array_equal(device.run("to_f16", -middle[1:]).numpy(), -even[1:])


@pytest.mark.parametrize(
    ("value", "half"),
    [(65519.996, 65504.0), (65520.0, np.inf), (-1e30, -np.inf), (2.0**-25, 0.0), (-(2.0**-25), 0.0), (1e-30, 0.0)],
)
def test_halves_end_at_65504_and_at_2_to_the_minus_24(device: Device, value: float, half: float) -> None:
    (made,) = device.run("to_f16", np.array([value], np.float32)).numpy()
    assert made == np.float16(half)
    assert not (made == 0 and np.signbit(made))


def test_bf16_rounds_to_the_nearest_and_ties_to_even(device: Device) -> None:
    bits = np.array([0x3F808000, 0x3F818000, 0x3F808001, 0x3F807FFF, 0x7F7FFFFF], np.uint32)
    made = device.run("to_bf16", bits.view(np.float32)).numpy()
    assert made.tolist() == [0x3F80, 0x3F82, 0x3F81, 0x3F80, 0x7F80]


def test_kernels_on_halves_compute_in_fp32_and_round_once(device: Device) -> None:
    # (1 + e)^2 = 1 + 2e + e^2: a product rounded to halves would lose e^2.
    e = 2.0**-10
    x, y = halves(1 + e, -0.0), halves(-1 - 2 * e, 0.0)
    made = device.run("axpy", x, y, a=1 + e).numpy()
    assert made.tolist() == [e * e, 0.0]
    assert not np.signbit(made).any()


def test_halves_of_any_length_leave_nothing_undone(device: Device) -> None:
    for n in (1, 7, 8, 9, 15, 17):
        x = np.arange(n, dtype=np.float16)
        assert np.array_equal(device.run("scale", x, a=2.0).numpy(), 2 * x)
