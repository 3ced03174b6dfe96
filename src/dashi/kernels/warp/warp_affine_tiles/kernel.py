"""warp_affine_tiles: an affine warp whose matrix [a b tx; c d ty] changes from tile to tile.

The six numbers of pixel (x, y) stand in table[y // tile, x // tile]. They act on the coordinates of the whole plane, as
in `warp_affine`: a table of equal matrices gives the same bits.
"""

import numpy as np

from dashi.errors import InputError, ShapeError
from dashi.kernels._raster import LOCAL, PUSH, SPEC, TUNINGS, blocks, require_sides
from dashi.kernels._work import ceil_div
from dashi.kernels.abi import Binding, Call, Case, Kernel, Operand, Plan, Scalar, Shader, Spec
from dashi.kernels.portable import canon, mul
from dashi.kernels.warp._bilinear import CLAMP, WRAP, ZERO, bilinear, require_border
from dashi.types import Cost, HostArray, Shape


def require_tiles(tile: int, plane: Shape, tiles: Shape) -> None:
    """Refuses a table that does not cover the plane."""
    if tile < 1:
        raise InputError(f"kernel 'warp_affine_tiles': tiles of {tile} pixels hold nothing.", "pass tile >= 1.")
    needed = tuple(ceil_div(side, tile) for side in plane)
    if any(have < need for have, need in zip(tiles, needed, strict=True)):
        raise ShapeError(
            f"kernel 'warp_affine_tiles': {tiles[0]} x {tiles[1]} tiles of {tile} "
            f"do not cover {plane[0]} x {plane[1]}.",
            f"pass a table of shape {(*needed, 6)}.",
        )


def reference(field: HostArray, table: HostArray, tile: int, border: int = CLAMP) -> HostArray:
    require_tiles(tile, field.shape, table.shape[:2])
    if field.size == 0:
        return field.copy()
    rows, columns = np.indices(field.shape, np.int64)
    m = np.moveaxis(canon(table)[rows // tile, columns // tile], -1, 0)
    x, y = columns.astype(field.dtype), rows.astype(field.dtype)
    u = (mul(m[0], x) + mul(m[1], y)) + m[2]
    v = (mul(m[3], x) + mul(m[4], y)) + m[5]
    return bilinear(field, u, v, border)


def plan(call: Call) -> Plan:
    h, w = call.dims["h"], call.dims["w"]
    tile, border = int(call.scalars["tile"]), int(call.scalars["border"])
    require_border("warp_affine_tiles", border)
    require_sides("warp_affine_tiles", h, w)
    require_tiles(tile, (h, w), (call.dims["tiles_y"], call.dims["tiles_x"]))
    if h * w == 0:
        return Plan(())
    shared = blocks(call, h, w)
    numbers = {"tiles_x": call.dims["tiles_x"]}
    return Plan((shared.dispatch(("field", "table", "result"), numbers, {"BORDER": border, "TILE": tile}),))


def cost(call: Call) -> Cost:
    n = call.size("field")
    used = 6 * -(-call.dims["h"] // int(call.scalars["tile"])) * -(-call.dims["w"] // int(call.scalars["tile"]))
    moved = call.bytes("field", "result") + used * call.dtype.size
    return Cost(flops=21 * n, bytes=moved if n else 0, dispatches=int(n > 0))


def near_identity(rng: np.random.Generator, shape: Shape) -> HostArray:
    """Small turns, stretches and shifts, a different one for every tile."""
    return np.array([1, 0, 0, 0, 1, 0]) + rng.normal(0, 1, shape) * np.array([0.05, 0.05, 3, 0.05, 0.05, 3])


def case(h: int, w: int, tile: int, border: int, wild: bool = False, spare: int = 0) -> Case:
    """A table near the identity, or, if `wild`, one that the harness fills like the field."""
    tiles = (ceil_div(h, tile) + spare, ceil_div(w, tile) + spare, 6)
    shapes = {"field": (h, w), "table": tiles}
    return Case(shapes, {"tile": tile, "border": border}, {} if wild else {"table": near_identity})


KERNEL = Kernel(
    summary="2-D affine warp with a matrix [a b tx; c d ty] for each tile",
    inputs=(Operand("field", shape=("h", "w")), Operand("table", shape=("tiles_y", "tiles_x", 6))),
    outputs=(Operand("result", shape=("h", "w")),),
    shaders={
        "main": Shader(
            (Binding("field"), Binding("table"), Binding("result", access="write")),
            (*PUSH, Scalar("tiles_x", "u32")),
            (SPEC, Spec("BORDER", CLAMP), Spec("TILE", 16)),
            local=LOCAL,
            includes=("portable.glsl",),
            extensions=("GL_EXT_control_flow_attributes",),
        )
    },
    plan=plan,
    reference=reference,
    cost=cost,
    # Few tile sizes: each is a pipeline of its own.
    cases=(
        case(1, 1, 16, CLAMP), case(32, 64, 16, CLAMP), case(33, 65, 16, WRAP), case(17, 31, 16, CLAMP, wild=True),
        case(70, 31, 7, ZERO, wild=True, spare=1), case(5, 300, 16, WRAP, wild=True), case(0, 4, 16, ZERO),
        case(129, 127, 7, ZERO),
    ),
    bench=(case(4096, 4096, 64, CLAMP), case(4096, 4096, 16, CLAMP)),
    scalars=(
        Scalar("tile", "u32", 16, "side of the square tiles in pixels"),
        Scalar("border", "u32", CLAMP, "outside the plane: 0 its nearest pixel, 1 zeros, 2 the plane again"),
    ),
    tunings=TUNINGS,
)  # fmt: skip
