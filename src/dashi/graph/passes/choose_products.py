"""Which kernels multiply matrices, where that is not the portable ones' own choice: the class `device`, and drivers
that translate Vulkan to another interface.

A portable graph keeps its bits: `scalar` sums in the order tree64, too."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, Literal

from dashi.errors import GraphError
from dashi.graph._lines import BodyLine
from dashi.graph._views import dense, view_attribute
from dashi.graph.builder import typed_node
from dashi.graph.ir import Graph, Node, free_name
from dashi.graph.ops._fused import MAP, PRODUCT, lines_of, map_attributes, views_of
from dashi.graph.ops._leaves import PACKED
from dashi.graph.ops.elementwise import CAST
from dashi.graph.ops.products import HALVES_PRODUCT, is_matrix_product
from dashi.kernels import get as kernel
from dashi.kernels.abi import variant_features

if TYPE_CHECKING:
    from dashi.runtime.device import Device

Method = Literal["fast", "coop", "scalar"]
NOTE: Final = "product: "
_SIDE: Final = 16
"""Results of cooperative matrices are made of squares of so many rows."""
_TRANSLATING: Final = ("moltenvk", "dozen")
"""Drivers that translate: shared memory and barriers cost more there than they bring."""
REASONS: Final = {
    "fast": "any order of summation, with fused multiply-adds, as the class device may",
    "coop": "factors rounded to halves, summed in fp32 by cooperative matrices, as asked for",
    "scalar": "one result per invocation, for a driver that translates Vulkan to another interface",
}


@dataclass(frozen=True)
class ChooseProducts:
    """Products take the method, where it computes them; the notes say where and why."""

    method: Method
    name: str = "choose_products"

    def run(self, graph: Graph) -> Graph:
        nodes: dict[str, Node] = {}
        notes: list[str] = []
        for node in graph.nodes:
            if node.op != PRODUCT.name:
                nodes[node.name] = node
                continue
            method, reason = self._method(graph, node)
            notes.append(f"{NOTE}{node.name}: {reason}")
            if method == "coop":
                _by_halves(graph, nodes, node)
            else:
                attributes: dict[str, object] = {**dict(node.attributes), **({"method": method} if method else {})}
                types = [source.type for source in graph.sources(node)]
                nodes[node.name] = typed_node(PRODUCT, node.name, node.inputs, types, attributes)
        return replace(graph.with_nodes(nodes.values()), notes=(*graph.notes, *notes))

    def _method(self, graph: Graph, node: Node) -> tuple[Method | None, str]:
        types = [source.type for source in graph.sources(node)]
        whole = views_of(node)[:2] == (None, None) and is_matrix_product(types) and node.get("shape") is None
        if self.method == "scalar":
            if whole and not lines_of(node, "tail"):
                return "scalar", REASONS["scalar"]
            return None, "sums in the order tree64; no scalar kernel has a tail, or strides"
        if self.method == "coop":
            missing = _unsuited(node, whole)
            return ("fast", f"{REASONS['fast']}; {missing}") if missing else ("coop", REASONS["coop"])
        return "fast", REASONS["fast"]


def product_passes(device: Device, class_: str, matmul: str | None) -> tuple[ChooseProducts, ...]:
    """The pass that a class needs on a device, if it needs one."""
    if matmul not in (None, "coop"):
        raise GraphError(f"there is no matmul={matmul!r}.", 'leave it away, or ask for "coop".')
    if matmul == "coop":
        if class_ != "device":
            raise GraphError(
                'matmul="coop" rounds factors to halves: it is not portable.', 'compile with class_="device".'
            )
        coop = kernel("gemm_coop")
        if missing := sorted(variant_features(coop, coop.dtypes[0]) - device.features):
            raise GraphError(
                f'matmul="coop" needs {", ".join(missing)}, which {device.info.name!r} lacks.', "leave it away here."
            )
        return (ChooseProducts("coop"),)
    if any(word in device.info.driver.lower() for word in _TRANSLATING):
        return (ChooseProducts("scalar"),)
    return (ChooseProducts("fast"),) if class_ == "device" else ()


def _unsuited(node: Node, whole: bool) -> str:
    """Why cooperative matrices do not compute a product; empty where they do."""
    if not whole:
        return "cooperative matrices need two matrices as they lie in memory"
    rows = math.prod(node.shape[:-1])
    if node.dtype.name != "f32" or rows % _SIDE or node.shape[-1] % _SIDE or not rows:
        return f"cooperative matrices make results of fp32 in squares of {_SIDE} x {_SIDE}"
    return ""


def _by_halves(graph: Graph, nodes: dict[str, Node], node: Node) -> None:
    """A product as that of its factors, rounded to halves, and a map for its tail."""

    def add(op: str, inputs: Sequence[str], attributes: dict[str, object]) -> Node:
        from dashi.graph.registry import get

        name = free_name(f"{node.name}.{op}", {*graph.by_name, *nodes})
        nodes[name] = typed_node(get(op), name, tuple(inputs), [nodes[n].type for n in inputs], attributes)
        return nodes[name]

    factors: list[str] = []
    for source in graph.sources(node)[:2]:
        stored = source.op in ("param", PACKED.name)
        if stored:  # rounded once, when it is set
            origin = source if source.op == "param" else graph[source.inputs[0]]
            view = source.get("view") if source.op == PACKED.name else view_attribute(dense(source.shape))
            factors.append(add(PACKED.name, (origin.name,), {"view": view, "to": "f16"}).name)
        else:
            factors.append(add(CAST.name, (source.name,), {"to": "f16"}).name)
    value = add(HALVES_PRODUCT.name, factors, {})
    words = {"value": "in0", **{f"in{k}": f"in{k - 1}" for k in range(2, len(node.inputs))}}
    lines = [
        BodyLine(line.op, tuple(words.get(w, w) for w in line.operands), line.to) for line in lines_of(node, "tail")
    ]
    inputs = (value.name, *node.inputs[2:])
    views = [dense(node.shape), *views_of(node)[2:]]
    attributes = map_attributes(lines or [BodyLine("copy", ("in0",))], views)
    nodes[node.name] = typed_node(MAP, node.name, inputs, [nodes[n].type for n in inputs], attributes)
