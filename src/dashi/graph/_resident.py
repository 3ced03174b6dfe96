"""State that stays on the device between the runs of a pipeline: inputs that were put there once, results that become
inputs of the next run, and results that other pipelines take from there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

import numpy as np

from dashi.errors import BoundsError, GraphError
from dashi.graph._assembly import Assembly
from dashi.graph._batches import require_as_many, require_sequence, run_batch
from dashi.graph._feeding import Feeding, feeding
from dashi.graph._recordings import Place, Recordings, ResidentKey, RowKey
from dashi.graph._runs import Runs, on_devices, require_names
from dashi.graph.calls import CallConfig, PipelineRun, finish, labelled, require_arrays, waits, wanted_outputs
from dashi.graph.evaluation import require_input_names, require_values
from dashi.graph.handles import Resident, ResidentValues
from dashi.graph.ir import Node, TensorType
from dashi.graph.passes.record import PipelineMemory, Recorded
from dashi.runtime._shapes import whole_number
from dashi.types import HostArray

if TYPE_CHECKING:
    from dashi.runtime.array import Array

_ROW: Final = 4
_MOST_ROW_COPIES: Final = 256
_MOST_SPARE: Final = 4
"""So many places of freed outputs wait to be used again, for each output."""


class ResidentCalls(Runs):
    """The calls of a pipeline whose inputs or results stay on the device."""

    def __init__(self, assembly: Assembly, memory: PipelineMemory, recorded: Recorded) -> None:
        super().__init__(assembly, memory, recorded)
        self._bound: dict[str, Resident] = {}
        self._feeds: dict[str, Feeding] = {}
        self._handles: set[Resident] = set()
        self._spare: dict[str, list[Place]] = {}
        self._row_copies = Recordings[RowKey](self._record_row, _MOST_ROW_COPIES)

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

    def feed(self, handle: Resident, output: str | None, *, active_extent: tuple[int, int] | None = None) -> None:
        """From now on every resident run ends by copying an output into a bound input, on the device: it is that input
        of the next run. None ends it. With `active_extent=(rows, upper)` only the first `rows` rows of the output are
        copied, and the others of the input stay; the recording is made for `upper` rows, so that only another `upper`
        is recorded again."""
        self._require_open()
        with self._submitting:
            self._require_bound(handle)
            if output is None:
                self._feeds.pop(handle.name, None)
                return
            self._feeds[handle.name] = feeding(output, self._result_node(output).type, handle, active_extent)

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
            if not node.type.nbytes:
                return
            values = self._landed(output)
            if values is not None:
                _row(handle.place.array, target).write(np.ascontiguousarray(values[source]))
            else:
                self._row_copies.get(RowKey(output, source, handle.place, target)).program.submit()

    def read_row(self, output: str, row: int) -> HostArray:
        """One row of an output, along its first axis, as the latest run left it; nothing else is read."""
        self._require_open()
        with self._submitting:
            node = self._result_node(output)
            self._require_run()
            number, values = _require_row(node.type, row), self._landed(output)
            return _row(self._recorded.results[output], number).numpy() if values is None else values[number].copy()

    def _landed(self, output: str) -> HostArray | None:
        """A result that the latest run left on the host alone; None where it lies on the device."""
        recorded, run = self._latest
        if output not in recorded.left_in_slots:
            return None
        self.device.wait()
        return recorded.program.fetched_of(run, recorded.results[output])

    # Runs

    def dispatch_resident(
        self, inputs: ResidentValues, outputs: Sequence[str] | None = None, *, config: CallConfig | None = None
    ) -> dict[str, HostArray]:
        """The results, of which `outputs` are read, or all. Inputs are arrays of the host or handles of this device;
        those that are not named must be bound."""
        titles = self._titles(wanted_outputs(config, outputs))
        with labelled(self.device, config), self._slot(config):
            return finish(self._submit_resident(inputs, titles, borrow=waits(config)), dict.fromkeys(titles), config)

    def dispatch_resident_into(
        self, inputs: ResidentValues, outputs: Mapping[str, HostArray], *, config: CallConfig | None = None
    ) -> None:
        """Writes the named results into arrays of the caller; the others are not read."""
        require_arrays(outputs)
        titles = self._titles(wanted_outputs(config, outputs))
        with labelled(self.device, config), self._slot(config):
            finish(self._submit_resident(inputs, titles, borrow=waits(config)), outputs, config)

    def dispatch_resident_outputs(self, inputs: ResidentValues, *, config: CallConfig | None = None) -> list[Resident]:
        """Handles of all results, in their order, or of those that the config names, without a wait: other pipelines
        of the device take them as inputs. Free them here when they are no longer needed."""
        titles = self._titles(wanted_outputs(config, None))
        with labelled(self.device, config), self._slot(config):
            self._require_open()
            with self._submitting:
                places = {title: self._output_place(title) for title in titles}
            try:
                end = self._submit_resident(inputs, (), places).ticket.end
            except BaseException:
                for title, place in places.items():
                    self._spare.setdefault(title, []).append(place)
                raise
        handles = [
            Resident(title, self._result_node(title).type, self.device, place, end) for title, place in places.items()
        ]
        with self._submitting:
            self._handles.update(handles)
        return handles

    def dispatch_resident_batched(
        self,
        rows: Sequence[ResidentValues],
        outputs: Sequence[str] | None = None,
        *,
        config: CallConfig | None = None,
    ) -> list[dict[str, HostArray]]:
        """The results of several resident runs in order, several under way at once: each sees what those before it
        fed. An error names the item."""
        titles = self._titles(wanted_outputs(config, outputs))
        with labelled(self.device, config):
            return run_batch(
                self._slots,
                rows,
                lambda inputs: self._submit_resident(inputs, titles),
                lambda _, run: finish(run, dict.fromkeys(titles), config),
                self.device.together,
            )

    def dispatch_resident_batched_into(
        self,
        rows: Sequence[ResidentValues],
        outputs: Sequence[Mapping[str, HostArray]],
        *,
        config: CallConfig | None = None,
    ) -> None:
        """Writes the results of several resident runs into arrays of the caller, by name, for each run."""
        require_as_many(rows, outputs)
        for arrays in outputs:
            require_arrays(arrays)
        titles = [self._titles(wanted_outputs(config, arrays)) for arrays in outputs]
        with labelled(self.device, config):
            run_batch(
                self._slots,
                list(zip(rows, titles, strict=True)),
                lambda item: self._submit_resident(*item),
                lambda index, run: finish(run, outputs[index], config),
                self.device.together,
            )

    def dispatch_resident_rows(
        self,
        rows: Sequence[Sequence[Resident]],
        outputs: Sequence[str] | None = None,
        *,
        config: CallConfig | None = None,
    ) -> list[dict[str, HostArray]]:
        """Runs of a graph with four inputs, each with a row of four handles, in the order of the inputs: for instance
        the control words, ring, debug log and queue of a persistent kernel."""
        return self.dispatch_resident_batched(self._named_rows(rows), outputs, config=config)

    def dispatch_resident_rows_into(
        self,
        rows: Sequence[Sequence[Resident]],
        outputs: Sequence[Mapping[str, HostArray]],
        *,
        config: CallConfig | None = None,
    ) -> None:
        """Runs of a graph with four inputs, each with a row of handles, whose results go into arrays of the caller."""
        self.dispatch_resident_batched_into(self._named_rows(rows), outputs, config=config)

    # How they are made

    def _named_rows(self, rows: Sequence[Sequence[Resident]]) -> list[ResidentValues]:
        names = [node.name for node in self._inputs]
        if len(names) != _ROW:
            raise GraphError(
                f"rows of {_ROW} handles are for graphs with {_ROW} inputs; {self._graph.name!r} has {len(names)}.",
                "name the handles: dispatch_resident_batched([{name: handle, ...}]).",
            )
        require_sequence(rows)
        for index, row in enumerate(rows):
            count = len(row) if isinstance(row, Sequence) else type(row).__name__  # pyright: ignore[reportUnnecessaryIsInstance]
            if count != _ROW:
                raise GraphError(
                    f"item {index} of the batch: a row has {_ROW} handles, not {count}.", "pass one for each input."
                )
        return [dict(zip(names, row, strict=True)) for row in rows]

    def _submit_resident(
        self,
        inputs: ResidentValues,
        titles: tuple[str, ...],
        places: Mapping[str, Place] | None = None,
        *,
        borrow: bool = False,
    ) -> PipelineRun:
        """Starts a run, some of whose inputs may lie on the device."""
        self._require_open()
        require_names(inputs)
        require_input_names(self._graph, inputs)
        with self._submitting:
            values = {node.name: self._value(node, inputs) for node in self._inputs}
            resident = tuple([(name, value) for name, value in values.items() if isinstance(value, Place)])
            fed = [(self._bound[name].place, feeding) for name, feeding in self._feeds.items()]
            copies = [(feeding.output, place, feeding.upper) for place, feeding in fed]
            copies += [(title, place, None) for title, place in (places or {}).items()]
            imported = self._imports(values) if borrow and self._large else {}
            recorded = self._recorded_for(ResidentKey(resident, tuple(copies), titles, frozenset(imported)))
            self._bring(imported)
            self._counts.copied_through_host += on_devices(inputs)
            feed = {array: values[name] for name, array in recorded.inputs.items()}
            extents = [feeding.rows for _, feeding in fed if feeding.rows is not None]
            feed.update(zip(recorded.extents, extents, strict=True))
            return self._start(recorded, feed)

    def _value(self, node: Node, inputs: ResidentValues) -> HostArray | Place:
        value = inputs.get(node.name, self._bound.get(node.name))
        if not isinstance(value, Resident):
            return self._host_value(node, inputs)
        place = self._require_handle(value)
        if value.type != node.type:
            raise GraphError(
                f"the input {node.name!r} is {node.type}, the handle of {value.name!r} {value.type}.",
                "pass a handle of the same shape and type.",
            )
        return place

    def _rebind(self, node: Node, values: HostArray) -> None:
        if node.name in self._bound:
            self._bound[node.name].place.array.write(values)

    def _record_row(self, key: RowKey) -> Recorded:
        source = _row(self._recorded.results[key.output], key.source_row)
        step = self.device.copy_step(source, _row(key.place.array, key.target_row))
        return Recorded(self.device.program([step], label=f"{self._graph.name} row"), {}, {}, {})

    def _new_place(self, node: Node) -> Place:
        block = self.device.block(max(1, node.type.nbytes))
        return Place(block, block.array(0, node.shape, node.dtype))

    def _output_place(self, title: str) -> Place:
        spare = self._spare.get(title)
        if spare:
            self._counts.places_reused += 1
            return spare.pop()
        self._counts.places_allocated += 1
        return self._new_place(self._result_node(title))

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

    def _adopt(self, other: ResidentCalls) -> None:
        """Binds copies of another pipeline's inputs, and feeds them as it does."""
        for name, handle in other._bound.items():
            place = self._new_place(self._graph[name])
            if place.array.nbytes:
                place.array.write(handle.place.array)
            self._bound[name] = Resident(name, handle.type, self.device, place)
            self._handles.add(self._bound[name])
        self._feeds = dict(other._feeds)
        self._rng = other._rng

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


def _row(array: Array, row: int) -> Array:
    shape = array.shape[1:]
    return array.device.view(array, row * array.nbytes // array.shape[0], shape, array.dtype)


def _require_row(kind: TensorType, row: int) -> int:
    length = kind.shape[0] if kind.shape else 0
    number = whole_number(row, "the number of a row")
    if not 0 <= number < length:
        raise BoundsError(f"there is no row {number} in {kind}.", f"name one of {length}, counted from 0.")
    return number
