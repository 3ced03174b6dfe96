"""Lists of entries that outputs are summed over: their sums on the host, and the plans of `_include/list_step.glsl`
and `_include/list_rollout.glsl`.

List k holds the entries from offsets[k] up to offsets[k + 1], in the order in which they are stored; its sum is tree64
over their products. A list longer than declared, and one that leaves the entries, gives NaN.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from dashi.errors import LimitError, ShapeError
from dashi.kernels._work import group_sum_trips, next_power_of_two, split_work
from dashi.kernels.abi import Binding, Call, Dispatch, Limits, Number, Plan, Scalar, Shader, Spec
from dashi.kernels.portable._bits import Floats, canon, mul
from dashi.kernels.portable._sums import RUN
from dashi.types import HostArray

Ints = npt.NDArray[Any]
LONGEST: Final = RUN**3
RUN_TRIPS: Final = 1 + RUN // 4 + 3
"""Loop iterations of `run_sum`: four entries at a time (eight floats), at most three (seven) left over."""
MOST_RUNS: Final = RUN
"""Runs of one output's list that a rollout in one workgroup can add: 4096 entries."""
STEP_TUNINGS: Final = {
    "fitted": {"direct": 2, "local": 128, "lanes": 256},
    "grouped": {"direct": 0, "local": 128, "lanes": 64},
    "direct": {"direct": 1, "local": 64, "lanes": 64},
}
"""An invocation for each output (direct 1), a workgroup (0), or by the lists' length (2)."""
ROLLOUT_TUNINGS: Final = {"lanes1024": {"lanes": 1024}, "lanes128": {"lanes": 128}}
"""Invocations of the one workgroup that rolls a state out, at most: many hide the time that loads take."""
MANY_ITEMS: Final = 1 << 14
ROLLOUT_SPEC: Final = (Spec("LOCAL", 128), Spec("EACH", 1), Spec("RUNS", 1), Spec("WIDTH", 128))
INCLUDES: Final = ("portable.glsl", "list_sum.glsl")


@dataclass(frozen=True, eq=False)
class Sums:
    """How lists are summed, level by level, prepared once: row i of a level names the addend number i of every run.
    The place after the last addend holds +0, which fills short runs."""

    whole: npt.NDArray[np.bool_]
    levels: tuple[Ints, ...]
    last: Ints

    def __call__(self, products: Floats) -> Floats:
        """The sums (m, lists) of products (m, entries); NaN for lists that have none."""
        values = products
        with np.errstate(all="ignore"):
            for places in self.levels:
                extended = np.concatenate([values, np.zeros((len(values), 1), values.dtype)], axis=1)
                values = np.zeros((len(values), places.shape[1]), values.dtype)
                for row in places:
                    values += extended[:, row]
        extended = np.concatenate([values, np.zeros((len(values), 1), values.dtype)], axis=1)
        return np.where(self.whole, extended[:, self.last], np.asarray(np.nan, products.dtype))


@dataclass(frozen=True, eq=False)
class Lists:
    """Where the entries of lists lie, list after list; one that has no sum has no entries, and is not whole."""

    order: Ints
    lengths: Ints
    whole: npt.NDArray[np.bool_]

    @property
    def owner(self) -> Ints:
        """The list of every entry."""
        return np.repeat(np.arange(len(self.lengths)), self.lengths)

    @property
    def place(self) -> Ints:
        """The number of every entry in its list."""
        starts = np.cumsum(self.lengths) - self.lengths
        return np.arange(int(self.lengths.sum())) - starts[self.owner]


def lists_at(offsets: Ints, entries: int, longest: int) -> Lists:
    """Lists with these offsets into that many entries."""
    ends = offsets.astype(np.int64)
    lengths = np.diff(ends)
    whole = (lengths >= 0) & (ends[1:] <= entries) & (lengths <= longest)
    bare = Lists(ends[:0], np.where(whole, lengths, 0), whole)
    return replace(bare, order=ends[:-1][bare.owner] + bare.place)


def prepare_sums(lists: Lists) -> Sums:
    """The sums of lists over their entries, in the lists' order."""
    lengths = lists.lengths
    starts, size = np.cumsum(lengths) - lengths, int(lengths.sum())
    levels: list[Ints] = []
    while True:
        runs = -(-lengths // RUN)
        after = np.cumsum(runs)
        owner = np.repeat(np.arange(len(runs)), runs)
        before = (np.arange(len(owner)) - (after - runs)[owner]) * RUN
        first, length = starts[owner] + before, np.minimum(lengths[owner] - before, RUN)
        place = np.arange(int(length.max(initial=0)))[:, None]
        levels.append(np.where(place < length, first + place, size))
        starts, lengths, size = after - runs, runs, len(owner)
        if lengths.max(initial=0) <= 1:
            return Sums(lists.whole, tuple(levels), np.where(lengths == 1, starts, size))


class LinearForm:
    """The product z A on the host, the lists of the columns of A prepared once. A row past the end gives NaN."""

    def __init__(self, values: HostArray, sources: HostArray, lists: Lists, width: int) -> None:
        self._sums = prepare_sums(lists)
        self._rows = np.minimum(sources.astype(np.int64)[lists.order], width)
        self._outside = self._rows == width
        self._values = canon(values)[lists.order]

    def __call__(self, state: Floats) -> Floats:
        """The product of canonical states with A."""
        nan = np.full((len(state), 1), np.nan, state.dtype)
        products = mul(self._values, np.concatenate([state, nan], axis=1)[:, self._rows])
        return canon(self._sums(np.where(self._outside, nan, products)))


def require_lists(kernel: str, what: str, lists: int, ends: int, longest: int) -> None:
    """What the shapes alone cannot say: one offset more than lists, and three levels of sums at most."""
    if ends != lists + 1:
        raise ShapeError(
            f"kernel {kernel!r}: {lists} outputs need {lists + 1} {what}, {ends} given.",
            "give one list for each component of the state.",
        )
    if longest > LONGEST:
        raise LimitError(
            f"kernel {kernel!r}: lists of {longest} entries are longer than {LONGEST}.",
            "split the operator into several, and add what they make.",
        )


def step_shaders(
    buffers: tuple[Binding, ...], push: tuple[Scalar, ...], *spec: Spec, file: str = "kernel.comp"
) -> dict[str, Shader]:
    """Both shaders of `list_step.glsl` around a kernel's file."""
    numbers = (*(Scalar(name, "u32") for name in ("first_item", "items", "stride")), *push)
    direct = Shader(buffers, numbers, (Spec("LOCAL", 128), *spec), ("LOCAL", 1, 1), file, INCLUDES)
    grouped = replace(direct, spec=(Spec("LANES", 128), *spec), local=("LANES", 1, 1), prelude="#define GROUPED\n")
    return {"direct": direct, "grouped": grouped}


def rollout_shaders(buffers: tuple[Binding, ...], push: tuple[Scalar, ...], *spec: Spec) -> dict[str, Shader]:
    """The shader of `list_rollout.glsl` around kernel.comp."""
    numbers = (*(Scalar(name, "u32") for name in ("steps", "first_state")), *push)
    return {"main": Shader(buffers, numbers, (*ROLLOUT_SPEC, *spec), local=("LOCAL", 1, 1), includes=INCLUDES)}


def prefer_step(limits: Limits, variant: str) -> str:
    """The tuning of a step: a processor has caches, and waits at barriers for long."""
    return "direct" if limits.software else "fitted"


def prefer_rollout(limits: Limits, variant: str) -> str:
    """The tuning of a rollout: few lanes are enough where they take turns on one core."""
    return "lanes128" if limits.software else "lanes1024"


def direct_trips(longest: int) -> int:
    """Loop iterations of `list_sum`."""
    runs = -(-longest // RUN)
    return 1 + runs * (RUN_TRIPS + 1) + runs // RUN * 2


def step_dispatches(
    call: Call,
    items: int,
    longest: tuple[int, ...],
    buffers: tuple[str, ...],
    push: Mapping[str, Number],
    spec: Mapping[str, int],
) -> Plan:
    """One step: the shader "direct" or "grouped" over all outputs of all states. `longest` has one number for each
    list of an output."""
    if items == 0:
        return Plan(())
    numbers = call.tuning or STEP_TUNINGS[prefer_step(call.limits, call.dtype.name)]
    local = min(numbers["local"], call.limits.invocations)
    lanes = min(numbers["lanes"], 256 if max(longest) > 4 * RUN else RUN, call.limits.invocations)
    direct = numbers["direct"]
    if direct == 2:
        # A workgroup for each short list would mostly wait; so would an invocation alone with a long one.
        direct = int(max(longest) <= 8 or (max(longest) <= RUN and items >= MANY_ITEMS))
    if direct:
        return direct_dispatches(call, items, longest, local, buffers, push, spec)
    dispatches: list[Dispatch] = []
    trips = 1 + sum(group_sum_trips(n, lanes) for n in longest)
    for s in split_work(items, trips, call.limits):
        place = {"first_item": s.first, "items": s.beyond, "stride": s.groups}
        sizes = {"LANES": lanes, **spec}
        dispatches.append(Dispatch("grouped", buffers, {**push, **place}, (s.groups, 1, 1), s.trips, sizes))
    return Plan(tuple(dispatches))


def direct_dispatches(
    call: Call,
    items: int,
    longest: tuple[int, ...],
    local: int,
    buffers: tuple[str, ...],
    push: Mapping[str, Number],
    spec: Mapping[str, int],
) -> Plan:
    """One step with an invocation for each output."""
    dispatches: list[Dispatch] = []
    trips = 1 + sum(direct_trips(n) for n in longest)
    for s in split_work(-(-items // local), trips, call.limits):
        place = {"first_item": s.first * local, "items": min(items, s.beyond * local), "stride": s.groups * local}
        sizes = {"LOCAL": local, **spec}
        dispatches.append(Dispatch("direct", buffers, {**push, **place}, (s.groups, 1, 1), s.trips, sizes))
    return Plan(tuple(dispatches))


@dataclass(frozen=True)
class OnChip:
    """How one workgroup rolls a state out: its invocations, the lanes of an output, and the runs of its lists."""

    local: int
    each: int
    runs: int
    longest: int
    """The most runs of one list; `runs` is the most of all lists of an output together."""
    width: int

    @property
    def rounds(self) -> int:
        """Rounds in which all outputs are made."""
        return -(-self.width // (self.local // self.each))

    @property
    def shared(self) -> int:
        """Numbers in shared memory."""
        return 2 * self.width + self.local // self.each * self.runs

    @property
    def trips(self) -> int:
        """Loop iterations of a step."""
        return 2 + self.rounds * (1 + -(-self.runs // self.each) * (1 + RUN_TRIPS) + self.runs + 1)

    @property
    def spec(self) -> dict[str, int]:
        return {"LOCAL": self.local, "EACH": self.each, "RUNS": self.runs, "WIDTH": self.width}


def on_chip(width: int, entries: tuple[int, ...], lanes: int, limits: Limits) -> OnChip:
    """The workgroup for states of that many components, whose lists have so many entries at most; one number for each
    list of an output."""
    each_list = [-(-n // RUN) for n in entries]
    runs = max(1, sum(each_list))
    room = min(lanes, _floor_power(limits.invocations))
    each = min(next_power_of_two(runs), room)
    # No more lanes than there is work, but enough to share an output's runs.
    local = min(room, max(each, next_power_of_two(max(1, width)) * each))
    return OnChip(local, each, runs, max(each_list), max(1, width))


def too_large(kernel: str, chip: OnChip, element: int, limits: Limits) -> str:
    """Why a state cannot be rolled out in one workgroup; empty if it can."""
    if chip.longest > MOST_RUNS:
        return f"an output has more than {MOST_RUNS * RUN} entries, which is more than one workgroup can add in a step"
    if chip.shared * element > limits.shared_bytes:
        return (
            f"a state of {chip.width} numbers needs {chip.shared * element} bytes of shared memory in {kernel}, "
            f"and the device has {limits.shared_bytes}"
        )
    if chip.trips > limits.loop_trips:
        return f"a step needs {chip.trips} loop iterations in one workgroup, and the device allows {limits.loop_trips}"
    return ""


def rollout_dispatches(
    call: Call,
    kernel: str,
    chip: OnChip,
    buffers: tuple[str, ...],
    push: Mapping[str, Number],
    spec: Mapping[str, int],
) -> Plan:
    """Many steps of every state: the shader "main", whose first buffer is the state and whose last is the result.
    More steps than a dispatch may loop for are split; between dispatches the states lie in the result and in scratch,
    in turn."""
    problem = too_large(kernel, chip, call.dtype.size, call.limits)
    if problem:
        raise LimitError(f"kernel {kernel!r}: {problem}.", "take one step in a dispatch instead (strategy stepwise).")
    steps, states = int(call.scalars["steps"]), call.dims["m"]
    size = call.size(buffers[-1])
    if size == 0:
        return Plan(())
    most = max(1, (call.limits.loop_trips - 2 * -(-chip.width // chip.local)) // chip.trips)
    counts = [min(most, steps - done) for done in range(0, steps, most)] or [0]
    dispatches: list[Dispatch] = []
    source = buffers[0]
    for i, count in enumerate(counts):
        target = buffers[-1] if (len(counts) - i) % 2 else "between"
        trips = count * chip.trips + 2 * -(-chip.width // chip.local)
        for first in range(0, states, call.limits.groups):
            groups = min(call.limits.groups, states - first)
            numbers = {**push, "steps": count, "first_state": first}
            sizes = {**chip.spec, **spec}
            dispatches.append(Dispatch("main", (source, *buffers[1:-1], target), numbers, (groups, 1, 1), trips, sizes))
        source = target
    scratch = {"between": ("T", size)} if len(counts) > 1 else {}
    return Plan(tuple(dispatches), scratch)


def _floor_power(n: int) -> int:
    """The power of two that is n or the next below."""
    return 1 << n.bit_length() - 1
