"""Runs of a pipeline: where they are submitted, one at a time, and counted."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from mmap import PAGESIZE
from typing import TYPE_CHECKING

import numpy as np

from dashi.errors import ClosedError, DeviceError, GraphError, InputError, TimeoutError_, suggestion
from dashi.graph._assembly import Assembly
from dashi.graph._batches import Slots
from dashi.graph._recordings import Recordings, ResidentKey
from dashi.graph.calls import CallConfig, CallCounts, PipelineRun
from dashi.graph.evaluation import require_input_names, require_values
from dashi.graph.ir import Graph, Node
from dashi.graph.ops.random import RNG_INPUT, rng_words
from dashi.graph.passes.record import PipelineMemory, Recorded
from dashi.runtime._host_values import lies_on_a_device
from dashi.runtime.array import Array
from dashi.types import HostArray

if TYPE_CHECKING:
    from dashi.runtime._clock import StepSpan
    from dashi.runtime.device import Device, Program

Values = Mapping[str, HostArray]
_MOST_RECORDINGS = 16
IMPORT_FROM = 16 << 20
"""Bytes: arrays of the host that are as large, and begin with a page, are read where they are."""


class Runs:
    """A graph's recordings on a device, and what they share. `_submitting` guards all that changes."""

    def __init__(self, assembly: Assembly, memory: PipelineMemory, recorded: Recorded) -> None:
        self.device: Device = assembly.device
        self._assembly = assembly
        self._graph: Graph = assembly.graph
        self._memory = memory
        self._recorded = recorded
        self._inputs = self._graph.of("input")
        self._signature = tuple((node, node.shape, node.dtype.numpy) for node in self._inputs)
        self._large = tuple(n.name for n in self._inputs if n.type.nbytes >= IMPORT_FROM and n.name in recorded.inputs)
        self._all = tuple(title for title, _ in self._graph.outputs)
        self._slots = Slots(assembly.slots)
        # Host steps wait inside a submission; two at once would share the arena.
        self._submitting = threading.Lock()
        self._counts = CallCounts()
        self._rng: HostArray | None = None
        self._closed = False
        self._last: PipelineRun | None = None
        self._latest: tuple[Recorded, int] = (recorded, 0)
        self._recordings = Recordings[ResidentKey](self._record, _MOST_RECORDINGS)

    def set_rng(self, seed: int, request: int = 0, position: int = 0) -> None:
        """The seed (64 bits) of later runs, and which request and position they are: what draws read that nothing else
        is named for. Nothing is compiled or recorded again; the same words give the same numbers, on every device."""
        self._require_open()
        if RNG_INPUT not in self._graph.by_name:
            raise GraphError(
                f"the graph {self._graph.name!r} has no input {RNG_INPUT!r}, so that nothing in it is random.",
                f"declare it: Builder.input({RNG_INPUT!r}, (4,), 'u32').",
            )
        node = self._graph[RNG_INPUT]
        words = require_values(node, rng_words(seed, request, position, node.shape))
        with self._submitting:
            self._rng = words
            self._rebind(node, words)

    def step_times(self) -> tuple[StepSpan, ...]:
        """When each step of the latest run was under way on the device's clock, in nanoseconds; waits for it. For
        pipelines with the debug switch `timing`."""
        self._require_open()
        if not self._assembly.debug.timing:
            raise InputError(
                f"the steps of the pipeline {self._graph.name!r} are not timed.",
                "compile it with debug=Debug(timing=True), or DASHI_GRAPH_DEBUG=timing.",
            )
        self._require_run()
        assert self._last is not None
        return self._last.ticket.step_times()

    def bare_program(self) -> Program:
        """The steps of a run as a program of their own, without what goes to the device and comes back: what a run
        takes at least. The caller closes it, before the pipeline."""
        self._require_open()
        return self.device.program(self._recorded.program.steps, label=f"{self._graph.name} alone")

    def _rebind(self, node: Node, values: HostArray) -> None:
        """New values of an input, where it is bound."""

    def _submit(
        self, inputs: Values, titles: tuple[str, ...], timed: Recorded | None = None, *, borrow: bool = False
    ) -> PipelineRun:
        """Starts a run whose inputs are all arrays of the host. Where the caller waits for the run, the device may
        `borrow` them."""
        self._require_open()
        values = self._host_values(inputs)
        imported = self._imports(values) if borrow and self._large and timed is None else {}
        with self._submitting:
            if imported:
                recorded = self._recorded_for(ResidentKey((), (), titles, frozenset(imported)))
            else:
                recorded = timed or self._without_state(titles)
            self._bring(imported)
            self._counts.copied_through_host += on_devices(inputs)
            return self._start(recorded, {array: values[name] for name, array in recorded.inputs.items()})

    def _imports(self, values: Mapping[str, object]) -> dict[str, Array]:
        """Large arrays of the host as arrays of the device, where it can use their memory."""
        imported: dict[str, Array] = {}
        for name in self._large:
            host = values[name]
            if isinstance(host, np.ndarray) and not host.ctypes.data % PAGESIZE:
                with contextlib.suppress(InputError, DeviceError):  # then it is copied, as small ones are
                    imported[name] = self.device.from_dlpack(host, copy=False)
        return imported

    def _bring(self, imported: Mapping[str, Array]) -> None:
        """Has the device copy what it borrowed to where steps read it; the caller holds `_submitting`."""
        if imported:
            steps = [self.device.copy_step(array, self._recorded.inputs[name]) for name, array in imported.items()]
            with self.device.program(steps, label=f"{self._graph.name} inputs") as program:
                program.submit()
            self._counts.imported += len(imported)
            self._counts.bytes_in += sum(array.nbytes for array in imported.values())

    def _host_values(self, inputs: Values) -> dict[str, HostArray]:
        """The values of all inputs, with their shapes and types."""
        require_names(inputs)
        values: dict[str, HostArray] = {}
        for node, shape, dtype in self._signature:
            value = inputs.get(node.name)
            # What is an array of the right kind already, as in every steady loop, costs three compares.
            plain = type(value) is np.ndarray and value.shape == shape and value.dtype == dtype
            values[node.name] = value if plain else self._host_value(node, inputs)  # pyright: ignore[reportArgumentType]
        if len(inputs) != len(values) or not inputs.keys() <= values.keys():
            require_input_names(self._graph, inputs)
        return values

    def _host_value(self, node: Node, inputs: Mapping[str, object]) -> HostArray:
        value = inputs.get(node.name)
        if value is None and node.name == RNG_INPUT:
            value = self._rng
        if value is None:
            require_input_names(self._graph, inputs)  # it may be there under a wrong name
        return require_values(node, value)

    def _without_state(self, titles: tuple[str, ...]) -> Recorded:
        if titles == self._all and not self._assembly.debug.record_again:
            return self._recorded
        return self._recorded_for(ResidentKey((), (), titles))

    def _recorded_for(self, key: ResidentKey) -> Recorded:
        return self._record(key) if self._assembly.debug.record_again else self._recordings.get(key)

    def _start(self, recorded: Recorded, feed: Mapping[Array, object]) -> PipelineRun:
        """Submits a recording; the caller holds `_submitting`."""
        program, counts = recorded.program, self._counts
        allocated, reused = program.slot_counts
        ticket = program.submit(feed=feed or None)
        now_allocated, now_reused = program.slot_counts
        counts.runs += 1
        counts.bytes_in += recorded.bytes_in
        counts.bytes_out += recorded.bytes_out
        counts.slots_allocated += now_allocated - allocated
        counts.slots_reused += now_reused - reused
        run = PipelineRun(recorded, ticket)
        self._latest = (recorded, ticket.run if recorded.left_in_slots else 0)
        if self._assembly.debug.timing:
            self._last = run
        return run

    def _record(self, key: ResidentKey) -> Recorded:
        memory = self._memory.with_resident({name: place.block for name, place in key.inputs})
        memory = memory.with_imported(key.imported)
        copies = [(title, place.array, upper) for title, place, upper in key.copies]
        return self._assembly.record(memory, copies, key.fetch)

    def _slot(self, config: CallConfig | None) -> AbstractContextManager[object]:
        """While it lasts, one of the runs that may be under way is the caller's."""
        return self._slots if config is None or config.timeout is None else self._slot_within(config.timeout)

    @contextmanager
    def _slot_within(self, seconds: float) -> Generator[None]:
        if not self._slots.acquire(timeout=seconds):
            raise TimeoutError_(
                f"all {self._assembly.slots} slots of the pipeline {self._graph.name!r} were in use for {seconds} s.",
                "call it from fewer threads, or compile it with more slots.",
            )
        try:
            yield
        finally:
            self._slots.release()

    def _titles(self, outputs: Sequence[str] | Mapping[str, HostArray] | None) -> tuple[str, ...]:
        """The results to read, in the graph's order."""
        if outputs is None:
            return self._all
        if isinstance(outputs, str) or not isinstance(outputs, Iterable):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise InputError(f"the outputs of a run are {outputs!r:.80}.", "give a list of names, or None for all.")
        if tuple(outputs) == self._all:
            return self._all
        for title in outputs:
            self._require_result(title)
        return tuple(title for title in self._all if title in outputs)

    def _result_node(self, title: str) -> Node:
        self._require_result(title)
        return self._graph[dict(self._graph.outputs)[title]]

    def _require_result(self, title: str) -> None:
        if title not in self._all:
            raise GraphError(
                f"there is no result {title!r}.", f"{suggestion(title, self._all)}name one of {', '.join(self._all)}."
            )

    def _require_run(self) -> None:
        if not self._counts.runs:
            raise GraphError(f"the pipeline {self._graph.name!r} has not run yet.", "dispatch it first.")

    def _require_open(self) -> None:
        if self._closed:
            raise ClosedError(f"the pipeline {self._graph.name!r} is closed.", "compile it again, or close it later.")


def require_names(inputs: object) -> None:
    """Raises where inputs are no values by name."""
    if type(inputs) is not dict and not isinstance(inputs, Mapping):
        raise InputError(
            f"the inputs of a run are {type(inputs).__name__}, not values by name.", "pass a dict: {name: array}."
        )


def on_devices(inputs: Mapping[str, object]) -> int:
    """How many values lie where the host has to copy them from."""
    foreign = [value for value in inputs.values() if type(value) is not np.ndarray]
    return sum(isinstance(value, Array) or lies_on_a_device(value) for value in foreign)
