"""Claims about transforms of lengths that no kernel has: NumPy's values, the same bits everywhere, what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import dashi.fft
from dashi.errors import InputError, OutOfMemoryError, ShapeError
from dashi.fft import _composed, plan
from dashi.fft.plans import KINDS
from dashi.kernels.fft._roots import is_length
from dashi.runtime import Device
from dashi.runtime._cpu_device import CpuDevice

EPS = {np.float32: 2.0**-23, np.float64: 2.0**-52}


def noise(shape: tuple[int, ...], real: Any, *, complexes: bool = True) -> Any:
    rng = np.random.default_rng(5)
    values = rng.standard_normal(shape).astype(real)
    if not complexes:
        return values
    return (values + 1j * rng.standard_normal(shape).astype(real)).astype(np.result_type(real, np.complex64))


def error(got: Any, expected: Any) -> float:
    return float(np.linalg.norm(np.ravel(got - expected)) / np.linalg.norm(np.ravel(expected)))


# Errors grow as log n (Higham, theorem 24.2); a chirp takes two transforms of twice the length and three products.
@pytest.mark.parametrize("real", [np.float32, np.float64])
@pytest.mark.parametrize("n", [1, 11, 22, 997, 1001, 4099, 5000, 8192])
def test_lines_of_any_length_are_numpys(n: int, real: Any) -> None:
    bound = EPS[real] * max(3.0, 0.5 * np.log2(n) + 2)
    z, x = noise((2, n), real), noise((2, n), real, complexes=False)
    wide = z.astype(np.complex128)
    assert error(dashi.fft.fft(z), np.fft.fft(wide)) < bound
    assert error(dashi.fft.ifft(z), np.fft.ifft(wide)) < bound
    modes = dashi.fft.rfft(x)
    assert (modes.shape, modes.dtype) == ((2, n // 2 + 1), z.dtype)
    assert error(modes, np.fft.rfft(x.astype(np.float64))) < bound
    assert error(dashi.fft.irfft(modes, n), x) < 2 * bound


@pytest.mark.long
@pytest.mark.parametrize("n", [32749, 32767, 32768])
def test_the_longest_lines_are_numpys(n: int) -> None:
    z = noise((1, n), np.float32)
    assert error(dashi.fft.fft(z), np.fft.fft(z.astype(np.complex128))) < 4 * EPS[np.float32]


@pytest.mark.parametrize("stem", ["fft", "ifft", "rfft", "irfft"])
@pytest.mark.parametrize("shape", [(6, 8, 10), (5, 11, 13), (4, 2, 7)])
def test_three_axes_are_numpys(stem: str, shape: tuple[int, ...]) -> None:
    z = noise(shape, np.float64, complexes=stem != "rfft")
    for more in ({}, {"axes": (2, 0)}, {"axes": (0, 1, 2), "s": (3, 6, 8)}, {"axes": (1,), "norm": "ortho"}):
        got, expected = getattr(dashi.fft, f"{stem}n")(z, **more), getattr(np.fft, f"{stem}n")(z, **more)
        assert (got.shape, got.dtype) == (expected.shape, expected.dtype)
        assert error(got, expected) < 2e-15, more


@pytest.mark.parametrize("real", [np.float32, np.float64])
@pytest.mark.parametrize("kind", KINDS)
def test_composed_transforms_have_the_same_bits_on_every_device(kind: Any, real: Any, vulkan: Device) -> None:
    shape = {"2": (2, 6, 11), "3": (5, 6, 11)}.get(kind[-1], (3, 11))
    with CpuDevice() as cpu:
        planned = plan(cpu, shape, kind, dtype=real)
        values = noise(planned.source_shape, real, complexes=False)
        expected = planned.run(cpu.array(values)).numpy()
    there = plan(vulkan, shape, kind, dtype=real)
    assert there.composition is not None
    assert there.run(vulkan.array(values)).numpy().tobytes() == expected.tobytes()


def test_long_smooth_lines_have_the_same_bits_on_every_device(vulkan: Device) -> None:
    z = noise((3, 5000), np.float32)
    assert dashi.fft.fft(z, device=vulkan).tobytes() == dashi.fft.fft(z).tobytes()
    assert dashi.fft.fft(z, axis=0, n=11, device=vulkan).tobytes() == dashi.fft.fft(z, axis=0, n=11).tobytes()


def test_a_composed_plan_is_recorded_once_and_run_often(device: Device) -> None:
    forward, back = plan(device, (2, 13), "rfft"), plan(device, (2, 13), "irfft")
    field, modes, again = device.empty((2, 13)), device.empty(forward.target_shape), device.empty((2, 13))
    with device.program([*forward.steps(field, modes), *back.steps(modes, again)]) as program:
        for seed in range(2):
            values = np.random.default_rng(seed).standard_normal((2, 13)).astype(np.float32)
            field.write(values)
            program.run()
            assert error(again.numpy(), values) < 1e-6


def test_lengths_are_cut_into_kernels() -> None:
    for n in (4097, 5000, 8192, 16807, 32768):
        if _composed.is_smooth(n):
            first, second = _composed.two_factors(n)
            assert first * second == n
            assert is_length(first)
            assert is_length(second)
    for n in (11, 997, 2049, 4099, 32749):
        m = _composed.padded_length(n)
        assert 2 * n - 1 <= m <= 1 << (2 * n - 2).bit_length()
        assert _composed.is_smooth(m)
    # As many passes over memory as a line takes: five where one kernel has the padded length, nine otherwise.
    with CpuDevice() as cpu:
        passes = {n: len(plan(cpu, (1, n), "fft").steps(cpu.empty((1, n, 2)))) for n in (1000, 8192, 997, 4099)}
    assert passes == {1000: 1, 8192: 3, 997: 5, 4099: 9}


@pytest.mark.parametrize("n", [0, -3, 32769, 65537])
def test_lengths_past_the_limits_are_refused(n: int, device: Device) -> None:
    with pytest.raises(ShapeError, match=f"no Fourier transform of {n} values: lines have 1 to 32768") as refused:
        plan(device, (1, n), "fft")
    assert refused.value.fix


def test_shapes_past_memory_are_refused_before_the_work_with_their_bytes(device: Device) -> None:
    with pytest.raises(OutOfMemoryError, match=r"takes [\d,]+\.\d GiB \(17,592,186,044,416 bytes\)") as refused:
        plan(device, (1024, 32768, 32768), "fft2")
    assert refused.value.fix


def test_composed_transforms_have_no_device_class_and_no_tunings(device: Device) -> None:
    choices: tuple[dict[str, Any], ...] = ({"portable": False}, {"tuning": "wide"})
    for more in choices:
        with pytest.raises(InputError, match="is composed of several kernels"):
            plan(device, (11, 11), "fft2", **more)


def test_no_more_than_three_axes_are_transformed() -> None:
    with pytest.raises(InputError, match="fftn transforms 1 to 3 axes, not 4"):
        dashi.fft.fftn(np.zeros((2, 2, 2, 2)))
