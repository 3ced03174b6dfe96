"""How Fourier transforms are laid out on workgroups, within a device's limits: for speed, without changing a bit."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from dashi.errors import LimitError
from dashi.kernels._work import ceil_div
from dashi.kernels.abi import Limits
from dashi.kernels.fft._roots import FIELD_USES, MOST_STAGES, Use, radices

WARP: Final = 32
MOST_EACH: Final = 64
"""Complex values that one invocation may hold."""
TUNINGS: Final[dict[str, dict[str, int]]] = {
    "wide": {"points": 2048, "each": 16, "bytes": 64, "rows": 2, "parts": 2, "groups": 256, "few": 65536},
    "small": {"points": 1024, "each": 16, "bytes": 32, "rows": 1, "parts": 1, "groups": 1, "few": 0},
}
"""Values of the rows of a workgroup, and of an invocation; bytes of neighbouring columns that are read together, and
rows of a tile between two passes; whether real and imaginary parts are exchanged together (1) or after each other (2);
how many workgroups there should be before they take more rows or columns each; and how many invocations of a pass are
few: those hold one butterfly each and, where it is short, exchange both parts together and load its factors first,
which takes shared memory and registers that more of them would miss."""
FIELDS: Final[dict[str, dict[str, int]]] = {
    "wide": {**TUNINGS["wide"], "begun_rows": 16, "long": 2048, "long_rows": 8, "long_parts": 1, "long_windows": 4},
    "small": {**TUNINGS["small"], "long": 4096},
}
"""For complex fields. Numbers named long_... count for sides above `long`; begun_rows are the rows of a tile between a
pass that has begun the columns and the one that goes on with them."""
REAL_FIELDS: Final[dict[str, dict[str, int]]] = {
    "wide": {
        **TUNINGS["wide"], "points": 1024, "each": 8,
        "long": 1024, "long_points": 2048, "long_each": 16, "long_groups": 128,
    },
    "small": {**TUNINGS["small"], "long": 4096},
}  # fmt: skip
"""Likewise for real ones."""
DOUBLE: Final = 8
"""Bytes of a part of fp64."""
SHORT: Final = 8
"""Values of a butterfly that is short."""
SHARED: Final = 49152
BANKS: Final = 128
"""Bytes of shared memory that are read at once."""
SECTOR: Final = 32
"""Bytes that memory hands out at once, at least."""


@dataclass(frozen=True)
class WorkgroupLayout:
    """Transforms of n values on a workgroup: their radices; how many lines of how many interleaved transforms, on how
    many invocations; how much shared memory (in values, per line and part) in how many pieces; whether factors are
    loaded first, and whether a workgroup holds those of the second stage together."""

    n: int
    sequence: tuple[int, ...]
    lines: int
    inner: int
    lanes: int
    each: int
    span: int
    parts: int
    windows: int
    fetch: bool
    hold: bool = False

    def specs(self) -> dict[str, int]:
        """The specialisation constants of a shader that has to do with the layout."""
        stage_radices = dict.fromkeys((f"R{stage}" for stage in range(MOST_STAGES)), 1)
        stage_radices.update({f"R{stage}": radix for stage, radix in enumerate(self.sequence)})
        return {
            "LANES": self.lanes,
            "N": self.n,
            "LINES": self.lines,
            "INNER": self.inner,
            "EACH": self.each,
            "SPAN": self.span,
            "PARTS": self.parts,
            "WINDOWS": self.windows,
            "FETCH": int(self.fetch),
            "LAST": self.sequence[-1],
            **stage_radices,
        }

    def groups(self, lines: int, columns: int) -> int:
        """Workgroups for an array (lines, n, columns)."""
        return ceil_div(lines, self.lines) * ceil_div(columns, self.inner)


def layout(
    n: int,
    size: int,
    lines: int,
    columns: int,
    limits: Limits,
    tuning: Mapping[str, int],
    bundle: int = 1,
    *,
    use: Use = "within",
    resumed_radix: int = 1,
    hold: bool = False,
) -> WorkgroupLayout:
    """Where transforms of n values of `size` bytes a part go, for an array (lines, n, columns); so many lines at least
    on a workgroup. Of transforms that were begun, those are the values left after a first stage of radix
    `resumed_radix`."""
    sequence = radices(n * resumed_radix, use)[int(resumed_radix > 1) :] or (1,)
    few = n & (n - 1) == 0 and lines * n * columns <= tuning["few"] * max(sequence)
    held = min(tuning["each"], max(sequence)) if few else tuning["each"]
    inner = min(columns, max(1, tuning["bytes"] // (2 * size)))
    narrowest = max(1, SECTOR // (2 * size))
    while inner > narrowest and lines * ceil_div(columns, inner) < tuning["groups"]:
        inner = ceil_div(inner, 2)
    while inner > 1 and n * inner > limits.invocations * held:
        inner = ceil_div(inner, 2)
    stacked = min(
        tuning["points"] // (n * inner),
        lines * ceil_div(columns, inner) // tuning["groups"],
        lines,
    )
    stacked = max(bundle, stacked // bundle * bundle)
    points = n * inner * stacked
    wanted = ceil_div(points, held)
    lanes = max(1, min(ceil_div(wanted, WARP) * WARP, limits.invocations // WARP * WARP))
    each = max(radix * ceil_div(points, radix * lanes) for radix in sequence)
    if each > MOST_EACH:
        raise LimitError(
            f"a Fourier transform of {n} values needs more than {limits.invocations} invocations in a workgroup.",
            "use shorter lines, or another device.",
        )
    hold = hold and len(sequence) > 1
    spare = 1 + (math.prod(sequence[:2]) if hold else int(use in FIELD_USES))
    room = min(limits.shared_bytes, tuning.get("shared", SHARED)) - 2 * size * spare
    short = few and each <= SHORT
    together = short or size == DOUBLE
    for parts, windows in _exchanges(1 if together else tuning["parts"], tuning.get("windows", 1)):
        banks = BANKS // (size * (3 - parts))
        span = _span(sequence, inner, ceil_div(n * inner, windows), banks, windows == 1)
        if stacked * span * size * (3 - parts) <= room:
            return WorkgroupLayout(n, sequence, stacked, inner, lanes, each, span, parts, windows, short, hold)
    raise LimitError(
        f"a Fourier transform of {n} values does not fit {room} bytes of shared memory.",
        "use another device.",
    )


def sized(tuning: Mapping[str, int], side: int) -> dict[str, int]:
    """The numbers of a tuning that count for fields of this side."""
    above = {key.removeprefix("long_"): n for key, n in tuning.items() if key.startswith("long_")}
    return {**tuning, **(above if side > tuning["long"] else {})}


def _exchanges(parts: int, first: int) -> Iterator[tuple[int, int]]:
    """Parts and windows to try, from those that are wanted on."""
    if parts == 1:
        yield from ((1, windows) for windows in (1, 2, 4) if windows >= first)
    yield from ((2, windows) for windows in (1, 2, 4, 8, 16, 32) if windows >= first or parts == 1)


def _span(sequence: tuple[int, ...], inner: int, window: int, banks: int, pitched: bool) -> int:
    """Values of shared memory that a window of a line takes, gaps included, at the worst exchange."""
    span, size = window, 1
    for radix in sequence[:-1]:
        run = size * inner
        apart = max(banks, run * radix)
        if pitched and run < banks:
            span = max(span, window + radix * run)
        elif run < banks and run * 4 <= apart:
            span = max(span, window + (window - 1) // apart * run)
        size *= radix
    return span


def trips(layout: WorkgroupLayout) -> int:
    """Loop iterations of an invocation, if its driver unrolls none: every stage runs over its values a few times."""
    stages = len(layout.sequence) + 2
    return stages * (layout.each * 4 + 8) * layout.parts * layout.windows


def prefer(limits: Limits, variant: str) -> str:
    """Small workgroups on processors, whose invocations take turns."""
    return "small" if limits.software else "wide"
