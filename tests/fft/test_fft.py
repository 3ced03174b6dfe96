"""`dashi.fft`: NumPy's functions, on every device, and plans that can be recorded."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import dashi.fft
from dashi.errors import DTypeError, InputError, ShapeError
from dashi.runtime import Device

KINDS = ["fft", "ifft", "rfft", "irfft", "fft2", "ifft2", "rfft2", "irfft2"]


def noise(shape: tuple[int, ...], real: bool = False) -> Any:
    rng = np.random.default_rng(3)
    values = rng.standard_normal(shape)
    return values if real else values + 1j * rng.standard_normal(shape)


def close(got: Any, wanted: Any, eps: float = 1e-14) -> bool:
    return bool(np.linalg.norm(np.ravel(got - wanted)) <= eps * np.linalg.norm(np.ravel(wanted)))


def options(kind: str) -> list[dict[str, Any]]:
    if kind.endswith("2"):
        return [{}, {"axes": (0, 1), "s": (4, 8)}, {"s": (15, 9)}, {"norm": "ortho"}, {"axes": (2, 0), "s": (6, 7)}]
    return [{}, {"axis": 1, "n": 12}, {"n": 15}, {"n": 8, "axis": 0, "norm": "ortho"}, {"norm": "forward"}]


@pytest.mark.parametrize("kind", KINDS)
def test_arguments_mean_what_they_mean_in_numpy(kind: str) -> None:
    z = noise((3, 9, 10), real=kind.startswith("rfft"))
    for given in options(kind):
        got, wanted = getattr(dashi.fft, kind)(z, **given), getattr(np.fft, kind)(z, **given)
        assert (got.shape, got.dtype) == (wanted.shape, wanted.dtype)
        assert close(got, wanted), given


@pytest.mark.parametrize("kind", KINDS)
def test_single_precision_stays_single(kind: str) -> None:
    z = noise((4, 6), real=kind.startswith("rfft")).astype(np.float32 if kind.startswith("rfft") else np.complex64)
    got = getattr(dashi.fft, kind)(z)
    assert got.dtype == (np.float32 if kind.startswith("irfft") else np.complex64)
    assert close(got, getattr(np.fft, kind)(z), 1e-6)


def test_frequencies_are_numpys() -> None:
    assert np.array_equal(dashi.fft.fftfreq(9, 0.5), np.fft.fftfreq(9, 0.5))
    assert np.array_equal(dashi.fft.rfftfreq(8), np.fft.rfftfreq(8))


def test_arrays_on_a_device_stay_there_and_come_back(device: Device) -> None:
    field = noise((2, 8, 16), real=True).astype(np.float32)
    there = device.array(field)
    modes = dashi.fft.rfft2(there)
    assert (modes.device, modes.shape) == (device, (2, 8, 9, 2))
    assert dashi.fft.rfft2(field).tobytes() == modes.numpy().tobytes()
    assert close(dashi.fft.irfft2(modes).numpy(), field, 1e-6)


def test_a_plan_is_recorded_once_and_run_often(device: Device) -> None:
    forward = dashi.fft.plan(device, (8, 16), "rfft2")
    back = dashi.fft.plan(device, (8, 16), "irfft2")
    field, modes = device.empty((8, 16)), device.empty(forward.target_shape)
    again = device.empty((8, 16))
    assert back.source_shape == forward.target_shape == (8, 9, 2)
    with device.program([*forward.steps(field, modes), *back.steps(modes, again)]) as program:
        for seed in range(2):
            values = np.random.default_rng(seed).standard_normal((8, 16)).astype(np.float32)
            field.write(values)
            program.run()
            assert close(again.numpy(), values, 1e-6)


def test_batches_of_real_lines_do_not_touch_each_other() -> None:
    lines = noise((5, 24), real=True).astype(np.float32)
    lines[2] = np.nan
    lines[3] *= np.float32(1e30)
    together = dashi.fft.rfft(lines)
    for number in (0, 1, 3, 4):
        assert together[number].tobytes() == dashi.fft.rfft(lines[number]).tobytes()


@pytest.mark.parametrize("n", [8, 9])
def test_imaginary_parts_of_modes_that_are_real_are_ignored(n: int) -> None:
    modes = noise((n // 2 + 1,))
    plain = modes.copy()
    plain[0] = plain[0].real
    if n % 2 == 0:
        plain[-1] = plain[-1].real
    assert dashi.fft.irfft(modes, n).tobytes() == dashi.fft.irfft(plain, n).tobytes()
    assert close(dashi.fft.irfft(modes, n), np.fft.irfft(modes, n))


def test_columns_that_must_be_real_are_taken_as_numpy_takes_them() -> None:
    modes = noise((6, 5))
    assert close(dashi.fft.irfft2(modes), np.fft.irfft2(modes))


def test_bad_arguments_are_told_with_a_fix(device: Device) -> None:
    with pytest.raises(ShapeError, match="no Fourier transform of 32769 values"):
        dashi.fft.fft(np.zeros(32769))
    with pytest.raises(InputError, match="takes real values"):
        dashi.fft.rfft(np.zeros(8, complex))
    with pytest.raises(InputError, match="there is no norm"):
        dashi.fft.fft(np.zeros(8), norm="none")  # type: ignore[arg-type]
    with pytest.raises(ShapeError, match="has no axes"):
        dashi.fft.fft(np.zeros(8), axis=3)
    with pytest.raises(InputError, match="one and the same"):
        dashi.fft.fft2(np.zeros((8, 8)), axes=(1, -1))
    with pytest.raises(InputError, match="transforms two axes"):
        dashi.fft.fft2(np.zeros((8, 8)), s=(4,))
    with pytest.raises(ShapeError, match="no pair"):
        dashi.fft.fft(device.array(np.zeros(8, np.float32)))
    with pytest.raises(ShapeError, match="not cropped nor padded"):
        dashi.fft.rfft(device.array(np.zeros(8, np.float32)), n=6)
    with pytest.raises(InputError, match="there is no transform 'dct'"):
        dashi.fft.plan(device, 8, "dct")  # type: ignore[arg-type]
    with pytest.raises(DTypeError, match="no transforms of float16"):
        dashi.fft.plan(device, 8, "fft", dtype=np.float16)
    with pytest.raises(ShapeError, match="this rfft2 takes float32 of shape"):
        dashi.fft.plan(device, (8, 8), "rfft2").steps(device.array(np.zeros((8, 6), np.float32)))


def test_sides_of_the_same_length_share_a_table(device: Device) -> None:
    across, down = dashi.fft.plan(device, (16, 16), "fft2").tables
    assert across is down
    across, down = dashi.fft.plan(device, (16, 8), "fft2").tables
    assert (across.shape, down.shape) == ((8, 2), (16, 2))
    real, down = dashi.fft.plan(device, (16, 16), "rfft2").tables
    assert real is not down
