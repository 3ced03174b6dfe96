"""How the kernels of the linear family agree with each other, and what they refuse."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from dashi import kernels
from dashi.errors import DashiError, LimitError, ShapeError
from dashi.kernels._calls import resolve_call
from dashi.kernels._validate import check_plan
from dashi.kernels.abi import Limits
from dashi.runtime._vulkan_device import VulkanDevice
from dashi.runtime.device import Device

KINDS = pytest.mark.parametrize("kind", [np.float32, np.float64])


def random(*shape: int, kind: Any) -> Any:
    return np.random.default_rng(7).standard_normal(shape).astype(kind)


def same(one: Any, other: Any) -> None:
    assert one.numpy().tobytes() == other.numpy().tobytes()


@KINDS
@pytest.mark.parametrize("k", [70, 4100])
def test_gemm_scalar_and_gemm_tiled_give_the_same_bits(device: Device, kind: Any, k: int) -> None:
    a, b = random(9, k, kind=kind), random(k, 12, kind=kind)
    same(device.run("gemm_scalar", a, b), device.run("gemm_tiled", a, b))


@KINDS
def test_each_vector_of_a_batch_gives_the_bits_of_gemv(device: Device, kind: Any) -> None:
    x, a = random(3, 700, kind=kind), random(3, 700, 33, kind=kind)
    batch = device.run("gemv_batched", x, a).numpy()
    for t in range(3):
        assert batch[t].tobytes() == device.run("gemv", x[t], a[t]).numpy().tobytes()


def test_gemv_tiled_is_another_name_of_gemv() -> None:
    assert kernels.get("gemv_tiled") is kernels.get("gemv")


@KINDS
def test_a_full_block_sparse_matrix_gives_the_bits_of_gemv(device: Device, kind: Any) -> None:
    rows, columns, side = 9, 4, 16
    a = random(rows * side, columns * side, kind=kind)
    x = random(rows, side, kind=kind)
    blocks = a.reshape(rows, side, columns, side).transpose(2, 0, 1, 3).reshape(-1, side, side)
    places = np.tile(np.arange(rows, dtype=np.uint32), columns)
    offsets = np.arange(columns + 1, dtype=np.uint32) * np.uint32(rows)
    made = device.run("block_sparse", x, np.ascontiguousarray(blocks), places, offsets, columns=columns)
    assert made.numpy().tobytes() == device.run("gemv", x.reshape(-1), a).numpy().tobytes()


@KINDS
def test_a_full_sparse_matrix_gives_the_bits_of_gemv(device: Device, kind: Any) -> None:
    rows, n = 7, 150
    a, x = random(rows, n, kind=kind), random(n, kind=kind)
    columns = np.tile(np.arange(n, dtype=np.uint32), rows)
    offsets = np.arange(rows + 1, dtype=np.uint32) * np.uint32(n)
    made = device.run("spmv_csr", a.reshape(-1), columns, offsets, x, rows=rows)
    assert made.numpy().tobytes() == device.run("gemv", x, np.ascontiguousarray(a.T)).numpy().tobytes()


@pytest.mark.parametrize("tuning", list(kernels.get("spmv_csr").tunings))
def test_rows_that_cannot_be_summed_give_nan_and_leave_the_others_alone(vulkan: VulkanDevice, tuning: str) -> None:
    # Rows 1 and 4 go backwards, row 3 leaves the list, row 5 has a column that does not exist, row 7 is too long.
    offsets = np.array([900, 903, 2, 5, 5000, 10, 12, 14, 100], np.uint32)
    values = random(1000, kind=np.float32)
    columns = np.random.default_rng(3).integers(0, 20, 1000).astype(np.uint32)
    columns[10] = 20
    x = random(20, kind=np.float32)
    expected = kernels.get("spmv_csr").reference(values, columns, offsets, x, rows=8, longest=64)
    assert np.isnan(expected).tolist() == [False, True, False, True, True, True, False, True]
    made = vulkan.run("spmv_csr", values, columns, offsets, x, tuning=tuning, rows=8, longest=64)
    assert made.numpy().tobytes() == np.asarray(expected).tobytes()


@pytest.mark.parametrize("tuning", list(kernels.get("gemm_tiled").tunings))
def test_the_block_of_an_invocation_does_not_change_the_bits(vulkan: VulkanDevice, tuning: str) -> None:
    a, b = random(260, 72, kind=np.float32), random(72, 140, kind=np.float32)
    a[3, 5], b[9, 100] = 2.0**-90, 2.0**-60
    same(vulkan.run("gemm_tiled", a, b, tuning=tuning), vulkan.run("gemm_scalar", a, b))


def refusal(name: str, kind: str, shapes: list[tuple[int, ...]], **scalars: int) -> DashiError:
    kernel = kernels.get(name)
    call = resolve_call(kernel, kind, shapes, scalars)
    with pytest.raises(DashiError) as caught:
        kernel.plan(call)
    return caught.value


def test_gemm_coop_says_how_to_pad() -> None:
    error = refusal("gemm_coop", "f16", [(17, 5), (5, 32)])
    assert isinstance(error, ShapeError)
    assert str(error) == (
        "kernel 'gemm_coop': a result of 17 x 32 is not made of blocks of 16 x 16. "
        "Fix: pad the rows of a and the columns of b with zeros to multiples of 16."
    )


@pytest.mark.parametrize(
    ("sizes", "shared_bytes", "shader"),
    [
        ((256, 64, 512), 49152, "staged_128x256x32"),
        ((256, 64, 512), 30719, "guarded"),  # a byte less than tiles of a and strips of results need
        ((256, 64, 384), 49152, "guarded"),
        ((256, 40, 512), 49152, "guarded"),
        ((256, 33, 512), 49152, "any"),
    ],
)
def test_gemm_coop_guards_what_is_not_whole_tiles(sizes: tuple[int, int, int], shared_bytes: int, shader: str) -> None:
    m, k, n = sizes
    kernel = kernels.get("gemm_coop")
    limits = Limits(invocations=256, shared_bytes=shared_bytes)
    call = resolve_call(kernel, "f16", [(m, k), (k, n)], limits=limits)
    assert {d.shader for d in kernel.plan(call).dispatches} == {shader}


def test_sparse_products_need_one_offset_more_than_rows() -> None:
    error = refusal("spmv_csr", "f32", [(3,), (3,), (5,), (2,)], rows=5)
    assert str(error) == "kernel 'spmv_csr': 5 rows need 6 offsets, 5 given. Fix: pass rows=len(offsets) - 1."
    error = refusal("block_sparse", "f32", [(2, 4), (3, 4, 4), (3,), (5,)], columns=5)
    assert str(error) == (
        "kernel 'block_sparse': 5 block columns need 6 offsets, 5 given. Fix: pass columns=len(offsets) - 1."
    )


def test_sparse_products_refuse_sums_of_more_than_three_levels() -> None:
    error = refusal("spmv_csr", "f32", [(3,), (3,), (2,), (2,)], rows=1, longest=262145)
    assert isinstance(error, LimitError)
    assert str(error).startswith("kernel 'spmv_csr': rows of 262145 entries are longer than 262144. Fix: split")
    error = refusal("block_sparse", "f32", [(2, 64), (3, 64, 64), (3,), (2,)], columns=1, longest=4097)
    assert isinstance(error, LimitError)
    assert str(error).startswith("kernel 'block_sparse': columns of 4097 blocks of 64 rows are longer than 262144.")


@pytest.mark.parametrize("name", ["gemv", "gemv_batched", "gemm_tiled", "gemm_fast", "gemm_coop", "gemm_scalar"])
def test_benchmark_sizes_fit_the_least_limits_with_every_tuning(name: str) -> None:
    kernel = kernels.get(name)
    for kind in kernel.dtypes:
        for case in kernel.bench:
            shapes = [case.shapes[o.name] for o in kernel.inputs]
            call = resolve_call(kernel, kind, shapes, limits=Limits(invocations=256))
            for tuning in kernel.tunings.values() or [{}]:
                chosen = replace(call, tuning=tuning)
                assert check_plan(kernel, chosen, kernel.plan(chosen)).dispatches
