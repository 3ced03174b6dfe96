"""gemm_fast: result = a b as fast as the device multiplies: sums in any order, products and sums contracted.

Where the sizes are whole tiles and there are enough of them to fill a device, lean.glsl multiplies them without any
guard; elsewhere the tiles of gemm_tiled do, large or small, without its order. Repeatable on one device and driver, not
the same bits on others. With normal inputs every result is within k/2 roundings of the exact one; the bound is for
cases of k up to 4096.
"""

from collections.abc import Iterable, Mapping
from typing import Final

import numpy as np

from dashi.kernels._work import split_work
from dashi.kernels.abi import Binding, Call, Case, Dispatch, Kernel, Limits, Number, Operand, Plan, Scalar, Shader
from dashi.kernels.linear import _columns as columns
from dashi.kernels.linear import _tiles as tiles
from dashi.types import Cost, HostArray

LONGEST: Final = 8192
"""Length of k in one dispatch; longer sums are added to the result in several."""
LOCAL: Final = 256
SHARED_BYTES: Final = 33280
ROWS: Final = 128
NUMBERS: Final = ("m", "n", "k", "begin", "end", "across", "first_tile", "tiles", "stride", "fresh")
TUNINGS: Final[dict[str, dict[str, int]]] = {
    "lean_128x128x16": {**tiles.TUNINGS["fitted"], "step": 16},
    "lean_128x128x8": {**tiles.TUNINGS["fitted"], "step": 8},
    "guarded": {**tiles.TUNINGS["fitted"], "step": 0},
    **{name: {**tiles.TUNINGS[name], "step": 0} for name in ("small", "small_few", "few_rows")},
}
"""The block of an invocation, the tiles that fill a device, and how much of k whole tiles take at a time (0: the same
way as others)."""


def prefer(limits: Limits, variant: str) -> str:
    """The longer step where its two buffers fit: 90 % of cuBLAS on an H200, against 81 %."""
    return "lean_128x128x16" if limits.shared_bytes >= SHARED_BYTES else "lean_128x128x8"


def plan(call: Call) -> Plan:
    if call.size("result") == 0:
        return Plan(())
    if tiles.is_row(call):
        return columns.row_plan(call)
    k = call.dims["k"]
    dispatches: list[Dispatch] = []
    for begin in range(0, max(1, k), LONGEST):
        flags = {"fresh": int(begin == 0), "last": int(begin + LONGEST >= k)}
        dispatches += _multiply(call, (begin, min(begin + LONGEST, k)), flags)
    return Plan(tuple(dispatches))


def _multiply(call: Call, reach: tuple[int, int], flags: Mapping[str, Number]) -> Iterable[Dispatch]:
    """Dispatches that add the products over k from reach[0] to reach[1] to the result."""
    m, n, k = (call.dims[name] for name in ("m", "n", "k"))
    sizes = call.tuning or next(iter(TUNINGS.values()))
    step, columns = sizes["step"], 16 * sizes["columns"]
    name = f"lean_{ROWS}x{columns}x{step}"
    if call.dtype.name == "f64":  # takes twice the registers and the shared memory
        step, columns = min(step, 8), 64
    fill = tiles.least_tiles(call, sizes["fill"])
    count = m // ROWS * (n // columns)
    whole = step > 0 and k > 0 and not (m % ROWS or n % columns or k % step)
    if not whole or count < fill or _shared(call, step, columns) > call.limits.shared_bytes:
        yield from tiles.multiply_tiles(call, reach, "result", flags, ordered=False)
        return
    numbers = {"m": m, "n": n, "k": k, "begin": reach[0], "end": reach[1], "across": n // columns}
    for share in split_work(count, _trips(reach[1] - reach[0], step, columns), call.limits):
        place = {"first_tile": share.first, "tiles": share.beyond, "stride": share.groups}
        push = {**numbers, **place, "fresh": flags["fresh"]}
        yield Dispatch(name, ("a", "b", "result"), push, (share.groups, 1, 1), share.trips)


def _shared(call: Call, step: int, columns: int) -> int:
    """Bytes of shared memory: two buffers, rows of a with a vector of four more."""
    return 2 * step * (ROWS + 4 + columns) * call.dtype.size


def _trips(depth: int, step: int, columns: int) -> int:
    """Loop iterations of an invocation for a tile, short loops that are unrolled included."""
    brought = step // 4 + step * columns // LOCAL
    moved = 4 * brought
    return 1 + 8 + moved + depth // step * (1 + moved + step) + 8


def _lean(name: str) -> Shader:
    return Shader(
        (Binding("a", "V"), Binding("b", "V"), Binding("result", "V", access="readwrite")),
        tuple(Scalar(number, "u32") for number in NUMBERS),
        local=(LOCAL, 1, 1),
        file=f"{name}.comp",
        extensions=("GL_EXT_control_flow_attributes",),
        shared_bytes=SHARED_BYTES,
    )


def reference(a: HostArray, b: HostArray) -> HostArray:
    return np.matmul(a, b)


def cost(call: Call) -> Cost:
    return tiles.cost(call, len(plan(call).dispatches))


SIZES: Final = (
    (1, 1, 1), (2, 0, 3), (0, 4, 3), (3, 5, 7), (64, 64, 64), (65, 63, 66), (70, 132, 128), (129, 68, 132),
    (5, 4096, 3), (2, 9000, 4), (256, 48, 256), (1024, 32, 2048), (100, 130, 70),
)  # fmt: skip
"""(m, k, n)"""

KERNEL = Kernel(
    summary="matrix product a b, as fast as the device multiplies (the bits are the device's)",
    inputs=(Operand("a", shape=("m", "k")), Operand("b", shape=("k", "n"))),
    outputs=(Operand("result", shape=("m", "n")),),
    shaders={**tiles.shaders(), **{name: _lean(name) for name, sizes in TUNINGS.items() if sizes["step"]}},
    plan=plan,
    reference=reference,
    cost=cost,
    cases=tuple(Case({"a": (m, k), "b": (k, n)}) for m, k, n in SIZES),
    bench=(Case({"a": (4096, 4096), "b": (4096, 4096)}),),
    portable=False,
    bound=2e-6,
    tunings=TUNINGS,
    prefer=prefer,
)
