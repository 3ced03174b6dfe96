"""Kernels: pure functions over buffers. `get(name)`, `names()`, `add(folder)` for those outside the project, and
`fuse(formula)`, `reduce_rows(kind, formula)` and `row_map(kind, formula)` for several in one;
`fuse_product(formula)` for products; `cast(source, target)` converts element types."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from dashi.kernels._registry import Registry
    from dashi.kernels.abi import Kernel, View
    from dashi.kernels.expressions import Expression
    from dashi.kernels.rows import RowKind

__all__ = [
    "add", "attention_with", "cast", "default", "fuse", "fuse_product", "get", "names", "reduce_rows", "row_map",
]  # fmt: skip


def default() -> Registry:
    """The registry that `add`, `get` and `names` use."""
    from dashi.kernels._registry import default as default_registry

    return default_registry()


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


def reduce_rows(
    kind: str | RowKind,
    head: Expression,
    tail: Callable[[Expression], Expression] | None = None,
    *,
    axes: int | Sequence[int] = -1,
    inputs: str = "",
    views: Mapping[str, View] | None = None,
    name: str = "",
) -> Kernel:
    """One kernel that reduces a formula over axes: `reduce_rows("sum", x * y, lambda total: total * a, axes=(0, 2))`.

    `kind` is sum, mean, max, min, prod, l1, l2, sumsq, logsumexp, argmax or argmin (indices, as u32), or a `RowKind` of
    `dashi.kernels.rows`, which says what each computes and in which order. The head makes a value of the operands; they
    are stretched to one shape by NumPy's rules and read through `views`, as those of `fuse`; the reduced axes are gone
    from the result. The tail makes the result of the reduced value, scalars, and operands that have length 1 along the
    reduced axes. A result depends on its own row alone. Up to 8 operands and 8 scalars, fp32 and fp64.
    """
    from dashi.kernels._rows import reduce_rows as make

    return make(kind, head, tail, axes, inputs, views, name)


def row_map(
    kind: str | RowKind,
    head: Expression,
    *tails: Callable[[Expression], Expression],
    eps: Expression | float = 1e-5,
    axes: int | Sequence[int] = -1,
    outputs: str = "",
    inputs: str = "",
    views: Mapping[str, View] | None = None,
    name: str = "",
) -> Kernel:
    """One kernel whose results have the shape of its operands, and see the reduced values of their rows:
    `row_map("layer_norm", x + y, lambda v: v * gamma + beta)`.

    `kind` is softmax, log_softmax, layer_norm or rms_norm (with `eps`, a number or a scalar of the call), or a
    `RowKind`. Each of up to 4 tails makes an output, named in `outputs`, of the kind's result, scalars and operands;
    without any the result is the output. Otherwise as `reduce_rows`. Graphics processors read rows of up to 4096
    elements once.
    """
    from dashi.kernels._rows import row_map as make

    return make(kind, head, tails, eps, axes, outputs, inputs, views, name)


def fuse_product(
    tail: Expression | None = None,
    value: str = "value",
    views: Mapping[str, View] | None = None,
    transpose_a: bool = False,
    transpose_b: bool = False,
    name: str = "",
    inputs: str = "",
    portable: bool = True,
) -> Kernel:
    """One kernel that computes matrix products a b and, in the same dispatch, a formula of every element: a bias, an
    activation, a residual. It has the bits of the kernel `matmul` followed by those that the formula names.

        value, bias, residual = arguments("value bias residual")
        kernel = fuse_product(relu(value + bias) + residual)
        d.run(kernel, a, b, bias, residual)

    a (..., m, k) and b (..., k, n) are multiplied in their last two axes, which `transpose_a` and `transpose_b`
    exchange; the axes before are stretched by NumPy's rules. `value` names the product among the tail's arguments; the
    others, up to 4, are arrays that stretch to the result, passed behind a and b in the order in which the formula
    names them, or in that of `inputs`. `views` says of which elements of an array an operand consists, before it is
    transposed. With `portable=False` sums are in any order, with fused multiply-adds: the bits are the device's."""
    from dashi.kernels._product_fusion import fuse_product as fuse_tail

    return fuse_tail(
        tail,
        value,
        views=views,
        transpose_a=transpose_a,
        transpose_b=transpose_b,
        name=name,
        inputs=inputs,
        portable=portable,
    )


def attention_with(extras: str = "", views: Mapping[str, View] | None = None, name: str = "") -> Kernel:
    """The kernel `attention` with the operands that `extras` names, behind q, k and v in this order.

    - `mask` (B, Sk), or stretched to (B, H, Sq, Sk): a key counts where it is above 0;
    - `bias`, stretched to (B, H, Sq, Sk): added to the scores; minus infinity leaves a key out;
    - `lengths` (B,), u32: keys from there on do not count;
    - `positions` (B,), u32: what is added to `offset`, the position of the first query.

    `views` says of which elements of an array an operand consists: q as (B, H, Sq, D), k and v as (B, Hkv, Sk, D), with
    any strides. It is the definition of `attention`, whatever the operands."""
    from dashi.kernels.attention._making import attention_with as make

    return make(extras, views, name)


if not TYPE_CHECKING:  # to a type checker a name that is not imported above is a mistake

    def __getattr__(name: str) -> object:
        from dashi._lazy import below

        return below(__name__, name)
