"""gemm_coop: result (fp32) = a b with halves, by the device's matrix units (cooperative matrices of 16 x 16 x 16).

Products are exact in fp32; their sums are rounded as the device likes, so the bits are the device's. m and n are
multiples of 16, k is any; the tiles are full where m and n are multiples of 128 or 256. With k a multiple of 8 rows of
a are read 16 bytes at a time.
"""

from typing import Final

import numpy as np

from dashi.errors import ShapeError
from dashi.kernels.abi import Binding, Call, Case, Dispatch, Kernel, Operand, Plan, Scalar, Shader
from dashi.kernels.reductions import shares
from dashi.types import Array, Cost

SIDE: Final = 16
LOCAL: Final = 256
HALVES: Final = 8
PATCHES: Final = 8
FRAGMENTS: Final = 4
"""A subgroup has 4 fragments of 16 rows one below another in every tile."""
TURNS: Final = 4
"""Subgroups of 128 invocations, the widest, are two to a workgroup: each makes four of the eight patches."""
NUMBERS: Final = ("m", "n", "k", "across", "down", "first_tile", "tiles", "stride")
SHARED_BYTES: Final = 49152
TUNINGS: Final[dict[str, dict[str, int]]] = {
    "tiles_256x128x32": {"rows": 256, "columns": 128, "depth": 32},
    "tiles_128x256x32": {"rows": 128, "columns": 256, "depth": 32},
    "tiles_128x128x32": {"rows": 128, "columns": 128, "depth": 32},
    "tiles_128x128x64": {"rows": 128, "columns": 128, "depth": 64},
}
"""Results of a workgroup, and how much of k it takes at a time."""
SMALLEST: Final = "tiles_128x128x32"


def _shader(file: str, left: str) -> Shader:
    return Shader(
        (Binding("a", left), Binding("b", "u32x4"), Binding("result", "f32", "write")),
        tuple(Scalar(name, "u32") for name in NUMBERS),
        local=(LOCAL, 1, 1),
        file=file,
        features=frozenset({"coop_matrix", "fp16", "memory_model", "subgroup"}),
        extensions=("GL_EXT_control_flow_attributes",),
        shared_bytes=SHARED_BYTES,
    )


def plan(call: Call) -> Plan:
    m, n, k = (call.dims[name] for name in ("m", "n", "k"))
    if m % SIDE or n % SIDE:
        raise ShapeError(
            f"kernel 'gemm_coop': a result of {m} x {n} is not made of blocks of {SIDE} x {SIDE}.",
            f"pad the rows of a and the columns of b with zeros to multiples of {SIDE}.",
        )
    if m * n == 0:
        return Plan(())
    name, sizes = _choose(call)
    across, down = -(-n // sizes["columns"]), -(-m // sizes["rows"])
    numbers = {"m": m, "n": n, "k": k, "across": across, "down": down}
    dispatches = [
        Dispatch(
            name,
            ("a", "b", "result"),
            {**numbers, "first_tile": share.first, "tiles": share.beyond, "stride": share.groups},
            (share.groups, 1, 1),
            share.trips,
        )
        for share in shares(across * down, _trips(k, sizes), call.limits)
    ]
    return Plan(tuple(dispatches))


def _choose(call: Call) -> tuple[str, dict[str, int]]:
    """The shader, and the sizes of its tiles."""
    sizes = dict(call.tuning or next(iter(TUNINGS.values())))
    if call.dims["k"] % HALVES or _shared(sizes) > call.limits.shared_bytes:
        sizes = TUNINGS[SMALLEST]
    name = f"tiles_{sizes['rows']}x{sizes['columns']}x{sizes['depth']}"
    return "any" if call.dims["k"] % HALVES else name, sizes


def _trips(k: int, sizes: dict[str, int]) -> int:
    """Loop iterations of an invocation for a tile, short loops that are unrolled included."""
    rows, columns, depth = sizes["rows"], sizes["columns"], sizes["depth"]
    high = rows // 64
    wide = columns * high // PATCHES // SIDE
    brought = (rows + columns) * depth // HALVES // LOCAL
    per_step = 1 + 2 * brought + depth // SIDE * (1 + FRAGMENTS + wide * (1 + FRAGMENTS))
    turn = 3 + 2 * FRAGMENTS * (1 + wide) + brought + -(-k // depth) * per_step
    return 1 + TURNS * (1 + turn)


def _shared(sizes: dict[str, int]) -> int:
    """Bytes of shared memory: a tile of a and one of b, with a vector more in each row."""
    rows, columns, depth = sizes["rows"], sizes["columns"], sizes["depth"]
    return 2 * (rows * (depth + HALVES) + depth * (columns + HALVES))


def reference(a: Array, b: Array) -> Array:
    wide = np.float64 if a.dtype == np.float64 else np.float32
    return np.matmul(a.astype(wide), b.astype(wide))


def cost(call: Call) -> Cost:
    m, n, k = (call.dims[name] for name in ("m", "n", "k"))
    moved = call.bytes("a", "b") + 4 * m * n
    return Cost(2 * m * n * k, moved, len(plan(call).dispatches)) if m * n else Cost()


SIZES: Final = (
    (16, 16, 16), (16, 0, 16), (0, 16, 16), (128, 128, 128), (144, 40, 272), (256, 77, 128), (16, 1000, 32),
    (272, 513, 144), (32, 1, 48),
)  # fmt: skip
"""(m, k, n)"""

KERNEL = Kernel(
    summary="matrix product of halves, summed in fp32 by the device's matrix units",
    inputs=(Operand("a", shape=("m", "k")), Operand("b", shape=("k", "n"))),
    outputs=(Operand("result", "f32", shape=("m", "n")),),
    shaders={**{name: _shader(f"{name}.comp", "V") for name in TUNINGS}, "any": _shader("any.comp", "T")},
    plan=plan,
    reference=reference,
    cost=cost,
    cases=tuple(Case({"a": (m, k), "b": (k, n)}) for m, k, n in SIZES),
    bench=(Case({"a": (4096, 4096), "b": (4096, 4096)}), Case({"a": (8192, 8192), "b": (8192, 8192)})),
    dtypes=("f16",),
    portable=False,
    bound=1e-4,
    tunings=TUNINGS,
)
