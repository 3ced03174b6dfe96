"""gemv_grouped: row vectors times the matrices of their groups, result[t, j] = sum over i of x[t, i] A[group[t], i, j].

Each has the bits of gemv. A vector of a group that there is not has zeros for a result.
"""

from dataclasses import replace
from typing import Final

import numpy as np

from dashi.errors import ShapeError
from dashi.kernels.abi import Binding, Call, Case, Kernel, Limits, Operand, Plan, Scalar, Shader
from dashi.kernels.linear import _columns as columns
from dashi.kernels.portable import canon, contract
from dashi.types import Cost, HostArray, Shape


def require_groups(groups: int, vectors: int) -> None:
    """An error for vectors, but no matrix."""
    if vectors and not groups:
        raise ShapeError(f"kernel 'gemv_grouped': {vectors} vectors, and no matrix.", "pass at least one matrix.")


def reference(x: HostArray, a: HostArray, group: HostArray) -> HostArray:
    require_groups(len(a), len(x))
    result: HostArray = np.zeros((len(x), a.shape[2]), x.dtype)
    for t, which in enumerate(group.tolist()):
        if which < len(a):
            result[t] = canon(contract(x[t], a[which]))
    return result


def plan(call: Call) -> Plan:
    require_groups(call.dims["g"], call.dims["b"])
    plain = columns.plan(call)
    dispatches = tuple(
        replace(
            each, buffers=(*each.buffers[:2], "group", each.buffers[2]), push={**each.push, "groups": call.dims["g"]}
        )
        for each in plain.dispatches
    )
    return Plan(dispatches, plain.scratch)


def cost(call: Call) -> Cost:
    return columns.cost(call)


def prefer(limits: Limits, variant: str) -> str:
    """As for gemv_batched: many vectors at once."""
    return "direct" if limits.software else "narrow_8"


def _grouped(shader: Shader) -> Shader:
    """A shader of columns that looks its matrix up."""
    buffers = (*shader.buffers[:2], Binding("group", "u32"), shader.buffers[2])
    return replace(shader, buffers=buffers, push=(*shader.push, Scalar("groups", "u32")))


def case(vectors: int, groups: int, depth: int, n: int) -> Case:
    """Random groups, and one that there is not."""

    def fill(rng: np.random.Generator, shape: Shape) -> HostArray:
        chosen = rng.integers(0, groups, shape, dtype=np.uint64).astype(np.uint32)
        chosen[::5] = (groups, 0xFFFFFFFF, 0)[groups % 3]
        return chosen

    shapes = {"x": (vectors, depth), "A": (groups, depth, n), "group": (vectors,)}
    return Case(shapes, fill={"group": fill})


TUNINGS: Final = {name: columns.TUNINGS[name] for name in ("narrow_8", "direct")}

KERNEL = Kernel(
    summary="row vectors times the matrices of their groups: sum over i of x[t, i] A[group[t], i, j]",
    inputs=(
        Operand("x", shape=("b", "k")),
        Operand("A", shape=("g", "k", "n")),
        Operand("group", "u32", ("b",)),
    ),
    outputs=(Operand("result", shape=("b", "n")),),
    shaders={name: _grouped(shader) for name, shader in columns.shaders().items()},
    plan=plan,
    reference=reference,
    cost=cost,
    cases=(
        case(1, 1, 1, 1), case(7, 3, 64, 32), case(5, 4, 65, 33), case(12, 2, 70, 4), case(3, 2, 1000, 7),
        case(2, 3, 4097, 3), case(6, 5, 4100, 8), case(0, 2, 5, 4), case(3, 2, 0, 2),
    ),
    bench=(case(8, 64, 4096, 4096), case(64, 8, 2048, 2048)),
    tunings=TUNINGS,
    prefer=prefer,
)  # fmt: skip
