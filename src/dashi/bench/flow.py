"""What a step of the solver takes: on a device's own clock, checked first; on NumPy beside a plain solver."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from dashi.bench import fft as fft_bench
from dashi.bench.peers.flow import PlainFlow
from dashi.bench.results import markdown_page
from dashi.flow import initial
from dashi.flow._host_fft import HostSolver
from dashi.flow._operator import Vorticity
from dashi.flow.equations import Flow
from dashi.flow.grid import Floats
from dashi.runtime import _stopwatch as stopwatch
from dashi.runtime.device import Device

if TYPE_CHECKING:
    from dashi.bench.peers.flow import Peer

SIZES: Final = (128, 256, 1024, 2048)
SMALL: Final = (64, 128)
ROUNDS: Final = 7
BOUNDS: Final = {"float32": 2e-5, "float64": 1e-13}
"""The largest relative L2 difference of a few steps from the same steps in float64 by NumPy's transforms: some tens of
roundings of the largest modes."""
CHECKED_STEPS: Final = 2


@dataclass(frozen=True)
class StepTime:
    """Microseconds of a step, dispatches of a step, and how far a few steps are from those of float64; and what a step
    takes in the device class, where there is one."""

    n: int
    dtype: str
    us: float
    dispatches: int
    error: float
    good: bool
    fast_us: float | None = None


def bench_flow(n: int, dtype: str) -> tuple[Flow, Floats]:
    """The flow that is timed: decaying turbulence by RK4."""
    flow = Flow(n=n, nu=2e-3 * (128 / n) ** 2, dt=0.01 * min(1.0, 128 / n), dtype=dtype)
    return flow, initial.ensemble(flow, "random", [0])


def measure(device: Device, n: int, dtype: str = "float32") -> StepTime:
    """The median over rounds of many recorded steps, on the device's own clock where it has one; both classes."""
    flow, states = bench_flow(n, dtype)
    measured = _measured(device, Vorticity(flow), states)
    if dtype != "float32" or not device.info.is_hardware:
        return measured
    fast = _measured(device, Vorticity(flow, portable=False), states)
    return replace(measured, fast_us=fast.us, good=measured.good and fast.good)


def _measured(device: Device, operator: Vorticity, states: Floats) -> StepTime:
    flow, n, dtype = operator.flow, operator.flow.n, operator.flow.dtype
    loaded = operator.load(device)
    pair = (device.array(states), device.empty(states.shape, states.dtype))
    single = [operator.step(device, loaded, pair[i], pair[1 - i]) for i in (0, 1)]
    with device.program([*single[0], *single[1]]) as program:
        program.run()
        per_step = program.dispatches // 2
        error = _difference(flow, states, pair[0].numpy())
    many = max(1, min(25, 4_000_000 // (n * n))) if device.info.is_hardware else 1
    device.write(pair[0], states)
    with device.program([*single[0], *single[1]] * many, timed=True) as program:
        program.run()
        if device.info.is_hardware:
            stopwatch.warm(program.run, stopwatch.HARDWARE.warm)
        taken = [program.run_timed() for _ in range(ROUNDS if device.info.is_hardware else 3)]
    ns = statistics.median(t.device if t.device is not None else t.wall for t in taken)
    return StepTime(n, dtype, ns / 1000 / (2 * many), per_step, error, error <= BOUNDS[dtype])


def _difference(flow: Flow, states: Floats, computed: Floats) -> float:
    """The relative L2 difference of two steps from float64's."""
    exact = Flow.restore({**flow.parameters, "dtype": "float64"})
    solver = HostSolver(exact, states.astype(np.float64))
    solver.advance(CHECKED_STEPS)
    expected: Any = solver.states()
    return float(np.linalg.norm(computed.astype(np.float64) - expected) / np.linalg.norm(expected))


@dataclass(frozen=True)
class Beside:
    """Microseconds of a step of `fast` and of the plain solver, in turns, and their ratio."""

    n: int
    dtype: str
    us: float
    plain_us: float
    ratio: float
    library: str


def beside_plain(n: int, dtype: str = "float64") -> Beside:
    """`fast` on the NumPy device and the plain solver by turns; medians."""
    flow, states = bench_flow(n, dtype)
    steps = max(1, min(100, 1_000_000 // (n * n)))
    solver, plain = HostSolver(flow, states), PlainFlow(flow, states)

    def ours() -> None:
        solver.advance(steps)

    def theirs() -> None:
        plain.run(steps)

    times: list[tuple[float, float]] = [(_timed(ours), _timed(theirs)) for _ in range(ROUNDS + 1)][1:]
    mine, other = (statistics.median(t) / steps for t in zip(*times, strict=True))
    ratio = statistics.median(a / b for a, b in times)
    return Beside(n, dtype, mine * 1e6, other * 1e6, ratio, plain.version)


def _timed(work: Callable[[], None]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def measured_row(device: Device, n: int, dtype: str, peers: Sequence[Peer]) -> dict[str, Any]:
    """A size as a row of the results: on a device beside the peers, on NumPy beside the plain solver."""
    if device.info.type == "reference":
        return asdict(beside_plain(n, dtype))
    ours = asdict(measure(device, n, dtype))
    flow, states = bench_flow(n, dtype)
    steps = max(2, min(50, 8_000_000 // (n * n)))
    return {**ours, "peers_us": {p.name: p.us_per_step(flow, states, steps) for p in peers}}


def tables(results: dict[str, Any]) -> list[list[list[str]]]:
    """The tables of the whole document: steps, and the transforms beneath them where they were timed."""
    transforms = results.get("transforms")
    return [_cells(results), *([fft_bench.cells(transforms)] if transforms else [])]


def _cells(results: dict[str, Any]) -> list[list[str]]:
    rows = results["rows"]
    if rows and "plain_us" in rows[0]:
        lines = [["n", "dtype", "fast (us/step)", "plain (us/step)", "fast / plain", "library"]]
        for r in rows:
            times = [f"{r['us']:.0f}", f"{r['plain_us']:.0f}", f"{r['ratio']:.2f}"]
            lines.append([str(r["n"]), r["dtype"], *times, r["library"]])
        return lines
    peers = list(results["peers"])
    head = ["n", "dtype", "us/step", "device class", "dispatches", *(f"{p} (us/step)" for p in peers)]
    head += ["error", "checked"]
    return [
        head,
        *(
            [
                str(r["n"]), r["dtype"], f"{r['us']:.1f}", f"{r['fast_us']:.1f}" if r["fast_us"] else "-",
                str(r["dispatches"]),
                *(f"{r['peers_us'][p]:.1f}" for p in peers), f"{r['error']:.1e}", "good" if r["good"] else "WRONG",
            ]
            for r in rows
        ),
    ]  # fmt: skip


def page(results: dict[str, Any]) -> str:
    """The whole document as Markdown."""
    about = (
        "RK4, dealiased, four inverse and one forward transform in each of four stages; medians, states resident.",
        "us/step is the portable class; in the device class nothing is flushed.",
    )
    return markdown_page("A step of the flow solver", about, results, tables(results))
