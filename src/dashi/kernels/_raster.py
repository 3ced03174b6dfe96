"""Kernels that make every pixel of a plane: the blocks of `_include/raster.glsl`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from dashi.errors import ShapeError
from dashi.kernels._work import ceil_div
from dashi.kernels.abi import Call, Dispatch, Limits, Number, Scalar, Spec

LOCAL: Final = (32, 8, 1)
PUSH: Final = tuple(Scalar(name, "u32") for name in ("w", "h", "across", "blocks", "stride"))
SPEC: Final = Spec("ROWS", 4)
TUNINGS: Final = {"rows4": {"rows": 4}}
"""Pixels per invocation, one below the other: more of them share what depends on the column."""
MAX_SIDE: Final = 1 << 24
"""Column and row numbers must be exact as fp32 values."""


@dataclass(frozen=True)
class Blocks:
    """How a plane is shared out among workgroups."""

    push: dict[str, Number]
    groups: tuple[int, int, int]
    trips: int
    rows: int

    def dispatch(
        self, buffers: tuple[str, ...], push: Mapping[str, Number] | None = None, spec: Mapping[str, int] | None = None
    ) -> Dispatch:
        """The dispatch of shader "main" on the whole plane, with numbers of the kernel's own."""
        return Dispatch(
            "main", buffers, {**self.push, **(push or {})}, self.groups, self.trips, {"ROWS": self.rows, **(spec or {})}
        )


def blocks(call: Call, h: int, w: int) -> Blocks:
    """The blocks of a plane that is not empty, with the rows per invocation of the call's tuning."""
    rows = call.tuning["rows"]
    return share(h, w, rows, call.limits)


def share(h: int, w: int, rows: int, limits: Limits) -> Blocks:
    """The blocks of a plane of h x w pixels."""
    across = ceil_div(w, LOCAL[0])
    count = across * ceil_div(h, LOCAL[1] * rows)
    groups = min(count, limits.groups)
    rounds = ceil_div(count, groups)
    push: dict[str, Number] = {"w": w, "h": h, "across": across, "blocks": count, "stride": groups}
    return Blocks(push, (groups, 1, 1), rounds * (1 + rows), rows)


def require_sides(kernel: str, h: int, w: int) -> None:
    """Refuses planes whose pixels cannot be numbered exactly."""
    if max(h, w) > MAX_SIDE:
        raise ShapeError(
            f"kernel {kernel!r}: a plane of {h} x {w} has a side longer than {MAX_SIDE}.", "cut it into smaller planes."
        )
