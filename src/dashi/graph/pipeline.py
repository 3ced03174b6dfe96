"""A graph compiled for a device: run again and again on new inputs, for one submission each."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import asdict, replace
from types import TracebackType
from typing import TYPE_CHECKING, Self

from dashi.errors import GraphError, suggestion
from dashi.graph._assembly import Assembly
from dashi.graph._batches import require_as_many, run_batch
from dashi.graph._resident import ResidentCalls
from dashi.graph._runs import Values
from dashi.graph.calls import CallConfig, finish, labelled, require_arrays, waits, wanted_outputs
from dashi.graph.evaluation import require_values
from dashi.graph.passes.record import PipelineMemory, Recorded, stored_values
from dashi.graph.report import PipelineReport
from dashi.types import HostArray

if TYPE_CHECKING:
    from dashi.runtime._program import Timing


class CompiledPipeline(ResidentCalls):
    """Runs of one graph on one device. Every call takes values of all inputs, by name, and gives the results by theirs,
    with the bits of `dashi.graph.evaluate` of the graph after `rewrite`. Inputs are borrowed: arrays of NumPy, of any
    library with DLPack, or with the buffer protocol. Calls from several threads are safe. Use it in a `with` block, or
    close it."""

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

    @property
    def program_id(self) -> str:
        """The fingerprint of graph, definitions and class: the same on every device and in any process."""
        return self._report.program_id

    @property
    def id(self) -> str:
        """`<backend>:<fingerprint>`, which adds the device, its driver and the kernels."""
        return self._report.id

    def report(self) -> PipelineReport:
        """What the pipeline consists of: dispatches, host steps, barriers, memory, fusions; and what was run so far."""
        with self._submitting:
            return replace(self._report, calls=asdict(self._counts))

    def check(self) -> None:
        """Proves that the recorded barriers cover every hazard, or raises a HazardError."""
        self._require_open()
        self._recorded.program.check()

    def dispatch(self, inputs: Values, *, config: CallConfig | None = None) -> dict[str, HostArray]:
        """The results for these inputs: all, or those that the config names."""
        titles = self._titles(wanted_outputs(config, None))
        with labelled(self.device, config), self._slot(config):
            return finish(self._submit(inputs, titles, borrow=waits(config)), dict.fromkeys(titles), config)

    def dispatch_into(self, inputs: Values, outputs: Values, *, config: CallConfig | None = None) -> None:
        """Writes the results into arrays of the caller, by name; those that are not named are not read."""
        require_arrays(outputs)
        titles = self._titles(wanted_outputs(config, outputs))
        with labelled(self.device, config), self._slot(config):
            finish(self._submit(inputs, titles, borrow=waits(config)), outputs, config)

    def dispatch_batched(
        self, batch: Sequence[Values], *, config: CallConfig | None = None
    ) -> list[dict[str, HostArray]]:
        """The results for each of several inputs: as many as there are slots are under way at once. An error names the
        item that failed."""
        titles = self._titles(wanted_outputs(config, None))
        with labelled(self.device, config):
            return run_batch(
                self._slots,
                batch,
                lambda inputs: self._submit(inputs, titles),
                lambda _, run: finish(run, dict.fromkeys(titles), config),
            )

    def dispatch_batched_into(
        self, batch: Sequence[Values], outputs: Sequence[Values], *, config: CallConfig | None = None
    ) -> None:
        """Writes the results for each of several inputs into arrays of the caller, by name; those that are not named
        are not read."""
        require_as_many(batch, outputs)
        for arrays in outputs:
            require_arrays(arrays)
        titles = [self._titles(wanted_outputs(config, arrays)) for arrays in outputs]
        with labelled(self.device, config):
            run_batch(
                self._slots,
                list(zip(batch, titles, strict=True)),
                lambda item: self._submit(*item),
                lambda index, run: finish(run, outputs[index], config),
            )

    def dispatch_timed(
        self, inputs: Values, *, config: CallConfig | None = None
    ) -> tuple[dict[str, HostArray], Timing]:
        """The results, and nanoseconds: of the whole call, until it was submitted, of the wait, and on the device."""
        from dashi.runtime._program import Timing

        titles = self._titles(wanted_outputs(config, None))
        with labelled(self.device, config), self._slot(config):
            self._require_open()
            recorded = self._record_timed()
            start = time.perf_counter_ns()
            run = self._submit(inputs, titles, recorded)
            submitted = time.perf_counter_ns()
            run.ticket.wait(None if config is None else config.timeout)
            end = time.perf_counter_ns()
            results = finish(run, dict.fromkeys(titles), config)
            return results, Timing(end - start, submitted - start, end - submitted, run.ticket.device_ns())

    def _record_timed(self) -> Recorded:
        with self._submitting:
            if self._timed is None:
                self._timed = self._assembly.record(self._memory, timed=True)
            return self._timed

    def set_param(self, name: str, values: HostArray | bytes) -> None:
        """New values of a param (of a packed one its bytes), for all later runs; nothing is compiled or recorded
        again."""
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
        """Frees what was recorded, and all handles, once the call that is being submitted, of any thread, was. Closing
        twice, or after the device, is harmless."""
        with self._submitting:
            if self._closed:
                return
            self._closed = True
            self._last = None
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
