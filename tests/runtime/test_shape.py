"""The shape of the runtime: raw calls in one place, nothing at import, costs of the host within their bars."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

import dashi
from dashi.runtime import _hostcost as hostcost
from dashi.runtime._vulkan_device import VulkanDevice

RUNTIME = Path(dashi.__file__).parent / "runtime"


def imported(path: Path) -> set[str]:
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names.add(node.module)
    return names


def test_only_the_private_vulkan_files_touch_ctypes() -> None:
    for path in RUNTIME.glob("*.py"):
        if not path.name.startswith("_vk"):
            assert "ctypes" not in imported(path), f"{path.name} imports ctypes"


@pytest.mark.long
@pytest.mark.usefixtures("bare_vulkan")
def test_recording_and_resubmitting_cost_little_more_than_the_bare_calls() -> None:
    # In a process of its own, free of what other tests left in the heap; the best of three, because the bars are for
    # a machine that does nothing else meanwhile.
    command = [sys.executable, "-m", "dashi", "bench", "host", "--device", "vulkan:0", "--json"]
    plain = {**os.environ, "DASHI_VALIDATION": "0"}
    runs = [json.loads(subprocess.run(command, env=plain, check=True, capture_output=True).stdout) for _ in range(3)]
    assert min(run["costs"]["record a step"]["ratio"] for run in runs) <= 1.3
    assert min(run["costs"]["resubmit and wait"]["ratio"] for run in runs) <= 1.3
    assert min(run["costs"]["bind a step"]["ours_us"] for run in runs) <= 40
    assert min(run["costs"]["resubmit after two queues"]["ratio"] for run in runs) <= 1.3


def test_the_peer_of_the_host_bench_is_measured_beside_ours(
    bare_vulkan: VulkanDevice, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hostcost, "STEPS", 40)
    monkeypatch.setattr(hostcost, "ROUNDS", 1)
    for cost in (hostcost.recording(bare_vulkan), hostcost.resubmission(bare_vulkan)):
        assert cost.ours > 0
        assert cost.bare > 0
        # How much slower the peer is belongs in a benchmark; here it only has to have run, if it is installed.
        assert (cost.wrappers is not None) == (find_spec("vulkan") is not None)
    for cost in (hostcost.binding(bare_vulkan), hostcost.feeding(bare_vulkan)):
        assert cost.ratio > 0
        assert not cost.compared


@pytest.mark.usefixtures("vulkan_session")
def test_waiting_for_two_queues_is_measured_beside_a_bare_submission(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hostcost, "STEPS", 40)
    monkeypatch.setattr(hostcost, "ROUNDS", 1)
    with dashi.open("vulkan:0", validation=False, queues=3) as device:
        assert isinstance(device, VulkanDevice)
        cost = hostcost.waiting(device)
    assert cost.ours > 0
    assert cost.ratio > 0
    assert cost.wrappers is None
