"""Fourier transforms on a hardware GPU: NumPy's bits at full size, whatever the layout. `pytest -m gpu` runs them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from dashi import kernels
from dashi.kernels.fft._roots import real_table, table
from dashi.runtime._vulkan_device import VulkanDevice

pytestmark = pytest.mark.gpu


def field(shape: tuple[int, ...], dtype: type) -> np.ndarray:
    """Values of many sizes: some of them count as 0 within a transform."""
    rng = np.random.default_rng(len(shape) + shape[-2])
    return (rng.standard_normal(shape) * 10.0 ** rng.choice([0, 0, 0, -5, -20, -31], shape)).astype(dtype)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("inverse", [0, 1])
@pytest.mark.parametrize(
    "shape",
    [
        (1, 1024, 1024), (2, 1024, 1024), (1, 64, 1024), (3, 12, 1024),  # rows begin columns
        (1, 1024, 64), (1, 1024, 512), (1, 2048, 1024), (1, 4, 1024), (2, 256, 256), (5, 64, 64), (1, 960, 720),
    ],
)  # fmt: skip
def test_complex_fields_have_numpys_bits(
    shape: tuple[int, int, int], inverse: int, dtype: type, gpu: VulkanDevice
) -> None:
    x = field((*shape, 2), dtype)
    twiddles = table(shape[2], dtype, "rows"), table(shape[1], dtype, "columns")
    got = gpu.run("fft2", x, *twiddles, inverse=inverse, scale=0.3).numpy()
    assert got.tobytes() == np.asarray(kernels.get("fft2").reference(x, *twiddles, inverse, 0.3)).tobytes()


@pytest.mark.parametrize(
    "numbers",
    [{"bytes": 24}, {"parts": 1}, {"shared": 12288}, {"begun_rows": 3}, {"each": 8}, {"parts": 1, "windows": 2}],
)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shape", [(1, 256, 1024), (2, 64, 256), (1, 48, 96)])
def test_layouts_of_fields_leave_no_trace(
    shape: tuple[int, int, int], dtype: type, numbers: dict[str, int], gpu: VulkanDevice
) -> None:
    wide = kernels.get("fft2").tunings["wide"]
    kernel = replace(kernels.get("fft2"), tunings={"odd": {**wide, **numbers}}, prefer=None)
    x = field((*shape, 2), dtype)
    twiddles = table(shape[2], dtype, "rows"), table(shape[1], dtype, "columns")
    got = gpu.run(kernel, x, *twiddles, inverse=0).numpy()
    assert got.tobytes() == np.asarray(kernel.reference(x, *twiddles, 0, 1.0)).tobytes()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n", [8, 24, 32, 64, 100, 128, 256, 384, 512, 1024])
def test_real_fields_have_numpys_bits_there_and_back(n: int, dtype: type, gpu: VulkanDevice) -> None:
    x, twiddles = field((2, n, n), dtype), (real_table(n, dtype), table(n, dtype))
    modes = gpu.run("rfft2", x, *twiddles, modes=n // 2 + 1).numpy()
    assert modes.tobytes() == np.asarray(kernels.get("rfft2").reference(x, *twiddles, n // 2 + 1, 1.0)).tobytes()
    again = gpu.run("irfft2", modes, *twiddles, scale=1 / (n * n)).numpy()
    assert again.tobytes() == np.asarray(kernels.get("irfft2").reference(modes, *twiddles, 1 / (n * n))).tobytes()
