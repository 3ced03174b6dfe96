"""Kernels that differ only in a formula. `elementwise` makes a whole `Kernel` from one.

How to write an elementwise kernel: a folder `<family>/<name>/` with two files.

    kernel.comp    T apply(uint i) { return canon(x[i]) + canon(y[i]); }
    kernel.py      KERNEL = elementwise(summary="...", inputs=("x", "y"), flops=1, reference=reference)

Inputs and scalars are global names in the shader; the loop, the bounds test and the store are written once in
`_include/elementwise.glsl`. In a portable kernel every loaded value goes through `canon`, every product through
`mul`; the store makes the result canonical. The reference is NumPy with the same functions of
`dashi.kernels.portable`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from dashi.kernels.abi import (
    Binding,
    Call,
    Case,
    Dispatch,
    Kernel,
    Number,
    Operand,
    Plan,
    Scalar,
    Shader,
    StreamDefaults,
    groups_for,
)
from dashi.types import Array, Cost, Shape

LOCAL: Final = 256
RESULT: Final = "result"
SHAPES: Final[tuple[Shape, ...]] = (
    (1,), (63,), (64,), (65,), (257,), (1000,), (4099,), (5, 7), (3, 4, 11), (1 << 17,),
)  # fmt: skip
"""Around the sizes of runs, workgroups and vectors; two shapes of several dimensions; one that fills a device."""


def elementwise(
    *,
    summary: str,
    reference: Callable[..., Array],
    inputs: Sequence[str] = ("x",),
    scalars: Sequence[Scalar] = (),
    flops: int | Mapping[str, int] = 1,
    examples: Sequence[Mapping[str, Number]] = ({},),
    dtypes: tuple[str, ...] = ("f32", "f64"),
    portable: bool = True,
    bound: float | None = None,
    aliases: tuple[str, ...] = (),
    features: frozenset[str] = frozenset(),
    version: int = 1,
    stream: StreamDefaults = StreamDefaults(),
) -> Kernel:
    """The kernel result[i] = apply(i), for arrays of one shape; `flops` counts per element (by dtype where variants
    differ), `examples` are scalars for the cases, used in turn."""
    buffers = (*(Binding(name) for name in inputs), Binding(RESULT, access="write"))
    push = (Scalar("n", "u32"), Scalar("stride", "u32"), *scalars)
    shader = Shader(
        buffers, push, local=(LOCAL, 1, 1), includes=("portable.glsl", "elementwise.glsl"), features=features
    )
    names = tuple(b.name for b in buffers)

    def plan(call: Call) -> Plan:
        n = call.size(RESULT)
        if n == 0:
            return Plan(())
        groups, trips = groups_for(n, LOCAL, call.limits)
        numbers = {"n": n, "stride": groups * LOCAL, **call.scalars}
        return Plan((Dispatch("main", names, numbers, (groups, 1, 1), trips),))

    def cost(call: Call) -> Cost:
        n = call.size(RESULT)
        each = flops if isinstance(flops, int) else flops[call.dtype.name]
        return Cost(flops=each * n, bytes=call.bytes(*names), dispatches=int(n > 0))

    return Kernel(
        summary=summary,
        inputs=tuple(Operand(name) for name in inputs),
        outputs=(Operand(RESULT),),
        shaders={"main": shader},
        plan=plan,
        reference=reference,
        cost=cost,
        cases=cases(inputs, examples),
        scalars=tuple(scalars),
        dtypes=dtypes,
        portable=portable,
        bound=bound,
        in_place=True,
        aliases=aliases,
        version=version,
        stream=stream,
    )


def cases(inputs: Sequence[str], examples: Sequence[Mapping[str, Number]] = ({},)) -> tuple[Case, ...]:
    """One case per shape of `SHAPES`, with the examples of scalars in turn."""
    return tuple(
        Case(dict.fromkeys(inputs, shape), dict(examples[i % len(examples)])) for i, shape in enumerate(SHAPES)
    )
