"""Scans of rows: running sums and products, in the order of `prefix_scan`.

Within runs of 64 the elements are joined one after another; the carry of a run is the scan, by the same rule, of the
run totals before it. On the way up the totals of runs are computed, on the way down runs are read again and finished.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from dashi.errors import InputError
from dashi.kernels._work import LOOP_PUSH, RUN, ceil_div, loop_plan
from dashi.kernels.abi import Binding, Call, Case, Dispatch, Kernel, Operand, Plan, Scalar, Shader
from dashi.kernels.portable import canon, mul
from dashi.types import Cost, HostArray

_FLOATS: Final = ("f32", "f64")
_INTEGERS: Final = ("u32", "i32", "u64", "i64")
_LEVELS: Final = tuple(Scalar(name, "u32") for name in ("n", "runs"))
_SHIFT: Final = Scalar("shift", "u32")


def scanned(values: HostArray, join: Callable[..., Any], start: int) -> Any:
    """The inclusive scan of the last axis of rows."""
    rows, n = values.shape
    if not values.size:
        return values
    runs = np.full((rows, ceil_div(n, RUN) * RUN), start, values.dtype)
    runs[:, :n] = values
    runs = runs.reshape(rows, -1, RUN)
    local, total = np.empty_like(runs), np.full(runs.shape[:2], start, values.dtype)
    for i in range(RUN):
        total = join(total, runs[..., i])
        local[..., i] = total
    carry = np.full_like(total, start)
    if runs.shape[1] > 1:
        carry[:, 1:] = scanned(total, join, start)[:, :-1]
    return join(carry[..., None], local).reshape(rows, -1)[:, :n]


def _plan(call: Call) -> Plan:
    exclusive = _require_flag(call.scalars["exclusive"])
    rows, n = call.dims["rows"], call.dims["n"]
    lengths = [n]
    while lengths[-1] > RUN:
        lengths.append(ceil_div(lengths[-1], RUN))
    if not rows * n:
        return Plan(())
    suffix = "" if call.dtype.name in _FLOATS else "_integers"
    lists = ["x", *(f"totals{level}" for level in range(1, len(lengths)))]
    up: list[Dispatch] = []
    down: list[Dispatch] = []
    for level, length in enumerate(lengths):
        runs = ceil_div(length, RUN)
        numbers = {"n": length, "runs": runs}
        if runs > 1:
            buffers = (lists[level], lists[level + 1])
            up += loop_plan(call, rows * runs, buffers, numbers, shader=f"totals{suffix}", trips=RUN).dispatches
        # A list of one run has no carries: the buffer is bound to something, but not read.
        carries = f"scanned{level + 1}" if runs > 1 else lists[level]
        output = "result" if level == 0 else f"scanned{level}"
        numbers |= {"shift": exclusive if level == 0 else 0}
        buffers = (lists[level], carries, output)
        down += loop_plan(call, rows * runs, buffers, numbers, shader=f"main{suffix}", trips=RUN).dispatches
    scratch = {
        f"{name}{level}": ("T", rows * length)
        for level, length in enumerate(lengths)
        if level
        for name in ("totals", "scanned")
    }
    return Plan((*up, *reversed(down)), scratch)


def _require_flag(exclusive: float) -> int:
    if exclusive not in (0, 1):
        raise InputError(f"exclusive is {exclusive}.", "pass 0, or 1 to leave out the element itself.")
    return int(exclusive)


def _cost(call: Call) -> Cost:
    """Every element is read twice and written once, but in rows of one run, which are read once."""
    size, n = call.size("x"), call.dims["n"]
    if not size:
        return Cost()
    levels = 1
    while n > RUN:
        n, levels = ceil_div(n, RUN), levels + 1
    reads = 1 if levels == 1 else 2
    return Cost(flops=reads * size, bytes=(reads + 1) * size * call.dtype.size, dispatches=2 * levels - 1)


def _shaders(join: str, start: str) -> dict[str, Shader]:
    integers = f"#define JOIN(a, b) ((a) {join} (b))\n#define LOAD(v) (v)\n#define STORE(v) (v)\n"
    joined = "mul(a, b)" if join == "*" else "((a) + (b))"
    floats = f"#define JOIN(a, b) {joined}\n#define LOAD(v) canon(v)\n#define STORE(v) canon(v)\n"
    listed: dict[str, Shader] = {}
    for suffix, prelude, dtypes in (("", floats, _FLOATS), ("_integers", integers, _INTEGERS)):
        includes = () if suffix else ("portable.glsl",)
        first = prelude + f"#define START T({start})\n"
        x, written = Binding("x"), Binding("result", access="write")
        for name, buffers, push, file in (
            ("main", (x, Binding("carries"), written), (*LOOP_PUSH, *_LEVELS, _SHIFT), "kernel.comp"),
            ("totals", (x, Binding("totals", access="write")), (*LOOP_PUSH, *_LEVELS), "totals.comp"),
        ):
            listed[name + suffix] = Shader(
                buffers, push, local=(256, 1, 1), file=file, includes=includes, dtypes=dtypes, prelude=first
            )
    return listed


def scan_kernel(summary: str, product: bool) -> Kernel:
    """The kernel of one scan."""
    start = int(product)

    def reference(x: HostArray, exclusive: int) -> HostArray:
        shift = _require_flag(exclusive)
        with np.errstate(all="ignore"):
            if x.dtype.kind == "f":
                result = canon(scanned(canon(x), mul if product else np.add, start))
            else:
                result = scanned(x, np.multiply if product else np.add, start)
        if not shift:
            return result
        later = np.full_like(result, start)
        later[:, 1:] = result[:, :-1]
        return later

    def case(rows: int, n: int, exclusive: int = 0) -> Case:
        return Case({"x": (rows, n)}, {"exclusive": exclusive})

    return Kernel(
        summary=summary,
        inputs=(Operand("x", shape=("rows", "n")),),
        outputs=(Operand("result", shape=("rows", "n")),),
        scalars=(Scalar("exclusive", "u32", 0, "1: without the element itself, so that the first is the start"),),
        shaders=_shaders("*" if product else "+", str(start)),
        plan=_plan,
        reference=reference,
        cost=_cost,
        cases=(
            case(1, 1), case(3, 1, 1), case(2, 64), case(3, 65), case(2, 63, 1), case(5, 129, 1), case(2, 4096),
            case(2, 4097, 1), case(0, 5), case(5, 0), case(300, 7),
        ),
        bench=(case(1 << 12, 1 << 12), case(1, 1 << 24)),
        dtypes=(*_FLOATS, *_INTEGERS),
    )  # fmt: skip
