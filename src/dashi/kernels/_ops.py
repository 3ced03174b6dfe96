"""The functions of values that fused kernels are made of: those of kernels of the elementwise family."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from dashi.kernels._calls import resolve_call
from dashi.kernels._registry import default
from dashi.kernels.abi import Kernel
from dashi.types import DTYPES, HostArray


@dataclass(frozen=True)
class Op:
    """A kernel whose apply is a function of values. `flushed`: given values that are canonical, or any NaN, it returns
    such; after other functions what is too small, or -0, must become +0 before it is used."""

    name: str
    inputs: int
    flushed: bool = False

    @property
    def kernel(self) -> Kernel:
        """The kernel of that name: the definition, with its NumPy twin."""
        return default().get(self.name)

    def twin(self, *values: HostArray) -> HostArray:
        """What it makes of values in NumPy."""
        if values[0].dtype.kind == "f":
            return np.asarray(self.kernel.reference(*values))
        return _INTEGERS[self.name](*values)

    @property
    def for_integers(self) -> bool:
        """Whether it is defined for integers, which wrap round."""
        return self.name in _INTEGERS

    def flops(self, variant: str) -> int:
        """Operations per element."""
        if not DTYPES[variant].is_float:
            return 1
        return self.kernel.cost(resolve_call(self.kernel, variant, [(1,)] * self.inputs)).flops


def _relu(x: Any) -> Any:
    return np.maximum(x, np.zeros_like(x))


_INTEGERS: Final[dict[str, Callable[..., Any]]] = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "maximum": np.maximum, "minimum": np.minimum,
    "neg": np.negative, "relu": _relu, "sign": np.sign, "square": np.square,
}  # fmt: skip

OPS: Final = {
    op.name: op
    for op in (
        *(Op(name, 2) for name in ("add", "sub", "div")),
        *(Op(name, 2, flushed=True) for name in ("mul", "maximum", "minimum")),
        *(Op(name, 1, flushed=True) for name in ("abs", "relu", "sign", "square")),
        *(Op(name, 1) for name in "cos exp log neg reciprocal rsqrt sigmoid sin softplus sqrt tanh".split()),
    )
}
