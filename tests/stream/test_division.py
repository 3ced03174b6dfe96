"""Which ops run where, and which life of them, after moves and restarts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from dashi.errors import InputError
from dashi.stream import Pipeline, Worker, WorkerOp
from dashi.stream._division import Division


def op(name: str, where: str) -> WorkerOp:
    """An op that says of itself where it runs."""

    def bound(device: str) -> Callable[[Any], Any]:
        return lambda item: [*item, f"{name} on {device}"]

    return WorkerOp(name, bound(where), bind=bound)


@pytest.fixture
def division() -> Division:
    """Three stages, each of ops of its own device; from item 10 on the first runs the first op of the second."""
    division = Division(
        [
            Worker("s0", ops=(op("a", "left"),), device="left"),
            Worker("s1", ops=(op("b", "mid"), op("c", "mid")), device="mid"),
            Worker("s2", ops=(op("d", "right"),), device="right"),
        ]
    )
    division.move_left(1, 10, "left")
    return division


def runs(division: Division, stage: int, item: int) -> list[str]:
    trail: list[str] = []
    for one in division.ops_for(stage, item):
        trail = one.call(trail)
    return trail


def test_a_new_life_does_not_take_back_what_a_neighbour_runs(division: Division) -> None:
    division.renew([op("b", "new"), op("c", "new")], 1, "s1", "new")
    assert runs(division, 0, 10) == ["a on left", "b on left"]
    assert runs(division, 1, 10) == ["c on new"]
    assert runs(division, 0, 9) == ["a on left"]
    assert runs(division, 1, 9) == ["b on new", "c on new"]  # an item that is computed again, by the new life too
    assert [runs(division, 2, item) for item in (9, 10)] == [["d on right"]] * 2


def test_what_a_stage_took_over_moves_with_it_to_its_new_device(division: Division) -> None:
    division.renew([op("a", "new")], 0, "s0", "new")
    assert runs(division, 0, 9) == ["a on new"]
    assert runs(division, 0, 10) == ["a on new", "b on new"]
    assert runs(division, 1, 9) == ["b on mid", "c on mid"]
    assert runs(division, 1, 10) == ["c on mid"]


def test_a_refused_renewal_changes_nothing(division: Division) -> None:
    with pytest.raises(InputError, match=r"has an op 'z', which the chain had not. Fix: make it of .*: a, b, c, d\."):
        division.renew([op("c", "new"), op("z", "new")], 1, "s1", "new")
    assert runs(division, 1, 9) == ["b on mid", "c on mid"]


def test_an_heir_that_begins_anew_runs_what_it_inherited_on_its_new_device() -> None:
    def dying(*items: int) -> Callable[[Any], Any]:
        left = set(items)

        def call(item: list[Any]) -> list[Any]:
            if item[0] in left:
                left.discard(item[0])
                raise OSError("lost")
            return item

        return call

    stages = [
        Worker("s0", ops=(WorkerOp("x", dying(3)), op("a", "left")), device="left", remap=True),
        Worker(
            "s1",
            ops=(WorkerOp("y", dying(6)), op("b", "right")),
            device="right",
            elsewhere=lambda: Worker("s1", ops=(WorkerOp("y", dying()), op("b", "spare")), device="spare"),
        ),
    ]
    with Pipeline(stages, window=1) as pipeline:
        results = list(pipeline.run([k] for k in range(9)))
    assert [result[1:] for result in results] == [
        *[["a on left", "b on right"]] * 3,
        *[["a on right", "b on right"]] * 3,
        *[["a on spare", "b on spare"]] * 3,
    ]
