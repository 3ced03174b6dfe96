"""Chains over queues and logical devices of a GPU: rates of links, and a period that the slowest stage decides."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from dashi.bench import links
from dashi.runtime._vulkan_device import VulkanDevice
from dashi.stream import StreamRun, make_plan, parse, run

pytestmark = pytest.mark.gpu

SIZE = 64 << 20
STAGES = {"s0": ("a", 3000), "s1": ("b", 4000), "s2": ("a", 3500)}
"""Devices and steps of rollouts: milliseconds each, where the host needs a tenth of one."""


def test_links_of_one_gpu_are_measured_beside_its_copies(record_property: Callable[[str, object], None]) -> None:
    """Way (a), a DMA out and one in by way of the host, and way (b), memory of the GPU without a copy."""
    rows = {row.way: row for row in links.measure("auto", "auto", [SIZE], seconds=1.0)}
    for way, row in rows.items():
        record_property(way, row.document())
        print(way, row.document())
    assert {"host", "exported"} <= rows.keys()
    assert rows["host"].dma == (1, 1)
    assert rows["exported"].dma == (0, 0)
    # What goes through the host cannot be faster than what does not leave the GPU.
    assert rows["exported"].rate.bandwidth > rows["host"].rate.bandwidth > 1e9


def three_stages(spec: str, items: int, shorter: int = 1) -> tuple[StreamRun, StreamRun]:
    """Rollouts of 8 states of 128 components over two logical devices, two of them on queues of the first; and the same
    on one device, one after another."""
    fields = ["z0", "z1", "z2", "z3"]
    lines = ["stages:", *(f"  - {{id: {s}, device: {d}, ops: [op_{s}]}}" for s, (d, _) in STAGES.items())]
    lines += ["links:", "  - {from: s0, to: s1, mode: P2P}", "  - {from: s1, to: s2, mode: P2P}"]
    lines += [f'devices: {{a: "{spec}", b: "{spec}"}}', "source: {fields: {z0: {shape: [8, 128]}}}", "ops:"]
    for number, (stage, (_, steps)) in enumerate(STAGES.items()):
        lines += [
            f"  op_{stage}:",
            "    kernel: rollout",
            f"    inputs: {{z: {fields[number]}}}",
            f"    outputs: {{result: {fields[number + 1]}}}",
            "    params:",
            "      A: {shape: [128, 128], scale: 0.1}",
            "      b: {shape: [128], scale: 0.1}",
            f"      steps: {steps // shorter}",
            "      psi: 1",
        ]
    plan = make_plan(parse("\n".join([*lines, "result: [z3]"])), measure=False)
    return run(plan, items), run(plan, items, serial=spec)


def test_the_slowest_stage_decides_the_period(
    gpu: VulkanDevice, record_property: Callable[[str, object], None]
) -> None:
    done, serial = three_stages(gpu.info.spec, items=300)
    assert done.in_order
    assert done.hashes == serial.hashes
    assert done.period is not None
    slowest = max(stage["device_us"] for stage in done.stages)
    record_property("period_us", done.period * 1e6)
    record_property("slowest_us", slowest)
    assert [stage["link"]["way"] for stage in done.stages[:-1]] == ["exported", "exported"]
    assert done.period * 1e6 <= 1.1 * slowest
