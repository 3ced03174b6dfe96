"""The admissible nonlinearity of an operator: its name and numbers, checked, and how kernels are told of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from dashi.core.operators.operator import Parameter
from dashi.errors import InputError
from dashi.kernels._psi import number_of


@dataclass(frozen=True)
class Nonlinearity:
    """none, squash (tanh(alpha x)), softplus, or clamp (low to high)."""

    name: str = "none"
    alpha: float = 1.0
    low: float = -1.0
    high: float = 1.0

    def __post_init__(self) -> None:
        number_of(self.name)
        if not np.isfinite([self.alpha, self.low, self.high]).all():
            raise InputError(f"alpha, low, high are {self.alpha}, {self.low}, {self.high}.", "pass finite numbers.")
        if self.name == "clamp" and not self.low <= self.high:
            raise InputError(f"there is nothing between low={self.low} and high={self.high}.", "pass low <= high.")

    @property
    def numbers(self) -> dict[str, float]:
        """What defines it besides its name."""
        return {"alpha": self.alpha, "low": self.low, "high": self.high}

    def parameters(self, name: str) -> dict[str, Parameter]:
        """What defines it, its own name under `name`."""
        return {name: self.name, **self.numbers}

    @property
    def scalars(self) -> dict[str, Any]:
        """What kernels take."""
        return {"psi": number_of(self.name), **{key: float(value) for key, value in self.numbers.items()}}

    @classmethod
    def restore(cls, name: str, parameters: Mapping[str, Any]) -> Nonlinearity:
        """The inverse of `parameters`."""
        numbers = {key: float(parameters[key]) for key in ("alpha", "low", "high") if key in parameters}
        return cls(str(parameters.get(name, "none")), **numbers)
