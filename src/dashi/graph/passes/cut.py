"""Values that a device cannot bind whole are cut by rows: kernels take them one part after another. No bit changes.

Every part is a node of its own that reads windows of what is too large, and is computed where it lies in the whole
(`ops/_pieces.py`): neither costs a step. What is read but not computed row by row is rearranged: a product whose second
operand is too large is computed transposed, and rows gathered from a table that is too large are looked up in each
window of it, where all but one give zero."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from dashi.errors import LimitError
from dashi.graph._lines import BodyLine, fusable, number_operand
from dashi.graph._views import attribute_view, dense, is_dense, transposed, view_attribute
from dashi.graph.builder import typed_node
from dashi.graph.ir import Graph, Node, free_name
from dashi.graph.ops._fused import MAP, PRODUCT, map_attributes, row_operands, views_of
from dashi.graph.ops._leaves import PACKED
from dashi.graph.ops._pieces import IN_PLACE, PIECES, WINDOW
from dashi.graph.ops.indexing import TAKE
from dashi.graph.ops.movement import node_view
from dashi.graph.passes._regions import Region, cut_view, regions, restricted, whole
from dashi.graph.passes.schedule import STORED
from dashi.graph.registry import get
from dashi.kernels._fused_abi import stretched
from dashi.kernels.abi import View
from dashi.types import Shape

_MOST_SUMMED: Final = 8
"""Windows of a table whose rows are added up at a time."""
Operands = Callable[[Region], Sequence[View]]
"""The index maps through which a node reads its inputs, for a region of its result."""


@dataclass(frozen=True)
class CutLargeValues:
    """`limit` is the most bytes that the device binds as one array; parts begin at multiples of `alignment` bytes."""

    limit: int
    alignment: int = 256
    name: str = "cut"

    def run(self, graph: Graph) -> Graph:
        if all(node.type.nbytes <= self.limit for node in graph.nodes):
            return graph
        return _Cutter(self, graph).run()


class _Cutter:
    """The nodes of a graph as they are rewritten, in order."""

    def __init__(self, options: CutLargeValues, graph: Graph) -> None:
        self.options, self.graph = options, graph
        self.nodes: dict[str, Node] = {}
        self.windows: dict[tuple[str, int, int], str] = {}
        self.taken = set(graph.by_name)

    def run(self) -> Graph:
        for title, name in self.graph.outputs:
            self._require_small(self.graph[name], f"the result {title!r}", "slice it into several results.")
        for node in self.graph.of("input"):
            self._require_small(node, f"the input {node.name!r}", "pass it in several inputs, or make it a param.")
        for node in self.graph.nodes:
            self._rewrite(node)
        return self.graph.with_nodes(self.nodes.values())

    def _require_small(self, node: Node, what: str, fix: str) -> None:
        if self._large(node):
            raise LimitError(f"{what} ({node.type}) has {node.type.nbytes} bytes; {self._bound}.", fix)

    @property
    def _bound(self) -> str:
        return f"the device binds {self.options.limit} at once"

    def _large(self, node: Node) -> bool:
        return node.type.nbytes > self.options.limit

    def _origin(self, name: str) -> Node:
        """The value in memory that a name stands for."""
        node = self.nodes[name] if name in self.nodes else self.graph[name]
        whole_view = node.op == "view" and is_dense(node_view(node)) and node.type.size == self._size(node.inputs[0])
        return self._origin(node.inputs[0]) if whole_view else node

    def _size(self, name: str) -> int:
        return (self.nodes[name] if name in self.nodes else self.graph[name]).type.size

    def _rewrite(self, node: Node) -> None:
        reads = [self._origin(name) for name in node.inputs]
        if node.op in (*STORED, *IN_PLACE, "input", "join") or not any(map(self._large, (node, *reads))):
            self.add(node)
        elif node.op == MAP.name:
            self._map(node)
        elif node.op == "rows":
            self._rows(node)
        elif node.op == PRODUCT.name and node.get("shape") is None:
            self._product(node)
        elif node.op == TAKE.name:
            self._take(node)
        else:
            raise self._refusal(node)

    def _refusal(self, node: Node) -> LimitError:
        large = [n for n in (node, *map(self._origin, node.inputs)) if self._large(n)]
        return LimitError(
            f"node {node.name!r} ({node.op}) works on {', '.join(f'{n.name} ({n.type})' for n in large)}, which has "
            f"{large[0].type.nbytes} bytes; {self._bound}, and rows of it do not fit either.",
            "cut the value into parts by rows, and use the op on each.",
        )

    # New nodes

    def add(self, node: Node) -> Node:
        self.nodes[node.name] = node
        return node

    def free(self, name: str) -> str:
        title = free_name(name, self.taken)
        self.taken.add(title)
        return title

    def new(self, op: str, name: str, inputs: Sequence[str], attributes: dict[str, object]) -> Node:
        """A new node, of a name that is free."""
        return self.add(self._typed(op, self.free(name), inputs, attributes))

    def _typed(self, op: str, name: str, inputs: Sequence[str], attributes: dict[str, object]) -> Node:
        return typed_node(get(op), name, tuple(inputs), [self.nodes[n].type for n in inputs], attributes)

    def window(self, name: str, lowest: int, highest: int) -> tuple[str, int]:
        """A list of the elements of a value from one to another, and the element at which it begins: a little before,
        as alignment asks."""
        source = self.nodes[name]
        unit = max(1, self.options.alignment // source.dtype.size)
        first, count = lowest // unit * unit, highest + 1 - lowest // unit * unit
        key = (name, first, count)
        if key not in self.windows:
            part = self.new(WINDOW.name, f"{name}.window", (name,), {"first": first, "count": count})
            self.windows[key] = part.name
        return self.windows[key], first

    def windowed(self, name: str, view: View) -> tuple[str, View]:
        """An operand and its view, through a window where it is too large."""
        origin = self._origin(name)
        if not self._large(origin) or math.prod(view.shape) == 0:
            return name, view
        lowest, highest = view.bounds()
        window, first = self.window(origin.name, lowest, highest)
        return window, View(view.shape, view.strides, view.offset - first)

    def fits(self, node: Node, operands: Operands, spread: int | None) -> Callable[[Region], bool]:
        """Whether a device can bind a region of a node's result, and what is read for it: all but the input of the
        number `spread`."""
        origins = [self._origin(name) for name in node.inputs]
        limit, room = self.options.limit, self.options.limit - self.options.alignment

        def check(region: Region) -> bool:
            if region.size * node.dtype.size > limit:
                return False
            for k, (origin, view) in enumerate(zip(origins, operands(region), strict=True)):
                lowest, highest = view.bounds()
                if k != spread and self._large(origin) and (highest + 1 - lowest) * origin.dtype.size > room:
                    return False
            return True

        return check

    def by_rows(self, node: Node, operands: Operands, axes: Sequence[int], spread: int | None = None) -> bool:
        """Replaces a node by parts of its result, cut along some axes, if it can be. Parts that could not begin where
        arrays may are computed elsewhere, and copied. Where `spread` names the second factor of a product, which no
        rows can be cut of, the parts are cut by columns, too."""
        unit = self.options.alignment // math.gcd(self.options.alignment, node.dtype.size)
        fits = self.fits(node, operands, spread)
        parted = regions(whole(node.shape), fits, unit, axes)
        in_place = parted is not None
        parted = parted if parted is not None else regions(whole(node.shape), fits, 1, axes)
        if parted is None:
            return False
        parts: list[str] = []
        for region in parted:
            listed = enumerate(zip(node.inputs, operands(region), strict=True))
            pairs = [(n, view) if k == spread else self.windowed(n, view) for k, (n, view) in listed]
            read, views = [name for name, _ in pairs], [view_attribute(view) for _, view in pairs]
            attributes: dict[str, object] = {**dict(node.attributes), "views": views}
            part = self._typed(node.op, self.free(f"{node.name}.part"), read, attributes)
            parts.append(part.name)
            if spread is None:
                self.add(part)
            elif not self._by_columns(part):
                return False
        if len(parts) == 1:
            self.add(replace(self.nodes.pop(parts[0]), name=node.name))
        elif in_place:
            self.add(self._typed(PIECES.name, node.name, parts, {"shape": node.shape}))
        else:
            self._joined(node, parts)
        return True

    def _joined(self, node: Node, parts: Sequence[str]) -> None:
        """The node as a view of copies of its parts."""
        lists: list[str] = []
        for part in parts:
            flat = view_attribute(dense((self.nodes[part].type.size,)))
            lists.append(self.new("view", f"{part}.list", (part,), {"view": flat}).name)
        joined = self.new("join", f"{node.name}.joined", lists, {})
        self.add(self._typed("view", node.name, (joined.name,), {"view": view_attribute(dense(node.shape))}))

    # The ops

    def _map(self, node: Node) -> None:
        views = self._views(node)

        def operands(region: Region) -> list[View]:
            return [cut_view(view, node.shape, region) for view in views]

        if not self.by_rows(node, operands, range(len(node.shape))):
            raise self._refusal(node)

    def _views(self, node: Node) -> list[View]:
        sources = [self.graph[name] if name in self.graph.by_name else self.nodes[name] for name in node.inputs]
        return [view or dense(s.shape) for view, s in zip(views_of(node), sources, strict=True)]

    def _rows(self, node: Node) -> None:
        full, axes, late = row_operands(node, [self.nodes[name].type for name in node.inputs])
        views = self._views(node)

        def operands(region: Region) -> list[View]:
            before = _reduced_region(region, full, axes)
            return [
                cut_view(view, node.shape, region) if k in late else cut_view(view, full, before)
                for k, view in enumerate(views)
            ]

        cut = [axis for axis in range(len(node.shape)) if len(node.shape) < len(full) or axis not in axes]
        if not self.by_rows(node, operands, cut):
            raise self._refusal(node)

    def _product(self, node: Node) -> None:
        operands, rows = _product_operands(node.shape, self._views(node)), range(len(node.shape) - 1)
        if not self.by_rows(node, operands, rows) and not self.by_rows(node, operands, rows, spread=1):
            raise self._refusal(node)

    def _by_columns(self, node: Node) -> bool:
        """A product as the transposed product of its transposed operands, which is cut along their rows."""
        views, rank = self._views(node), len(node.shape)
        right = self._rows_of(node.inputs[1], views[1])
        if right is None:
            return False
        turned = [right[1], *map(_turned, (views[0], *(stretched(view, node.shape) for view in views[2:])))]
        attributes: dict[str, object] = {"tail": node.get("tail"), "views": [view_attribute(v) for v in turned]}
        name, inputs = self.free(f"{node.name}.turned"), (right[0], node.inputs[0], *node.inputs[2:])
        product = self._typed(PRODUCT.name, name, inputs, attributes)
        if not self.by_rows(product, _product_operands(product.shape, turned), range(rank - 1)):
            return False
        back = map_attributes([BodyLine("copy", ("in0",))], [_turned(dense(product.shape))])
        self.add(self._typed(MAP.name, node.name, (name,), back))
        return True

    def _rows_of(self, name: str, view: View) -> tuple[str, View] | None:
        """A param that is the second operand of a product, transposed, in C order: itself, or packed so."""
        source = self._origin(name)
        if len(view.shape) != 2 or source.op not in ("param", "packed", "widened"):
            return None
        turned = _turned(view)
        if is_dense(turned):
            return source.name, dense(turned.shape)
        if source.op == "widened":
            return None
        if source.op == "packed":
            inner = attribute_view(source.get("view"))
            if inner is None or not is_dense(view) or view.shape != inner.shape:
                return None
            source, turned = self.nodes[source.inputs[0]], _turned(inner)
            if is_dense(turned) and math.prod(turned.shape) == source.type.size:
                return source.name, dense(turned.shape)
        packed = self.new(PACKED.name, f"{source.name}.rows", (source.name,), {"view": view_attribute(turned)})
        return packed.name, dense(turned.shape)

    def _take(self, node: Node) -> None:
        """Places are looked up in every window of the table; one of them gives the value, the others zero."""
        table, index = self._origin(node.inputs[0]), node.inputs[1]
        if self._large(node) or self._large(self._origin(index)) or not fusable(_sum_of(node), [node.type, node.type]):
            raise self._refusal(node)
        room = (self.options.limit - self.options.alignment) // table.dtype.size
        starts = range(0, table.type.size, room // self.options.alignment * self.options.alignment)
        rows: list[str] = []
        for start in starts:
            window, first = self.window(table.name, start, min(start + starts.step, table.type.size) - 1)
            less = [BodyLine("sub", ("in0", number_operand(first, "u32")))]
            places = self.new(MAP.name, f"{node.name}.places", (index,), map_attributes(less, [None]))
            rows.append(self.new(TAKE.name, f"{node.name}.taken", (window, places.name), {}).name)
        while len(rows) > 1:
            parts, rows = rows[:_MOST_SUMMED], rows[_MOST_SUMMED:]
            words = [f"in{k}" for k in range(len(parts))]
            lines = [BodyLine("add", ("in0", "in1"))]
            lines += [BodyLine("add", (f"v{k}", word)) for k, word in enumerate(words[2:])]
            attributes = map_attributes(lines, [None] * len(parts))
            if rows:
                rows.insert(0, self.new(MAP.name, f"{node.name}.sum", parts, attributes).name)
            else:
                self.add(self._typed(MAP.name, node.name, parts, attributes))


def _sum_of(node: Node) -> Node:
    return Node(node.name, "add", (), node.type)


def _turned(view: View) -> View:
    """A view with its last two axes exchanged."""
    rank = len(view.shape)
    return transposed(view, (*range(rank - 2), rank - 1, rank - 2))


def _reduced_region(region: Region, shape: Shape, reduced: Sequence[int]) -> Region:
    """What a region of the result of a reduction, or of a map over rows, is made of: whole rows of that shape."""
    keeps = len(region.sizes) == len(shape)
    left = iter(zip(region.starts, region.sizes, strict=True))
    pairs: list[tuple[int, int]] = []
    for axis, length in enumerate(shape):
        own = next(left) if keeps or axis not in reduced else (0, length)
        pairs.append((0, length) if axis in reduced else own)
    return Region(tuple(a for a, _ in pairs), tuple(n for _, n in pairs))


def _product_operands(shape: Shape, views: Sequence[View]) -> Operands:
    """The index maps of a product's operands for a region of a result of that shape."""
    *batch, m, n = shape

    def operands(region: Region) -> list[View]:
        z = Region(region.starts[:-2], region.sizes[:-2])
        (i, j), (rows, columns) = region.starts[-2:], region.sizes[-2:]
        k = views[0].shape[-1]
        left = stretched(views[0], (*batch, m, k))
        right = stretched(views[1], (*batch, k, n))
        return [
            restricted(left, Region((*z.starts, i, 0), (*z.sizes, rows, k))),
            restricted(right, Region((*z.starts, 0, j), (*z.sizes, k, columns))),
            *(cut_view(view, shape, region) for view in views[2:]),
        ]

    return operands
