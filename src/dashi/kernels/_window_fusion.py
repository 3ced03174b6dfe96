"""Products of weights with windows, and tails: convolutions without a matrix of windows.

The matrix b of a product is read through a view with more axes: (batches, channels, *taps, *windows). The channels of a
group and their taps are k, the windows are columns; each element is looked up where it lies, by the template
`_templates/linear/window_product`. Everything else is as in products of `_product_fusion`: the levels of tree64, and
the tail.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from dashi.errors import ShapeError
from dashi.kernels._formulas import formula
from dashi.kernels._fused_abi import indices
from dashi.kernels._product_fusion import FusedProduct, ProductBinaries, others_of, require_tail
from dashi.kernels._validate import validate
from dashi.kernels.abi import Case, Kernel, Operand, Shader, View
from dashi.kernels.expressions import Expression, arguments
from dashi.kernels.linear import _products as products
from dashi.types import HostArray, Shape

MOST_AXES: Final = 3
"""Axes that a window has."""
TUNINGS: Final = {name: products.TUNINGS[name] for name in products.WINDOW_TUNINGS}
_TEMPLATE: Final = "window_product"
_WORD: Final = 1 << 32


def fuse_window_product(
    tail: Expression | None, value: str, weights: View, windows: View, others: Mapping[str, View], name: str = ""
) -> Kernel:
    """The kernel of a[g] b[n, g] for weights a (groups, m, k) and windows b (n, channels, *taps, *windows) with as many
    axes of taps as of windows, where k is a group's channels times its taps: (n, groups, m, windows), with a tail.
    `others` are the views of its arrays, in the order in which they are passed."""
    computed = formula([arguments(value)[0] if tail is None else tail], (value, *others))
    require_tail(computed, value)
    require_windows(weights, windows)
    named = {"a": weights, "b": windows}
    more = tuple(Operand(other, view=others.get(other)) for other in others_of(computed, value))
    operands = (*(Operand(operand, view=view) for operand, view in named.items()), *more)
    digest = hashlib.sha256(f"{computed.text}\nwindow product {value}".encode()).hexdigest()
    fused = FusedWindows(computed, value, operands, (False, False), name or f"windows_{digest[:12]}")
    kernel = fused.kernel(digest)
    validate(kernel)
    return kernel


def require_windows(weights: View, windows: View) -> None:
    """An error where weights and windows do not fit."""
    axes = len(windows.shape) - 2
    taps = windows.shape[2 : 2 + axes // 2]
    if axes % 2 or not 2 <= axes <= 2 * MOST_AXES or len(weights.shape) != 3:
        raise ShapeError(
            f"weights {weights.shape} and windows {windows.shape} have other axes than products of windows have.",
            f"pass (groups, m, k) and (n, channels, *taps, *windows), with 1 to {MOST_AXES} axes of each.",
        )
    if weights.shape[0] * weights.shape[2] != windows.shape[1] * math.prod(taps) or not weights.shape[0]:
        raise ShapeError(
            f"{weights.shape[0]} groups of k = {weights.shape[2]} are not {windows.shape[1]} channels of {taps} taps.",
            "pass weights for the channels of each group, times taps.",
        )


@dataclass(frozen=True)
class FusedWindows(FusedProduct):
    """A product with windows and a tail, before it is a kernel."""

    def matrices(self, views: Mapping[str, View]) -> tuple[View, View]:
        """a, and b as batches (n, groups, k, columns): how it is walked through inside of a batch says `windows`."""
        a, b = views["a"], views["b"]
        groups, _, depth = a.shape
        step = b.shape[1] // groups * b.strides[1]
        columns = math.prod(b.shape[2 + len(self._taps(b)) :])
        return a, View((b.shape[0], groups, depth, columns), (b.strides[0], step, 0, 0), b.offset)

    def windows(self, views: Mapping[str, View]) -> Mapping[str, int]:
        """Lengths and strides of the axes of taps and windows, the last ones last."""
        b = views["b"]
        rank = len(self._taps(b))
        missing = MOST_AXES - rank
        taps, outs = ((*(1,) * missing, *b.shape[at : at + rank]) for at in (2, 2 + rank))
        by_tap, by_out = ((*(0,) * missing, *b.strides[at : at + rank]) for at in (2, 2 + rank))
        numbers = {f"TAP{axis}": n for axis, n in enumerate(taps, 1)}
        numbers |= {f"OUT{axis}": n for axis, n in enumerate(outs, 1) if axis > 1}
        strides = {"BY_CHANNEL": b.strides[1]}
        strides |= {f"BY_TAP{axis}": step for axis, step in enumerate(by_tap, 1)}
        strides |= {f"BY_OUT{axis}": step for axis, step in enumerate(by_out, 1)}
        return numbers | {name: step % _WORD for name, step in strides.items()}

    def matrix_values(self, views: Mapping[str, View], named: Mapping[str, HostArray]) -> tuple[HostArray, HostArray]:
        a, b = views["a"], views["b"]
        _, matrix = self.matrices(views)
        return named["a"][indices(a)], named["b"][indices(b)].reshape(matrix.shape)

    def shaders(self) -> dict[str, Shader]:
        return products.window_shaders(len(self.others), products.SCALARS)

    def tunings(self) -> Mapping[str, Mapping[str, int]]:
        return TUNINGS

    def binaries(self, digest: str) -> ProductBinaries:
        return ProductBinaries(self.tail, self.value, digest, _TEMPLATE)

    def cases(self) -> tuple[Case, ...]:
        """One, whose operands are as long as their views ask for."""
        listed = {operand.name: operand.view for operand in self.operands}
        shapes: dict[str, Shape] = {
            name: (1,) if view is None else (max(1, view.bounds()[1] + 1),) for name, view in listed.items()
        }
        return (Case(shapes, dict.fromkeys(self.tail.scalars, 1.5)),)

    def _taps(self, b: View) -> Shape:
        return b.shape[2 : 2 + (len(b.shape) - 2) // 2]
