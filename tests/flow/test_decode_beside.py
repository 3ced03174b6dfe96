"""Claims about decodes beside a run: the same bits in the same order, a bounded window, the first error, no thread
left; and about transforms on a device of their own."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from dashi.core.operators.affine import Linear
from dashi.core.rollouts.rollout import rollout
from dashi.errors import FileError, InputError, Interrupted, NonFiniteError
from dashi.flow.decode import Decoded, Decoder
from dashi.flow.decode._beside import DecodeThread
from dashi.flow.decode.observer import Decodes
from dashi.flow.proxy.schema import Schema
from dashi.runtime import open_device
from dashi.runtime._cpu_device import CpuDevice
from dashi.runtime._vulkan_device import VulkanDevice
from dashi.runtime.device import Device

SCHEMA = Schema(16, 3)
PARTS = ("energy", "enstrophy", "bands", "support", "fields", "mask", "images")


def start(scale: float = 1.0) -> tuple[Linear, np.ndarray]:
    rng = np.random.default_rng(5)
    turn, _ = np.linalg.qr(rng.standard_normal((SCHEMA.size, SCHEMA.size)))
    return Linear((scale * turn).astype(np.float32)), rng.standard_normal((1, SCHEMA.size)).astype(np.float32)


@pytest.fixture(autouse=True)
def no_thread_left() -> Iterator[None]:
    yield
    assert not [one.name for one in threading.enumerate() if one.name == "dashi decode"]


def decoded(run_on: Device, decoder: Decoder, observer: str, steps: int = 20, every: int = 4) -> Any:
    operator, z0 = start()
    return rollout(operator, z0, steps, device=run_on, hash_every=10, observers=[Decodes(decoder, every, observer)])


def assert_same(run: Any, other: Any) -> None:
    assert run.hashes == other.hashes
    assert dict(run.kernels) == dict(other.kernels)
    one, two = run.records["decodes"], other.records["decodes"]
    assert [row.step for row in one] == [row.step for row in two]
    for a, b in zip(one, two, strict=True):
        assert a.nbytes == b.nbytes
        for part in PARTS:
            left, right = getattr(a.decoded, part), getattr(b.decoded, part)
            assert (left is None) == (right is None)
            if left is not None:
                assert left.tobytes() == right.tobytes()


@pytest.mark.parametrize("observer", ["metrics", "snapshots", "visualize"])
def test_a_second_device_decodes_the_same_bits_in_order(observer: str) -> None:
    options = {"residual": "seeded", "seed": 3}
    with CpuDevice() as cpu, CpuDevice() as other:
        with Decoder(SCHEMA, cpu, **options) as decoder:
            within = decoded(cpu, decoder, observer)
        with Decoder(SCHEMA, other, **options) as decoder:
            assert_same(within, decoded(cpu, decoder, observer))


@pytest.mark.parametrize("where", ["queue", "numpy", "other"])
def test_vulkan_decodes_beside_itself_and_with_others(vulkan: VulkanDevice, where: str) -> None:
    with Decoder(SCHEMA, vulkan) as decoder:
        within = decoded(vulkan, decoder, "snapshots")
    if where == "queue":
        with open_device("vulkan:0", queues=2) as device, Decoder(SCHEMA, device, queue=1) as decoder:
            assert_same(within, decoded(device, decoder, "snapshots"))
    elif where == "numpy":
        with CpuDevice() as cpu, Decoder(SCHEMA, cpu) as decoder:
            assert_same(within, decoded(vulkan, decoder, "snapshots"))
    else:
        with open_device("vulkan:0") as device, Decoder(SCHEMA, device) as decoder:
            assert_same(within, decoded(vulkan, decoder, "snapshots"))


@pytest.mark.parametrize("residual", ["none", "seeded"])
def test_transforms_of_another_device_have_the_same_bits(vulkan: VulkanDevice, residual: str) -> None:
    with CpuDevice() as cpu:
        with Decoder(SCHEMA, cpu, residual=residual) as decoder:
            within = decoded(cpu, decoder, "snapshots")
        with Decoder(SCHEMA, cpu, residual=residual, fft_device=vulkan) as decoder:
            away = decoded(cpu, decoder, "snapshots")
            assert decoder.calibrate(1)["ifft_lp"] > 0
        assert_same(within, away)
        transforms: list[str] = []
        stop = vulkan.on_submit(lambda submission: transforms.append(submission.label))
        with Decoder(SCHEMA, cpu, residual=residual, fft_device=vulkan) as decoder:
            decoder.decode(start()[1], "metrics")
        stop()
    back = 1 if residual == "none" else 2
    assert (transforms.count("decode irfft2"), transforms.count("decode rfft2")) == (back, 1)


def test_a_run_waits_when_the_window_is_full_and_says_for_how_long() -> None:
    operator, z0 = start()
    steps_taken: list[int] = []
    gate, waiting = threading.Event(), threading.Event()

    def snapshot(step: int, _: Decoded) -> None:
        waiting.set()
        assert gate.wait(60)
        steps_taken.append(step)

    with CpuDevice() as cpu, CpuDevice() as other, Decoder(SCHEMA, other) as decoder:
        decodes = Decodes(decoder, 1, "metrics", snapshot, window=2)
        handed: list[int] = []

        def run() -> None:
            rollout(operator, z0, 30, device=cpu, observers=[decodes], progress=handed.append)

        thread = threading.Thread(target=run)
        thread.start()
        assert waiting.wait(60)
        thread.join(0.3)
        assert thread.is_alive()  # with one under way, and two that wait
        assert steps_taken == []
        gate.set()
        thread.join(60)
        assert not thread.is_alive()
    assert steps_taken == [*range(31)]
    assert decodes.waited > 0.2


def test_the_window_holds_so_many_states_and_no_more() -> None:
    gate, under_way, handed = threading.Event(), threading.Event(), list[int]()

    def decode(step: int, _: Any) -> int:
        under_way.set()
        assert gate.wait(60)
        return step

    beside = DecodeThread(decode, window=2)
    beside.put(0, np.zeros(1))
    assert under_way.wait(60)

    def hand_in() -> None:
        for step in range(1, 6):
            beside.put(step, np.zeros(1))
            handed.append(step)

    other = threading.Thread(target=hand_in)
    other.start()
    other.join(0.3)
    assert handed == [1, 2]
    gate.set()
    other.join(60)
    assert beside.rows() == [*range(6)]
    assert beside.rows() == []
    beside.close()
    beside.close()


def test_the_first_error_of_a_decode_ends_the_run_as_it_is() -> None:
    operator, z0 = start()
    steps_taken: list[int] = []

    def snapshot(step: int, _: Decoded) -> None:
        steps_taken.append(step)
        if step >= 4:
            raise FileError(f"the disk is full at {step}.", "make room.")

    with CpuDevice() as cpu, CpuDevice() as other, Decoder(SCHEMA, other) as decoder:
        decodes = Decodes(decoder, 2, "metrics", snapshot)
        with pytest.raises(FileError, match=r"the disk is full at 4\. Fix: make room\."):
            rollout(operator, z0, 400, device=cpu, observers=[decodes])
    assert steps_taken == [0, 2, 4]


def test_what_was_handed_in_is_decoded_whatever_ends_the_run() -> None:
    with CpuDevice() as cpu, CpuDevice() as other, Decoder(SCHEMA, other) as decoder:
        operator, z0 = start(1e6)
        with pytest.raises(NonFiniteError) as failed:
            rollout(operator, z0, 40, device=cpu, observers=[Decodes(decoder, 1)])
        run: Any = failed.value.rollout
        assert [row.step for row in run.records["decodes"]] == [*range(run.steps + 1)][: len(run.records["decodes"])]
        assert len(run.records["decodes"]) > 2

        operator, z0 = start()

        def press(_: int) -> None:
            signal.raise_signal(signal.SIGINT)

        with pytest.raises(Interrupted) as stop:
            rollout(operator, z0, 10**6, device=cpu, observers=[Decodes(decoder, 1)], progress=press)
        part = stop.value.partial
        assert 0 < part.steps < 10**6
        assert [row.step for row in part.records["decodes"]] == [*range(part.steps + 1)]


def test_nothing_is_read_back_beside_a_run_either(recwarn: pytest.WarningsRecorder) -> None:
    with CpuDevice() as cpu, CpuDevice() as other, Decoder(SCHEMA, other) as decoder:
        run = decoded(cpu, decoder, "none")
        assert [row.decoded for row in run.records["decodes"]] == [None] * 6
        assert (decoder.snapshots, decoder.bytes_read) == (6, 0)
    assert len(recwarn) == 0


def test_a_window_of_nothing_is_refused() -> None:
    said = r"`window=` is 0\. Fix: use 1 or more states that wait; 3 is the default"
    with CpuDevice() as cpu, Decoder(SCHEMA, cpu) as decoder, pytest.raises(InputError, match=said):
        Decodes(decoder, 1, window=0)
