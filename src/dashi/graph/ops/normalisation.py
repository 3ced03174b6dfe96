"""Normalisation along the last axis: softmax, layer norm, rms norm. Sums are tree64, roots and quotients portable."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from dashi.errors import GraphError
from dashi.graph.builder import Tensor
from dashi.graph.ir import Node, TensorType
from dashi.graph.op import Op
from dashi.graph.ops.elementwise import compute, one_dtype
from dashi.kernels.portable import canon, sum64
from dashi.types import HostArray


def softmax(x: Tensor) -> Tensor:
    """e^(x - max) divided by its sum along the last axis."""
    return x.builder.add(SOFTMAX, x)


def layer_norm(x: Tensor, gamma: Tensor, beta: Tensor, epsilon: float = 1e-5) -> Tensor:
    """(x - mean) / sqrt(variance + epsilon) along the last axis, times gamma, plus beta."""
    return x.builder.add(LAYER_NORM, x, gamma, beta, epsilon=epsilon)


def rms_norm(x: Tensor, gamma: Tensor, epsilon: float = 1e-6) -> Tensor:
    """x / sqrt(mean of squares + epsilon) along the last axis, times gamma."""
    return x.builder.add(RMS_NORM, x, gamma, epsilon=epsilon)


def _infer(node: Node, types: Sequence[TensorType]) -> TensorType:
    kind = one_dtype(types)
    wanted = {"softmax": 1, "rms_norm": 2, "layer_norm": 3}[node.op]
    if len(types) != wanted or kind.dtype.name not in ("f32", "f64") or not kind.shape or not kind.shape[-1]:
        raise GraphError(
            f"{node.op} needs {wanted} inputs of float32 or float64, the first with a last axis.", "pass such."
        )
    if any(t.shape != kind.shape[-1:] for t in types[1:]):
        raise GraphError(
            f"{types[1].shape} are not the weights of {kind.shape}.", "give one for each of the last axis."
        )
    if node.op != "softmax":
        node.number("epsilon")
    return kind


def _softmax(node: Node, x: HostArray) -> HostArray:
    weights = compute("exp", compute("sub", x, x.max(axis=-1, keepdims=True)))
    return compute("div", weights, canon(sum64(weights))[..., None])


def _scale(node: Node, squares: HostArray, count: int) -> HostArray:
    """1 / sqrt(mean of squares + epsilon)."""
    kind = squares.dtype
    mean = compute("div", canon(sum64(squares))[..., None], np.asarray(count, kind))
    return compute("rsqrt", compute("add", mean, canon(np.asarray(node.number("epsilon"), kind))))


def _layer_norm(node: Node, x: HostArray, gamma: HostArray, beta: HostArray) -> HostArray:
    count = x.shape[-1]
    centred = compute("sub", x, compute("div", canon(sum64(x))[..., None], np.asarray(count, x.dtype)))
    normal = compute("mul", centred, _scale(node, compute("mul", centred, centred), count))
    return compute("add", compute("mul", normal, gamma), beta)


def _rms_norm(node: Node, x: HostArray, gamma: HostArray) -> HostArray:
    return compute("mul", compute("mul", x, _scale(node, compute("mul", x, x), x.shape[-1])), gamma)


SOFTMAX: Final = Op("softmax", _infer, _softmax)
LAYER_NORM: Final = Op("layer_norm", _infer, _layer_norm)
RMS_NORM: Final = Op("rms_norm", _infer, _rms_norm)
OPS: Final = (SOFTMAX, LAYER_NORM, RMS_NORM)
