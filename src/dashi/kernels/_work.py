"""Cutting work into dispatches, workgroups and loops: what the plans of all kernels share."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from dashi.kernels.abi import Call, Dispatch, Limits, Number, Plan, Scalar

RUN: Final = 64
"""Addends that the canonical order (tree64) sums one after the other; sums of runs are summed in runs again."""
LOCAL: Final = 256
"""Invocations of a workgroup of `loop_plan`."""
LOOP_PUSH: Final = (Scalar("items", "u32"), Scalar("stride", "u32"))
"""Push constants of the shaders that `loop_plan` dispatches."""


def ceil_div(n: int, d: int) -> int:
    """n / d, rounded up."""
    return -(-n // d)


def next_power_of_two(n: int) -> int:
    """The smallest power of two that is at least n; 1 for n = 0."""
    return 1 << max(0, n - 1).bit_length()


def groups_for(threads: int, local: int, limits: Limits) -> tuple[int, int]:
    """Workgroups for a grid-stride loop over `threads` items, and the loop's trips per invocation."""
    groups = max(1, min(ceil_div(threads, local), limits.groups))
    return groups, max(1, ceil_div(threads, groups * local))


def even_groups(blocks: int, limits: Limits) -> tuple[int, int]:
    """Workgroups for that many blocks, each with the same number of them (give or take one), and that number."""
    rounds = ceil_div(blocks, limits.groups)
    return ceil_div(blocks, rounds), rounds


@dataclass(frozen=True)
class WorkShare:
    """The blocks from `first` up to, but without, `beyond`, for one dispatch of so many workgroups."""

    first: int
    beyond: int
    groups: int
    trips: int


def split_work(blocks: int, trips: int, limits: Limits) -> Iterator[WorkShare]:
    """Divides blocks of `trips` loop iterations each among dispatches that stay within the limits."""
    most = limits.groups * max(1, limits.loop_trips // trips)
    for first in range(0, blocks, most):
        beyond = min(blocks, first + most)
        groups, rounds = even_groups(beyond - first, limits)
        yield WorkShare(first, beyond, groups, rounds * trips)


def loop_plan(
    call: Call,
    items: int,
    buffers: tuple[str, ...],
    push: Mapping[str, Number],
    *,
    shader: str = "main",
    trips: int = 0,
) -> Plan:
    """One dispatch whose invocations share `items` in a loop; `trips` are those of the loops inside it."""
    if items == 0:
        return Plan(())
    groups, rounds = groups_for(items, LOCAL, call.limits)
    numbers = {"items": items, "stride": groups * LOCAL, **push}
    return Plan((Dispatch(shader, buffers, numbers, (groups, 1, 1), rounds * (1 + trips)),))


def group_sum_trips(count: int, lanes: int) -> int:
    """Loop iterations of `group_sum64.glsl`, for `count` addends by `lanes` invocations."""
    return (count // 1024 + 1) * (2 + 1024 // lanes + 8) + (count // 4096 + 1) * (16 + 3)
