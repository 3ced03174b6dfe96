"""Attention of few rows to many keys: each run of 64 keys is the work of a workgroup, and a second dispatch joins them.

The sums of a run are stored as they are, beside its maximum. The factors exp(m_r - M) and the tree over runs come with
the second dispatch: what is added, and in which order, is the same as where one workgroup sees all runs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from dashi.kernels._work import RUN, ceil_div, next_power_of_two, split_work
from dashi.kernels.abi import Binding, Call, Dispatch, Number, Scalar, Shader, Spec

NEVER, WHERE_IDLE, ALWAYS = range(3)
COLUMNS: Final = 32
"""Columns of a row that a workgroup of the second dispatch joins."""
_LOCAL: Final = 256
_BUSY: Final = 1056
"""Workgroups of few invocations that fill a large device, eight for each of its multiprocessors."""
_FEWEST_RUNS: Final = 4
_MOST_BYTES: Final = 1 << 26
"""What the stored runs may take."""
_NUMBERS: Final = ("runs", "heads", "sq", "first_block", "blocks", "stride", "r_batch", "r_head", "r_step")

JOIN_SHADER: Final = Shader(
    (Binding("peaks"), Binding("carried"), Binding("result", access="readwrite")),
    tuple(Scalar(name, "u32") for name in _NUMBERS),
    (Spec("LOCAL", _LOCAL), Spec("D", 64)),
    local=("LOCAL", 1, 1),
    file="join.comp",
    includes=("portable.glsl",),
    extensions=("GL_EXT_control_flow_attributes",),
)


def is_split(call: Call, heads: int, per_head: int, rows: int, runs: int) -> bool:
    """Whether runs are worked on apart: where so few rows that they are one block for each head of keys (`heads` in all
    batches, `per_head` blocks each) would leave a device idle, and the runs of all rows fit into memory; or where the
    tuning says so."""
    choice = call.tuning.get("split", WHERE_IDLE)
    size = rows * runs * (1 + call.shapes["q"][-1]) * call.dtype.size
    if runs < 2 or runs > RUN * RUN or size > min(_MOST_BYTES, call.limits.storage_range) or choice == NEVER:
        return False
    idle = per_head == 1 and heads < _BUSY and runs >= _FEWEST_RUNS
    return choice == ALWAYS or (idle and not call.limits.software)


def scratch(rows: int, runs: int, depth: int) -> dict[str, tuple[str, int]]:
    """Maxima and sums of so many runs for each row."""
    return {"peaks": ("T", rows * runs), "carried": ("T", rows * runs * (depth + 1))}


def join_dispatches(call: Call, depth: int, rows: int, runs: int, push: Mapping[str, Number]) -> Iterator[Dispatch]:
    """What puts the runs of each row together; `push` are the numbers of the first dispatch."""
    largest = min(_LOCAL, call.limits.invocations, call.limits.shared_bytes // (5 * call.dtype.size))
    local = next_power_of_two(largest // 2 + 1)
    lanes = local // COLUMNS
    groups = ceil_div(ceil_div(runs, RUN), lanes)
    trips = 1 + ceil_div(runs, local) + 8 + groups * (1 + ceil_div(lanes * RUN, local) + RUN + lanes)
    numbers: dict[str, Number] = {name: push[name] for name in ("sq", "r_batch", "r_head", "r_step")}
    numbers |= {"runs": runs, "heads": int(push["heads"]) * int(push["shared_by"])}
    for share in split_work(rows * ceil_div(depth, COLUMNS), trips, call.limits):
        place = {"first_block": share.first, "blocks": share.beyond, "stride": share.groups}
        spec = {"LOCAL": local, "D": depth}
        yield Dispatch(
            "join", ("peaks", "carried", "result"), {**numbers, **place}, (share.groups, 1, 1), share.trips, spec
        )
