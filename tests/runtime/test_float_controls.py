"""Float controls on a device: in every portable module that it loads, switched off on demand, and on record."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from dashi import kernels
from dashi.core.certificates._certificate import DeviceRecord
from dashi.core.certificates._certify import _device  # pyright: ignore[reportPrivateUsage]
from dashi.kernels import _build as build
from dashi.kernels.spirv._float_controls import FloatControls
from dashi.kernels.spirv._module import parse
from dashi.runtime import _probe as probe
from dashi.runtime import open_device
from dashi.runtime._cpu_device import cpu_info
from dashi.runtime._vulkan_device import VulkanDevice
from dashi.runtime.info import DeviceInfo

GPU = DeviceInfo("vulkan:0", "gpu", "discrete", driver="maker", driver_info="1.2")


@pytest.fixture
def without(vulkan: VulkanDevice, monkeypatch: pytest.MonkeyPatch) -> Iterator[VulkanDevice]:
    monkeypatch.setenv("DASHI_FLOAT_CONTROLS", "0")
    with open_device(vulkan.info.spec) as device:
        assert isinstance(device, VulkanDevice)
        yield device
        assert not device.instance.messages


def loaded(device: VulkanDevice, name: str) -> build.Binary:
    kernel = kernels.get(name)
    return device.binary(kernel, *build.variants(kernel)[0])


def modes(binary: build.Binary) -> set[tuple[int, ...]]:
    return {i.words[1:] for i in parse(binary.words).all("ExecutionMode") if i.words[1] in (4461, 4462)}


def test_portable_modules_are_loaded_with_the_declarations_that_the_device_takes(vulkan: VulkanDevice) -> None:
    controls = vulkan.info.float_controls
    expected = {(4461, w) for w in controls.special if w == 32} | {(4462, w) for w in controls.rounding if w == 32}
    assert modes(loaded(vulkan, "axpy")) == expected
    assert not modes(loaded(vulkan, "gemm_fast"))
    assert not modes(loaded(vulkan, "hash_state"))


def test_digests_of_binaries_stay_those_of_their_files(vulkan: VulkanDevice) -> None:
    kernel = kernels.get("axpy")
    shader, variant = build.variants(kernel)[0]
    loaded(vulkan, "axpy")
    assert build.digest_of(kernel, shader, variant) == build.load(kernel, shader, variant).digest


def test_a_device_without_declarations_gives_the_same_bits_from_other_pipelines(
    vulkan: VulkanDevice, without: VulkanDevice
) -> None:
    if vulkan.info.float_rules == "by custom":
        pytest.skip("this device offers no float controls")
    assert without.info.float_rules == "by custom"
    assert not modes(loaded(without, "axpy"))
    assert (
        loaded(vulkan, "axpy").digest
        != loaded(without, "axpy").digest
        == build.digest_of(kernels.get("axpy"), *build.variants(kernels.get("axpy"))[0])
    )
    rng = np.random.default_rng(1)
    x, y = rng.standard_normal((2, 1000)).astype(np.float32)
    x[:4] = [np.nan, np.inf, -np.inf, -0.0]
    first, second = (d.run("axpy", x, y, a=1.5).numpy() for d in (vulkan, without))
    assert first.tobytes() == second.tobytes()


def test_a_child_process_reports_float_controls_as_they_are() -> None:
    info = replace(GPU, float_controls=FloatControls((32, 64), (32,), "32"))
    assert probe.device_info(json.loads(json.dumps(info.as_json()))) == info


def test_certificates_name_the_rule_in_a_field_that_older_readers_take() -> None:
    declared = _device(replace(GPU, float_controls=FloatControls((32,), (32,))), rules=True)
    assert declared.driver_version == "1.2; rounding and NaN declared for fp32"
    assert _device(GPU, rules=True).driver_version == "1.2; rounding and NaN by custom"
    assert _device(cpu_info(), rules=True).driver_version == cpu_info().driver_version
    assert set(DeviceRecord.model_fields) == {"spec", "name", "type", "driver", "driver_version"}


def test_metrics_of_a_run_name_the_rule(vulkan: VulkanDevice, tmp_path: Path) -> None:
    from typer.testing import CliRunner

    from dashi.cli.main import app

    np.savez(tmp_path / "inputs.npz", A=np.eye(4, dtype=np.float32), z0=np.ones(4, np.float32))
    inputs = str(tmp_path / "inputs.npz")
    for device, rule in ((vulkan.info.spec, vulkan.info.float_rules), ("cpu", None)):
        out = tmp_path / device
        arguments = ["rollout", "--z0", inputs, "--A", inputs, "--steps", "3", "--device", device, "--out", str(out)]
        done = CliRunner().invoke(app, arguments)
        assert done.exit_code == 0, done.output
        assert json.loads((out / "metrics.json").read_text()).get("float_rules") == rule
