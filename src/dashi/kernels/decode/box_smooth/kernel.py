"""box_smooth: the mean over a box of 2 radius + 1 sites along each axis of periodic fields; or what it leaves of them.

Separable: means along rows, then of those along columns, each summed from the first neighbour to the last and times
1 / (2 radius + 1). With `detail` = 1 the result is the field minus that. A box wider than the field goes round it.
"""

from dataclasses import replace

import numpy as np

from dashi.errors import LimitError
from dashi.kernels._work import groups_for
from dashi.kernels.abi import Binding, Call, Case, Dispatch, Kernel, Operand, Plan, Scalar
from dashi.kernels.portable import canon, mul
from dashi.kernels.spectral._modes import LOCAL, Floats, shader
from dashi.types import Cost, HostArray, Shape

RADIUS = Scalar("radius", "u32", 5, "how far the box reaches along each axis")
DETAIL = Scalar("detail", "u32", 0, "1: the field minus the mean, instead of the mean")
WIDEST = 1 << 16
SIDES = (Scalar("h", "u32"), Scalar("w", "u32"), Scalar("radius", "u32"))


def weight(kind: np.dtype[np.generic], radius: int) -> Floats:
    return np.asarray(1.0 / (2 * radius + 1), kind)


def require_radius(radius: int) -> None:
    """Sums go round the field neighbour by neighbour, so a radius far beyond every field is work without end."""
    if radius > WIDEST:
        raise LimitError(
            f"kernel 'box_smooth': a radius of {radius} is more than {WIDEST}.",
            "pass a radius below the sides of the field: a wider box only goes round it again.",
        )


def along(values: Floats, axis: int, radius: int) -> Floats:
    """Means over neighbours along an axis."""
    total = np.zeros_like(values)
    for shift in range(-radius, radius + 1):
        total = total + np.roll(values, -shift, axis)
    return mul(canon(total), weight(values.dtype, radius))


def reference(field: HostArray, radius: int, detail: int) -> HostArray:
    values = canon(field)
    if values.size == 0:
        return values
    require_radius(radius)
    smooth = along(canon(along(values, 2, radius)), 1, radius)
    return canon(values - smooth if detail else smooth)


def plan(call: Call) -> Plan:
    total = call.size("field")
    if total == 0:
        return Plan(())
    radius = int(call.scalars["radius"])
    require_radius(radius)
    groups, rounds = groups_for(total, LOCAL, call.limits)
    push = {
        "total": total, "stride": groups * LOCAL, "h": call.dims["h"], "w": call.dims["w"], "radius": radius,
        "weight": float(weight(call.dtype.numpy, radius)),
    }  # fmt: skip
    trips = rounds * (2 + 2 * radius)
    rows = Dispatch("rows", ("field", "across"), push, (groups, 1, 1), trips)
    named = {**push, "detail": int(call.scalars["detail"])}
    columns = Dispatch("columns", ("field", "across", "result"), named, (groups, 1, 1), trips)
    return Plan((rows, columns), {"across": ("T", total)})


def cost(call: Call) -> Cost:
    size, width = call.size("field"), 2 * int(call.scalars["radius"]) + 1
    return Cost((2 * width + 3) * size, call.bytes("field", "field", "field", "field", "field"), 2 * int(size > 0))


def case(shape: Shape, radius: int, detail: int) -> Case:
    return Case({"field": shape}, {"radius": radius, "detail": detail})


KERNEL = Kernel(
    summary="means over a periodic box, or what they leave of a field",
    inputs=(Operand("field", shape=("members", "h", "w")),),
    outputs=(Operand("result", shape=("members", "h", "w")),),
    shaders={
        "rows": shader(Binding("field"), Binding("result", access="write"), push=(*SIDES, Scalar("weight"))),
        "columns": replace(
            shader(
                Binding("field"),
                Binding("across"),
                Binding("result", access="write"),
                push=(*SIDES, Scalar("weight"), DETAIL),
            ),
            file="columns.comp",
        ),
    },
    plan=plan,
    reference=reference,
    cost=cost,
    cases=(
        case((1, 1, 1), 0, 0), case((1, 1, 1), 3, 1), case((2, 8, 8), 1, 1), case((1, 7, 5), 5, 0),
        case((1, 64, 64), 5, 1), case((3, 17, 33), 2, 0), case((0, 4, 4), 5, 1), case((1, 6, 10), 9, 1),
    ),
    bench=(case((1, 128, 128), 5, 1), case((1, 2048, 2048), 5, 1)),
    scalars=(RADIUS, DETAIL),
)  # fmt: skip
