"""Pipelines that many threads call, and that are closed meanwhile; and what is left of those that were closed."""

from __future__ import annotations

import gc
import os
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import dashi
from dashi import graph as dg
from dashi.errors import ClosedError
from dashi.runtime._vulkan_device import VulkanDevice
from dashi.runtime.device import Device
from dashi.types import HostArray

THREADS = 8
W = np.random.default_rng(8).standard_normal((4, 6)).astype(np.float32)


def model() -> dg.Graph:
    """Steps for the device, and one of the host between them."""
    b = dg.Builder("threads")
    h = dg.cast(dg.softmax(b.input("x", (3, 4)) @ b.param("w", W)), "f16")
    picked = dg.gather(h, b.constant(np.array([2, 0], np.uint32)))
    return b.graph(y=dg.tanh(dg.cast(picked, "f32")))


INPUTS: list[dict[str, HostArray]] = [
    {"x": np.random.default_rng(seed).standard_normal((3, 4)).astype(np.float32)} for seed in range(THREADS)
]
EXPECTED = [dg.evaluate(model(), inputs)["y"].tobytes() for inputs in INPUTS]


def into(call: Callable[[dict[str, HostArray], dict[str, HostArray]], None], inputs: dict[str, HostArray]) -> bytes:
    out: dict[str, HostArray] = {"y": np.empty((2, 6), np.float32)}
    call(inputs, out)
    return out["y"].tobytes()


def left_on_the_device(pipeline: dg.CompiledPipeline, inputs: dict[str, HostArray]) -> bytes:
    (handle,) = pipeline.dispatch_resident_outputs(inputs)
    values = pipeline.read(handle).tobytes()
    pipeline.free(handle)
    return values


CALLS: list[Callable[[dg.CompiledPipeline, dict[str, HostArray]], bytes]] = [
    lambda p, x: p.dispatch(x)["y"].tobytes(),
    lambda p, x: into(p.dispatch_into, x),
    lambda p, x: p.dispatch_batched([x, x, x])[2]["y"].tobytes(),
    lambda p, x: p.dispatch_timed(x)[0]["y"].tobytes(),
    lambda p, x: p.dispatch_resident(x)["y"].tobytes(),
    lambda p, x: into(p.dispatch_resident_into, x),
    lambda p, x: p.dispatch_resident_batched([x, x])[1]["y"].tobytes(),
    left_on_the_device,
]


def test_every_call_from_every_thread_gives_its_own_bits(device: Device) -> None:
    with dg.compile(model(), device, slots=3) as pipeline, ThreadPoolExecutor(THREADS) as pool:
        pipeline.bind("x", INPUTS[0]["x"])

        def work(thread: int) -> list[bytes]:
            return [call(pipeline, INPUTS[thread]) for call in CALLS[thread:] + CALLS[:thread]]

        results = list(pool.map(work, range(THREADS)))
        assert pipeline.report().calls["runs"] == THREADS * (len(CALLS) + 3)  # a batch of 3, and one of 2
    assert results == [[bits] * len(CALLS) for bits in EXPECTED]


@pytest.mark.parametrize("what", ["pipeline", "device"])
def test_a_close_during_calls_of_eight_threads_is_an_error_of_those_that_come_late(what: str) -> None:
    for name in ("cpu", "vulkan:0"):
        try:
            device = dashi.open(name)
        except dashi.errors.DeviceError:
            continue
        with device:
            pipeline = dg.compile(model(), device, slots=2)
            running = threading.Barrier(THREADS + 1)

            def work(thread: int, pipeline: dg.CompiledPipeline = pipeline, go: threading.Barrier = running) -> int:
                done = 0
                go.wait()
                while True:
                    try:
                        assert CALLS[(thread + done) % len(CALLS)](pipeline, INPUTS[thread]) == EXPECTED[thread]
                    except ClosedError:
                        return done
                    done += 1

            with ThreadPoolExecutor(THREADS) as pool:
                counts = [pool.submit(work, thread) for thread in range(THREADS)]
                running.wait()
                while pipeline._counts.runs < 2 * THREADS:  # pyright: ignore[reportPrivateUsage]
                    threading.Event().wait(0.001)
                (pipeline if what == "pipeline" else device).close()
                assert sum(count.result(60) for count in counts) > 0
            pipeline.close()


def _cycles(device: VulkanDevice, count: int) -> None:
    graph = model()

    def cycle() -> None:
        with dg.compile(graph, device) as pipeline:
            pipeline.bind("x", INPUTS[0]["x"])
            assert pipeline.dispatch_resident({})["y"].tobytes() == EXPECTED[0]

    def state() -> tuple[int, int, int]:
        gc.collect()
        memory = device.memory()
        return memory.used, memory.allocations, len(os.listdir("/proc/self/fd")) if sys.platform == "linux" else 0

    for _ in range(3):
        cycle()
    before, blocks = state(), sys.getallocatedblocks()
    for _ in range(count):
        cycle()
    assert state() == before
    # Caches fill in the first hundred cycles, by some 600 blocks of Python's memory.
    assert sys.getallocatedblocks() - blocks < 1000 + count


def test_compiling_and_closing_leaves_nothing(bare_vulkan: VulkanDevice) -> None:
    _cycles(bare_vulkan, 20)


@pytest.mark.long
def test_ten_thousand_compiled_and_closed_leave_nothing(bare_vulkan: VulkanDevice) -> None:
    _cycles(bare_vulkan, 10_000)
