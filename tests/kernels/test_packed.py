"""Packed weights: the numbers of GGUF's block formats, their tiles, and products with them."""

from __future__ import annotations

import hashlib
import re

import numpy as np
import pytest

from dashi import kernels
from dashi.errors import InputError, ShapeError
from dashi.kernels.packed import FORMATS, dequantize, repack, unpack
from dashi.kernels.packed._formats import block_format
from dashi.kernels.packed._other_formats import OTHER_FORMATS
from dashi.kernels.packed._products import random_blocks
from dashi.kernels.portable import canon, contract
from dashi.runtime.device import Device

NAMES = tuple(FORMATS)
ROWS = 7
GOLDEN = {
    "Q8_0": "99b0c2167aff05fbcf30c166852f9069",
    "Q4_0": "c1174c9f00a86f1b9e686b17463d6edb",
    "Q4_1": "e733343ebbf185798055b3ff05a0cb4e",
    "Q5_0": "9c9149779e404ffa5c7d90642e9976a8",
    "Q5_1": "d9e49e98a22217a3221e1fc2eb7d7b53",
    "F16": "baf42c3d2e278b4eb5f2fb346c6455bd",
    "BF16": "02ace6609043e3a78e675e0f75c4e379",
    "Q4_K": "9f4dc8a1e5a9486b1df791cda49029c0",
    "Q6_K": "d5641dad1a543bb0d2bcfeb2fa2c00ff",
    "Q5_K": "0d7de5974481a17d1642e74164273b36",
    "Q2_K": "c195e68830b115c7cdd1fd0f16a5e2c8",
    "Q3_K": "adb209d2fcba3553b772f9f71c346412",
    "IQ4_NL": "34057d5ee0750ac978d0708ed1074420",
    "IQ4_XS": "29c821b646fc4ef915ec972b77e6dd9c",
}
"""SHA-256 (its first half) of the canonical numbers that gguf 0.19.0's `gguf.quants.dequantize` made of `any_bytes`."""


def any_bytes(name: str) -> np.ndarray:
    """Rows of blocks of any bits, the same everywhere: infinite, subnormal and NaN scales are among them."""
    form = block_format(name)
    size = form.row_bytes(3 * max(32, form.length))
    data = hashlib.shake_256(name.encode()).digest(ROWS * size)
    return np.frombuffer(data, np.uint8).reshape(ROWS, size)


def same_bits(a: np.ndarray, b: np.ndarray) -> bool:
    return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()


@pytest.mark.parametrize("name", GOLDEN)
def test_numbers_have_the_hash_of_those_that_gguf_made_of_the_same_bytes(name: str) -> None:
    numbers = canon(dequantize(name, any_bytes(name)))
    assert hashlib.sha256(numbers.tobytes()).hexdigest()[:32] == GOLDEN[name]


@pytest.mark.parametrize("name", NAMES)
def test_numbers_have_the_bits_of_gguf(name: str) -> None:
    quants = pytest.importorskip("gguf.quants")
    kind = pytest.importorskip("gguf").GGMLQuantizationType[name]
    form = FORMATS[name]
    blocks = random_blocks(form, np.random.default_rng(5), 37, 5 * max(32, form.length))
    with np.errstate(all="ignore"):
        expected = quants.dequantize(blocks, kind)
    assert same_bits(canon(dequantize(name, blocks)), canon(expected))


def test_every_format_has_a_golden_hash() -> None:
    assert {*GOLDEN} == {*FORMATS, *OTHER_FORMATS}


def test_small_blocks_are_what_their_definitions_say() -> None:
    scale = np.array([0.5], np.float16).view(np.uint8)
    bytes_of_q8 = np.concatenate([scale, np.arange(-16, 16, dtype=np.int8).view(np.uint8)])
    assert np.array_equal(dequantize("Q8_0", bytes_of_q8[None])[0], np.arange(-16, 16) * 0.5)
    bytes_of_q4 = np.concatenate([scale, np.arange(16, dtype=np.uint8)])
    assert np.array_equal(dequantize("q4_0", bytes_of_q4[None])[0], np.r_[np.arange(-8, 8) * 0.5, np.full(16, -4.0)])


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("blocks", [0, 1, 2, 5, 130])
def test_tiles_hold_every_bit_and_go_back_to_the_same_bytes(name: str, blocks: int) -> None:
    form = FORMATS[name]
    k = blocks * form.length
    data = np.frombuffer(np.random.default_rng(blocks).bytes(3 * form.row_bytes(k)), np.uint8).reshape(3, -1)
    data = data if blocks else np.zeros((3, 0), np.uint8)
    tiles = repack(name, data)
    assert same_bits(unpack(name, tiles, k), data)


@pytest.mark.parametrize("name", NAMES)
def test_tiles_take_at_most_two_percent_more_bytes(name: str) -> None:
    data = np.zeros((2, FORMATS[name].row_bytes(4096)), np.uint8)
    assert repack(name, data).nbytes <= 1.02 * data.nbytes


@pytest.mark.parametrize("name", NAMES)
def test_products_have_the_bits_of_the_fp32_product_with_the_dequantised_weights(name: str, device: Device) -> None:
    form = FORMATS[name]
    rng = np.random.default_rng(11)
    for k in (max(32, form.length), 3 * max(32, form.length)):
        weights = random_blocks(form, rng, 35, k)
        tiles, matrix = repack(name, weights), canon(dequantize(name, weights)).T
        for m in (1, 2, 3, 8, 17, 33):
            x = rng.standard_normal((m, k)).astype(np.float32)
            result = device.run(f"matmul_{name.lower()}", x, tiles).numpy()
            assert same_bits(result, canon(contract(x, matrix))), (k, m)


@pytest.mark.parametrize("name", ["Q8_0", "Q6_K"])
def test_a_row_has_the_same_bits_alone_and_among_rows_of_nan(name: str, device: Device) -> None:
    form = FORMATS[name]
    rng = np.random.default_rng(3)
    tiles = repack(name, random_blocks(form, rng, 9, 512))
    x = np.full((13, 512), np.nan, np.float32)
    x[5] = rng.standard_normal(512)
    kernel = f"matmul_{name.lower()}"
    assert same_bits(device.run(kernel, x, tiles).numpy()[5:6], device.run(kernel, x[5:6], tiles).numpy())


def test_every_format_has_a_kernel_that_needs_no_feature() -> None:
    for name in NAMES:
        kernel = kernels.get(f"matmul_{name.lower()}")
        assert kernel.portable
        assert not any(shader.features for shader in kernel.shaders.values())


def test_bytes_that_are_no_rows_of_blocks_are_refused_with_a_fix() -> None:
    wrong = re.escape("weights in Q8_0 are not uint8 of shape (2, 35).") + r"\s*Fix: pass the file's bytes as uint8"
    with pytest.raises(InputError, match=wrong):
        repack("Q8_0", np.zeros((2, 35), np.uint8))
    with pytest.raises(InputError, match=r"there are no tiles of Q3_K: no kernel reads it\.\s*Fix: widen it by"):
        repack("Q3_K", np.zeros((1, 110), np.uint8))
    with pytest.raises(InputError, match=r"there is no packed format 'Q3_X'\.\s*Fix: use one of Q8_0, Q4_0"):
        dequantize("Q3_X", np.zeros((1, 2), np.uint8))
    with pytest.raises(InputError, match=r"a row of 33 weights is no whole number of Q4_0 blocks .*\s*Fix: use rows"):
        unpack("Q4_0", np.zeros((1, 9, 2), np.uint32), 33)
    with pytest.raises(InputError, match=r"tiles of Q4_0 for rows of 64 are not float32 .*\s*Fix: pass what `repack`"):
        unpack("Q4_0", np.zeros((1, 9, 2), np.float32), 64)


def test_x_that_does_not_fit_the_tiles_is_refused(device: Device) -> None:
    tiles = repack("Q4_0", np.zeros((3, 36), np.uint8))
    with pytest.raises(InputError, match="no whole number of Q4_0 blocks"):
        device.run("matmul_q4_0", np.zeros((2, 33), np.float32), tiles)
    with pytest.raises(ShapeError):
        device.run("matmul_q4_0", np.zeros((2, 128), np.float32), tiles)
