"""Kernels that differ only in a formula. `elementwise` makes a whole `Kernel` from one.

How to write an elementwise kernel: a folder `<family>/<name>/` with two files.

    kernel.comp    T apply(T x, T y) { return x + y; }
    kernel.py      KERNEL = elementwise(summary="...", inputs=("x", "y"), flops=1, reference=reference)

`apply` is a function of values, one for each input, canonical already; scalars are global names in the shader. The
loads, the loop, the bounds test and the store are written once, here and in `_include/elementwise.glsl`. In a portable
kernel every product goes through `mul`; the store makes the result canonical. The reference is NumPy with the same
functions of `dashi.kernels.portable`. With "f16" among its dtypes the same apply serves arrays of halves, computed in
fp32. Functions of values can be composed: `_ops` names those that fused kernels are made of.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Final, Literal

import numpy as np

from dashi.kernels._float16 import narrow_f16, widen_f16
from dashi.kernels._work import groups_for
from dashi.kernels.abi import (
    Binding,
    Call,
    Case,
    Dispatch,
    Kernel,
    Limits,
    Number,
    Operand,
    Plan,
    Scalar,
    Shader,
    Spec,
    StreamDefaults,
)
from dashi.types import Cost, HostArray, Shape

LOCAL: Final = 256
TUNINGS: Final = {
    "each4": {"each": 4, "local": LOCAL, "wide": 0},
    "each2": {"each": 2, "local": LOCAL, "wide": 0},
    "each1": {"each": 1, "local": LOCAL, "wide": 0},
}
"""Elements per invocation, and invocations per workgroup."""
VECTOR: Final = 16
"""Bytes that devices read and write at once."""
WIDE_TUNINGS: Final = {
    "wide2": {"each": 4, "local": LOCAL, "wide": 2},
    "wide1": {"each": 4, "local": LOCAL, "wide": 1},
    "each4": {"each": 4, "local": LOCAL, "wide": 0},
}
"""Elements per invocation, invocations per workgroup, and vectors of 16 bytes per invocation, if not 0, where an array
is a whole number of them."""
HEAVY: Final = 16
"""Operations per element from which memory no longer sets the pace: then few registers matter more."""
RESULT: Final = "result"
Takes = Literal["values", "stored", "index"]
"""What an apply is a function of: canonical values; values as they are stored, which it makes canonical itself (as the
functions of portable.glsl do); or the number of the element, with the inputs as arrays."""
WITH_HALVES: Final = ("f32", "f64", "f16")
"""The dtypes of kernels that serve arrays of halves too."""
SHAPES: Final[tuple[Shape, ...]] = (
    (1,), (63,), (64,), (65,), (257,), (1000,), (4099,), (5, 7), (3, 4, 11), (1 << 17,),
)  # fmt: skip
"""Around the sizes of runs, workgroups and vectors; two shapes of several dimensions; one that fills a device."""
LARGE: Final[tuple[Shape, ...]] = ((1 << 28,), (1 << 27,))
"""For benchmarks: a GiB of fp32, and of fp64."""


def elementwise(
    *,
    summary: str,
    reference: Callable[..., HostArray],
    inputs: Sequence[str] = ("x",),
    scalars: Sequence[Scalar] = (),
    flops: int | Mapping[str, int] = 1,
    examples: Sequence[Mapping[str, Number]] = ({},),
    dtypes: tuple[str, ...] = ("f32", "f64"),
    portable: bool = True,
    bound: float | None = None,
    aliases: tuple[str, ...] = (),
    features: frozenset[str] = frozenset(),
    takes: Takes = "values",
    in_place: bool = True,
    wide: bool = False,
    bench: Sequence[Shape] = (),
    shapes: Sequence[Shape] = SHAPES,
    version: int = 1,
    stream: StreamDefaults = StreamDefaults(),
) -> Kernel:
    """The kernel result[i] = apply(x[i], y[i], ...), for arrays of one shape; `flops` counts per element (by dtype
    where variants differ), `examples` are scalars for the cases of these `shapes`, used in turn. `takes` says what
    apply is a function of. `wide` adds tunings that read and write 16 bytes at once: for an apply of few operations.
    Halves (dtypes=WITH_HALVES) are widened to fp32 before, and rounded after. An apply of the index i sees 16 bytes at
    a time there, so that it may use i for nothing but to name elements of the inputs; one that looks at other elements
    than i needs `in_place=False`."""
    names = (*inputs, RESULT)
    full = tuple(name for name in dtypes if name != "f16")
    shaders = {"main": replace(_shader(inputs, scalars, features, wide=False), dtypes=full)}
    if wide:
        shaders["wide"] = replace(_shader(inputs, scalars, features, wide=True), dtypes=full)
    if "f16" in dtypes:
        shaders["halves"] = _halves_shader(inputs, scalars, features)
    loads = _loads(inputs, takes)
    shaders = {name: replace(shader, prelude=shader.prelude + loads) for name, shader in shaders.items()}

    def plan(call: Call) -> Plan:
        n = call.size(RESULT)
        if n == 0:
            return Plan(())
        if call.dtype.name == "f16":
            vectors = -(-call.bytes(RESULT) // VECTOR)
            groups, rounds = groups_for(vectors, LOCAL, call.limits)
            numbers = {"n": vectors, "stride": groups * LOCAL, **call.scalars}
            return Plan((Dispatch("halves", names, numbers, (groups, 1, 1), rounds * (1 + 4)),))
        vectors = call.tuning["wide"] if call.bytes(RESULT) % VECTOR == 0 else 0
        items = call.bytes(RESULT) // VECTOR if vectors else n
        each, local = vectors or call.tuning["each"], call.tuning["local"]
        groups, rounds = groups_for(items, each * local, call.limits)
        numbers = {"n": items, "stride": groups * each * local, **call.scalars}
        spec = {"LOCAL": local, "EACH": each}
        trips = rounds * (1 + 2 * each)
        return Plan((Dispatch("wide" if vectors else "main", names, numbers, (groups, 1, 1), trips, spec),))

    def operations(variant: str) -> int:
        # A type that it has no variant for is refused later, with more to say.
        return flops if isinstance(flops, int) else flops.get("f32" if variant == "f16" else variant, 0)

    def cost(call: Call) -> Cost:
        n = call.size(RESULT)
        return Cost(flops=operations(call.dtype.name) * n, bytes=call.bytes(*names), dispatches=int(n > 0))

    tunings = WIDE_TUNINGS if wide else TUNINGS

    def prefer(limits: Limits, variant: str) -> str:
        return "each2" if operations(variant) >= HEAVY and not wide else next(iter(tunings))

    return Kernel(
        summary=summary,
        inputs=tuple(Operand(name) for name in inputs),
        outputs=(Operand(RESULT),),
        shaders=shaders,
        plan=plan,
        reference=_with_halves(reference) if "f16" in dtypes else reference,
        cost=cost,
        cases=cases(inputs, examples, shapes),
        bench=cases(inputs, examples, bench),
        scalars=tuple(scalars),
        dtypes=dtypes,
        portable=portable,
        bound=bound,
        in_place=in_place,
        tunings=tunings,
        prefer=prefer,
        aliases=aliases,
        version=version,
        stream=stream,
    )


def _shader(inputs: Sequence[str], scalars: Sequence[Scalar], features: frozenset[str], *, wide: bool) -> Shader:
    kind = "V" if wide else "T"
    read = tuple(Binding(f"{name}_wide" if wide else name, kind) for name in inputs)
    return Shader(
        (*read, Binding(RESULT, kind, "write")),
        (Scalar("n", "u32"), Scalar("stride", "u32"), *scalars),
        (Spec("LOCAL", LOCAL), Spec("EACH", 1)),
        local=("LOCAL", 1, 1),
        includes=("portable.glsl", "elementwise_wide.glsl" if wide else "elementwise.glsl"),
        features=features,
        extensions=("GL_EXT_control_flow_attributes",),
        prelude=_wide_inputs(inputs) if wide else "",
    )


def _halves_shader(inputs: Sequence[str], scalars: Sequence[Scalar], features: frozenset[str]) -> Shader:
    """The two numbers of a word of every input under the input's own name; T is fp32, scalars too."""
    numbers = "\n".join(f"float {name}[2];" for name in inputs)
    vectors = " ".join(f"uvec4 {name};" for name in inputs)
    read = ", ".join(f"{name}_halves[j]" for name in inputs)
    place = " ".join(
        f"{name}[0] = f16_value(given.{name}[word] & 0xffffu); {name}[1] = f16_value(given.{name}[word] >> 16);"
        for name in inputs
    )
    text = (
        f"#undef T\n#define T float\nfloat f16_value(uint h);\n{numbers}\nstruct Vectors {{ {vectors} }};\n"
        f"Vectors read_vectors(uint j) {{ return Vectors({read}); }}\n"
        f"void place(Vectors given, uint word) {{ {place} }}\n"
    )
    return Shader(
        (*(Binding(f"{name}_halves", "u32x4") for name in inputs), Binding(RESULT, "u32x4", "write")),
        (
            Scalar("n", "u32"),
            Scalar("stride", "u32"),
            *(replace(s, dtype="f32") if s.dtype == "T" else s for s in scalars),
        ),
        local=(LOCAL, 1, 1),
        includes=("portable.glsl", "elementwise_halves.glsl"),
        features=features,
        extensions=("GL_EXT_control_flow_attributes",),
        dtypes=("f16",),
        prelude=text,
    )


def _with_halves(reference: Callable[..., HostArray]) -> Callable[..., HostArray]:
    """The reference for arrays of halves too: computed in fp32."""

    def either(*arrays: HostArray, **scalars: Number) -> HostArray:
        if arrays[0].dtype != np.float16:
            return reference(*arrays, **scalars)
        return narrow_f16(reference(*(widen_f16(array) for array in arrays), **scalars))

    return either


def _loads(inputs: Sequence[str], takes: Takes) -> str:
    """The apply of an index that the loops call, made of the author's apply of values."""
    if takes == "index":
        return ""
    values = ", ".join(f"canon({name}[i])" if takes == "values" else f"{name}[i]" for name in inputs)
    return f"T canon(T v);\nT apply({', '.join('T' for _ in inputs)});\nT apply(uint i) {{ return apply({values}); }}\n"


def _wide_inputs(inputs: Sequence[str]) -> str:
    """One vector of every input under the input's own name, so that `x[i]` in apply is a part of it."""
    here = " ".join(f"V {name};" for name in inputs)
    read = ", ".join(f"{name}_wide[j]" for name in inputs)
    place = " ".join(f"{name} = given.{name};" for name in inputs)
    return (
        f"{here}\nstruct Vectors {{ {here} }};\n"
        f"Vectors read_vectors(uint j) {{ return Vectors({read}); }}\n"
        f"void place(Vectors given) {{ {place} }}\n"
    )


def cases(
    inputs: Sequence[str], examples: Sequence[Mapping[str, Number]] = ({},), shapes: Sequence[Shape] = SHAPES
) -> tuple[Case, ...]:
    """One case per shape, with the examples of scalars in turn."""
    return tuple(
        Case(dict.fromkeys(inputs, shape), dict(examples[i % len(examples)])) for i, shape in enumerate(shapes)
    )
