"""Norms over channels, groups and batches: maps over rows (`dashi.graph.ops.rows`) of other axes than the last, with
weights for each channel. x has the shape (N, C, *lengths), weights (C,)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from dashi.errors import GraphError
from dashi.graph._arguments import checked
from dashi.graph.ir import Node, TensorType
from dashi.graph.ops._compositions import composition
from dashi.graph.ops.elementwise import one_dtype, sqrt

if TYPE_CHECKING:
    from dashi.graph.builder import Tensor


@checked
def group_norm(x: Tensor, gamma: Tensor, beta: Tensor, groups: int, epsilon: float = 1e-5) -> Tensor:
    """(x - mean) / sqrt(variance + epsilon) over each group of channels of each image, times gamma, plus beta."""
    return x.builder.add(GROUP_NORM, x, gamma, beta, groups=groups, epsilon=epsilon)


@checked
def instance_norm(x: Tensor, gamma: Tensor, beta: Tensor, epsilon: float = 1e-5) -> Tensor:
    """(x - mean) / sqrt(variance + epsilon) over each channel of each image, times gamma, plus beta."""
    return x.builder.add(INSTANCE_NORM, x, gamma, beta, epsilon=epsilon)


@checked
def layer_norm_2d(x: Tensor, gamma: Tensor, beta: Tensor, epsilon: float = 1e-5) -> Tensor:
    """(x - mean) / sqrt(variance + epsilon) over the channels at each place of an image, times gamma, plus beta."""
    return x.builder.add(LAYER_NORM_2D, x, gamma, beta, epsilon=epsilon)


@checked
def batch_norm(x: Tensor, mean: Tensor, variance: Tensor, gamma: Tensor, beta: Tensor, epsilon: float = 1e-5) -> Tensor:
    """(x - mean) * (gamma / sqrt(variance + epsilon)) + beta, with a mean and a variance for each channel that were
    found before: the form for inference."""
    return x.builder.add(BATCH_NORM, x, mean, variance, gamma, beta, epsilon=epsilon)


def _infer(node: Node, types: Sequence[TensorType]) -> TensorType:
    kind = one_dtype(types)
    if kind.dtype.name not in ("f32", "f64") or len(kind.shape) < 2:
        raise GraphError(f"{node.op} is not defined for {kind}.", "pass floats of shape (N, C, *lengths).")
    if any(other.shape != kind.shape[1:2] for other in types[1:]):
        shapes = ", ".join(str(other.shape) for other in types[1:])
        raise GraphError(f"weights {shapes} for {kind.shape[1]} channels.", "pass one number for each channel.")
    if not node.number("epsilon") >= 0:
        raise GraphError(f"epsilon is {node.get('epsilon')}.", "pass 0 or more.")
    if node.op != "batch_norm" and math.prod(kind.shape[1:]) == 0:
        raise GraphError(f"{node.op} of nothing: {kind.shape}.", "pass channels and lengths that are not 0.")
    return kind


def _infer_groups(node: Node, types: Sequence[TensorType]) -> TensorType:
    kind, groups = _infer(node, types), node.integer("groups")
    if groups < 1 or kind.shape[1] % groups:
        raise GraphError(f"{kind.shape[1]} channels are no {groups} groups.", "pass a divisor of the channels.")
    return kind


def _grouped(node: Node, x: Tensor, gamma: Tensor, beta: Tensor, groups: int) -> Tensor:
    batch, channels = x.shape[:2]
    parts = x.reshape(batch, groups, channels // groups, math.prod(x.shape[2:]))
    normal = x.builder.apply("standardize", parts, axes=(2, 3), epsilon=node.number("epsilon"))
    weights = (w.reshape(groups, channels // groups, 1) for w in (gamma, beta))
    return (normal * next(weights) + next(weights)).reshape(*x.shape)


def _expand_group(node: Node, x: Tensor, gamma: Tensor, beta: Tensor) -> Tensor:
    return _grouped(node, x, gamma, beta, node.integer("groups"))


def _expand_instance(node: Node, x: Tensor, gamma: Tensor, beta: Tensor) -> Tensor:
    lengths = range(2, len(x.shape))
    if not lengths:
        return _grouped(node, x, gamma, beta, x.shape[1])
    normal = x.builder.apply("standardize", x, axes=tuple(lengths), epsilon=node.number("epsilon"))
    return normal * _by_channel(gamma, x) + _by_channel(beta, x)


def _expand_layer(node: Node, x: Tensor, gamma: Tensor, beta: Tensor) -> Tensor:
    normal = x.builder.apply("standardize", x, axes=(1,), epsilon=node.number("epsilon"))
    return normal * _by_channel(gamma, x) + _by_channel(beta, x)


def _expand_batch(node: Node, x: Tensor, *weights: Tensor) -> Tensor:
    mean, variance, gamma, beta = (_by_channel(w, x) for w in weights)
    return (x - mean) * (gamma / sqrt(variance + node.number("epsilon"))) + beta


def _by_channel(weights: Tensor, x: Tensor) -> Tensor:
    """One number for each channel, as it is stretched over the lengths."""
    return weights.reshape(*weights.shape, *(1 for _ in x.shape[2:]))


GROUP_NORM: Final = composition("group_norm", _infer_groups, _expand_group, (3, 3))
INSTANCE_NORM: Final = composition("instance_norm", _infer, _expand_instance, (3, 3))
LAYER_NORM_2D: Final = composition("layer_norm_2d", _infer, _expand_layer, (3, 3))
BATCH_NORM: Final = composition("batch_norm", _infer, _expand_batch, (5, 5))
OPS: Final = (GROUP_NORM, INSTANCE_NORM, LAYER_NORM_2D, BATCH_NORM)
