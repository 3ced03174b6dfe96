"""The solver's RK4 step by torch (a CUDA graph), JAX (a compiled loop) and plain SciPy or NumPy, for comparison only.

Each stage has four inverse and one forward real transform, 2/3 dealiasing and an integrating factor, as ours has.
"""

from __future__ import annotations

import statistics
import time
from functools import partial
from typing import Any, Final

import numpy as np

from dashi.bench.peers.cuda_timing import replays_us
from dashi.bench.peers.gpu_library import load_library
from dashi.errors import InputError
from dashi.flow import grid
from dashi.flow._host_fft import Transforms
from dashi.flow._schemes import tableau
from dashi.flow.equations import Flow
from dashi.flow.grid import Floats

NAMES: Final = ("torch", "jax")
ROUNDS: Final = 5


class Problem:
    """The tables of a flow for any array library, and one step in terms of it. Modes carry the factor n^2."""

    def __init__(self, flow: Flow, put: Any, rfft2: Any, irfft2: Any) -> None:
        if flow.scheme != "rk4" or flow.forcing or flow.smagorinsky:
            raise InputError("the peers know plain rk4 only.", "compare an unforced flow without eddy viscosity.")
        wave_x, wave_y, inverse = grid.waves(flow)
        kind = np.result_type(flow.numpy_dtype, np.complex64)
        x, y = 1j * wave_x[None, :], 1j * wave_y[:, None]
        made = (y * inverse, -x * inverse, x + 0 * y, y + 0 * x)
        self._multipliers = [put(m.astype(kind)) for m in made]
        tables = tableau(flow).tables
        self._tables = {name: put(values) for name, values in tables.items()}
        self._rfft2, self._irfft2 = rfft2, irfft2

    def advection(self, modes: Any) -> Any:
        """The modes of -(u w_x + v w_y)."""
        u, v, slope_x, slope_y = (self._irfft2(modes * m) for m in self._multipliers)
        return -self._rfft2(u * slope_x + v * slope_y)

    def step(self, z: Any) -> Any:
        """One step of dt."""
        t = self._tables
        k1 = self.advection(z)
        k2 = self.advection(z + (t["half_change"] * z + t["half_2"] * k1))
        k3 = self.advection(z + (t["half_change"] * z + t["one_2"] * k2))
        k4 = self.advection(z + (t["whole_change"] * z + t["half_1"] * k3))
        return z + (t["whole_change"] * z + t["whole_6"] * k1 + t["half_3"] * (k2 + k3) + t["one_6"] * k4)


def complex_state(flow: Flow, states: Floats) -> Any:
    """The first of the states as complex numbers, times n^2."""
    pairs = np.asarray(states[0], np.float64) * float(flow.n**2)
    return (pairs[..., 0] + 1j * pairs[..., 1]).astype(np.result_type(flow.numpy_dtype, np.complex64))


class TorchFlow:
    """Steps captured in a CUDA graph."""

    name = "torch"

    def __init__(self, torch: Any) -> None:
        self._torch = torch
        self.version = f"torch {torch.__version__}, CUDA graph"

    def us_per_step(self, flow: Flow, states: Floats, steps: int) -> float:
        """The median over rounds."""
        torch = self._torch
        fft = torch.fft

        def put(values: Floats) -> Any:
            return torch.from_numpy(values).cuda()

        problem = Problem(flow, put, fft.rfft2, fft.irfft2)
        z = torch.from_numpy(complex_state(flow, states)).cuda()
        first = z.clone()

        def loop() -> None:
            for _ in range(steps):
                z.copy_(problem.step(z))

        # Every round starts from the same state.
        taken = replays_us(torch, loop, ROUNDS, runs=2, before=lambda: z.copy_(first))
        return statistics.median(us / steps for us in taken)


class JaxFlow:
    """`lax.fori_loop` of steps, compiled."""

    name = "jax"

    def __init__(self, jax: Any) -> None:
        self._jax = jax
        self.version = f"jax {jax.__version__}, fori_loop on {jax.devices()[0].platform}"

    def us_per_step(self, flow: Flow, states: Floats, steps: int) -> float:
        """The median over rounds."""
        jax = self._jax
        problem = Problem(flow, jax.device_put, jax.numpy.fft.rfft2, jax.numpy.fft.irfft2)

        def loop(z: Any) -> Any:
            def step(_: Any, v: Any) -> Any:
                return problem.step(v)

            return jax.lax.fori_loop(0, steps, step, z)

        run = jax.jit(loop)
        z = jax.device_put(complex_state(flow, states))
        run(z).block_until_ready()
        taken: list[float] = []
        for _ in range(ROUNDS):
            began = time.perf_counter()
            run(z).block_until_ready()
            taken.append((time.perf_counter() - began) * 1e6 / steps)
        return statistics.median(taken)


Peer = TorchFlow | JaxFlow


def load(name: str) -> Peer:
    """The peer of that name, on a GPU: on a processor its numbers would compare nothing."""
    library = load_library(name, NAMES)
    return TorchFlow(library) if name == "torch" else JaxFlow(library)


class PlainFlow:
    """The solver that one would write with SciPy (or NumPy) in an afternoon: what `fast` is measured against."""

    def __init__(self, flow: Flow, states: Floats) -> None:
        library = Transforms(flow.n)
        fft, more, self.version = library.fft, library.more, library.name
        side = (flow.n, flow.n)
        back = partial(fft.irfft2, s=side, **more)
        self._problem = Problem(flow, np.asarray, partial(fft.rfft2, **more), back)
        self.state = complex_state(flow, states)

    def run(self, steps: int) -> None:
        """Advances the state."""
        for _ in range(steps):
            self.state = self._problem.step(self.state)
