"""State that stays on the device between the runs of a pipeline: inputs that were put there once, results that become
inputs of the next run, and results that other pipelines take from there."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

from dashi.errors import BoundsError, ClosedError, GraphError
from dashi.graph._assembly import Assembly
from dashi.graph._batches import require_as_many, run_batch
from dashi.graph._recordings import Key, Place, Recordings, ResidentKey, RowKey
from dashi.graph.evaluation import require_input_names, require_values
from dashi.graph.ir import Graph, Node, TensorType
from dashi.graph.passes.record import PipelineMemory, Record, Recorded
from dashi.runtime._shapes import whole_number
from dashi.types import HostArray

if TYPE_CHECKING:
    from dashi.runtime.array import Array
    from dashi.runtime.device import Device
    from dashi.runtime.landing import Ticket

_MOST_RECORDINGS: Final = 16
_MOST_ROW_COPIES: Final = 256
_MOST_SPARE: Final = 4
"""So many places of freed outputs wait to be used again, for each output."""


class Resident:
    """A value on a device: an input that was bound, or a result that was left there. It lives until it is freed, or
    its pipeline is closed."""

    __slots__ = ("__weakref__", "_place", "device", "end", "name", "type")

    def __init__(self, name: str, type_: TensorType, device: Device, place: Place, end: Ticket | None = None) -> None:
        self.name = name
        self.type = type_
        self.device = device
        self._place: Place | None = place
        self.end = end
        """The end of the run that writes it."""

    @property
    def freed(self) -> bool:
        """Whether it can no longer be used."""
        return self._place is None

    @property
    def place(self) -> Place:
        """The memory that holds the value; a ClosedError where the handle was freed."""
        if self._place is None:
            raise ClosedError(f"the handle of {self.name!r} was freed.", "bind the value again, or free it later.")
        return self._place

    def take_place(self) -> Place:
        """Frees the handle, and returns the memory that held the value."""
        place = self.place
        self._place = None
        return place

    def __repr__(self) -> str:
        return f"<Resident {self.name}: {self.type} on {self.device.info.spec}{', freed' if self.freed else ''}>"


ResidentValues = Mapping[str, "HostArray | Resident"]
"""Arrays of the host or handles, by the names of inputs."""


class ResidentCalls(ABC):
    """The calls of a pipeline whose inputs or results stay on the device."""

    def __init__(self, assembly: Assembly, memory: PipelineMemory, recorded: Recorded) -> None:
        self.device: Device = assembly.device
        self._assembly = assembly
        self._graph: Graph = assembly.graph
        self._memory = memory
        self._recorded = recorded
        self._slots = threading.BoundedSemaphore(assembly.slots)
        # Host steps wait inside a submission; two at once would share the arena.
        self._submitting = threading.Lock()
        self._ran = False
        self._bound: dict[str, Resident] = {}
        self._feeds: dict[str, str] = {}
        self._handles: set[Resident] = set()
        self._spare: dict[str, list[Place]] = {}
        self._recordings = Recordings(self._record, _MOST_RECORDINGS)
        self._row_copies = Recordings(self._record, _MOST_ROW_COPIES)

    @abstractmethod
    def _require_open(self) -> None:
        """Raises where the pipeline is closed."""

    @abstractmethod
    def _require_result(self, title: str) -> None:
        """Raises where there is no such result."""

    # Values that stay

    @property
    def handles(self) -> dict[str, Resident]:
        """The handles of the inputs that are bound, by name."""
        return dict(self._bound)

    def bind(self, name: str, values: HostArray) -> Resident:
        """Puts an input on the device, where resident runs that name no other value for it read it. Bound again, it
        has the same handle and new values."""
        self._require_open()
        require_input_names(self._graph, [name])
        node = self._graph[name]
        array = require_values(node, values)
        with self._submitting:
            handle = self._bound.get(name)
            if handle is None:
                handle = self._bound[name] = Resident(name, node.type, self.device, self._new_place(node))
                self._handles.add(handle)
            handle.place.array.write(array)
        return handle

    def read(self, handle: Resident) -> HostArray:
        """A copy of a handle's value on the host, after all runs that were submitted."""
        self._require_open()
        array = self._require_handle(handle).array
        if handle.end is not None:
            handle.end.wait()
        return array.numpy()

    def free(self, handle: Resident) -> None:
        """Ends a handle of this pipeline: no run reads or feeds it any more. Memory of freed outputs serves the next
        ones; that of bound inputs goes back to the device."""
        self._require_open()
        with self._submitting:
            self._require_own(handle)
            place = handle.take_place()
            self._handles.discard(handle)
            if self._bound.get(handle.name) is handle:
                del self._bound[handle.name]
                self._feeds.pop(handle.name, None)
            else:
                spare = self._spare.setdefault(handle.name, [])
                if len(spare) < _MOST_SPARE:
                    spare.append(place)
                    return
        place.release()

    def feed(self, handle: Resident, output: str | None) -> None:
        """From now on every resident run ends by copying an output into a bound input, on the device: it is that input
        of the next run. None ends it."""
        self._require_open()
        with self._submitting:
            self._require_bound(handle)
            if output is None:
                self._feeds.pop(handle.name, None)
                return
            kind = self._result_node(output).type
            if kind != handle.type:
                raise GraphError(
                    f"the output {output!r} is {kind}, the input {handle.name!r} {handle.type}.",
                    "feed an output of the input's shape and type, or single rows: feed_rows.",
                )
            self._feeds[handle.name] = output

    def feed_rows(self, handle: Resident, output: str, src_row: int, dst_row: int) -> None:
        """Copies row `src_row` of an output, as the latest run left it, into row `dst_row` of a bound input, on the
        device and once. Rows are counted along the first axis."""
        self._require_open()
        with self._submitting:
            self._require_bound(handle)
            node = self._result_node(output)
            if (node.shape[1:], node.dtype) != (handle.type.shape[1:], handle.type.dtype):
                raise GraphError(
                    f"rows of the output {output!r} ({node.type}) are none of {handle.name!r} ({handle.type}).",
                    "feed rows of one shape and type.",
                )
            self._require_run()
            source, target = _require_row(node.type, src_row), _require_row(handle.type, dst_row)
            if node.type.nbytes:
                self._row_copies.get(RowKey(output, source, handle.place, target)).program.submit()

    def read_row(self, output: str, row: int) -> HostArray:
        """One row of an output, along its first axis, as the latest run left it; nothing else is read."""
        self._require_open()
        with self._submitting:
            node = self._result_node(output)
            self._require_run()
            return _row(self._recorded.results[output], _require_row(node.type, row)).numpy()

    # Runs

    def dispatch_resident(self, inputs: ResidentValues, outputs: Sequence[str] | None = None) -> dict[str, HostArray]:
        """The results, of which `outputs` are read, or all. Inputs are arrays of the host or handles of this device;
        those that are not named must be bound."""
        titles = self._titles(outputs)
        with self._slots:
            run = self._submit_resident(inputs, titles)
            return _finish(run, dict.fromkeys(titles))

    def dispatch_resident_into(self, inputs: ResidentValues, outputs: Mapping[str, HostArray]) -> None:
        """Writes the named results into arrays of the caller; the others are not read."""
        titles = self._titles(outputs)
        with self._slots:
            _finish(self._submit_resident(inputs, titles), outputs)

    def dispatch_resident_outputs(self, inputs: ResidentValues) -> list[Resident]:
        """Handles of all results, in their order, without a wait: other pipelines of the device take them as inputs.
        Free them here when they are no longer needed."""
        with self._slots:
            self._require_open()
            with self._submitting:
                places = {title: self._output_place(title) for title, _ in self._graph.outputs}
            try:
                _, ticket = self._submit_resident(inputs, (), places)
            except BaseException:
                for title, place in places.items():
                    self._spare.setdefault(title, []).append(place)
                raise
        handles = [
            Resident(title, self._graph[name].type, self.device, places[title], ticket.end)
            for title, name in self._graph.outputs
        ]
        with self._submitting:
            self._handles.update(handles)
        return handles

    def dispatch_resident_batched(
        self, rows: Sequence[ResidentValues], outputs: Sequence[str] | None = None
    ) -> list[dict[str, HostArray]]:
        """The results of several resident runs in order, several under way at once: each sees what those before it
        fed. An error names the item."""
        titles = self._titles(outputs)
        return run_batch(
            self._slots,
            rows,
            lambda inputs: self._submit_resident(inputs, titles),
            lambda _, run: _finish(run, dict.fromkeys(titles)),
        )

    def dispatch_resident_batched_into(
        self, rows: Sequence[ResidentValues], outputs: Sequence[Mapping[str, HostArray]]
    ) -> None:
        """Writes the results of several resident runs into arrays of the caller, by name, for each run."""
        require_as_many(rows, outputs)
        titles = [self._titles(arrays) for arrays in outputs]
        run_batch(
            self._slots,
            list(zip(rows, titles, strict=True)),
            lambda item: self._submit_resident(*item),
            lambda index, run: _finish(run, outputs[index]),
        )

    # How they are made

    def _submit_resident(
        self, inputs: ResidentValues, titles: tuple[str, ...], places: Mapping[str, Place] | None = None
    ) -> tuple[Recorded, Ticket]:
        """Starts a run; whoever holds the recording may read its results."""
        self._require_open()
        require_input_names(self._graph, inputs)
        with self._submitting:
            values = {node.name: self._value(node, inputs) for node in self._graph.of("input")}
            resident = tuple((name, value) for name, value in values.items() if isinstance(value, Place))
            copies = [(output, self._bound[name].place) for name, output in self._feeds.items()]
            recorded = self._recordings.get(ResidentKey(resident, (*copies, *(places or {}).items()), titles))
            feed = {array: values[name] for name, array in recorded.inputs.items()}
            ticket = recorded.program.submit(feed=feed or None)
            self._ran = True
            return recorded, ticket

    def _value(self, node: Node, inputs: ResidentValues) -> HostArray | Place:
        value = inputs.get(node.name, self._bound.get(node.name))
        if not isinstance(value, Resident):
            return require_values(node, value)
        place = self._require_handle(value)
        if value.type != node.type:
            raise GraphError(
                f"the input {node.name!r} is {node.type}, the handle of {value.name!r} {value.type}.",
                "pass a handle of the same shape and type.",
            )
        return place

    def _record(self, key: Key) -> Recorded:
        if isinstance(key, RowKey):
            source = _row(self._recorded.results[key.output], key.source_row)
            step = self.device.copy_step(source, _row(key.place.array, key.target_row))
            return Recorded(self.device.program([step], label=f"{self._graph.name} row"), {}, {}, {})
        memory = self._memory.with_resident({name: place.block for name, place in key.inputs})
        copies = [(title, place.array) for title, place in key.copies]
        parts = self._assembly
        return Record(slots=parts.slots).run(self.device, self._graph, parts.steps, memory, copies, key.fetch)

    def _new_place(self, node: Node) -> Place:
        block = self.device.block(max(1, node.type.nbytes))
        return Place(block, block.array(0, node.shape, node.dtype))

    def _output_place(self, title: str) -> Place:
        spare = self._spare.get(title)
        return spare.pop() if spare else self._new_place(self._result_node(title))

    def _titles(self, outputs: Sequence[str] | Mapping[str, HostArray] | None) -> tuple[str, ...]:
        """The results to read, in the graph's order."""
        for title in outputs or ():
            self._require_result(title)
        return tuple(title for title, _ in self._graph.outputs if outputs is None or title in outputs)

    def _result_node(self, title: str) -> Node:
        self._require_result(title)
        return self._graph[dict(self._graph.outputs)[title]]

    def _require_handle(self, handle: Resident) -> Place:
        if not isinstance(handle, Resident):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise GraphError(f"{handle!r} is no handle.", "pass what bind or dispatch_resident_outputs returned.")
        if handle.device is not self.device:
            raise GraphError(
                f"the handle of {handle.name!r} lies on another device ({handle.device.info.spec}).",
                "read it there, and bind the values here.",
            )
        return handle.place

    def _require_own(self, handle: Resident) -> None:
        self._require_handle(handle)
        if handle not in self._handles:
            raise GraphError(
                f"the handle of {handle.name!r} belongs to another pipeline.", "free it with the pipeline it is from."
            )

    def _require_bound(self, handle: Resident) -> None:
        self._require_handle(handle)
        if self._bound.get(handle.name) is not handle:
            raise GraphError(
                f"the handle of {handle.name!r} is none of an input that is bound here.",
                "pass what bind of this pipeline returned.",
            )

    def _require_run(self) -> None:
        if not self._ran:
            raise GraphError(f"the pipeline {self._graph.name!r} has not run yet.", "dispatch it first.")

    def _adopt(self, other: ResidentCalls) -> None:
        """Binds copies of another pipeline's inputs, and feeds them as it does."""
        for name, handle in other._bound.items():
            place = self._new_place(self._graph[name])
            if place.array.nbytes:
                place.array.write(handle.place.array)
            self._bound[name] = Resident(name, handle.type, self.device, place)
            self._handles.add(self._bound[name])
        self._feeds = dict(other._feeds)

    def _close_resident(self) -> None:
        """Ends all handles and recordings."""
        self._recordings.close()
        self._row_copies.close()
        places = [handle.take_place() for handle in self._handles if not handle.freed]
        self._handles.clear()
        self._bound.clear()
        self._spare.clear()
        for place in places:
            place.release()


def _finish(run: tuple[Recorded, Ticket], outputs: Mapping[str, HostArray | None]) -> dict[str, HostArray]:
    """The results of a run by name, new or in arrays of the caller."""
    recorded, ticket = run
    ticket.wait()
    return {title: ticket.fetched(recorded.results[title], out=out) for title, out in outputs.items()}


def _row(array: Array, row: int) -> Array:
    shape = array.shape[1:]
    return array.device.view(array, row * array.nbytes // array.shape[0], shape, array.dtype)


def _require_row(kind: TensorType, row: int) -> int:
    length = kind.shape[0] if kind.shape else 0
    number = whole_number(row, "the number of a row")
    if not 0 <= number < length:
        raise BoundsError(f"there is no row {number} in {kind}.", f"name one of {length}, counted from 0.")
    return number
