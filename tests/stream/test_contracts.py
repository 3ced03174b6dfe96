"""What is checked while a chain runs: depth of every State, and in debug runs who writes, owns and waits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from dashi import stream
from dashi.errors import InputError, StreamContractError, StreamRuleError
from dashi.stream import BroadcastSpec, BufferContract, ContractLedger, StageSpec, State
from dashi.stream._ring import Ring
from dashi.stream._rules import check_depth
from dashi.stream.links import Link

STAGE = StageSpec("gpu0", "gpu_weak", max_semantic_depth=2)


def state(depth: int, step: int = 7) -> State:
    return State(step, {"z": np.zeros(3, np.float32)}, depth, "gpu0")


def test_a_state_may_keep_its_depth_or_rise_to_that_of_the_stage() -> None:
    for before, after in ((0, 0), (1, 2), (2, 2)):
        check_depth(STAGE, state(before), state(after))


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        (3, None, "the State of step 7 has depth 3 and was sent to the weaker stage 'gpu0' on device 'gpu_weak'"),
        (2, 1, "made the State of step 7 fall from depth 2 to 1"),
        (2, 3, "gave the State of step 7 depth 3; it goes to 2"),
    ],
)
def test_r1_holds_for_every_state_under_way(before: int, after: int | None, message: str) -> None:
    with pytest.raises(StreamRuleError, match=message) as caught:
        check_depth(STAGE, state(before), None if after is None else state(after))
    assert caught.value.rule == "R1 monotone depth"
    assert caught.value.device == "gpu_weak"
    assert " Fix: " in str(caught.value)


def test_states_know_their_schema_and_their_bytes() -> None:
    one = state(1)
    assert (one.schema["z"].text, one.nbytes) == ("f32 (3,)", 12)


def test_what_travels_with_a_state_besides_its_payload_is_bounded() -> None:
    one = State(3, {}, meta={"defect": 0.25, "words": ["a", "b"]})
    assert one.meta["defect"] == 0.25
    State(3, {}, meta={"text": "x" * 4000})
    with pytest.raises(
        InputError, match=r"`meta` of the State of step 3 is 50\d\d bytes as JSON; 4096 may .* Fix: put"
    ):
        State(3, {}, meta={"text": "x" * 5000})
    with pytest.raises(
        InputError, match=r"of step 3 holds more than numbers and words: .* Fix: put arrays into the pay"
    ):
        State(3, {}, meta={"z": np.zeros(2)})


def ledger() -> ContractLedger:
    buffers = [BufferContract("z", "gpu0", writer="a"), BufferContract("sum", "gpu0", combine="sum")]
    return ContractLedger(buffers, [BroadcastSpec("defect", ("c",))])


def test_a_run_that_holds_to_its_contracts_is_silent() -> None:
    book = ledger()
    for step in range(20):
        book.take(step, "a")
        book.write("z", "a", "gpu0")
        for stage in ("a", "b"):
            book.write("sum", stage, "gpu0")
        assert book.use_slot("a->b", step, 3) == step % 3
        book.hand_over(step, "a", "b")
        book.signal("a->b", step, 3)
        book.evolved("b", step)
        book.observe("b", "defect", step)
        book.broadcast("defect", "c", step)
        book.forget("b", step)
        book.hand_over(step, "b", "")
    book.close()


BREAKS: dict[str, tuple[Callable[[ContractLedger], Any], str]] = {
    "a second writer": (lambda b: b.write("z", "b", "gpu0"), "writes the buffer 'z', whose single writer is 'a'"),
    "another device": (lambda b: b.write("z", "a", "gpu1"), "on 'gpu1'; its device of record is 'gpu0'"),
    "an unknown buffer": (lambda b: b.write("q", "a", "gpu0"), "the buffer 'q', which nobody declared"),
    "two owners": (lambda b: (b.take(1, "a"), b.take(1, "b")), "takes the State of step 1, which stage 'a' owns"),
    "not the owner": (lambda b: (b.take(1, "a"), b.hand_over(1, "b", "c")), "hands on .* which stage 'a' owns"),
    "nobody's": (lambda b: b.hand_over(1, "b", "c"), "hands on the State of step 1, which nobody owns"),
    "a slot in use": (lambda b: (b.use_slot("l", 0, 2), b.use_slot("l", 2, 2)), "fills slot 0 with step 2 before"),
    "a signal of nothing": (lambda b: b.signal("l", 0, 2), "signals step 0, which is in none of its slots"),
    "a falling timeline": (
        lambda b: (b.use_slot("l", 1, 2), b.signal("l", 1, 2), b.signal("l", 1, 2)), "its timeline must rise",
    ),
    "an early look": (lambda b: b.observe("a", "defect", 0), "looks at step 0 in stage 'a' before its ops are done"),
    "a broadcast unannounced": (lambda b: b.broadcast("defect", "d", 0), "R5 .* no broadcast says so"),
    "a broadcast twice": (lambda b: (b.broadcast("defect", "c", 0), b.broadcast("defect", "c", 0)), "twice"),
    "an end too early": (lambda b: (b.take(3, "a"), b.close()), r"States were held by stage 'a' \(step 3\)"),
}  # fmt: skip


@pytest.mark.parametrize(("happens", "message"), BREAKS.values(), ids=list(BREAKS))
def test_what_contracts_forbid_is_named(happens: Callable[[ContractLedger], Any], message: str) -> None:
    with pytest.raises((StreamContractError, StreamRuleError), match=message) as caught:
        happens(ledger())
    assert " Fix: " in str(caught.value)


@pytest.mark.parametrize(
    "buffers",
    [
        [BufferContract("z", "gpu0")],
        [BufferContract("z", "gpu0", "a", "max")],
        [BufferContract("z", "gpu0", "a"), BufferContract("z", "gpu0", "a")],
    ],
)
def test_a_buffer_has_one_writer_or_a_reduction(buffers: list[BufferContract]) -> None:
    with pytest.raises(StreamContractError, match="the buffer 'z' is declared twice, or needs a writer or a reduction"):
        ContractLedger(buffers)


CHAIN = """
stages:
  - {id: first, device: cpu, ops: [square, total]}
  - {id: second, device: cpu, ops: [neg]}
  - {id: third, device: cpu, ops: [abs]}
ops:
  square: {inputs: {x: z}, outputs: {result: z}}
  total: {kernel: reduce_sum, inputs: {x: z}, outputs: {result: total}}
  neg: {inputs: {x: z}, outputs: {result: z}}
  abs: {inputs: {x: z}, outputs: {result: z}}
source: {fields: {z: {shape: [4]}}, items: 9}
"""


@pytest.mark.parametrize("window", [1, 2, 3])
def test_a_debug_run_holds_to_its_contracts_and_changes_no_bit(window: int) -> None:
    plan = stream.make_plan(stream.parse(f"window: {window}\n{CHAIN}"), measure=False)
    assert stream.run(plan, debug=True).hashes == stream.run(plan).hashes


def test_a_debug_run_tells_the_ledger_all_that_happens(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[tuple[object, ...]] = []
    for name in ("take", "hand_over", "use_slot", "signal", "evolved", "observe", "forget", "close"):
        real = getattr(ContractLedger, name)

        def tell(*words: Any, name: str = name, real: Callable[..., Any] = real) -> Any:
            calls.append((name, *(*words[1:], None, None)[:2]))
            return real(*words)

        monkeypatch.setattr(ContractLedger, name, tell)
    stream.run(stream.make_plan(stream.parse(CHAIN), measure=False), items=1, debug=True)
    assert calls == [
        ("take", 0, "first"), ("use_slot", "first->second", 0), ("evolved", "first", 0), ("observe", "first", "total"),
        ("forget", "first", 0), ("hand_over", 0, "first"), ("use_slot", "second->third", 0), ("evolved", "second", 0),
        ("signal", "first->second", 0), ("forget", "second", 0), ("hand_over", 0, "second"), ("evolved", "third", 0),
        ("signal", "second->third", 0), ("forget", "third", 0), ("hand_over", 0, "third"), ("close", None, None),
    ]  # fmt: skip


def test_a_debug_run_finds_a_slot_that_is_filled_before_its_consumer_released_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def take(ring: Ring, step: int, timeout: float = 0.0) -> list[Any]:
        ring._taken += 1
        return []  # whatever the consumer still does

    monkeypatch.setattr(Ring, "take", take)
    monkeypatch.setattr(Link, "release", lambda *_, **__: None)
    plan = stream.make_plan(stream.parse(f"window: 2\n{CHAIN}"), measure=False)
    assert stream.run(plan).items == 9  # nobody looks
    message = "link first->second fills slot 0 with step 2 before its consumer has signalled step 0"
    with pytest.raises(StreamContractError, match=message):
        stream.run(plan, debug=True)
    monkeypatch.setenv("DASHI_STREAM_DEBUG", "1")
    with pytest.raises(StreamContractError, match=message):
        stream.run(plan)
