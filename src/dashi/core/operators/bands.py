"""Band energies on a graph: diffusion in each band, coupling across bands. Trees, paths and rings to put them on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dashi.core.operators._lists import index_array, longest_of, number_array, pointer_array
from dashi.core.operators._nonlinearity import Nonlinearity
from dashi.core.operators.operator import Constants, Operator, Parameter, Strategy, float_array
from dashi.core.operators.sparse import list_microseconds, require_strategy
from dashi.errors import InputError, ShapeError
from dashi.kernels._lists import ROLLOUT_TUNINGS, prefer_rollout
from dashi.kernels.abi import Limits
from dashi.kernels.core import _bands as band_kernels
from dashi.runtime.array import Array
from dashi.runtime.device import Device, Step
from dashi.types import HostArray, Shape


@dataclass(frozen=True, eq=False)
class NodeGraph:
    """The neighbours of every node: those of node v are neighbours[offsets[v]:offsets[v + 1]], with these weights."""

    weights: HostArray
    neighbours: HostArray
    offsets: HostArray

    @property
    def nodes(self) -> int:
        return len(self.offsets) - 1


def graph(nodes: int, edges: Any, weights: Any = None, dtype: Any = np.float64) -> NodeGraph:
    """The graph with these edges (pairs of nodes), each of them both ways, with weight 1 unless weights are given."""
    pairs = np.asarray(edges, dtype=np.int64).reshape(-1, 2)
    one_way = np.ones(len(pairs), dtype) if weights is None else np.asarray(weights, dtype)
    if one_way.shape != (len(pairs),):
        raise ShapeError(f"there are {one_way.size} weights for {len(pairs)} edges.", "pass one for each edge.")
    ends = index_array("edges", np.concatenate([pairs[:, 0], pairs[:, 1]]), nodes)
    others = index_array("edges", np.concatenate([pairs[:, 1], pairs[:, 0]]), nodes)
    both = np.concatenate([one_way, one_way])
    order = np.lexsort((others, ends))
    offsets = np.searchsorted(ends[order], np.arange(nodes + 1)).astype(np.uint32)
    return NodeGraph(both[order], others[order], offsets)


def path(nodes: int, dtype: Any = np.float64) -> NodeGraph:
    """A line of nodes, each next to the one before."""
    _require_nodes(nodes, 1)
    return graph(nodes, [(v, v + 1) for v in range(nodes - 1)], dtype=dtype)


def ring(nodes: int, dtype: Any = np.float64) -> NodeGraph:
    """A circle of at least three nodes."""
    _require_nodes(nodes, 3)
    return graph(nodes, [(v, (v + 1) % nodes) for v in range(nodes)], dtype=dtype)


def tree(depth: int, arity: int, dtype: Any = np.float64) -> NodeGraph:
    """A tree of `depth` levels below its root, node 0, each node with `arity` children; numbered level by level."""
    if depth < 0 or arity < 1:
        raise InputError(f"there is no tree of depth {depth} and arity {arity}.", "pass depth >= 0 and arity >= 1.")
    nodes = sum(arity**level for level in range(depth + 1))
    return graph(nodes, [((v - 1) // arity, v) for v in range(1, nodes)], dtype=dtype)


def _require_nodes(nodes: int, least: int) -> None:
    if nodes < least:
        raise InputError(f"{nodes} nodes are too few.", f"pass at least {least}.")


class Bands(Operator):
    """Band energies E of shape (nodes, bands) that diffuse in each band and drive each other across bands.

        D_b[E](v) = E_b(v) + kappa[b] * sum over neighbours u of w(v, u) (E_b(u) - E_b(v))
        E_b(v) becomes D_b[E](v) + strength * sum over c != b of coupling[b, c] phi(E_c(v)) |D_c[E](v)|

    Diffusion is stable where kappa times the largest sum of a node's weights is at most 1/2. `phi` is none, squash,
    softplus or clamp. One node without neighbours gives plain band energies of shape (1, bands).
    """

    kind = "bands"

    def __init__(
        self,
        graph: NodeGraph,
        kappa: Any,
        coupling: Any,
        strength: float,
        phi: str = "none",
        *,
        alpha: float = 1.0,
        low: float = -1.0,
        high: float = 1.0,
    ) -> None:
        rates = float_array("kappa", kappa)
        self._kappa = number_array("kappa", rates, (rates.size,))
        count, kind = rates.size, rates.dtype
        if count == 0:
            raise ShapeError("there are no bands.", "pass kappa with one number for each band.")
        self._weights = number_array("weights", graph.weights, (np.size(graph.weights),), kind)
        self._offsets = pointer_array("offsets", graph.offsets, self._weights.size)
        self._neighbours = index_array("neighbours", graph.neighbours, len(self._offsets) - 1)
        if self._neighbours.shape != self._weights.shape or len(self._offsets) < 2:
            raise ShapeError(
                f"there are {self._neighbours.size} neighbours, {self._weights.size} weights and "
                f"{len(self._offsets) - 1} nodes.",
                "pass one weight for each neighbour, and at least one node.",
            )
        self._coupling = number_array("coupling", coupling, (count, count), kind)
        self._strength = float(strength)
        if not np.isfinite(self._strength):
            raise InputError(f"strength is {strength}.", "pass a finite number.")
        self._phi = Nonlinearity(phi, alpha, low, high)
        self._longest = longest_of(self._offsets)

    @property
    def shape(self) -> Shape:
        return (len(self._offsets) - 1, self._kappa.size)

    @property
    def arrays(self) -> Mapping[str, HostArray]:
        graph = {"weights": self._weights, "neighbours": self._neighbours, "offsets": self._offsets}
        return {**graph, "kappa": self._kappa, "coupling": self._coupling}

    @property
    def parameters(self) -> Mapping[str, Parameter]:
        return {"strength": self._strength, **self._phi.parameters("phi")}

    @property
    def dtype(self) -> np.dtype[Any]:
        return self._kappa.dtype

    @classmethod
    def restore(cls, arrays: Mapping[str, HostArray], parameters: Mapping[str, Parameter]) -> Operator:
        phi = Nonlinearity.restore("phi", parameters)
        graph = NodeGraph(arrays["weights"], arrays["neighbours"], arrays["offsets"])
        strength = float(parameters["strength"])
        return Bands(graph, arrays["kappa"], arrays["coupling"], strength, phi.name, **phi.numbers)

    @property
    def _scalars(self) -> dict[str, Any]:
        return {"strength": self._strength, "longest": self._longest, **self._phi.scalars}

    def _operands(self, constants: Constants, source: Array) -> tuple[Array, ...]:
        names = ("weights", "neighbours", "offsets", "kappa", "coupling")
        return (source, *(constants[name] for name in names))

    def step(self, device: Device, constants: Constants, source: Array, target: Array) -> Sequence[Step]:
        return [device.bind("bands_step", *self._operands(constants, source), out=target, **self._scalars)]

    def step_many(
        self,
        device: Device,
        constants: Constants,
        source: Array,
        target: Array,
        flag: Array,
        count: int,
        strategy: Strategy,
    ) -> Step:
        require_strategy(self, strategy, device.limits)
        operands = self._operands(constants, source)
        return device.bind("bands_rollout", *operands, out=target, steps=count, **self._scalars)

    def unsupported_reason(self, strategy: Strategy, limits: Limits, states: int) -> str:
        if strategy == "workgroup":
            nodes, count = self.shape
            element = self.dtype.itemsize
            lanes = ROLLOUT_TUNINGS[prefer_rollout(limits, "f32" if element == 4 else "f64")]["lanes"]
            return band_kernels.too_large(nodes * count, count, self._longest, element, limits, lanes)
        return "" if strategy == "stepwise" else "band energies have no kernel that passes tagged values"

    def estimated_us(self, strategy: Strategy, limits: Limits, states: int) -> float:
        nodes, count = self.shape
        products = count * (self._weights.size + nodes * count)
        moved = self._weights.size * (self.dtype.itemsize + 4) + nodes * count * self.dtype.itemsize
        # Step by step there are two dispatches, each with a barrier.
        again = 0.0 if strategy == "workgroup" else 30.0 if limits.software else 2.0
        return list_microseconds(strategy, limits, states, products, moved) + again
