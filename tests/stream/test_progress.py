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


def record(name: str, device_us: float | None) -> dict[str, Any]:
    return {"id": name, "device": "vulkan:0", "items_out": 7, "device_us": device_us}


def test_lines_say_rate_share_and_whom_a_stage_waits_for() -> None:
    stages = [record("a", 500.0), record("b", 2000.0), record("c", None)]
    assert device_lines(stages, 2e-3) == [
        "a on vulkan:0: 7 items submitted, 500.0/s, busy 25%, waits for b 75%",
        "b on vulkan:0: 7 items submitted, 500.0/s, busy 100%",
        "c on vulkan:0: 7 items submitted, 500.0/s",
    ]
    assert device_lines(stages[:2], 4e-3)[1].endswith("busy 50%, waits for the host and the links 50%")
    assert device_lines(stages[:1], None) == ["a on vulkan:0: 7 items submitted"]


def test_a_run_of_a_configuration_tells_its_stages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dashi.stream.running.LINES_EVERY", 0.0)
    lines: list[str] = []
    done = run(parse(TEXT), 6, measure=False, remark=lambda *texts: lines.extend(texts))
    assert done.items == 6
    assert lines[0].startswith("a on cpu: ")
    assert "items submitted" in lines[-1]
    assert lines[-1].startswith("b on cpu: ")
