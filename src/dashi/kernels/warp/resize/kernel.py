"""resize: planes of another size, each element a mix of two neighbours along the rows, and of two rows.

Tables say which: entry i of `places` and `weights` has two neighbours along the columns and their weights, for row i of
the result; behind these `height` entries are those along the rows, for each of its `width` columns. A neighbour of
weight 0 that is the second does not matter, whatever it is: so a table of one neighbour each picks elements. Places
past the end are the last.
"""

from dataclasses import replace
from typing import Any

import numpy as np

from dashi.errors import ShapeError
from dashi.kernels._work import LOCAL, LOOP_PUSH, loop_plan
from dashi.kernels.abi import Binding, Call, Case, Kernel, Operand, Plan, Scalar, Shader, Spec
from dashi.kernels.portable import canon, mul
from dashi.types import Cost, HostArray, Shape


def require_tables(x: Shape, height: int, width: int, edges: int) -> None:
    """An error where the tables have other lengths than the result, or nothing to show."""
    if edges != height + width:
        raise ShapeError(
            f"kernel 'resize': tables of {edges} entries for {height} rows and {width} columns.",
            "pass an entry for each row, and then one for each column.",
        )
    if 0 in x[1:] and height * width:
        raise ShapeError(f"kernel 'resize': planes of {x[1:]} have nothing to show.", "pass planes that are not empty.")


def between(p: Any, q: Any, weights: Any) -> HostArray:
    """Two neighbours with their weights, in the last axis."""
    first, second = weights[..., 0], weights[..., 1]
    mixed = canon(mul(p, np.broadcast_to(first, p.shape)) + mul(q, np.broadcast_to(second, q.shape)))
    return np.where(np.broadcast_to(second == 0, p.shape), p, mixed)


def reference(x: HostArray, places: HostArray, weights: HostArray, height: int, width: int) -> HostArray:
    require_tables(x.shape, height, width, len(places))
    if x.shape[0] * height * width == 0:
        return np.empty((x.shape[0], height, width), x.dtype)
    values, mixing = canon(x), canon(weights)
    rows = np.minimum(places[:height], x.shape[1] - 1).astype(np.int64)
    columns = np.minimum(places[height:], x.shape[2] - 1).astype(np.int64)
    with np.errstate(all="ignore"):
        lines = between(values[:, :, columns[:, 0]], values[:, :, columns[:, 1]], mixing[height:])
        return canon(between(lines[:, rows[:, 0]], lines[:, rows[:, 1]], mixing[:height, None]))


def plan(call: Call) -> Plan:
    height, width = call.dims["height"], call.dims["width"]
    require_tables(call.shapes["x"], height, width, call.dims["edges"])
    push = {"h": call.dims["h"], "w": call.dims["w"]}
    planned = loop_plan(call, call.size("result"), ("x", "places", "weights", "result"), push)
    spec = {"HEIGHT": height, "WIDTH": width}
    return Plan(tuple(replace(dispatch, spec=spec) for dispatch in planned.dispatches))


def cost(call: Call) -> Cost:
    size = call.size("result")
    return Cost(9 * size, call.bytes("x", "result"), int(size > 0))


def case(shape: Shape, height: int, width: int, past: bool = False) -> Case:
    """Random neighbours; some past the end, where that is asked for."""
    edges = height + width

    def places(rng: np.random.Generator, shape_of_table: Shape) -> HostArray:
        most = np.where(np.arange(edges) < height, shape[1], shape[2])[:, None]
        return (rng.random(shape_of_table) * (2 * most if past else most)).astype(np.uint32)

    def weights(rng: np.random.Generator, shape_of_table: Shape) -> HostArray:
        second = rng.random(edges) * (rng.random(edges) > 0.3)
        return np.stack([1 - second, second], -1).reshape(shape_of_table)

    tables = {"places": (edges, 2), "weights": (edges, 2)}
    return Case({"x": shape, **tables}, {"height": height, "width": width}, {"places": places, "weights": weights})


KERNEL = Kernel(
    summary="planes of another size, each element a mix of neighbours that tables name",
    inputs=(
        Operand("x", shape=("planes", "h", "w")),
        Operand("places", "u32", ("edges", 2)),
        Operand("weights", shape=("edges", 2)),
    ),
    outputs=(Operand("result", shape=("planes", "height", "width")),),
    scalars=(Scalar("height", "u32", doc="rows of the result"), Scalar("width", "u32", doc="columns of the result")),
    shaders={
        "main": Shader(
            (Binding("x"), Binding("places", "u32"), Binding("weights"), Binding("result", access="write")),
            (*LOOP_PUSH, Scalar("h", "u32"), Scalar("w", "u32")),
            (Spec("HEIGHT", 1), Spec("WIDTH", 1)),
            local=(LOCAL, 1, 1),
            includes=("portable.glsl",),
        )
    },
    plan=plan,
    reference=reference,
    cost=cost,
    cases=(
        case((2, 5, 7), 10, 14), case((3, 8, 8), 3, 5), case((1, 1, 64), 1, 130, past=True), case((1, 65, 63), 200, 70),
        case((0, 4, 4), 8, 8), case((2, 3, 3), 0, 5),
    ),
    bench=(case((64, 512, 512), 1024, 1024),),
)  # fmt: skip
