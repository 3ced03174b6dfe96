"""Elementwise kernels by name, for what their own shaders do not serve: arrays of several shapes, which are stretched by
NumPy's rules, and element types that a kernel has no variant for. The same functions, in the template of formulas."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from typing import Final

import numpy as np

from dashi.kernels._fused_glsl import width
from dashi.kernels._fusion import fuse
from dashi.kernels._ops import OPS
from dashi.kernels.abi import Kernel, Operand
from dashi.kernels.expressions import Expression, apply, arguments, scalars, where
from dashi.types import DTYPES, HostArray

FAMILY: Final = "elementwise"
_MASKS: Final = {"f16": 0x7FFF, "bf16": 0x7FFF, "f32": 0x7FFFFFFF}


def _axpy() -> Expression:
    (x, y), (a,) = arguments("x y"), scalars("a")
    return a * x + y


def _fma3() -> Expression:
    x, y, z = arguments("x y z")
    return x * y + z


_COMPOSED: Final[dict[str, Callable[[], Expression]]] = {"axpy": _axpy, "fma3": _fma3}


def is_general(kernel: Kernel) -> bool:
    """Whether arrays of several shapes can be passed to a kernel of the catalogue that takes one shape itself."""
    return kernel.family == FAMILY and not kernel.broadcasts and (kernel.name in OPS or kernel.name in _COMPOSED)


def general_form(kernel: Kernel, dtypes: Sequence[str]) -> Kernel | None:
    """The kernel that stands in for one of the catalogue where arrays of these element types have several shapes, or
    are of types that it has no variant for; None where there is none."""
    if not is_general(kernel) or len(dtypes) != len(kernel.inputs):
        return None
    return _form(kernel.name, tuple(o.name for o in kernel.inputs), tuple(dtypes))


@cache
def _form(name: str, names: tuple[str, ...], dtypes: tuple[str, ...]) -> Kernel | None:
    if name == "where":
        return _selection(*dtypes) if dtypes[1] == dtypes[2] else None
    if len(set(dtypes)) > 1:
        return None
    expression = _COMPOSED[name]() if name in _COMPOSED else apply(name, *arguments(" ".join(names)))
    if dtypes[0] == "bf16":
        kernel = fuse(expression, inputs=" ".join(names), name=name, types=dict.fromkeys((*names, "result"), "bf16"))
    else:
        kernel = fuse(expression, inputs=" ".join(names), name=name)
    return kernel if dtypes[0] in (*kernel.dtypes, "bf16") else None


def _selection(condition: str, kind: str, _: str) -> Kernel:
    """`where` moves bits: in integers as wide as the elements, with a condition whose sign does not count if it is a
    float."""
    widest = max(width(condition), width(kind))
    compute = "u64" if widest == 8 else "u32"
    tested, x, y = arguments("condition x y")
    if condition == "f64":
        tested = apply("shift_left", tested, 1)
    elif condition in _MASKS:
        tested = apply("bit_and", tested, _MASKS[condition])
    words = f"u{8 * width(kind)}"
    bits = "bool" if condition == "bool" else f"u{8 * width(condition)}"
    types = {"condition": bits, "x": words, "y": words, "result": words}
    kernel = fuse(where(tested, x, y), types=types, compute=compute, inputs="condition x y", name="where")
    kinds = (condition, kind, kind)

    def reference(*arrays: HostArray) -> HostArray:
        viewed = [a.view(DTYPES[types[o.name]].stored) for a, o in zip(arrays, kernel.inputs, strict=True)]
        return np.asarray(kernel.reference(*viewed)).view(DTYPES[kind].stored)

    return replace(
        kernel,
        inputs=tuple(Operand(o.name, own) for o, own in zip(kernel.inputs, kinds, strict=True)),
        outputs=(Operand("result", kind),),
        reference=reference,
        in_place=False,
    )
