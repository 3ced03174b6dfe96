"""hash_state: BLAKE3 of an array's bytes, cut to 128 bits. The bits as they are: nothing is made canonical."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from dashi.kernels._work import ceil_div
from dashi.kernels.abi import (
    Binding,
    Call,
    Case,
    Dispatch,
    Kernel,
    Limits,
    Operand,
    Plan,
    Scalar,
    Shader,
    StreamDefaults,
)
from dashi.kernels.hash._blake3 import BLOCK, CHUNK, digest128
from dashi.types import Cost, HostArray

LOCAL: Final = 64
"""Chunks per workgroup."""
FAN: Final = 256
"""Nodes that one workgroup joins into one, two per invocation at first."""
OPERATIONS: Final = 7 * 8 * 14 + 8
"""Integer operations of one compression: 7 rounds of 8 mixings (6 additions, 4 xors, 4 rotations), 8 xors."""

FIRST: Final = Scalar("first_group", "u32", doc="of this dispatch: long lists take several")

SHADERS: Final = {
    "chunks": Shader(
        buffers=(Binding("data", "u32"), Binding("values", "u32", "write")),
        push=(Scalar("words", "u32"), Scalar("chunks", "u32"), Scalar("tail", "u32"), Scalar("blocks", "u32"), FIRST),
        local=(LOCAL, 1, 1),
        file="chunks.comp",
        includes=("blake3.glsl",),
    ),
    "parents": Shader(
        buffers=(Binding("children", "u32"), Binding("parents", "u32", "write")),
        push=(Scalar("nodes", "u32"), FIRST),
        local=(FAN // 2, 1, 1),
        file="parents.comp",
        includes=("blake3.glsl",),
    ),
}


def levels(nodes: int) -> list[int]:
    """Nodes before each pass of the tree, from the chunks up; the last pass leaves one."""
    counts: list[int] = []
    while nodes > 1:
        counts.append(nodes)
        nodes = ceil_div(nodes, FAN)
    return counts


def spread(limits: Limits, whole: Dispatch) -> Iterator[Dispatch]:
    """The dispatch in as many parts as the limit of workgroups asks for."""
    groups = whole.groups[0]
    for first in range(0, groups, limits.groups):
        part = min(limits.groups, groups - first)
        yield replace(whole, push={**whole.push, "first_group": first}, groups=(part, 1, 1))


def plan(call: Call) -> Plan:
    size = call.bytes("x")
    chunks = max(1, ceil_div(size, CHUNK))
    tail = size - (chunks - 1) * CHUNK
    blocks = CHUNK // BLOCK if chunks > 1 else max(1, ceil_div(tail, BLOCK))
    counts = levels(chunks)
    names = [*(f"level{i}" for i in range(len(counts))), "result"]
    push = {"words": size // 4, "chunks": chunks, "tail": tail, "blocks": blocks}
    dispatches = [
        *spread(call.limits, Dispatch("chunks", ("x", names[0]), push, (ceil_div(chunks, LOCAL), 1, 1), blocks))
    ]
    for count, below, above in zip(counts, names, names[1:], strict=False):
        # Sixteen trips to load the nodes, then at most eight levels.
        whole = Dispatch("parents", (below, above), {"nodes": count}, (ceil_div(count, FAN), 1, 1), 16 + 8)
        dispatches += spread(call.limits, whole)
    scratch = {name: ("u32", 8 * count) for name, count in zip(names, counts, strict=False)}
    return Plan(tuple(dispatches), scratch)


def cost(call: Call) -> Cost:
    size = call.bytes("x")
    chunks = max(1, ceil_div(size, CHUNK))
    counts = levels(chunks)
    compressions = max(1, ceil_div(size, BLOCK)) + chunks - 1
    return Cost(OPERATIONS * compressions, size + sum(2 * 32 * n for n in counts) + 16, len(plan(call).dispatches))


def reference(x: HostArray) -> HostArray:
    return digest128(x)


# Around blocks (16 words), chunks (256), workgroups (64 chunks), and passes of the tree (256 and 65536 chunks).
SIZES: Final = (
    0, 1, 15, 16, 17, 255, 256, 257, 512, 768, 1281, 2047, 2048, 2049, 7 * 256, 63 * 256, 64 * 256 + 1, 129 * 256,
    255 * 256 + 3, 256 * 256, 257 * 256, 700_001,
)  # fmt: skip

KERNEL = Kernel(
    summary="BLAKE3 of the bytes, cut to 128 bits",
    inputs=(Operand("x"),),
    outputs=(Operand("result", "u32", (4,)),),
    shaders=SHADERS,
    plan=plan,
    reference=reference,
    cost=cost,
    stream=StreamDefaults(io_class="OBSERVER"),
    cases=(*(Case({"x": (n,)}) for n in SIZES), Case({"x": (3, 5, 7)}), Case({"x": ()})),
    bench=(Case({"x": (1 << 28,)}),),
    dtypes=("f32", "f64", "u32", "i32", "u64", "i64"),
)
