"""Products of every batch, stride and transposition, with and without tails: the bits of the plain product."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dashi
from dashi.errors import DashiError, InputError, LimitError, ShapeError
from dashi.kernels._calls import resolve_call
from dashi.kernels._validate import check_plan
from dashi.kernels.abi import Kernel, Limits, View
from dashi.kernels.expressions import arguments, relu, scalars, tanh
from dashi.kernels.portable import canon, contract
from dashi.runtime._cpu_device import CpuDevice
from dashi.runtime._vulkan_device import VulkanDevice

AWKWARD = [0.0, -0.0, 1.0, -1.5, 2.0**-60, -(2.0**-102), 2.0**-126, 1e-45, 3e38, np.inf, np.nan]
FLOATS = pytest.mark.parametrize("kind", [np.float32, np.float64])


def normal(*shape: int, kind: Any = np.float32, seed: int = 0) -> Any:
    return np.random.default_rng([seed, *shape]).standard_normal(shape).astype(kind)


def awkward(*shape: int, seed: int = 0) -> Any:
    values = normal(*shape, seed=seed)
    picked = np.random.default_rng(seed).random(shape) < 0.1
    values[picked] = np.resize(np.array(AWKWARD, np.float32), int(picked.sum()))
    return values


def tailed(**options: Any) -> Kernel:
    value, bias, residual = arguments("value bias residual")
    (slope,) = scalars("slope")
    return dashi.kernels.fuse_product(tanh(value + bias) * slope + residual, **options)


def same(device: VulkanDevice, kernel: str | Kernel, *arrays: Any, **numbers: Any) -> Any:
    """What the device computes, if NumPy gives the same bits."""
    with CpuDevice() as cpu:
        expected = cpu.run(kernel, *arrays, **numbers).numpy()
    got = device.run(kernel, *arrays, **numbers).numpy()
    assert got.shape == expected.shape
    assert got.tobytes() == expected.tobytes()
    return got


@FLOATS
def test_every_batch_has_the_bits_of_its_own_product(kind: Any, vulkan: VulkanDevice) -> None:
    a, b = normal(2, 3, 17, 70, kind=kind), normal(3, 70, 12, kind=kind)
    got = same(vulkan, "matmul", a, b)
    for z in np.ndindex(2, 3):
        assert got[z].tobytes() == canon(contract(a[z], b[z[1]])).tobytes()
        assert got[z].tobytes() == vulkan.run("gemm_tiled", a[z], b[z[1]]).numpy().tobytes()


@pytest.mark.parametrize("turns", range(4))
def test_transposed_matrices_give_the_bits_of_the_product(turns: int, vulkan: VulkanDevice) -> None:
    a, b = awkward(36, 68), awkward(68, 20, seed=1)
    left = np.ascontiguousarray(a.T) if turns & 1 else a
    right = np.ascontiguousarray(b.T) if turns & 2 else b
    got = same(vulkan, "matmul", left, right, transpose_a=turns & 1, transpose_b=turns >> 1)
    assert got.tobytes() == vulkan.run("gemm_tiled", a, b).numpy().tobytes()


def test_one_row_has_the_bits_of_gemv(vulkan: VulkanDevice) -> None:
    a, b = awkward(1, 300), awkward(300, 24, seed=1)
    assert same(vulkan, "matmul", a, b).tobytes() == vulkan.run("gemv", a[0], b).numpy().tobytes()


def test_plain_products_take_the_plans_of_gemm_tiled() -> None:
    matmul, tiled = dashi.kernels.get("matmul"), dashi.kernels.get("gemm_tiled")
    for m, k, n in ((1, 4096, 512), (8, 256, 64), (512, 512, 512)):
        ours, theirs = (resolve_call(one, "f32", [(m, k), (k, n)]) for one in (matmul, tiled))
        assert matmul.plan(ours) == tiled.plan(theirs)


def test_rows_of_a_batch_become_rows_of_one_product() -> None:
    matmul = dashi.kernels.get("matmul")
    stacked = resolve_call(matmul, "f32", [(8, 4, 16, 64), (64, 32)])
    assert matmul.plan(stacked) == matmul.plan(resolve_call(matmul, "f32", [(512, 64), (64, 32)]))


@settings(max_examples=12)
@given(st.data())
def test_any_shape_gives_the_bits_of_numpy(vulkan_session: VulkanDevice, data: Any) -> None:
    length = st.sampled_from([0, 1, 2, 7, 32, 33])
    m, n, k = (data.draw(length) for _ in range(3))
    batch = data.draw(st.lists(st.integers(1, 3), max_size=3))
    a_batch, b_batch = ([data.draw(st.sampled_from([1, size])) for size in batch] for _ in range(2))
    turn_a, turn_b = data.draw(st.booleans()), data.draw(st.booleans())
    a = awkward(*a_batch, *((k, m) if turn_a else (m, k)))
    b = awkward(*b_batch, *((n, k) if turn_b else (k, n)), seed=1)
    got = same(vulkan_session, "matmul", a, b, transpose_a=int(turn_a), transpose_b=int(turn_b))
    assert got.shape == (*np.broadcast_shapes(tuple(a_batch), tuple(b_batch)), m, n)


@pytest.mark.parametrize("kernel", ["matmul", "tail"])
def test_rows_are_alone_whatever_the_batch(kernel: str, vulkan: VulkanDevice) -> None:
    b, bias, residual = normal(70, 9, seed=1), normal(9, seed=2), normal(1, 9, seed=3)
    rows = normal(32, 70)
    alone: dict[int, bytes] = {}
    for count in (1, 3, 8, 32):
        batch = np.full((count, 70), np.nan, np.float32)
        batch[::2] = rows[:count:2]  # every other row is NaN
        if kernel == "tail":
            got = vulkan.run(tailed(), batch, b, bias, residual, slope=0.5).numpy()
        else:
            got = vulkan.run("matmul", batch, b).numpy()
        for i in range(0, count, 2):
            assert got[i].tobytes() == alone.setdefault(i, got[i].tobytes())
            assert np.isfinite(got[i]).all()


@FLOATS
def test_a_tail_gives_the_bits_of_the_kernels_one_after_another(kind: Any, vulkan: VulkanDevice) -> None:
    a, b = normal(2, 33, 40, kind=kind), normal(40, 20, kind=kind)
    bias, residual = normal(20, kind=kind), normal(33, 20, kind=kind)
    got = same(vulkan, tailed(), a, b, bias, residual, slope=-0.75)
    value, more = arguments("value bias")
    rest = dashi.kernels.fuse(tanh(value + more) * scalars("slope")[0] + arguments("residual")[0])
    product = vulkan.run("matmul", a, b).numpy()
    assert got.tobytes() == vulkan.run(rest, product, bias, residual, slope=-0.75).numpy().tobytes()


@pytest.mark.parametrize(
    ("tuning", "shader", "m"),
    [
        ("small_tiles", "strided_small_wide_4", 5),
        ("small_tiles_few", "strided_small_wide_8", 70),
        ("few_rows", "strided_few_wide_4", 3),
        ("few_rows", "strided_few_wide_8", 12),
        ("few_rows", "strided_few_wide_16", 70),
        ("blocks_8x8", "strided_wide_16_8x8", 40),
        ("small", "strided_wide_8_4x4", 40),
    ],
)
def test_a_tail_has_the_same_bits_in_tiles_of_any_size(tuning: str, shader: str, m: int, vulkan: VulkanDevice) -> None:
    kernel = tailed()
    arrays = awkward(2, m, 132), awkward(2, 132, 64, seed=1), normal(64), normal(m, 64)
    with CpuDevice() as cpu:
        expected = cpu.run(kernel, *arrays, slope=0.5).numpy()
    step = vulkan.bind(kernel, *(vulkan.array(values) for values in arrays), tuning=tuning, slope=0.5)
    assert [d.shader for d in kernel.plan(step.call).dispatches] == [shader]
    assert vulkan.run(kernel, *arrays, tuning=tuning, slope=0.5).numpy().tobytes() == expected.tobytes()


def test_products_that_do_not_fill_a_gpu_are_cut_small_and_few_rows_read_b_once() -> None:
    kernel = tailed()
    gpu = Limits(invocations=1024, shared_bytes=49152)
    for m, kind in ((8, "few"), (128, "small"), (4096, "wide")):
        call = resolve_call(kernel, "f32", [(m, 384), (384, 1536), (1536,), (m, 1536)], {"slope": 1}, gpu)
        assert kernel.plan(call).dispatches[0].shader.startswith(f"strided_{kind}_")


@pytest.mark.parametrize("k", [0, 4097, 64 * 4096 + 3])
def test_a_tail_comes_after_all_of_k(k: int, vulkan: VulkanDevice) -> None:
    value, bias = arguments("value bias")
    kernel = dashi.kernels.fuse_product(relu(value + bias))
    same(vulkan, kernel, normal(2, k), normal(k, 3), normal(3))


def test_heads_are_read_through_strides(vulkan: VulkanDevice) -> None:
    batch, length, heads, depth = 2, 21, 3, 16
    q, k = normal(batch, length, heads, depth), normal(batch, length, heads, depth, seed=1)
    view = View((batch, heads, length, depth), (length * heads * depth, depth, heads * depth, 1))
    kernel = dashi.kernels.fuse_product(views={"a": view, "b": view}, transpose_b=True)
    got = same(vulkan, kernel, q, k)
    split = [np.ascontiguousarray(x.transpose(0, 2, 1, 3)) for x in (q, k)]
    assert got.tobytes() == vulkan.run("matmul", *split, transpose_b=1).numpy().tobytes()


def test_reversed_and_offset_views_are_read(vulkan: VulkanDevice) -> None:
    view = View((5, 7), (-7, 1), offset=7 * 4 + 3)
    kernel = dashi.kernels.fuse_product(views={"a": view})
    a, b = normal(6, 7), normal(7, 4)
    got = same(vulkan, kernel, a, b)
    read = a.reshape(-1)[3 : 3 + 35].reshape(5, 7)[::-1]
    assert got.tobytes() == vulkan.run("matmul", np.ascontiguousarray(read), b).numpy().tobytes()


@FLOATS
def test_the_least_that_vulkan_guarantees_is_enough(kind: Any) -> None:
    name = "f32" if kind is np.float32 else "f64"
    for kernel, shapes in ((dashi.kernels.get("matmul"), []), (tailed(), [(40,), (1, 40)])):
        call = resolve_call(kernel, name, [(3, 64, 128), (3, 128, 40), *shapes], scalar_numbers(kernel), Limits())
        plan = check_plan(kernel, call, kernel.plan(call))
        for dispatch in plan.dispatches:
            sizes = (dispatch.spec.get(str(n), n) for n in kernel.shaders[dispatch.shader].local)
            assert math.prod(int(n) for n in sizes) <= 128


def scalar_numbers(kernel: Kernel) -> dict[str, float]:
    return {s.name: s.default if s.default is not None else 1.0 for s in kernel.scalars}


def test_many_batches_are_more_than_a_grid_has() -> None:
    kernel = dashi.kernels.get("matmul")
    call = resolve_call(kernel, "f32", [(70000, 2, 3), (70000, 3, 2)])
    plan = check_plan(kernel, call, kernel.plan(call))
    assert plan.dispatches[0].push["tiles"] == 70000
    assert plan.dispatches[0].groups[0] <= call.limits.groups


def test_what_does_not_fit_says_so() -> None:
    value, *rest = arguments("value p q r s t")
    total = value
    for one in rest:
        total = total + one
    with pytest.raises(LimitError, match="5 operands; it has at most 4"):
        dashi.kernels.fuse_product(total)
    with pytest.raises(InputError, match="no argument 'value'"):
        dashi.kernels.fuse_product(rest[0])
    with pytest.raises(InputError, match="`views` names 'c'"):
        dashi.kernels.fuse_product(views={"c": View((1,), (1,))})
    with CpuDevice() as cpu:
        for arrays, message in (
            ((normal(2, 3), normal(4, 2)), "a has 3 columns"),
            ((normal(3), normal(3, 2)), "two axes or more"),
            ((normal(2, 4, 3), normal(3, 3, 2)), "batch axes of a"),
        ):
            with pytest.raises(ShapeError, match=message):
                cpu.run("matmul", *arrays)
        with pytest.raises(DashiError, match="does not stretch to the product's"):
            cpu.run(tailed(), normal(2, 3), normal(3, 4), normal(3), normal(1), slope=1)
