"""Vector times matrix, in the canonical order: the passes of `_include/columns.glsl`.

A pass sums one, two or three levels of tree64 (runs of 64 rows, tiles of 64 runs, 64 tiles): as many as leave enough
workgroups to fill a device. Small matrices take one pass of `_include/columns_held.glsl`, whose invocations ask for all
they need at once. The bits do not depend on the choice.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final

from dashi.kernels._work import RUN, ceil_div, next_power_of_two, split_work
from dashi.kernels.abi import Binding, Call, Dispatch, Limits, Plan, Scalar, Shader, Spec
from dashi.types import Cost

VECTOR_BYTES: Final = 16
NUMBERS: Final = (
    "pitch", "rows", "made", "across", "per_batch", "first_block", "blocks", "stride", "depth", "first", "last",
)  # fmt: skip
WIDEST: Final = 32
FEW_ROWS: Final = 1024
"""Up to so many rows a second pass costs more than it saves."""

_LARGE: Final = {"lanes": 8, "depth": 32, "fill": 256, "batch": 16}

TUNINGS: Final[dict[str, dict[str, int]]] = {
    "held": {**_LARGE, "held": 16, "held_vectors": 8},
    "narrow": {**_LARGE, "held": 0, "held_vectors": 0},
    "narrow_8": {**_LARGE, "batch": 8, "held": 0, "held_vectors": 0},
    "direct": {"lanes": 16, "depth": 1, "fill": 8, "batch": 8, "held": 0, "held_vectors": 0},
}
"""Vectors of a row and runs that a workgroup reads side by side, how many workgroups fill a device, and how many rows
an invocation loads at once. With depth 1 there is no shared memory. For small matrices, unless 0: the columns, or the
vectors of a row, that a workgroup makes."""
HELD_ROWS: Final = {"f32": 64, "f64": 32}
"""Rows of a column that an invocation asks for at once: as many as there are registers for."""
HELD_VECTOR_ROWS: Final = 16
HELD_BYTES: Final = 1 << 24
"""Matrices up to this size are a matter of latency; read in vectors, which takes more rounds, up to the next one."""
HELD_VECTOR_BYTES: Final = 1 << 27
HELD_DEPTH: Final = 16
"""Runs from which on a workgroup has enough invocations for the rounds that vectors take."""
HELD_INVOCATIONS: Final = 512
"""With more there are too few registers for what an invocation holds."""
LEAST_LANES: Final = 4


def prefer(limits: Limits, variant: str) -> str:
    """Processors have few cores, and wait at barriers for long."""
    return "direct" if limits.software else "held"


def row_shaders() -> dict[str, Shader]:
    """All shaders, for a product of one row, in the folder of another kernel: their names and files begin with row."""
    return {
        f"row_{name}": replace(each, file=f"row_{each.file}") for name, each in (shaders() | held_shaders()).items()
    }


def row_plan(call: Call) -> Plan:
    """The plan of a product whose `a` has one row, on `a`, `b` and `result`: that of a vector times a matrix."""
    names = {"x": "a", "A": "b"}
    shapes = {"A": call.shapes["b"], "result": call.shapes["result"]}
    tuning = TUNINGS[prefer(call.limits, call.dtype.name)]
    plan_of_vector = plan(replace(call, shapes=shapes, tuning=tuning))
    dispatches = tuple(
        replace(each, shader=f"row_{each.shader}", buffers=tuple(names.get(name, name) for name in each.buffers))
        for each in plan_of_vector.dispatches
    )
    return Plan(dispatches, plan_of_vector.scratch)


def held_shaders() -> dict[str, Shader]:
    """Shaders for small matrices: column by column, and by vectors."""
    rows = f"(T_IS_F64 != 0 ? {HELD_ROWS['f64']}u : {HELD_ROWS['f32']}u)"
    return {"held": _held_shader("T", rows), "held_vectors": _held_shader("V", f"{HELD_VECTOR_ROWS}u")}


def _held_shader(element: str, rows: str) -> Shader:
    return Shader(
        (Binding("x"), Binding("A", element), Binding("result", element, access="write")),
        (Scalar("pitch", "u32"), Scalar("rows", "u32")),
        (Spec("LANES", 8), Spec("DEPTH", 4)),
        local=("LANES", "DEPTH", 1),
        file="held.comp",
        includes=("portable.glsl",),
        extensions=("GL_EXT_control_flow_attributes",),
        prelude=f"#define BATCH {rows}\n",
    )


def shaders() -> dict[str, Shader]:
    """Shaders for rows of whole vectors of 16 bytes and for any row; with and without shared memory."""
    return {
        "wide": _shader("V", "kernel.comp"),
        "any": _shader("T", "kernel.comp"),
        "wide_direct": _shader("V", "direct.comp"),
        "any_direct": _shader("T", "direct.comp"),
    }


def _shader(element: str, file: str) -> Shader:
    return Shader(
        (Binding("x"), Binding("A", element), Binding("result", element, access="write")),
        tuple(Scalar(name, "u32") for name in NUMBERS),
        (Spec("LANES", 8), Spec("DEPTH", 16), Spec("HELD", RUN), Spec("BATCH", 8)),
        local=("LANES", "DEPTH", 1),
        file=file,
        includes=("portable.glsl",),
        extensions=("GL_EXT_control_flow_attributes",),
    )


@dataclass(frozen=True)
class ColumnCut:
    """How a call is cut: vectors per row, the workgroup's width and depth, the runs that it holds at a time."""

    shader: str
    pitch: int
    lanes: int
    depth: int
    held: int
    fill: int
    batch: int

    @property
    def across(self) -> int:
        return ceil_div(self.pitch, self.lanes)


@dataclass(frozen=True)
class ColumnPass:
    """One dispatch: `rows` rows to `rows_after` rows, by `levels` levels of the tree."""

    rows: int
    rows_after: int
    levels: int
    blocks: int


def _held(call: Call) -> Dispatch | None:
    """The one dispatch for a small matrix; None where it is not small, or does not fit."""
    k, n, numbers, limits = call.dims["k"], call.dims["n"], call.tuning, call.limits
    if not numbers.get("held") or not 0 < k <= RUN * RUN or "b" in call.dims:
        return None
    per_vector, depth, size = VECTOR_BYTES // call.dtype.size, ceil_div(k, RUN), call.bytes("A")
    wide = n % per_vector == 0 and (depth > HELD_DEPTH or size > HELD_BYTES)
    if size > (HELD_VECTOR_BYTES if wide else HELD_BYTES):
        return None
    rows = HELD_VECTOR_ROWS if wide else HELD_ROWS[call.dtype.name]
    pitch = n // per_vector if wide else n

    def fits(lanes: int) -> bool:
        """Shared memory holds x with a vector more in each run, the sums of runs, and a word for each."""
        each = RUN * call.dtype.size + VECTOR_BYTES + 4 + lanes * (VECTOR_BYTES if wide else call.dtype.size)
        return lanes * depth <= min(limits.invocations, HELD_INVOCATIONS) and depth * each <= limits.shared_bytes

    # A subgroup at least.
    lanes = min(RUN, max(numbers["held_vectors" if wide else "held"], next_power_of_two(WIDEST // depth)))
    while lanes > LEAST_LANES and not fits(lanes):
        lanes //= 2
    groups = ceil_div(pitch, lanes)
    if not fits(lanes) or groups > limits.groups:
        return None
    trips = RUN // rows * (1 + 5 * rows) + 2 * (RUN // lanes) + depth
    spec, name = {"LANES": lanes, "DEPTH": depth}, "held_vectors" if wide else "held"
    return Dispatch(name, ("x", "A", "result"), {"pitch": pitch, "rows": k}, (groups, 1, 1), trips, spec)


def _cut(call: Call) -> ColumnCut:
    """The tuning's shape, fitted to the matrix: what few columns leave over goes to depth, and the other way round."""
    numbers = call.tuning or TUNINGS[prefer(call.limits, call.dtype.name)]
    per_vector = VECTOR_BYTES // call.dtype.size
    wide = call.dims["n"] % per_vector == 0
    pitch = call.dims["n"] // per_vector if wide else call.dims["n"]
    runs = min(RUN, next_power_of_two(ceil_div(call.dims["k"], RUN)))
    room = min(numbers["lanes"] * numbers["depth"], call.limits.invocations)
    lanes = min(next_power_of_two(pitch), numbers["lanes"] * (1 if wide else per_vector))
    # Sixteen doubles at once take too many registers.
    batch = numbers["batch"] if call.dtype.size == 4 else min(8, numbers["batch"])
    if numbers["depth"] == 1:
        return ColumnCut("wide_direct" if wide else "any_direct", pitch, lanes, 1, runs, numbers["fill"], batch)
    depth = min(runs, room // lanes)
    lanes = max(lanes, min(next_power_of_two(pitch), WIDEST, room // depth))
    while lanes > 1 and runs * lanes * VECTOR_BYTES > call.limits.shared_bytes:
        lanes //= 2
    return ColumnCut("wide" if wide else "any", pitch, lanes, depth, runs, numbers["fill"], batch)


def passes(rows: int, batches: int, cut: ColumnCut, limits: Limits) -> tuple[ColumnPass, ...]:
    """The passes that bring a matrix down to one row."""
    steps: list[ColumnPass] = []
    while not steps or rows > 1:
        rows_after = [max(1, -(-rows // RUN**levels)) for levels in (1, 2, 3)]
        blocks = [ceil_div(rows_after[0], cut.depth), rows_after[1], rows_after[2]]
        fits = [n for n in (2, 3) if _trips(rows, n, cut) <= limits.loop_trips]
        full = [n for n in fits if blocks[n - 1] * cut.across * batches >= cut.fill]
        levels = max(full, default=2 if rows <= FEW_ROWS and 2 in fits else 1)
        # No more levels than the tree has.
        levels = next(n for n in (1, 2, 3) if n == levels or rows_after[n - 1] == rows_after[levels - 1])
        steps.append(ColumnPass(rows, rows_after[levels - 1], levels, cut.across * blocks[levels - 1] * batches))
        rows = rows_after[levels - 1]
    return tuple(steps)


def _trips(rows: int, levels: int, cut: ColumnCut) -> int:
    """Loop iterations of an invocation for one block."""
    per_run = RUN // cut.batch + 2 * RUN
    per_tile = 1 + ceil_div(cut.held, cut.depth) * (1 + per_run) + cut.held
    tiles = min(RUN, -(-rows // RUN**2)) if levels == 3 else 1
    return 1 + (per_run if levels == 1 else tiles * per_tile)


def plan(call: Call) -> Plan:
    """Dispatches for x and A with any number of batches, `b` of the call's dimensions."""
    n, batches = call.dims["n"], call.dims.get("b", 1)
    if n * batches == 0:
        return Plan(())
    held = _held(call)
    if held is not None:
        return Plan((held,))
    cut = _cut(call)
    steps = passes(call.dims["k"], batches, cut, call.limits)
    end = len(steps) - 1
    dispatches: list[Dispatch] = []
    for i, p in enumerate(steps):
        buffers = ("x", "A" if i == 0 else f"sums{i - 1}", "result" if i == end else f"sums{i}")
        dispatches += _dispatches(p, cut, batches, buffers, call.limits)
    scratch = {f"sums{i}": ("T", p.rows_after * n * batches) for i, p in enumerate(steps) if i < end}
    return Plan(tuple(dispatches), scratch)


def _dispatches(
    p: ColumnPass, cut: ColumnCut, batches: int, buffers: tuple[str, str, str], limits: Limits
) -> Iterator[Dispatch]:
    numbers = {"pitch": cut.pitch, "rows": p.rows, "made": p.rows_after, "across": cut.across, "depth": p.levels}
    flags = {"first": int(buffers[1] == "A"), "last": int(buffers[2] == "result")}
    spec: Mapping[str, int] = {"LANES": cut.lanes, "DEPTH": cut.depth, "HELD": cut.held, "BATCH": cut.batch}
    for share in split_work(p.blocks, _trips(p.rows, p.levels, cut), limits):
        place = {"first_block": share.first, "blocks": share.beyond, "stride": share.groups}
        push = {**numbers, **place, **flags, "per_batch": p.blocks // batches}
        yield Dispatch(cut.shader, buffers, push, (share.groups, 1, 1), share.trips, spec)


def cost(call: Call) -> Cost:
    """The matrix and the vector once, the result once: what a second pass moves on top is part of the way there."""
    k, n, batches = call.dims["k"], call.dims["n"], call.dims.get("b", 1)
    moved = batches * (k * n + k + n) * call.dtype.size
    return Cost(2 * k * n * batches, moved, len(plan(call).dispatches)) if n * batches else Cost()
