"""Kernels: pure functions over buffers. `get(name)`, `names()`, `add(folder)` for those outside the project, and
`fuse(formula)` for several in one."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dashi.kernels._registry import Registry
    from dashi.kernels.abi import Kernel, View
    from dashi.kernels.expressions import Expression

__all__ = ["add", "attention_with", "default", "fuse", "fuse_product", "get", "names"]

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
    name: str = "",
) -> Kernel:
    """One kernel that computes formulas (`dashi.kernels.expressions`) in one dispatch, with the bits of the kernels
    that they name, one after another. No compiler is needed.

    Arrays are passed in the order in which the formula names its arguments, or in that of `inputs`; they are stretched
    to one shape by NumPy's rules. `views` says of which elements of an array an argument consists (transposed, sliced,
    reversed: any strides), where that is not all of them in order. There may be several results, named in `outputs`.
    """
    from dashi.kernels._fusion import fuse as fuse_expressions

    return fuse_expressions(*results, outputs=outputs, inputs=inputs, views=views, name=name)


def fuse_product(
    tail: Expression | None = None,
    value: str = "value",
    views: Mapping[str, View] | None = None,
    transpose_a: bool = False,
    transpose_b: bool = False,
    name: str = "",
) -> Kernel:
    """One kernel that computes matrix products a b and, in the same dispatch, a formula of every element: a bias, an
    activation, a residual. It has the bits of the kernel `matmul` followed by those that the formula names.

        value, bias, residual = arguments("value bias residual")
        kernel = fuse_product(relu(value + bias) + residual)
        d.run(kernel, a, b, bias, residual)

    a (..., m, k) and b (..., k, n) are multiplied in their last two axes, which `transpose_a` and `transpose_b`
    exchange; the axes before are stretched by NumPy's rules. `value` names the product among the tail's arguments; the
    others, up to 4, are arrays that stretch to the result, passed behind a and b in the order in which the formula
    names them. `views` says of which elements of an array an operand consists, before it is transposed."""
    from dashi.kernels._product_fusion import fuse_product as fuse_tail

    return fuse_tail(tail, value, views, transpose_a, transpose_b, name)


def attention_with(extras: str = "", views: Mapping[str, View] | None = None, name: str = "") -> Kernel:
    """The kernel `attention` with the operands that `extras` names, behind q, k and v in this order.

    - `mask` (B, Sk): a key counts where it is above 0;
    - `bias`, stretched to (B, H, Sq, Sk): added to the scores; minus infinity leaves a key out;
    - `lengths` (B,), u32: keys from there on do not count;
    - `positions` (B,), u32: what is added to `offset`, the position of the first query.

    `views` says of which elements of an array an operand consists: q as (B, H, Sq, D), k and v as (B, Hkv, Sk, D), with
    any strides. It is the definition of `attention`, whatever the operands."""
    from dashi.kernels.attention._making import attention_with as make

    return make(extras, views, name)
