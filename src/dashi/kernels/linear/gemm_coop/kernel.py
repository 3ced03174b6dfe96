"""gemm_coop: result (fp32) = a b with halves, by the device's matrix units.

Products are exact in fp32; their sums are rounded as the device likes, so the bits are the device's. m and n are
multiples of 16, k is any. Where they are whole tiles, nothing is guarded: the tunings say how. Cooperative matrices of
16 x 16 x 16 are staged through shared memory, and so are the results, which reach memory by whole rows of 128 bytes
(410 us instead of 444 for 4096 x 4096 x 4096 on an H200). `staged` loads matrices while those before them are
multiplied, `plain` when they are needed. With k a multiple of 8 rows of a are read 16 bytes at a time.
"""

from collections.abc import Mapping
from typing import Final

import numpy as np

from dashi.errors import ShapeError
from dashi.kernels._work import ceil_div, split_work
from dashi.kernels.abi import Binding, Call, Case, Dispatch, Kernel, Operand, Plan, Scalar, Shader
from dashi.types import Cost, HostArray

SIDE: Final = 16
HALVES: Final = 8
VECTOR: Final = 16
"""Bytes of a vector: so many halves, or half as many results."""
DEPTH: Final = 32
"""Length of k that is in shared memory at a time."""
STRIP_WIDE: Final = 8
"""Vectors in each of the 16 rows of results that a subgroup writes at a time."""
LANES: Final = 32
"""Invocations for each patch: one subgroup, if subgroups are that wide."""
TURNS: Final = 4
"""Subgroups of 128 invocations, the widest, have four patches each."""
NARROWEST: Final = 8
"""Invocations of the smallest subgroups."""
NUMBERS: Final = ("m", "n", "k", "across", "down", "first_tile", "tiles", "stride")
SHARED_BYTES: Final = 49152


def _tile(rows: int, columns: int, *, early: int) -> dict[str, int]:
    """Tiles of rows x columns, in patches of 64 x 64, and whether fragments are loaded before they are needed."""
    return {"rows": rows, "columns": columns, "down": rows // 64, "across": columns // 64, "early": early}


GUARDED: Final = {**_tile(128, 128, early=0), "across": 4}
"""For sizes that are not whole tiles."""
TUNINGS: Final[dict[str, dict[str, int]]] = {
    "staged_128x256x32": _tile(128, 256, early=1),
    "plain_128x128x32": _tile(128, 128, early=0),
}
FEATURES: Final = frozenset({"coop_matrix", "fp16", "memory_model", "subgroup"})


def _shader(sizes: Mapping[str, int], left: str = "V", full: int = 1) -> Shader:
    numbers = {
        "BM": sizes["rows"], "BN": sizes["columns"], "BK": DEPTH, "PM": sizes["down"], "PN": sizes["across"],
        "EARLY": sizes["early"], "FULL": full,
    }  # fmt: skip
    return Shader(
        (Binding("a", left), Binding("b", "u32x4"), Binding("result", "u32x4" if full else "f32", "write")),
        tuple(Scalar(name, "u32") for name in NUMBERS),
        local=(LANES * sizes["down"] * sizes["across"], 1, 1),
        file="subgroups.comp",
        features=FEATURES,
        extensions=("GL_EXT_control_flow_attributes",),
        prelude="".join(f"#define {name} {number}\n" for name, number in numbers.items()),
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
    across, down = ceil_div(n, sizes["columns"]), ceil_div(m, sizes["rows"])
    numbers = {"m": m, "n": n, "k": k, "across": across, "down": down}
    dispatches = [
        Dispatch(
            name,
            ("a", "b", "result"),
            {**numbers, "first_tile": share.first, "tiles": share.beyond, "stride": share.groups},
            (share.groups, 1, 1),
            share.trips,
        )
        for share in split_work(across * down, _trips(k, sizes), call.limits)
    ]
    return Plan(tuple(dispatches))


def _choose(call: Call) -> tuple[str, Mapping[str, int]]:
    """The shader, and the sizes of its tiles."""
    sizes = dict(call.tuning or next(iter(TUNINGS.values())))
    m, n, k = (call.dims[name] for name in ("m", "n", "k"))
    whole = k > 0 and not (m % sizes["rows"] or n % sizes["columns"] or k % DEPTH)
    if whole and _shared(sizes) <= call.limits.shared_bytes:
        return next(name for name, numbers in TUNINGS.items() if numbers == sizes), sizes
    return "any" if k % HALVES else "guarded", GUARDED


def _trips(k: int, sizes: Mapping[str, int]) -> int:
    """Loop iterations of an invocation for a tile, short loops that are unrolled included."""
    rows, columns = sizes["rows"], sizes["columns"]
    steps = ceil_div(k, DEPTH)
    patches = sizes["down"] * sizes["across"]
    high, wide = rows // sizes["down"] // SIDE, columns // sizes["across"] // SIDE
    brought = (rows + columns) * DEPTH // HALVES // (LANES * patches)
    per_step = 1 + 2 * brought + DEPTH // SIDE * (3 + high + wide * (2 + high))
    written = high * (1 + wide * (1 + SIDE * STRIP_WIDE // NARROWEST))
    turn = 3 + high * (1 + wide) + written + 4 * brought + high + wide + steps * per_step
    return 1 + TURNS * (1 + turn)


def _shared(sizes: Mapping[str, int]) -> int:
    """Bytes of shared memory: tiles of a and b, with a vector more in each row; strips of results lie where b was."""
    strips = sizes["down"] * sizes["across"] * SIDE * (STRIP_WIDE + 2) * VECTOR
    return 2 * sizes["rows"] * (DEPTH + HALVES) + max(2 * DEPTH * (sizes["columns"] + HALVES), strips)


def reference(a: HostArray, b: HostArray) -> HostArray:
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
