"""galerkin_rollout: many steps of interacting modes in a time scheme of up to four stages, each state in one workgroup,
with the bits of galerkin_stage* one after another (dashi.kernels.proxy._mode_triads).

`tables` holds five rows for each stage: of the state, and of the tendencies of the stages up to this one. Bit
5 i + j of `used` says that stage i adds term j; others are left out, whatever their row. The lists lie side by side
(dashi.kernels._interleaved_lists), each with at most 4096 entries. What does not fit into shared memory is refused.
"""

from typing import Final

import numpy as np

from dashi.errors import InputError, ShapeError
from dashi.kernels import _interleaved_lists as interleaved_lists
from dashi.kernels import _lists as lists
from dashi.kernels.abi import Binding, Call, Case, Kernel, Number, Operand, Plan, Scalar, Shader, Spec
from dashi.kernels.portable import canon
from dashi.kernels.proxy import _mode_triads as mode_triads
from dashi.kernels.proxy._galerkin_stages import staged
from dashi.kernels.proxy._mode_triads import TERMS
from dashi.types import Cost, HostArray

NAME: Final = "galerkin_rollout"
MOST_STAGES: Final = TERMS - 1
BUFFERS: Final = ("z", "weights", "words", "heads", "force", "tables", "result")


def require(width: int, rows: int, heads: int, stages: int, used: int) -> int:
    """What the shapes alone cannot say."""
    modes = mode_triads.require_pairs(NAME, width)
    interleaved_lists.require_heads(NAME, modes, heads)
    if not 1 <= stages <= MOST_STAGES or rows != TERMS * stages:
        raise ShapeError(
            f"kernel {NAME!r}: {stages} stages have {TERMS * stages} rows of tables, {rows} given.",
            f"pass 1 to {MOST_STAGES} stages, and {TERMS} rows for each.",
        )
    for stage in range(stages):
        terms = used >> TERMS * stage & (1 << TERMS) - 1
        if not terms & 1 or terms >> stage + 2:
            raise InputError(
                f"kernel {NAME!r}: stage {stage} adds the terms {terms:05b}.",
                "let every stage add the state, and no tendency that is not known yet.",
            )
    return modes


def reference(*arrays: HostArray, steps: int, stages: int, used: int, longest: int) -> HostArray:
    z, weights, words, heads, force, tables = arrays
    modes = require(z.shape[1], tables.shape[0], heads.size, stages, used)
    lists = interleaved_lists.lists_in_slabs(heads, modes, weights.size, longest)
    state = canon(z)
    with np.errstate(all="ignore"):
        form, driven = mode_triads.ModeForm(weights, words, lists, modes), canon(force)
        for _ in range(steps):
            known, now = [state], state
            for stage in range(stages):
                known.append(canon(form(now) + driven))
                terms = [j for j in range(stage + 2) if used >> TERMS * stage + j & 1]
                now = mode_triads.weighted([known[j] for j in terms], [tables[TERMS * stage + j] for j in terms])
            state = now
    return state


def plan(call: Call) -> Plan:
    width, longest = call.dims["d"], int(call.scalars["longest"])
    stages, used = int(call.scalars["stages"]), int(call.scalars["used"])
    require(width, call.dims["rows"], call.dims["heads"], stages, used)
    numbers = call.tuning or lists.ROLLOUT_TUNINGS[lists.prefer_rollout(call.limits, call.dtype.name)]
    chip = staged(width, longest, stages, numbers["lanes"], call.limits)
    push = {"width": width, "entries": call.dims["entries"], "longest": longest, "used": used}
    return lists.rollout_dispatches(call, NAME, chip, BUFFERS, push, {"STAGES": stages})


def cost(call: Call) -> Cost:
    """Lists once for each state and stage; states once."""
    states, count = call.dims["m"], call.dims["entries"]
    work = int(call.scalars["steps"]) * int(call.scalars["stages"])
    moved = count * (call.dtype.size + 4) + 4 * call.dims["heads"] + call.bytes("force", "tables")
    flops = work * (10 * states * count + 2 * TERMS * call.size("z"))
    return Cost(flops, work * states * moved + call.bytes("z", "result"), len(plan(call).dispatches))


def case(m: int, modes: int, each: int, stages: int, steps: int, *, sparse: bool = False, **more: int) -> Case:
    """A scheme whose stages add all terms, or, sparse, the state and their own tendency alone."""
    terms = [1 | 1 << stage + 1 if sparse else (1 << stage + 2) - 1 for stage in range(stages)]
    used = sum(bits << TERMS * stage for stage, bits in enumerate(terms))
    scalars: dict[str, Number] = {"steps": steps, "stages": stages, "used": used}
    shapes = {"force": (2 * modes,), "tables": (TERMS * stages, modes)}
    return mode_triads.case(m, modes, each, shapes, scalars, slabs=True, **more)


KERNEL = Kernel(
    summary="many steps of interacting modes in a time scheme, each state in one workgroup",
    inputs=(
        Operand("z", shape=("m", "d")),
        Operand("weights", shape=("entries",)),
        Operand("words", "u32", ("entries",)),
        Operand("heads", "u32", ("heads",)),
        Operand("force", shape=("d",)),
        Operand("tables", shape=("rows", "modes")),
    ),
    outputs=(Operand("result", shape=("m", "d")),),
    scalars=(
        Scalar("steps", "u32", doc="steps to take"),
        Scalar("stages", "u32", doc="of the time scheme, 1 to 4"),
        Scalar("used", "u32", doc="bit 5 i + j: stage i adds term j"),
        Scalar("longest", "u32", 4096, "no mode has more entries; at most 4096"),
    ),
    shaders={
        "main": Shader(
            tuple(
                Binding(n, "u32" if n in ("words", "heads") else "T", "write" if n == "result" else "read")
                for n in BUFFERS
            ),
            tuple(Scalar(n, "u32") for n in ("steps", "first_state", "width", "entries", "longest", "used")),
            (*lists.ROLLOUT_SPEC, Spec("STAGES", 1)),
            local=("LOCAL", 1, 1),
            includes=lists.INCLUDES,
            shared_bytes=49152,
        )
    },
    plan=plan,
    reference=reference,
    cost=cost,
    cases=(
        case(1, 1, 1, 1, 3), case(0, 5, 2, 2, 2), case(2, 9, 1, 2, 0), case(3, 65, 9, 4, 2), case(1, 65, 0, 3, 2),
        case(2, 33, 50, 2, 3, sparse=True), case(1, 20, 6, 2, 2, reach=23), case(1, 20, 6, 2, 2, short=2),
        case(1, 10, 3, 1, 2, hot=900), case(1, 98, 53, 4, 2),
    ),
    bench=(case(1, 98, 53, 4, 100), case(16, 98, 53, 4, 100), case(1, 220, 124, 4, 100)),
    tunings=lists.ROLLOUT_TUNINGS,
    prefer=lists.prefer_rollout,
)  # fmt: skip
