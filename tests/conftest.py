"""Settings of the whole suite. Fixtures live in the folder that uses them."""

from __future__ import annotations

import os
import signal
import tempfile
from collections.abc import Iterator

import hypothesis
import pytest

from dashi.errors import DeviceError
from dashi.runtime import Device, open_device
from dashi.runtime.cpu_device import CpuDevice
from dashi.runtime.vulkan_device import VulkanDevice

# Time limits per example would measure the machine's load, not the code.
hypothesis.settings.register_profile("dashi", deadline=None, max_examples=50)
# Continuous integration tries the same examples every time, so that red means the change and not the dice.
hypothesis.settings.register_profile("ci", deadline=None, max_examples=50, derandomize=True, database=None)
hypothesis.settings.load_profile("ci" if os.environ.get("CI") else "dashi")


def pytest_configure(config: pytest.Config) -> None:
    """Gives the suite an empty pipeline cache of its own, which its worker processes share."""
    # Tests press Ctrl-C, which is ignored from the start in what a script runs in the background.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if "DASHI_CACHE_DIR" not in os.environ:
        folder = tempfile.TemporaryDirectory(prefix="dashi-tests-")
        os.environ["DASHI_CACHE_DIR"] = folder.name
        config.add_cleanup(folder.cleanup)


def open_vulkan(validation: bool | None = None) -> VulkanDevice:
    """The first Vulkan device; a test that needs one is skipped where there is none."""
    try:
        device = open_device("vulkan:0", validation=validation)
    except DeviceError as error:
        # On the machines that guard main a missing driver must not pass for a green run.
        if os.environ.get("CI"):
            raise
        pytest.skip(f"no Vulkan here: {error.what}")
    assert isinstance(device, VulkanDevice)
    return device


@pytest.fixture(scope="session")
def vulkan_session() -> Iterator[VulkanDevice]:
    with open_vulkan() as device:
        yield device
        messages = device.instance.messages
    assert not messages


@pytest.fixture
def vulkan(vulkan_session: VulkanDevice) -> Iterator[VulkanDevice]:
    """The first Vulkan device; a message of the validation layers fails the test."""
    yield vulkan_session
    messages = list(vulkan_session.instance.messages)
    vulkan_session.instance.messages.clear()
    assert not messages


@pytest.fixture
def fresh_vulkan() -> Iterator[VulkanDevice]:
    """A Vulkan device of the test's own, which it may close or spoil."""
    device = open_vulkan()
    yield device
    device.close()
    assert not device.instance.messages


@pytest.fixture
def bare_vulkan() -> Iterator[VulkanDevice]:
    """A device without validation, for what measures time or memory: the layers cost both."""
    with open_vulkan(validation=False) as device:
        yield device


@pytest.fixture(params=["cpu", "vulkan"])
def device(request: pytest.FixtureRequest) -> Iterator[Device]:
    """Every device that computes."""
    if request.param == "cpu":
        with CpuDevice() as cpu:
            yield cpu
    else:
        yield request.getfixturevalue("vulkan")
