"""A graph compiled for a device: run again and again on new inputs, for one submission each."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Self

from dashi.errors import ClosedError, GraphError, suggestion
from dashi.graph._assembly import Assembly
from dashi.graph._batches import require_as_many, run_batch
from dashi.graph.evaluation import require_inputs, require_values
from dashi.graph.passes.record import PipelineMemory, Recorded, stored_values
from dashi.graph.report import PipelineReport
from dashi.graph.resident import ResidentCalls
from dashi.types import HostArray

if TYPE_CHECKING:
    from dashi.runtime._program import Timing
    from dashi.runtime.landing import Ticket

Values = Mapping[str, HostArray]


class CompiledPipeline(ResidentCalls):
    """Runs of one graph on one device. Every call takes values of all inputs, by name, and gives the results by theirs,
    with the bits of `dashi.graph.evaluate` of the graph after `rewrite`. Calls from several threads are safe. Use it in
    a `with` block, or close it."""

    def __init__(
        self,
        assembly: Assembly,
        memory: PipelineMemory,
        recorded: Recorded,
        params: dict[str, HostArray],
        report: PipelineReport,
    ) -> None:
        super().__init__(assembly, memory, recorded)
        self._params = params
        self._report = report
        self._timed: Recorded | None = None
        self._closed = False

    @property
    def program_id(self) -> str:
        """The fingerprint of graph, definitions and class: the same on every device and in any process."""
        return self._report.program_id

    @property
    def id(self) -> str:
        """`<backend>:<fingerprint>`, which adds the device, its driver and the kernels."""
        return self._report.id

    def report(self) -> PipelineReport:
        """What the pipeline consists of: dispatches, host steps, barriers, memory, fusions."""
        return self._report

    def check(self) -> None:
        """Proves that the recorded barriers cover every hazard, or raises a HazardError."""
        self._require_open()
        self._recorded.program.check()

    def dispatch(self, inputs: Values) -> dict[str, HostArray]:
        """The results for these inputs."""
        with self._slots:
            ticket = self._submit(self._recorded, inputs)
            return self._fetched(ticket, {})

    def dispatch_into(self, inputs: Values, outputs: Values) -> None:
        """Writes the results into arrays of the caller, by name; those that are not named are not read."""
        for title in outputs:
            self._require_result(title)
        with self._slots:
            self._write(self._submit(self._recorded, inputs), outputs)

    def dispatch_batched(self, batch: Sequence[Values]) -> list[dict[str, HostArray]]:
        """The results for each of several inputs: as many as there are slots are under way at once. An error names the
        item that failed."""
        return run_batch(
            self._slots,
            batch,
            lambda inputs: self._submit(self._recorded, inputs),
            lambda _, ticket: self._fetched(ticket, {}),
        )

    def dispatch_batched_into(self, batch: Sequence[Values], outputs: Sequence[Values]) -> None:
        """Writes the results for each of several inputs into arrays of the caller, by name; those that are not named
        are not read."""
        require_as_many(batch, outputs)
        for title in {title for into in outputs for title in into}:
            self._require_result(title)
        run_batch(
            self._slots,
            batch,
            lambda inputs: self._submit(self._recorded, inputs),
            lambda index, ticket: self._write(ticket, outputs[index]),
        )

    def dispatch_timed(self, inputs: Values) -> tuple[dict[str, HostArray], Timing]:
        """The results, and nanoseconds: of the whole call, until it was submitted, of the wait, and on the device."""
        from dashi.runtime._program import Timing

        with self._slots:
            self._require_open()
            with self._submitting:
                self._timed = self._timed or self._assembly.record_timed(self._memory)
            start = time.perf_counter_ns()
            ticket = self._submit(self._timed, inputs)
            submitted = time.perf_counter_ns()
            ticket.wait()
            end = time.perf_counter_ns()
            results = {title: ticket.fetched(array) for title, array in self._timed.results.items()}
            return results, Timing(end - start, submitted - start, end - submitted, self._timed.program.device_ns())

    def set_param(self, name: str, values: HostArray) -> None:
        """New values of a param, for all later runs; nothing is compiled or recorded again."""
        self._require_open()
        if name not in self._params:
            raise GraphError(
                f"there is no param {name!r}.", f"{suggestion(name, self._params)}name a param of the graph."
            )
        array = require_values(self._graph[name], values).copy()
        with self._submitting:
            self._params[name] = array
            for stored, place in self._recorded.stored.items():
                node = self._graph[stored]
                if name in (stored, *node.inputs):
                    place.write(stored_values(node, self._graph, self._params))

    def param(self, name: str) -> HostArray:
        """The values of a param, as they were set."""
        if name not in self._params:
            raise GraphError(
                f"there is no param {name!r}.", f"{suggestion(name, self._params)}name a param of the graph."
            )
        return self._params[name].copy()

    def clone(self) -> CompiledPipeline:
        """A pipeline of the same program in memory of its own, with copies of the params, of what is bound (`handles`)
        and of the feeds as they are now. Neither changes the other."""
        self._require_open()
        with self._submitting:
            params = dict(self._params)
            memory, recorded = self._assembly.build(params)
            other = CompiledPipeline(self._assembly, memory, recorded, params, self._report)
            other._adopt(self)
        return other

    def close(self) -> None:
        """Frees what was recorded, and all handles. Closing twice, or after the device, is harmless."""
        if not self._closed:
            self._closed = True
            self._close_resident()
            self._recorded.program.close()
            if self._timed is not None:
                self._timed.program.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def __repr__(self) -> str:
        closed = ", closed" if self._closed else ""
        return f"<CompiledPipeline {self._graph.name} on {self.device.info.spec}: {self.program_id[:12]}{closed}>"

    def _submit(self, recorded: Recorded, inputs: Values) -> Ticket:
        self._require_open()
        values = require_inputs(self._graph, inputs)
        feed = {array: values[name] for name, array in recorded.inputs.items()}
        with self._submitting:
            ticket = recorded.program.submit(feed=feed or None)
            self._ran = True
            return ticket

    def _fetched(self, ticket: Ticket, into: Values) -> dict[str, HostArray]:
        return {title: ticket.fetched(a, out=into.get(title)) for title, a in self._recorded.results.items()}

    def _write(self, ticket: Ticket, outputs: Values) -> None:
        for title, out in outputs.items():
            ticket.fetched(self._recorded.results[title], out=out)

    def _require_result(self, title: str) -> None:
        if title not in self._recorded.results:
            known = list(self._recorded.results)
            raise GraphError(
                f"there is no result {title!r}.", f"{suggestion(title, known)}name one of {', '.join(known)}."
            )

    def _require_open(self) -> None:
        if self._closed:
            raise ClosedError(f"the pipeline {self._graph.name!r} is closed.", "compile it again, or close it later.")
