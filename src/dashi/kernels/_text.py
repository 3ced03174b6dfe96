"""Kernels from text: a function of values, or a whole shader, with the interface that goes with it.

A function of values, `T apply(T x, T y) { ... }`, is compiled into the template of fused kernels: it broadcasts, and it
reads and writes vectors. Anything else is a shader of its own, `void main() { ... }`, whose buffers, numbers and
dimensions are global names.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

import numpy as np

from dashi.errors import AbiError, KernelError
from dashi.kernels import _build as build
from dashi.kernels import _fused_abi as fused
from dashi.kernels._compiled import Compiled
from dashi.kernels._registry import templates
from dashi.kernels._text_operands import read_operands, read_scalars
from dashi.kernels._text_types import defines, with_variables
from dashi.kernels._validate import check_name, validate
from dashi.kernels._work import LOCAL, LOOP_PUSH, loop_plan
from dashi.kernels.abi import (
    Binding,
    Call,
    Case,
    Evidence,
    Fill,
    Kernel,
    Limits,
    Number,
    Operand,
    Plan,
    Scalar,
    Shader,
    part_of,
)
from dashi.kernels.patterns import cases
from dashi.kernels.spirv._emit import Emission, Template
from dashi.kernels.spirv._module import Module
from dashi.types import DTYPES, Cost, HostArray, Shape

Reference = Callable[..., Any]
FAMILY: Final = "text"
_WHOLE: Final = re.compile(r"\bvoid\s+main\s*\(")
_TAKEN: Final = re.compile(r"(in|out|number|load|store|scalar|SIZE|OFFSET|STRIDE)\d.*|n|stride|LOCAL|EACH|TEXT|V")
_SHAPES: Final[tuple[Shape, ...]] = ((64,), (65,), (1,), (5, 7))
_LENGTHS: Final = (5, 67, 3, 8, 2, 11)


def from_text(
    text: str,
    *,
    inputs: str = "x",
    outputs: str = "result",
    scalars: str = "",
    reference: Reference | None = None,
    dtypes: Sequence[str] = ("f32", "f64"),
    portable: bool = True,
    bound: float | None = None,
    flops: int = 1,
    trips: int | Callable[[Call], int] = 0,
    cases: Sequence[Case] = (),
    name: str = "",
    types: Mapping[str, Sequence[str]] | None = None,
) -> Kernel:
    """The kernel of a GLSL text: see `dashi.kernel`."""
    try:
        identity = "\n".join((text, inputs, outputs, scalars, " ".join(dtypes))).encode()
    except UnicodeEncodeError as error:
        raise AbiError(f"the text of a kernel is none: {error}.", "write it in Unicode characters.") from error
    digest = hashlib.sha256(identity).hexdigest()
    if types:
        if not _WHOLE.search(text):
            raise AbiError(
                "an apply of values takes arrays of one type, T, and no type variables.",
                "write a whole shader with `void main()`, or a formula: dashi.kernels.fuse(..., types={...}).",
            )

        def typed(inputs: str, outputs: str, scalars: str, chosen: Mapping[str, str]) -> Kernel:
            identity = any(o.dtype == "T" for o in read_operands(inputs, "inputs"))
            return _from_text(
                text,
                inputs=inputs,
                outputs=outputs,
                scalars=scalars,
                reference=reference,
                dtypes=dtypes if identity else dtypes[:1],
                portable=portable,
                bound=bound,
                flops=flops,
                trips=trips,
                cases=cases,
                name=name or f"text_{digest[:12]}",
                prelude=defines(chosen),
            )

        return with_variables(typed, types, inputs, outputs, scalars)
    return _from_text(
        text,
        inputs=inputs,
        outputs=outputs,
        scalars=scalars,
        reference=reference,
        dtypes=dtypes,
        portable=portable,
        bound=bound,
        flops=flops,
        trips=trips,
        cases=cases,
        name=name or f"text_{digest[:12]}",
    )


def _from_text(
    text: str,
    *,
    inputs: str,
    outputs: str,
    scalars: str,
    reference: Reference | None,
    dtypes: Sequence[str],
    portable: bool,
    bound: float | None,
    flops: int,
    trips: int | Callable[[Call], int],
    cases: Sequence[Case],
    name: str,
    prelude: str = "",
) -> Kernel:
    called = name
    check_name(called)
    reading, writing = read_operands(inputs, "inputs"), read_operands(outputs, "outputs")
    numbers = read_scalars(scalars)
    evidence: Evidence = "none" if reference is None else "first use"

    def no_reference(*_: HostArray, **__: Number) -> HostArray:
        raise KernelError(
            f"kernel {called!r} has no NumPy reference: it is unproved, and cpu cannot run it.",
            "pass reference=... to dashi.kernel, or run it on another device.",
        )

    base = Kernel(
        summary="from text, unproved" if reference is None else "from text",
        inputs=reading,
        outputs=writing,
        shaders={},
        plan=lambda call: Plan(()),
        reference=no_reference,
        cost=lambda call: Cost(
            flops=flops * call.size(writing[0].name), bytes=_bytes(call, (*reading, *writing)), dispatches=1
        ),
        cases=tuple(cases),
        scalars=numbers,
        dtypes=tuple(dtypes),
        portable=portable,
        bound=bound,
        name=called,
        family=FAMILY,
        evidence=evidence,
    )
    if _WHOLE.search(text):
        kernel = _whole(base, text, reference, trips, prelude)
    else:
        kernel = _of_values(base, text, reference, trips)
    # One variant is compiled now: what is wrong with the text is said where the text is.
    assert kernel.binaries is not None
    kernel.binaries.words(*build.variants(kernel)[0])
    return kernel


def _bytes(call: Call, operands: Sequence[Operand]) -> int:
    return sum(call.size(o.name) * (call.dtype if o.dtype == "T" else DTYPES[o.dtype]).size for o in operands)


def _of_values(base: Kernel, text: str, reference: Reference | None, trips: object) -> Kernel:
    """A kernel whose text is a function of values."""
    plain = all(o.dtype == "T" and o.shape is None for o in (*base.inputs, *base.outputs))
    if "apply" not in text:
        raise AbiError(
            f"the text of kernel {base.name!r} defines neither apply nor main.",
            "write `T apply(T x) { ... }`, a function of values, or a whole shader with `void main()`.",
        )
    if not plain or any(s.dtype != "T" for s in base.scalars) or trips != 0:
        raise AbiError(
            f"kernel {base.name!r}: an apply of values takes arrays and scalars of the type T, of any shape.",
            'leave types, shapes and trips away ("x y"), or write a whole shader with `void main()`.',
        )
    if len(base.inputs) > fused.INPUTS or len(base.outputs) > 1 or len(base.scalars) > fused.SCALARS:
        raise AbiError(
            f"kernel {base.name!r} has {len(base.inputs)} inputs, {len(base.outputs)} outputs and "
            f"{len(base.scalars)} scalars; an apply of values has up to {fused.INPUTS}, 1 and {fused.SCALARS}.",
            "split it, or write a whole shader with `void main()`.",
        )
    possible = (*fused.FLOATS, *fused.INTEGERS, *fused.LONGS)
    if unusable := [d for d in base.dtypes if d not in possible]:
        raise AbiError(
            f"kernel {base.name!r}: an apply of values has no variant {unusable[0]}.", f"use {', '.join(possible)}."
        )
    if taken := [s.name for s in base.scalars if _TAKEN.fullmatch(s.name)]:
        raise AbiError(f"kernel {base.name!r}: the scalar {taken[0]!r} has a name of the loop's.", "rename it.")
    names = tuple(o.name for o in base.inputs)
    scalars = tuple(s.name for s in base.scalars)
    (output,) = (o.name for o in base.outputs)

    def plan(call: Call) -> Plan:
        views = [fused.dense(call.shapes[name]) for name in names]
        return fused.plan(call, views, (output,), names, [call.scalars[s] for s in scalars])

    example = 1.5 if set(base.dtypes) <= set(fused.FLOATS) else 3
    kernel = replace(
        base,
        shaders=fused.shaders(len(names), 1, base.dtypes),
        plan=plan,
        reference=base.reference if reference is None else _reference_of_values(reference, base.portable),
        cases=base.cases or cases(names, [dict.fromkeys(scalars, example)], _SHAPES),
        in_place=True,
        broadcasts=True,
        tunings=fused.TUNINGS,
        prefer=_prefer,
    )
    template = templates().get("fused")
    prelude = _calling(names, scalars)
    declared = replace(
        template,
        shaders={key: replace(s, prelude=s.prelude + prelude, text=text) for key, s in template.shaders.items()},
        portable=kernel.portable,
    )
    finished = replace(kernel, binaries=_Unbuilt())
    validate(finished)
    needs = f"T apply({', '.join(f'T {name}' for name in names)})"
    return replace(finished, binaries=Compiled(declared, kernel, lambda m: _finish(m, len(names)), needs))


def _prefer(limits: Limits, variant: str) -> str:
    return "wide1" if limits.software else "wide2"


class _Unbuilt:
    """Binaries of a kernel that is only looked at."""

    key = ""

    def words(self, shader: str, variant: str) -> bytes:
        return b""


def _calling(inputs: Sequence[str], scalars: Sequence[str]) -> str:
    """The call of the author's function by the template; scalars are variables, canonical before it is called."""
    every = ", ".join(f"T x{k}" for k in range(fused.INPUTS))
    passed = ", ".join(f"x{k}" for k in range(len(inputs)))
    declared = "".join(f"T scalar{k}();\nT {name};\n" for k, name in enumerate(scalars))
    settled = "".join(f"{name} = scalar{k}(); " for k, name in enumerate(scalars))
    return (
        f"#define TEXT\n{declared}T apply({', '.join('T' for _ in inputs)});\n"
        f"T call_text({every}) {{ {settled}return apply({passed}); }}\n"
    )


def _finish(module: Module, inputs: int) -> Module:
    """The compiled template with the buffers that there are."""
    emission = Emission(Template(module))
    fused.fill_loads(emission, inputs)
    fused.fill_stores(emission, 1)
    return emission.module(fused.bindings(inputs, 1))


def _reference_of_values(reference: Reference, portable: bool) -> Reference:
    """The caller's function of canonical values as a reference of arrays."""

    def whole(*arrays: HostArray, **scalars: Number) -> HostArray:
        stretched = np.broadcast_arrays(*arrays)
        dtype = arrays[0].dtype
        with np.errstate(all="ignore"):
            if not portable:
                return np.asarray(reference(*stretched, **{k: np.asarray(v, dtype) for k, v in scalars.items()}))
            values = [fused.canonical(np.atleast_1d(array)) for array in stretched]
            numbers = {name: fused.canonical(np.full(1, value, dtype)) for name, value in scalars.items()}
            result = np.asarray(reference(*values, **numbers))
            # What is of another type than declared is left for the check to name.
            settled = fused.canonical(result) if result.dtype == dtype else result
            return np.broadcast_to(settled, values[0].shape).reshape(stretched[0].shape).copy()

    return whole


def _whole(
    base: Kernel, text: str, reference: Reference | None, trips: int | Callable[[Call], int], prelude: str
) -> Kernel:
    """A kernel whose text is a whole shader: one dispatch of a loop over the elements of the first output."""
    names = tuple(o.name for o in (*base.inputs, *base.outputs))
    lengths = _lengths((*base.inputs, *base.outputs))
    passed = {s.name for s in base.scalars}
    dims = tuple(Scalar(length, "u32") for length in lengths if length not in passed)
    shader = Shader(
        (
            *(Binding(o.name, o.dtype) for o in base.inputs),
            *(Binding(o.name, o.dtype, "readwrite") for o in base.outputs),
        ),
        (*LOOP_PUSH, *dims, *base.scalars),
        local=(LOCAL, 1, 1),
        file="",
        includes=("portable.glsl",),
        prelude=prelude,
        text=text,
    )

    def plan(call: Call) -> Plan:
        push = {**{d.name: call.dims[d.name] for d in dims}, **call.scalars}
        count = trips if isinstance(trips, int) else trips(call)
        return loop_plan(call, call.size(base.outputs[0].name), names, push, trips=count)

    def guarded(*arrays: HostArray, **scalars: Number) -> Any:
        with np.errstate(all="ignore"):
            return base.reference(*arrays, **scalars) if reference is None else reference(*arrays, **scalars)

    kernel = replace(
        base,
        shaders={"main": shader},
        plan=plan,
        reference=guarded,
        cases=base.cases or _cases(base, lengths),
    )
    validate(replace(kernel, binaries=_Unbuilt()))
    return replace(kernel, binaries=Compiled(kernel, kernel, lambda module: module, "void main()"))


def _lengths(operands: Sequence[Operand]) -> tuple[str, ...]:
    """The names of dimensions, in order."""
    named = (part_of(d)[0] for o in operands for d in o.shape or () if isinstance(d, str))
    return tuple(dict.fromkeys(named))


def _cases(base: Kernel, lengths: Sequence[str]) -> tuple[Case, ...]:
    """Two cases with small lengths; inputs that are no floats are zeros, or the caller brings cases of his own."""

    def zeros(dtype: str) -> Fill:
        return lambda _, shape: np.zeros(shape, DTYPES[dtype].stored)

    listed: list[Case] = []
    for shift in range(2):
        sizes = {length: _LENGTHS[(k + shift) % len(_LENGTHS)] for k, length in enumerate(lengths)}
        shapes = {o.name: _shape(o, sizes) for o in base.inputs}
        fill: Mapping[str, Fill] = {
            o.name: zeros(o.dtype) for o in base.inputs if o.dtype != "T" and not DTYPES[o.dtype].is_float
        }
        scalars = {s.name: sizes.get(s.name, 1 if s.dtype != "T" else 1.5) for s in base.scalars}
        listed.append(Case(shapes, scalars, fill))
    return tuple(listed)


def _shape(operand: Operand, sizes: Mapping[str, int]) -> Shape:
    if operand.shape is None:
        return (67,)
    parts = [(d, 1) if isinstance(d, int) else part_of(d) for d in operand.shape]
    return tuple(math.ceil((sizes[d] if isinstance(d, str) else d) / cut) for d, cut in parts)
