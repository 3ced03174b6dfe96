"""Decode on a GPU: the bits of NumPy, in a fraction of a millisecond."""

from __future__ import annotations

import time
import warnings

import numpy as np
import pytest

from dashi.flow import Flow, ensemble, to_field
from dashi.flow.decode import Decoder, Settings, fit_statistics
from dashi.flow.decode._parity import agrees, compare
from dashi.flow.proxy.encode import choose_anchors, encode
from dashi.flow.proxy.schema import Schema
from dashi.runtime._vulkan_device import VulkanDevice

pytestmark = pytest.mark.gpu

N = 128


@pytest.fixture(scope="module")
def fields() -> np.ndarray:
    return np.asarray(to_field(ensemble(Flow(N), "random", range(5))))


@pytest.fixture(scope="module")
def schema(gpu: VulkanDevice, fields: np.ndarray) -> Schema:
    return choose_anchors(Schema(N, 8), fields, 16, device=gpu)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("residual", ["none", "seeded", "statistics"])
def test_fields_and_masks_have_the_bits_of_numpy(
    gpu: VulkanDevice, schema: Schema, fields: np.ndarray, residual: str, dtype: str
) -> None:
    settings = Settings(residual=residual, dtype=dtype)
    statistics = fit_statistics(schema, fields)
    assert all(agrees(one) for one in compare(schema, fields, range(5), settings, device=gpu, statistics=statistics))


def test_a_snapshot_that_nobody_reads_takes_less_than_a_third_of_a_millisecond(
    gpu: VulkanDevice, schema: Schema, fields: np.ndarray
) -> None:
    z = gpu.array(encode(schema, fields[:1].astype(np.float32), device=gpu))
    decoder = Decoder(schema, gpu)
    took: list[float] = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _ in range(200):
            began = time.perf_counter()
            decoder.decode(z)
            took.append(time.perf_counter() - began)
    assert decoder.bytes_read == 0
    assert np.median(took) < 0.3e-3
    assert decoder.calibrate()["decode"] < 0.3e6
