"""What scans over sequences with a state of n numbers for each channel share: their plan and the shape of their result.

A channel belongs to a head, and a head to a group; as many lie side by side as their number fits. The result has a row
of channels for each step, and behind them the last state, n rows: the next call's start. Channels are alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np

from dashi.errors import InputError
from dashi.kernels._work import LOCAL, RUN, ceil_div
from dashi.kernels.abi import Binding, Call, Dispatch, Operand, Plan, Scalar, Shader
from dashi.kernels.portable import canon, mul, sum64
from dashi.types import HostArray

ROWS: Final = Scalar("rows", "u32", doc="rows of the result: steps + n")
RESULT: Final = Operand("result", shape=("b", "rows", "channels"))
START: Final = Operand("start", shape=("b", "n", "channels"))
MOST_STATES: Final = 4096
"""Numbers of a channel's state: a sum of more would need a third level of tree64."""
_WORDS: Final = ("b", "steps", "channels", "n", "heads", "groups", "begin", "end_step", "first_item")


def shader(names: Sequence[str], *, push: Sequence[str] = ()) -> Shader:
    """A shader of one invocation for each channel, which reads these operands and writes the result."""
    return Shader(
        (*(Binding(name) for name in names), Binding("result", access="readwrite")),
        tuple(Scalar(name, "u32") for name in (*_WORDS, *push)),
        local=(LOCAL, 1, 1),
        includes=("portable.glsl",),
    )


def plan(name: str, call: Call, buffers: Sequence[str], loops: int, push: Mapping[str, int]) -> Plan:
    """Dispatches for as many steps as the limit of loops allows; `loops` is how often a step goes through the state."""
    dims, n = call.dims, call.dims["n"]
    require_fit(name, dims)
    items = dims["b"] * dims["channels"]
    if items == 0:
        return Plan(())
    per_step = 4 + loops * (n + 3 * ceil_div(n, RUN) + 2)  # loops count once more when they end
    most = max(1, (call.limits.loop_trips - 2 * n) // per_step)
    if call.limits.software:
        most = max(1, min(most, (1 << 27) // max(1, items * n)))  # about 100 ms of a processor
    fixed = {key: dims[key] for key in _WORDS if key in dims} | dict(push)
    dispatches: list[Dispatch] = []
    for begin in range(0, max(1, dims["steps"]), most):
        end = min(dims["steps"], begin + most)
        for first in range(0, items, call.limits.groups * LOCAL):
            numbers = {**fixed, "begin": begin, "end_step": end, "first_item": first}
            groups = (min(ceil_div(items - first, LOCAL), call.limits.groups), 1, 1)
            trips = 2 * n + (end - begin) * per_step
            dispatches.append(Dispatch("main", (*buffers, "result"), numbers, groups, trips))
    return Plan(tuple(dispatches))


def require_fit(name: str, dims: Mapping[str, int]) -> None:
    """An InputError where channels, heads, groups, states and rows do not fit."""
    channels, heads, groups, n = (dims[key] for key in ("channels", "heads", "groups", "n"))
    if not groups or not heads or channels % heads or heads % groups or not 0 < n <= MOST_STATES:
        raise InputError(
            f"kernel {name!r}: {channels} channels of {heads} heads in {groups} groups with {n} numbers of state each.",
            f"pass multiples, and a state of 1 to {MOST_STATES}.",
        )
    if dims["rows"] != dims["steps"] + n:
        raise InputError(f"kernel {name!r}: {dims['rows']} rows are not {dims['steps']} steps + {n}.", "pass the sum.")


def spread(values: HostArray, count: int) -> HostArray:
    """Values of heads or groups, on the last axis, repeated so that each of `count` has its own."""
    return np.repeat(values, count // values.shape[-1], axis=-1)


def dot(state: HostArray, weights: HostArray) -> HostArray:
    """tree64 over n of mul(state, weights), both (b, n, channels)."""
    return canon(sum64(mul(state, weights), axis=1))
