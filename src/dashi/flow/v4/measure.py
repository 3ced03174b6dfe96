"""The numbers of `golden`, measured again: by NumPy, and with the map learned and rolled on a device."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from dashi.core.rollouts.run import Run
from dashi.errors import InputError, NoResultError
from dashi.flow.grid import Floats
from dashi.flow.v4.decode import decode, decode_anchors, lowpass
from dashi.flow.v4.encode import Encoder
from dashi.flow.v4.golden import GOLDEN, SETTING, Row
from dashi.flow.v4.linear import RIDGE, learn, roll, roll_on
from dashi.flow.v4.solver import Solver, enstrophy
from dashi.runtime.device import Device

LEAST: Final = 30
LOOKS: Final = (1, 10, 50, 100, 200)
HASH_EVERY: Final = 100
CLOSE: Final = 1e-9
"""The ridge of the second hold-out. Its header is constant: the number of anchors, 128, is replaced by 1."""


@dataclass(frozen=True, eq=False)
class V4Record:
    """A run of v4's solver: every z, the fields that are scored, and the start of the run with the next seed."""

    n: int
    steps: int
    seed: int
    encoder: Encoder
    z: Floats
    fields: Mapping[int, Floats]
    other: tuple[Floats, Floats]

    @property
    def looks(self) -> tuple[int, ...]:
        return (*(t for t in LOOKS if t < self.steps), self.steps)

    @property
    def split(self) -> int:
        """The last step that the hold-out learns from."""
        return 2 * self.steps // 3

    @property
    def held(self) -> tuple[int, ...]:
        """The steps at which the hold-out is scored."""
        rest = self.steps - self.split
        return (self.split + rest // 10, self.split + rest // 2, self.steps)


@dataclass(frozen=True, eq=False)
class V4Report:
    """The rows, where each part ran, and the rollout on the device, if there was one."""

    record: V4Record
    rows: tuple[Row, ...]
    where: Mapping[str, str]
    A: Floats
    run: Run | None = None

    @property
    def holds(self) -> bool:
        """Whether there are golden values for this setting, and all their digits are there."""
        return bool(self.rows[0].golden) and all(row.holds for row in self.rows)


def record(
    n: int = 64, steps: int = 300, seed: int = 0, *, progress: Callable[[int], None] | None = None
) -> V4Record:  # fmt: skip
    """Simulates and encodes. `progress` hears of every step."""
    if type(steps) is not int or steps < LEAST:
        raise InputError(f"{steps} steps were asked for.", f"use {LEAST} or more: a third of them is held out.")
    if seed == (1 << 32) - 1:
        raise InputError("there is no seed after this one to try the map on.", "use a smaller seed.")
    solver = Solver(n)
    scored = {0, *LOOKS, steps}
    encoder: Encoder | None = None
    rows: list[Floats] = []
    fields: dict[int, Floats] = {}
    for t, omega in enumerate(solver.frames(seed, steps)):
        encoder = encoder or Encoder.of(omega)
        rows.append(encoder.encode(omega))
        if t in scored:
            fields[t] = omega
        if t and progress:
            progress(1)
    assert encoder is not None
    start, after = solver.frames(seed + 1, 1)
    return V4Record(n, steps, seed, encoder, np.array(rows), fields, (start, after))


def measure(
    n: int = 64, steps: int = 300, seed: int = 0, *, device: Device | None = None,
    progress: Callable[[int], None] | None = None,
) -> V4Report:  # fmt: skip
    """Every number of GOLDEN in this setting. With a device the map is also learned and rolled there (learned by NumPy
    where the device is NumPy)."""
    if device is not None and device.info.type == "null":
        raise NoResultError("the null device computes nothing.", "measure on another: cpu, or vulkan:0.")
    simulated = record(n, steps, seed, progress=progress)
    matrix = learn(simulated.z)
    numbers = flow_numbers(simulated) | map_numbers(simulated, matrix)
    where: dict[str, str] = dict.fromkeys(("simulate", "encode", "learn", "roll", "decode", "score"), "NumPy float64")
    run: Run | None = None
    there: dict[str, float] = {}
    if device is not None:
        name = f"{device.info.name} ({device.info.spec}), fp64"
        if device.info.type != "reference":
            matrix, where["learn"] = learn(simulated.z, device=device), f"NumPy float64; {name}"
            there["spectral radius of A"] = radius(matrix)
        states, run = roll_on(device, simulated.z[0], matrix, steps, hash_every=min(HASH_EVERY, steps))
        there |= rolled(simulated, states)
        where["roll"] = f"NumPy float64; {name}"
    golden: Mapping[str, str] = GOLDEN if (n, steps, seed) == SETTING else {}
    names = [*golden, *(name for name in numbers if name not in golden)]
    rows = tuple(Row(name, golden.get(name, ""), numbers[name], there.get(name)) for name in names)
    return V4Report(simulated, rows, where, matrix, run)


def flow_numbers(run: V4Record) -> dict[str, float]:
    """What does not depend on the learned map."""
    end, layout = run.steps, run.encoder.layout
    anchored = decode_anchors(run.encoder, run.z[end])
    l2, correlation = _scores(anchored, run.fields[end])
    low = run.z[:, layout.modes]
    persistence = {f"hold-out, persistence at t = {t}": _apart(low[run.split], low[t]) for t in run.held}
    return {
        "enstrophy at t = 0": enstrophy(run.fields[0]),
        f"enstrophy at t = {end}": enstrophy(run.fields[end]),
        f"|omega| at t = {end}": float(np.linalg.norm(run.fields[end])),
        "rank of X": float(np.linalg.matrix_rank(run.z[:-1])),
        f"true low-k + anchors, relative L2 at t = {end}": l2,
        f"true low-k + anchors, correlation at t = {end}": correlation,
        **persistence,
        f"{_pair(run)}, persistence at t = 1": _scores(*run.other)[1],
    }


def map_numbers(run: V4Record, A: Floats) -> dict[str, float]:  # noqa: N803 - A in the equation
    """What depends on it."""
    numbers = {"spectral radius of A": radius(A)} | rolled(run, roll(run.z[0], A, run.steps))
    numbers |= held_out(run, run.z, RIDGE, "hold-out")
    constant = run.z.copy()
    constant[:, run.encoder.layout.header.stop - 1] = 1.0
    numbers |= held_out(run, constant, CLOSE, "hold-out, ridge 1e-9")
    start, after = run.other
    step = roll(run.encoder.encode(start), A, 1)[1]
    return numbers | {f"{_pair(run)}, correlation at t = 1": _scores(decode(run.encoder, step, 1), after)[1]}


def radius(A: Floats) -> float:  # noqa: N803 - as above
    """The spectral radius."""
    return float(np.abs(np.linalg.eigvals(A)).max())


def rolled(run: V4Record, rows: Floats) -> dict[str, float]:
    """Scores of the decoded rows of a rollout that began at t = 0."""
    end, solver = run.steps, Solver(run.n)
    decoded = {t: decode(run.encoder, rows[t], t) for t in run.looks}
    numbers = {f"relative L2 at t = {t}": _scores(decoded[t], run.fields[t])[0] for t in run.looks}
    truth = run.fields[end]
    numbers[f"correlation at t = {end}"] = _scores(decoded[end], truth)[1]
    numbers[f"dE at t = {end}"] = solver.energy(decoded[end]) - solver.energy(truth)
    numbers[f"dZ at t = {end}"] = enstrophy(decoded[end]) - enstrophy(truth)
    l2, correlation = _scores(lowpass(run.encoder.layout, rows[end]), truth)
    numbers[f"low-k only, relative L2 at t = {end}"] = l2
    numbers[f"low-k only, correlation at t = {end}"] = correlation
    return numbers


def held_out(run: V4Record, z: Floats, ridge: float, name: str) -> dict[str, float]:
    """Errors of the low modes after `split`, by a map that was learned up to there and starts there."""
    rows = roll(z[run.split], learn(z[: run.split + 1], ridge), run.steps - run.split)
    modes = run.encoder.layout.modes
    return {f"{name}, low-k error at t = {t}": _apart(rows[t - run.split, modes], run.z[t, modes]) for t in run.held}


def _pair(simulated: V4Record) -> str:
    return f"seed {simulated.seed} to seed {simulated.seed + 1}"


def _apart(found: Floats, truth: Floats) -> float:
    return float(np.linalg.norm(found - truth) / np.linalg.norm(truth))


def _scores(fields: Floats, truth: Floats) -> tuple[float, float]:
    """Relative L2 error and correlation."""
    both: Any = np.corrcoef(fields.ravel(), truth.ravel())
    return _apart(fields, truth), float(both[0, 1])
