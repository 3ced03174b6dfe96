"""Attention of few rows to many keys, and a decode loop, on hardware: the bits of NumPy."""

from __future__ import annotations

import numpy as np
import pytest

import dashi
from dashi.bench.decoder import DecoderShape
from dashi.bench.decoding import run_decoding
from dashi.runtime._cpu_device import CpuDevice
from dashi.runtime._vulkan_device import VulkanDevice

pytestmark = pytest.mark.gpu


@pytest.mark.parametrize(("heads", "key_heads", "keys"), [(8, 8, 4096), (32, 8, 4096), (8, 2, 9000)])
def test_decoding_splits_keys_with_the_same_bits(heads: int, key_heads: int, keys: int, gpu: VulkanDevice) -> None:
    rng = np.random.default_rng(heads)
    q = rng.standard_normal((2, heads, 1, 128)).astype(np.float32)
    k, v = (rng.standard_normal((2, key_heads, keys, 128)).astype(np.float32) for _ in "kv")
    k[:, :, keys - 10 :], v[:, :, keys - 10 :] = np.nan, np.inf
    positions = np.array([keys - 11, 700], np.uint32)
    kernel = dashi.kernels.attention_with("positions")
    with CpuDevice() as cpu:
        expected = cpu.run(kernel, q, k, v, positions, scale=0.09, causal=1).numpy().tobytes()
    for tuning in (None, "whole", "split", "split_rows_8"):
        got = gpu.run(kernel, q, k, v, positions, tuning=tuning, scale=0.09, causal=1).numpy()
        assert got.tobytes() == expected, tuning


def test_a_resident_decode_loop_has_the_bits_of_numpy(gpu: VulkanDevice) -> None:
    shape = DecoderShape(length=600)
    with CpuDevice() as cpu:
        expected = run_decoding(cpu, shape, prompt=500, tokens=8)
    for steps in (1, 4):
        run = run_decoding(gpu, shape, prompt=500, tokens=8, steps=steps)
        assert run.same_bits
        assert run.tokens == expected.tokens
    assert run_decoding(gpu, shape, prompt=500, tokens=8).logits_hash == expected.logits_hash
