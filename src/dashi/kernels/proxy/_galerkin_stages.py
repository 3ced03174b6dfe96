"""The kernels galerkin_stage* and the workgroup of galerkin_rollout.

A stage is the tendency N of modes, and t0 x0 + t1 x1 + ... + t_last N.
`tables` holds the rows t0, t1, ..., t_last, one number for each mode.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from dashi.errors import ShapeError
from dashi.kernels import _lists as lists
from dashi.kernels._work import ceil_div
from dashi.kernels.abi import Binding, Call, Case, Kernel, Limits, Operand, Plan, Scalar, Shader
from dashi.kernels.portable import canon
from dashi.kernels.proxy import _mode_triads as mode_triads
from dashi.kernels.proxy._mode_triads import TERMS
from dashi.types import Cost, HostArray


def stage(terms: int) -> Kernel:
    """The kernel of a stage of so many terms, the tendency the last of them."""
    xs = tuple(f"x{j}" for j in range(terms - 1))
    names = ("z", "weights", "words", "ends", "force", "tables", *xs, "tendency", "result")
    name = f"galerkin_stage{terms}"

    def reference(*arrays: HostArray, longest: int) -> tuple[HostArray, HostArray]:
        z, weights, words, ends, force, tables, *known = arrays
        modes = _require(name, terms, z.shape[1], tables.shape[0], ends.size, longest)
        with np.errstate(all="ignore"):
            form = mode_triads.ModeForm(weights, words, lists.lists_at(ends, weights.size, longest), modes)
            tendency = canon(form(canon(z)) + canon(force))
            return tendency, mode_triads.weighted([*(canon(x) for x in known), tendency], [*tables])

    def plan(call: Call) -> Plan:
        longest = int(call.scalars["longest"])
        _require(name, terms, call.dims["d"], call.dims["rows"], call.dims["lists"], longest)
        push = {"width": call.dims["d"], "entries": call.dims["entries"], "longest": longest}
        return lists.step_dispatches(call, call.size("z"), (longest,), names, push, {})

    def cost(call: Call) -> Cost:
        """Each list twice for each state: for the real and the imaginary part."""
        states, count = call.dims["m"], call.dims["entries"]
        moved = 2 * states * count * (call.dtype.size + 4) + 4 * call.dims["lists"]
        moved += call.bytes("z", "force", "tables", *xs, "tendency", "result")
        return Cost(10 * states * count + 2 * terms * call.size("z"), moved, len(plan(call).dispatches))

    words = {"words", "ends"}
    bindings = tuple(
        Binding(n, "u32" if n in words else "T", "write" if n in ("tendency", "result") else "read") for n in names
    )
    shaders = lists.step_shaders(bindings, tuple(Scalar(n, "u32") for n in ("width", "entries", "longest")))
    return Kernel(
        summary=f"the tendency of interacting modes, and a stage of {terms} terms of a time scheme",
        inputs=(
            Operand("z", shape=("m", "d")),
            Operand("weights", shape=("entries",)),
            Operand("words", "u32", ("entries",)),
            Operand("ends", "u32", ("lists",)),
            Operand("force", shape=("d",)),
            Operand("tables", shape=("rows", "modes")),
            *(Operand(x, shape=("m", "d")) for x in xs),
        ),
        outputs=(Operand("tendency", shape=("m", "d")), Operand("result", shape=("m", "d"))),
        scalars=(Scalar("longest", "u32", 4096, "no mode has more entries; at most 262144"),),
        shaders={key: _with_sum(shader, terms) for key, shader in shaders.items()},
        plan=plan,
        reference=reference,
        cost=cost,
        cases=(
            _case(terms, 1, 1, 1), _case(terms, 0, 5, 2), _case(terms, 2, 0, 1), _case(terms, 3, 65, 9),
            _case(terms, 2, 33, 50), _case(terms, 1, 10, 3, hot=4200), _case(terms, 1, 20, 6, short=2),
            _case(terms, 1, 20, 6, reach=23),
        ),
        bench=(_case(terms, 1, 686, 400), _case(terms, 1, 98, 53), _case(terms, 16, 98, 53)),
        tunings=lists.STEP_TUNINGS,
        prefer=lists.prefer_step,
    )  # fmt: skip


def _with_sum(shader: Shader, terms: int) -> Shader:
    """The sum of the terms known before, written out."""
    add = "".join(f"\n    sums += stage_term(x{j}[item], {j}u, at);" for j in range(1, terms - 1))
    text = (
        f"#define TERMS {terms}u\nT stage_term(T value, uint row, uint at);\n"
        f"T known_sum(uint item, uint at) {{\n    T sums = stage_term(x0[item], 0u, at);{add}\n    return sums;\n}}\n"
    )
    return replace(shader, prelude=f"{shader.prelude}{text}")


def _require(kernel: str, terms: int, width: int, rows: int, ends: int, longest: int) -> int:
    modes = mode_triads.require_pairs(kernel, width)
    lists.require_lists(kernel, "ends", modes, ends, longest)
    if rows != terms:
        raise ShapeError(
            f"kernel {kernel!r}: {terms} terms need {terms} rows of tables, {rows} given.", "pass a row for each term."
        )
    return modes


def _case(terms: int, m: int, modes: int, each: int, hot: int = 0, short: int = 0, reach: int = 0) -> Case:
    d = 2 * modes
    shapes = {"force": (d,), "tables": (terms, modes), **{f"x{j}": (m, d) for j in range(terms - 1)}}
    return mode_triads.case(m, modes, each, shapes, {}, hot=hot, short=short, reach=reach)


@dataclass(frozen=True)
class Staged(lists.OnChip):
    """The workgroup of a state: besides what a list needs, the state and the tendencies of all stages lie on chip."""

    stages: int = 1

    @property
    def shared(self) -> int:
        return (1 + self.stages) * self.width + super().shared

    @property
    def trips(self) -> int:
        each = 2 + self.rounds * (TERMS + 1)
        return self.stages * (super().trips + each) + 2 * ceil_div(self.width, self.local)


def staged(width: int, longest: int, stages: int, lanes: int, limits: Limits) -> Staged:
    """The workgroup for states of so many numbers."""
    chip = lists.on_chip(width, (longest,), lanes, limits)
    return Staged(chip.local, chip.each, chip.runs, chip.longest, chip.width, stages)
