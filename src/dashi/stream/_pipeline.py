"""`Pipeline`: a chain of stages that run beside one another, each on its own item."""

from __future__ import annotations

import threading
import time
import weakref
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence, Sized
from dataclasses import replace
from types import TracebackType
from typing import Any, Final, get_args

from dashi.errors import InputError, StalledError, StreamError
from dashi.stream._adapter import Adapter
from dashi.stream._executor import END, NOTHING, Executor, OnError
from dashi.stream._progress import LINES_EVERY, ChainEvents, StageLines
from dashi.stream._report import ChainReport, link_name
from dashi.stream._side_band import SideTask
from dashi.stream._worker import Worker, as_worker

TIMEOUT: Final = 600.0
_STOP_TIMEOUT: Final = 30.0
_LARGEST_WINDOW: Final = 1 << 16


class Pipeline:
    """Stages in a chain, each in threads of its own: while a stage computes item k, it receives k + 1 and sends k - 1.

        with Pipeline([decode, resize, encode]) as pipeline:
            for result in pipeline.run(items):
                ...

    `stages` are functions of one item, or `Worker`s. Results come out in the order of the items. Every link between
    two neighbours, and those from the source and to the sink, has a window: so many items may be on it, from the
    moment that its producer begins to compute one until its consumer is done with it. A full link blocks its producer:
    that is the backpressure, and the memory of a run is bounded by it.

    `window` is the window of all links, `windows` that of single ones, by number (0 is the source's) or by name
    ("a->b", "source->a", "b->sink"). `max_window` is how far `adapt` may raise them. `on_error` says what becomes of
    items before the one that a stage failed at: with "drain" they still come out, and then the error; with "drop" the
    error comes at once. `timeout` bounds each wait of `push`, `pop` and `join`, in seconds: a chain that does not move
    for so long is an error that says which link is full, and who has to act. `observers` (`observe`, `snapshot`) look
    at results side-band.

    With `adapt` the last stage, which should be on the strongest device, is not left to starve: windows are raised up
    to `max_window` (four times the window, unless given), links that may be `lossy` carry less (`Worker.lighter`), and
    migratable ops move to the stage before. The report has each decision with its reason.
    """

    def __init__(
        self,
        stages: Sequence[Worker | Callable[[Any], Any]],
        *,
        window: int = 3,
        windows: Mapping[int, int] | Mapping[str, int] | None = None,
        max_window: int | None = None,
        on_error: OnError = "drop",
        timeout: float = TIMEOUT,
        observers: Sequence[SideTask] = (),
        adapt: bool = False,
        lossy: bool = False,
    ) -> None:
        workers = _named([as_worker(stage, number) for number, stage in enumerate(stages)])
        if on_error not in get_args(OnError):
            raise InputError(f"`on_error=` {on_error!r} is no way to end.", 'pass "drop" or "drain".')
        if not timeout > 0:
            raise InputError(f"`timeout=` {timeout!r} is no time.", "pass seconds above 0.")
        self._ids = [worker.id for worker in workers]
        each = _windows(self._ids, window, windows or {})
        if max_window is not None:
            _require_window(max_window, "`max_window=`")
        widest = [max(one, max_window or 4 * one) if adapt else one for one in each]
        self._run = Executor(workers, each, widest, on_error=on_error, tasks=_tasks(self._ids, observers))
        if adapt:
            self._run.on_turn = Adapter(self._run, lossy=lossy).turn
        self._timeout = timeout
        self._started = False
        self._beat: Callable[[], None] | None = None
        self._finalizer = weakref.finalize(self, self._run.ask_to_stop)

    def start(self) -> Pipeline:
        """Starts the stages; the first push does it too."""
        if not self._started:
            self._started = True
            try:
                self._run.start()
            except BaseException:  # Ctrl-C between two threads, or no thread to be had
                self.stop()
                raise
        return self

    # One item at a time

    def push(self, item: Any, timeout: float | None = None) -> None:
        """Puts an item in. Blocks while the first link is full, for `timeout` seconds (the pipeline's, unless given) at
        most: then nobody pops, or a stage hangs, and the error says which."""
        limit = self._timeout if timeout is None else timeout
        self.start()
        if not self._run.push(item, limit):
            raise self._run.stalled("push", limit)

    def try_push(self, item: Any) -> bool:
        """Puts an item in, if there is room for it now."""
        self.start()
        return self._run.push(item, 0)

    def pop(self, timeout: float | None = None) -> Any:
        """The next result. Waits for it as `push` does; after the last one there is none: a `StreamError`."""
        limit = self._timeout if timeout is None else timeout
        result = self._await_result("pop", limit)
        if result is END:
            raise StreamError("every result was popped, and no more items come.", "stop where `done` is true.")
        return result

    def try_pop(self) -> Any | None:
        """The next result, or None where it is not there yet (or where there is none: `done`)."""
        result = self._run.pop(0)
        return None if result is NOTHING or result is END else result

    @property
    def done(self) -> bool:
        """Whether no more items come, and every result was popped."""
        run = self._run
        with run.lock:
            return run.ended and run.chain.released[run.chain.last] >= run.limit

    def end_input(self) -> None:
        """Says that no more items come; results still do."""
        self._run.end_input()

    # All items

    def run(self, items: Iterable[Any], *, events: ChainEvents | None = None, title: str = "stream") -> Generator[Any]:
        """Pushes items as room for them is there, and gives the results in order; ends when all have come out. `events`
        are told how far it is, and now and then what each stage does."""
        results = self._results(items)
        if events is None:
            yield from results
            return
        lines = StageLines(events, self.report)
        total = len(items) if isinstance(items, Sized) else None
        with events.progress(title, total, "items") as advance:
            self._beat = lines.beat
            try:
                for result in results:
                    advance(1)
                    lines.beat()
                    yield result
            finally:
                self._beat = None

    def _results(self, items: Iterable[Any]) -> Generator[Any]:
        self.start()
        for item in items:
            while not (pushed := self._push_unless_failed(item)):
                if pushed is None:
                    break
                yield self.pop()
            if pushed is None:
                break
            while (result := self.try_pop()) is not None:
                yield result
        self.end_input()
        yield from self

    def _push_unless_failed(self, item: Any) -> bool | None:
        """Whether there was room for the item; None where the chain takes no more, which the error after the last
        result says."""
        try:
            return self._run.push(item, 0)
        except StreamError:
            if self._run.error is None:
                raise
            return None

    def __iter__(self) -> Iterator[Any]:
        while (result := self._await_result("pop", self._timeout)) is not END:
            yield result
        self._await_last_looks(self._timeout)

    def _await_result(self, doing: str, limit: float) -> Any:
        """The next result or END; whoever listens is told of the wait."""
        end = time.monotonic() + limit
        while True:
            left = end - time.monotonic()
            result = self._run.pop(left if self._beat is None else min(left, LINES_EVERY))
            if result is not NOTHING:
                return result
            if self._beat is not None:
                self._beat()
            if time.monotonic() >= end:
                raise self._run.stalled(doing, limit)

    def join(self, timeout: float | None = None) -> list[Any]:
        """No more items come: waits until all are through, and returns the results that were not popped, in order. An
        error of a stage is raised; its `result` are those that came out before it."""
        limit = self._timeout if timeout is None else timeout
        results: list[Any] = []
        self.start()
        self.end_input()
        try:
            while (result := self._await_result("join", limit)) is not END:
                results.append(result)
            self._await_last_looks(limit)
        except StreamError as error:
            error.result = results
            raise
        return results

    def _await_last_looks(self, limit: float) -> None:
        """Returns when observers have seen the last result, or with the error of one."""
        self._await_threads(limit)
        if self._run.error is not None:
            raise self._run.first_error()

    # The end

    def stop(self, *, drain: bool = False, timeout: float = _STOP_TIMEOUT) -> list[Any]:
        """Ends the stages. What is in the chain is dropped; with `drain` it goes through first, and is returned. After
        it nothing can be pushed or popped. Ctrl-C while it waits ends it after the stages have ended. `timeout` are
        the seconds that stages get."""
        if self._run.closed:
            return []
        results: list[Any] = []
        try:
            quiet = self._run.dropping or self._run.error_was_raised
            if self._started and (drain or self.done) and not quiet:
                results = self.join(timeout)
        finally:
            self._run.ask_to_stop()
            self._finalizer.detach()
            try:
                self._await_threads(timeout)
            finally:
                self._run.empty()
        return results

    def _await_threads(self, timeout: float) -> None:
        """Returns when all threads have ended; Ctrl-C waits for that too, a second one does not."""
        end, interrupt = time.monotonic() + timeout, None
        for stage, thread in self._run.threads():
            while thread.is_alive() and thread is not threading.current_thread():
                try:
                    thread.join(max(0.0, end - time.monotonic()))
                    if thread.is_alive() and time.monotonic() >= end:
                        raise StalledError(
                            f"stage {stage!r} has not ended {timeout:g} s after it was told to: its callable does not "
                            "return.",
                            "let the callable return, or wait longer: stop(timeout=SECONDS).",
                        )
                except KeyboardInterrupt as pressed:
                    if interrupt is not None:
                        raise
                    interrupt = pressed
        if interrupt is not None:
            raise interrupt

    def __enter__(self) -> Pipeline:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self.stop()
        except StreamError:
            if error is None:  # else what happened within the block counts
                raise

    # Looking

    def report(self) -> ChainReport:
        """What each stage and link does and did, also while it runs."""
        return self._run.report()

    def __repr__(self) -> str:
        return f"<Pipeline {' -> '.join(self._ids)}>"


def _named(workers: list[Worker]) -> list[Worker]:
    """Workers whose ids differ: names that stand twice get their place added, and "_" where that is taken too."""
    if not workers:
        raise InputError("a pipeline without stages does nothing.", "pass at least one function of an item.")
    ids = [worker.id for worker in workers]
    taken, named = set(ids), list[Worker]()
    for number, worker in enumerate(workers):
        name = worker.id
        if ids.count(name) > 1:
            name = f"{name}{number}"
            while name in taken:
                name += "_"
            taken.add(name)
        named.append(replace(worker, id=name))
    return named


def _tasks(ids: list[str], tasks: Sequence[SideTask]) -> list[SideTask]:
    """Observers with the numbers of their stages."""
    numbers = {name: number for number, name in enumerate(ids)}
    for task in tasks:
        if task.after not in numbers and task.after not in range(len(ids)):
            raise InputError(
                f"{task.label!r} looks at stage {task.after!r}, which there is not.", f"name one of {', '.join(ids)}."
            )
    return [replace(task, after=numbers.get(str(task.after), task.after)) for task in tasks]


def _windows(ids: list[str], window: int, windows: Mapping[int, int] | Mapping[str, int]) -> list[int]:
    _require_window(window, "`window=`")
    each = [window] * (len(ids) + 1)
    names = [link_name(ids, j) for j in range(len(each))]
    for key, value in windows.items():
        if key not in names and not (isinstance(key, int) and 0 <= key < len(each)):
            raise InputError(
                f"`windows=` names the link {key!r}, which joins no neighbours.",
                f"name one of {', '.join(names)}, or a number below {len(each)}.",
            )
        _require_window(value, f"`windows=` of {key!r}")
        each[key if isinstance(key, int) else names.index(key)] = value
    return each


def _require_window(value: int, name: str) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= _LARGEST_WINDOW:  # pyright: ignore[reportUnnecessaryIsInstance] - callers' own
        raise InputError(
            f"{name} is {value!r}; a link needs room for one item at least.",
            f"pass a whole number from 1 to {_LARGEST_WINDOW}: 2 is double buffering, 3 the default.",
        )
