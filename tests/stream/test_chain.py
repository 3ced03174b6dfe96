"""The counts of a chain against a memory that they must keep safe: slots, stages that lose what they hold."""

from __future__ import annotations

import pytest
from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from dashi.stream._chain import ChainState, ItemOwner

ANY = st.integers(0, 11)
"""A stage or link, modulo their number."""


class ChainMachine(RuleBasedStateMachine):
    """A chain whose slots and stages really hold values: any order of transitions, deaths at any point."""

    state: type[ChainState] = ChainState

    @initialize(
        windows=st.lists(st.integers(1, 3), min_size=2, max_size=5),
        more=st.integers(0, 2),
        data=st.data(),
    )
    def begin_chain(self, windows: list[int], more: int, data: st.DataObject) -> None:
        self.stages = len(windows) - 1
        self.chain = self.state(
            windows,
            capacity=[window + more for window in windows],
            ahead=data.draw(st.lists(st.integers(1, 3), min_size=self.stages, max_size=self.stages)),
            volatile=data.draw(st.lists(st.booleans(), min_size=self.stages, max_size=self.stages)),
        )
        self.outbox: list[dict[int, int]] = [{} for _ in windows]
        self.inbox: list[dict[int, int]] = [{} for _ in windows]
        self.work: list[dict[int, int]] = [{} for _ in range(self.stages)]
        self.popped: list[int] = []
        self.path: dict[int, list[ItemOwner]] = {}
        self.lost = False

    def slot(self, j: int, item: int) -> int:
        return self.chain.slot(j, item)

    def free(self, j: int) -> None:
        slot = self.slot(j, self.chain.released[j])
        self.outbox[j].pop(slot, None)
        self.inbox[j].pop(slot, None)

    @precondition(lambda self: not self.lost and self.chain.may_push())
    @rule()
    def push(self) -> None:
        item = self.chain.reserved[0]
        assert self.slot(0, item) not in self.outbox[0], "the slot is still in use"
        self.outbox[0][self.slot(0, item)] = item
        self.chain.push()

    @precondition(lambda self: not self.lost)
    @rule(i=ANY)
    def begin(self, i: int) -> None:
        i %= self.stages
        if not self.chain.may_begin(i):
            return
        item = self.chain.reserved[i + 1]
        assert self.inbox[i][self.slot(i, item)] == item
        assert self.slot(i + 1, item) not in self.outbox[i + 1], "the slot is still in use"
        self.work[i][item] = item
        self.chain.begin(i)

    @precondition(lambda self: not self.lost)
    @rule(i=ANY)
    def finish(self, i: int) -> None:
        i %= self.stages
        if not self.chain.may_finish(i):
            return
        item = self.chain.written[i + 1]
        assert self.inbox[i][self.slot(i, item)] == item, "the input was taken away while it was read"
        self.outbox[i + 1][self.slot(i + 1, item)] = self.work[i].pop(item)
        self.chain.finish(i)

    @precondition(lambda self: not self.lost)
    @rule(j=ANY)
    def deliver(self, j: int) -> None:
        j %= self.stages + 1
        if not self.chain.may_deliver(j):
            return
        slot = self.slot(j, self.chain.delivered[j])
        self.inbox[j][slot] = self.outbox[j][slot]
        self.chain.deliver(j)

    @precondition(lambda self: not self.lost)
    @rule(i=ANY)
    def release(self, i: int) -> None:
        i %= self.stages
        if self.chain.may_release(i):
            self.free(i)
            self.chain.release(i)

    @precondition(lambda self: not self.lost and self.chain.may_pop())
    @rule()
    def pop(self) -> None:
        last = self.chain.last
        self.popped.append(self.inbox[last][self.slot(last, self.chain.released[last])])
        self.free(last)
        self.chain.pop()

    @precondition(lambda self: not self.lost)
    @rule(i=ANY)
    def kill(self, i: int) -> None:
        chain = self.chain
        i %= self.stages
        if not chain.may_survive(i):
            self.lost = True  # and known: the run ends with an error
            return
        if chain.volatile[i]:
            for item in range(chain.delivered[i + 1], chain.written[i + 1]):
                del self.outbox[i + 1][self.slot(i + 1, item)]
            while chain.may_release(i):
                self.free(i)
                chain.release(i)
            self.inbox[i] = {}
        self.work[i] = {}
        chain.kill(i)

    @precondition(lambda self: not self.lost)
    @rule(j=ANY)
    def widen(self, j: int) -> None:
        j %= self.stages + 1
        if self.chain.may_widen(j):
            self.chain.widen(j)

    @invariant()
    def counts_agree(self) -> None:
        if hasattr(self, "chain"):
            self.chain.check()
            assert self.popped == [*range(len(self.popped))], "lost, doubled or out of order"

    @invariant()
    def each_item_has_one_owner_who_has_its_value(self) -> None:
        if not hasattr(self, "chain"):
            return
        chain = self.chain
        for item in range(chain.written[0] + 1):
            owner = chain.owner(item)
            gone = item < len(self.popped) or item >= chain.written[0]
            assert (owner is None) == gone
            if owner is not None and not self.lost:
                assert self.holds(owner, item)

    def holds(self, owner: ItemOwner, item: int) -> bool:
        """Whether the value of an item lies in the owner's memory: as it was received, or as it goes on."""
        i, last = owner.place, self.chain.last
        if isinstance(i, int):
            places = [(self.inbox[i], i), (self.outbox[i + 1], i + 1)]
        else:
            places = [(self.outbox[0], 0)] if i == "source" else [(self.inbox[last], last)]
        return any(box.get(self.slot(j, item)) == item for box, j in places)

    def teardown(self) -> None:
        """Whatever happened: with everybody at work again, all comes out."""
        if not hasattr(self, "chain") or self.lost:
            return
        for _ in range(10_000):
            before = [*self.chain.released], [*self.chain.written], [*self.chain.delivered], [*self.chain.reserved]
            for j in range(self.stages + 1):
                self.deliver(j)
            for i in range(self.stages):
                self.release(i)
                self.begin(i)
                self.finish(i)
            if self.chain.may_pop():
                self.pop()
            if before == (self.chain.released, self.chain.written, self.chain.delivered, self.chain.reserved):
                break
        assert self.popped == [*range(self.chain.written[0])]


ChainMachine.TestCase.settings = settings(max_examples=60, stateful_step_count=80, deadline=None)
TestChain = ChainMachine.TestCase


class EarlyRelease(ChainState):
    def may_release(self, i: int) -> bool:
        return self.released[i] < self.reserved[i + 1]


class EarlyReuse(ChainState):
    def has_slot(self, i: int) -> bool:
        return self.reserved[i + 1] < self.released[i + 1] + self.capacity[i + 1] + 1


class Forgetful(ChainState):
    def kill(self, i: int) -> None:
        pass


@pytest.mark.parametrize("state", [EarlyRelease, EarlyReuse, Forgetful])
def test_the_machine_finds_faults(state: type[ChainState]) -> None:
    machine = type("Faulty", (ChainMachine,), {"state": state})
    once = settings(
        max_examples=300,
        stateful_step_count=80,
        derandomize=True,
        database=None,
        phases=[Phase.generate],
        deadline=None,
    )
    with pytest.raises((AssertionError, KeyError)):
        run_state_machine_as_test(machine, settings=once)


def test_owner_moves_along_the_chain_and_back_where_a_stage_dies() -> None:
    chain = ChainState([1, 1, 1], volatile=[True, True])
    assert chain.owner(0) is None
    chain.push()
    assert chain.owner(0) == ItemOwner("source")
    chain.deliver(0)
    chain.begin(0)
    chain.finish(0)
    assert chain.owner(0) == ItemOwner(0)
    chain.deliver(1)
    assert chain.owner(0) == ItemOwner(1)
    chain.kill(1)
    assert chain.owner(0) == ItemOwner(0)
    chain.deliver(1)
    chain.begin(1)
    chain.finish(1)
    chain.deliver(2)
    assert chain.owner(0) == ItemOwner("sink")
    chain.pop()
    assert chain.owner(0) is None


def test_counts_that_contradict_the_rules_are_found() -> None:
    chain = ChainState([1, 1])
    chain.push()
    chain.check()
    chain.push()  # without asking
    with pytest.raises(AssertionError):
        chain.check()
