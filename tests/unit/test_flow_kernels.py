"""Claims about the kernels of the flow lane that equality with their references does not make."""

from __future__ import annotations

import numpy as np
import pytest

from dashi.errors import ShapeError
from dashi.kernels.philox import philox, unit
from dashi.runtime import Device


def test_philox_gives_the_published_words() -> None:
    # The known answers that come with the authors' Random123, for philox4x32 with 10 rounds.
    whole = 0xFFFFFFFF
    zeros = [int(w) for w in philox((0, 0, 0, 0), (0, 0))]
    ones = [int(w) for w in philox((whole, whole, whole, whole), (whole, whole))]
    assert zeros == [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]
    assert ones == [0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_units_lie_below_one(dtype: type) -> None:
    made = unit(np.array([0, 1 << 31, 0xFFFFFFFF], np.uint32), dtype)
    assert made.dtype == dtype
    assert made[0] == 0
    assert made[1] == 0.5
    assert made[2] < 1


def test_a_kick_counts_the_step_and_keeps_modes_conjugate(device: Device) -> None:
    n = 8
    x = np.zeros((2, n, n // 2 + 1, 2))
    amplitude = np.zeros((n, n // 2 + 1))
    amplitude[[1, 2, -1, -2], 0] = 0.5
    amplitude[1, 1] = 0.5
    kicked = device.run("random_kick", x, amplitude, seed=7).numpy()
    np.testing.assert_array_equal(kicked[:, 0, 0], [[0, 1], [0, 1]])
    for row in (1, 2):
        np.testing.assert_array_equal(kicked[:, row, 0] * [1, -1], kicked[:, -row, 0])
    sizes = np.hypot(kicked[..., 0], kicked[..., 1])
    np.testing.assert_allclose(sizes[:, amplitude > 0], 0.5, rtol=1e-15)
    # Another member, another seed and another step are other draws; a member is the run with the next seed.
    next_seed = device.run("random_kick", x[:1], amplitude, seed=8).numpy()
    np.testing.assert_array_equal(next_seed[0], kicked[1])
    assert not np.array_equal(kicked[0, 1, 1], kicked[1, 1, 1])
    again = device.run("random_kick", kicked, amplitude, seed=7).numpy()
    assert not np.array_equal(again[0, 1, 1] - kicked[0, 1, 1], kicked[0, 1, 1])
    np.testing.assert_array_equal(again[:, 0, 0, 1], 2)


def test_kicks_do_not_depend_on_the_grid(device: Device) -> None:
    found = []
    for n in (8, 16):
        amplitude = np.zeros((n, n // 2 + 1), np.float32)
        amplitude[-2, 3] = amplitude[1, 0] = 1.0
        kicked = device.run("random_kick", np.zeros((1, n, n // 2 + 1, 2), np.float32), amplitude, seed=1).numpy()
        found.append((kicked[0, -2, 3].tolist(), kicked[0, 1, 0].tolist()))
    assert found[0] == found[1]


def test_advection_refuses_fields_that_do_not_belong_together(device: Device) -> None:
    with pytest.raises(ShapeError, match="5 fields do not make 1 products"):
        device.run("advection", np.zeros((1, 5, 4, 4), np.float32), products=1, eddy=0.0)


def test_a_shell_that_leaves_its_lists_is_not_a_number(device: Device) -> None:
    x = np.ones((1, 2, 2, 2), np.float32)
    lists = (np.ones(3, np.float32), np.array([0, 1, 9], np.uint32), np.array([0, 2, 3, 4], np.uint32))
    found = device.run("mode_shells", x, x, *lists, shells=3, longest=2).numpy()
    assert found[0, 0] == 4
    assert np.isnan(found[0, 1:]).all()
