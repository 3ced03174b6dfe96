"""batch_rows: the rows of x that one row of `order` names, bit for bit; a row past the end of x is zero."""

from typing import Any, Final

import numpy as np

from dashi.errors import InputError
from dashi.kernels._work import groups_for
from dashi.kernels.abi import Binding, Call, Case, Dispatch, Kernel, Operand, Plan, Scalar, Shader
from dashi.types import Cost, HostArray, Shape

LOCAL: Final = 256


def reference(x: HostArray, order: HostArray, batch: int) -> HostArray:
    places: Any = order[int(batch)].astype(np.int64)
    result = np.zeros((len(places), x.shape[1]), x.dtype)
    inside = places < len(x)
    result[inside] = x[places[inside]]
    return result


def plan(call: Call) -> Plan:
    batch = call.scalars["batch"]
    if not batch < call.dims["t"]:
        raise InputError(
            f"kernel 'batch_rows': there is no batch {batch} among {call.dims['t']}.", "pass a row of `order`."
        )
    count = call.size("result")
    if count == 0:
        return Plan(())
    groups, trips = groups_for(count, LOCAL, call.limits)
    push = {**{name: call.dims[name] for name in ("n", "d", "m")}, "batch": batch, "stride": groups * LOCAL}
    return Plan((Dispatch("main", ("x", "order", "result"), push, (groups, 1, 1), trips),))


def cost(call: Call) -> Cost:
    count = call.size("result")
    return Cost(bytes=2 * count * call.dtype.size + 4 * call.dims["m"], dispatches=int(count > 0))


def case(n: int, d: int, t: int, m: int, batch: int, reach: int | None = None) -> Case:
    """Rows below `reach`; past the end of x where that is larger than n."""

    def order(rng: np.random.Generator, shape: Shape) -> HostArray:
        return rng.integers(0, n if reach is None else reach, shape, dtype=np.uint64).astype(np.uint32)

    return Case({"x": (n, d), "order": (t, m)}, {"batch": batch}, {"order": order})


KERNEL = Kernel(
    summary="the rows of x that row `batch` of order names, bit for bit; zeros past the end of x",
    inputs=(Operand("x", shape=("n", "d")), Operand("order", "u32", ("t", "m"))),
    outputs=(Operand("result", shape=("m", "d")),),
    scalars=(Scalar("batch", "u32", default=0, doc="which row of order"),),
    shaders={
        "main": Shader(
            (Binding("x", "W"), Binding("order", "u32"), Binding("result", "W", "write")),
            tuple(Scalar(name, "u32") for name in ("n", "d", "m", "batch", "stride")),
            local=(LOCAL, 1, 1),
        )
    },
    plan=plan,
    reference=reference,
    cost=cost,
    cases=(
        case(1, 1, 1, 1, 0), case(5, 3, 4, 7, 3), case(64, 65, 2, 33, 1), case(100, 1, 3, 257, 2),
        case(9, 4, 2, 65, 1, reach=1 << 32), case(3, 0, 1, 2, 0), case(300, 40, 1, 128, 0),
    ),
    bench=(case(1 << 20, 64, 1, 1 << 20, 0),),
)  # fmt: skip
