"""pad_dilated: boxes of values inside a frame of one value, which also lies between them if they are set apart.

x has the shape (rows, d, h, w), the result (rows, depth, height, width). Along each axis element i of x lies at
low + i apart of the result, if that is inside; whatever no element lies at is `value`. A negative `low` cuts elements
off, and so does a short result. Windows of a padded value (convolutions, pools) are strided views of it.
"""

from collections.abc import Mapping
from typing import Final

import numpy as np
import numpy.typing as npt

from dashi.errors import InputError, LimitError
from dashi.kernels._work import LOCAL, LOOP_PUSH, groups_for
from dashi.kernels.abi import Binding, Call, Case, Dispatch, Kernel, Number, Operand, Plan, Scalar, Shader, Spec
from dashi.kernels.portable import canon
from dashi.types import Cost, HostArray

AXES: Final = (("d", "depth"), ("h", "height"), ("w", "width"))
"""Axes of x, and of the result."""
Places = npt.NDArray[np.int64]
_WORD: Final = 1 << 32
_FARTHEST: Final = 1 << 31
"""Places are counted in 32 bits, from the first element on."""


def require_frame(lengths: Mapping[str, int], scalars: Mapping[str, Number]) -> None:
    """An error where elements are not apart, or where places do not fit 32 bits."""
    for axis, length in AXES:
        low, apart = int(scalars[f"low_{axis}"]), int(scalars[f"apart_{axis}"])
        if apart < 1:
            raise InputError(f"kernel 'pad_dilated': apart_{axis} is {apart}.", "pass 1 or more.")
        if max(abs(low), lengths[length], lengths[axis] * apart) >= _FARTHEST:
            raise LimitError(
                f"kernel 'pad_dilated': {lengths[axis]} elements {apart} apart from {low} on, in {lengths[length]} "
                f"places, are too many along {axis}.",
                f"stay below {_FARTHEST} places.",
            )


def reference(x: HostArray, **scalars: Number) -> HostArray:
    new = tuple(int(scalars[length]) for _, length in AXES)
    lengths: dict[str, int] = dict(zip(("d", "h", "w", "depth", "height", "width"), (*x.shape[1:], *new), strict=True))
    require_frame(lengths, scalars)
    lists = [_places(lengths[axis], lengths[length], scalars, axis) for axis, length in AXES]
    places, shown = [places for places, _ in lists], [shown for _, shown in lists]
    result: HostArray = np.full((x.shape[0], *new), canon(np.asarray(scalars["value"], x.dtype)), x.dtype)
    rows: Places = np.arange(x.shape[0], dtype=np.int64)
    result[np.ix_(rows, *places)] = canon(x)[np.ix_(rows, *shown)]
    return result


def _places(old: int, new: int, scalars: Mapping[str, Number], axis: str) -> tuple[Places, Places]:
    """Where the elements along an axis lie, of those that are inside; and which these are."""
    at = int(scalars[f"low_{axis}"]) + int(scalars[f"apart_{axis}"]) * np.arange(old, dtype=np.int64)
    inside = np.flatnonzero((at >= 0) & (at < new))
    return at[inside], inside


def plan(call: Call) -> Plan:
    require_frame(call.dims, call.scalars)
    items = call.size("result")
    if items == 0:
        return Plan(())
    groups, rounds = groups_for(items, LOCAL, call.limits)
    push = {"items": items, "stride": groups * LOCAL, "value": call.scalars["value"]}
    push |= {axis: call.dims[axis] for axis, _ in AXES}
    push |= {f"low_{axis}": int(call.scalars[f"low_{axis}"]) % _WORD for axis, _ in AXES}
    spec = {length.upper(): call.dims[length] for _, length in AXES}
    spec |= {f"APART_{axis.upper()}": int(call.scalars[f"apart_{axis}"]) for axis, _ in AXES}
    return Plan((Dispatch("main", ("x", "result"), push, (groups, 1, 1), rounds, spec),))


def cost(call: Call) -> Cost:
    return Cost(0, call.bytes("x", "result"), int(call.size("result") > 0))


def case(shape: tuple[int, ...], result: tuple[int, ...], low: tuple[int, ...], apart: tuple[int, ...] = (1, 1, 1),
         value: float = 0.0) -> Case:  # fmt: skip
    scalars: dict[str, Number] = {length: n for (_, length), n in zip(AXES, result, strict=True)}
    scalars |= {f"low_{axis}": n for (axis, _), n in zip(AXES, low, strict=True)}
    scalars |= {f"apart_{axis}": n for (axis, _), n in zip(AXES, apart, strict=True)}
    return Case({"x": shape}, {**scalars, "value": value})


KERNEL = Kernel(
    summary="values inside a frame of one value, and apart from each other",
    inputs=(Operand("x", shape=("rows", "d", "h", "w")),),
    outputs=(Operand("result", shape=("rows", *(length for _, length in AXES))),),
    scalars=(
        *(Scalar(length, "u32", doc=f"length of the result along {axis}") for axis, length in AXES),
        *(Scalar(f"low_{axis}", "i32", 0, f"where the first element lies along {axis}") for axis, _ in AXES),
        *(Scalar(f"apart_{axis}", "u32", 1, f"from one element to the next along {axis}") for axis, _ in AXES),
        Scalar("value", default=0.0, doc="what lies where no element does"),
    ),
    shaders={
        "main": Shader(
            (Binding("x"), Binding("result", access="write")),
            (
                *LOOP_PUSH,
                *(Scalar(axis, "u32") for axis, _ in AXES),
                *(Scalar(f"low_{axis}", "u32") for axis, _ in AXES),
                Scalar("value"),
            ),
            (*(Spec(length.upper(), 1) for _, length in AXES), *(Spec(f"APART_{axis.upper()}", 1) for axis, _ in AXES)),
            local=(LOCAL, 1, 1),
            includes=("portable.glsl",),
        )
    },
    plan=plan,
    reference=reference,
    cost=cost,
    cases=(
        case((2, 1, 5, 7), (1, 7, 9), (0, 1, 1)),
        case((3, 1, 1, 64), (1, 1, 65), (0, 0, 0), value=float("-inf")),
        case((2, 3, 4, 5), (7, 9, 16), (1, 2, -1), (2, 1, 3), 1.5),
        case((4, 1, 6, 6), (1, 3, 4), (0, -2, -1)),
        case((1, 1, 300, 200), (1, 302, 203), (0, 1, 2)),
        case((0, 1, 4, 4), (1, 6, 6), (0, 1, 1)),
        case((2, 1, 0, 4), (1, 2, 6), (0, 1, 1)),
    ),
    bench=(case((64, 1, 1022, 1022), (1, 1024, 1024), (0, 1, 1)),),
)  # fmt: skip
