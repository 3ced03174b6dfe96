"""The interface of kernels over rows: their shaders, and how arrays are folded into rows and planned.

Arrays of any rank are folded: the axes that are reduced, in their order, become the elements of a row, the others the
rows. Two shaders serve every kernel (`_include/rows_staged.glsl`, `rows_runs.glsl`), and two more where the result is
an index; they differ in who reads what, never in a bit. Lengths of inner axes and strides are specialisation constants;
the number of rows is none, so that batches of several rows share one pipeline.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from dashi.errors import LimitError, ShapeError
from dashi.kernels._calls import reduced_axes
from dashi.kernels._fused_abi import collapse, dense, stretched
from dashi.kernels._work import RUN, ceil_div, next_power_of_two, split_work
from dashi.kernels.abi import Binding, Call, Dispatch, Limits, Number, Plan, Scalar, Shader, Spec, View
from dashi.types import Shape

INPUTS: Final = 8
OUTPUTS: Final = 4
SCALARS: Final = 8
ROW_AXES: Final = 5
ELEMENT_AXES: Final = 3
"""Most axes of rows, and of the elements of a row, after neighbours that all operands walk through alike became one."""
STAGED: Final = "staged"
RUNS: Final = "runs"
PLACES: Final = "_places"
"""What the names of the shaders whose result is an index end with."""
LONGEST: Final = RUN**5
TUNINGS: Final = {
    "teams": {"teams": 1, "lanes": 256, "bytes": 8192},
    "runs": {"teams": 0, "lanes": 64, "bytes": 8192},
}
"""Whether a team of invocations works on each row; most invocations of a workgroup, and bytes of shared memory for
elements on their way."""
_EACH: Final = 16
"""Values that an invocation holds: longer rows are read again for every reduction."""
_SHORT: Final = 16
"""Elements up to which a row is left to one invocation."""
_BUSY: Final = 1 << 16
"""Invocations that fill a device."""
_WORD: Final = 1 << 32


def prefer(limits: Limits, variant: str) -> str:
    """Caches do the work of shared memory on a processor."""
    return "runs" if limits.software else "teams"


def shaders(inputs: int, outputs: int, places: bool, file: str = "rows.comp") -> dict[str, Shader]:
    """The shaders for so many inputs and outputs: by teams, and by runs."""
    suffix = PLACES if places else ""
    return {name + suffix: _shader(name, inputs, outputs, places, file) for name in (STAGED, RUNS)}


def _shader(name: str, inputs: int, outputs: int, places: bool, file: str) -> Shader:
    read = tuple(Binding(f"in{k}") for k in range(inputs))
    written = tuple(Binding(f"out{k}", "u32" if places else "T", "write") for k in range(outputs))
    defines = [f"#define INPUTS {inputs}", f"#define OUTPUTS {outputs}"]
    defines += ["#define STAGED"] * (name == STAGED) + ["#define PLACES"] * places
    words = ("n", "rows", "first_block", "beyond", "stride")
    numbers = (Scalar("count"), *(Scalar(f"number{k}") for k in range(SCALARS)))
    return Shader(
        (*read, *written),
        (*(Scalar(word, "u32") for word in words), *numbers),
        tuple(_spec(inputs)),
        local=("LANES", 1, 1),
        file=file,
        includes=("portable.glsl",),
        extensions=("GL_EXT_control_flow_attributes",),
        prelude="\n".join(defines) + "\n",
    )


def _spec(inputs: int) -> Iterator[Spec]:
    yield from (Spec(name, RUN) for name in ("LANES", "TEAM", "SPAN", "COLUMNS"))
    yield from (Spec(name, 1) for name in ("EACH", "SLOTS", "STAGES"))
    yield from (Spec(name, 0) for name in ("KEEP", "MAPS"))
    yield from (Spec(f"ROWS{axis}", 1) for axis in range(1, ROW_AXES))
    yield from (Spec(f"AXIS{axis}", 1) for axis in range(1, ELEMENT_AXES))
    yield from (Spec(f"RESULT{axis}", 0) for axis in range(ROW_AXES + ELEMENT_AXES))
    for k in range(inputs):
        yield Spec(f"OFFSET{k}", 0)
        yield from (Spec(f"STRIDE{k}_{axis}", 0) for axis in range(ROW_AXES + ELEMENT_AXES))


@dataclass(frozen=True)
class Folding:
    """Arrays as `rows` rows of `n` elements: the specialisation constants that walk through them, and whether the
    elements of a row are neighbours in memory, rather than the rows."""

    rows: int
    n: int
    spec: Mapping[str, int]
    near: bool


def fold(shape: Shape, axes: Sequence[int], views: Sequence[View], maps: bool) -> Folding:
    """How operands, stretched to the shape, are walked through row by row; results have that shape if `maps`, else
    that of the rows."""
    gone = reduced_axes(shape, axes)
    stay = tuple(axis for axis in range(len(shape)) if axis not in gone)
    listed = [stretched(view, shape) for view in views]
    result = dense(shape).strides if maps else _row_strides(shape, stay)
    steps = [*(view.strides for view in listed), result]
    sizes, columns = _walk(shape, stay, steps, ROW_AXES)
    lengths, places = _walk(shape, gone, steps, ELEMENT_AXES)
    spec = {f"ROWS{axis}": sizes[axis] for axis in range(1, ROW_AXES)}
    spec |= {f"AXIS{axis}": lengths[axis] for axis in range(1, ELEMENT_AXES)}
    names = [*(f"STRIDE{k}_" for k in range(len(listed))), "RESULT"]
    for name, row, element in zip(names, columns, places, strict=True):
        spec |= {f"{name}{axis}": step % _WORD for axis, step in enumerate((*row, *element))}
    spec |= {f"OFFSET{k}": view.offset for k, view in enumerate(listed)}
    # What is the same for all rows, or for all elements of a row, lies in caches.
    moved = [(row, element) for row, element in zip(columns, places, strict=True) if any(row) and any(element)]
    along = sum(abs(_last(element, lengths)) == 1 for _, element in moved)
    across = sum(abs(_last(row, sizes)) == 1 for row, _ in moved)
    return Folding(math.prod(sizes), math.prod(lengths), spec, along >= across)


def _last(steps: Sequence[int], lengths: Sequence[int]) -> int:
    """The stride of the fastest axis that is longer than 1."""
    return next((s for s, n in zip(reversed(steps), reversed(lengths), strict=True) if n > 1), 0)


def _row_strides(shape: Shape, stay: Sequence[int]) -> tuple[int, ...]:
    steps = dict(zip(stay, dense(tuple(shape[axis] for axis in stay)).strides, strict=True))
    return tuple(steps.get(axis, 0) for axis in range(len(shape)))


def _walk(
    shape: Shape, axes: Sequence[int], steps: Sequence[Sequence[int]], most: int
) -> tuple[tuple[int, ...], list[tuple[int, ...]]]:
    """These axes as `most`, with each operand's strides. The outermost stands first, and is never divided by."""
    sizes, columns = collapse(tuple(shape[a] for a in axes), [[step[a] for a in axes] for step in steps])
    if len(sizes) > most:
        raise ShapeError(
            f"the operands of a kernel over rows of shape {shape} have {len(sizes)} axes that do not lie behind one "
            f"another in memory, where {most} can be walked.",
            "make one of the operands dense by a copy, or join axes.",
        )
    fill = most - len(sizes)
    if not sizes:
        return (1,) * most, [(0,) * most] * len(steps)
    padded = [(column[0], *(0,) * fill, *column[1:]) for column in columns]
    return (sizes[0], *(1,) * fill, *sizes[1:]), padded


def plan(
    call: Call, folding: Folding, buffers: tuple[str, ...], scalars: Sequence[Number], stages: int, maps: bool,
    places: bool = False,
) -> Plan:  # fmt: skip
    """The dispatches over all rows: one, unless there are more rows than the limits allow."""
    rows, n = folding.rows, folding.n
    if rows == 0 or (maps and n == 0):
        return Plan(())
    if n > LONGEST:
        raise LimitError(f"rows of {n} elements are longer than {LONGEST}.", "reduce in two steps.")
    constants = {"STAGES": stages, "MAPS": int(maps), **folding.spec}
    work = _runs(call, folding, stages, maps)
    # Rows that one invocation cannot work through in the loops that a device allows are left to teams, too.
    if (call.tuning["teams"] and folding.near and n > _SHORT) or work.trips > call.limits.loop_trips:
        work = _teams(call, n, stages, maps, places)
    padded = (*scalars, *(0 for _ in range(SCALARS - len(scalars))))
    numbers = {"n": n, "rows": rows, "count": n, **{f"number{k}": value for k, value in enumerate(padded)}}
    return Plan(
        tuple(
            Dispatch(
                work.shader + (PLACES if places else ""),
                buffers,
                {**numbers, "first_block": share.first, "beyond": share.beyond, "stride": share.groups},
                (share.groups, 1, 1),
                share.trips,
                {**constants, **work.spec},
            )
            for share in split_work(ceil_div(rows, work.rows), work.trips, call.limits)
        )
    )


@dataclass(frozen=True)
class _RowPlan:
    """The shader of a dispatch, how many rows a workgroup takes at a time, its trips for them, and its constants."""

    shader: str
    rows: int
    trips: int
    spec: Mapping[str, int]


def _teams(call: Call, n: int, stages: int, maps: bool, places: bool) -> _RowPlan:
    most = min(call.tuning["lanes"], _power_within(call.limits.invocations))
    team = min(most, max(16, next_power_of_two(ceil_div(n, 4))))
    lanes = max(team, min(most, 128))
    each = ceil_div(n, team)
    keep = each <= _EACH and not places
    room = min(call.tuning["bytes"], call.limits.shared_bytes // 2) // (call.dtype.size * (lanes // team))
    span = min(next_power_of_two(max(n, RUN)), max(RUN, team, _power_within(room)), RUN * RUN)
    chunks = ceil_div(n, span)
    passes = chunks * 8 * stages if keep else stages * chunks * 9 + maps * each
    spec = {"LANES": lanes, "TEAM": team, "SPAN": span, "EACH": each if keep else 1, "KEEP": int(keep)}
    return _RowPlan(STAGED, lanes // team, 1 + passes, spec)


def _power_within(most: int) -> int:
    """The largest power of two up to a number."""
    return 1 << max(0, most.bit_length() - 1)


def _runs(call: Call, folding: Folding, stages: int, maps: bool) -> _RowPlan:
    runs = ceil_div(folding.n, RUN)
    lanes = min(call.tuning["lanes"], _power_within(call.limits.invocations))
    busy = lanes if call.limits.software else _BUSY
    most = min(RUN, lanes if call.limits.software else max(1, lanes // 16))
    slots = 1
    while slots < min(most, runs) and slots * folding.rows < busy:
        slots *= 2
    while slots < min(RUN, lanes, runs) and _run_trips(folding.n, slots, stages, maps) > call.limits.loop_trips:
        slots *= 2
    spec = {"LANES": lanes, "COLUMNS": lanes // slots, "SLOTS": slots}
    return _RowPlan(RUNS, lanes // slots, _run_trips(folding.n, slots, stages, maps), spec)


def _run_trips(n: int, slots: int, stages: int, maps: bool) -> int:
    """Loop iterations of an invocation for its row: those of its runs, one for each, and what it joins of others."""
    rounds = ceil_div(n, RUN * slots)
    own = min(n, rounds * RUN)
    return 1 + stages * (rounds * (1 + (slots if slots > 1 else 0)) + own) + maps * (rounds + own)


def bindings(inputs: int, outputs: int) -> dict[int, int]:
    """Where the template's buffers go in a kernel of so many."""
    return {k: k for k in range(inputs)} | {INPUTS + k: inputs + k for k in range(outputs)}
