"""What the kernels of many steps share: z' = psi(z A + b), its reference, and how steps are cut into dispatches."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np

from dashi.kernels._psi import FLOPS, SCALARS, apply_psi
from dashi.kernels._work import RUN, ceil_div
from dashi.kernels.abi import Call, Case, Limits, Number, Operand, Scalar
from dashi.kernels.portable import canon, contract, prepare
from dashi.types import Cost, HostArray

LARGEST: Final = RUN * RUN
"""Most values of a state that is spread over workgroups: two levels of the order of sums."""
WIDEST: Final = 32
STEPS: Final = Scalar("steps", "u32", doc="how many steps")
ROLLOUT_SCALARS: Final = (STEPS, *SCALARS)
INPUTS: Final = (Operand("z", shape=("m", "d")), Operand("A", shape=("d", "d")), Operand("b", shape=("d",)))
RESULT: Final = Operand("result", shape=("m", "d"))


def advance(
    z: HostArray, a: HostArray, b: HostArray, steps: int, psi: int, alpha: Number, low: Number, high: Number
) -> HostArray:
    """The states after so many steps: rows times a matrix, plus b, through the nonlinearity."""
    matrix, bias, state = prepare(a), canon(b), canon(z)
    for _ in range(steps):
        state = apply_psi(psi, contract(state, matrix) + bias, alpha, low, high)
    return state


def cost(call: Call, dispatches: int) -> Cost:
    """Cost of a rollout: the operator and the states move once; everything between stays on the chip."""
    m, d, steps = call.dims["m"], call.dims["d"], int(call.scalars["steps"])
    if m * d == 0:
        return Cost(dispatches=dispatches)
    per_value = 2 * d + 1 + FLOPS[call.dtype.name][int(call.scalars["psi"])]
    return Cost(steps * m * d * per_value, (d * d + d + 2 * m * d) * call.dtype.size, dispatches)


def chunks(steps: int, most: int) -> Iterator[tuple[int, int]]:
    """(first, last) of each dispatch: as few as possible, of nearly equal length; one of no steps for none."""
    parts = max(1, ceil_div(steps, most))
    edges = [steps * i // parts for i in range(parts + 1)]
    yield from itertools.pairwise(edges)


def damped(rng: np.random.Generator, shape: tuple[int, ...]) -> HostArray:
    """A matrix whose states stay finite for many steps."""
    return rng.standard_normal(shape) * (0.9 / np.sqrt(shape[0]))


def case(m: int, d: int, steps: int, **scalars: Number) -> Case:
    """A test case."""
    return Case({"z": (m, d), "A": (d, d), "b": (d,)}, {"steps": steps, **scalars})


def on_chip(d: int, size: int, limits: Limits) -> str:
    """Why a state of d values cannot stay on chip; empty if it can."""
    room = limits.shared_bytes - 64
    return "" if 2 * d * size <= room else f"two states of {d} values do not fit {room} bytes of shared memory"


@dataclass(frozen=True)
class Cut:
    """How states of d values are cut: values per workgroup, invocations, runs that each of them adds up."""

    outs: int
    lanes: int
    runs_each: int
    across: int


def cut(d: int, outs: int, limits: Limits) -> Cut:
    """Fewer values per workgroup mean more workgroups, which read more; more than 1024 rows keep twice as many busy."""
    chosen = outs or (16 if 1024 < d <= 16 * limits.resident else WIDEST)
    runs = max(1, ceil_div(d, RUN))
    rows = min(runs, limits.invocations // chosen)
    return Cut(chosen, rows * chosen, ceil_div(runs, rows), ceil_div(d, chosen))
