"""How transforms are laid out on workgroups: within every device's limits, and without a trace in the bits."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from dashi import kernels
from dashi.kernels.abi import Call, Limits, Plan
from dashi.kernels.fft import _layouts as fourier_layouts
from dashi.kernels.fft._roots import is_length, radices, real_table, table
from dashi.kernels.spectral import _stages as spectral_stages
from dashi.runtime._vulkan_device import VulkanDevice
from dashi.types import DTYPES

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
            layout = fourier_layouts.layout(n, size, 1000, columns, limits, tuning)
            assert layout.lanes <= limits.invocations, (name, n)
            assert layout.lines * layout.span * size * (3 - layout.parts) <= limits.shared_bytes, (name, n)
            assert all(layout.each >= r * -(-n * layout.lines * layout.inner // (r * layout.lanes)) for r in radices(n))
            assert fourier_layouts.trips(layout) <= limits.loop_trips


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
            layout = fourier_layouts.layout(n, 4, *((n, 1) if rows else (1, n)), USUAL, numbers)
            assert layout.each == max(radices(n)), n
            long = (False, numbers["parts"], 1)  # a butterfly of 16 values is not short
            assert (layout.fetch, layout.parts, layout.windows) == ((True, 1, 1) if n < 1024 else long)
            assert layout.specs()["FETCH"] == int(layout.fetch)
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
    twiddles, scale = (real_table(n, dtype), table(n, dtype)), 1 / (n * n)
    modes = vulkan.run("rfft2", x, *twiddles, modes=n // 2 + 1, tuning=tuning).numpy()
    assert modes.tobytes() == np.asarray(kernels.get("rfft2").reference(x, *twiddles, n // 2 + 1, 1.0)).tobytes()
    again = vulkan.run("irfft2", modes, *twiddles, scale=scale, tuning=tuning).numpy()
    assert again.tobytes() == np.asarray(kernels.get("irfft2").reference(modes, *twiddles, scale)).tobytes()


def field_plan(
    shape: tuple[int, int, int], limits: Limits = USUAL, dtype: str = "f32", changed: dict[str, int] | None = None
) -> Plan:
    """The passes of `fft2` for a field on a device."""
    kernel = kernels.get("fft2")
    dims = {"batch": shape[0], "h": shape[1], "w": shape[2]}
    tuning = {**kernel.tunings["wide"], **(changed or {})}
    return kernel.plan(Call(DTYPES[dtype], {}, dims, {"inverse": 0, "scale": 1.0}, limits, tuning))


FIELDS_SHARED_OUT = [(1, 1024, 1024), (3, 1024, 1024), (1, 64, 1024), (2, 12, 1024)]


@pytest.mark.parametrize("dtype", ["f32", "f64"])
@pytest.mark.parametrize("shape", FIELDS_SHARED_OUT)
def test_rows_of_1024_values_do_the_first_stage_of_the_columns(shape: tuple[int, int, int], dtype: str) -> None:
    batch, h, w = shape
    rows, columns = field_plan(shape, dtype=dtype).dispatches
    assert {name: rows.spec[name] for name in ("N", "AHEAD", "BEGUN", "STEP", "LINES")} == {
        "N": w, "AHEAD": 4, "BEGUN": 1, "STEP": h // 4, "LINES": 4,
    }  # fmt: skip
    assert rows.spec["LANES"] * rows.spec["LAST"] == w
    assert rows.groups[0] * rows.groups[1] == batch * h // 4
    assert {name: columns.spec[name] for name in ("N", "AHEAD", "BEGUN", "STEP", "COLUMNS")} == {
        "N": h // 4, "AHEAD": 1, "BEGUN": 4, "STEP": 1, "COLUMNS": 4 * w,
    }  # fmt: skip
    assert w % columns.spec["INNER"] == 0
    assert rows.spec["TILE_ROWS"] == columns.spec["TILE_ROWS"] == min(16, h // 4)


@pytest.mark.parametrize(
    ("shape", "limits", "changed"),
    [
        ((1, 1024, 1024), SMALLEST, {}),  # 128 invocations hold fewer rows
        ((1, 1024, 1024), USUAL, {"bytes": 24}),  # three columns at once, which 1024 is no multiple of
        ((1, 1024, 1024), USUAL, {"each": 8}),
        ((1, 1024, 512), USUAL, {}),  # rows that end with eight values
        ((1, 4, 1024), USUAL, {}),  # no further stage
        ((1, 1, 1024), USUAL, {}),
        ((1, 1024, 960), USUAL, {}),
        ((1, 2048, 1024), USUAL, {}),  # columns that begin with sixteen values
    ],
)
def test_other_fields_have_two_whole_passes(
    shape: tuple[int, int, int], limits: Limits, changed: dict[str, int]
) -> None:
    rows, columns = field_plan(shape, limits, changed=changed).dispatches
    for one, n in ((rows, shape[2]), (columns, shape[1])):
        assert {name: one.spec[name] for name in ("N", "AHEAD", "BEGUN", "STEP", "HOLD")} == {
            "N": n, "AHEAD": 1, "BEGUN": 1, "STEP": 1, "HOLD": 0,
        }  # fmt: skip


@pytest.mark.parametrize("limits", [SMALLEST, replace(SMALLEST, invocations=1024), USUAL])
@pytest.mark.parametrize("dtype", ["f32", "f64"])
@pytest.mark.parametrize("shape", [*FIELDS_SHARED_OUT, (1, 512, 512), (1, 4096, 1024), (1, 60, 1024)])
def test_fields_fit_the_shared_memory_of_every_device(shape: tuple[int, int, int], dtype: str, limits: Limits) -> None:
    size = DTYPES[dtype].size
    for one in field_plan(shape, limits, dtype).dispatches:
        spec = one.spec
        values = spec["LINES"] * spec["SPAN"] * (3 - spec["PARTS"])
        factors = spec["R0"] * spec["R1"] if spec["HOLD"] else 1
        assert values * size + 2 * size * (1 + factors) <= limits.shared_bytes


@pytest.mark.parametrize("numbers", [{}, {"bytes": 24}, {"shared": 12288}, {"parts": 1}, {"begun_rows": 3}])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shape", [(1, 8, 1024), (2, 16, 1024), (1, 12, 1024), (1, 1024, 8)])
def test_how_a_field_is_shared_out_leaves_no_trace_in_the_bits(
    shape: tuple[int, int, int], dtype: type, numbers: dict[str, int], vulkan: VulkanDevice
) -> None:
    wide = kernels.get("fft2").tunings["wide"]
    kernel = replace(kernels.get("fft2"), tunings={"odd": {**wide, **numbers}}, prefer=None)
    x = np.random.default_rng(7).standard_normal((*shape, 2)).astype(dtype)
    x[0, 1, :3] = [[1e-30, -1e-38], [0.0, 1e-44], [-2e-20, 3e20]]
    twiddles = table(shape[2], dtype, "rows"), table(shape[1], dtype, "columns")
    for inverse in (0, 1):
        got = vulkan.run(kernel, x, *twiddles, inverse=inverse, scale=0.3).numpy()
        assert got.tobytes() == np.asarray(kernel.reference(x, *twiddles, inverse, 0.3)).tobytes()


@pytest.mark.parametrize("shape", [(5, 8, 1024), (2, 8, 64)])
def test_fields_of_more_workgroups_than_fit_side_by_side(shape: tuple[int, int, int], vulkan: VulkanDevice) -> None:
    base = kernels.get("fft2")

    def plan(call: Call) -> Plan:
        made = base.plan(replace(call, limits=replace(call.limits, groups=3)))
        assert any(one.groups[1] > 1 and one.spec["WHOLE"] == 0 for one in made.dispatches)
        return made

    x = np.random.default_rng(3).standard_normal((*shape, 2)).astype(np.float32)
    twiddles = table(shape[2], np.float32, "rows"), table(shape[1], np.float32, "columns")
    got = vulkan.run(replace(base, plan=plan), x, *twiddles, inverse=0, tuning="wide").numpy()
    assert got.tobytes() == np.asarray(base.reference(x, *twiddles, 0, 1.0)).tobytes()


@pytest.mark.parametrize("tuning", ["wide", "small"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_whole_field_of_1024_has_numpys_bits_and_its_values(dtype: type, tuning: str, vulkan: VulkanDevice) -> None:
    x = np.random.default_rng(7).standard_normal((1, 1024, 1024, 2)).astype(dtype)
    twiddles = table(1024, dtype, "rows"), table(1024, dtype, "columns")
    got = vulkan.run("fft2", x, *twiddles, inverse=0, tuning=tuning).numpy()
    assert got.tobytes() == np.asarray(kernels.get("fft2").reference(x, *twiddles, 0, 1.0)).tobytes()
    along = np.fft.fft2(x.astype(np.float64).view(np.complex128)[..., 0])
    error = np.linalg.norm(got.astype(np.float64).view(np.complex128)[..., 0] - along) / np.linalg.norm(along)
    assert error < 4 * np.finfo(dtype).eps


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
    twiddles = table(shape[1], dtype, "lines")
    got = vulkan.run(kernel, x, twiddles, inverse=0).numpy()
    assert got.tobytes() == np.asarray(kernel.reference(x, twiddles, inverse=0, scale=1.0)).tobytes()


def test_windows_also_serve_real_lines(vulkan: VulkanDevice) -> None:
    numbers = NUMBERS | {"points": 64, "each": 8, "shared": 100}
    kernel = replace(kernels.get("rfft"), tunings={"odd": numbers}, prefer=None)
    x = np.random.default_rng(5).standard_normal((3, 96)).astype(np.float32)
    twiddles = real_table(96, np.float32)
    got = vulkan.run(kernel, x, twiddles, modes=49).numpy()
    assert got.tobytes() == np.asarray(kernel.reference(x, twiddles, modes=49, scale=1.0)).tobytes()
