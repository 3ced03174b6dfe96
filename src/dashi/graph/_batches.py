"""Several runs under way at once, as many as there are slots."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from queue import Empty, SimpleQueue
from typing import TypeVar

from dashi.errors import DashiError, GraphError


class Slots:
    """Turns of which so many may be taken at the same time; as a semaphore, for a fraction of what one of Python's
    costs."""

    def __init__(self, count: int) -> None:
        self._free = SimpleQueue[None]()
        for _ in range(count):
            self._free.put(None)

    def acquire(self, *, blocking: bool = True, timeout: float | None = None) -> bool:
        """Takes a turn, once there is one; False where there is none in time."""
        try:
            self._free.get(blocking, timeout)
        except Empty:
            return False
        return True

    def release(self) -> None:
        """Gives a turn back."""
        self._free.put(None)

    def __enter__(self) -> None:
        self._free.get()

    def __exit__(self, *_: object) -> None:
        self._free.put(None)


_Item = TypeVar("_Item")
_Run = TypeVar("_Run")
_Result = TypeVar("_Result")


def run_batch(
    slots: Slots,
    batch: Sequence[_Item],
    submit: Callable[[_Item], _Run],
    finish: Callable[[int, _Run], _Result],
    together: Callable[[], AbstractContextManager[object]] = nullcontext,
) -> list[_Result]:
    """What `finish` makes of the run of each item, which it gets with its number. As many items as there are slots for
    are submitted inside of `together`. An error names the item."""
    require_sequence(batch)
    results: list[_Result] = []
    under_way: deque[_Run] = deque()

    def finish_oldest() -> None:
        run = under_way.popleft()
        try:
            results.append(finish(len(results), run))
        except DashiError as error:
            raise _of_item(error, len(results)) from error
        finally:
            slots.release()

    def submit_those_with_slots(first: int) -> int:
        """The number of the next item; the slot of the first one is taken."""
        index, submitting = first, False
        try:
            with together():
                while index == first or (index < len(batch) and slots.acquire(blocking=False)):
                    submitting = True
                    under_way.append(submit(batch[index]))
                    index, submitting = index + 1, False
        except BaseException as error:
            if submitting:
                slots.release()
            raise _of_item(error, index if submitting else first) from error
        return index

    try:
        index = 0
        while index < len(batch) or under_way:
            if index < len(batch) and slots.acquire(blocking=not under_way):
                index = submit_those_with_slots(index)
            else:
                finish_oldest()
    finally:
        for _ in under_way:
            slots.release()
    return results


def require_as_many(batch: Sequence[object], outputs: Sequence[object]) -> None:
    """Raises unless there are outputs for each item of a batch."""
    require_sequence(batch)
    require_sequence(outputs)
    if len(batch) != len(outputs):
        raise GraphError(
            f"a batch of {len(batch)} items cannot be written into {len(outputs)} sets of arrays.",
            "pass a dict of arrays for each item.",
        )


def require_sequence(items: object) -> None:
    """Raises where something is no list with an item for each run."""
    if not isinstance(items, Sequence) or isinstance(items, (str, bytes)):
        raise GraphError(f"a batch is a list, not {type(items).__name__}.", "pass a list with an item for each run.")


def _of_item(error: BaseException, index: int) -> BaseException:
    if isinstance(error, DashiError):
        return type(error)(f"item {index} of the batch: {error.what}", error.fix)
    return error
