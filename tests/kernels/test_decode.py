"""The kernels of decode: majority in rounds, thresholds relative to a peak, random modes, energies of bands."""

from __future__ import annotations

import numpy as np
import pytest

from dashi.errors import InputError, LimitError, ShapeError
from dashi.kernels.portable import sum64
from dashi.runtime.device import Device


def trits(shape: tuple[int, ...], seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(-1, 2, shape, dtype=np.int8)


@pytest.mark.parametrize(("n", "rounds", "eta"), [(24, 1, 1), (24, 5, 2), (64, 8, 1), (64, 11, 3), (10, 3, 1)])
def test_fused_rounds_are_so_many_majorities(device: Device, n: int, rounds: int, eta: int) -> None:
    arrays = trits((2, n, n))
    values = device.run("majority_rounds", arrays, rounds=rounds, eta=eta).numpy()
    for member in range(2):
        first = device.array(arrays[member])
        for _ in range(rounds):
            first = device.run("ternary_majority", first, eta=eta)
        assert np.array_equal(values[member], first.numpy())


def test_majorities_never_create_support_and_settle(device: Device) -> None:
    given = trits((1, 48, 48), 3)
    once, often = (device.run("majority_rounds", given, rounds=rounds).numpy() for rounds in (1, 40))
    assert not np.any((given == 0) & (once != 0))
    assert not np.any((once == 0) & (often != 0))
    assert np.array_equal(device.run("majority_rounds", often, rounds=1).numpy(), often)


def test_a_threshold_is_relative_to_the_peak_of_its_own_member(device: Device) -> None:
    x = np.random.default_rng(1).standard_normal((3, 12, 12)).astype(np.float32)
    x *= np.array([1e-6, 1.0, 1e6], np.float32)[:, None, None]
    mask, peaks = (a.numpy() for a in device.run("ternary_relative", x, tau=0.5, eps=0.0))
    assert np.array_equal(peaks, np.abs(x).max(axis=(1, 2)))
    part = x / peaks[:, None, None]
    clear = np.abs(np.abs(part) - 0.5) > 1e-6
    assert np.array_equal(mask[clear], np.where(part >= 0.5, 1, np.where(part <= -0.5, -1, 0))[clear])


def test_nothing_and_not_a_number_have_no_support(device: Device) -> None:
    x = np.zeros((2, 8, 8), np.float32)
    x[1, 2, 3] = np.nan
    for tau, eps in ((0.35, 1e-12), (0.35, 0.0), (0.0, 0.0), (1e-30, 1e-12)):
        mask, peaks = (a.numpy() for a in device.run("ternary_relative", x, tau=tau, eps=eps))
        assert not mask.any()
    assert peaks[0] == 0
    assert np.isnan(peaks[1])


@pytest.mark.parametrize("gaussian", [0, 1])
@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_drawn_modes_are_those_of_a_real_field(device: Device, gaussian: int, kind: type[np.floating]) -> None:
    n = 16
    keys = np.array([7, 2], np.uint32)
    pairs = device.run("residual_draw", np.ones((n, n // 2 + 1), kind), keys, gaussian=gaussian).numpy()[0]
    modes = pairs[..., 0] + 1j * pairs[..., 1]
    for column in (0, n // 2):
        assert np.array_equal(modes[:, column], np.conj(modes[-np.arange(n) % n, column]))
    again = np.fft.rfft2(np.fft.irfft2(modes.astype(np.complex128), (n, n)))
    assert np.abs(again - modes).max() < 1e-12


def test_draws_depend_on_seed_frame_and_mode_alone(device: Device) -> None:
    def draw(n: int, seed: int, frame: int, members: int = 1) -> np.ndarray:
        keys = np.array([seed, frame], np.uint32)
        return device.run("residual_draw", np.ones((n, n // 2 + 1), np.float32), keys, members=members).numpy()

    small, large = draw(16, 5, 1)[0], draw(32, 5, 1)[0]
    assert np.array_equal(small[:8, :8], large[:8, :8])
    assert np.array_equal(small[-7:, 1:8], large[-7:, 1:8])
    assert np.array_equal(draw(16, 5, 1, members=3)[2], draw(16, 7, 1)[0])
    assert not np.array_equal(small, draw(16, 5, 2)[0])


def test_gaussian_draws_have_mean_square_one(device: Device) -> None:
    n = 128
    keys = np.array([1, 0], np.uint32)
    z = device.run("residual_draw", np.ones((n, n // 2 + 1), np.float32), keys, gaussian=1).numpy()
    power = (z.astype(np.float64) ** 2).sum(axis=-1)[:, :, 1:-1]
    # |z|^2 is exponential: its mean over so many modes is 1 within a few times 1 / sqrt(modes).
    assert abs(power.mean() - 1) < 4 / np.sqrt(power.size)
    assert abs((power**2).mean() - 2) < 0.2


def test_energies_are_sums_in_the_canonical_order(device: Device) -> None:
    rng = np.random.default_rng(4)
    x = rng.standard_normal((2, 100, 51, 2)).astype(np.float32)
    weights = rng.random((3, 100, 51)).astype(np.float32)
    values = device.run("band_energies", x, weights).numpy()
    squares = x[..., 0] * x[..., 0] + x[..., 1] * x[..., 1]
    for band in range(3):
        assert np.array_equal(values[:, band], sum64((weights[band] * squares).reshape(2, -1)))


def test_bands_are_scaled_to_what_is_still_wanted(device: Device) -> None:
    x = np.random.default_rng(5).standard_normal((1, 8, 5, 2)).astype(np.float64)
    band = np.arange(40, dtype=np.uint32).reshape(8, 5) % 3
    weights = np.stack([np.where(band == b, 1.0, 0.0) for b in (1, 2)])
    drawn = device.run("band_energies", x, weights).numpy()
    present = np.array([[0.25, 9.0]])
    z = np.array([[0.0, 4.0, 8.0]])
    values = device.run("band_scale", x, band, drawn, present, z, first=1).numpy()
    left = device.run("band_energies", values, weights).numpy()
    assert np.allclose(left, [[3.75, 0.0]], rtol=1e-14)  # of the second band more is there than is wanted
    assert not values[0, band == 0].any()


@pytest.mark.parametrize(("gate", "expected"), [(0, [3, 3, 3]), (1, [3, 1, 3]), (2, [3, 1, -1])])
def test_gates_let_through_by_the_mask(device: Device, gate: int, expected: list[int]) -> None:
    low, rest = np.ones(3, np.float32), np.full(3, 2, np.float32)
    made = device.run("gated_sum", low, rest, np.array([1, 0, -1], np.int8), gate=gate).numpy()
    assert made.tolist() == expected


def test_a_box_wider_than_the_field_goes_round_it(device: Device) -> None:
    field = np.arange(20, dtype=np.float64).reshape(1, 4, 5)
    mean = device.run("box_smooth", field, radius=2).numpy()
    rows = np.broadcast_to(field.mean(axis=2, keepdims=True), field.shape)  # five columns: all of a row
    wide = sum(np.roll(rows, shift, 1) for shift in range(-2, 3)) / 5
    assert np.allclose(mean, wide, rtol=1e-14)
    detail = device.run("box_smooth", field, radius=2, detail=1).numpy()
    assert np.allclose(detail, field - mean, rtol=0, atol=1e-13)


def test_counts_of_signs_are_of_every_member(device: Device) -> None:
    given = trits((3, 20, 20), 9)
    made = device.run("trit_counts", given).numpy()
    assert made.tolist() == [[int((one > 0).sum()), int((one < 0).sum())] for one in given]


def test_what_does_not_fit_is_refused_with_a_fix(device: Device) -> None:
    with pytest.raises(InputError, match=r"there is no gate 3\. Fix: use 0 \(open\), 1 \(support\) or 2 \(signed\)\."):
        device.run("gated_sum", np.zeros(1), np.zeros(1), np.zeros(1, np.int8), gate=3)
    with pytest.raises(ShapeError, match="do not start at whole words"):
        device.run("ternary_relative", np.zeros((2, 3, 3)))
    with pytest.raises(ShapeError, match="do not start at whole words"):
        device.run("trit_counts", np.zeros((2, 3, 3), np.int8))
    with pytest.raises(InputError, match=r"a threshold of -1\.0 admits nothing sensible"):
        device.run("ternary_relative", np.zeros((1, 4, 4)), tau=-1.0)
    with pytest.raises(LimitError, match="more than 1024"):
        device.run("majority_rounds", np.zeros((1, 4, 4), np.int8), rounds=2000)
    x, pair = np.zeros((1, 2, 2, 2)), np.zeros((1, 2))
    with pytest.raises(ShapeError, match=r"z of 3 numbers has no 2 energies from 2 on"):
        device.run("band_scale", x, np.zeros((2, 2), np.uint32), pair, pair, np.zeros((1, 3)), first=2)


def test_a_box_far_beyond_the_field_is_refused_and_an_empty_field_has_none(device: Device) -> None:
    with pytest.raises(LimitError) as error:
        device.run("box_smooth", np.ones((1, 4, 4), np.float32), radius=1 << 31)
    assert str(error.value) == (
        "kernel 'box_smooth': a radius of 2147483648 is more than 65536. "
        "Fix: pass a radius below the sides of the field: a wider box only goes round it again."
    )
    assert device.run("box_smooth", np.ones((0, 4, 4), np.float32), radius=1 << 31).numpy().shape == (0, 4, 4)
