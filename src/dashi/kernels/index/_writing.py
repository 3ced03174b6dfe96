"""Rows written into an array where it lies: the kernel `write_rows`, of which nothing but the rows is touched."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from dashi.kernels._registry import default
from dashi.kernels._validate import validate
from dashi.kernels._work import groups_for
from dashi.kernels.abi import Call, Dispatch, Kernel, Plan
from dashi.types import Cost

IN_PLACE: Final = "write_rows_in_place"
_LOCAL: Final = 256


def dispatch_over(call: Call, shader: str, items: int) -> Plan:
    """One dispatch whose invocations share so many elements: of x, or of the rows."""
    if call.size("x") == 0 or items == 0:
        return Plan(())
    groups, trips = groups_for(items, _LOCAL, call.limits)
    n, m, w = (call.dims[name] for name in ("n", "m", "w"))
    numbers = {"items": items, "length": n, "count": m, "width": w, "stride": groups * _LOCAL}
    return Plan((Dispatch(shader, ("x", "rows", "positions", "result"), numbers, (groups, 1, 1), trips),))


def rows_in_place() -> Kernel:
    """`write_rows` for an x that is the result too, and canonical: the binaries are the same, the plan another. With a
    result that is not x it would leave most of that undefined."""

    def plan(call: Call) -> Plan:
        return dispatch_over(call, "rows", call.size("rows"))

    def cost(call: Call) -> Cost:
        return Cost(bytes=2 * call.bytes("rows"), dispatches=len(plan(call).dispatches))

    kernel = replace(default().get("write_rows"), name=IN_PLACE, plan=plan, cost=cost, bench=())
    validate(kernel)
    return kernel
