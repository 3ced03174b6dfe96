"""NumPy twin of the portable maths include: the same bits as the shaders, for float32 and float64 arrays.

Arguments are made canonical first and results are canonical. Only correctly rounded operations are used (NumPy's
vectorised add, subtract and multiply are never contracted), in the order of the shaders.
"""

from __future__ import annotations

from dashi.kernels.portable._bits import canon, mul, order_key, order_value
from dashi.kernels.portable._exp import exp, log, softplus, tanh
from dashi.kernels.portable._roots import divide, reciprocal, rsqrt, sqrt
from dashi.kernels.portable._sums import Matrix, contract, prefix64, prepare, sum64
from dashi.kernels.portable._trig import cos, sin, sincos

__all__ = [
    "Matrix",
    "canon",
    "contract",
    "cos",
    "divide",
    "exp",
    "log",
    "mul",
    "order_key",
    "order_value",
    "prefix64",
    "prepare",
    "reciprocal",
    "rsqrt",
    "sin",
    "sincos",
    "softplus",
    "sqrt",
    "sum64",
    "tanh",
]
