"""What the affine warps promise beyond agreeing with their references."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dashi import kernels
from dashi.errors import InputError, ShapeError
from dashi.kernels._calls import resolve_call
from dashi.kernels._cases import specials
from dashi.kernels.portable import canon
from dashi.kernels.warp._bilinear import CLAMP, WRAP, ZERO
from dashi.runtime._vulkan_device import VulkanDevice
from dashi.runtime.device import Device
from dashi.types import DTYPES, HostArray

IDENTITY: dict[str, Any] = {"a": 1.0, "b": 0.0, "tx": 0.0, "c": 0.0, "d": 1.0, "ty": 0.0}
BORDERS = pytest.mark.parametrize("border", [CLAMP, ZERO, WRAP])
FLOATS = pytest.mark.parametrize("kind", [np.float32, np.float64])


def shifted(tx: float = 0.0, ty: float = 0.0) -> dict[str, Any]:
    return {**IDENTITY, "tx": tx, "ty": ty}


def field(h: int, w: int, kind: type = np.float32, seed: int = 0) -> HostArray:
    return np.random.default_rng(seed).standard_normal((h, w)).astype(kind)


def awkward(h: int, w: int, kind: type) -> HostArray:
    """NaN, infinities and the largest numbers next to each other."""
    table = specials(DTYPES["f32" if kind is np.float32 else "f64"])
    return np.resize(np.random.default_rng(1).permutation(table), (h, w))


def table_of(*tiles: int, **matrix: float) -> HostArray:
    return np.broadcast_to(np.array(list(matrix.values()), np.float32), (*tiles, 6)).copy()


@BORDERS
@FLOATS
def test_the_identity_keeps_every_value_whatever_its_neighbours(device: Device, border: int, kind: type) -> None:
    x = awkward(9, 13, kind)
    got = device.run("warp_affine", x, **IDENTITY, border=border).numpy()
    assert got.tobytes() == canon(x).tobytes()


@FLOATS
def test_whole_shifts_move_pixels_and_change_none(device: Device, kind: type) -> None:
    x = awkward(9, 13, kind)
    shift = shifted(tx=3.0, ty=-2.0)
    padded = np.zeros_like(x)
    padded[2:, :-3] = canon(x)[:-2, 3:]
    rows, columns = np.clip(np.arange(9) - 2, 0, 8), np.clip(np.arange(13) + 3, 0, 12)
    expected = {CLAMP: canon(x)[np.ix_(rows, columns)], ZERO: padded, WRAP: np.roll(canon(x), (2, -3), (0, 1))}
    for border, wanted in expected.items():
        assert device.run("warp_affine", x, **shift, border=border).numpy().tobytes() == wanted.tobytes()


def test_a_quarter_turn_is_exact(device: Device) -> None:
    x = field(17, 17)
    turn: dict[str, Any] = {
        "a": 0.0,
        "b": -1.0,
        "tx": 16.0,
        "c": 1.0,
        "d": 0.0,
        "ty": 0.0,
    }  # result[y, x] = x[x, 16 - y]
    got = device.run("warp_affine", x, **turn).numpy()
    assert got.tobytes() == np.rot90(x).tobytes()


def test_half_a_pixel_is_the_mean_of_two(device: Device) -> None:
    x = np.array([[1, 3, 7, 15]], np.float32)
    for border, last in ((CLAMP, 15.0), (ZERO, 7.5), (WRAP, 8.0)):
        got = device.run("warp_affine", x, **shifted(tx=0.5), border=border).numpy()
        assert got.tolist() == [[2.0, 5.0, 11.0, last]]


def test_negative_coordinates_are_rounded_down(device: Device) -> None:
    x = np.array([[8, 16, 32, 64]], np.float32)
    got = device.run("warp_affine", x, **shifted(tx=-5.25), border=WRAP).numpy()
    # -5.25 is a quarter short of column -5, which is column 3; and so on.
    assert got.tolist() == [[32 + 0.75 * 32, 64 - 0.75 * 56, 8 + 0.75 * 8, 16 + 0.75 * 16]]


def test_a_constant_plane_stays_constant(device: Device) -> None:
    x = np.full((20, 30), 0.1, np.float32)
    for border in (CLAMP, WRAP):
        got = device.run("warp_affine", x, a=0.7, b=0.3, tx=-4.3, c=-0.2, d=1.9, ty=0.77, border=border).numpy()
        assert got.tobytes() == x.tobytes()


def test_a_plane_of_coordinates_is_mapped_to_the_mapped_coordinates() -> None:
    y, x = np.indices((40, 50)).astype(np.float64)
    m: dict[str, Any] = {"a": 0.5, "b": 0.1, "tx": 3.3, "c": -0.2, "d": 0.6, "ty": 12.0}
    reference = kernels.get("warp_affine").reference
    u, v = m["a"] * x + m["b"] * y + m["tx"], m["c"] * x + m["d"] * y + m["ty"]
    # Inside, a bilinear sample of a linear plane is exact but for a few roundings of numbers below 64.
    inside = (u >= 0) & (u <= 49) & (v >= 0) & (v <= 39)
    assert inside.sum() > 1000
    assert np.abs(np.asarray(reference(x, **m), np.float64) - u)[inside].max() < 8 * 64 * 2.0**-53
    assert np.abs(np.asarray(reference(y, **m), np.float64) - v)[inside].max() < 8 * 64 * 2.0**-53


@BORDERS
@FLOATS
def test_coordinates_of_any_size_are_safe(device: Device, border: int, kind: type) -> None:
    x = np.array([[1, 2, 3], [4, 5, 6]], kind)
    far = {-math.inf: 1.0, -3e38: 1.0, -(2.0**30) - 64: 1.0, 2.0**30: 3.0, 2.0**31: 3.0, 3e38: 3.0, math.inf: 3.0}
    for tx, nearest in far.items():
        got = device.run("warp_affine", x, **shifted(tx=tx), border=border).numpy()
        expected = {CLAMP: nearest, ZERO: 0.0, WRAP: math.nan}[border]
        assert np.array_equal(got[0], [expected] * 3, equal_nan=True), tx
    got = device.run("warp_affine", x, **shifted(ty=math.nan), border=border).numpy()
    assert np.isnan(got).all()


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.tuples(st.integers(1, 40), st.integers(1, 70)),
    st.lists(st.floats(-100, 100, width=32), min_size=6, max_size=6),
    st.sampled_from([CLAMP, ZERO, WRAP]),
    st.integers(1, 20),
)
def test_any_shape_and_matrix_gives_the_same_bits_whole_and_by_tiles(
    vulkan: VulkanDevice, shape: tuple[int, int], numbers: list[float], border: int, spare: int
) -> None:
    x = field(*shape)
    matrix: dict[str, Any] = dict(zip(IDENTITY, numbers, strict=True))
    expected = np.asarray(kernels.get("warp_affine").reference(x, **matrix, border=border))
    assert vulkan.run("warp_affine", x, **matrix, border=border).numpy().tobytes() == expected.tobytes()
    table = table_of(-(-shape[0] // 16) + spare, -(-shape[1] // 16), **matrix)
    got = vulkan.run("warp_affine_tiles", x, table, tile=16, border=border).numpy()
    assert got.tobytes() == expected.tobytes()


def test_each_tile_has_its_own_matrix(device: Device) -> None:
    x = field(6, 8)
    table = table_of(2, 2, **IDENTITY)
    table[0, 1, 2] = -4  # the upper right tile shows the upper left one
    table[1, 0] = 0
    table[1, 0, 2], table[1, 0, 5] = 7, 5  # the lower left tile shows one pixel
    got = device.run("warp_affine_tiles", x, table, tile=4).numpy()
    expected = x.copy()
    expected[:4, 4:] = x[:4, :4]
    expected[4:, :4] = x[5, 7]
    assert got.tobytes() == expected.tobytes()


def test_tiles_may_be_single_pixels(device: Device) -> None:
    x = field(3, 5)
    table = table_of(3, 5, **IDENTITY)
    table[..., 2] = 4 - 2 * np.arange(5)
    assert device.run("warp_affine_tiles", x, table, tile=1).numpy().tobytes() == x[:, ::-1].tobytes()


def test_a_border_that_does_not_exist_is_refused(device: Device) -> None:
    with pytest.raises(InputError) as caught:
        device.run("warp_affine", field(2, 2), **IDENTITY, border=3)
    assert str(caught.value) == (
        "kernel 'warp_affine': there is no border 3. Fix: pass border as one of 0 (clamp), 1 (zero), 2 (wrap)."
    )


def test_tiles_that_do_not_cover_the_plane_are_refused(device: Device) -> None:
    with pytest.raises(ShapeError) as caught:
        device.run("warp_affine_tiles", field(33, 16), table_of(2, 1, **IDENTITY), tile=16)
    assert str(caught.value) == (
        "kernel 'warp_affine_tiles': 2 x 1 tiles of 16 do not cover 33 x 16. Fix: pass a table of shape (3, 1, 6)."
    )
    with pytest.raises(InputError) as empty:
        device.run("warp_affine_tiles", field(2, 2), table_of(1, 1, **IDENTITY), tile=0)
    assert str(empty.value) == "kernel 'warp_affine_tiles': tiles of 0 pixels hold nothing. Fix: pass tile >= 1."


def test_a_side_that_fp32_cannot_count_is_refused() -> None:
    kernel = kernels.get("warp_affine")
    call = resolve_call(kernel, "f32", [(1, (1 << 24) + 1)], IDENTITY)
    with pytest.raises(ShapeError) as caught:
        kernel.plan(call)
    assert str(caught.value) == (
        "kernel 'warp_affine': a plane of 1 x 16777217 has a side longer than 16777216. "
        "Fix: cut it into smaller planes."
    )
