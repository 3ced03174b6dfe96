"""Attention: one value, whatever the batch, the chunks of queries, the padding and the layout."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import dashi
from dashi.errors import InputError, LimitError, ShapeError
from dashi.kernels._calls import resolve_call
from dashi.kernels._validate import check_plan
from dashi.kernels.abi import Kernel, Limits, View
from dashi.runtime._cpu_device import CpuDevice
from dashi.runtime._vulkan_device import VulkanDevice

KEYS = 130
DEPTH = 8
FULL = "mask bias lengths positions"


def normal(*shape: int, seed: int = 0) -> Any:
    return np.random.default_rng([seed, *shape]).standard_normal(shape).astype(np.float32)


def same(device: VulkanDevice, kernel: str | Kernel, *arrays: Any, **numbers: Any) -> Any:
    """What the device computes, if NumPy gives the same bits."""
    with CpuDevice() as cpu:
        expected = cpu.run(kernel, *arrays, **numbers).numpy()
    got = device.run(kernel, *arrays, **numbers).numpy()
    assert got.tobytes() == expected.tobytes()
    return got


def by_float64(q: Any, k: Any, v: Any, counted: Any, scale: float) -> Any:
    shared = q.shape[1] // k.shape[1]
    wide = [np.repeat(x.astype(np.float64), shared, axis=1) for x in (k, v)]
    scores = np.where(counted, scale * (q.astype(np.float64) @ wide[0].swapaxes(-1, -2)), -np.inf)
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return weights / weights.sum(axis=-1, keepdims=True) @ wide[1]


@pytest.fixture
def prompt() -> tuple[Any, Any, Any]:
    return normal(2, 4, KEYS, DEPTH), normal(2, 2, KEYS, DEPTH, seed=1), normal(2, 2, KEYS, DEPTH, seed=2)


def test_a_prompt_is_the_same_whole_in_chunks_and_token_by_token(
    prompt: tuple[Any, Any, Any], vulkan: VulkanDevice
) -> None:
    q, k, v = prompt
    whole = same(vulkan, "attention", q, k, v, scale=0.3, causal=1)
    for step in (1, 7, 64):
        starts = [*range(0, KEYS, step)][:: 1 if step > 1 else 13]
        for first in starts:
            beyond = min(first + step, KEYS)
            cache = [np.full((2, 2, 150, DEPTH), np.nan, np.float32) for _ in range(2)]
            for held, given in zip(cache, (k, v), strict=True):
                held[:, :, :beyond] = given[:, :, :beyond]
            part = np.ascontiguousarray(q[:, :, first:beyond])
            got = vulkan.run("attention", part, *cache, scale=0.3, causal=1, offset=first).numpy()
            assert got.tobytes() == np.ascontiguousarray(whole[:, :, first:beyond]).tobytes()


def test_causal_is_a_bias_of_minus_infinity_and_a_window_is_a_mask_of_keys(
    prompt: tuple[Any, Any, Any], vulkan: VulkanDevice
) -> None:
    q, k, v = prompt
    positions = np.arange(KEYS)
    bias = np.where(positions[None, :] <= positions[:, None], 0, -np.inf).astype(np.float32)[None, None]
    causal = vulkan.run("attention", q, k, v, scale=0.3, causal=1).numpy()
    assert same(vulkan, dashi.kernels.attention_with("bias"), q, k, v, bias, scale=0.3).tobytes() == causal.tobytes()
    last = np.ascontiguousarray(q[:, :, -1:])
    near = (positions > KEYS - 1 - 70).astype(np.float32)
    windowed = same(vulkan, "attention", last, k, v, scale=0.3, causal=1, window=70, offset=KEYS - 1)
    masked = vulkan.run(dashi.kernels.attention_with("mask"), last, k, v, near, scale=0.3).numpy()
    assert windowed.tobytes() == masked.tobytes()


def test_rows_are_alone_whatever_the_batch(vulkan: VulkanDevice) -> None:
    q, k, v = normal(32, 2, 3, DEPTH), normal(32, 1, 70, DEPTH, seed=1), normal(32, 1, 70, DEPTH, seed=2)
    lengths = np.arange(1, 33, dtype=np.uint32) * 2
    for z, length in enumerate(lengths):
        k[z, :, length:], v[z, :, length:] = np.nan, np.inf
    k[1::2] = np.nan
    kernel = dashi.kernels.attention_with("lengths")
    alone: dict[int, bytes] = {}
    for count in (1, 3, 8, 32):
        got = vulkan.run(kernel, q[:count], k[:count], v[:count], lengths[:count], scale=0.3).numpy()
        for z in range(0, count, 2):
            assert np.isfinite(got[z]).all()
            assert got[z].tobytes() == alone.setdefault(z, got[z].tobytes())


def test_heads_last_is_another_layout_of_the_same_values(prompt: tuple[Any, Any, Any], vulkan: VulkanDevice) -> None:
    first = vulkan.run("attention", *prompt, scale=0.3).numpy()
    turned = [np.ascontiguousarray(x.transpose(0, 2, 1, 3)) for x in prompt]
    last = same(vulkan, "attention", *turned, scale=0.3, heads_last=1)
    assert np.ascontiguousarray(last.transpose(0, 2, 1, 3)).tobytes() == first.tobytes()
    # q, k and v side by side in one array, as one product makes them.
    packed = np.concatenate([x.reshape(2, KEYS, -1) for x in turned], axis=2)
    width, heads = packed.shape[2], (4, 2, 2)
    starts = (0, 4 * DEPTH, 6 * DEPTH)
    views = {
        name: View((2, count, KEYS, DEPTH), (KEYS * width, DEPTH, width, 1), start)
        for name, count, start in zip("qkv", heads, starts, strict=True)
    }
    kernel = dashi.kernels.attention_with(views=views)
    together = same(vulkan, kernel, packed, packed, packed, scale=0.3, heads_last=1)
    assert together.tobytes() == last.tobytes()


@pytest.mark.parametrize("awkward", [False, True])
def test_every_operand_at_once_has_the_bits_of_numpy(awkward: bool, vulkan: VulkanDevice) -> None:
    q, k, v = normal(2, 4, 9, 24), normal(2, 2, 130, 24, seed=1), normal(2, 2, 130, 24, seed=2)
    mask, bias = (normal(2, 130) > -0.5).astype(np.float32), normal(1, 4, 1, 130, seed=3)
    bias[0, 0, 0, ::5] = -np.inf
    if awkward:
        q[0, 0, 0], q[0, 1, 0, 3] = 2.0**-70, np.nan
        k[0, 0, ::9] *= np.float32(2.0**-60)
        v[0, 1, ::4] *= np.float32(2.0**-90)
        v[1, 0, 3, 5], bias[0, 2, 0, 7] = np.inf, np.inf
        q[1, 3] *= 60  # weights far apart
    numbers = np.array([100, 17], np.uint32), np.array([90, 10], np.uint32)
    k[0, :, 100:], v[1, :, 17:] = np.nan, np.nan
    got = same(
        vulkan, dashi.kernels.attention_with(FULL), q, k, v, mask, bias, *numbers, scale=0.2, causal=1, window=80
    )
    assert np.isnan(got).any() == awkward


def test_no_key_gives_zero(vulkan: VulkanDevice) -> None:
    q, k = normal(1, 2, 3, DEPTH), np.full((1, 2, 5, DEPTH), np.nan, np.float32)
    nothing = np.zeros(1, np.uint32)
    assert not same(vulkan, dashi.kernels.attention_with("lengths"), q, k, k, nothing, scale=1).any()
    empty = np.zeros((1, 2, 0, DEPTH), np.float32)
    assert not same(vulkan, "attention", q, empty, empty).any()


def test_more_than_4096_keys_are_added_up_in_the_same_tree(vulkan: VulkanDevice) -> None:
    q, k, v = normal(1, 1, 2, DEPTH), normal(1, 1, 8300, DEPTH, seed=1), normal(1, 1, 8300, DEPTH, seed=2)
    whole = same(vulkan, "attention", q, k, v, scale=0.3, causal=1, offset=4000)
    short = vulkan.run("attention", q, *(x[:, :, :4010].copy() for x in (k, v)), scale=0.3, causal=1, offset=4000)
    assert whole.tobytes() == short.numpy().tobytes()
    got = same(vulkan, "attention", q, k, v, scale=0.3)
    want = by_float64(q, k, v, True, 0.3)
    assert np.abs(got - want).max() < 1e-6  # sums of 8300 values below 4, in pairs of 64


def test_it_is_as_accurate_as_its_type(prompt: tuple[Any, Any, Any]) -> None:
    q, k, v = prompt
    with CpuDevice() as cpu:
        got = cpu.run("attention", q, k, v, scale=0.3, causal=1).numpy()
    want = by_float64(q, k, v, np.tri(KEYS, dtype=bool), 0.3)
    # Scores up to 10 have errors of 1e-6, and so have weights; values are up to 4.
    assert np.abs(got - want).max() < 1e-6


@pytest.mark.parametrize("awkward", [False, True])
@pytest.mark.parametrize("keys", [65, 1000, 8300])
def test_keys_split_over_workgroups_give_the_same_bits(keys: int, awkward: bool, vulkan: VulkanDevice) -> None:
    q, k, v = normal(2, 4, 2, 40), normal(2, 2, keys, 40, seed=1), normal(2, 2, keys, 40, seed=2)
    if awkward:
        k[0, 0, ::9] *= np.float32(2.0**-60)
        v[0, 1, ::4] *= np.float32(2.0**-90)
        q[0, 3, 1, 7], q[1, 0] = np.nan, q[1, 0] * 60
        v[1, 0, 3, 5] = np.inf
    lengths, positions = np.array([keys, 40], np.uint32), np.array([keys - 2, 38], np.uint32)
    k[1, :, 40:], v[1, :, 40:] = np.nan, np.nan
    kernel = dashi.kernels.attention_with("lengths positions")
    arrays = (q, k, v, lengths, positions)
    for window in (0, 70):
        expected = same(vulkan, kernel, *arrays, scale=0.3, causal=1, window=window)
        for tuning in ("split", "whole"):
            got = vulkan.run(kernel, *arrays, tuning=tuning, scale=0.3, causal=1, window=window).numpy()
            assert got.tobytes() == expected.tobytes()
    assert np.isnan(got).any() == awkward


def test_a_dispatch_for_decoding_fills_a_large_device() -> None:
    kernel = dashi.kernels.get("attention")
    for heads, keys in ((8, 4096), (32, 32768)):
        shapes = [(1, heads, 1, 128), *[(1, 8, keys, 128)] * 2]
        limits = Limits(invocations=1024, shared_bytes=49152)
        call = resolve_call(kernel, "f32", shapes, {"scale": 1, "causal": 1, "offset": keys - 1}, limits)
        first, join = check_plan(kernel, call, kernel.plan(call)).dispatches
        assert (first.shader, first.groups[0]) == ("main", 8 * keys // 64)
        assert (join.shader, join.groups[0]) == ("join", heads * 4)
    call = resolve_call(kernel, "f32", [(1, 8, 2048, 128)] * 3, {"scale": 1}, limits)
    assert len(check_plan(kernel, call, kernel.plan(call)).dispatches) == 1


def test_a_mask_may_differ_by_head_and_query(vulkan: VulkanDevice) -> None:
    q, k, v = normal(2, 4, 5, DEPTH), normal(2, 2, KEYS, DEPTH, seed=1), normal(2, 2, KEYS, DEPTH, seed=2)
    k[:, :, 100:], v[:, :, 50:60] = np.nan, np.inf
    kernel = dashi.kernels.attention_with("mask")
    mask = (np.random.default_rng(4).random((2, 4, 5, KEYS)) > 0.3).astype(np.float32)
    mask[..., 100:] = mask[..., 50:60] = 0
    got = same(vulkan, kernel, q, k, v, mask, scale=0.3)
    alone = vulkan.run(kernel, q[1:], k[1:], v[1:], mask[1:, :1], scale=0.3).numpy()[0, 0]
    assert np.isfinite(got).all()
    assert alone.tobytes() == got[1, 0].tobytes()
    keys = mask[:, 0, 0]
    expected = same(vulkan, kernel, q, k, v, keys, scale=0.3)
    assert same(vulkan, kernel, q, k, v, keys[:, None, None], scale=0.3).tobytes() == expected.tobytes()


def test_positions_and_windows_do_not_wrap_round(vulkan: VulkanDevice) -> None:
    q, k, v = normal(2, 1, 3, DEPTH), normal(2, 1, 70, DEPTH, seed=1), normal(2, 1, 70, DEPTH, seed=2)
    kernel = dashi.kernels.attention_with("positions")
    far = np.array([2**32 - 1, 69], np.uint32)
    largest = 2**32 - 1
    causal = same(vulkan, kernel, q, k, v, far, scale=0.3, causal=1, offset=largest, window=largest)
    assert causal.tobytes() == same(vulkan, "attention", q, k, v, scale=0.3).tobytes()
    assert not same(vulkan, kernel, q, k, v, far, scale=0.3, window=9, offset=largest).any()


@pytest.mark.parametrize("name", ["f32", "f64"])
@pytest.mark.parametrize("depth", [1, 64, 256])
def test_the_least_that_vulkan_guarantees_is_enough(name: str, depth: int) -> None:
    kernel = dashi.kernels.get("attention")
    for queries, keys in ((1, 64 * 4096), (1000, 4096), (3, 0)):
        shapes = [(1, 2, queries, depth), *[(1, 2, keys, depth)] * 2]
        call = resolve_call(kernel, name, shapes, {"scale": 1}, Limits())
        plan = check_plan(kernel, call, kernel.plan(call))
        assert all(d.spec["LOCAL"] <= 128 for d in plan.dispatches)
        assert len(plan.dispatches) == 1 or keys > 4096 or depth > 64


def test_what_does_not_fit_says_so() -> None:
    with pytest.raises(InputError, match="each once; asked for is 'mask colour'"):
        dashi.kernels.attention_with("mask colour")
    with pytest.raises(InputError, match="`views` names 'bias'"):
        dashi.kernels.attention_with("mask", views={"bias": View((1,), (1,))})
    q = normal(1, 3, 2, 4)
    with CpuDevice() as cpu:
        with pytest.raises(ShapeError, match="H a multiple of Hkv"):
            cpu.run("attention", q, normal(1, 2, 5, 4), normal(1, 2, 5, 4))
        with pytest.raises(ShapeError, match="mask has shape"):
            cpu.run(dashi.kernels.attention_with("mask"), q, q, q, normal(2, 2))
        with pytest.raises(LimitError, match="D is 1 to 256"):
            cpu.run("attention", *[normal(1, 1, 1, 600)] * 3)
