"""The functions of values that fused kernels are made of: those of kernels of the elementwise family."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from dashi import kernels
from dashi.kernels._calls import resolve_call
from dashi.kernels.abi import Kernel


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
        return kernels.get(self.name)

    def flops(self, variant: str) -> int:
        """Operations per element."""
        return self.kernel.cost(resolve_call(self.kernel, variant, [(1,)] * self.inputs)).flops


OPS: Final = {
    op.name: op
    for op in (
        *(Op(name, 2) for name in ("add", "sub", "div")),
        *(Op(name, 2, flushed=True) for name in ("mul", "maximum", "minimum")),
        *(Op(name, 1, flushed=True) for name in ("abs", "relu", "sign", "square")),
        *(Op(name, 1) for name in "cos exp log neg reciprocal rsqrt sigmoid sin softplus sqrt tanh".split()),
    )
}
