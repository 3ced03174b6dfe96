"""Plans of kernels that count exactly over a list of words: `_include/counts.glsl`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from dashi.kernels._work import ceil_div
from dashi.kernels.abi import Binding, Call, Dispatch, Number, Plan, Scalar, Shader

LOCAL: Final = 256
GROUPS: Final = 2048
"""Workgroups of the first pass at most: enough to fill a device, few enough to add in a second pass."""
FEW: Final = 16
"""Workgroups of the first pass on a processor, where each costs more than it helps."""

FIRST: Final = (Scalar("items", "u32"), Scalar("stride", "u32"))
SECOND: Final = (Scalar("partials", "u32"),)


def shaders(
    inputs: tuple[str, ...], first: tuple[Scalar, ...] = (), second: tuple[Scalar, ...] = ()
) -> dict[str, Shader]:
    """The two passes over words of these names; `first` and `second` are what they take besides their own numbers."""
    words = tuple(Binding(name, "u32") for name in inputs)
    local = (LOCAL, 1, 1)
    sums, result = Binding("sums", "u32"), Binding("result", "W", "write")
    return {
        "main": Shader((*words, Binding("sums", "u32", "write")), (*FIRST, *first), local=local),
        "total": Shader((sums, result), (*SECOND, *second), local=local, file="total.comp"),
    }


def counting(
    call: Call,
    items: int,
    inputs: tuple[str, ...],
    columns: int,
    *,
    first: Mapping[str, Number] | None = None,
    second: Mapping[str, Number] | None = None,
) -> Plan:
    """The pass "main" over the items, which leaves `columns` sums for every workgroup, then the pass "total"."""
    most = FEW if call.limits.software else GROUPS
    groups = max(1, min(ceil_div(items, LOCAL), most, call.limits.groups))
    rounds = ceil_div(items, groups * LOCAL)
    share = ceil_div(groups, LOCAL)
    return Plan(
        (
            Dispatch(
                "main",
                (*inputs, "sums"),
                {"items": items, "stride": groups * LOCAL, **(first or {})},
                (groups, 1, 1),
                rounds + 8 * columns,
            ),
            Dispatch(
                "total", ("sums", "result"), {"partials": groups, **(second or {})}, (1, 1, 1), columns * (share + 8)
            ),
        ),
        {"sums": ("u32", columns * groups)},
    )
