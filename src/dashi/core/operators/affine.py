"""Dense operators: z' = z A, and z' = psi(z A + b) with an admissible nonlinearity."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from dashi.core.operators._nonlinearity import Nonlinearity
from dashi.core.operators.operator import (
    Constants,
    Operator,
    Parameter,
    Strategy,
    float_array,
    require_finite,
    square_array,
)
from dashi.errors import ShapeError
from dashi.kernels.abi import Limits
from dashi.kernels.linear import _dense_rollout as dense_rollout
from dashi.kernels.linear import _ensemble_rollout as ensemble_rollout
from dashi.runtime.array import Array
from dashi.runtime.device import Device, Step
from dashi.types import HostArray, Shape


class Affine(Operator):
    """z' = psi(z A + b): a row vector times a matrix, plus b, through `psi`: none, squash (tanh(alpha x)), softplus,
    or clamp (low to high).

    With `portable=False` products are summed as the device likes (BLAS on NumPy): faster for ensembles, not portable.
    """

    kind = "affine"

    def __init__(
        self,
        A: Any,  # noqa: N803 - the operator is called A in the equation, in files and on the command line
        b: Any = None,
        psi: str = "none",
        *,
        alpha: float = 1.0,
        low: float = -1.0,
        high: float = 1.0,
        portable: bool = True,
    ) -> None:
        matrix = square_array("A", A)
        bias = np.zeros(len(matrix), matrix.dtype) if b is None else float_array("b", b)
        if bias.shape != (len(matrix),) or bias.dtype != matrix.dtype:
            raise ShapeError(
                f"b is {bias.dtype} of shape {bias.shape}, A is {matrix.dtype} of shape {matrix.shape}.",
                f"pass b of shape ({len(matrix)},) and type {matrix.dtype}.",
            )
        require_finite("A", matrix)
        require_finite("b", bias)
        self._psi = Nonlinearity(psi, alpha, low, high)
        self._matrix, self._bias = matrix, bias
        self.portable = portable

    @property
    def shape(self) -> Shape:
        return (len(self._matrix),)

    @property
    def arrays(self) -> Mapping[str, HostArray]:
        return {"A": self._matrix, "b": self._bias}

    @property
    def parameters(self) -> Mapping[str, Parameter]:
        return self._psi.parameters("psi")

    @property
    def dtype(self) -> np.dtype[Any]:
        return self._matrix.dtype

    @classmethod
    def restore(cls, arrays: Mapping[str, HostArray], parameters: Mapping[str, Parameter]) -> Operator:
        psi = Nonlinearity.restore("psi", parameters)
        return Affine(arrays["A"], arrays.get("b"), psi.name, alpha=psi.alpha, low=psi.low, high=psi.high)

    def load(self, device: Device) -> Constants:
        return {"A": device.array(self._matrix), "b": device.array(self._bias)}

    @property
    def _scalars(self) -> dict[str, Any]:
        return self._psi.scalars

    def step(self, device: Device, constants: Constants, source: Array, target: Array) -> Sequence[Step]:
        single = source.shape[0] == 1
        if not self.portable:
            product = device.bind("gemm_fast", source, constants["A"], out=target)
        elif single:
            row, result = (device.part(a, 0, self.shape) for a in (source, target))
            product = device.bind("gemv", row, constants["A"], out=result)
        else:
            product = device.bind("gemm_tiled", source, constants["A"], out=target)
        if self._psi.name == "none" and not self._bias.any():
            return [product]
        return [product, device.bind("activate", target, constants["b"], out=target, **self._scalars)]

    def step_many(
        self,
        device: Device,
        constants: Constants,
        source: Array,
        target: Array,
        flag: Array,
        count: int,
        strategy: Strategy,
    ) -> Step:
        operands = (source, constants["A"], constants["b"])
        if strategy == "tagged":
            kernel = "rollout_tagged" if self.portable else "rollout_fast"
            return device.bind(kernel, *operands, out=(target, flag), steps=count, **self._scalars)
        return device.bind("rollout", *operands, out=target, steps=count, **self._scalars)

    def unsupported_reason(self, strategy: Strategy, limits: Limits, states: int) -> str:
        if strategy == "stepwise":
            return ""
        d, size = self.shape[0], self.dtype.itemsize
        if strategy == "tagged":
            unsupported = ensemble_rollout.why_not_spread(states, d, size, limits)
            known = self.portable or unsupported or ensemble_rollout.ensemble_layout(states, d, size, limits)
            return unsupported if known else "a workgroup cannot hold its columns"
        if not self.portable:
            return "a fast product is not made for one workgroup"
        return dense_rollout.on_chip(d, size, limits)

    def estimated_us(self, strategy: Strategy, limits: Limits, states: int) -> float:
        d, size = self.shape[0], self.dtype.itemsize
        if limits.software:
            return _on_processor(strategy, d, states)
        held = d * size <= 512
        if strategy == "workgroup":
            return (0.3 if held else 0.3 + d * d * size / 60_000) * (1 + states // 133)
        if strategy == "tagged":
            share = -(-states // max(1, limits.resident // -(-d // dense_rollout.WIDEST)))
            return max(0.5 + 0.7 * (d / 1024) + max(0.0, d * d * size - 16.8e6) / 6e6, share * d * size / 1e4)
        return 2.5 + d * d * size / 4e6 + 2 * states * d * d / 1.5e7


class Linear(Affine):
    """z' = z A."""

    kind = "linear"

    def __init__(self, A: Any, *, portable: bool = True) -> None:  # noqa: N803 - as above
        super().__init__(A, portable=portable)

    @property
    def arrays(self) -> Mapping[str, HostArray]:
        return {"A": self._matrix}

    @property
    def parameters(self) -> Mapping[str, Parameter]:
        return {}

    @classmethod
    def restore(cls, arrays: Mapping[str, HostArray], parameters: Mapping[str, Parameter]) -> Operator:
        return Linear(arrays["A"])


def _on_processor(strategy: Strategy, d: int, states: int) -> float:
    """A dispatch takes some 25 us and uses all cores, 1.4 ns a product; a workgroup uses one, 7 ns a product."""
    products = states * d * d / 1000
    return 7 * products if strategy == "workgroup" else 25 + 1.4 * products
