"""How transforms are laid out on workgroups: within every device's limits, and without a trace in the bits."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from dashi import kernels
from dashi.kernels import fourier_layouts, spectral_stages
from dashi.kernels.abi import Limits
from dashi.kernels.fourier import is_length, plain_table, radices, real_table, table
from dashi.runtime.vulkan_device import VulkanDevice

LENGTHS = [n for n in range(1, 4097) if is_length(n)]
SMALLEST = Limits()
NUMBERS = {"points": 256, "each": 16, "bytes": 32, "rows": 1, "parts": 2, "groups": 1, "few": 65536}
FAMILIES = (fourier_layouts.FIELDS, fourier_layouts.REAL_FIELDS, spectral_stages.TUNINGS)
USUAL = Limits(invocations=1024, shared_bytes=49152)


@pytest.mark.parametrize("limits", [SMALLEST, replace(SMALLEST, invocations=256, shared_bytes=32768), USUAL])
@pytest.mark.parametrize("size", [4, 8])
@pytest.mark.parametrize("columns", [1, 3, 513])
def test_every_length_fits_every_device(limits: Limits, size: int, columns: int) -> None:
    for name, tuning in fourier_layouts.TUNINGS.items():
        for n in LENGTHS:
            made = fourier_layouts.layout(n, size, 1000, columns, limits, tuning)
            assert made.lanes <= limits.invocations, (name, n)
            assert made.lines * made.span * size * (3 - made.parts) <= limits.shared_bytes, (name, n)
            assert all(made.each >= r * -(-n * made.lines * made.inner // (r * made.lanes)) for r in radices(n))
            assert fourier_layouts.trips(made) <= limits.loop_trips


@pytest.mark.parametrize("limits", [SMALLEST, USUAL])
@pytest.mark.parametrize("size", [4, 8])
def test_every_side_has_numbers_that_fit(limits: Limits, size: int) -> None:
    for tuning in (numbers for family in FAMILIES for numbers in family.values()):
        for n in (8, 128, 1024, 2048, 4096):
            numbers = fourier_layouts.sized(tuning, n)
            long = n > tuning["long"]
            assert numbers["each"] == (tuning.get("long_each", tuning["each"]) if long else tuning["each"])
            made = fourier_layouts.layout(n, size, 1, n, limits, numbers)
            assert made.lanes <= limits.invocations
            assert made.lines * made.span * size * (3 - made.parts) <= limits.shared_bytes


@pytest.mark.parametrize("rows", [True, False])
def test_few_invocations_hold_one_butterfly_each_and_exchange_and_load_together(rows: bool) -> None:
    for tuning in (family["wide"] for family in FAMILIES):
        for n in (32, 64, 128, 256, 512, 1024):
            numbers = fourier_layouts.sized(tuning, n)
            made = fourier_layouts.layout(n, 4, *((n, 1) if rows else (1, n)), USUAL, numbers)
            assert made.each == max(radices(n)), n
            # A butterfly of 16 values is not short: complex fields exchange both parts of it, in pieces.
            long = (False, 1, 2) if "pieces" in tuning else (False, numbers["parts"], 1)
            assert (made.fetch, made.parts, made.windows) == ((True, 1, 1) if n < 1024 else long)
            assert made.specs()["FETCH"] == int(made.fetch)
    assert [max(radices(n)) for n in (64, 128, 256, 512, 1024)] == [4, 8, 8, 8, 16]


@pytest.mark.parametrize(
    ("name", "fields", "sides"),
    [("wide", 1000, (32, 64, 128, 256, 512)), ("wide", 1, (2048, 4096)), ("small", 1, (64, 128, 256, 512))],
)
def test_many_invocations_and_those_of_processors_hold_what_the_tuning_says(
    name: str, fields: int, sides: tuple[int, ...]
) -> None:
    for tuning in (family[name] for family in FAMILIES):
        for n in sides:
            numbers = fourier_layouts.sized(tuning, n)
            made = fourier_layouts.layout(n, 4, fields * n, 1, USUAL, numbers)
            assert (made.each, made.parts, made.fetch) == (numbers["each"], numbers["parts"], False), n


def test_lengths_with_odd_factors_hold_what_the_tuning_says() -> None:
    numbers = fourier_layouts.TUNINGS["wide"]
    for n in (96, 320, 960):
        made = fourier_layouts.layout(n, 4, n, 1, USUAL, numbers)
        assert (made.lanes - 32) * 16 < n * made.lines <= made.lanes * 16
        assert (made.parts, made.fetch) == (numbers["parts"], False)


@pytest.mark.parametrize("tuning", ["wide", "small"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n", [32, 64, 128, 256])
def test_powers_of_two_alone_have_numpys_bits(n: int, dtype: type, tuning: str, vulkan: VulkanDevice) -> None:
    x = np.random.default_rng(n).standard_normal((1, n, n)).astype(dtype)
    turns, scale = (real_table(n, dtype), table(n, dtype)), 1 / (n * n)
    modes = vulkan.run("rfft2", x, *turns, modes=n // 2 + 1, tuning=tuning).numpy()
    assert modes.tobytes() == np.asarray(kernels.get("rfft2").reference(x, *turns, n // 2 + 1, 1.0)).tobytes()
    again = vulkan.run("irfft2", modes, *turns, scale=scale, tuning=tuning).numpy()
    assert again.tobytes() == np.asarray(kernels.get("irfft2").reference(modes, *turns, scale)).tobytes()


@pytest.mark.parametrize("tuning", ["wide", "small"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shape", [(1, 8, 1024), (1, 1024, 8)])
def test_plain_transforms_have_their_own_radices_and_numpys_bits(
    shape: tuple[int, int, int], dtype: type, tuning: str, vulkan: VulkanDevice
) -> None:
    x = np.random.default_rng(7).standard_normal((*shape, 2)).astype(dtype)
    turns = plain_table(shape[2], dtype), plain_table(shape[1], dtype)
    for inverse in (0, 1):
        got = vulkan.run("fft2", x, *turns, inverse=inverse, tuning=tuning).numpy()
        assert got.tobytes() == np.asarray(kernels.get("fft2").reference(x, *turns, inverse, 1.0)).tobytes()
    along = np.fft.fft2(x.astype(np.float64).view(np.complex128)[..., 0])
    got = np.asarray(kernels.get("fft2").reference(x, *turns, 0, 1.0)).astype(np.float64)
    assert np.linalg.norm(got.view(np.complex128)[..., 0] - along) < 1e-6 * np.linalg.norm(along)


def test_lines_of_a_bundle_lie_on_one_workgroup() -> None:
    for n in (4, 64, 100, 1024):
        for lines in (4, 8, 4096):
            made = fourier_layouts.layout(n, 4, lines, 1, USUAL, spectral_stages.TUNINGS["wide"], bundle=4)
            assert made.lines % 4 == 0


@pytest.mark.parametrize(
    "numbers",
    [
        NUMBERS | {"points": 64, "bytes": 16, "shared": 300},  # windows
        NUMBERS | {"each": 8, "bytes": 8, "parts": 1, "windows": 2},
        NUMBERS | {"points": 1, "each": 64, "bytes": 1024, "parts": 1},  # few invocations with much each
    ],
)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shape", [(5, 60, 1), (1, 60, 7), (5, 64, 1), (1, 64, 7)])
def test_layouts_leave_no_trace_in_the_bits(
    numbers: dict[str, int], shape: tuple[int, int, int], dtype: type, vulkan: VulkanDevice
) -> None:
    kernel = replace(kernels.get("fft"), tunings={"odd": numbers}, prefer=None)
    x = np.random.default_rng(5).standard_normal((*shape, 2)).astype(dtype)
    turns = plain_table(shape[1], dtype)
    got = vulkan.run(kernel, x, turns, inverse=0).numpy()
    assert got.tobytes() == np.asarray(kernel.reference(x, turns, inverse=0, scale=1.0)).tobytes()


def test_windows_also_serve_real_lines(vulkan: VulkanDevice) -> None:
    numbers = NUMBERS | {"points": 64, "each": 8, "shared": 100}
    kernel = replace(kernels.get("rfft"), tunings={"odd": numbers}, prefer=None)
    x = np.random.default_rng(5).standard_normal((3, 96)).astype(np.float32)
    turns = real_table(96, np.float32)
    got = vulkan.run(kernel, x, turns, modes=49).numpy()
    assert got.tobytes() == np.asarray(kernel.reference(x, turns, modes=49, scale=1.0)).tobytes()
