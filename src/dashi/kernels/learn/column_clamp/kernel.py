"""column_clamp: columns of x whose norm over the first `rows` rows is above `limit` are scaled down to it, to rounding.

The rows after those are left as they are: where the last row of x is a bias, it is not clamped with the weights.
"""

from typing import Final

import numpy as np

from dashi.errors import InputError
from dashi.kernels._work import RUN, ceil_div, groups_for
from dashi.kernels.abi import Binding, Call, Case, Dispatch, Kernel, Operand, Plan, Scalar, Shader
from dashi.kernels.portable import canon, divide, mul, sqrt, sum64
from dashi.types import Cost, HostArray

LOCAL: Final = 64


def reference(x: HostArray, rows: int, limit: float) -> HostArray:
    values = canon(x)
    held = values[: int(rows)]
    most, unity = canon(values.dtype.type(limit)), values.dtype.type(1)
    with np.errstate(all="ignore"):
        norms = sqrt(sum64(mul(held, held), axis=0))
        factors = np.where(norms > most, divide(most, norms), unity)
        return np.concatenate([canon(mul(held, factors)), values[int(rows) :]])


def plan(call: Call) -> Plan:
    n, rows, limit, size = call.dims["n"], int(call.scalars["rows"]), call.scalars["limit"], call.size("x")
    if rows > call.dims["k"]:
        raise InputError(f"kernel 'column_clamp': rows is {rows}, but x has {call.dims['k']}.", "pass fewer rows.")
    if not limit >= 0:
        raise InputError(f"kernel 'column_clamp': limit is {limit}.", "pass a norm of 0 or more.")
    if size == 0:
        return Plan(())
    groups, rounds = groups_for(n, LOCAL, call.limits)
    push = {"n": n, "rows": rows, "stride": groups * LOCAL, "limit": limit}
    trips = rounds * (3 + rows + ceil_div(rows, RUN) + -(-rows // RUN**2))
    norms = Dispatch("norms", ("x", "factors"), push, (groups, 1, 1), trips)
    groups, rounds = groups_for(size, LOCAL, call.limits)
    push = {"n": n, "rows": rows, "size": size, "stride": groups * LOCAL}
    scale = Dispatch("scale", ("x", "factors", "result"), push, (groups, 1, 1), rounds)
    return Plan((norms, scale), {"factors": ("T", n)})


def cost(call: Call) -> Cost:
    size = call.size("x")
    return Cost(3 * size, 3 * size * call.dtype.size, 2) if size else Cost()


def case(k: int, n: int, rows: int, limit: float) -> Case:
    return Case({"x": (k, n)}, {"rows": rows, "limit": limit})


KERNEL = Kernel(
    summary="x with columns scaled down to norm `limit` over their first `rows` rows, where it is larger",
    inputs=(Operand("x", shape=("k", "n")),),
    outputs=(Operand("result", shape=("k", "n")),),
    scalars=(
        Scalar("rows", "u32", doc="rows that the norm is taken over, and that are scaled"),
        Scalar("limit", default=1.0, doc="largest norm of a column"),
    ),
    shaders={
        "norms": Shader(
            (Binding("x"), Binding("factors", access="write")),
            (*(Scalar(name, "u32") for name in ("n", "rows", "stride")), Scalar("limit")),
            local=(LOCAL, 1, 1),
            file="norms.comp",
            includes=("portable.glsl",),
        ),
        "scale": Shader(
            (Binding("x"), Binding("factors"), Binding("result", access="write")),
            tuple(Scalar(name, "u32") for name in ("n", "rows", "size", "stride")),
            local=(LOCAL, 1, 1),
            file="scale.comp",
            includes=("portable.glsl",),
        ),
    },
    plan=plan,
    reference=reference,
    cost=cost,
    cases=(
        case(0, 3, 0, 1.0), case(1, 1, 1, 0.5), case(5, 3, 4, 1.0), case(64, 65, 63, 4.0), case(65, 7, 65, 0.0),
        case(130, 66, 129, 8.0), case(4100, 2, 4099, 10.0), case(9, 5, 0, 1.0),
    ),
    bench=(case(4096, 4096, 4096, 1.0),),
)  # fmt: skip
