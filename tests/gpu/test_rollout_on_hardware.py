"""Rollouts that only a GPU can run: workgroups that wait for each other."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from dashi.core.certificates._certificate import read_certificate
from dashi.core.certificates._verify import check
from dashi.core.certificates.inputs import certified_inputs
from dashi.core.operators.affine import Affine, Linear
from dashi.core.rollouts._strategies import choose_strategy
from dashi.core.rollouts.rollout import rollout
from dashi.runtime._cpu_device import CpuDevice
from dashi.runtime._vulkan_device import VulkanDevice

pytestmark = pytest.mark.gpu


def inputs(d: int, dtype: str, states: int = 1) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(d)
    return np.linalg.qr(rng.standard_normal((d, d)))[0].astype(dtype), rng.standard_normal((states, d)).astype(dtype)


def test_workgroups_are_known_to_run_at_the_same_time(gpu: VulkanDevice) -> None:
    gpu.probe()
    assert gpu.resident >= 8
    assert "rendezvous" in gpu.features


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("d", [1, 63, 128, 257, 654, 1024, 2048])
def test_tagged_workgroups_give_the_bits_of_numpy(gpu: VulkanDevice, d: int, dtype: str) -> None:
    matrix, z0 = inputs(d, dtype)
    with CpuDevice() as reference:
        want = rollout(Linear(matrix), z0, 40, device=reference, hash_every=10, observe_every=15)
    got = rollout(Linear(matrix), z0, 40, device=gpu, strategy="tagged", hash_every=10, observe_every=15)
    assert (got.hashes, got.observations) == (want.hashes, want.observations)
    assert got.reruns == 0


@pytest.mark.parametrize("psi", ["squash", "softplus", "clamp"])
def test_nonlinearities_and_ensembles_give_them_too(gpu: VulkanDevice, psi: str) -> None:
    matrix, z0 = inputs(200, "float32", states=3)
    operator = Affine(matrix, z0[0] * np.float32(0.1), psi)
    with CpuDevice() as reference:
        want = rollout(operator, z0, 30, device=reference)
    for way in ("stepwise", "workgroup", "tagged"):
        assert np.array_equal(rollout(operator, z0, 30, device=gpu, strategy=way).state, want.state), way


def test_small_values_that_must_be_flushed_are(gpu: VulkanDevice) -> None:
    matrix, z0 = inputs(130, "float32")
    tiny = Linear(matrix * np.float32(1e-3))  # below 2^-102 after a dozen steps, then 0
    with CpuDevice() as reference:
        want = rollout(tiny, z0, 30, device=reference, hash_every=1)
    for way in ("workgroup", "tagged"):
        assert rollout(tiny, z0, 30, device=gpu, strategy=way, hash_every=1).hashes == want.hashes, way


def test_the_long_certificate_verifies_in_full(gpu: VulkanDevice, tmp_path: Path) -> None:
    root = Path(__file__).parents[2]
    subprocess.run([sys.executable, root / "benchmarks" / "long_rollout.py", tmp_path], check=True, capture_output=True)
    file = root / "docs" / "benchmarks" / "long-rollout" / "certificate.json"
    claimed = read_certificate(file)
    operator, z0 = certified_inputs(claimed, file.parent, tmp_path)
    done = check(claimed, operator, z0, gpu)
    assert (done.hashes, done.difference) == (300, None)


def test_twenty_thousand_steps_are_repeatable(gpu: VulkanDevice) -> None:
    matrix, z0 = inputs(654, "float32")
    runs = [rollout(Linear(matrix), z0, 20_000, device=gpu, hash_every=1000) for _ in range(3)]
    assert choose_strategy(Linear(matrix), gpu, 1)[0] == "tagged"
    assert runs[0].hashes == runs[1].hashes == runs[2].hashes
    one_by_one = rollout(Linear(matrix), z0, 20_000, device=gpu, hash_every=1000, strategy="stepwise")
    assert one_by_one.hashes == runs[0].hashes
