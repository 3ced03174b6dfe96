"""gemm_coop: result (fp32) = a b with halves, by the device's matrix units.

Products are exact in fp32; their sums are rounded as the device likes, so the bits are the device's. m and n are
multiples of 16, k is any. Where they are whole tiles, nothing is guarded: the tunings say how. `subgroups` are
cooperative matrices of 16 x 16 x 16, staged through shared memory, and `early` the same, loaded while those before them
are multiplied; `tensors` are as large as a tile, which some devices have too, and are read through tensor layouts. With
k a multiple of 8 rows of a are read 16 bytes at a time.
"""

from collections.abc import Mapping
from typing import Final

import numpy as np

from dashi.errors import ShapeError
from dashi.kernels.abi import Binding, Call, Case, Dispatch, Kernel, Operand, Plan, Scalar, Shader
from dashi.kernels.reductions import shares
from dashi.types import Array, Cost

SIDE: Final = 16
HALVES: Final = 8
LANES: Final = 32
"""Invocations for each patch: one subgroup, if subgroups are that wide."""
TURNS: Final = 4
"""Subgroups of 128 invocations, the widest, have four patches each."""
NUMBERS: Final = ("m", "n", "k", "across", "down", "first_tile", "tiles", "stride")
SHARED_BYTES: Final = 49152


def _subgroups(rows: int, columns: int, depth: int, down: int, across: int, slots: int, early: int) -> dict[str, int]:
    """Tiles: rows, columns, how much of k at a time, patches one below another and side by side, buffers, and whether
    fragments are loaded ahead."""
    tile = {"rows": rows, "columns": columns, "depth": depth}
    return {**tile, "down": down, "across": across, "slots": slots, "early": early}


def _tensors(rows: int, columns: int, depth: int, local: int) -> dict[str, int]:
    """Without buffers the driver stages by itself."""
    return {"rows": rows, "columns": columns, "depth": depth, "local": local, "slots": 0}


GUARDED: Final = _subgroups(128, 128, 32, 2, 4, 1, 0)
"""For sizes that are not whole tiles."""
TUNINGS: Final[dict[str, dict[str, int]]] = {
    "early_128x256x32": _subgroups(128, 256, 32, 2, 4, 1, 1),
    "subgroups_128x128x32": _subgroups(128, 128, 32, 2, 2, 1, 0),
    "tensors_128x256x64": _tensors(128, 256, 64, 256),
}
FEATURES: Final = frozenset({"coop_matrix", "fp16", "memory_model", "subgroup"})


def _shader(sizes: Mapping[str, int], left: str = "V", full: int = 1) -> Shader:
    right = "u32x4"
    tile = f"#define BM {sizes['rows']}\n#define BN {sizes['columns']}\n#define BK {sizes['depth']}\n"
    if sizes["slots"]:
        file, local, needed = "subgroups.comp", LANES * sizes["down"] * sizes["across"], FEATURES
        tile += f"#define PM {sizes['down']}\n#define PN {sizes['across']}\n"
        tile += f"#define SLOTS {sizes['slots']}\n#define FULL {full}\n#define EARLY {sizes['early']}\n"
    else:
        file, local, needed = "workgroup.comp", sizes["local"], FEATURES | {"coop_matrix2"}
        left, right = "T", "T"
    return Shader(
        (Binding("a", left), Binding("b", right), Binding("result", "f32", "write")),
        tuple(Scalar(name, "u32") for name in NUMBERS),
        local=(local, 1, 1),
        file=file,
        features=needed,
        extensions=("GL_EXT_control_flow_attributes",),
        prelude=tile,
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


def _choose(call: Call) -> tuple[str, Mapping[str, int]]:
    """The shader, and the sizes of its tiles."""
    sizes = dict(call.tuning or next(iter(TUNINGS.values())))
    m, n, k = (call.dims[name] for name in ("m", "n", "k"))
    whole = k > 0 and not (m % sizes["rows"] or n % sizes["columns"] or k % (sizes["depth"] * max(sizes["slots"], 1)))
    if whole and _shared(sizes) <= call.limits.shared_bytes:
        return next(name for name, numbers in TUNINGS.items() if numbers == sizes), sizes
    return "any" if k % HALVES else "guarded", GUARDED


def _trips(k: int, sizes: Mapping[str, int]) -> int:
    """Loop iterations of an invocation for a tile, short loops that are unrolled included."""
    rows, columns, depth = sizes["rows"], sizes["columns"], sizes["depth"]
    steps = -(-k // depth)
    if not sizes["slots"]:
        return 1 + steps
    patches = sizes["down"] * sizes["across"]
    high, wide = rows // sizes["down"] // SIDE, columns // sizes["across"] // SIDE
    brought = (rows + columns) * depth // HALVES // (LANES * patches)
    per_step = 1 + 2 * brought + depth // SIDE * (3 + high + wide * (2 + high))
    turn = 3 + 2 * high * (1 + wide) + 8 * brought + high + wide + steps * per_step
    return 1 + TURNS * (1 + turn)


def _shared(sizes: Mapping[str, int]) -> int:
    """Bytes of shared memory: tiles of a and of b, with a vector more in each row."""
    rows, columns, depth = sizes["rows"], sizes["columns"], sizes["depth"]
    return 2 * sizes["slots"] * (rows * (depth + HALVES) + depth * (columns + HALVES))


def reference(a: Array, b: Array) -> Array:
    wide = np.float64 if a.dtype == np.float64 else np.float32
    return np.matmul(a.astype(wide), b.astype(wide))


def cost(call: Call) -> Cost:
    m, n, k = (call.dims[name] for name in ("m", "n", "k"))
    moved = call.bytes("a", "b") + 4 * m * n
    return Cost(2 * m * n * k, moved, len(plan(call).dispatches)) if m * n else Cost()


SIZES: Final = (
    (16, 16, 16), (16, 0, 16), (0, 16, 16), (128, 128, 128), (144, 40, 272), (256, 77, 128), (16, 1000, 32),
    (272, 513, 144), (32, 1, 48), (256, 192, 512), (1280, 64, 256), (128, 64, 256), (256, 32, 256),
)  # fmt: skip
"""(m, k, n)"""

KERNEL = Kernel(
    summary="matrix product of halves, summed in fp32 by the device's matrix units",
    inputs=(Operand("a", shape=("m", "k")), Operand("b", shape=("k", "n"))),
    outputs=(Operand("result", "f32", shape=("m", "n")),),
    shaders={
        **{name: _shader(sizes) for name, sizes in TUNINGS.items()},
        "guarded": _shader(GUARDED, full=0),
        "any": _shader(GUARDED, "T", full=0),
    },
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
