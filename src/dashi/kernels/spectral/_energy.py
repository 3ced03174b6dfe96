"""What the kernels that bound the energy of a closure share: its power, and what is taken from it.

With w the state, psi = w / k^2, raw a tendency, drain a table, T = raw - drain w and sums over all modes:

    excess = <psi, T> - allowance <w, w>,   energy = <psi, w>,   rate = excess / energy where both are above 0, else 0

`inverse` holds 1 / k^2, and `count` how many modes stand for each one of the half spectrum (0 leaves one out).
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from dashi.kernels._work import RUN, ceil_div, group_sum_trips
from dashi.kernels.abi import Binding, Call, Case, Dispatch, Operand, Plan, Scalar, Shader, Spec
from dashi.kernels.portable import canon, divide, mul, sum64
from dashi.kernels.spectral._modes import MODES, SIZES, TABLE, Floats
from dashi.types import HostArray, Shape

LANES: Final = 256
"""Invocations that share a state; a processor, where they take turns, has one for each of a run."""
ALLOWANCE: Final = Scalar("allowance", doc="power that is let in, in units of twice the enstrophy")


def totals(addends: Floats, count: Any) -> Floats:
    """Sums over all modes of each state, of count times the addends, in the order tree64."""
    weighted = mul(count, addends)
    return canon(sum64(weighted.reshape(len(weighted), weighted.shape[1] * weighted.shape[2])))


def tendency_of(state: Floats, raw: Floats, drain: Any) -> Floats:
    """T = raw - drain w."""
    return canon(canon(raw) - mul(state, canon(drain)[..., None]))


def excess_and_energy(
    state: Floats, tendency: Floats, inverse: HostArray, count: HostArray, allowance: float
) -> tuple[Floats, Floats]:
    """Both sums of every state."""
    less, many = canon(inverse), canon(count)
    size = dots(state, state)
    allowed = canon(np.asarray(allowance, state.dtype))
    power = mul(less, dots(tendency, state)) - mul(allowed, size)
    return totals(power, many), totals(mul(less, size), many)


def dots(a: Floats, b: Floats) -> Floats:
    """Re(conj(a) b) of modes."""
    return mul(a[..., 0], b[..., 0]) + mul(a[..., 1], b[..., 1])


def rate_of(excess: Floats, energy: Floats) -> Floats:
    """What is taken from a state, in units of the state: 0 where nothing has to be."""
    feeds = (excess > 0) & (energy > 0)
    return np.where(feeds, divide(excess, np.where(feeds, energy, energy.dtype.type(1))), excess.dtype.type(0))


def plan(call: Call, buffers: tuple[str, ...], sums: int) -> Plan:
    """A workgroup for each state, which makes so many sums and then goes over its modes."""
    members, plane = call.dims["members"], call.dims["n"] * call.dims["modes"]
    if members == 0:
        return Plan(())
    groups = min(members, call.limits.groups)
    lanes = min(LANES, call.limits.invocations) if plane > RUN and not call.limits.software else RUN
    trips = ceil_div(members, groups) * (1 + sums * group_sum_trips(plane, lanes) + ceil_div(plane, lanes))
    push = {
        "members": members, "stride": groups, "plane": plane, "allowance": call.scalars["allowance"],
    }  # fmt: skip
    return Plan((Dispatch("main", buffers, push, (groups, 1, 1), trips, {"LANES": lanes}),))


def shader(*bindings: Binding) -> Shader:
    """A shader whose workgroups run over states with a stride."""
    push = (*(Scalar(name, "u32") for name in ("members", "stride", "plane")), Scalar("allowance"))
    return Shader(bindings, push, (Spec("LANES", RUN),), ("LANES", 1, 1), includes=("portable.glsl",))


def operands(*modes: str) -> tuple[Operand, ...]:
    """Modes by name, and the tables that follow them."""
    return (*(Operand(name, shape=MODES) for name in modes),
            *(Operand(name, shape=TABLE) for name in ("drain", "inverse", "count")))  # fmt: skip


def bindings(*modes: str) -> tuple[Binding, ...]:
    """Modes by name and the tables after them, as a shader binds them."""
    return (*(Binding(name, "P") for name in modes), *(Binding(name) for name in ("drain", "inverse", "count")))


def cases(*modes: str) -> tuple[Case, ...]:
    """Shapes and allowances to be tried; without one, with one that is small beside what feeds, with a large one."""
    shapes: tuple[Shape, ...] = (*SIZES, (2, 40, 21, 2))
    allowances = (0.0, 1e-3, 4.0)
    return tuple(
        Case(
            {**dict.fromkeys(modes, shape), **dict.fromkeys(("drain", "inverse", "count"), shape[1:3])},
            {"allowance": allowances[j % 3]},
        )
        for j, shape in enumerate(shapes)
    )
