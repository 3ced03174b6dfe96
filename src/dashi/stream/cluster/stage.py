"""Stages of a chain over machines: what a rank does with each item, and what it must keep to do it again."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

import numpy as np

from dashi.errors import InputError
from dashi.types import HostArray

Arrays = Mapping[str, HostArray]
"""The named arrays of an item, or of the memory of a stage."""


class RankStage(ABC):
    """One stage of a chain over machines. Every rank has all stages; a rank opens those that it runs.

    A stage that has memory (`stateful`) keeps it in arrays: `snapshot` gives a copy, `restore` takes one back, and
    `restore(None)` is the state before the first item. What `compute` gives must follow from that memory and the item
    alone: after a loss the items since the last snapshot are computed again, and must have the same bits.
    """

    id: str
    stateful: bool = False
    migratable: bool = True
    """Whether another rank may take it over when its own is lost."""
    node: str | None = None
    """The name of the machine that it should run on; None: any."""

    def open(self) -> None:  # noqa: B027 - most stages have nothing to open
        """Makes ready what it needs on this rank: devices, programs, files."""

    @abstractmethod
    def compute(self, step: int, item: Arrays) -> Arrays:
        """The item of the next stage. The arrays of `item` are read-only, and valid until it returns."""

    def snapshot(self) -> Arrays:
        """A copy of its memory after the item that was computed last."""
        return {}

    def restore(self, memory: Arrays | None) -> None:  # noqa: B027 - stages without memory
        """Takes back such a copy; None is the memory before the first item."""

    def record(self) -> Sequence[Mapping[str, Any]]:
        """What it is and did, as plain values, for the record of the run."""
        return ()

    def close(self) -> None:  # noqa: B027 - likewise
        """Frees what `open` made."""


class CallableStage(RankStage):
    """A function as a stage. Without memory `function(item)` gives the next item; with `memory`, named arrays before
    the first item, `function(memory, item)` gives the memory after it and the next item."""

    def __init__(
        self,
        id: str,
        function: Callable[..., Any],
        memory: Arrays | None = None,
        *,
        migratable: bool = True,
        node: str | None = None,
    ) -> None:
        if not id or not callable(function):
            raise InputError(f"{function!r:.80} is no stage.", "pass a name and a function of arrays.")
        self.id, self.migratable, self.node = id, migratable, node
        self.stateful = memory is not None
        self._function = function
        self._initial = None if memory is None else copied(memory)
        self.restore(None)

    def compute(self, step: int, item: Arrays) -> Arrays:
        if not self.stateful:
            return require_arrays(self.id, self._function(item))
        match self._function(self._memory, item):
            case (memory, after):
                # Its own: arrays of the item lie where the next item may arrive at any time.
                self._memory = copied(require_arrays(self.id, memory))
                return require_arrays(self.id, after)
            case other:
                raise InputError(
                    f"the stage {self.id!r} has memory, and gave {type(other).__name__}.",
                    "return a pair: the memory after the item, and the next item.",
                )

    def snapshot(self) -> Arrays:
        return copied(self._memory)

    def restore(self, memory: Arrays | None) -> None:
        before = self._initial or {} if memory is None else memory
        self._memory: Arrays = copied(before)


def copied(arrays: Arrays) -> Arrays:
    """Copies of arrays, which nobody else writes."""
    return {name: np.array(values) for name, values in arrays.items()}


def require_arrays(stage: str, result: object) -> Arrays:
    """What a function of a stage gave, if it is named arrays."""
    if not isinstance(result, Mapping):
        raise _no_item(stage, result)
    item = cast("Mapping[Any, Any]", result)
    for name, values in item.items():
        if not isinstance(name, str) or not isinstance(values, np.ndarray | np.generic):
            raise _no_item(stage, cast("object", values))
    return item


def _no_item(stage: str, result: object) -> InputError:
    return InputError(
        f"the stage {stage!r} gave {type(result).__name__}, which is no item.",
        'return arrays of NumPy by name, such as {"z": z}.',
    )
