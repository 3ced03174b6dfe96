"""Several runs under way at once, as many as there are slots."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from threading import BoundedSemaphore
from typing import TypeVar

from dashi.errors import DashiError, GraphError

_Item = TypeVar("_Item")
_Run = TypeVar("_Run")
_Result = TypeVar("_Result")


def run_batch(
    slots: BoundedSemaphore,
    batch: Sequence[_Item],
    submit: Callable[[_Item], _Run],
    finish: Callable[[int, _Run], _Result],
) -> list[_Result]:
    """What `finish` makes of the run of each item, which it gets with its number. An error names the item."""
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

    try:
        for index, item in enumerate(batch):
            while not slots.acquire(blocking=not under_way):
                finish_oldest()
            try:
                under_way.append(submit(item))
            except BaseException as error:
                slots.release()
                raise _of_item(error, index) from error
        while under_way:
            finish_oldest()
    finally:
        for _ in under_way:
            slots.release()
    return results


def require_as_many(batch: Sequence[object], outputs: Sequence[object]) -> None:
    """Raises unless there are outputs for each item of a batch."""
    if len(batch) != len(outputs):
        raise GraphError(
            f"a batch of {len(batch)} items cannot be written into {len(outputs)} sets of arrays.",
            "pass a dict of arrays for each item.",
        )


def _of_item(error: BaseException, index: int) -> BaseException:
    if isinstance(error, DashiError):
        return type(error)(f"item {index} of the batch: {error.what}", error.fix)
    return error
