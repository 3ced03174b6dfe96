"""Fourier transforms along the last axis: the kernels `fft`, `rfft` and `irfft`. Complex numbers are pairs (re, im) in
a last axis of 2. Forward transforms are sums of x_m exp(-2 pi i m k / n); inverse ones have the other sign, and are
divided by n. Tables of roots of unity are constants, rounded once."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import numpy as np

from dashi import kernels
from dashi.errors import GraphError
from dashi.graph._arguments import checked
from dashi.graph.ir import Node, TensorType
from dashi.graph.op import Launch, Op
from dashi.graph.ops._compositions import composition
from dashi.graph.ops.elementwise import one_dtype
from dashi.kernels.abi import Number
from dashi.kernels.fft._roots import real_table, require_length, table
from dashi.types import HostArray, Shape

if TYPE_CHECKING:
    from dashi.graph.builder import Tensor


@checked
def fft(x: Tensor, inverse: bool = False) -> Tensor:
    """The complex transform of x (..., n, 2), or the inverse one, divided by n."""
    return x.builder.add(FFT, x, inverse=inverse)


@checked
def rfft(x: Tensor) -> Tensor:
    """The modes 0 ... n/2 of real x (..., n), as pairs (..., n // 2 + 1, 2)."""
    return x.builder.add(RFFT, x)


@checked
def irfft(x: Tensor, length: int | None = None) -> Tensor:
    """Real (..., length) from its modes x (..., length // 2 + 1, 2), divided by the length; 2 (modes - 1) unless it is
    passed."""
    modes = x.shape[-2] if len(x.shape) > 1 else 1
    return x.builder.add(IRFFT, x, length=2 * (modes - 1) if length is None else length)


def _infer(node: Node, types: Sequence[TensorType]) -> TensorType:
    (x,) = types
    if x.dtype.name not in ("f32", "f64"):
        raise GraphError(f"{node.op} is not defined for {x.dtype}.", "cast to float32.")
    real = node.op == "rfft"
    if len(x.shape) < (1 if real else 2) or (not real and x.shape[-1] != 2):
        raise GraphError(f"{node.op} of {x.shape}.", "pass (..., n) to rfft, and pairs (..., n, 2) to the others.")
    n = _length(node, x.shape)
    require_length(n)
    if real:
        return TensorType((*x.shape[:-1], n // 2 + 1, 2), x.dtype)
    if node.op == "fft":
        return x
    if x.shape[-2] != n // 2 + 1:
        raise GraphError(f"{x.shape[-2]} modes are not those of {n} values.", f"pass {n // 2 + 1} modes.")
    return TensorType((*x.shape[:-2], n), x.dtype)


def _length(node: Node, shape: Shape) -> int:
    """Values of a line."""
    return node.integer("length") if node.op == "irfft" else shape[-1] if node.op == "rfft" else shape[-2]


def _expand(node: Node, x: Tensor) -> Tensor:
    n, kind = _length(node, x.shape), x.dtype.numpy
    roots = table(n, kind, "lines") if node.op == "fft" else real_table(n, kind)
    twiddles = x.builder.constant(roots)
    inverse = node.op == "irfft" or node.get("inverse") is True
    return x.builder.add(LINES, x, twiddles, kernel=node.op, inverse=inverse, shape=node.shape)


def _infer_lines(node: Node, types: Sequence[TensorType]) -> TensorType:
    kind = one_dtype(types)
    if node.get("kernel") not in ("fft", "rfft", "irfft"):
        raise GraphError(f"there is no transform {node.get('kernel')!r}.", "use fft, rfft or irfft.")
    n, shape = types[1].shape[0] if types[1].shape else 0, node.integers("shape")
    require_length(n)
    spread = _shapes(node, types[0].size, n)
    if types[1].shape != (n, 2) or math.prod(spread[0]) != types[0].size or math.prod(spread[1]) != math.prod(shape):
        raise GraphError(f"{types[0]} is no lines of {n} values that become {shape}.", "pass lines, and their table.")
    return TensorType(shape, kind.dtype)


def _shapes(node: Node, size: int, n: int) -> tuple[Shape, Shape]:
    """x and the result as the kernel takes them."""
    modes = n // 2 + 1
    if node.get("kernel") == "fft":
        lines = (size // (2 * n), n, 1, 2)
        return lines, lines
    if node.get("kernel") == "rfft":
        return (size // n, n), (size // n, modes, 2)
    return (size // (2 * modes), modes, 2), (size // (2 * modes), n)


def _scalars(node: Node, n: int) -> dict[str, Number]:
    scale = 1.0 / n if node.get("inverse") is True else 1.0
    numbers: dict[str, Number] = {"scale": np.asarray(scale, node.dtype.numpy).item()}
    if node.get("kernel") == "fft":
        return {**numbers, "inverse": int(node.get("inverse") is True)}
    return {**numbers, "modes": n // 2 + 1} if node.get("kernel") == "rfft" else numbers


def _launch(node: Node, types: Sequence[TensorType]) -> Launch:
    n = types[1].shape[0]
    shape, result = _shapes(node, types[0].size, n)
    return Launch(kernels.get(str(node.get("kernel"))), (shape, (n, 2)), result, _scalars(node, n))


def _evaluate(node: Node, x: HostArray, twiddles: HostArray) -> HostArray:
    shape, _ = _shapes(node, x.size, len(twiddles))
    kernel = kernels.get(str(node.get("kernel")))
    lines = np.ascontiguousarray(x).reshape(shape)
    return np.asarray(kernel.reference(lines, twiddles, **_scalars(node, len(twiddles)))).reshape(node.shape)


LINES: Final = Op("fourier_lines", _infer_lines, _evaluate, arity=(2, 2), launch=_launch)
"""A transform with its table."""
FFT: Final = composition("fft", _infer, _expand, (1, 1))
RFFT: Final = composition("rfft", _infer, _expand, (1, 1))
IRFFT: Final = composition("irfft", _infer, _expand, (1, 1))
OPS: Final = (FFT, RFFT, IRFFT, LINES)
