"""The same trajectory, bit for bit, on NumPy and on Vulkan, over many steps."""

from __future__ import annotations

import os

import pytest

from dashi.flow import initial
from dashi.flow.equations import Flow
from dashi.flow.simulation import simulate
from dashi.runtime import open_device


@pytest.mark.long
@pytest.mark.parametrize("smagorinsky", [0.0, 0.17])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_500_steps_have_the_same_hashes_on_numpy_and_vulkan(dtype: str, smagorinsky: float) -> None:
    flow = Flow(n=64, nu=2e-3, dt=0.01, smagorinsky=smagorinsky, dtype=dtype)
    states = initial.ensemble(flow, "random", [0])
    found: list[list[str]] = []
    for name in ("cpu", os.environ.get("DASHI_VALIDATE_ON", "vulkan:0")):
        with open_device(name) as device:
            run = simulate(flow, states, 500, device=device, hash_every=50, look_every=100)
            found.append([h.digest for h in run.hashes])
    assert found[0] == found[1]
    assert len(found[0]) == 10
