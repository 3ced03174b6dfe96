"""What pipelines may take, and what becomes of them when something breaks: memory beside its lower bound, cycles of
compile and close, edited binaries, devices that are lost in the middle of a batch."""

from __future__ import annotations

import gc
import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from dashi import graph as dg
from dashi.bench.minilm.model import WIDTH, build_minilm
from dashi.errors import ClosedError, DeviceLostError, KernelError
from dashi.graph.ops import _fused
from dashi.graph.passes.plan_memory import PlanMemory
from dashi.graph.passes.schedule import Schedule
from dashi.kernels.abi import Binaries, Kernel
from dashi.runtime import open_device
from dashi.runtime._vulkan_device import VulkanDevice
from dashi.types import HostArray


def minilm(rows: int, tokens: int) -> dg.Graph:
    """The sentence transformer with weights of 0, and few words."""
    tensors: dict[str, HostArray] = {}

    def add(name: str, *shape: int) -> None:
        tensors[name] = np.zeros(shape, np.float32)

    def linear(name: str, outputs: int, inputs: int) -> None:
        add(f"{name}.weight", outputs, inputs)
        add(f"{name}.bias", outputs)

    for name, count in (("word", 100), ("token_type", 2), ("position", 512)):
        add(f"embeddings.{name}_embeddings.weight", count, WIDTH)
    norms = ["embeddings.LayerNorm"]
    for k in range(6):
        layer = f"encoder.layer.{k}"
        for part in ("self.query", "self.key", "self.value", "output.dense"):
            linear(f"{layer}.attention.{part}", WIDTH, WIDTH)
        linear(f"{layer}.intermediate.dense", 4 * WIDTH, WIDTH)
        linear(f"{layer}.output.dense", WIDTH, 4 * WIDTH)
        norms += [f"{layer}.attention.output.LayerNorm", f"{layer}.output.LayerNorm"]
    for name in norms:
        add(f"{name}.weight", WIDTH)
        add(f"{name}.bias", WIDTH)
    return build_minilm(tensors, rows, tokens)


def decoder(tokens: int, layers: int = 4, width: int = 64, heads: int = 4) -> dg.Graph:
    """A causal transformer with gated layers, whose keys and values are results."""
    b = dg.Builder("decoder")
    rng = np.random.default_rng(0)

    def param(*shape: int) -> dg.Tensor:
        return b.param(f"w{len(b.nodes)}", rng.standard_normal(shape).astype(np.float32))

    x = dg.gather(param(50, width), b.input("ids", (1, tokens), "u32"))
    cache: dict[str, dg.Tensor] = {}
    for k in range(layers):
        h = dg.rms_norm(x, param(width))
        parts = [(h @ param(width, width)).reshape(1, tokens, heads, width // heads) for _ in range(3)]
        cache |= {f"k{k}": parts[1], f"v{k}": parts[2]}
        scale = 1 / math.sqrt(width // heads)
        mixed = dg.attention(parts[0], parts[1], parts[2], scale=scale, causal=True, heads_last=True)
        x = x + mixed.reshape(1, tokens, width) @ param(width, width)
        h = dg.rms_norm(x, param(width))
        gate = h @ param(width, 4 * width)
        x = x + (gate * dg.sigmoid(gate) * (h @ param(width, 4 * width))) @ param(4 * width, width)
    return b.graph(logits=dg.rms_norm(x, param(width)) @ param(width, 50), **cache)


MODELS: dict[str, Callable[[], dg.Graph]] = {
    "minilm 1 x 128": lambda: minilm(1, 128),
    "minilm 4 x 32": lambda: minilm(4, 32),
    "decoder, a prompt": lambda: decoder(100),
    "decoder, a token": lambda: decoder(1, width=512),
}


@pytest.mark.parametrize("model", MODELS)
def test_a_plan_is_within_8_percent_of_what_lives_at_once(model: str) -> None:
    lowered = dg.run_passes(MODELS[model]())
    plan = PlanMemory().run(lowered, Schedule().run(lowered))
    assert 0 < plan.liveness_bytes <= plan.nbytes <= 1.08 * plan.liveness_bytes


def small() -> dg.Graph:
    """A product, a softmax, and a fused map."""
    b = dg.Builder("small")
    x = b.input("x", (3, 4))
    return b.graph(y=dg.tanh(dg.softmax(x @ b.param("w", np.eye(4, dtype=np.float32)))) * 0.5)


X = np.arange(12, dtype=np.float32).reshape(3, 4) / 8


def require_no_leak(device: Any, cycles: int, used: Callable[[], int]) -> None:
    """Compile, run, close: the memory in use is the same behind each."""

    def cycle() -> None:
        with dg.compile(small(), device) as pipeline:
            if device.info.spec != "null":
                pipeline.bind("x", X)
                pipeline.dispatch_resident({})

    cycle()
    gc.collect()
    first = used()
    for count in range(cycles):
        cycle()
        if count % 1000 == cycles % 1000 - 1 or count == cycles - 1:
            gc.collect()
            assert used() == first, count


def test_cycles_of_compile_and_close_leave_no_memory_in_use(bare_vulkan: VulkanDevice) -> None:
    require_no_leak(bare_vulkan, 40, lambda: bare_vulkan.memory().used)


@pytest.mark.parametrize("cycles", [40, pytest.param(10_000, marks=pytest.mark.long)])
def test_cycles_of_compile_and_close_leave_no_objects(cycles: int) -> None:
    """Pipelines, programs and blocks of the null device, counted by Python."""

    def alive() -> int:
        kinds = ("CompiledPipeline", "PipelineMemory", "Recorded", "Assembly", "Block", "NullProgram")
        return sum(type(item).__name__ in kinds for item in gc.get_objects())

    with open_device("null") as null:
        require_no_leak(null, cycles, alive)


class EditedBinaries:
    """The binaries of a generated kernel, with some words changed."""

    def __init__(self, whole: Binaries, edit: Callable[[bytearray], None], name: str) -> None:
        self._whole, self._edit = whole, edit
        self.key = f"{whole.key} {name}"

    def words(self, shader: str, variant: str) -> bytes:
        words = bytearray(self._whole.words(shader, variant))
        self._edit(words)
        return bytes(words)


def _swap_operation(words: bytearray) -> None:
    """The first multiplication of floats becomes a division, which is not portable."""
    at = 20
    while int.from_bytes(words[at : at + 4], "little") != (5 << 16 | 133):
        at += 4 * int.from_bytes(words[at + 2 : at + 4], "little")
    words[at : at + 2] = (136).to_bytes(2, "little")


def _cut(words: bytearray) -> None:
    del words[len(words) // 2 // 4 * 4 :]


def _change_magic(words: bytearray) -> None:
    words[0] ^= 1


def _lower_bound(words: bytearray) -> None:
    """Fewer ids than there are."""
    words[12:16] = (3).to_bytes(4, "little")


def _empty(words: bytearray) -> None:
    words.clear()


EDITS = {"operation": _swap_operation, "cut": _cut, "magic": _change_magic, "ids": _lower_bound, "empty": _empty}


@pytest.mark.parametrize("name", EDITS)
def test_an_edited_binary_is_refused_before_a_driver_sees_it(
    name: str, vulkan: VulkanDevice, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = _fused._map_kernel  # pyright: ignore[reportPrivateUsage]

    def edited(*arguments: Any) -> Kernel:
        kernel: Kernel = whole(*arguments)
        assert kernel.binaries is not None
        return replace(kernel, binaries=EditedBinaries(kernel.binaries, EDITS[name], name))

    b = dg.Builder("edited")
    graph = b.graph(y=dg.tanh(b.input("x", (3, 4)) * 0.25) * 0.5)
    monkeypatch.setattr(_fused, "_map_kernel", edited)
    with pytest.raises(KernelError, match="Fix: "):
        dg.compile(graph, vulkan)
    monkeypatch.undo()
    with dg.compile(graph, vulkan) as pipeline:
        assert pipeline.dispatch({"x": X})["y"].tobytes() == dg.evaluate(graph, {"x": X})["y"].tobytes()


def test_a_device_that_is_lost_in_the_middle_of_a_batch_is_an_error_and_nothing_hangs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with open_device("vulkan:0", validation=False) as device:
        assert isinstance(device, VulkanDevice)
        submit, left = device.raw.fns.QueueSubmit, list(range(1000))
        monkeypatch.setattr(device.raw.fns, "QueueSubmit", lambda *call: submit(*call) if left and left.pop() else -4)
        pipeline = dg.compile(small(), device, slots=4)
        expected = pipeline.dispatch({"x": X})["y"]
        del left[4:]  # three more submissions
        with pytest.raises(
            DeviceLostError, match=r"item 3 of the batch: .* the device was lost.* Fix: close the device"
        ):
            pipeline.dispatch_batched([{"x": X}] * 9)
        with pytest.raises(DeviceLostError, match="Fix: close the device"):
            pipeline.dispatch({"x": X})
        pipeline.close()
        with pytest.raises(ClosedError):
            pipeline.dispatch({"x": X})
    monkeypatch.undo()
    with open_device("vulkan:0", validation=False) as again, dg.compile(small(), again) as pipeline:
        assert pipeline.dispatch({"x": X})["y"].tobytes() == expected.tobytes()
