"""What becomes of packed params: tiles where a kernel reads them, numbers elsewhere."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from dashi.graph._lines import BodyLine
from dashi.graph._views import is_dense
from dashi.graph.builder import typed_node
from dashi.graph.ir import Graph, Node, free_name
from dashi.graph.ops._fused import MAP, lines_of, map_attributes, views_of
from dashi.graph.ops.contractions import GROUPED
from dashi.graph.ops.movement import is_alias, node_view
from dashi.graph.ops.packed import (
    PACKED_GATHER,
    PACKED_GROUPED,
    PACKED_PRODUCT,
    TILES,
    WIDENED,
    format_of,
    has_packed_kernels,
)
from dashi.kernels.abi import View


def is_packed(graph: Graph, node: Node, rank: int = 2) -> bool:
    """Whether a node is the numbers, of so many axes, of a param whose rows kernels read packed."""
    if node.op != "dequantize" or len(node.shape) != rank or not has_packed_kernels(format_of(node)):
        return False
    return graph[node.inputs[0]].op == "param"


def place_packed_weights(graph: Graph) -> Graph:
    """Products and gathers that read tiles; other numbers of packed params are stored widened."""
    placed = _Placed(graph)
    for node in graph.nodes:
        placed.add(node)
    return graph.with_nodes(placed.nodes.values())


@dataclass
class _Placed:
    """The nodes so far, by name, and the tiles of params."""

    graph: Graph
    nodes: dict[str, Node] = field(default_factory=dict[str, Node])
    tiles: dict[tuple[str, str], Node] = field(default_factory=dict[tuple[str, str], Node])

    def add(self, node: Node) -> None:
        """What stands at a node's place, behind what it needs."""
        if node.op == "product" and self._multiplies(node):
            self._product(node)
        elif node.op == "gather" and not node.get("axis") and is_packed(self.graph, self.graph[node.inputs[0]]):
            self._gather(node)
        elif node.op == GROUPED.name and (numbers := self._matrices(node)) is not None:
            self._grouped(node, numbers)
        elif self._is_widened(node):
            source, attributes = self.graph[node.inputs[0]], dict[str, object](node.attributes)
            self.nodes[node.name] = typed_node(WIDENED, node.name, node.inputs, [source.type], attributes)
        else:
            self.nodes[node.name] = node

    def _multiplies(self, node: Node) -> bool:
        """Whether a product's second factor is the transpose of packed rows."""
        weights, view = self.graph[node.inputs[1]], views_of(node)[1]
        if not is_packed(self.graph, weights) or node.dtype.name != "f32":
            return False
        n, k = weights.shape
        return view == View((k, n), (1, k), 0)

    def _matrices(self, node: Node) -> Node | None:
        """The packed matrices (groups, n, k), the transpose of whose copy a product in groups reads; else None."""
        copy = self.graph[node.inputs[1]]
        if copy.op != MAP.name or len(copy.inputs) != 1 or [line.op for line in lines_of(copy)] != ["copy"]:
            return None
        numbers = self.graph[copy.inputs[0]]
        if not is_packed(self.graph, numbers, 3) or not numbers.type.size:
            return None
        groups, n, k = numbers.shape
        return numbers if views_of(copy)[0] == View((groups, k, n), (n * k, 1, k), 0) else None

    def _grouped(self, node: Node, numbers: Node) -> None:
        tiles = self._tiles(numbers)
        names = (node.inputs[0], tiles.name, node.inputs[2])
        attributes: dict[str, object] = {"format": tiles.get("format"), "n": numbers.shape[1]}
        types = [self.nodes[name].type for name in names]
        self.nodes[node.name] = typed_node(PACKED_GROUPED, node.name, names, types, attributes)

    def _is_widened(self, node: Node) -> bool:
        if node.op != "dequantize" or node.name in self.graph.results:
            return False
        return self.graph[node.inputs[0]].op == "param"

    def _product(self, node: Node) -> None:
        """A product without a tail, and the tail as a map."""
        tiles, lines, views = self._tiles(self.graph[node.inputs[1]]), lines_of(node, "tail"), views_of(node)
        x = self._dense(node.inputs[0], views[0])
        name = self._free(f"{node.name}.product") if lines else node.name
        attributes: dict[str, object] = {"format": tiles.get("format"), "tail": [], "views": [None, None]}
        product = typed_node(PACKED_PRODUCT, name, (x.name, tiles.name), [x.type, tiles.type], attributes)
        self.nodes[name] = product
        if not lines:
            return
        read = sorted({word for line in lines for word in line.operands if _is_input(word)})
        words = {word: f"in{place}" for place, word in enumerate(read, 1)} | {"value": "in0"}
        renamed = [replace(line, operands=tuple(words.get(w, w) for w in line.operands)) for line in lines]
        places = [int(word[2:]) for word in read]
        sources = [product, *(self.nodes[node.inputs[place]] for place in places)]
        shown = map_attributes(renamed, [None, *(views[place] for place in places)])
        self.nodes[node.name] = typed_node(
            MAP, node.name, tuple(s.name for s in sources), [s.type for s in sources], shown
        )

    def _gather(self, node: Node) -> None:
        numbers, index = (self.graph[name] for name in node.inputs)
        tiles = self._tiles(numbers)
        if index.op == "view" and not is_alias(self.graph, index):
            index = self._dense(index.inputs[0], node_view(index))
        attributes: dict[str, object] = {"format": tiles.get("format"), "k": numbers.shape[1]}
        self.nodes[node.name] = typed_node(
            PACKED_GATHER, node.name, (tiles.name, index.name), [tiles.type, index.type], attributes
        )

    def _tiles(self, numbers: Node) -> Node:
        """The tiles of a param, once for all that read them."""
        param, form = self.graph[numbers.inputs[0]], format_of(numbers).name
        if (param.name, form) not in self.tiles:
            node = typed_node(TILES, self._free(f"{param.name}.tiles"), (param.name,), [param.type], {"format": form})
            self.tiles[param.name, form] = self.nodes[node.name] = node
        return self.tiles[param.name, form]

    def _dense(self, name: str, view: View | None) -> Node:
        """A value as a view shows it, in memory of its own unless all of it is shown in order."""
        source = self.nodes[name]
        if view is None or (is_dense(view) and view.shape == source.shape):
            return source
        attributes = map_attributes([BodyLine("copy", ("in0",))], [view])
        node = typed_node(MAP, self._free(f"{name}.dense"), (name,), [source.type], attributes)
        self.nodes[node.name] = node
        return node

    def _free(self, name: str) -> str:
        return free_name(name, {*self.graph.by_name, *self.nodes})


def _is_input(word: str) -> bool:
    return word.startswith("in") and word[2:].isdigit()
