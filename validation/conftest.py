"""Where the flow is solved: by NumPy's transforms, or on the device that DASHI_VALIDATE_ON names."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from dashi.core.rollouts.run import Run
from dashi.flow.equations import Flow
from dashi.flow.simulation import simulate
from dashi.runtime import open_device

Floats = Any


class Solver:
    """Runs flows of this suite on one device."""

    def __init__(self, device: Any) -> None:
        self.device = device
        self.fast = device.info.type == "reference"

    def run(self, flow: Flow, states: Floats, steps: int, look: int = 0, **more: Any) -> Run:
        start = np.asarray(states, flow.dtype)
        return simulate(
            flow, start, steps, device=self.device, look_every=look or max(1, steps), host_fft=self.fast, **more
        )


@pytest.fixture(scope="session")
def solver() -> Iterator[Solver]:
    with open_device(os.environ.get("DASHI_VALIDATE_ON", "cpu")) as device:
        yield Solver(device)
