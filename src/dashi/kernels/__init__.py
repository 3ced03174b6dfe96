"""Kernels: pure functions over buffers. `get(name)`, `names()`, `add(folder)` for those outside the project, and
`fuse(formula)` for several in one; `cast(source, target)` converts element types."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dashi.kernels._registry import Registry
    from dashi.kernels.abi import Kernel, View
    from dashi.kernels.expressions import Expression

__all__ = ["add", "cast", "default", "fuse", "get", "names"]

# The one piece of module state: `dashi.kernels.add` has to remember. Made when first needed, never at import.
_lock = threading.Lock()
_default: list[Registry] = []


def default() -> Registry:
    """The registry that `add`, `get` and `names` use."""
    with _lock:
        if not _default:
            from dashi.kernels._registry import Registry

            _default.append(Registry())
        return _default[0]


def add(folder: str | Path, build: bool = True) -> Kernel:
    """Register a kernel folder from outside the project; missing or stale binaries are built if the compiler
    (the extra `compile`) is installed and `build` is true, otherwise they are an error. Its kernel.py is Python that is
    run here, with all your rights: add only folders that you trust."""
    return default().add(folder, build)


def get(name: str) -> Kernel:
    """The kernel of that name or alias."""
    return default().get(name)


def names() -> tuple[str, ...]:
    """Every kernel's name."""
    return default().names()


def fuse(
    *results: Expression,
    outputs: str = "",
    inputs: str = "",
    views: Mapping[str, View] | None = None,
    types: Mapping[str, str] | None = None,
    compute: str | None = None,
    name: str = "",
) -> Kernel:
    """One kernel that computes formulas (`dashi.kernels.expressions`) in one dispatch, with the bits of the kernels
    that they name, one after another. No compiler is needed.

    Arrays are passed in the order in which the formula names its arguments, or in that of `inputs`; they are stretched
    to one shape by NumPy's rules. `views` says of which elements of an array an argument consists (transposed, sliced,
    reversed: any strides), where that is not all of them in order. There may be several results, named in `outputs`.

    Arrays and results have one element type, which a call chooses, but for those that `types` names: theirs are fixed
    (`types={"mask": "bool", "result": "f16"}`), and numbers are converted where they are read and written. `compute` is
    the type between ("f32", "f64", "i32", "u32", "i64" or "u64"), where it is not to follow from the arrays.
    """
    from dashi.kernels._fusion import fuse as fuse_expressions

    return fuse_expressions(
        *results, outputs=outputs, inputs=inputs, views=views, types=types, compute=compute, name=name
    )


def cast(source: str, target: str) -> Kernel:
    """The kernel that converts an array of an element type to another ("f32", "i8", "bool", "bf16", ...): floats to
    integers by truncation, saturated, NaN to 0; integers to the nearest float, ties to even; integers wrap round;
    anything but 0 is True."""
    from dashi.kernels._casts import cast_kernel

    return cast_kernel(source, target)
