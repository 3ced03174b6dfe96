"""A chain of ranks gives every item once, in order, with the bits of one process, whoever dies and when."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.stream.cluster.simulated_network import DelayedComputing, Network, SimulatedTransport

from dashi.errors import InputError, RankLostError, StageFailedError, TwinError
from dashi.stream.cluster import CallableStage, RankStage
from dashi.stream.cluster._computing import StageJob, ThreadComputing
from dashi.stream.cluster._coordinator import ChainSettings, Coordinator
from dashi.stream.cluster._groups import first_groups
from dashi.stream.cluster._worker import RankWorker

Item = Mapping[str, np.ndarray]


def accumulate(memory: Item, item: Item) -> tuple[Item, Item]:
    total = (memory["total"] * 5 + item["z"]) % 1_000_003
    return {"total": total}, {"z": (item["z"] + total) % 1_000_003}


def triple(item: Item) -> Item:
    return {"z": (item["z"] * 3 + 1) % 1_000_003}


def same(item: Item) -> Item:
    return item


def delay(memory: Item, item: Item) -> tuple[Item, Item]:
    """Gives the item before; its memory is the item itself, and it counts in place."""
    count = memory["count"]
    count += 1
    return {"last": item["z"], "count": count}, {"z": memory["last"] + count}


def chain_of(memories: Sequence[bool], *, migratable: bool = True) -> list[RankStage]:
    stages: list[RankStage] = [
        CallableStage(f"s/{i}", accumulate, {"total": np.full(2, i, np.int64)}, migratable=migratable)
        if has_memory and i % 2
        else CallableStage(f"s/{i}", delay, {"last": np.full(2, i), "count": np.zeros(2, int)}, migratable=migratable)
        if has_memory
        else CallableStage(f"s/{i}", triple if i % 2 else same, migratable=migratable)
        for i, has_memory in enumerate(memories)
    ]
    return stages


def items_of(count: int) -> Iterator[Item]:
    for i in range(count):
        yield {"z": np.array([i, 7 * i], np.int64)}


def in_one_process(memories: Sequence[bool], count: int) -> list[list[int]]:
    stages, results = chain_of(memories), []
    for step, item in enumerate(items_of(count), 1):
        after = item
        for stage in stages:
            after = stage.compute(step, after)
        results.append(after["z"].tolist())
    return results


class Simulation:
    """All ranks of a chain, turned in any order."""

    def __init__(
        self,
        size: int,
        stages: Sequence[Sequence[RankStage]],
        count: int,
        seed: int,
        options: ChainSettings,
        items: Iterator[Item] | None = None,
        deliver: Callable[[int, Item], None] | None = None,
    ):
        self.network = Network(size, seed)
        self.transports = [SimulatedTransport(self.network, rank) for rank in range(size)]
        self.delivered: list[tuple[int, list[int]]] = []
        self.workers = {
            rank: RankWorker(self.transports[rank], stages[rank], DelayedComputing(self.network))
            for rank in range(1, size)
        }
        self.coordinator = Coordinator(
            self.transports[0], stages[0], first_groups(stages[0], size, {}), items or items_of(count),
            deliver or (lambda step, item: self.delivered.append((step, item["z"].tolist()))), options,
        )  # fmt: skip

    def run(self, kills: Mapping[int, int], most_turns: int = 40_000) -> None:
        finishing = False
        for turn in range(most_turns):
            if turn in kills:
                self.network.kill(kills[turn])
            rank = self.network.random.choice(sorted(self.network.alive))
            if rank == 0:
                self.coordinator.turn()
            else:
                self.workers[rank].turn()
            if self.coordinator.complete and not finishing:
                finishing = True
                self.coordinator.finish()
            if finishing and self.coordinator.reported:
                return
        raise AssertionError(f"no end after {most_turns} turns: {self.coordinator.waiting_for()}")


@st.composite
def cases(draw: st.DrawFn) -> dict[str, Any]:
    memories = draw(st.lists(st.booleans(), min_size=1, max_size=4))
    workers = draw(st.integers(1, len(memories) + 2))
    victims = draw(st.lists(st.integers(1, workers), max_size=workers - 1, unique=True))
    return {
        "memories": memories,
        "size": workers + 1,
        "kills": {draw(st.integers(0, 1500)): rank for rank in victims},
        "windows": tuple(draw(st.lists(st.integers(1, 4), min_size=len(memories) + 1, max_size=len(memories) + 1))),
        "snapshot_every": draw(st.integers(1, 9)),
        "count": draw(st.integers(0, 25)),
        "seed": draw(st.integers(0, 1 << 32)),
    }


@given(cases())
@settings(max_examples=150, deadline=None)
def test_every_item_comes_out_once_in_order_whoever_dies(case: dict[str, Any]) -> None:
    memories, size, count = case["memories"], case["size"], case["count"]
    options = ChainSettings(case["windows"], case["snapshot_every"], 1 << 12)
    simulation = Simulation(size, [chain_of(memories) for _ in range(size)], count, case["seed"], options)
    simulation.run(case["kills"])
    assert simulation.delivered == list(enumerate(in_one_process(memories, count), 1))


def test_what_rank_0_retains_is_bounded_by_windows_and_snapshots() -> None:
    memories, most = [True, False, True], 0
    options = ChainSettings((2, 2, 2, 2), 5, 1 << 12)
    simulation = Simulation(4, [chain_of(memories) for _ in range(4)], 200, 3, options)
    while not simulation.coordinator.complete:
        rank = simulation.network.random.randrange(4)
        (simulation.coordinator if rank == 0 else simulation.workers[rank]).turn()
        most = max(most, len(simulation.coordinator._retained))
    # Steps since the last snapshot of all, at most one more, and what is in windows, in computing and on its way out.
    assert most <= 2 * 5 + 4 * 2 + 2 * 3


def test_a_group_goes_to_a_spare_and_else_to_a_neighbour() -> None:
    memories = [False, True, False]
    for size, heirs in ((5, {4}), (4, {1, 3})):
        simulation = Simulation(
            size, [chain_of(memories) for _ in range(size)], 60, 1, ChainSettings((3,) * 4, 4, 4096)
        )
        simulation.run({300: 2})
        (loss,) = simulation.coordinator.losses
        assert loss.ranks == (2,)
        assert [move.stages for move in loss.moves] == [("s/1",)]
        assert loss.moves[0].rank in heirs
        assert 0 <= loss.reached - loss.again_from + 1 <= 4 + 4 * 3 + 2 * 3


def test_a_stage_that_may_not_move_ends_the_chain() -> None:
    stages = [chain_of([False, True], migratable=False) for _ in range(4)]
    simulation = Simulation(4, stages, 60, 1, ChainSettings((3,) * 3, 4, 4096))
    with pytest.raises(
        InputError, match=r"rank 2 was lost, and its stage 's/1' may not move\. Fix: let it be migratable"
    ):
        simulation.run({100: 2})


def test_a_worker_ends_when_rank_0_is_lost() -> None:
    simulation = Simulation(3, [chain_of([False, True])] * 3, 60, 1, ChainSettings((3,) * 3, 4, 4096))
    simulation.network.kill(0)
    turns = (simulation.workers[1].turn() for _ in range(100))
    with pytest.raises(
        RankLostError, match=r"rank 0, which has the source and the sink, was lost.* Fix: start it again"
    ):
        list(turns)


def test_an_error_of_a_stage_names_stage_rank_item_and_error() -> None:
    def fails(item: Item) -> Item:
        if item["z"][0] == 5:
            raise ValueError("no fives")
        return item

    stages = [CallableStage("first", triple), CallableStage("second", fails)]
    with pytest.raises(
        StageFailedError, match=r"the stage 'second' on rank 2 failed at item \d+: ValueError: no fives"
    ):
        Simulation(
            3, [[CallableStage("first", lambda item: item), stages[1]] for _ in range(3)], 60, 1,
            ChainSettings((3,) * 3, 4, 4096),
        ).run({})  # fmt: skip


def test_other_bits_when_items_are_computed_again_are_an_error() -> None:
    calls = iter(range(1_000_000))

    def unsteady(item: Item) -> Item:
        return {"z": item["z"] + next(calls)}

    def stages() -> list[RankStage]:
        return [CallableStage("unsteady", unsteady), CallableStage("s/1", accumulate, {"total": np.zeros(2, np.int64)})]

    simulation = Simulation(4, [stages() for _ in range(4)], 60, 1, ChainSettings((3,) * 3, 50, 4096))
    with pytest.raises(TwinError, match=r"was computed again after ranks were lost, and has other bits than before"):
        simulation.run({700: 2})


def test_items_that_are_no_arrays_are_refused() -> None:
    def wrong(item: Item) -> Item:
        return [1, 2]  # pyright: ignore[reportReturnType]

    with pytest.raises(StageFailedError, match=r"the stage 'w' gave list, which is no item\. Fix: return arrays"):
        Simulation(
            2, [[CallableStage("w", wrong)] for _ in range(2)], 3, 1, ChainSettings((3, 3), 4, 4096)
        ).run({})  # fmt: skip


@pytest.mark.parametrize("spares", [0, 2])
def test_a_loss_at_any_message_of_rank_0_costs_no_item(spares: int) -> None:
    memories = [True, True, False]
    size, at = 4 + spares, 0
    while True:
        at += 1
        options = ChainSettings((2,) * 4, 3, 1 << 12)
        simulation = Simulation(size, [chain_of(memories) for _ in range(size)], 9, at, options)
        simulation.network.lost_at_send = at
        simulation.run({})
        assert simulation.delivered == list(enumerate(in_one_process(memories, 9), 1))
        if simulation.network.sends < at:
            break
        assert [len(loss.ranks) for loss in simulation.coordinator.losses] == [1]
    assert at > 20  # parts, items, receipts and questions at the end


def test_an_item_that_has_no_room_is_an_error_of_its_stage() -> None:
    stages = [CallableStage("grow", lambda item: {"z": np.zeros(600)})]
    with pytest.raises(
        StageFailedError, match=r"'grow' .* item 1 is 4928 bytes on the way, and there is room for 4096\. Fix: pass a"
    ):
        Simulation(2, [stages, stages], 3, 1, ChainSettings((3, 3), 4, 4096)).run({})
    big = Simulation(2, [stages, stages], 3, 1, ChainSettings((3, 3), 4, 128))
    with pytest.raises(InputError, match=r"item 1 is \d+ bytes .* there is room for 128\. Fix: pass a larger"):
        big.run({})


def test_text_is_an_error_of_its_stage() -> None:
    stages = [CallableStage("words", lambda item: {"z": np.array(["t"])})]
    with pytest.raises(StageFailedError, match=r"'words' .* has the element type <U1, which is no number"):
        Simulation(2, [stages, stages], 3, 1, ChainSettings((3, 3), 4, 4096)).run({})


def test_a_thread_that_is_closed_runs_the_job_that_was_just_begun() -> None:
    for _ in range(20):
        computing = ThreadComputing()
        done: list[int] = []
        computing.begin(StageJob(partial(done.append, 1), 1))
        started = time.monotonic()
        computing.close(5.0)
        assert done == [1]
        assert time.monotonic() - started < 4
