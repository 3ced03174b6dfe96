"""Decoding with state that stays on the device: nothing crosses to the host but the token and its row of logits."""

from __future__ import annotations

import numpy as np
import pytest

from dashi import graph as dg
from dashi.bench.decoder import DecoderShape, build_decoder, random_weights
from dashi.bench.decoding import make_resident, next_inputs, run_decoding
from dashi.errors import InputError
from dashi.runtime._vulkan_device import VulkanDevice
from dashi.runtime.device import Device
from dashi.types import HostArray

SHAPE = DecoderShape(length=72)
WEIGHTS = random_weights(SHAPE)
PROMPT = np.random.default_rng(1).integers(0, SHAPE.vocabulary, (1, 60)).astype(np.uint32)
STEPS = 10  # beyond one run of 64 keys
Step = tuple[int, bytes]


def uploaded(device: Device, steps: int) -> tuple[list[Step], dict[str, HostArray]]:
    """Tokens and logits of a loop in which everything goes to the host and back; and the caches."""
    values = {"ids": PROMPT, "positions": np.zeros(1, np.uint32), **SHAPE.empty_caches(1)}
    listed: list[Step] = []
    with (
        dg.compile(build_decoder(SHAPE, WEIGHTS, 1, PROMPT.shape[1]), device) as prompt,
        dg.compile(build_decoder(SHAPE, WEIGHTS, 1, 1), device) as step,
    ):
        for count in range(steps):
            results = (step if count else prompt).dispatch(values)
            values = next_inputs(results)
            listed.append((int(results["next_ids"][0, 0]), results["logits"][0, -1].tobytes()))
    return listed, {name: values[name] for name in SHAPE.cache_names()}


def prompt_state(device: Device) -> tuple[Step, dict[str, HostArray]]:
    """What a run of the prompt leaves: the first token, its logits, and the state of the loop behind it."""
    with dg.compile(build_decoder(SHAPE, WEIGHTS, 1, PROMPT.shape[1]), device) as pipeline:
        inputs = {"ids": PROMPT, "positions": np.zeros(1, np.uint32), **SHAPE.empty_caches(1)}
        results = pipeline.dispatch(inputs)
    return (int(results["next_ids"][0, 0]), results["logits"][0, -1].tobytes()), next_inputs(results)


def test_a_resident_loop_gives_the_bits_of_the_loop_that_uploads_everything(device: Device) -> None:
    expected, caches = uploaded(device, STEPS)
    first, state = prompt_state(device)
    assert first == expected[0]
    with dg.compile(build_decoder(SHAPE, WEIGHTS, 1, 1), device) as pipeline:
        assert make_resident(pipeline, state) == 0
        row = np.empty((1, 1, SHAPE.vocabulary), np.float32)
        token = np.empty((1, 1), np.uint32)
        for count in range(1, STEPS // 2):
            pipeline.dispatch_resident_into({}, {"logits": row, "next_ids": token})
            assert (int(token[0, 0]), row.tobytes()) == expected[count]
        rest = pipeline.dispatch_resident_batched([{}] * (STEPS - STEPS // 2), ["logits", "next_ids"])
        got = [(int(step["next_ids"][0, 0]), step["logits"].tobytes()) for step in rest]
        assert got == expected[STEPS // 2 :]
        for name, cache in caches.items():
            assert pipeline.read(pipeline.handles[name]).tobytes() == cache.tobytes()


def test_several_steps_in_one_submission_give_the_same_tokens(device: Device) -> None:
    expected, _ = uploaded(device, 9)
    _, state = prompt_state(device)
    tokens: list[int] = []
    with dg.compile(build_decoder(SHAPE, WEIGHTS, 1, 1, steps=4), device) as pipeline:
        assert pipeline.report().segments == 1
        make_resident(pipeline, state)
        for _ in range(2):
            results = pipeline.dispatch_resident({}, ["logits", "chosen.0", "chosen.1", "chosen.2", "next_ids"])
            logits = results.pop("logits").tobytes()
            tokens += [int(results[name][0, 0]) for name in ("chosen.0", "chosen.1", "chosen.2", "next_ids")]
            assert logits == expected[len(tokens)][1]
    assert tokens == [token for token, _ in expected[1:]]


@pytest.mark.parametrize("steps", [1, 4])
def test_nothing_crosses_to_the_host_but_tokens_and_a_row_of_logits(steps: int, vulkan: VulkanDevice) -> None:
    with dg.compile(build_decoder(SHAPE, WEIGHTS, 1, 1, steps), vulkan) as pipeline:
        state = {"ids": PROMPT[:, :1], "positions": np.zeros(1, np.uint32), **SHAPE.empty_caches(1)}
        make_resident(pipeline, state)
        asked = ["logits", *(f"chosen.{step}" for step in range(steps - 1)), "next_ids"]
        for _ in range(3):
            pipeline.dispatch_resident({}, asked)
        (recorded,) = pipeline._recordings._recorded.values()  # pyright: ignore[reportPrivateUsage]
        assert not recorded.inputs
        crossing = {"feed": 0, "fetch": 0}
        for batch in recorded.program.schedule():
            for name, command in zip(batch.names, batch.commands, strict=True):
                if name in crossing:
                    crossing[name] += sum(end - start for _, start, end in command.reads)
        assert crossing == {"feed": 0, "fetch": 4 * SHAPE.vocabulary + 4 * steps}
        recorded.program.check()


def test_rows_of_new_keys_may_be_fed_one_by_one(device: Device) -> None:
    """A cache by position first, (length, batch, ...), into which `feed_rows` puts the new row after each run."""
    rng = np.random.default_rng(3)
    b = dg.Builder("rows")
    x, at = b.input("x", (1, 8)), b.input("at", (1,), "u32")
    keys = b.input("keys", (9, 1, 1, 8))
    key = dg.tanh(x @ b.param("w", rng.standard_normal((8, 8)).astype(np.float32)))
    cache = dg.write_rows(keys.transpose(1, 0, 2, 3), key.reshape(1, 1, 1, 8), at)
    query = x.reshape(1, 1, 1, 8)
    y = dg.attention(query, cache, cache, positions=at, causal=True, heads_last=True, scale=0.5)
    graph = b.graph(y=y, key=key.reshape(1, 1, 1, 8))
    store = np.full((9, 1, 1, 8), np.nan, np.float32)
    with dg.compile(graph, device) as pipeline:
        handle = pipeline.bind("keys", store)
        for position in range(9):
            inputs = {"x": rng.standard_normal((1, 8)).astype(np.float32), "at": np.array([position], np.uint32)}
            got = pipeline.dispatch_resident(inputs, ["y"])["y"]
            pipeline.feed_rows(handle, "key", 0, position)
            expected = dg.evaluate(graph, {**inputs, "keys": store})
            store[position] = expected["key"][0]
            assert got.tobytes() == expected["y"].tobytes()
            assert np.isfinite(got).all()
        assert pipeline.read(handle).tobytes() == store.tobytes()


def test_the_bench_compares_the_loops_and_counts_what_crosses(vulkan: VulkanDevice) -> None:
    shape = DecoderShape(length=40)
    single = run_decoding(vulkan, shape, prompt=5, tokens=6)
    three = run_decoding(vulkan, shape, prompt=5, tokens=6, steps=3)
    assert single.tokens == three.tokens
    assert single.same_bits
    assert three.same_bits
    assert (single.fed_bytes, single.fetched_bytes) == (0, 4 * 97 + 4)
    assert (single.host_steps, three.tokens_per_run) == ([], 3)
    assert single.as_dict()["cache_bytes"] == 2 * 2 * 40 * 2 * 8 * 4
    with pytest.raises(
        InputError, match=r"5 tokens and 36 more do not fit into a cache of 40\. Fix: make the cache longer"
    ):
        run_decoding(vulkan, shape, prompt=5, tokens=36)
