"""NumPy twin of the portable maths include: the same bits as the shaders, for float32 and float64 arrays.

Arguments are made canonical first and results are canonical. Only correctly rounded operations are used (NumPy's
vectorised add, subtract and multiply are never contracted), in the order of the shaders.
"""

from __future__ import annotations

from dashi.kernels.portable._atan import atan, atan2
from dashi.kernels.portable._bits import canon, mul, order_key, order_value
from dashi.kernels.portable._erf import erf
from dashi.kernels.portable._exp import exp, log, softplus, tanh
from dashi.kernels.portable._pow import pow
from dashi.kernels.portable._roots import divide, reciprocal, rsqrt, sqrt
from dashi.kernels.portable._rounding import ceil, floor, round, trunc
from dashi.kernels.portable._sums import Matrix, contract, prefix64, prepare, prod64, sum64
from dashi.kernels.portable._trig import cos, sin, sincos

__all__ = [
    "Matrix",
    "atan",
    "atan2",
    "canon",
    "ceil",
    "contract",
    "cos",
    "divide",
    "erf",
    "exp",
    "floor",
    "log",
    "mul",
    "order_key",
    "order_value",
    "pow",
    "prefix64",
    "prepare",
    "prod64",
    "reciprocal",
    "round",
    "rsqrt",
    "sin",
    "sincos",
    "softplus",
    "sqrt",
    "sum64",
    "tanh",
    "trunc",
]
