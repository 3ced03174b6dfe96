"""Who may write which buffer, who owns the State of a step, when a slot is free: kept in a ledger by debug runs.

A ledger only looks: whoever runs a chain tells it what happens, and it raises a StreamContractError at the first thing
that the contracts do not allow. It may be told from several threads. `dashi.stream.run(..., debug=True)` has one that
is told of States, slots and looks; of buffers and broadcasts executors of your own may tell it.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from dashi.errors import StreamContractError, StreamRuleError
from dashi.stream._model import BroadcastSpec
from dashi.stream._rules import R5

Combine = Literal["", "sum", "max", "overwrite"]
"""How several writers of a buffer are combined; a single writer needs nothing."""


def debug_wanted() -> bool:
    """Whether the environment asks for debug runs: DASHI_STREAM_DEBUG is 1."""
    return os.environ.get("DASHI_STREAM_DEBUG") == "1"


@dataclass(frozen=True)
class BufferContract:
    """A buffer: its single writer, or how several are combined, and its device of record."""

    name: str
    device: str
    writer: str = ""
    combine: Combine = ""


class ContractLedger:
    """What happened so far in a run, as far as contracts ask."""

    def __init__(self, buffers: Iterable[BufferContract] = (), broadcasts: Iterable[BroadcastSpec] = ()) -> None:
        self._contracts: dict[str, BufferContract] = {}
        for buffer in buffers:
            if buffer.name in self._contracts or bool(buffer.writer) == bool(buffer.combine):
                raise StreamContractError(
                    f"the buffer {buffer.name!r} is declared twice, or needs a writer or a reduction, not both.",
                    "name its single writer, or `combine` (sum, max or overwrite).",
                )
            self._contracts[buffer.name] = buffer
        self._announced = {one.after: one.to for one in broadcasts}
        self._owners: dict[int, str] = {}
        self._slots: dict[tuple[str, int], int] = {}
        self._signalled: dict[str, int] = {}
        self._evolved: set[tuple[str, int]] = set()
        self._received: set[tuple[str, str, int]] = set()
        self._lock = threading.Lock()

    # Buffers

    def write(self, buffer: str, stage: str, device: str) -> None:
        """A stage writes a buffer on a device."""
        contract = self._contracts.get(buffer)
        if contract is None:
            raise StreamContractError(
                f"stage {stage!r} writes the buffer {buffer!r}, which nobody declared.",
                "declare its writer and device.",
            )
        if contract.writer and contract.writer != stage:
            raise StreamContractError(
                f"stage {stage!r} writes the buffer {buffer!r}, whose single writer is {contract.writer!r}.",
                "let its writer do it, or declare how several are combined.",
            )
        if contract.device != device:
            raise StreamContractError(
                f"stage {stage!r} writes the buffer {buffer!r} on {device!r}; its device of record is "
                f"{contract.device!r}.",
                "write it there, or send a State.",
            )

    # States

    def take(self, step: int, stage: str) -> None:
        """A stage becomes the owner of the canonical State of a step, which nobody owned."""
        with self._lock:
            owner = self._owners.get(step)
            if owner is not None:
                raise StreamContractError(
                    f"stage {stage!r} takes the State of step {step}, which stage {owner!r} owns.",
                    "hand it over first: exactly one stage owns the State of a step.",
                )
            self._owners[step] = stage

    def hand_over(self, step: int, source: str, target: str) -> None:
        """The owner of the State of a step hands it to the next stage; "" is who takes results away."""
        with self._lock:
            owner = self._owners.get(step)
            if owner != source:
                raise StreamContractError(
                    f"stage {source!r} hands on the State of step {step}, which "
                    f"{f'stage {owner!r}' if owner else 'nobody'} owns.",
                    "hand on what is owned, once.",
                )
            if target:
                self._owners[step] = target
            else:
                del self._owners[step]

    # Links

    def use_slot(self, link: str, step: int, window: int) -> int:
        """A link begins to fill the slot of a step; which one that is. Its former content must have been consumed."""
        slot = step % window
        with self._lock:
            former = self._slots.get((link, slot))
            if former is not None:
                raise StreamContractError(
                    f"link {link} fills slot {slot} with step {step} before its consumer has signalled step {former}.",
                    "wait for the consumer: this is the backpressure.",
                )
            self._slots[link, slot] = step
        return slot

    def signal(self, link: str, step: int, window: int) -> None:
        """The consumer of a link is done with a step. Steps are signalled in rising order."""
        with self._lock:
            last = self._signalled.get(link)
            if last is not None and step <= last:
                raise StreamContractError(
                    f"link {link} signals step {step} after step {last}: its timeline must rise.",
                    "signal each step once, in order.",
                )
            if self._slots.pop((link, step % window), None) != step:
                raise StreamContractError(
                    f"link {link} signals step {step}, which is in none of its slots.", "signal what was received."
                )
            self._signalled[link] = step

    # Barriers

    def evolved(self, stage: str, step: int) -> None:
        """The ops of a stage are done with a step: its observers may look."""
        with self._lock:
            self._evolved.add((stage, step))

    def observe(self, stage: str, op: str, step: int) -> None:
        """An observer looks at the State of a step: after the step barrier alone."""
        with self._lock:
            if (stage, step) not in self._evolved:
                raise StreamContractError(
                    f"the observer {op!r} looks at step {step} in stage {stage!r} before its ops are done.",
                    "observe after the step barrier.",
                )

    def forget(self, stage: str, step: int) -> None:
        """A stage will not be asked for a step again."""
        with self._lock:
            self._evolved.discard((stage, step))
            self._received = {one for one in self._received if one[1:] != (stage, step)}

    def broadcast(self, op: str, stage: str, step: int) -> None:
        """The results of an op are given to a stage besides the next: where that was announced, once for a step."""
        if stage not in self._announced.get(op, ()):
            raise StreamRuleError.of(
                R5, op, "",
                f"the results of op {op!r} are given to stage {stage!r}, and no broadcast says so.",
                f"write broadcast: {{after: {op}, to: [{stage}]}}.",
            )  # fmt: skip
        with self._lock:
            if (op, stage, step) in self._received:
                raise StreamContractError(
                    f"the results of op {op!r} at step {step} are given to stage {stage!r} twice.", "give them once."
                )
            self._received.add((op, stage, step))

    def close(self) -> None:
        """The end of a run that was drained: nobody owns a State, and no slot is full."""
        with self._lock:
            if self._owners or self._slots:
                places = [f"stage {owner!r} (step {step})" for step, owner in self._owners.items()]
                places += [f"link {link} (step {step})" for (link, _), step in self._slots.items()]
                raise StreamContractError(
                    f"the run ended while States were held by {', '.join(places[:4])}.",
                    "drain the chain before it ends.",
                )
