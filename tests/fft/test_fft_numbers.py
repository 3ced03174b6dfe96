"""Lengths, radices, roots of unity, and what the transforms are worth beside exact ones."""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Any

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dashi.fft
from dashi.errors import ShapeError
from dashi.kernels import _glsl as glsl
from dashi.kernels.fft import _roots as fourier
from dashi.kernels.fft._roots import Use, is_length, radices, real_table, table, unit_roots

LENGTHS = [n for n in range(1, 4097) if is_length(n)]
TYPES = [np.float32, np.float64]
lengths = st.sampled_from([n for n in LENGTHS if n <= 600])


def exact(part: Any, n: int, m: int, digits: int) -> float:
    """cos or sin of 2 pi m / n, rounded once by mpmath from 300 binary digits."""
    with mpmath.workprec(300):
        value = part(2 * mpmath.pi * m / n)
    if abs(value) < mpmath.mpf(2) ** -100:
        return 0.0
    with mpmath.workprec(digits):
        return float(+value)


def test_radices_multiply_to_every_length() -> None:
    assert len(LENGTHS) == 248
    assert all(math.prod(radices(n)) == n for n in LENGTHS)
    assert all(len(radices(n)) <= fourier.MOST_STAGES for n in LENGTHS)


FIRST = {2: (2,), 4: (4,), 8: (8,), 16: (16,), 32: (8, 4), 64: (8, 8), 128: (16, 8), 256: (16, 16), 512: (8, 8, 8)}
FIRST |= {1: (), 1024: (8, 16, 8), 2048: (16, 8, 16), 4096: (16, 16, 16)}
"""Radices of the power of two in a length."""
OTHERS: dict[Use, tuple[int, ...]] = {"lines": (16, 8, 8), "rows": (16, 16, 4), "columns": (4, 16, 16)}
"""Radices of 1024 complex values, by what they are used for."""
ALONE = {32: (4, 2, 4), 64: (4, 4, 4), 128: (8, 2, 8), 256: (8, 4, 8)}


def test_radices_decide_bits_so_every_length_has_those_it_is_known_by() -> None:
    for n in LENGTHS:
        power = n & -n
        odd = tuple(prime for prime in (7, 5, 3) for k in range(1, 8) if n % prime**k == 0)
        assert radices(n) == (ALONE.get(n, FIRST[n]) if n == power else (*FIRST[power], *odd)), n
        for use, other in OTHERS.items():
            assert radices(n, use) == (other if n == 1024 else radices(n)), n


def test_powers_of_two_fit_their_shader_and_end_as_they_begin() -> None:
    for n in (n for n in FIRST if n > 1):
        assert len(radices(n)) <= 3
        assert all(len(radices(n, use)) <= 3 for use in OTHERS)
        assert radices(n)[0] == radices(n)[-1]


@pytest.mark.parametrize("n", [0, 11, 4097, -3, 2 * 2053])
def test_a_length_without_a_transform_is_refused_with_the_nearest(n: int) -> None:
    with pytest.raises(ShapeError, match=r"no Fourier transform of .* Fix: pad or crop to"):
        radices(n)


@pytest.mark.parametrize(("dtype", "digits"), [(np.float32, 24), (np.float64, 53)])
@pytest.mark.parametrize("n", [1, 2, 3, 5, 6, 7, 16, 360, 1001 // 143 * 49, 4096])
def test_roots_of_unity_are_correctly_rounded(n: int, dtype: type, digits: int) -> None:
    roots = unit_roots(n, dtype)
    for m in sorted({*range(min(n, 24)), n // 8, n // 3, n - 1}):
        assert float(roots[m, 0]) == exact(mpmath.cos, n, m, digits)
        assert float(-roots[m, 1]) == exact(mpmath.sin, n, m, digits)


@pytest.mark.parametrize("dtype", TYPES)
def test_roots_keep_the_symmetry_of_the_circle(dtype: type) -> None:
    roots = unit_roots(840, dtype)
    assert np.array_equal(roots[1:, 0], roots[:0:-1, 0])
    assert np.array_equal(roots[1:, 1], -roots[:0:-1, 1])
    assert not np.signbit(roots[roots == 0]).any()


@pytest.mark.parametrize("use", ["within", *OTHERS])
@pytest.mark.parametrize("n", [240, 1024])
def test_a_table_holds_the_factors_of_its_stages(n: int, use: Use) -> None:
    size = 1
    values = table(n, np.float64, use)
    roots = unit_roots(n, np.float64)
    for radix in radices(n, use):
        for t in range(1, radix):
            for k in range(size):
                assert np.array_equal(values[t * size + k], roots[t * k * (n // (size * radix))])
        size *= radix


def test_a_real_table_ends_with_the_roots() -> None:
    assert np.array_equal(real_table(48, np.float64)[24:], unit_roots(48, np.float64)[:24])


def test_the_shaders_multiply_with_the_same_constants() -> None:
    text = (glsl.INCLUDES / "fft_butterflies.glsl").read_text()
    double, single = text.split("#else")[0], text.split("#else")[1]
    for part, dtype in ((double, np.float64), (single, np.float32)):
        found = {name: float(value) for name, value in re.findall(r"const T (\w+) = (-?[0-9.]+)(?:lf)?;", part)}
        assert found == {name: float(value) for name, value in fourier.constants(dtype).items()}


def pairs(z: Any, real: type) -> Any:
    return z.astype(np.complex64 if real is np.float32 else np.complex128)


def noise(shape: tuple[int, ...], seed: int = 0) -> Any:
    rng = np.random.default_rng(seed)
    return rng.standard_normal(shape) + 1j * rng.standard_normal(shape)


def error(got: Any, wanted: Any) -> float:
    """Relative, in the L2 norm, in long double."""
    wide = np.asarray(got).astype(np.clongdouble)
    return float(np.sqrt(np.sum(np.abs(wide - wanted) ** 2) / np.sum(np.abs(wanted) ** 2)))


def bound(n: int, dtype: type) -> float:
    """The theorem's bound: log2(n) stages, in each an error of the factor (u) and of one complex product and sum,
    (1 + 4 sqrt 2) u = 6.7 u of the norm (N. Higham, Accuracy and Stability of Numerical Algorithms, 2nd ed., theorem
    24.2, doi 10.1137/1.9780898718027), with u half an eps. Radices 3, 5 and 7, as sums of at most 4, 5 and 7 products,
    stay below 7 u per doubling."""
    return 3.5 * float(np.finfo(dtype).eps) * math.log2(n)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("n", [2, 3, 5, 7, 16, 49, 64, 125, 243, 360, 1024, 2187, 2401, 3125, 4096])
def test_errors_against_long_double_are_within_the_theorem_and_far_below(n: int, dtype: type) -> None:
    z = pairs(noise((4, n)), dtype)
    wide = np.fft.fft(z.astype(np.clongdouble))
    values = error(dashi.fft.fft(z), wide)
    assert values <= bound(n, dtype)
    # What rounding errors of random signs add up to; measured: at most 0.17.
    assert values <= 0.25 * float(np.finfo(dtype).eps) * math.log2(n)
    back = error(dashi.fft.ifft(z), np.fft.ifft(z.astype(np.clongdouble)))
    assert back <= bound(n, dtype) + float(np.finfo(dtype).eps)


@pytest.mark.parametrize("dtype", TYPES)
def test_real_fields_have_the_same_bound(dtype: type) -> None:
    for shape in ((96, 128), (35, 45), (64, 81)):
        field = noise(shape).real.astype(dtype)
        limit = bound(math.prod(shape), dtype) + 8 * float(np.finfo(dtype).eps)
        modes = np.fft.rfft2(field.astype(np.longdouble))
        assert error(dashi.fft.rfft2(field), modes) <= limit
        assert error(dashi.fft.irfft2(dashi.fft.rfft2(field), s=shape), field) <= 2 * limit


@settings(max_examples=30)
@given(n=lengths, seed=st.integers(0, 99))
def test_transforms_agree_with_numpy(n: int, seed: int) -> None:
    z = noise((2, n), seed)
    limit = 2 * bound(max(n, 2), np.float64)
    assert error(dashi.fft.fft(z), np.fft.fft(z)) <= limit
    assert error(dashi.fft.ifft(z, norm="ortho"), np.fft.ifft(z, norm="ortho")) <= limit
    assert error(dashi.fft.rfft(z.real), np.fft.rfft(z.real)) <= 2 * limit
    assert error(dashi.fft.irfft(z[:, : n // 2 + 1], n), np.fft.irfft(z[:, : n // 2 + 1], n)) <= 2 * limit


def test_transforms_agree_with_scipy() -> None:
    scipy_fft = pytest.importorskip("scipy.fft")
    z = noise((48, 60)).astype(np.complex64)
    assert error(dashi.fft.fft2(z), scipy_fft.fft2(z)) <= 2 * bound(48 * 60, np.float32)
    assert error(dashi.fft.rfft2(z.real), scipy_fft.rfft2(z.real)) <= 2 * bound(48 * 60, np.float32)


@settings(max_examples=20)
@given(n=lengths)
def test_energy_is_kept(n: int) -> None:
    z = noise((1, n))
    modes = dashi.fft.fft(z, norm="ortho")
    assert abs(np.vdot(modes, modes).real / np.vdot(z, z).real - 1) <= 2 * bound(max(n, 2), np.float64)


@settings(max_examples=20)
@given(n=lengths)
def test_transforms_are_linear(n: int) -> None:
    a, b = noise((1, n), 1), noise((1, n), 2)
    joined = dashi.fft.fft(a) - 3 * dashi.fft.fft(b)
    assert error(dashi.fft.fft(a - 3 * b), joined) <= 4 * bound(max(n, 2), np.float64)


@pytest.mark.parametrize("n", [1, 2, 6, 60, 105, 1024, 4096])
def test_an_impulse_has_equal_modes_exactly(n: int) -> None:
    z = np.zeros((1, n), np.complex64)
    z[0, 0] = 3 - 2j
    assert np.array_equal(dashi.fft.fft(z), np.full((1, n), 3 - 2j, np.complex64))


@pytest.mark.parametrize("n", [2, 12, 64, 1024, 4096])
def test_a_constant_has_one_mode_exactly(n: int) -> None:
    modes = dashi.fft.fft(np.full((1, n), 0.75, np.float32))
    assert modes[0, 0] == np.float32(0.75 * n)
    assert not modes[0, 1:].any()


@pytest.mark.parametrize("n", [4, 64, 2048])
def test_a_wave_of_four_values_has_one_mode_exactly(n: int) -> None:
    z = np.tile(np.array([1, 1j, -1, -1j], np.complex64), n // 4)[None]
    modes = dashi.fft.fft(z)
    assert modes[0, n // 4] == n
    assert np.count_nonzero(modes) == 1


def test_complex_products_do_not_show_how_a_device_treats_subnormals() -> None:
    """Products below 2^-126 are kept by some devices and made 0 by others: flushed sums of two must not differ."""
    rng = np.random.default_rng(8)
    count = 1 << 18
    exponents = rng.integers(-70, -20, (4, count))
    a, b, c, d = (np.ldexp(rng.uniform(-2, 2, count), e).astype(np.float32) for e in exponents)
    tiny = np.float32(2.0**-126)

    def times(x: Any, y: Any, gradual: bool) -> Any:
        exact = x.astype(np.float64) * y.astype(np.float64)
        return x * y if gradual else np.where(np.abs(exact) < tiny, np.float32(0), x * y)

    gradual_values, gone = (times(a, c, gradual) - times(b, d, gradual) for gradual in (True, False))
    assert not np.array_equal(gradual_values, gone)
    gradual_values, gone = (
        np.where(np.abs(v) < np.float32(2.0**-95), np.float32(0), v) for v in (gradual_values, gone)
    )
    assert gradual_values.any()
    assert np.array_equal(gradual_values, gone)


@pytest.mark.skipif(float(np.finfo(np.longdouble).eps) > 1e-18, reason="long double is no wider than double here")
def test_the_page_gives_the_errors_that_every_machine_finds(request: pytest.FixtureRequest) -> None:
    page = Path(request.config.rootpath) / "docs" / "fft.md"
    rows = re.findall(r"^\| (\d+) \| ([0-9.]+) \| ([0-9.]+) \|", page.read_text(), re.MULTILINE)
    assert len(rows) >= 6
    for n, *claims in rows:
        for dtype, claimed in zip(TYPES, claims, strict=True):
            z = pairs(noise((4, int(n))), dtype)
            found = error(dashi.fft.fft(z), np.fft.fft(z.astype(np.clongdouble)))
            assert f"{found / float(np.finfo(dtype).eps):.2f}" == claimed, n
