"""The probe that finds how long a loop may be."""

from __future__ import annotations

import numpy as np
import pytest

from dashi import kernels
from dashi.runtime.device import Device


@pytest.mark.parametrize("steps", [0, 1, 2, 777])
def test_iterate_is_the_generator_applied_step_by_step(device: Device, steps: int) -> None:
    x = np.array([0, 1, 12345, 2**32 - 1], np.uint32)
    expected = x.copy()
    for _ in range(steps):
        expected = expected * np.uint32(1664525) + np.uint32(1013904223)
    np.testing.assert_array_equal(device.run("iterate", x, steps=steps).numpy(), expected)


def test_the_reference_of_iterate_takes_no_time_for_many_steps() -> None:
    reference = kernels.get("iterate").reference
    start = np.array([1, 2], np.uint32)
    half = reference(start, steps=2**31 - 1)
    np.testing.assert_array_equal(reference(half, steps=2**31 - 1), reference(start, steps=2**32 - 2))
