"""The GPU of the tests that need one."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from dashi.runtime import open_device
from dashi.runtime._vulkan_device import VulkanDevice


@pytest.fixture(scope="module")
def gpu() -> Iterator[VulkanDevice]:
    with open_device("auto") as device:
        assert isinstance(device, VulkanDevice)
        assert device.info.is_hardware, f"auto took {device.info.name}"
        yield device
