"""Writing beside the work: in order, bounded, and nothing is lost, whatever ends it."""

from __future__ import annotations

import threading
import time

import pytest

from dashi.errors import FileError
from dashi.io._writer import Writer


def test_pieces_are_done_in_order_in_another_thread_while_work_goes_on() -> None:
    done: list[tuple[int, int]] = []
    gate = threading.Event()
    with Writer() as writer:
        writer.put(gate.wait)
        for number in range(20):
            writer.put(lambda number=number: done.append((number, threading.get_ident())))
        assert done == []  # handed in all the same
        assert not writer.idle
        gate.set()
        writer.wait()
        assert writer.idle
    assert [number for number, _ in done] == [*range(20)]
    assert {thread for _, thread in done} != {threading.get_ident()}


def test_who_hands_in_more_than_fits_waits() -> None:
    gate, handed = threading.Event(), list[int]()
    with Writer(most_bytes=100) as writer:
        writer.put(gate.wait, 60)

        def hand_in() -> None:
            for number in range(3):
                writer.put(lambda: None, 60)
                handed.append(number)

        other = threading.Thread(target=hand_in)
        other.start()
        time.sleep(0.05)
        waiting = len(handed)
        gate.set()
        other.join(10)
    assert waiting <= 1  # a single piece always fits
    assert handed == [0, 1, 2]


@pytest.mark.parametrize("error", [FileError("full.", "make room."), KeyboardInterrupt(), SystemExit(3)])
def test_what_a_piece_raises_is_raised_where_more_is_handed_in_or_at_the_end(error: BaseException) -> None:
    done: list[int] = []

    def fail() -> None:
        raise error

    def at_the_end() -> None:
        with Writer() as writer:
            writer.put(fail)
            writer.put(lambda: done.append(1))  # what follows a failure is not done

    def where_it_waits() -> None:
        with Writer() as writer:
            writer.put(fail)
            writer.wait()
            done.append(2)

    def where_more_is_handed_in() -> None:
        with Writer() as writer:
            writer.put(fail)
            for _ in range(5000):
                writer.put(lambda: None)
                time.sleep(0.001)
            done.append(3)

    for work in (at_the_end, where_it_waits, where_more_is_handed_in):
        with pytest.raises(type(error)):
            work()
    assert done == []


def test_an_error_beside_it_does_not_take_what_was_handed_in() -> None:
    done: list[int] = []

    def stopped() -> None:
        with Writer() as writer:
            writer.put(lambda: (time.sleep(0.05), done.append(1)))
            writer.put(lambda: done.append(2))
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        stopped()
    assert done == [1, 2]
