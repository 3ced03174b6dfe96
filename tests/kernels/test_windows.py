"""Products of weights with windows: the bits of products with a matrix of the same elements, whatever the tile."""

from __future__ import annotations

import numpy as np
import pytest

from dashi.errors import ShapeError
from dashi.kernels._window_fusion import TUNINGS, fuse_window_product
from dashi.kernels.abi import Kernel, View
from dashi.kernels.expressions import arguments, relu
from dashi.kernels.linear._product_forms import contract_batches
from dashi.kernels.portable import canon
from dashi.runtime.device import Device
from dashi.types import HostArray

SHAPES: dict[str, tuple[tuple[int, ...], tuple[int, ...], tuple[int, int]]] = {
    "plane": ((2, 6, 9, 8), (3, 2), (2, 5)),
    "line": ((1, 70, 150), (3,), (1, 67)),
    "box": ((1, 4, 4, 5, 6), (2, 3, 2), (2, 3)),
    "deep": ((1, 1030, 4, 4), (2, 2), (1, 3)),
}
"""x (n, channels, *lengths), taps, and groups and their results; `deep` has more than one level of 4096."""


def windows_view(shape: tuple[int, ...], taps: tuple[int, ...], step: int = 1) -> View:
    """All windows of x that begin `step` apart."""
    steps = [int(np.prod(shape[axis + 1 :])) for axis in range(len(shape))]
    counts = [(n - k) // step + 1 for n, k in zip(shape[2:], taps, strict=True)]
    return View((*shape[:2], *taps, *counts), (*steps, *(step * s for s in steps[2:])))


def convolution(case: str, step: int = 1) -> tuple[Kernel, View, tuple[int, ...]]:
    """relu(product + bias), its windows, and the shape of its weights."""
    shape, taps, (groups, results) = SHAPES[case]
    depth = shape[1] // groups * int(np.prod(taps))
    weights = View((groups, results, depth), (results * depth, depth, 1))
    value, bias = arguments("value bias")
    shown = windows_view(shape, taps, step)
    bias_view = View((groups, results, 1), (results, 1, 0))
    return fuse_window_product(relu(value + bias), "value", weights, shown, {"bias": bias_view}), shown, weights.shape


def operands(case: str, weights: tuple[int, ...], dtype: str) -> list[HostArray]:
    rng = np.random.default_rng(3)
    x, w, bias = (rng.standard_normal(s).astype(dtype) for s in (SHAPES[case][0], weights, weights[:2]))
    x.reshape(-1)[::37] = 1e-42
    x.reshape(-1)[5] = np.nan
    w.reshape(-1)[::11] *= (dtype == "f4" and 1e-30) or 1e-300
    return [w, x, bias]


@pytest.mark.parametrize("tuning", TUNINGS)
@pytest.mark.parametrize("case", SHAPES)
def test_windows_are_multiplied_as_their_matrix_is(case: str, tuning: str, vulkan: Device) -> None:
    kernel, shown, weights = convolution(case)
    w, x, bias = operands(case, weights, "f4")
    matrix = np.lib.stride_tricks.as_strided(x, shown.shape, [4 * step for step in shown.strides])
    columns = canon(matrix.reshape(x.shape[0], weights[0], weights[2], -1))
    with np.errstate(all="ignore"):
        product = canon(contract_batches(canon(w), columns)) + bias[:, :, None]
        expected = canon(np.where(product < 0, np.float32(0), product))
    assert np.isnan(expected).any()
    assert np.asarray(kernel.reference(w, x, bias)).tobytes() == expected.tobytes()
    assert vulkan.run(kernel, w, x, bias, tuning=tuning).numpy().tobytes() == expected.tobytes()


@pytest.mark.parametrize("case", ["plane", "box"])
def test_windows_apart_in_double_precision_have_one_bit_pattern(case: str, vulkan: Device) -> None:
    kernel, _, weights = convolution(case, step=2)
    arrays = operands(case, weights, "f8")
    assert vulkan.run(kernel, *arrays).numpy().tobytes() == np.asarray(kernel.reference(*arrays)).tobytes()


def test_weights_and_windows_that_do_not_fit_are_an_error() -> None:
    shown = windows_view((1, 4, 5, 5), (2, 2))
    with pytest.raises(ShapeError, match="1 groups of k = 15 are not 4 channels of"):
        fuse_window_product(None, "value", View((1, 3, 15), (45, 15, 1)), shown, {})
    with pytest.raises(ShapeError, match="have other axes than products of windows have"):
        fuse_window_product(None, "value", View((3, 16), (16, 1)), shown, {})
    with pytest.raises(ShapeError, match="with 1 to 3 axes of each"):
        fuse_window_product(None, "value", View((1, 3, 4), (12, 4, 1)), View((1, 4), (4, 1)), {})
