"""What a step of a rollout takes, each way, on the device's own clock, with everything resident; checked first."""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from dashi.bench.results import markdown_page
from dashi.core.operators.affine import Linear
from dashi.core.operators.operator import STRATEGIES, Operator, Strategy
from dashi.core.rollouts._strategies import limits_of
from dashi.core.rollouts.rollout import rollout
from dashi.kernels.portable import canon
from dashi.runtime import _stopwatch as stopwatch
from dashi.runtime._cpu_device import CpuDevice
from dashi.runtime._vulkan_device import VulkanDevice
from dashi.runtime.array import Array
from dashi.runtime.device import Device, Program, Step
from dashi.types import HostArray

CHECKED: Final = 20
"""Steps whose bits are compared with NumPy before anything is timed."""
ROUNDS: Final = 5
FAST_BOUND: Final = 1e-4
"""Relative L2 error of a fast product after the checked steps, against the portable one, in fp32."""


@dataclass(frozen=True)
class RolloutCase:
    """A case: a number of states of one size and type; `fast` is the device class beside the portable one."""

    d: int
    dtype: str = "float32"
    states: int = 1
    fast: bool = False

    @property
    def name(self) -> str:
        kind = "fp64" if self.dtype == "float64" else "fp32"
        many = f"{self.states} states, " if self.states > 1 else ""
        return f"{many}D = {self.d}, {kind}" + (", fast" if self.fast else "")

    def inputs(self) -> tuple[HostArray, HostArray]:
        """An orthogonal operator, so that nothing dies out nor blows up, and random states."""
        rng = np.random.default_rng(self.d)
        rotation, _ = np.linalg.qr(rng.standard_normal((self.d, self.d)))
        return rotation.astype(self.dtype), rng.standard_normal((self.states, self.d)).astype(self.dtype)


CASES: Final = (
    RolloutCase(128),
    RolloutCase(512),
    RolloutCase(654),
    RolloutCase(654, "float64"),
    RolloutCase(1024),
    RolloutCase(2048),
    RolloutCase(4096),
    RolloutCase(654, states=256),
    RolloutCase(654, states=256, fast=True),
)


@dataclass(frozen=True)
class WayTime:
    """Microseconds per step one way: the median and the least of the rounds; or why it was not timed."""

    way: Strategy
    us: float | None = None
    least_us: float | None = None
    steps: int = 0
    checked: str = ""
    skipped: str = ""


def measure(device: Device, case: RolloutCase) -> tuple[WayTime, ...]:
    """All ways of a case."""
    matrix, states = case.inputs()
    operator = Linear(matrix, portable=not case.fast)
    want = _expected(matrix, states)
    return tuple(_measure_way(device, operator, states, way, want) for way in STRATEGIES)


def _expected(matrix: HostArray, states: HostArray) -> HostArray:
    with CpuDevice() as reference:
        return rollout(Linear(matrix), states, CHECKED, device=reference).state


def _measure_way(device: Device, operator: Operator, states: HostArray, way: Strategy, want: HostArray) -> WayTime:
    limits = limits_of(device)
    problem = operator.unsupported_reason(way, limits, len(states))
    if problem:
        return WayTime(way, skipped=problem)
    got = rollout(operator, states, CHECKED, device=device, strategy=way).state
    verdict = _verdict(operator, got, want)
    if verdict.startswith("WRONG"):
        return WayTime(way, checked=verdict)
    loop = _Loop(device, operator, states, way)
    us, least, steps = loop.measure(max(0.05, operator.estimated_us(way, limits, len(states))))
    return WayTime(way, us, least, steps, verdict)


def _verdict(operator: Operator, got: HostArray, want: HostArray) -> str:
    if operator.portable:
        return "same bits as NumPy" if np.array_equal(got, want) else "WRONG: other bits than NumPy"
    wide: Any = want.astype(np.float64)
    error = float(np.linalg.norm(got.astype(np.float64) - wide) / np.linalg.norm(wide))
    return f"within {error:.1e} of NumPy" if error <= FAST_BOUND else f"WRONG: off by {error:.1e}"


class _Loop:
    """Steps recorded as one program: nothing else is timed."""

    def __init__(self, device: Device, operator: Operator, states: HostArray, way: Strategy) -> None:
        self._device, self._operator = device, operator
        self._way: Strategy = way
        self._constants = operator.load(device)
        self._state = (device.array(canon(states)), device.empty(states.shape, states.dtype))
        self._flag = device.empty(4, np.uint32)

    def measure(self, guess_us: float) -> tuple[float, float, int]:
        """Median and least microseconds per step, and the steps of a program."""
        steps = self._fitting(guess_us)
        if steps > 2:
            with self._program(steps) as program:
                took = _microseconds(program)
            steps = max(2, min(steps * 8, self._fitting(took / steps)))
        with self._program(steps) as program:
            if self._device.info.is_hardware:
                stopwatch.warm(program.run, stopwatch.HARDWARE.warm)
            taken = [_microseconds(program) / steps for _ in range(ROUNDS)]
        return statistics.median(taken), min(taken), steps

    def _fitting(self, us: float) -> int:
        """Steps that take about 50 ms."""
        wanted = int(50_000 / us)
        most = 2000 if self._way == "stepwise" else 200_000
        return max(2, min(wanted, most) // 2 * 2)

    def _program(self, steps: int) -> Program:
        recorded = [*self._recorded(steps)]
        return self._device.program(recorded, timed=self._device.info.timestamp_ns > 0)

    def _recorded(self, steps: int) -> Iterator[Step]:
        device, operator, constants = self._device, self._operator, self._constants
        there, back = self._state
        if self._way != "stepwise":
            yield operator.step_many(device, constants, there, back, self._flag, steps, self._way)
            return
        pair: list[Step] = []
        for source, target in ((there, back), (back, there)):
            pair += operator.step(device, constants, source, target)
        yield from pair * (steps // 2)


def _microseconds(program: Program) -> float:
    timing = program.run_timed()
    return (timing.wall if timing.device is None else timing.device) / 1000


@dataclass(frozen=True)
class ByHand:
    """The whole of `rollout`, step by step, beside the same loop recorded by hand and resubmitted, per step."""

    us: float
    by_hand_us: float

    @property
    def ratio(self) -> float:
        return self.us / self.by_hand_us


def beside_by_hand(device: Device, d: int = 128, steps: int = 2000) -> ByHand:
    """`rollout` as users call it, hashes included, against a bare loop of the same kernel that somebody wrote with
    `bind` and `program`, in turns."""
    case = RolloutCase(d)
    matrix, states = case.inputs()
    operator = Linear(matrix)
    bare = _by_hand(device, device.array(matrix), states[0])
    ours: list[float] = []
    theirs: list[float] = []
    for _ in range(ROUNDS):
        began = time.perf_counter()
        for _ in range(steps // bare[1]):
            bare[0].run()
        theirs.append(time.perf_counter() - began)
        ours.append(rollout(operator, states, steps, device=device, hash_every=steps, strategy="stepwise").seconds)
    bare[0].close()
    return ByHand(min(ours) / steps * 1e6, min(theirs) / steps * 1e6)


def _by_hand(device: Device, matrix: Array, row: HostArray) -> tuple[Program, int]:
    state = (device.array(row), device.empty(row.shape, row.dtype))
    there = device.bind("gemv", state[0], matrix, out=state[1])
    back = device.bind("gemv", state[1], matrix, out=state[0])
    return device.program([there, back] * 500), 1000


@dataclass(frozen=True)
class Hashing:
    """A long rollout with a hash every so many steps, beside the same without: microseconds per step, and how far the
    device's memory grew between the first and the last part."""

    steps: int
    every: int
    us: float
    without_us: float
    grown_bytes: int

    @property
    def share(self) -> float:
        """Share of the time that hashes and their readback cost, 0 to 1."""
        return 1 - self.without_us / self.us


def hashing(device: Device, d: int = 654, steps: int = 1_000_000, every: int = 1000) -> Hashing:
    """`rollout` as users call it, in turns with and without hashes; the best of each."""
    matrix, states = RolloutCase(d).inputs()
    operator = Linear(matrix)
    taken: dict[int, list[float]] = {0: [], every: []}
    used: list[int] = []
    for _ in range(3):
        for stride, into in taken.items():
            into.append(rollout(operator, states, steps, device=device, hash_every=stride).seconds)
            if isinstance(device, VulkanDevice):
                used.append(device.memory().reserved)
    grown = used[-1] - used[1] if used else 0
    return Hashing(steps, every, min(taken[every]) / steps * 1e6, min(taken[0]) / steps * 1e6, grown)


def document(case: RolloutCase, ways: tuple[WayTime, ...], peers: dict[str, Any]) -> dict[str, Any]:
    """A row of the results as plain data: microseconds per step."""
    timed = [w for w in ways if w.us is not None]
    best = min(timed, key=lambda w: w.us or 0.0, default=None)
    return {
        "case": case.name,
        "d": case.d,
        "dtype": case.dtype,
        "states": case.states,
        "portable": not case.fast,
        "best_way": best.way if best else None,
        "best_us": best.us if best else None,
        "ways": [
            {
                "way": w.way,
                "us_per_step": w.us,
                "least_us_per_step": w.least_us,
                "steps": w.steps,
                "checked": w.checked,
                "skipped": w.skipped,
            }
            for w in ways
        ],
        "peers_us_per_step": peers,
    }


def whole_rollout(device: Device) -> dict[str, Any]:
    """`rollout` as a whole: on software beside a loop recorded by hand; on hardware with and without hashes."""
    if device.info.is_hardware:
        cost = hashing(device)
        times = {"us_per_step": cost.us, "without_us_per_step": cost.without_us, "share": cost.share}
        return {"hashing": {"steps": cost.steps, "every": cost.every, **times, "grown_bytes": cost.grown_bytes}}
    if device.info.type == "reference":
        return {}
    beside = beside_by_hand(device)
    return {"by_hand": {"us_per_step": beside.us, "by_hand_us_per_step": beside.by_hand_us, "ratio": beside.ratio}}


def tables(results: dict[str, Any]) -> list[list[list[str]]]:
    """The tables of the whole document."""
    peers = list(results["peers"])
    timed = [f"{name} (us/step)" for name in ("stepwise", "workgroup", "tagged", *peers)]
    lines = [["case", *timed, "best", "checked"]]
    for row in results["rows"]:
        times = [f"{w['us_per_step']:.3f}" if w["us_per_step"] is not None else "-" for w in row["ways"]]
        theirs = [f"{row['peers_us_per_step'][p]:.3f}" for p in peers]
        checked = next((w["checked"] for w in row["ways"] if w["way"] == row["best_way"]), "nothing could run")
        lines.append([row["case"], *times, *theirs, row["best_way"] or "-", checked])
    return [lines]


def remarks(results: dict[str, Any]) -> list[str]:
    """Sentences on `rollout` as a whole."""
    lines: list[str] = []
    if "by_hand" in results:
        beside = results["by_hand"]
        ours, theirs = beside["us_per_step"], beside["by_hand_us_per_step"]
        lines.append(f"rollout, D = 128: {ours:.1f} us a step, by hand {theirs:.1f}: {beside['ratio']:.2f} x")
    if "hashing" in results:
        cost = results["hashing"]
        ours, theirs = cost["us_per_step"], cost["without_us_per_step"]
        lines.append(
            f"{cost['steps']} steps, D = 654, hashed every {cost['every']}: {ours:.3f} us a step, without hashes "
            f"{theirs:.3f}: {cost['share']:.1%} of the time; memory grew by {cost['grown_bytes']} bytes"
        )
    return lines


def page(results: dict[str, Any]) -> str:
    """The whole document as Markdown."""
    about = ("Microseconds per step, medians on the device's own clock, states and operator resident.",)
    text = markdown_page("Rollout", about, results, tables(results))
    return text + "".join(f"\n{line}.\n" for line in remarks(results))
