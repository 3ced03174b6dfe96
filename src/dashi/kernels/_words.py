"""Kernels that move bits and compute nothing: one apply over words serves every element type, bit for bit.

A folder holds `kernel.comp` with `WORDS apply(uint i)`, and `kernel.py` with `KERNEL = word_moves(...)`. WORDS is 16
bytes (uvec4) where an array is a whole number of them, or its elements are of one or two bytes; elsewhere it is one
element of 4 or 8 bytes (uint, uvec2). Inputs are arrays of WORDS; the loop is `_include/words.glsl`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

from dashi.kernels._work import ceil_div, groups_for
from dashi.kernels.abi import Binding, Call, Case, Dispatch, Kernel, Number, Operand, Plan, Scalar, Shader, Spec
from dashi.kernels.patterns import LARGE, LOCAL, RESULT, VECTOR, WIDE_TUNINGS
from dashi.types import DTYPES, Cost, HostArray

TYPES: Final = tuple(name for name in DTYPES if name != "bf16")
"""bf16 is moved as u16: on the host nothing tells them apart."""
_SMALL: Final = 2
"""Bytes of elements that are moved 16 bytes at a time whatever the size of the array."""


def word_moves(
    *,
    summary: str,
    reference: Callable[..., HostArray],
    cases: tuple[Case, ...],
    inputs: Sequence[str],
    read: Sequence[str] | None = None,
    scalars: tuple[Scalar, ...] = (),
    push: Callable[[Call], Mapping[str, Number]] | None = None,
    pushed: tuple[Scalar, ...] = (),
) -> Kernel:
    """The kernel result[i] = apply(i) over words, for arrays of one shape and any element type. `read` names the inputs
    that the shader reads, if not all. `push(call)` gives the shader its own numbers, declared in `pushed`."""
    bound = tuple(inputs if read is None else read)
    full = tuple(name for name in TYPES if DTYPES[name].size > _SMALL)

    def plan(call: Call) -> Plan:
        nbytes = call.bytes(RESULT)
        if nbytes == 0:
            return Plan(())
        small = call.dtype.size <= _SMALL
        each = call.tuning["wide"] or int(small) if small or nbytes % VECTOR == 0 else 0
        shader, items = ("wide", ceil_div(nbytes, VECTOR)) if each else ("main", call.size(RESULT))
        each = each or call.tuning["each"]
        groups, rounds = groups_for(items, each * LOCAL, call.limits)
        numbers = {"n": items, "stride": groups * each * LOCAL, **(push(call) if push else {})}
        trips = rounds * (1 + 2 * each)
        return Plan((Dispatch(shader, (*bound, RESULT), numbers, (groups, 1, 1), trips, {"EACH": each}),))

    def cost(call: Call) -> Cost:
        return Cost(bytes=call.bytes(*bound, RESULT), dispatches=int(call.size(RESULT) > 0))

    return Kernel(
        summary=summary,
        inputs=tuple(Operand(name) for name in inputs),
        outputs=(Operand(RESULT),),
        shaders={"main": _shader(bound, "W", "W", pushed, full), "wide": _shader(bound, "u32x4", "uvec4", pushed)},
        plan=plan,
        reference=reference,
        cost=cost,
        cases=cases,
        bench=tuple(Case(dict.fromkeys(inputs, shape), cases[0].scalars) for shape in LARGE),
        scalars=scalars,
        dtypes=TYPES,
        in_place=True,
        tunings=WIDE_TUNINGS,
    )


def _shader(
    bound: tuple[str, ...], kind: str, words: str, pushed: tuple[Scalar, ...], dtypes: tuple[str, ...] = ()
) -> Shader:
    return Shader(
        (*(Binding(name, kind) for name in bound), Binding(RESULT, kind, "write")),
        (Scalar("n", "u32"), Scalar("stride", "u32"), *pushed),
        (Spec("EACH", 1),),
        local=(LOCAL, 1, 1),
        includes=("words.glsl",),
        extensions=("GL_EXT_control_flow_attributes",),
        dtypes=dtypes,
        prelude=f"#define LOCAL {LOCAL}u\n#define WORDS {words}\n",
    )


def words_of(values: HostArray) -> npt.NDArray[np.unsignedinteger]:
    """The elements as unsigned integers of their size: NumPy moves them without a look at NaNs."""
    return np.ascontiguousarray(values).view(np.dtype(f"u{values.dtype.itemsize}"))
