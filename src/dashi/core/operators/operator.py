"""What a rollout advances: an operator over states, the strategies by which it can run, and how it is kept.

An operator is its kind and version, named arrays and plain parameters. One convention everywhere: a state is a row,
so `z' = z A`. The kernels compute; an operator only binds them. States live on the device as `(m, *shape)`, m states
of one ensemble.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, Protocol, get_args

import numpy as np

from dashi.errors import DTypeError, FeatureError, InputError, ShapeError
from dashi.kernels.abi import Limits
from dashi.runtime.array import Array
from dashi.runtime.device import Device, Step
from dashi.types import HostArray, Shape

Parameter = int | float | str
Constants = Mapping[str, Array]
Strategy = Literal["stepwise", "workgroup", "tagged"]
"""How many steps run: a dispatch (or a few) for each; many in a dispatch, each state in one workgroup; many in a
dispatch over several workgroups, which pass values tagged with their step."""

STRATEGIES: tuple[Strategy, ...] = get_args(Strategy)


@dataclass(frozen=True)
class OperatorFacts:
    """What certificates, metrics and results say of what advanced the states: an operator without its arrays, or a
    model that has a rollout of its own."""

    kind: str
    shape: Shape
    """The shape of one state."""
    dtype: np.dtype[Any]
    version: int = 1
    parameters: Mapping[str, Parameter] = field(default_factory=dict[str, Parameter])
    portable: bool = True
    time_step: float = 1.0
    """Time of one step; 1 where an operator has none."""


class Operator(ABC):
    """Advances states by one step. Frozen: arrays are read-only, nothing changes after it is made."""

    kind: ClassVar[str]
    """The name of this sort of operator in files and certificates."""
    version: ClassVar[int] = 1
    """Rises when the same arrays and parameters would give other bits."""

    portable: bool = True
    """Whether every backend gives the same bits."""

    @property
    @abstractmethod
    def shape(self) -> Shape:
        """The shape of one state: (D,) or (V, B)."""

    @property
    @abstractmethod
    def arrays(self) -> Mapping[str, HostArray]:
        """The arrays that define it, by name; those of floats all have its element type."""

    @property
    def parameters(self) -> Mapping[str, Parameter]:
        """The numbers and names that define it besides the arrays."""
        return {}

    @property
    @abstractmethod
    def dtype(self) -> np.dtype[Any]:
        """float32 or float64."""

    @classmethod
    @abstractmethod
    def restore(cls, arrays: Mapping[str, HostArray], parameters: Mapping[str, Parameter]) -> Operator:
        """The operator with these arrays and parameters; the inverse of the two properties. Raises InputError."""

    def __repr__(self) -> str:
        parameters = "".join(f", {name}={value!r}" for name, value in self.parameters.items())
        shape = " x ".join(str(length) for length in self.shape)
        return f"<{type(self).__name__} of states of {shape}, {self.dtype}{parameters}>"

    @property
    def time_step(self) -> float:
        """Time of one step; 1 where steps have none."""
        return 1.0

    @property
    def facts(self) -> OperatorFacts:
        """All that documents say of it."""
        return OperatorFacts(
            self.kind, self.shape, self.dtype, self.version, dict(self.parameters), self.portable, self.time_step
        )

    def load(self, device: Device) -> Constants:
        """The arrays on a device."""
        return {name: device.array(values) for name, values in self.arrays.items()}

    @abstractmethod
    def step(self, device: Device, constants: Constants, source: Array, target: Array) -> Sequence[Step]:
        """The steps to record that advance all states once, from `source` to `target`, both `(m, *shape)`."""

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
        """One step to record that advances all states `count` times by a kernel of that strategy. `flag` is a u32[4]
        that a tagged kernel leaves 0 when all went well; `source` is left as it was, so that the chunk can be
        repeated."""
        raise FeatureError(f"{self.kind} has no kernel for the strategy {strategy!r}.", "use the strategy stepwise.")

    def unsupported_reason(self, strategy: Strategy, limits: Limits, states: int) -> str:
        """Why the strategy is not possible on a device with these limits for so many states; empty if it is."""
        return "" if strategy == "stepwise" else f"{self.kind} has no kernel that runs many steps"

    def estimated_us(self, strategy: Strategy, limits: Limits, states: int) -> float:
        """About how many microseconds a step takes: good enough to choose between strategies, no better."""
        one_by_one = 30.0 if limits.software else 3.0
        return one_by_one if strategy == "stepwise" else one_by_one / 3

    def reference_us(self, states: int) -> float:
        """About how many microseconds a step takes by the reference kernels: Python itself takes some 80, however
        small the states are."""
        return 80 + states * math.prod(self.shape) * self.shape[-1] / 200


class HostOperator(Operator):
    """An operator that computes on the host by itself, without kernels: bits of one machine and one library."""

    portable = False
    strategy: str = "fast"
    """The strategy that metrics record for it."""
    piece: int = 0
    """Steps that it computes together: a run that stops after a multiple of them, and goes on, has the bits of one that
    never stopped. 0: it may stop after any step."""

    @property
    @abstractmethod
    def host_reason(self) -> str:
        """By what it computes."""

    def runs_beside(self, device: Device) -> bool:
        """Whether observers may look at its states on this device."""
        return device.info.type == "reference"

    @abstractmethod
    def stepper(self, states: HostArray) -> HostStepper:
        """States (m, *shape) that can be advanced."""

    def load(self, device: Device) -> Constants:
        return {}

    def step(self, device: Device, constants: Constants, source: Array, target: Array) -> Sequence[Step]:
        raise FeatureError(f"{self.kind} computes on the host here, without kernels.", "use the portable operator.")


class HostStepper(Protocol):
    """States under way on the host."""

    @property
    def dispatches(self) -> int:
        """Compute dispatches that it submitted to a device so far: 0 where NumPy does it all."""
        ...

    def advance(self, steps: int) -> int:
        """Does so many steps; how many it did. It may stop at the last step whose states are finite."""
        ...

    def states(self) -> HostArray:
        """The states as they are, (m, *shape)."""
        ...

    def finite(self) -> bool:
        """Whether all values are."""
        ...


def float_array(name: str, values: Any) -> HostArray:
    """The values as a read-only array of float32 or float64."""
    array = np.array(values, order="C")
    if array.dtype not in (np.dtype(np.float32), np.dtype(np.float64)):  # in the byte order of this machine
        raise DTypeError(
            f"{name} is an array of {array.dtype}.", f"convert it: {name}.astype(np.float64), or np.float32."
        )
    array.setflags(write=False)
    return array


def square_array(name: str, values: Any) -> HostArray:
    """The values as such an array of shape (D, D)."""
    matrix = float_array(name, values)
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
        raise ShapeError(f"{name} has shape {matrix.shape}; it must be square.", f"pass {name} of shape (D, D).")
    return matrix


def require_finite(name: str, values: HostArray) -> None:
    """Refuses NaN and infinities: nothing that starts from them means anything."""
    odd = np.flatnonzero(~np.isfinite(values))
    if odd.size:
        place = ", ".join(str(int(i)) for i in np.argwhere(~np.isfinite(values))[0])
        raise InputError(
            f"{name} holds {odd.size} values that are not finite, the first at [{place}].",
            f"remove NaN and infinities from {name}.",
        )
