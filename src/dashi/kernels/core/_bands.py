"""Band energies on a graph: reference, operands and cases of bands_step and bands_rollout.

A state is energies E[v, b] of nodes and bands. A step is diffusion in each band, and coupling across bands at a node:

    D_b[E](v) = E_b(v) + kappa_b * sum over neighbours u of w(v, u) (E_b(u) - E_b(v))
    E_b(v) becomes D_b[E](v) + strength * sum over c != b of coupling[b, c] phi(E_c(v)) |D_c[E](v)|

with phi one of the nonlinearities of dashi.kernels._psi. The neighbours of node v are the entries from offsets[v] up to
offsets[v + 1], in the order in which they are stored. Both sums are tree64; in the second the term of b itself is +0,
at its place. A node with more than `longest` neighbours, a list that leaves the entries and a neighbour that does not
exist give NaN.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from dashi.errors import InputError
from dashi.kernels import _psi as nonlinear
from dashi.kernels._lists import direct_trips, lists_at, prepare_sums, require_lists
from dashi.kernels._work import ceil_div
from dashi.kernels.abi import Binding, Call, Case, Limits, Number, Operand, Scalar
from dashi.kernels.portable import canon, mul, sum64
from dashi.types import HostArray, Shape

INPUTS: Final = (
    Operand("energy", shape=("m", "v", "bands")),
    Operand("weights", shape=("edges",)),
    Operand("neighbours", "u32", ("edges",)),
    Operand("offsets", "u32", ("ends",)),
    Operand("kappa", shape=("bands",)),
    Operand("coupling", shape=("bands", "bands")),
)
GRAPH: Final = (
    Binding("energy"), Binding("weights"), Binding("neighbours", "u32"), Binding("offsets", "u32"), Binding("kappa"),
)  # fmt: skip
SCALARS: Final = (
    Scalar("strength", doc="of the coupling across bands"),
    Scalar("longest", "u32", 4096, "no node has more neighbours"),
    *nonlinear.SCALARS,
)
COUNTS: Final = tuple(Scalar(name, "u32") for name in ("nodes", "bands", "edges", "longest"))


def require(kernel: str, call: Call) -> None:
    """What a plan asks first."""
    require_fit(kernel, call.dims["v"], call.dims["ends"], call.scalars)


def require_fit(kernel: str, nodes: int, ends: int, scalars: Mapping[str, Number]) -> None:
    """What the shapes alone cannot say."""
    require_lists(kernel, "offsets", nodes, ends, int(scalars["longest"]))
    nonlinear.require_psi(kernel, scalars)
    if scalars["strength"] != scalars["strength"]:
        raise InputError(f"kernel {kernel!r}: strength is not a number.", "pass the strength of the coupling.")


def numbers(call: Call) -> dict[str, Number]:
    """Values of `COUNTS`."""
    sizes = {"nodes": call.dims["v"], "bands": call.dims["bands"], "edges": call.dims["edges"]}
    return {**sizes, "longest": call.scalars["longest"]}


def phi_numbers(call: Call) -> dict[str, Number]:
    """Values of the nonlinearity's push constants."""
    return {s.name: call.scalars[s.name] for s in nonlinear.NUMBERS}


class BandGraph:
    """The neighbour lists, prepared once: of every edge its node, its neighbour (nodes where none is), its weight."""

    def __init__(self, weights: HostArray, neighbours: HostArray, offsets: HostArray, longest: int) -> None:
        edges = lists_at(offsets, weights.size, longest)
        self.nodes = len(edges.whole)
        self.owner = edges.owner
        self.weights = canon(weights)[edges.order]
        self.other: npt.NDArray[Any] = np.minimum(neighbours.astype(np.int64)[edges.order], self.nodes)
        self.sums = prepare_sums(edges)

    def change(self, energy: HostArray) -> HostArray:
        """Sums of w(v, u) (E(u) - E(v)) for energies (m, bands, nodes)."""
        m, bands, _ = energy.shape
        nan = np.asarray(np.nan, energy.dtype)
        there = np.concatenate([energy, np.full((m, bands, 1), nan)], axis=2)[:, :, self.other]
        moved = mul(self.weights, canon(there - energy[:, :, self.owner]))
        products = np.where(self.other < self.nodes, moved, nan)
        total = self.sums(products.reshape(m * bands, len(self.owner)))
        return canon(total).reshape(m, bands, self.nodes)


def advance(arrays: tuple[HostArray, ...], steps: int, scalars: Mapping[str, Number]) -> HostArray:
    """The states after `steps` steps; the arrays are those of `INPUTS`."""
    energy, weights, neighbours, offsets, kappa, coupling = arrays
    graph = BandGraph(weights, neighbours, offsets, int(scalars["longest"]))
    strength = canon(np.asarray(scalars["strength"], energy.dtype))
    spread, across = canon(kappa)[:, None], canon(coupling)
    own = np.eye(len(kappa), dtype=bool)
    state = canon(np.ascontiguousarray(energy.transpose(0, 2, 1)))
    with np.errstate(all="ignore"):
        for _ in range(steps):
            diffused = canon(state + mul(spread, graph.change(state)))
            phi = nonlinear.apply_psi(int(scalars["psi"]), state, scalars["alpha"], scalars["low"], scalars["high"])
            gain = canon(mul(phi, np.abs(diffused)))
            terms = mul(across[:, :, None], gain[:, None])
            driven = sum64(np.where(own[:, :, None], np.zeros((), energy.dtype), terms), axis=2)
            state = canon(diffused + mul(strength, canon(driven)))
    return np.ascontiguousarray(state.transpose(0, 2, 1))


def case(
    m: int, nodes: int, bands: int, each: int, scalars: Mapping[str, Number], reach: int = 0, longest: int | None = None
) -> Case:
    """About `each` neighbours of every node, from 2 each down to 0 and again; below `reach`, or all real."""
    counts = np.resize(np.arange(2 * each + 1)[::-1], nodes)
    edges = int(counts.sum())

    def offsets(rng: np.random.Generator, shape: Shape) -> HostArray:
        return np.concatenate([[0], np.cumsum(counts)]).astype(np.uint32)

    def neighbours(rng: np.random.Generator, shape: Shape) -> HostArray:
        return rng.integers(0, reach or max(1, nodes), shape, dtype=np.uint32)

    shapes: dict[str, Shape] = {"energy": (m, nodes, bands), "weights": (edges,), "neighbours": (edges,)}
    most = int(counts.max(initial=0)) if longest is None else longest
    return Case(
        {**shapes, "offsets": (nodes + 1,), "kappa": (bands,), "coupling": (bands, bands)},
        {"strength": 0.1, **scalars, "longest": most},
        {"offsets": offsets, "neighbours": neighbours},
    )


def lanes_of(size: int, lanes: int, limits: Limits) -> int:
    """Invocations of the workgroup that rolls a state out: no more than it has numbers."""
    return max(1, min(lanes, limits.invocations, 1 << max(0, size - 1).bit_length()))


def step_trips(size: int, bands: int, longest: int, local: int) -> int:
    """Loop iterations of a step in one workgroup."""
    return 1 + ceil_div(size, local) * (2 + direct_trips(longest) + direct_trips(bands))


def too_large(size: int, bands: int, longest: int, element: int, limits: Limits, lanes: int) -> str:
    """Why a state cannot be rolled out in one workgroup; empty if it can."""
    if 3 * size * element > limits.shared_bytes:
        return (
            f"a state of {size} energies needs {3 * size * element} bytes of shared memory in bands_rollout, "
            f"and the device has {limits.shared_bytes}"
        )
    local = lanes_of(size, lanes, limits)
    trips = step_trips(size, bands, longest, local) + 2 * ceil_div(size, local)
    if trips > limits.loop_trips:
        return f"a step needs {trips} loop iterations in one workgroup, and the device allows {limits.loop_trips}"
    return ""
