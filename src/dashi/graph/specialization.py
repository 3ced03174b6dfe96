"""Graphs whose shapes, axes or counts arrive as values of inputs: a program for each set of such values."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Self

from dashi.errors import ClosedError, GraphError
from dashi.graph.compiler import compile as compile_graph
from dashi.graph.ir import Graph
from dashi.runtime._host_values import host_array
from dashi.types import HostArray

if TYPE_CHECKING:
    from dashi.graph.calls import CallConfig
    from dashi.graph.pipeline import CompiledPipeline
    from dashi.runtime.device import Device

Build = Callable[[Mapping[str, HostArray]], Graph]
_MOST_BYTES: Final = 1 << 16


class _ChosenValue(NamedTuple):
    """A value that chooses a program: its name, its type, and its bytes."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    data: bytes


class _Specialised:
    """A pipeline and how many calls use it."""

    def __init__(self, pipeline: CompiledPipeline) -> None:
        self.pipeline = pipeline
        self.users = 0
        self.is_dropped = False


class SpecializedPipeline:
    """Pipelines of one device for a graph that follows from values of some inputs: a shape, a list of axes, a k. The
    first run with new values builds and compiles the graph for them; the `most` used last are kept. Calls from several
    threads are safe. Use it in a `with` block, or close it.

        def top(values):
            b = Builder("top")
            largest, places = top_k(b.input("x", (4, 100)), int(values["k"]))
            return b.graph(largest=largest, places=places)

        with SpecializedPipeline(top, device, ["k"]) as pipeline:
            pipeline.dispatch({"x": x, "k": 5})
    """

    def __init__(self, build: Build, device: Device, names: Sequence[str], *, most: int = 8, **options: Any) -> None:
        """`build` gives the graph for values of the inputs in `names`, which are none of the graph's own; `options` are
        those of `compile`."""
        if isinstance(names, str) or not names or most < 1:
            raise GraphError(
                f"names={names!r} and most={most} specialise nothing.", "name one input or more, and keep one program."
            )
        self.device = device
        self._build = build
        self._names = tuple(names)
        self._most = most
        self._options = options
        self._lock = threading.Lock()
        self._entries: OrderedDict[tuple[_ChosenValue, ...], _Specialised] = OrderedDict()
        self._closed = False

    def dispatch(self, inputs: Mapping[str, Any], *, config: CallConfig | None = None) -> dict[str, HostArray]:
        """The results for these inputs, with the bits of the pipeline that is compiled for them."""
        with self.pipeline(inputs) as pipeline:
            return pipeline.dispatch({n: v for n, v in inputs.items() if n not in self._names}, config=config)

    @contextmanager
    def pipeline(self, values: Mapping[str, Any]) -> Generator[CompiledPipeline]:
        """The pipeline for values of the named inputs; others are ignored. It stays while the block lasts."""
        entry = self._take(values)
        try:
            yield entry.pipeline
        finally:
            with self._lock:
                entry.users -= 1
                ends = entry.is_dropped and not entry.users
            if ends:
                entry.pipeline.close()

    def _take(self, values: Mapping[str, Any]) -> _Specialised:
        for name in self._names:
            if values.get(name) is None:
                raise GraphError(f"the input {name!r} has no values.", "pass a number or an array.")
        chosen = {name: host_array(values[name]) for name in self._names}
        if sum(array.nbytes for array in chosen.values()) > _MOST_BYTES:
            raise GraphError(
                f"more than {_MOST_BYTES} bytes would choose a program.",
                "name what shapes or counts follow from.",
            )
        key = tuple(_ChosenValue(name, str(a.dtype), a.shape, a.tobytes()) for name, a in chosen.items())
        with self._lock:
            if self._closed:
                raise ClosedError("the specialised pipeline is closed.", "make it again, or close it later.")
            entry = self._entries.get(key)
            if entry is None:
                entry = self._entries[key] = _Specialised(
                    compile_graph(self._build(chosen), self.device, **self._options)
                )
            entry.users += 1
            self._entries.move_to_end(key)
            dropped = [self._entries.popitem(last=False)[1] for _ in range(len(self._entries) - self._most)]
        self._drop(dropped)
        return entry

    def _drop(self, entries: Sequence[_Specialised]) -> None:
        """Closes pipelines; those that calls use, when the last of these returns."""
        for entry in entries:
            with self._lock:
                entry.is_dropped = True
                ends = not entry.users
            if ends:
                entry.pipeline.close()

    def __len__(self) -> int:
        """How many programs are kept."""
        return len(self._entries)

    def close(self) -> None:
        """Frees all programs, each once the calls that use it have returned. Closing twice is harmless."""
        with self._lock:
            self._closed = True
            entries = list(self._entries.values())
            self._entries.clear()
        self._drop(entries)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()
