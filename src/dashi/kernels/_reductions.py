"""Reductions: the passes of `_include/reduce64.glsl`, `stream64.glsl` and `rest64.glsl`, and whole kernels made of
them.

In the canonical order a pass makes one value of every tile of 64 x 64 elements, which are two levels of tree64, so a
list of n needs ceil(log4096 n) passes. Where order does not matter the first pass makes one value per workgroup, of
any elements. What is brought, joined and stored is the kernel's own text.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Final

from dashi.errors import ShapeError
from dashi.kernels import abi
from dashi.kernels._work import RUN, ceil_div, even_groups
from dashi.kernels.patterns import LARGE, VECTOR
from dashi.types import Cost, DType, HostArray, Shape

TILE: Final = RUN * RUN

PUSH: Final = (
    abi.Scalar("n", "u32"),
    abi.Scalar("tiles", "u32"),
    abi.Scalar("stride", "u32"),
    abi.Scalar("last", "u32"),
)
"""`last` is 1 in the pass that makes the result."""
SPEC: Final = (abi.Spec("LANES", 256), abi.Spec("STAGED", 1))

LANES: Final = 256
"""Invocations of a workgroup that works by quads, or on a stream."""

TUNINGS: Final = {
    "quads": {"quads": 1, "lanes": LANES, "staged": 0},
    "lanes256": {"quads": 0, "lanes": 256, "staged": 1},
    "direct": {"quads": 0, "lanes": RUN, "staged": 0},
}
"""Tiles per round of a workgroup whose quads work through runs; or, if 0, invocations per tile, and whether the tile
goes through shared memory or each invocation reads its own run."""

LANES_TUNINGS: Final = {name: numbers for name, numbers in TUNINGS.items() if not numbers["quads"]}

STREAM_TUNINGS: Final = {"stream2048": {"groups": 2048}}
"""Workgroups, and values that they make, of a first pass without order."""

SHAPES: Final[tuple[Shape, ...]] = (
    (1,), (2,), (63,), (64,), (65,), (255,), (256,), (257,), (4095,), (4096,), (4097,), (5000,), (70000,), (3, 0, 4),
    (5, 7), (3, 4, 11), (262145,),
)  # fmt: skip
"""Around runs, workgroups and tiles; several dimensions, also none; the first length with four levels."""


def prefer(limits: abi.Limits, variant: str) -> str:
    """Where caches do the work of shared memory, staging only costs; small devices cannot hold large workgroups."""
    lanes = prefer_lanes(limits, variant)
    return "quads" if lanes != "direct" and "subgroup_quad" in limits.features else lanes


def prefer_lanes(limits: abi.Limits, variant: str) -> str:
    """The tuning of a kernel without quads."""
    return "direct" if limits.software or limits.invocations < LANES else "lanes256"


@dataclass(frozen=True)
class ReductionPass:
    """One dispatch of a reduction: n addends to one value per tile; each workgroup makes `rounds` rounds of its loop,
    with one tile in each."""

    index: int
    n: int
    tiles: int
    groups: int
    rounds: int
    last: bool

    @property
    def push(self) -> dict[str, abi.Number]:
        """Values of `PUSH`."""
        return {"n": self.n, "tiles": self.tiles, "stride": self.groups, "last": int(self.last)}

    def source(self, name: str) -> str:
        """The scratch buffer `name` as the pass before left it."""
        return f"{name}{self.index - 1}"

    def target(self, name: str) -> str:
        """The scratch buffer `name` that this pass fills."""
        return f"{name}{self.index}"

    def first_dispatch(self, shader: str, buffers: tuple[str, ...], call: abi.Call) -> abi.Dispatch:
        """The dispatch of `reduce64.glsl` for this pass; it reads the list in vectors."""
        per_round = call.tuning["quads"]
        if not per_round:
            trips = self.rounds * (tile_trips(call.dtype, call.tuning["lanes"]) + RUN)
            return abi.Dispatch(shader, buffers, self.push, (self.groups, 1, 1), trips, spec_of(call.tuning))
        groups, rounds = even_groups(ceil_div(self.tiles, per_round), call.limits)
        trips = rounds * (1 + per_round * quad_trips(call.dtype) + 2 * RUN)
        push = {**self.push, "stride": groups}
        return abi.Dispatch(f"{shader}_quads", buffers, push, (groups, 1, 1), trips, {"TILES": per_round})

    def stream_dispatch(self, shader: str, buffers: tuple[str, ...], call: abi.Call) -> abi.Dispatch:
        """The dispatch of `stream64.glsl` for this pass."""
        trips = 1 + 2 * -(-vectors(self.n, call.dtype) // (LANES * self.groups)) + 2 * VECTOR
        return abi.Dispatch(shader, buffers, self.push, (self.groups, 1, 1), trips)

    def rest_dispatch(self, shader: str, buffers: tuple[str, ...]) -> abi.Dispatch:
        """The dispatch of `rest64.glsl` for this pass."""
        trips = self.rounds * (1 + RUN // 8 + 3 * RUN)
        return abi.Dispatch(shader, buffers, self.push, (self.groups, 1, 1), trips)


def spec_of(tuning: Mapping[str, int]) -> dict[str, int]:
    """Values of `SPEC`."""
    return {"LANES": tuning["lanes"], "STAGED": tuning["staged"]}


def passes(n: int, limits: abi.Limits) -> tuple[ReductionPass, ...]:
    """The passes that bring n addends down to one value, in the canonical order."""
    return tuple(_passes([], n, limits))


def stream_passes(n: int, call: abi.Call) -> tuple[ReductionPass, ...]:
    """The passes that bring n elements down to one value, the first in any order; each workgroup has an element."""
    groups = min(call.tuning["groups"], call.limits.groups, max(1, -(-vectors(n, call.dtype) // LANES)))
    return tuple(_passes([ReductionPass(0, n, groups, groups, 1, groups == 1)], groups, call.limits))


def vectors(n: int, kind: DType) -> int:
    """Vectors of 16 bytes that hold n elements."""
    return ceil_div(n * kind.size, VECTOR)


def _passes(steps: list[ReductionPass], n: int, limits: abi.Limits) -> list[ReductionPass]:
    while not steps or not steps[-1].last:
        tiles = max(1, ceil_div(n, TILE))
        groups, rounds = even_groups(tiles, limits)
        steps.append(ReductionPass(len(steps), n, tiles, groups, rounds, tiles == 1))
        n = tiles
    return steps


def quad_trips(kind: DType) -> int:
    """Loop iterations of one invocation to bring and work through its part of a tile by quads."""
    each = vectors(RUN, kind) // 4
    return 1 + 2 * each + 4 * each * VECTOR // kind.size


def tile_trips(kind: DType, lanes: int) -> int:
    """Loop iterations that the busiest invocation makes to bring a tile through shared memory and work through a run:
    its vectors are brought and put, then each vector of a run and, at the list's end, each element has a turn."""
    each = vectors(RUN, kind)
    return 1 + 2 * (RUN * each // lanes) + kind.size + each + RUN


def quads_shader(shader: abi.Shader, *spec: abi.Spec) -> abi.Shader:
    """The shader compiled to work by subgroup quads."""
    return replace(
        shader, spec=spec, local=(LANES, 1, 1), prelude="#define QUADS\n", features=frozenset({"subgroup_quad"})
    )


def first_shaders(name: str, shader: abi.Shader) -> dict[str, abi.Shader]:
    """A shader around `reduce64.glsl` for every tuning of `TUNINGS`."""
    return {name: shader, f"{name}_quads": quads_shader(shader, abi.Spec("TILES", 1))}


def first_shader(*made: abi.Binding, inputs: tuple[str, ...] = ("x",)) -> abi.Shader:
    """A shader around `reduce64.glsl`."""
    return replace(_vectors_shader(*made, inputs=inputs), spec=SPEC, local=("LANES", 1, 1))


def stream_shader(*made: abi.Binding) -> abi.Shader:
    """A shader around `stream64.glsl`."""
    return _vectors_shader(*made)


def _vectors_shader(*made: abi.Binding, inputs: tuple[str, ...] = ("x",)) -> abi.Shader:
    return abi.Shader(
        (*(abi.Binding(name, "u32x4") for name in inputs), *made),
        PUSH,
        local=(LANES, 1, 1),
        includes=("portable.glsl", "vectors.glsl"),
        extensions=("GL_EXT_control_flow_attributes",),
    )


def rest_shader(*buffers: abi.Binding) -> abi.Shader:
    """A shader around `rest64.glsl`."""
    return abi.Shader(
        buffers,
        PUSH,
        local=(RUN, 1, 1),
        file="rest.comp",
        includes=("portable.glsl",),
        extensions=("GL_EXT_control_flow_attributes",),
    )


OBSERVES: Final = abi.StreamDefaults(io_class="OBSERVER")
"""A few numbers of a whole state are looked at; no chain goes on from them."""


def reduction(
    *,
    summary: str,
    reference: Callable[..., HostArray],
    flops: int,
    inputs: tuple[str, ...] = ("x",),
    parts: int = 1,
    aliases: tuple[str, ...] = (),
    empty: bool = True,
    ordered: bool = True,
    version: int = 1,
) -> abi.Kernel:
    """A kernel that reduces its inputs, of any one shape, to `result` of shape (parts,): kernel.comp makes values of
    the elements, rest.comp (with the buffers `partial` and `result`) makes one of 64 x 64 of them. A value is `parts`
    numbers, one after another. `flops` counts per element; `empty` says whether no elements at all have a result,
    `ordered` whether kernel.comp is made around reduce64.glsl or stream64.glsl."""

    def steps_of(call: abi.Call) -> tuple[ReductionPass, ...]:
        n = call.size(inputs[0])
        return passes(n, call.limits) if ordered else stream_passes(n, call)

    def plan(call: abi.Call) -> abi.Plan:
        if not empty:
            require_elements(call.size(inputs[0]))
        steps = steps_of(call)
        outputs = ["result" if p.last else p.target("partial") for p in steps]
        dispatch = steps[0].first_dispatch if ordered else steps[0].stream_dispatch
        first = dispatch("main", (*inputs, outputs[0]), call)
        rest = (p.rest_dispatch("rest", (p.source("partial"), outputs[p.index])) for p in steps[1:])
        scratch = {p.target("partial"): ("T", parts * p.tiles) for p in steps if not p.last}
        return abi.Plan((first, *rest), scratch)

    def cost(call: abi.Call) -> Cost:
        steps = steps_of(call)
        moved = call.bytes(*inputs) + parts * values_moved(steps) * call.dtype.size
        return Cost(flops * call.size(inputs[0]), moved, len(steps))

    result = abi.Binding("result", access="write")
    # Values of several numbers do not go round in quads: SwiftShader's compiler never came to an end of such a shader.
    quads = ordered and parts == 1
    first = first_shader(result, inputs=inputs) if ordered else stream_shader(result)
    firsts = first_shaders("main", first) if quads else {"main": first}
    tunings = TUNINGS if quads else LANES_TUNINGS if ordered else STREAM_TUNINGS
    shapes = tuple(shape for shape in SHAPES if empty or 0 not in shape)
    return abi.Kernel(
        summary=summary,
        inputs=tuple(abi.Operand(name) for name in inputs),
        outputs=(abi.Operand("result", shape=(parts,)),),
        shaders={**firsts, "rest": rest_shader(abi.Binding("partial"), result)},
        plan=plan,
        reference=reference,
        cost=cost,
        cases=tuple(abi.Case(dict.fromkeys(inputs, shape)) for shape in shapes),
        bench=tuple(abi.Case(dict.fromkeys(inputs, shape)) for shape in LARGE),
        tunings=tunings,
        prefer=(prefer if quads else prefer_lanes) if ordered else None,
        aliases=aliases,
        version=version,
        stream=OBSERVES,
    )


def arg_reduction(*, summary: str, reference: Callable[..., HostArray], aliases: tuple[str, ...]) -> abi.Kernel:
    """A kernel that finds where, in the flattened x, the best element is: kernel.comp makes `values` and `places` of
    the elements, rest.comp (with `partial`, `origin`, `values` and `places`) of 64 x 64 of those."""
    results = (abi.Binding("values", access="write"), abi.Binding("places", "u32", "write"))

    def plan(call: abi.Call) -> abi.Plan:
        require_elements(call.size("x"))
        steps = stream_passes(call.size("x"), call)
        outputs = [(p.target("values"), "result" if p.last else p.target("places")) for p in steps]
        first = steps[0].stream_dispatch("main", ("x", *outputs[0]), call)
        rest = (p.rest_dispatch("rest", (p.source("values"), p.source("places"), *outputs[p.index])) for p in steps[1:])
        scratch = {p.target("values"): ("T", p.tiles) for p in steps}
        places = {p.target("places"): ("u32", p.tiles) for p in steps if not p.last}
        return abi.Plan((first, *rest), scratch | places)

    def cost(call: abi.Call) -> Cost:
        steps = stream_passes(call.size("x"), call)
        moved = call.bytes("x") + values_moved(steps) * (call.dtype.size + 4)
        return Cost(call.size("x"), moved, len(steps))

    return abi.Kernel(
        summary=summary,
        inputs=(abi.Operand("x"),),
        outputs=(abi.Operand("result", "u32", (1,)),),
        shaders={
            "main": stream_shader(*results),
            "rest": rest_shader(abi.Binding("partial"), abi.Binding("origin", "u32"), *results),
        },
        plan=plan,
        reference=reference,
        cost=cost,
        cases=tuple(abi.Case({"x": shape}) for shape in SHAPES if 0 not in shape),
        bench=tuple(abi.Case({"x": shape}) for shape in LARGE),
        tunings=STREAM_TUNINGS,
        aliases=aliases,
        stream=OBSERVES,
    )


def values_moved(steps: tuple[ReductionPass, ...]) -> int:
    """Values of tiles that the passes write, and read again."""
    return sum(p.tiles for p in steps) + sum(p.n for p in steps[1:])


def require_elements(n: int) -> None:
    """An error if there is nothing to choose from."""
    if n == 0:
        raise ShapeError(
            "no elements have no largest or smallest among them.", "pass an array with at least one element."
        )
