"""Parts of a value that lie one behind another in memory: ranges along its axes, and index maps cut to them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from dashi.kernels._fused_abi import stretched
from dashi.kernels.abi import View
from dashi.types import Shape


@dataclass(frozen=True)
class Region:
    """The elements from `starts` on, `sizes` of them along each axis."""

    starts: tuple[int, ...]
    sizes: Shape

    @property
    def size(self) -> int:
        return math.prod(self.sizes)

    def along(self, axis: int, start: int, size: int) -> Region:
        """A part of it along one axis, counted from its own start."""
        starts, sizes = list(self.starts), list(self.sizes)
        starts[axis], sizes[axis] = starts[axis] + start, size
        return replace(self, starts=tuple(starts), sizes=tuple(sizes))


def whole(shape: Shape) -> Region:
    """All of a value of that shape."""
    return Region((0,) * len(shape), shape)


def restricted(view: View, region: Region) -> View:
    """What a view, whose axes are those of the region, names of it."""
    offset = view.offset + sum(a * step for a, step in zip(region.starts, view.strides, strict=True))
    return View(region.sizes, view.strides, offset)


def cut_view(view: View, shape: Shape, region: Region) -> View:
    """A view stretched to a shape, cut to a region of that."""
    return restricted(stretched(view, shape), region)


def regions(
    region: Region, fits: Callable[[Region], bool], unit: int, axes: Sequence[int] | None = None
) -> Iterator[Region] | None:
    """The fewest parts of a region, in C order, that fit, each of whole rows and beginning at a multiple of `unit`
    elements; None where there are none. Only `axes` are cut, all before unless they are named."""
    if fits(region):
        return iter((region,))
    free = range(len(region.sizes)) if axes is None else axes
    axis = next((a for a in range(len(region.sizes)) if region.sizes[a] > 1), None)
    if axis is None or axis not in free:
        return None
    row = math.prod(region.sizes[axis + 1 :])
    step, length = unit // math.gcd(unit, row), region.sizes[axis]
    if step >= length or not fits(region.along(axis, 0, step)):
        return _rows_apart(region, axis, fits, unit, axes) if step == 1 else None
    count = step
    while count * 2 < length and fits(region.along(axis, 0, count * 2)):
        count *= 2
    grow = count // 2 // step * step
    while grow >= step:
        if count + grow < length and fits(region.along(axis, 0, count + grow)):
            count += grow
        grow = grow // 2 // step * step
    parts = [region.along(axis, start, min(count, length - start)) for start in range(0, length, count)]
    return iter(parts) if all(map(fits, parts)) else None


def _rows_apart(
    region: Region, axis: int, fits: Callable[[Region], bool], unit: int, axes: Sequence[int] | None
) -> Iterator[Region] | None:
    """Rows that do not fit, each cut along the axes behind."""
    rows = [regions(region.along(axis, i, 1), fits, unit, axes) for i in range(region.sizes[axis])]
    return None if any(row is None for row in rows) else (part for row in rows if row is not None for part in row)
