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
class Report:
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
    wanted = {0, *LOOKS, steps}
    encoder: Encoder | None = None
    rows: list[Floats] = []
    fields: dict[int, Floats] = {}
    for t, omega in enumerate(solver.frames(seed, steps)):
        encoder = encoder or Encoder.of(omega)
        rows.append(encoder.encode(omega))
        if t in wanted:
            fields[t] = omega
        if t and progress:
            progress(1)
    assert encoder is not None
    start, after = solver.frames(seed + 1, 1)
    return V4Record(n, steps, seed, encoder, np.array(rows), fields, (start, after))


def measure(
    n: int = 64, steps: int = 300, seed: int = 0, *, device: Device | None = None,
    progress: Callable[[int], None] | None = None,
) -> Report:  # fmt: skip
    """Every number of GOLDEN in this setting. With a device the map is also learned and rolled there (learned by NumPy
    where the device is NumPy)."""
    if device is not None and device.info.type == "null":
        raise NoResultError("the null device computes nothing.", "measure on another: cpu, or vulkan:0.")
    made = record(n, steps, seed, progress=progress)
    matrix = learn(made.z)
    found = flow_numbers(made) | map_numbers(made, matrix)
    where: dict[str, str] = dict.fromkeys(("simulate", "encode", "learn", "roll", "decode", "score"), "NumPy float64")
    run: Run | None = None
    there: dict[str, float] = {}
    if device is not None:
        name = f"{device.info.name} ({device.info.spec}), fp64"
        if device.info.type != "reference":
            matrix, where["learn"] = learn(made.z, device=device), f"NumPy float64; {name}"
            there["spectral radius of A"] = radius(matrix)
        states, run = roll_on(device, made.z[0], matrix, steps, hash_every=min(HASH_EVERY, steps))
        there |= rolled(made, states)
        where["roll"] = f"NumPy float64; {name}"
    golden: Mapping[str, str] = GOLDEN if (n, steps, seed) == SETTING else {}
    names = [*golden, *(name for name in found if name not in golden)]
    rows = tuple(Row(name, golden.get(name, ""), found[name], there.get(name)) for name in names)
    return Report(made, rows, where, matrix, run)


def flow_numbers(made: V4Record) -> dict[str, float]:
    """What does not depend on the learned map."""
    end, layout = made.steps, made.encoder.layout
    anchored = decode_anchors(made.encoder, made.z[end])
    l2, correlation = _scores(anchored, made.fields[end])
    low = made.z[:, layout.modes]
    persistence = {f"hold-out, persistence at t = {t}": _apart(low[made.split], low[t]) for t in made.held}
    return {
        "enstrophy at t = 0": enstrophy(made.fields[0]),
        f"enstrophy at t = {end}": enstrophy(made.fields[end]),
        f"|omega| at t = {end}": float(np.linalg.norm(made.fields[end])),
        "rank of X": float(np.linalg.matrix_rank(made.z[:-1])),
        f"true low-k + anchors, relative L2 at t = {end}": l2,
        f"true low-k + anchors, correlation at t = {end}": correlation,
        **persistence,
        f"{_pair(made)}, persistence at t = 1": _scores(*made.other)[1],
    }


def map_numbers(made: V4Record, A: Floats) -> dict[str, float]:  # noqa: N803 - A in the equation
    """What depends on it."""
    found = {"spectral radius of A": radius(A)} | rolled(made, roll(made.z[0], A, made.steps))
    found |= held_out(made, made.z, RIDGE, "hold-out")
    constant = made.z.copy()
    constant[:, made.encoder.layout.header.stop - 1] = 1.0
    found |= held_out(made, constant, CLOSE, "hold-out, ridge 1e-9")
    start, after = made.other
    step = roll(made.encoder.encode(start), A, 1)[1]
    return found | {f"{_pair(made)}, correlation at t = 1": _scores(decode(made.encoder, step, 1), after)[1]}


def radius(A: Floats) -> float:  # noqa: N803 - as above
    """The spectral radius."""
    return float(np.abs(np.linalg.eigvals(A)).max())


def rolled(made: V4Record, rows: Floats) -> dict[str, float]:
    """Scores of the decoded rows of a rollout that began at t = 0."""
    end, solver = made.steps, Solver(made.n)
    decoded = {t: decode(made.encoder, rows[t], t) for t in made.looks}
    found = {f"relative L2 at t = {t}": _scores(decoded[t], made.fields[t])[0] for t in made.looks}
    truth = made.fields[end]
    found[f"correlation at t = {end}"] = _scores(decoded[end], truth)[1]
    found[f"dE at t = {end}"] = solver.energy(decoded[end]) - solver.energy(truth)
    found[f"dZ at t = {end}"] = enstrophy(decoded[end]) - enstrophy(truth)
    l2, correlation = _scores(lowpass(made.encoder.layout, rows[end]), truth)
    found[f"low-k only, relative L2 at t = {end}"] = l2
    found[f"low-k only, correlation at t = {end}"] = correlation
    return found


def held_out(made: V4Record, z: Floats, ridge: float, name: str) -> dict[str, float]:
    """Errors of the low modes after `split`, by a map that was learned up to there and starts there."""
    rows = roll(z[made.split], learn(z[: made.split + 1], ridge), made.steps - made.split)
    modes = made.encoder.layout.modes
    return {f"{name}, low-k error at t = {t}": _apart(rows[t - made.split, modes], made.z[t, modes]) for t in made.held}


def _pair(made: V4Record) -> str:
    return f"seed {made.seed} to seed {made.seed + 1}"


def _apart(found: Floats, truth: Floats) -> float:
    return float(np.linalg.norm(found - truth) / np.linalg.norm(truth))


def _scores(found: Floats, truth: Floats) -> tuple[float, float]:
    """Relative L2 error and correlation."""
    both: Any = np.corrcoef(found.ravel(), truth.ravel())
    return _apart(found, truth), float(both[0, 1])
