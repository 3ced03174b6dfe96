"""The passes of Fourier transforms: their shaders, the arrays between them, and what they cost."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from dashi.kernels._work import ceil_div
from dashi.kernels.abi import (
    Binding,
    Call,
    Dispatch,
    Fill,
    Number,
    Scalar,
    Shader,
    Spec,
)
from dashi.kernels.fft import _layouts as fourier_layouts
from dashi.kernels.fft._layouts import SHARED, WorkgroupLayout, layout, trips
from dashi.kernels.fft._roots import FIELD_USES, MOST_STAGES, Use, radices
from dashi.types import HostArray, Shape

SPECS: Final = (
    Spec("LANES", 64), Spec("N", 64), Spec("LINES", 1), Spec("INNER", 1), Spec("EACH", 8), Spec("SPAN", 96),
    Spec("PARTS", 2), Spec("WINDOWS", 1), Spec("SWAP", 0), Spec("LAST", 8), Spec("SCALED", 1),
    Spec("RAW", 0), Spec("COLUMNS", 1), Spec("WHOLE", 0), Spec("TILED", 0), Spec("TILE_ROWS", 1),
    Spec("TILE_COLUMNS", 1), Spec("FETCH", 0),
    *(Spec(f"R{stage}", 8 if stage < 2 else 1) for stage in range(MOST_STAGES)),
)  # fmt: skip
FIELD_SPECS: Final = (*SPECS, Spec("STEP", 1), Spec("AHEAD", 1), Spec("BEGUN", 1), Spec("HOLD", 0))
SCALE: Final = Scalar("scale", default=1.0, doc="what results are multiplied by")
COMPLEX_SCALARS: Final = (
    Scalar("inverse", "u32", 0, "1 for the inverse transform"),
    SCALE,
)
PUSH: Final = (
    Scalar("lines", "u32"),
    Scalar("columns", "u32"),
    Scalar("across", "u32"),
    Scalar("scale"),
)


@dataclass(frozen=True)
class Tiles:
    """Complex numbers between a pass over rows and one over columns, in tiles, so that both have long pieces."""

    rows: int
    columns: int

    def size(self, height: int, width: int) -> int:
        """Parts of complex numbers, for an array (height, width)."""
        return 2 * self.rows * ceil_div(height, self.rows) * self.columns * ceil_div(width, self.columns)


def sized(call: Call, *sides: int) -> Call:
    """The call, with the numbers of its tuning for fields of these sides."""
    return replace(call, tuning=fourier_layouts.sized(call.tuning, max(sides)))


@dataclass(frozen=True)
class FftPass:
    """One pass over an array (lines, n, columns) of complex numbers: a shader, its buffers, and the factor of its
    results. Real lines are rows of n pairs of neighbours, or of n values where their number is odd. `raw` is 1 where
    what it reads is another pass's, 2 where what it makes is for another pass; those values then lie in
    `tiles`, if given. Lines that must lie on one workgroup, one after the other, come in a `bundle`.

    A pass over the rows of fields of this `height` may do the first stage of their columns too, of radix `fused_radix`.
    It leaves fields of height / fused_radix rows, each of them what that many rows became, side by side. The pass over
    the columns of those goes on with transforms that were begun by a stage of radix `resumed_radix`."""

    shader: str
    buffers: tuple[str, ...]
    lines: int
    n: int
    columns: int = 1
    inverse: bool = False
    scale: Number = 1.0
    raw: int = 0
    tiles: Tiles | None = None
    bundle: int = 1
    use: Use = "within"
    fused_radix: int = 1
    resumed_radix: int = 1
    height: int = 1

    def layout(self, call: Call) -> WorkgroupLayout:
        """How the lines of the pass lie on workgroups."""
        least = max(self.bundle, self.fused_radix)
        return layout(
            self.n, call.dtype.size, self.lines, self.columns, call.limits, call.tuning, least,
            use=self.use, resumed_radix=self.resumed_radix, hold=max(self.fused_radix, self.resumed_radix) > 1,
        )  # fmt: skip

    def can_fuse(self, radix: int, call: Call) -> bool:
        """Whether the pass over rows can do a first stage of the columns of this radix: where invocations then hold,
        at its end, the same places of as many rows, and more stages follow."""
        if radix not in (2, 4) or self.height == radix or self.n & (self.n - 1):
            return False
        fused = replace(self, fused_radix=radix).layout(call)
        return fused.lines == radix and fused.lanes * fused.sequence[-1] == self.n

    def tiled(self, call: Call) -> FftPass:
        """The pass over columns, reading from tiles that suit its layout."""
        rows = call.tuning["rows"] if self.resumed_radix == 1 else min(call.tuning.get("begun_rows", 1), self.n)
        return replace(self, tiles=Tiles(rows, self.layout(call).inner))

    def between(self) -> dict[str, tuple[str, int]]:
        """Scratch between the row pass and this column pass, in this pass's tile layout."""
        tiles = self.tiles or Tiles(1, 1)
        return {"between": ("T", tiles.size(self.lines * self.n, self.columns))}

    def dispatch(self, call: Call) -> Dispatch:
        layout = self.layout(call)
        groups = layout.groups(self.lines, self.columns)
        across = min(groups, call.limits.groups)
        push = {
            "lines": self.lines,
            "columns": self.columns,
            "across": across,
            "scale": self.scale,
        }
        spec = {
            "SWAP": int(self.inverse),
            "SCALED": int(self.scale != 1),
            "RAW": self.raw,
        }
        whole = groups * layout.lines * layout.inner == self.lines * self.columns
        spec |= {
            "COLUMNS": self.columns,
            "WHOLE": int(whole and across * ceil_div(groups, across) == groups),
        }
        if self.tiles is not None:
            spec |= {
                "TILED": self.raw,
                "TILE_ROWS": self.tiles.rows,
                "TILE_COLUMNS": self.tiles.columns,
            }
        if self.use in FIELD_USES:
            spec |= {
                "STEP": self.height // self.fused_radix if self.fused_radix > 1 else 1,
                "AHEAD": self.fused_radix,
                "BEGUN": self.resumed_radix,
                "HOLD": int(layout.hold),
            }
        extent = (across, ceil_div(groups, across), 1)
        name = self.shader if self.shader == "odd" or self.n & (self.n - 1) == 0 else f"{self.shader}_mixed"
        return Dispatch(name, self.buffers, push, extent, trips(layout), {**layout.specs(), **spec})


def rows_forward(
    source: str,
    result: str,
    lines: int,
    n: int,
    scale: Number,
    raw: int = 0,
    tiles: Tiles | None = None,
) -> FftPass:
    """Modes of real lines of n values. The shader for even n makes them twice as large."""
    if n % 2:
        return FftPass(
            "odd",
            (source, "twiddles", result),
            lines,
            n,
            scale=scale,
            raw=raw,
            tiles=tiles,
        )
    return FftPass(
        "even",
        (source, "twiddles", result),
        lines,
        n // 2,
        scale=0.5 * scale,
        raw=raw,
        tiles=tiles,
    )


def rows_inverse(source: str, result: str, lines: int, n: int, scale: Number, raw: int = 0) -> FftPass:
    """Real lines of n values from their modes."""
    shader = "odd" if n % 2 else "even"
    return FftPass(
        shader,
        (source, "twiddles", result),
        lines,
        n if n % 2 else n // 2,
        inverse=True,
        scale=scale,
        raw=raw,
    )


def _shaders(
    name: str, source: str, result: str, include: str, file: str = "kernel.comp", spec: tuple[Spec, ...] = SPECS
) -> dict[str, Shader]:
    """Shaders made of a shared transform and a kernel's own loads and stores, for powers of two and for other lengths;
    `source` and `result` are the types of what they read and write."""
    powers = Shader(
        (
            Binding("source", source),
            Binding("turns", "P"),
            Binding("result", result, "write"),
        ),
        PUSH,
        spec,
        local=("LANES", 1, 1),
        file=file,
        includes=(include,),
        extensions=("GL_EXT_control_flow_attributes",),
        shared_bytes=SHARED,
    )
    mixed = replace(powers, prelude="#define FFT_MIXED\n")
    return {name: mixed} if name == "odd" else {name: powers, f"{name}_mixed": mixed}


COMPLEX: Final = _shaders("main", "P", "P", "fft_complex.glsl")
FIELDS: Final = {
    name: replace(shader, prelude=f"#define FFT_FIELD\n{shader.prelude}")
    for name, shader in _shaders("main", "P", "P", "fft_complex.glsl", spec=FIELD_SPECS).items()
}
COLUMNS: Final = _shaders("columns", "P", "P", "fft_complex.glsl", "columns.comp")
FORWARD: Final = {
    **_shaders("even", "P", "P", "fft_real.glsl"),
    **_shaders("odd", "T", "P", "fft_complex.glsl", "odd.comp"),
}
INVERSE: Final = {
    **_shaders("even", "P", "P", "fft_modes.glsl"),
    **_shaders("odd", "P", "T", "fft_complex.glsl", "odd.comp"),
}


def fast(shader: Shader) -> Shader:
    """The shader in the device class: nothing is flushed."""
    return replace(shader, prelude=f"#define FFT_FAST\n{shader.prelude}")


def filled(table: Callable[..., HostArray], n: int, *use: Use) -> Fill:
    """The factors of transforms of n values, for a test case."""

    def fill(rng: np.random.Generator, shape: Shape) -> HostArray:
        return table(n, np.float64, *use)

    return fill


def flops(n: int, use: Use = "within") -> int:
    """Real additions and multiplications of one complex transform, as the stages do them."""
    per = {2: 4, 3: 16, 4: 16, 5: 48, 7: 96, 8: 56, 16: 168}
    total, size = 0, 1
    for radix in radices(n, use):
        total += n // radix * (per[radix] + (6 * (radix - 1) if size > 1 else 0))
        size *= radix
    return total


def real_flops(n: int) -> int:
    """Floating-point operations of one real transform of n values."""
    return flops(n) if n % 2 else flops(n // 2) + 9 * n // 2
