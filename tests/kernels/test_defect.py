"""What the defect kernels promise beyond agreeing with their references."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from dashi import kernels
from dashi.runtime.device import Device

FLOATS = pytest.mark.parametrize("kind", [np.float32, np.float64])


@FLOATS
def test_defect_reduce_is_the_reduction_of_defect_local(device: Device, kind: Any) -> None:
    rng = np.random.default_rng(3)
    a, b = (device.array(rng.standard_normal((70, 90)).astype(kind)) for _ in range(2))
    local = device.run("defect_local", a, b)
    expected = [device.run(name, local).numpy()[0] for name in ("reduce_max", "reduce_sum")]
    assert device.run("defect_reduce", a, b).numpy().tolist() == expected


@FLOATS
def test_the_defect_does_not_depend_on_which_state_comes_first(device: Device, kind: Any) -> None:
    rng = np.random.default_rng(4)
    a, b = (device.array(rng.standard_normal(5000).astype(kind)) for _ in range(2))
    for name in ("defect_local", "defect_reduce"):
        assert device.run(name, a, b).numpy().tobytes() == device.run(name, b, a).numpy().tobytes()


@FLOATS
@pytest.mark.parametrize("shape", [(0,), (1,), (5000,)])
def test_equal_states_have_no_defect(device: Device, kind: Any, shape: tuple[int, ...]) -> None:
    a = np.random.default_rng(5).standard_normal(shape).astype(kind)
    assert device.run("defect_reduce", a, a.copy()).numpy().tobytes() == np.zeros(2, kind).tobytes()


@FLOATS
@pytest.mark.parametrize("place", [0, 4096, 4999])
def test_a_nan_anywhere_wins(device: Device, kind: Any, place: int) -> None:
    a, b = np.zeros(5000, kind), np.full(5000, np.inf, kind)
    assert np.isposinf(device.run("defect_reduce", a, b).numpy()).all()
    a[place] = np.nan
    assert np.isnan(device.run("defect_reduce", a, b).numpy()).all()


@pytest.mark.parametrize("name", ["defect_local", "defect_reduce"])
def test_defects_are_observations_to_the_stream_scheduler(name: str) -> None:
    assert kernels.get(name).stream.io_class == "OBSERVER"
