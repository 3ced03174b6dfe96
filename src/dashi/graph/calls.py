"""Calls of a pipeline: what one may say beside its inputs, what is counted of all, and how results are read."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple, cast

import numpy as np

from dashi.errors import DashiError, InputError
from dashi.graph.passes.record import Recorded
from dashi.types import HostArray

if TYPE_CHECKING:
    from dashi.runtime.device import Device
    from dashi.runtime.landing import Ticket


@dataclass(frozen=True)
class CallConfig:
    """What a call may say beside its inputs: the longest that it may wait for its run, in seconds; the outputs that are
    read; and a label, which errors and traces of the call have."""

    timeout: float | None = None
    outputs: Sequence[str] | None = None
    label: str = ""

    def __post_init__(self) -> None:
        number = isinstance(self.timeout, (int, float, np.number))
        if self.timeout is not None and not (number and self.timeout > 0):
            raise InputError(f"a call cannot wait for {self.timeout!r} seconds.", "give more than 0, or None.")
        if self.outputs is not None and (isinstance(self.outputs, str) or not isinstance(self.outputs, Sequence)):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise InputError(f"`outputs` is {self.outputs!r:.80}.", "give a list of names, or None for all.")
        if not isinstance(self.label, str):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise InputError(f"`label` is {self.label!r:.80}.", "give text.")


@dataclass
class CallCounts:
    """Totals of a pipeline's runs so far. Slots are the memory of the host that inputs and outputs of runs pass
    through; places are the memory of outputs that stay on the device."""

    runs: int = 0
    bytes_in: int = 0
    bytes_out: int = 0
    slots_allocated: int = 0
    slots_reused: int = 0
    places_allocated: int = 0
    places_reused: int = 0
    copied_through_host: int = 0
    """Inputs that other libraries had in memory of a device."""
    imported: int = 0
    """Inputs that the device read where the caller has them."""


class PipelineRun(NamedTuple):
    """A run that was submitted; whoever holds it may read its results."""

    recorded: Recorded
    ticket: Ticket


def finish(
    run: PipelineRun, outputs: Mapping[str, HostArray | None], config: CallConfig | None
) -> dict[str, HostArray]:
    """The results of a run by name, new or in arrays of the caller."""
    recorded, ticket = run
    # To read a result is to wait for it.
    if not outputs or (config is not None and config.timeout is not None):
        ticket.wait(None if config is None else config.timeout)
    return {title: ticket.fetched(recorded.results[title], out=out) for title, out in outputs.items()}


def require_arrays(outputs: object) -> None:
    """Raises where what results are written into are no arrays by name."""
    if type(outputs) is not dict and not isinstance(outputs, Mapping):
        raise InputError(f"results are written into {outputs!r:.80}.", "pass a dict: {name: array}.")
    for title, array in cast("Mapping[object, object]", outputs).items():
        if array is None:
            raise InputError(f"the result {title!r} is written into None.", "pass an array, or leave the name out.")


def waits(config: CallConfig | None) -> bool:
    """Whether a call returns when its run is done, and not before."""
    return config is None or config.timeout is None


def labelled(device: Device, config: CallConfig | None) -> AbstractContextManager[None]:
    """While it lasts, submissions and errors have the label of a call, if it has one."""
    return _PLAIN if config is None or not config.label else _labelled(device, config.label)


_PLAIN: Final = nullcontext()


@contextmanager
def _labelled(device: Device, label: str) -> Generator[None]:
    with device.listeners.labelled(label):
        try:
            yield
        except DashiError as error:
            raise type(error)(f"in the call {label!r}: {error.what}", error.fix) from error


def wanted_outputs(
    config: CallConfig | None, outputs: Sequence[str] | Mapping[str, HostArray] | None
) -> Sequence[str] | Mapping[str, HostArray] | None:
    """The outputs that a call names, in one place or the other."""
    if config is not None and not isinstance(config, CallConfig):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise InputError(f"{config!r} is no config of a call.", "pass a dashi.graph.CallConfig, or None.")
    if config is None or config.outputs is None:
        return outputs
    if outputs is not None:
        raise InputError("a call names its outputs twice.", "leave `outputs` out of the config.")
    return config.outputs
