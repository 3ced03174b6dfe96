"""Particles that start at the points of a periodic mesh and go less than a cell: the twin of `mesh_weights.glsl`, and
what the kernels `vortex_remesh` and `vortex_sample` share.

M4' is the interpolating kernel of J. J. Monaghan (1985, doi 10.1016/0021-9991(85)90006-3), exact for polynomials up to
the second degree; M6' its successor, exact up to the fourth (G.-H. Cottet et al. 2014, doi 10.1051/m2an/2014009, where
it is Lambda_4,2):

    M4'   |x| < 1: 1 - 5/2 x^2 + 3/2 |x|^3        1 <= |x| < 2: (2 - |x|)^2 (1 - |x|) / 2
    M6'   quintics on |x| < 1, 2 and 3, below

A particle that went at most a cell reaches points up to three (M6': four) cells away, so every point gathers from 7 x 7
(9 x 9) particles, in the order of rows: the bits depend on no order of arrival. Farther goes none: such values are NaN.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from dashi.errors import InputError, ShapeError
from dashi.kernels._work import ceil_div, split_work
from dashi.kernels.abi import Binding, Call, Case, Dispatch, Kernel, Number, Operand, Plan, Scalar, Shader, Spec
from dashi.kernels.portable import canon, mul
from dashi.types import Cost, Shape

Floats = npt.NDArray[Any]

LOCAL: Final = 64
_NUMBERS: Final = (Scalar("reach"), Scalar("inverse24"))
REACH: Final = {4: 3, 6: 4}
"""Cells that a particle reaches, by the order."""
_M6: Final = ((24, 0, -30, -70, 126, -50), (0, -16, 16, 39, -64, 25), (0, 2, -1, -9, 13, -5))
"""24 M6' on |x| < 1, 2 and 3, from the constant up, in |x|, |x| - 1 and |x| - 2."""
_PLACE: Final = tuple(Scalar(name, "u32") for name in ("first_item", "items", "stride"))


def weight(x: Floats, order: int) -> Floats:
    """M4' or M6'."""
    kind = x.dtype.type
    away = np.abs(x)
    if order == 6:
        value = np.zeros_like(away)
        for end, coefficients in reversed(list(enumerate(_M6, start=1))):
            value = np.where(away < end, _quintic(away - kind(end - 1), coefficients), value)
        return mul(value, kind(1 / 24))
    square = mul(away, away)
    short_of = kind(2) - away
    near = kind(1) - mul(kind(2.5), square) + mul(kind(1.5), mul(square, away))
    far = mul(mul(kind(0.5), mul(short_of, short_of)), kind(1) - away)
    return np.where(away < 1, near, np.where(away < 2, far, kind(0)))


def _quintic(x: Floats, coefficients: tuple[int, ...]) -> Floats:
    kind = x.dtype.type
    *lower, fourth, fifth = coefficients
    value = mul(x, kind(fifth)) + kind(fourth)
    for coefficient in reversed(lower):
        value = mul(x, value) + kind(coefficient)
    return value


def neighbours(order: int) -> Iterator[tuple[int, int]]:
    """Rows and columns of the points around, in order."""
    reach = REACH[order]
    for a in range(-reach, reach + 1):
        for b in range(-reach, reach + 1):
            yield a, b


def displacement(velocity: Floats, first: int, reach: float) -> tuple[Floats, Floats]:
    """Where particles go, in cells along x and along y."""
    scale = canon(np.asarray(reach, velocity.dtype))
    return mul(scale, canon(velocity[:, first])), mul(scale, canon(velocity[:, first + 1]))


def too_far(dx: Floats, dy: Floats) -> Floats:
    return ~((np.abs(dx) <= 1) & (np.abs(dy) <= 1))


def shifted(values: Floats, a: int, b: int) -> Floats:
    """The values of the points (y + a, x + b)."""
    return np.roll(values, (-a, -b), axis=(-2, -1))


def require_channels(kernel: str, channels: int, first: int, order: int) -> None:
    """What the shapes alone cannot say."""
    if first + 2 > channels:
        raise ShapeError(
            f"kernel {kernel!r}: {channels} channels have no velocity from {first} on.", "correct `first`."
        )
    if order not in REACH:
        raise InputError(f"kernel {kernel!r}: `order` is {order}.", "use 4 for M4', 6 for M6'.")


def mesh_kernel(
    name: str, summary: str, reference: Callable[..., Floats], result: tuple[str, ...], flops: int
) -> Kernel:
    """A kernel over meshes (m, c, n, n) that reads velocities (m, v, n, n)."""

    def plan(call: Call) -> Plan:
        first, order = int(call.scalars["first"]), int(call.scalars["order"])
        require_channels(name, call.dims["v"], first, order)
        items, n = call.size("result"), call.dims["n"]
        if not items:
            return Plan(())
        local = min(LOCAL, call.limits.invocations)
        push: dict[str, Number] = {"n": n, "c": call.dims["c"], "v": call.dims["v"], "first": first}
        push |= {"reach": call.scalars["reach"], "inverse24": 1 / 24}
        around = 2 * REACH[order] + 1
        return Plan(
            tuple(
                Dispatch(
                    "main", ("fields", "velocity", "result"),
                    {
                        "first_item": s.first * local, "items": min(items, s.beyond * local),
                        "stride": s.groups * local, **push,
                    },
                    (s.groups, 1, 1), s.trips, {"LOCAL": local, "SIX": int(order == 6)},
                )
                for s in split_work(ceil_div(items, local), 1 + around + around**2, call.limits)
            )
        )  # fmt: skip

    def cost(call: Call) -> Cost:
        return Cost(flops * call.size("result"), call.bytes("fields", "velocity", "result"), len(plan(call).dispatches))

    def case(m: int, c: int, v: int, n: int, first: int, reach: float, order: int = 4) -> Case:
        def gentle(rng: np.random.Generator, shape: Shape) -> Floats:
            return rng.uniform(-1.02, 1.02, shape)

        shapes: dict[str, Shape] = {"fields": (m, c, n, n), "velocity": (m, v, n, n)}
        fill: dict[str, Any] = {"velocity": gentle} if reach == 0.9 else {}
        return Case(shapes, {"first": first, "reach": reach, "order": order}, fill)

    return Kernel(
        summary=summary,
        inputs=(Operand("fields", shape=("m", "c", "n", "n")), Operand("velocity", shape=("m", "v", "n", "n"))),
        outputs=(Operand("result", shape=result),),
        scalars=(
            Scalar("first", "u32", 0, "the channel of velocity along x; the next is along y"),
            Scalar("reach", doc="time over mesh width: a velocity times it is a way in cells"),
            Scalar("order", "u32", 4, "4: M4', 6: M6'"),
        ),
        shaders={
            "main": Shader(
                (Binding("fields"), Binding("velocity"), Binding("result", access="write")),
                (*_PLACE, *(Scalar(word, "u32") for word in ("n", "c", "v", "first")), *_NUMBERS),
                (Spec("LOCAL", LOCAL), Spec("SIX", 0)), ("LOCAL", 1, 1), includes=("portable.glsl",),
            )
        },
        plan=plan,
        reference=reference,
        cost=cost,
        cases=(
            case(1, 1, 2, 1, 0, 0.9), case(2, 3, 3, 8, 1, 0.9), case(0, 1, 2, 4, 0, 0.5), case(1, 2, 2, 33, 0, 0.9),
            case(1, 1, 3, 5, 1, 1e-3, 6), case(2, 2, 3, 17, 1, 0.9, 6), case(1, 1, 2, 3, 0, 0.9, 6),
        ),
        bench=(case(1, 3, 3, 1024, 1, 0.9), case(1, 3, 3, 1024, 1, 0.9, 6)),
    )  # fmt: skip
