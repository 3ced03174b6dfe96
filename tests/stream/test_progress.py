"""What people are told of a chain while it runs."""

from __future__ import annotations

from typing import Any

import pytest

from dashi.stream import parse, run
from dashi.stream._progress import device_lines

TEXT = """
stages:
  - {id: a, device: cpu, max_semantic_depth: 1, ops: [scale]}
  - {id: b, device: cpu, max_semantic_depth: 1, ops: [add]}
links: [{from: a, to: b}]
source: {fields: {x: {shape: [64]}}}
ops:
  scale: {inputs: {x: x}, params: {a: 10.0}, outputs: {result: scaled}}
  add: {inputs: {x: scaled, y: x}}
"""


def record(name: str, seconds: dict[str, float], mean_used: float | None = None, restarts: int = 0) -> dict[str, Any]:
    none = {"busy": 0.0, "starved": 0.0, "linked": 0.0, "blocked": 0.0, "submitting": 0.0}
    link = None if mean_used is None else {"window": 3, "mean_used": mean_used}
    return {
        "id": name, "device": "vulkan:0", "items_out": 7, "seconds": none | seconds, "restarts": restarts, "link": link
    }  # fmt: skip


def test_lines_say_rate_share_fill_and_what_a_stage_waits_for() -> None:
    stages = [
        record("a", {"busy": 1.0, "blocked": 2.93, "submitting": 0.07}, 2.96),
        record("b", {"busy": 3.9, "linked": 0.07}, 1.2, restarts=2),
        record("c", {"busy": 1.0, "starved": 2.0, "linked": 1.0}),
    ]
    assert device_lines(stages, 2e-3) == [
        "a on vulkan:0: 7 items submitted, 500.0/s, busy 25%, 3.0 of 3 slots in use, blocked by b 73%",
        "b on vulkan:0: 7 items submitted, 500.0/s, busy 98%, 1.2 of 3 slots in use, 2 restarts",
        "c on vulkan:0: 7 items submitted, 500.0/s, busy 25%, starved by b 50%, waits for the link from b 25%",
    ]
    assert device_lines([record("a", {})], None) == ["a on vulkan:0: 7 items submitted"]


def test_a_run_of_a_configuration_tells_its_stages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dashi.stream.running.LINES_EVERY", 0.0)
    lines: list[str] = []
    done = run(parse(TEXT), 6, measure=False, remark=lambda *texts: lines.extend(texts))
    assert done.items == 6
    assert lines[0].startswith("a on cpu: ")
    assert "items submitted" in lines[-1]
    assert lines[-1].startswith("b on cpu: ")
