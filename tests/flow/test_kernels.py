"""Claims about the kernels of the flow lane that equality with their references does not make."""

from __future__ import annotations

import numpy as np
import pytest

from dashi import kernels, types
from dashi.errors import ShapeError
from dashi.flow._operator import ADVECTED, STRAINS
from dashi.kernels._philox import philox, unit
from dashi.kernels.abi import Call, Limits
from dashi.kernels.fft._roots import real_table, table
from dashi.kernels.spectral._modes import FIELDS, Floats
from dashi.kernels.spectral._stages import TUNINGS, dispatches, kept_columns
from dashi.runtime import Device
from dashi.runtime._vulkan_device import VulkanDevice
from dashi.runtime.device import ScratchPool


def test_philox_gives_the_published_words() -> None:
    # The known answers that come with the authors' Random123, for philox4x32 with 10 rounds.
    whole = 0xFFFFFFFF
    zeros = [int(w) for w in philox((0, 0, 0, 0), (0, 0))]
    ones = [int(w) for w in philox((whole, whole, whole, whole), (whole, whole))]
    assert zeros == [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]
    assert ones == [0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_units_lie_below_one(dtype: type) -> None:
    values = unit(np.array([0, 1 << 31, 0xFFFFFFFF], np.uint32), dtype)
    assert values.dtype == dtype
    assert values[0] == 0
    assert values[1] == 0.5
    assert values[2] < 1


def test_a_kick_counts_the_step_and_keeps_modes_conjugate(device: Device) -> None:
    n = 8
    x = np.zeros((2, n, n // 2 + 1, 2))
    amplitude = np.zeros((n, n // 2 + 1))
    amplitude[[1, 2, -1, -2], 0] = 0.5
    amplitude[1, 1] = 0.5
    kicked = device.run("random_kick", x, amplitude, seed=7).numpy()
    np.testing.assert_array_equal(kicked[:, 0, 0], [[0, 1], [0, 1]])
    for row in (1, 2):
        np.testing.assert_array_equal(kicked[:, row, 0] * [1, -1], kicked[:, -row, 0])
    sizes = np.hypot(kicked[..., 0], kicked[..., 1])
    np.testing.assert_allclose(sizes[:, amplitude > 0], 0.5, rtol=1e-15)
    # Another member, another seed and another step are other draws; a member is the run with the next seed.
    next_seed = device.run("random_kick", x[:1], amplitude, seed=8).numpy()
    np.testing.assert_array_equal(next_seed[0], kicked[1])
    assert not np.array_equal(kicked[0, 1, 1], kicked[1, 1, 1])
    again = device.run("random_kick", kicked, amplitude, seed=7).numpy()
    assert not np.array_equal(again[0, 1, 1] - kicked[0, 1, 1], kicked[0, 1, 1])
    np.testing.assert_array_equal(again[:, 0, 0, 1], 2)


def test_kicks_do_not_depend_on_the_grid(device: Device) -> None:
    entries = []
    for n in (8, 16):
        amplitude = np.zeros((n, n // 2 + 1), np.float32)
        amplitude[-2, 3] = amplitude[1, 0] = 1.0
        kicked = device.run("random_kick", np.zeros((1, n, n // 2 + 1, 2), np.float32), amplitude, seed=1).numpy()
        entries.append((kicked[0, -2, 3].tolist(), kicked[0, 1, 0].tolist()))
    assert entries[0] == entries[1]


def test_advection_refuses_fields_that_do_not_belong_together(device: Device) -> None:
    with pytest.raises(ShapeError, match="5 fields do not make 1 products"):
        device.run("advection", np.zeros((1, 5, 4, 4), np.float32), products=1, eddy=0.0)


def stage_inputs(n: int, members: int, seed: int = 0) -> tuple[Floats, ...]:
    """Modes, the tables of the grid, a known state and two tables, as `vorticity_stage2` takes them."""
    modes = n // 2 + 1
    rng = np.random.default_rng(seed)
    z, x = (rng.standard_normal((members, n, modes, 2)).astype(np.float32) for _ in range(2))
    wave_x, wave_y = np.arange(modes, dtype=np.float32), np.fft.fftfreq(n, 1 / n).astype(np.float32)
    square = wave_x[None] ** 2 + wave_y[:, None] ** 2
    inverse = (1 / np.maximum(square, 1)).astype(np.float32)
    tables = rng.standard_normal((2, n, modes)).astype(np.float32)
    twiddles = real_table(n, np.float32), table(n, np.float32)
    return (z, wave_x, wave_y, inverse, *twiddles, x, *tables)


@pytest.mark.parametrize("tuning", ["wide", "small"])
def test_a_forced_stage_is_tendency_force_and_sum_in_one(tuning: str, device: Device) -> None:
    n, keep = 32, kept_columns(32)
    *grid, x, first, second = stage_inputs(n, 2)
    force = np.random.default_rng(9).standard_normal((n, n // 2 + 1, 2)).astype(np.float32)
    inputs = (*grid, x, first, second, force.reshape(-1, 2))
    tendency, result = (a.numpy() for a in device.run("vorticity_stage2", *inputs, tuning=tuning))
    alone = device.run("vorticity_tendency", *grid, tuning=tuning)
    forced = device.run("mode_force", alone, force).numpy()
    summed = device.run("mode_sum2", x, forced, first, second).numpy()
    np.testing.assert_array_equal(tendency[:, :, :keep], forced[:, :, :keep])
    np.testing.assert_array_equal(result[:, :, :keep], summed[:, :, :keep])
    assert not result[:, :, keep:].any()


@pytest.mark.parametrize("shared", [16384, 32768, 49152])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_fields_lie_side_by_side_only_where_their_lines_lie_whole_in_shared_memory(dtype: str, shared: int) -> None:
    limits = Limits(invocations=1024, shared_bytes=shared)
    apart: set[str] = set()
    for n in (8, 32, 64, 96, 128, 256, 384, 512):
        for members in (1, 2, 4, 16, 64):
            dims = {"members": members, "n": n, "modes": n // 2 + 1}
            call = Call(types.dtype(dtype), {}, dims, {}, limits, TUNINGS["wide"])
            rows = dispatches(call, "columns", ("result",)).dispatches[1]
            apart.add(rows.shader.removesuffix("_mixed"))
            if rows.shader.startswith("beside"):
                assert (rows.spec["PARTS"], rows.spec["WINDOWS"]) == (1, 1), (n, members)
    assert apart == {"beside", "rows"}


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_many_small_fields_have_numpys_bits_where_shared_memory_is_short(dtype: type, vulkan: VulkanDevice) -> None:
    inputs = [np.asarray(a, dtype) for a in stage_inputs(128, 16)[:4]] + [real_table(128, dtype), table(128, dtype)]
    got = vulkan.run("vorticity_tendency", *inputs, tuning="wide").numpy()
    assert got.tobytes() == np.asarray(kernels.get("vorticity_tendency").reference(*inputs)).tobytes()


def test_the_eddy_tendency_is_its_parts_one_after_the_other(device: Device) -> None:
    n, keep, eddy = 24, kept_columns(24), 0.3
    z, *waves, inverse, twiddles, twiddles_columns = stage_inputs(n, 2)[:6]
    low = np.minimum(np.arange(n), n - np.arange(n)) * 3 < n
    z = np.where(low[:, None, None] & (np.arange(n // 2 + 1) < keep)[:, None], z, np.float32(0))
    computed = device.run("vorticity_eddy", z, *waves, inverse, twiddles, twiddles_columns, eddy=eddy).numpy()
    kinds = np.array([FIELDS.index(name) for name in (*ADVECTED, *STRAINS)], np.uint32)
    spectra = device.run("spectral_fields", z, *waves, inverse, kinds).numpy()
    values = device.run("irfft2", spectra.reshape(12, n, -1, 2), twiddles, twiddles_columns).numpy()
    products = device.run("advection", values.reshape(2, 6, n, n), products=3, eddy=eddy).numpy()
    flat = products.reshape(6, n, n)
    modes = device.run("rfft2", flat, twiddles, twiddles_columns, modes=n // 2 + 1, scale=1.0 / (n * n)).numpy()
    whole = device.run("flux_divergence", modes.reshape(2, 3, n, -1, 2), *waves).numpy()
    np.testing.assert_array_equal(computed[:, :, :keep], whole[:, :, :keep])
    assert not computed[:, :, keep:].any()


def test_a_force_of_another_grid_is_refused(device: Device) -> None:
    with pytest.raises(ShapeError, match="a force of 7 pairs does not belong to 40 modes"):
        device.run("vorticity_stage2", *stage_inputs(8, 1), np.zeros((7, 2), np.float32))


def test_steps_of_one_room_share_what_lies_between_their_dispatches(vulkan: VulkanDevice) -> None:
    values = [vulkan.array(a) for a in (*stage_inputs(16, 1), np.zeros((1, 2), np.float32))]
    room: ScratchPool = {}
    apart = vulkan.bind("vorticity_stage2", *values)
    steps = [vulkan.bind("vorticity_stage2", *values, scratch=room) for _ in range(3)]
    assert {name for name, _, _ in room} == {"spectra", "between"}
    kept = [set(map(id, step.lowered.storage.values())) for step in (*steps, apart)]
    assert len(kept[0] & kept[1] & kept[2]) == len(kept[0] & kept[3]) + 2
    with vulkan.program([*steps, apart]) as program:
        program.run()
    assert len({step.outputs[1].numpy().tobytes() for step in (*steps, apart)}) == 1


def test_a_shell_that_leaves_its_lists_is_not_a_number(device: Device) -> None:
    x = np.ones((1, 2, 2, 2), np.float32)
    lists = (np.ones(3, np.float32), np.array([0, 1, 9], np.uint32), np.array([0, 2, 3, 4], np.uint32))
    found = device.run("mode_shells", x, x, *lists, shells=3, longest=2).numpy()
    assert found[0, 0] == 4
    assert np.isnan(found[0, 1:]).all()
