"""The interface of fused kernels: their shaders, how they are planned, and how operands are read through strides.

Three shaders serve every fused kernel: "flat" for arrays of one element type and one shape that are a whole number of
vectors of 16 bytes, "strided" for other arrays of one type, "mixed" where arrays have several types, or small ones. All
are templates (`_templates/elementwise/fused`) whose functions `bring`, `apply` and `tail` are replaced when a kernel is
fused. Shapes and strides are specialisation constants, so that drivers divide by numbers that they know.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

import numpy as np

from dashi.errors import ShapeError
from dashi.kernels import _fused_glsl as glsl
from dashi.kernels._fused_glsl import AXES, INPUTS, OUTPUTS
from dashi.kernels._storage import emit_load, emit_store
from dashi.kernels._work import groups_for
from dashi.kernels.abi import Binding, Call, Dispatch, Number, Plan, Scalar, Shader, Spec, View
from dashi.kernels.patterns import LOCAL, VECTOR
from dashi.kernels.portable import canon
from dashi.kernels.spirv._emit import Emission
from dashi.types import HostArray, Shape

SCALARS: Final = 8
FLAT: Final = "flat"
STRIDED: Final = "strided"
MIXED: Final = "mixed"
FLOATS: Final = ("f32", "f64")
INTEGERS: Final = ("i32", "u32")
LONGS: Final = ("i64", "u64")
_GROUPS: Final = {"": FLOATS, "_integer": INTEGERS, "_long": LONGS}
"""The types that formulas are computed in, by what the names of their shaders end with."""
_PRELUDES: Final = {
    "": "", "_integer": "#define INTEGER\n#define INTEGER_BITS 32\n",
    "_long": "#define INTEGER\n#define INTEGER_BITS 64\n",
}  # fmt: skip
ELEMENTS: Final = 4
"""Elements of an invocation of the mixed shader."""
TUNINGS: Final = {
    "wide2": {"each": 4, "local": LOCAL, "wide": 2},
    "wide1": {"each": 2, "local": LOCAL, "wide": 1},
    "wide4": {"each": 4, "local": LOCAL, "wide": 4},
}
"""Elements per invocation of the strided shader, invocations per workgroup, and vectors per invocation of the flat
one."""
_WORD: Final = 1 << 32


def ending(compute: str) -> str:
    """What the names of the template's shaders for a type of computing end with."""
    return next(suffix for suffix, dtypes in _GROUPS.items() if compute in dtypes)


def shaders(inputs: int, outputs: int, dtypes: Sequence[str]) -> dict[str, Shader]:
    """The shaders of one element type for so many inputs and outputs: two for floats, for integers, for long ones."""
    listed: dict[str, Shader] = {}
    for suffix, some in _GROUPS.items():
        served = tuple(dtype for dtype in some if dtype in dtypes)
        for name, dtype in ((FLAT, "V"), (STRIDED, "T")) if served else ():
            prelude = _PRELUDES[suffix] + (glsl.flat() if name == FLAT else glsl.strided())
            shader = _shader(name, dtype, inputs, outputs, Spec("EACH", 1))
            listed[name + suffix] = replace(shader, dtypes=served, prelude=prelude)
    return listed


def mixed_template() -> dict[str, Shader]:
    """The shaders of several element types, for most inputs and outputs."""
    listed: dict[str, Shader] = {}
    for suffix, served in _GROUPS.items():
        prelude = _PRELUDES[suffix] + glsl.mixed(floats=not suffix)
        shader = _shader(MIXED, "u32", INPUTS, OUTPUTS, Spec("PACK", 1))
        listed[MIXED + suffix] = replace(shader, dtypes=served, prelude=prelude)
    return listed


def mixed_shaders(inputs: int, outputs: int, served: Mapping[str, str]) -> dict[str, Shader]:
    """The shaders of a kernel whose variants (`served`, by name) are computed in these types and are stored otherwise:
    their numbers are of the type that is computed in."""
    listed: dict[str, Shader] = {}
    for compute in dict.fromkeys(served.values()):
        shader = _shader(MIXED, "u32", inputs, outputs, Spec("PACK", 1))
        push = tuple(replace(p, dtype=compute) if p.dtype == "T" else p for p in shader.push)
        dtypes = tuple(variant for variant, kind in served.items() if kind == compute)
        listed[f"{MIXED}_{compute}"] = replace(shader, push=push, dtypes=dtypes)
    return listed


def _shader(name: str, dtype: str, inputs: int, outputs: int, each: Spec) -> Shader:
    read = tuple(Binding(f"in{k}", dtype) for k in range(inputs))
    written = tuple(Binding(f"out{k}", dtype, "write") for k in range(outputs))
    spec = (Spec("LOCAL", LOCAL), each, *(_strides(inputs) if name != FLAT else ()))
    return Shader(
        (*read, *written),
        (Scalar("n", "u32"), Scalar("stride", "u32"), *(Scalar(f"number{k}") for k in range(SCALARS))),
        spec,
        local=("LOCAL", 1, 1),
        file=f"{name}.comp",
        includes=("portable.glsl",),
        extensions=("GL_EXT_control_flow_attributes",),
    )


def _strides(inputs: int) -> Iterator[Spec]:
    yield from (Spec(f"SIZE{axis}", 1) for axis in range(AXES))
    for k in range(inputs):
        yield Spec(f"OFFSET{k}", 0)
        yield from (Spec(f"STRIDE{k}_{axis}", 0) for axis in range(AXES))


def plan(
    call: Call, views: Sequence[View], outputs: Sequence[str], inputs: Sequence[str], scalars: Sequence[Number]
) -> Plan:
    """One dispatch that makes the outputs, all of one shape and type, from the inputs read through their views."""
    shape = call.shapes[outputs[0]]
    size = math.prod(shape)
    if size == 0:
        return Plan(())
    nbytes = size * call.dtype.size
    sizes, steps = collapse(shape, [stretched(view, shape).strides for view in views])
    alike = all(step in ((), (1,)) and view.offset == 0 for step, view in zip(steps, views, strict=True))
    # A view may show the front of a longer array, which is bound whole.
    vectors = all(call.size(name) * call.dtype.size % VECTOR == 0 for name in (*inputs, *outputs))
    wide = alike and len(sizes) == 1 and vectors
    items = nbytes // VECTOR if wide else size
    each, local = call.tuning["wide" if wide else "each"], call.tuning["local"]
    groups, rounds = groups_for(items, each * local, call.limits)
    push = {"n": items, "stride": groups * each * local, **_numbers(scalars)}
    spec = {"LOCAL": local, "EACH": each, **({} if wide else strides(shape, views))}
    trips = rounds * (1 + 2 * each)
    shader = (FLAT if wide else STRIDED) + ending(call.dtype.name)
    return Plan((Dispatch(shader, (*inputs, *outputs), push, (groups, 1, 1), trips, spec),))


def mixed_plan(
    call: Call, views: Mapping[str, View], outputs: Mapping[str, int], compute: str, scalars: Sequence[Number]
) -> Plan:
    """One dispatch that makes the outputs (with the bytes of their elements), all of one shape, from the inputs read
    through their views, in a type of computing."""
    shape = call.shapes[next(iter(outputs))]
    size = math.prod(shape)
    if size == 0:
        return Plan(())
    local = call.tuning["local"]
    groups, rounds = groups_for(size, ELEMENTS * local, call.limits)
    push = {"n": size, "stride": groups * ELEMENTS * local, **_numbers(scalars)}
    pack = max(1, 4 // min(outputs.values()))
    spec = {"LOCAL": local, "PACK": pack, **strides(shape, views.values())}
    return Plan((Dispatch(f"{MIXED}_{compute}", (*views, *outputs), push, (groups, 1, 1), rounds, spec),))


def _numbers(scalars: Sequence[Number]) -> dict[str, Number]:
    padded = (*scalars, *(0 for _ in range(SCALARS - len(scalars))))
    return {f"number{k}": value for k, value in enumerate(padded)}


def dense(shape: Shape) -> View:
    """All elements of an array of that shape, in C order."""
    steps = [math.prod(shape[axis + 1 :]) for axis in range(len(shape))]
    return View(shape, tuple(steps))


def stretched(view: View, shape: Shape) -> View:
    """The view broadcast to a shape: axes of length 1, and those that it lacks, have the stride 0."""
    missing = len(shape) - len(view.shape)
    steps = [0] * missing + [0 if n == 1 else s for n, s in zip(view.shape, view.strides, strict=True)]
    return View(shape, tuple(steps), view.offset)


def strides(shape: Shape, views: Iterable[View]) -> Mapping[str, int]:
    """The specialisation constants of the strided shader."""
    listed = [stretched(view, shape) for view in views]
    sizes, steps = collapse(shape, [view.strides for view in listed])
    if len(sizes) > AXES:
        raise ShapeError(
            f"the operands of a fused kernel of shape {shape} have {len(sizes)} axes that do not lie behind one "
            f"another in memory; {AXES} can be walked.",
            "make one of the operands dense by a copy, or join axes.",
        )
    first = AXES - len(sizes)
    numbers = {f"SIZE{first + axis}": length for axis, length in enumerate(sizes)}
    if sizes:
        numbers[f"SIZE{first}"] = glsl.WHOLE
    for k, view in enumerate(listed):
        numbers[f"OFFSET{k}"] = view.offset
        numbers.update({f"STRIDE{k}_{first + axis}": step % _WORD for axis, step in enumerate(steps[k])})
    return numbers


def collapse(shape: Shape, steps: Sequence[Sequence[int]]) -> tuple[tuple[int, ...], list[tuple[int, ...]]]:
    """The fewest axes that walk through the same elements in the same order: axes of length 1 go, and two neighbours
    become one where every operand steps over the outer as if the inner went on."""
    sizes: list[int] = []
    columns: list[list[int]] = []
    for axis in (axis for axis, length in enumerate(shape) if length != 1):
        length, column = shape[axis], [operand[axis] for operand in steps]
        if sizes and all(outer == length * inner for outer, inner in zip(columns[-1], column, strict=True)):
            sizes[-1] *= length
            columns[-1] = column
        else:
            sizes.append(length)
            columns.append(column)
    return tuple(sizes), [tuple(column[k] for column in columns) for k in range(len(steps))]


def canonical(values: HostArray) -> HostArray:
    """Floats as kernels load them; integers as they are."""
    return canon(values) if values.dtype.kind == "f" else values


def indices(view: View) -> np.ndarray[tuple[int, ...], np.dtype[np.int64]]:
    """The flat element that each element of the view is."""
    total = np.full(view.shape, view.offset, np.int64)
    if not total.size:  # and one of its axes may be longer than memory
        return total
    for axis, (length, step) in enumerate(zip(view.shape, view.strides, strict=True)):
        column = np.arange(length, dtype=np.int64) * step
        total += column.reshape(-1, *(1 for _ in view.shape[axis + 1 :]))
    return total


def fill_loads(emission: Emission, inputs: int) -> None:
    """A `bring` that loads the first inputs; the others are zeros."""
    body = emission.body("bring")
    loads = [body.call(f"load{k}", body.parameters[0]) if k < inputs else None for k in range(INPUTS)]
    body.finish(body.construct(body.result_type, loads))


def fill_stores(emission: Emission, outputs: int) -> None:
    """A `tail` that stores the first outputs."""
    body = emission.body("tail")
    place, results = body.parameters[0], body.load(body.parameters[1])
    for k in range(outputs):
        body.call(f"store{k}", place, body.extract(results, k))
    body.finish()


def fill_mixed_loads(emission: Emission, storages: Sequence[str]) -> None:
    """A `bring` that loads inputs of these element types."""
    body = emission.body("bring")
    loads = [emit_load(body, k, storage, body.parameters[0]) for k, storage in enumerate(storages)]
    body.finish(body.construct(body.result_type, [*loads, *[None] * (INPUTS - len(loads))]))


def fill_mixed_stores(emission: Emission, storages: Sequence[str]) -> None:
    """A `tail` that stores outputs of these element types, and returns the words of small elements so far."""
    body = emission.body("tail")
    place, results, before = body.parameters[0], body.load(body.parameters[1]), body.load(body.parameters[2])
    words = [
        emit_store(body, k, storage, place, body.extract(results, k), body.extract(before, k))
        for k, storage in enumerate(storages)
    ]
    body.finish(body.construct(body.result_type, [*words, *[None] * (OUTPUTS - len(words))]))


def bindings(inputs: int, outputs: int) -> dict[int, int]:
    """Where the template's buffers go in a kernel of so many."""
    return {k: k for k in range(inputs)} | {INPUTS + k: inputs + k for k in range(outputs)}
