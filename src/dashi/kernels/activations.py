"""Activations of neural networks as formulas over values (`dashi.kernels.expressions`): each is the composition that
its docstring names, and gives the bits of those kernels one after another."""

from __future__ import annotations

import math
from typing import Final

from dashi.kernels.expressions import Expression, clamp, constant, cos, erf, exp, sigmoid, sin, softplus, tanh, where

__all__ = ["elu", "gelu", "gelu_tanh", "hard_sigmoid", "hard_swish", "leaky_relu", "mish", "selu", "silu", "tan"]

_ROOT_HALF: Final = math.sqrt(0.5)
_GELU_SCALE: Final = math.sqrt(2 / math.pi)
_GELU_CUBE: Final = 0.044715
_SELU_ALPHA: Final = 1.67326319217681884765625
_SELU_GAMMA: Final = 1.05070102214813232421875


def _value(x: Expression | float) -> Expression:
    return x if isinstance(x, Expression) else constant(x)


def elu(x: Expression | float, alpha: Expression | float = 1.0) -> Expression:
    """x, or alpha (e^x - 1) below 0."""
    v = _value(x)
    return where(v < 0.0, (exp(v) - 1.0) * alpha, v)


def gelu(x: Expression | float) -> Expression:
    """x (1 + erf(x / sqrt 2)) / 2 (D. Hendrycks and K. Gimpel, arXiv:1606.08415)."""
    v = _value(x)
    return v * 0.5 * (erf(v * _ROOT_HALF) + 1.0)


def gelu_tanh(x: Expression | float) -> Expression:
    """x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))) / 2, the approximate form of `gelu`."""
    v = _value(x)
    return v * 0.5 * (tanh((v + v * v * v * _GELU_CUBE) * _GELU_SCALE) + 1.0)


def hard_sigmoid(x: Expression | float, alpha: float = 0.2, beta: float = 0.5) -> Expression:
    """alpha x + beta, at least 0 and at most 1."""
    return clamp(_value(x) * alpha + beta, 0.0, 1.0)


def hard_swish(x: Expression | float) -> Expression:
    """x times `hard_sigmoid` with alpha 1/6."""
    v = _value(x)
    return v * hard_sigmoid(v, 1 / 6, 0.5)


def leaky_relu(x: Expression | float, slope: Expression | float = 0.01) -> Expression:
    """x, or slope x below 0."""
    v = _value(x)
    return where(v < 0.0, v * slope, v)


def mish(x: Expression | float) -> Expression:
    """x tanh(softplus(x))."""
    v = _value(x)
    return v * tanh(softplus(v))


def selu(x: Expression | float, alpha: float = _SELU_ALPHA, gamma: float = _SELU_GAMMA) -> Expression:
    """gamma times `elu`, with the constants of G. Klambauer et al., arXiv:1706.02515."""
    return elu(x, alpha) * gamma


def silu(x: Expression | float) -> Expression:
    """x sigmoid(x), also called swish."""
    v = _value(x)
    return v * sigmoid(v)


def tan(x: Expression | float) -> Expression:
    """sin(x) / cos(x), of radians."""
    return sin(x) / cos(x)
