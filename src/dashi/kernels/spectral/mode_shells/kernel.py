"""mode_shells: result[m, s] = sum of weights[e] Re(conj(x) y) over the modes places[e] of shell s, in the order tree64.

The entries of shell s are e = offsets[s] to offsets[s + 1]. With y = x these are weighted sums of squares (spectra of
energy and enstrophy), with a tendency for y they are transfers. A shell longer than `longest`, one that leaves the
lists, and a place past the end give NaN: a part is never taken for the whole.
"""

from typing import Final

import numpy as np

from dashi.errors import LimitError, ShapeError
from dashi.kernels._segments import segment_sums
from dashi.kernels._work import RUN, group_sum_trips, groups_for
from dashi.kernels.abi import Binding, Call, Case, Dispatch, Kernel, Operand, Plan, Scalar, Shader, Spec
from dashi.kernels.portable import canon, mul
from dashi.kernels.spectral._modes import MODES, parts
from dashi.types import Cost, HostArray, Shape

LANES: Final = 256
"""Invocations that sum a long shell; a processor, where they take turns, has one for each of a run."""
LONGEST: Final = RUN**3


def require_fit(shells: int, ends: int, longest: int) -> None:
    if ends != shells + 1:
        raise ShapeError(
            f"kernel 'mode_shells': {shells} shells need {shells + 1} offsets, {ends} given.",
            "pass shells=len(offsets) - 1.",
        )
    if longest > LONGEST:
        raise LimitError(
            f"kernel 'mode_shells': shells of {longest} modes are longer than {LONGEST}.", "divide the shells."
        )


def reference(
    x: HostArray, y: HostArray, weights: HostArray, places: HostArray, offsets: HostArray, shells: int, longest: int
) -> HostArray:
    require_fit(shells, offsets.size, longest)
    members = len(x)
    ends = offsets.astype(np.int64)
    starts, lengths = ends[:-1], np.diff(ends)
    whole = (lengths >= 0) & (ends[1:] <= weights.size) & (lengths <= longest)
    starts, lengths = np.where(whole, starts, 0), np.where(whole, lengths, 0)
    (a, b), (c, d) = parts(x), parts(y)
    dots = (mul(a, c) + mul(b, d)).reshape(members, -1)
    nan = x.dtype.type(np.nan)
    at = np.minimum(places.astype(np.int64), dots.shape[1])
    sums = np.empty((members, shells), x.dtype)
    for member in range(members):
        factors = np.append(dots[member], nan)[at]
        products = np.where(at < dots.shape[1], mul(canon(weights), factors), nan)
        sums[member] = np.where(whole, segment_sums(products, starts, lengths), nan)
    return canon(sums)


def plan(call: Call) -> Plan:
    shells, longest = int(call.scalars["shells"]), int(call.scalars["longest"])
    require_fit(shells, call.dims["ends"], longest)
    total = call.dims["members"] * shells
    if total == 0:
        return Plan(())
    groups, rounds = groups_for(total, 1, call.limits)
    push = {
        "total": total, "stride": groups, "shells": shells, "longest": longest, "entries": call.dims["entries"],
        "plane": call.dims["n"] * call.dims["modes"],
    }  # fmt: skip
    lanes = min(LANES, call.limits.invocations) if longest > RUN and not call.limits.software else RUN
    trips = rounds * (1 + group_sum_trips(longest, lanes))
    names = ("x", "y", "weights", "places", "offsets", "result")
    return Plan((Dispatch("main", names, push, (groups, 1, 1), trips, {"LANES": lanes}),))


def cost(call: Call) -> Cost:
    entries = call.dims["members"] * call.dims["entries"]
    moved = entries * 4 * call.dtype.size + call.bytes("weights", "result") + 4 * call.size("places")
    return Cost(6 * entries, moved, int(entries > 0))


def case(shape: Shape, shells: int, entries: int, *, broken: bool = False) -> Case:
    plane = shape[1] * shape[2]

    def ends(rng: np.random.Generator, size: Shape) -> HostArray:
        inner = np.sort(rng.integers(0, entries + 1, shells - 1)) if shells else np.zeros(0, np.int64)
        made = np.concatenate([[0], inner, [entries + int(broken)]][: 3 if shells else 1])
        return made.astype(np.uint32)

    def chosen(rng: np.random.Generator, size: Shape) -> HostArray:
        return rng.integers(0, plane + 2 * int(broken), size).astype(np.uint32)

    shapes = {"x": shape, "y": shape, "weights": (entries,), "places": (entries,), "offsets": (shells + 1,)}
    return Case(shapes, {"shells": shells, "longest": entries}, {"places": chosen, "offsets": ends})


KERNEL = Kernel(
    summary="sums of Re(conj(x) y) over shells of modes",
    inputs=(
        Operand("x", shape=MODES),
        Operand("y", shape=MODES),
        Operand("weights", shape=("entries",)),
        Operand("places", "u32", ("entries",)),
        Operand("offsets", "u32", ("ends",)),
    ),
    outputs=(Operand("result", shape=("members", "shells")),),
    shaders={
        "main": Shader(
            (
                Binding("x", "P"),
                Binding("y", "P"),
                Binding("weights"),
                Binding("places", "u32"),
                Binding("offsets", "u32"),
                Binding("result", access="write"),
            ),
            tuple(Scalar(name, "u32") for name in ("total", "stride", "shells", "longest", "entries", "plane")),
            (Spec("LANES", RUN),),
            ("LANES", 1, 1),
            includes=("portable.glsl",),
        )
    },
    plan=plan,
    reference=reference,
    cost=cost,
    cases=(
        case((1, 1, 1, 2), 1, 1), case((2, 8, 5, 2), 4, 65), case((1, 16, 9, 2), 3, 64), case((3, 6, 4, 2), 2, 4097),
        case((1, 8, 5, 2), 5, 300, broken=True), case((1, 4, 3, 2), 0, 0), case((1, 64, 33, 2), 2, 9000),
    ),
    scalars=(Scalar("shells", "u32"), Scalar("longest", "u32", doc="modes of the longest shell")),
)  # fmt: skip
