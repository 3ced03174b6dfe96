"""Reductions in the canonical order: the passes of `_include/reduce64.glsl`, and whole kernels made of them.

A pass makes one value of every 64 x 64 elements, which are two levels of tree64, so a list of n needs
ceil(log4096 n) passes. What is loaded, joined and stored is the kernel's own text.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

from dashi.errors import ShapeError
from dashi.kernels.abi import Binding, Call, Case, Dispatch, Kernel, Limits, Number, Operand, Plan, Scalar, Shader
from dashi.types import Array, Cost, Shape

LOCAL: Final = 128
RUN: Final = 64
TILE: Final = RUN * RUN
BLOCK_TILES: Final = LOCAL // RUN
"""Every invocation of a workgroup has a run to itself: 128 runs, two tiles."""

PUSH: Final = (Scalar("n", "u32"), Scalar("tiles", "u32"), Scalar("stride", "u32"))
FLAGS: Final = (Scalar("first", "u32"), Scalar("last", "u32"))
"""For shaders that serve every pass: 1 in the pass that reads the input, and in the one that writes the result."""

SHAPES: Final[tuple[Shape, ...]] = (
    (1,), (2,), (63,), (64,), (65,), (255,), (256,), (257,), (4095,), (4096,), (4097,), (5000,), (70000,), (3, 0, 4),
    (5, 7), (3, 4, 11), (262145,),
)  # fmt: skip
"""Around runs, workgroups and tiles; several dimensions, also none; the first length with four levels."""


@dataclass(frozen=True)
class Pass:
    """One dispatch of a reduction: n addends to one value per tile; each workgroup makes `rounds` rounds of its loop,
    with one block of two tiles in each."""

    index: int
    n: int
    tiles: int
    groups: int
    rounds: int
    trips: int
    last: bool

    @property
    def push(self) -> dict[str, Number]:
        """Values of `PUSH`."""
        return {"n": self.n, "tiles": self.tiles, "stride": self.groups}

    @property
    def flags(self) -> dict[str, Number]:
        """Values of `FLAGS`."""
        return {"first": int(self.index == 0), "last": int(self.last)}

    def source(self, name: str) -> str:
        """The scratch buffer `name` as the pass before left it."""
        return f"{name}{self.index - 1}"

    def target(self, name: str) -> str:
        """The scratch buffer `name` that this pass fills."""
        return f"{name}{self.index}"


def passes(n: int, acc_bytes: int, limits: Limits) -> tuple[Pass, ...]:
    """The passes that bring n addends of `acc_bytes` each (ACC_BYTES of the shader) down to one value."""
    made: list[Pass] = []
    while not made or not made[-1].last:
        tiles = max(1, -(-n // TILE))
        groups, rounds = even_groups(-(-tiles // BLOCK_TILES), limits)
        made.append(Pass(len(made), n, tiles, groups, rounds, rounds * block_trips(acc_bytes), tiles == 1))
        n = tiles
    return tuple(made)


def even_groups(blocks: int, limits: Limits) -> tuple[int, int]:
    """Workgroups for that many blocks, each with the same number of them (give or take one), and that number."""
    rounds = -(-blocks // limits.groups)
    return -(-blocks // rounds), rounds


@dataclass(frozen=True)
class Share:
    """The blocks from `first` up to, but without, `beyond`, for one dispatch of so many workgroups."""

    first: int
    beyond: int
    groups: int
    trips: int


def shares(blocks: int, trips: int, limits: Limits) -> Iterator[Share]:
    """Divides blocks of `trips` loop iterations each among dispatches that stay within the limits."""
    most = limits.groups * max(1, limits.loop_trips // trips)
    for first in range(0, blocks, most):
        beyond = min(blocks, first + most)
        groups, rounds = even_groups(beyond - first, limits)
        yield Share(first, beyond, groups, rounds * trips)


def block_trips(acc_bytes: int) -> int:
    """Loop iterations that the busiest invocation makes for one block, all loops of reduce64.glsl together."""
    return 1 + join_trips(acc_bytes) + RUN


def join_trips(acc_bytes: int) -> int:
    """Loop iterations of `join_run` in stage64.glsl: each element is fetched, put and joined."""
    slices = acc_bytes
    return slices + 3 * RUN


def reduction(
    *,
    summary: str,
    reference: Callable[..., Array],
    flops: int,
    flags: bool = True,
    aliases: tuple[str, ...] = (),
    empty: bool = True,
    version: int = 1,
) -> Kernel:
    """A kernel that reduces x, of any shape, to `result` of shape (1,): one shader for every pass, which sees the
    addends as x (in later passes: the values of the tiles before). `flags` gives it `FLAGS`; `flops` counts per
    element; `empty` says whether no elements at all have a result. ACC must be as large as T."""
    shader = Shader(
        (Binding("x"), Binding("result", access="write")),
        PUSH + (FLAGS if flags else ()),
        local=(LOCAL, 1, 1),
        includes=("portable.glsl",),
    )

    def plan(call: Call) -> Plan:
        n = call.size("x")
        if not empty:
            require_elements(n)
        steps = passes(n, call.dtype.size, call.limits)
        dispatches = tuple(
            Dispatch(
                "main",
                ("x" if p.index == 0 else p.source("partial"), "result" if p.last else p.target("partial")),
                {**p.push, **(p.flags if flags else {})},
                (p.groups, 1, 1),
                p.trips,
            )
            for p in steps
        )
        return Plan(dispatches, {p.target("partial"): ("T", p.tiles) for p in steps if not p.last})

    def cost(call: Call) -> Cost:
        steps = passes(call.size("x"), call.dtype.size, call.limits)
        return Cost(flops * call.size("x"), traffic(steps, call.dtype.size), len(steps))

    return Kernel(
        summary=summary,
        inputs=(Operand("x"),),
        outputs=(Operand("result", shape=(1,)),),
        shaders={"main": shader},
        plan=plan,
        reference=reference,
        cost=cost,
        cases=cases(empty),
        aliases=aliases,
        version=version,
    )


def traffic(steps: tuple[Pass, ...], element: int) -> int:
    """Bytes that the passes read and write, for elements of that size."""
    return sum(p.n + p.tiles for p in steps) * element


def cases(empty: bool) -> tuple[Case, ...]:
    """One case per shape of `SHAPES`; those without elements only if that is allowed."""
    return tuple(Case({"x": shape}) for shape in SHAPES if empty or 0 not in shape)


def require_elements(n: int) -> None:
    """An error if there is nothing to choose from."""
    if n == 0:
        raise ShapeError("the maximum of no elements is not defined.", "pass an array with at least one element.")
