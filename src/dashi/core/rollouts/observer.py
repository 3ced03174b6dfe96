"""What looks at a run: slots on the device, the steps that fill them, and what becomes of the values on the host.

An `Observer` is a declaration: a name, a stride, what it measures. `bind` gives its form on one run. The engine records
its steps behind those of the operator and brings its slots back with the block, while the next block runs already.
Observers change no bit of the states. Any of them can be put on any run, together.

    class Largest(Observer[float]):
        name = "largest"

        def __init__(self, every: int) -> None:
            self.every = require_stride("every", every)

        def bind(self, context: Context) -> Bound:
            def steps(before, after, slots):
                return [context.device.bind("reduce_max", after, out=slots[0])]

            return Bound([((1,), context.operator.dtype)], steps, lambda step, values: float(values[0][0]))

    run = rollout(operator, z0, 1000, device="auto", observers=[Largest(every=10)])
    run.records["largest"]
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Generic, TypeVar, cast

import numpy as np

from dashi.core.operators.operator import Constants, Operator
from dashi.errors import FeatureError, InputError
from dashi.runtime.array import Array
from dashi.runtime.device import AnyStep, Device
from dashi.types import HostArray, Shape

Slot = tuple[Shape, Any]
"""Shape and element type of a value that an observed step leaves."""
Values = Sequence[HostArray]
"""The contents of an observer's slots after one step."""
BindSteps = Callable[[Array, Array, Sequence[Array]], Sequence[AnyStep]]
"""Binds the steps that fill slots from the states before and after the last step."""
TakeValues = Callable[[int, Values], Any]
"""Makes a record of the values of a step; None where nothing is to be kept."""

Row = TypeVar("Row")


class Fault(Exception):
    """A value that an observer measured is not finite; the run ends with NonFiniteError."""


@dataclass(frozen=True, eq=False)
class Context:
    """The run that an observer is bound to."""

    device: Device
    operator: Operator
    shape: Shape
    """The shape of all states, (m, *operator.shape)."""
    states: HostArray
    """The states that the run starts or goes on from."""
    stop: bool = True
    """Whether a value that is not finite ends the run."""

    @cached_property
    def constants(self) -> Constants:
        """The operator's arrays on the device, shared by everything that is bound to the run."""
        return self.operator.load(self.device)


@dataclass(frozen=True, eq=False)
class Bound:
    """An observer on one run."""

    slots: Sequence[Slot] = ()
    steps: BindSteps = lambda _before, _after, _slots: ()
    take: TakeValues = lambda _step, _values: None
    late: Callable[[], Sequence[Any]] = tuple
    """Waits for records that `take` left for later, of work that goes on beside the run, and gives them, each once.
    Asked when the last block is in, whatever ended the run but an error of its own."""
    close: Callable[[], None] = lambda: None
    """Ends what `bind` began, such as a thread, and forgets what of it is not done. Called once, whatever ended the
    run."""

    @property
    def nbytes(self) -> int:
        """Bytes of the slots of one observed step."""
        return sum(int(np.prod(shape)) * np.dtype(dtype).itemsize for shape, dtype in self.slots)


class Observer(ABC, Generic[Row]):
    """Looks at the states of a run after every so many steps."""

    name: str
    """The key of its records in `Run.records`."""
    every: int = 0
    """Steps between two looks; 0: none, but for that at the start."""
    at_start: bool = False
    """Whether it looks at the initial states too (step 0)."""
    at_end: bool = False
    """Whether it looks at the last step of a run too, where that is not on its stride."""
    compares: bool = False
    """Whether it needs the states before the last step beside those after it."""
    needs_finite: bool = False
    """Whether the states are checked wherever it looks, so that it is given nothing that is made of NaN."""
    certified: bool = True
    """Whether certificates name its kernels: not those of observers whose values nobody repeats, such as pictures."""
    transient: bool = False
    """Whether the run says nothing of it, neither its stride nor records, as of what only shows."""
    columns_of: ClassVar[Mapping[str, Slot]] = {}

    @abstractmethod
    def bind(self, context: Context) -> Bound:
        """The observer on one run. Raises InputError where the run has no such states."""

    def measure(self, stepper: Any) -> Values | None:
        """What `Bound.steps` would leave, from an operator that computes on the host; None where that is unknown, and
        the reference kernels measure it."""
        return None

    def due(self, step: int, end: int) -> bool:
        """Whether it looks after this step of a run of `end` steps."""
        return self.every > 0 and (step % self.every == 0 or (self.at_end and step == end))

    @property
    def settings(self) -> Mapping[str, int]:
        """The numbers that a run which goes on must have too."""
        return {"every": self.every}

    def columns(self, shape: Shape) -> Mapping[str, Slot]:
        """Shape and element type of each part of a record in a checkpoint, for states of this shape (m, ...); nothing
        where no records are kept."""
        return self.columns_of

    def pack(self, record: Row) -> Mapping[str, Any]:
        """A record as values of these columns."""
        return {name: getattr(record, name) for name in self.columns_of}

    def unpack(self, step: int, values: Mapping[str, Any]) -> Row:
        """The record of a step from such values."""
        raise FeatureError(
            f"the observer {self.name!r} puts records into checkpoints and does not read them.",
            f"give {type(self).__name__} a method unpack(step, values) that makes a record of its columns.",
        )


def require_observers(observers: Sequence[Any]) -> None:
    """Refuses what is no observer."""
    for each in observers:
        if not isinstance(each, Observer):
            raise InputError(
                f"{each!r:.80} is no observer.", "pass objects of classes that derive from dashi.core.Observer."
            )


def require_stride(name: str, value: Any) -> int:
    """The stride, if it is a whole number of at least 0."""
    if not isinstance(value, int | np.integer) or isinstance(value, bool) or value < 0:
        raise InputError(f"the stride {name!r} is {value!r}.", "use 1 or more, or 0 for never.")
    return int(cast("int", value))
