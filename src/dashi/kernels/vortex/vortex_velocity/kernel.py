"""vortex_velocity: the velocity that n vortex atoms induce at t targets, by direct summation, and the growth of cores.

Rows of sources are (x, y, d^2, signed quanta, ...); of targets x and y count, and d^2 where cores are mixed. The result
has rows (u, v, growth, 0, ...): the rate of a state of atoms, whose d^2 grows by 4 nu in a unit of time where cores
spread, and whose other columns stay. `_induction` has the formulas.
"""

from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from dashi.errors import InputError, LimitError, ShapeError
from dashi.kernels._work import ceil_div, split_work
from dashi.kernels.abi import Binding, Call, Case, Dispatch, Fill, Kernel, Number, Operand, Plan, Scalar, Shader, Spec
from dashi.kernels.portable import canon
from dashi.kernels.vortex import _induction as induction
from dashi.types import Cost, HostArray, Shape

LOCAL: Final = 64
PLACE: Final = tuple(Scalar(name, "u32") for name in ("first_item", "items", "stride"))
SPEC: Final = (Spec("LOCAL", LOCAL), Spec("PERIODIC", 0), Spec("ALGEBRAIC", 0), Spec("MIXED", 0))
FLOPS: Final = 60
"""Operations of a pair in free space, about."""


def reference(targets: HostArray, sources: HostArray, terms: HostArray, **scalars: Number) -> HostArray:
    require(sources.shape, terms.size, scalars)
    setting = induction.InductionSetting(
        float(scalars["box"]), bool(scalars["algebraic"]), bool(scalars["mixed"]), float(scalars["quantum"])
    )
    rate = np.zeros(targets.shape, targets.dtype)
    rate[..., 0], rate[..., 1] = induction.velocity(targets, sources, terms, setting)
    rate[..., 2] = np.asarray(scalars["growth"], targets.dtype)
    return canon(rate)


def require(sources: Shape, count: int, scalars: Mapping[str, Number]) -> None:
    """What the shapes alone cannot say."""
    induction.require_terms(count)
    if sources[2] < 4:
        raise ShapeError(f"kernel 'vortex_velocity': rows of {sources[2]} numbers.", "use x, y, d^2, quanta at least.")
    if sources[1] > induction.TILE * induction.MOST_TILES:
        raise LimitError(
            f"kernel 'vortex_velocity': {sources[1]} sources are more than {induction.TILE * induction.MOST_TILES}.",
            "sum over a mesh instead.",
        )
    box = scalars["box"]
    if not 0 <= box < float("inf"):
        raise InputError(f"kernel 'vortex_velocity': `box` is {box}.", "use the side of the box, or 0 for free space.")
    if scalars["algebraic"] and box > 0:
        raise InputError(
            "the algebraic core has no sum over images here: its tail reaches across the box.",
            "use gaussian cores in the periodic box.",
        )


def plan(call: Call) -> Plan:
    m, t, n, w = (call.dims[name] for name in "mtnw")
    scalars, box = call.scalars, float(call.scalars["box"])
    require((m, n, w), call.dims["k"], scalars)
    if not m * t:
        return Plan(())
    tiles, longest = max(1, ceil_div(n, induction.TILE)), min(n, induction.TILE)
    series = 0 if scalars["algebraic"] else induction.CORE_TERMS[call.dtype.name] - 1  # turns of the loops of a pair
    series += induction.LATTICE_TERMS[call.dtype.name] - 1 if box > 0 else 0
    pairs = longest * (1 + series) + ceil_div(longest, 64)
    local = min(LOCAL, call.limits.invocations)
    spec = {"LOCAL": local, "PERIODIC": int(box > 0), "ALGEBRAIC": int(scalars["algebraic"] != 0)}
    spec["MIXED"] = int(scalars["mixed"] != 0)
    sums = {"n": n, "t": t, "w": w, "tiles": tiles, "box": box, "inverse_box": 1 / box if box > 0 else 0.0}
    parts: tuple[tuple[str, tuple[str, ...], int, int, dict[str, Number]], ...] = (
        ("prepare", ("sources", "terms", "packed"), m * n, 1, {"w": w, "quantum": scalars["quantum"]}),
        ("main", ("targets", "packed", "terms", "partial"), m * tiles * t, 1 + pairs, sums),
        ("join", ("partial", "rate"), m * t, tiles + w, {"t": t, "w": w, "tiles": tiles, "growth": scalars["growth"]}),
    )
    dispatches: list[Dispatch] = []
    for shader, buffers, items, trips, push in parts:
        for s in split_work(ceil_div(items, local), trips, call.limits):
            place = {"first_item": s.first * local, "items": min(items, s.beyond * local), "stride": s.groups * local}
            dispatches.append(Dispatch(shader, buffers, {**place, **push}, (s.groups, 1, 1), s.trips, spec))
    return Plan(tuple(dispatches), {"packed": ("T", max(1, 4 * m * n)), "partial": ("T", 2 * m * tiles * t)})


def cost(call: Call) -> Cost:
    m, t, n = (call.dims[name] for name in "mtn")
    lattice = 8 * induction.LATTICE_TERMS[call.dtype.name] if call.scalars["box"] else 0
    moved = call.bytes("targets", "sources", "terms", "rate")
    return Cost(m * t * n * (FLOPS + lattice), moved, len(plan(call).dispatches))


def case(m: int, t: int, n: int, scalars: dict[str, Any] | None = None, w: int = 4) -> Case:
    """Atoms of the harness, with the table of the kernel."""

    def table(rng: np.random.Generator, shape: Shape) -> HostArray:
        return induction.terms(np.float64)

    fill: dict[str, Fill] = {"terms": table}
    shapes: dict[str, Shape] = {"targets": (m, t, w), "sources": (m, n, w), "terms": (induction.TABLE,)}
    return Case(shapes, scalars or {}, fill)


KERNEL = Kernel(
    summary="velocity of vortex atoms by direct summation, in free space or a periodic box",
    inputs=(
        Operand("targets", shape=("m", "t", "w")), Operand("sources", shape=("m", "n", "w")),
        Operand("terms", shape=("k",)),
    ),
    outputs=(Operand("rate", shape=("m", "t", "w")),),
    scalars=(
        Scalar("box", default=0.0, doc="side of the periodic box; 0: free space"),
        Scalar("algebraic", "u32", 0, "1: algebraic cores, 0: Gaussian ones"),
        Scalar("mixed", "u32", 0, "1: the d^2 of a pair is the mean of both, 0: it is the source's"),
        Scalar("quantum", default=1.0, doc="circulation of one quantum"),
        Scalar("growth", default=0.0, doc="growth of d^2 in a unit of time, 4 nu"),
    ),
    shaders={
        "prepare": Shader(
            (Binding("sources"), Binding("terms"), Binding("packed", access="write")),
            (*PLACE, Scalar("w", "u32"), Scalar("quantum")), SPEC, ("LOCAL", 1, 1), "prepare.comp", ("portable.glsl",),
        ),
        "main": Shader(
            (Binding("targets"), Binding("packed"), Binding("terms"), Binding("partial", "P", "write")),
            (*PLACE, *(Scalar(name, "u32") for name in ("n", "t", "w", "tiles")), Scalar("box"), Scalar("inverse_box")),
            SPEC, ("LOCAL", 1, 1), includes=("portable.glsl",), extensions=("GL_EXT_control_flow_attributes",),
        ),
        "join": Shader(
            (Binding("partial", "P"), Binding("rate", access="write")),
            (*PLACE, *(Scalar(name, "u32") for name in ("t", "w", "tiles")), Scalar("growth")), SPEC, ("LOCAL", 1, 1),
            "join.comp", ("portable.glsl",),
        ),
    },
    plan=plan,
    reference=reference,
    cost=cost,
    cases=(
        case(1, 1, 1), case(2, 3, 0), case(0, 3, 2), case(1, 70, 65, {"growth": 0.5, "quantum": 1e-3}),
        case(1, 5, 9, {"algebraic": 1}), case(2, 9, 130, {"box": 2.0}, w=6), case(1, 33, 4100),
        case(1, 7, 3, {"mixed": 1}), case(1, 2, 9000, {"algebraic": 1, "mixed": 1}),
        case(1, 8, 8, {"box": 6.0, "mixed": 1}, w=5),
    ),
    bench=(case(1, 4096, 4096), case(1, 1024, 1024, {"box": 6.0})),
)  # fmt: skip
