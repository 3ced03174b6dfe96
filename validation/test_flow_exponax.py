"""Agreement with a second, independent solver: exponax (F. Koehler), where it is installed."""

from __future__ import annotations

import importlib.util
from typing import Any

import numpy as np
import pytest

from dashi.errors import install_extra
from dashi.flow import grid, initial
from dashi.flow.equations import Flow

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("exponax") is None,
    reason=f"exponax is an optional test dependency: {install_extra('validation')}",
)


@pytest.mark.parametrize("drag", [0.0, 0.1])
@pytest.mark.filterwarnings("ignore")  # of a library that is only compared with
def test_another_solver_gives_the_same_flow(solver: Any, drag: float) -> None:
    import exponax  # pyright: ignore[reportMissingImports]
    import jax  # pyright: ignore[reportMissingImports]

    jax.config.update("jax_enable_x64", True)
    flow = Flow(n=96, nu=0.03, dt=0.005, drag=drag, scheme="etdrk4", dtype="float64")
    start = initial.ensemble(flow, "random", [2], peak=3)
    ours = grid.to_field(solver.run(flow, start, 200).state[0])
    stepper = exponax.stepper.NavierStokesVorticity(
        2, flow.length, flow.n, flow.dt, diffusivity=flow.nu, drag=-drag, order=4
    )
    theirs = np.asarray(exponax.repeat(stepper, 200)(grid.to_field(start[0])[None]))[0]
    # Both are ETDRK4 and cut the spectrum of this grid at the same modes, so only rounding is left: that of some
    # thousand transforms of numbers of order 1.
    assert np.linalg.norm(ours - theirs) / np.linalg.norm(theirs) <= 1e-12
