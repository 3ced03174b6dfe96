"""Claims about errors modulo symmetries: those are symmetries, and nothing else is."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from dashi.errors import ShapeError
from dashi.flow import Flow, Kolmogorov, simulate
from dashi.flow.evaluation import quotient_error, symmetries_of
from dashi.flow.grid import to_field
from dashi.flow.initial import ensemble, from_field
from dashi.runtime._cpu_device import CpuDevice

N = 24
FORCED = Flow(N, nu=5e-3, dt=0.02, forcing=Kolmogorov(3), dtype="float64")
FREE = Flow(N, nu=5e-3, dt=0.02, dtype="float64")


def field(seed: int = 1) -> Any:
    return to_field(ensemble(FREE, "random", [seed], peak=3.0))[0].astype(np.float64)


def mirrored(values: Any) -> Any:
    return np.roll(values[:, ::-1], 1, axis=1)


def moved(values: Any, along_x: int, along_y: int) -> Any:
    return np.roll(values, (along_y, along_x), axis=(0, 1))


def half_turn(values: Any) -> Any:
    return np.roll(values[::-1, ::-1], (1, 1), axis=(0, 1))


SYMMETRIC = {
    "along x": (FORCED, lambda w: moved(w, 5, 0)),
    "a whole wave along y": (FORCED, lambda w: moved(w, 3, N // 3)),
    "the half turn": (FORCED, half_turn),
    "a mirror, half a wave and the sign": (FORCED, lambda w: -moved(mirrored(w), 2, N // 6)),
    "anywhere, free": (FREE, lambda w: moved(w, 7, 5)),
    "a quarter turn, free": (FREE, lambda w: moved(np.rot90(w), 1, 2)),
    "a mirror with the sign, free": (FREE, lambda w: -moved(mirrored(w), 1, 2)),
}
OTHERS = {
    "part of a wave along y": (FORCED, lambda w: moved(w, 0, 1)),
    "a quarter turn of a forced flow": (FORCED, np.rot90),
    "a mirror without half a wave": (FORCED, lambda w: -mirrored(w)),
    "the sign alone": (FREE, lambda w: -w),
    "a mirror without the sign": (FREE, mirrored),
}


@pytest.mark.parametrize("name", SYMMETRIC)
def test_fields_that_a_symmetry_connects_have_no_error_in_the_quotient(name: str) -> None:
    flow, change = SYMMETRIC[name]
    w = field()
    error = quotient_error(flow, change(w), w)
    assert error.plain > 0.5
    assert error.quotient < 1e-6  # the root of a rounding
    assert error.correlation == pytest.approx(1.0)


@pytest.mark.parametrize("name", OTHERS)
def test_what_is_no_symmetry_leaves_an_error(name: str) -> None:
    flow, change = OTHERS[name]
    w = field()
    assert 0.1 < quotient_error(flow, change(w), w).quotient <= quotient_error(flow, change(w), w).plain + 1e-9


@pytest.mark.parametrize("name", SYMMETRIC)
def test_the_solver_commutes_with_every_symmetry(name: str) -> None:
    flow, change = SYMMETRIC[name]
    w = field()
    with CpuDevice() as cpu:
        end = {
            key: to_field(simulate(flow, from_field(flow, start), 4, device=cpu, host_fft=True).state)[0]
            for key, start in (("plain", w), ("changed", change(w)))
        }
    # float64, four steps.
    assert np.allclose(change(end["plain"]), end["changed"], atol=1e-10)


def test_there_are_as_many_symmetries_as_the_force_leaves() -> None:
    assert (len(symmetries_of(FORCED).forms), symmetries_of(FORCED).waves) == (4, 3)
    assert (len(symmetries_of(FREE).forms), symmetries_of(FREE).waves) == (8, 0)


def test_several_fields_are_compared_one_by_one_and_other_shapes_refused() -> None:
    w = np.stack([field(1), field(2)])
    error = quotient_error(FREE, w, np.stack([moved(field(1), 2, 2), field(1)]))
    assert error.quotient[0] < 1e-6 < 0.1 < error.quotient[1]
    with pytest.raises(ShapeError, match="not both of 24 x 24"):
        quotient_error(FREE, w, w[:1])
