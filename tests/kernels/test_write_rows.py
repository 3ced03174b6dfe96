"""Rows written into an array where it lies: the values of a copy, and nothing else is touched."""

from __future__ import annotations

import numpy as np

from dashi.kernels._calls import resolve_call
from dashi.kernels.abi import Limits
from dashi.kernels.index._writing import rows_in_place
from dashi.runtime.device import Device


def test_rows_are_written_in_place_with_the_bits_of_a_copy(device: Device) -> None:
    rng = np.random.default_rng(0)
    x, rows = (rng.standard_normal((4, n, 5)).astype(np.float32) for n in (9, 3))
    rows[0, 1] = -0.0, 1e-40, np.nan, np.inf, 3
    positions = np.array([0, 7, 9, 2**32 - 1], np.uint32)
    expected = device.run("write_rows", x, rows, positions).numpy()
    held = device.array(x)
    arrays = [held, device.array(rows), device.array(positions)]
    step = device.bind(rows_in_place(), *arrays, out=held, tuning=None, scratch=None)
    with device.program([step]) as program:
        program.run()
    assert held.numpy().tobytes() == expected.tobytes()
    assert expected[1, 7:].tobytes() == rows[1, :2].tobytes()
    assert expected[2:].tobytes() == x[2:].tobytes()


def test_the_work_is_that_of_the_rows_whatever_the_length() -> None:
    kernel = rows_in_place()
    shapes = [(2, 100_000, 64), (2, 1, 64), (2,)]
    (dispatch,) = kernel.plan(resolve_call(kernel, "f32", shapes, {}, Limits())).dispatches
    assert dispatch.groups == (1, 1, 1)
    assert dispatch.trips == 1
