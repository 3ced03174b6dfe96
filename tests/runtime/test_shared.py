"""Memory between devices: imported from the host, exported by one of the GPU's, or copied through the host."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import numpy as np
import pytest

from dashi import errors
from dashi.runtime import Device, open_device, shared_memory
from dashi.runtime._vulkan_device import VulkanDevice
from dashi.runtime.shared import Mode, SharedMemory, modes

PAIRS = ["vulkan vulkan", "vulkan cpu", "cpu vulkan", "cpu cpu"]
RNG = np.random.default_rng(3)


@pytest.fixture(params=PAIRS)
def pair(request: pytest.FixtureRequest) -> Iterator[tuple[Device, Device]]:
    request.getfixturevalue("vulkan_session")
    names = {"vulkan": "vulkan:0", "cpu": "cpu"}
    first, second = (open_device(names[name]) for name in request.param.split())
    yield first, second
    for device in (first, second):
        device.close()
        assert not getattr(getattr(device, "instance", None), "messages", None)


def asked(pair: tuple[Device, Device], mode: Mode, nbytes: int) -> SharedMemory | None:
    """Memory of that mode; None where it was refused, as it must be."""
    if mode not in modes(*pair):
        with pytest.raises(errors.UnsupportedOperationError, match=rf"cannot share memory by mode='{mode}'\. Fix:"):
            shared_memory(*pair, nbytes, mode)
        return None
    return shared_memory(*pair, nbytes, mode)


@pytest.mark.parametrize("mode", ["exported", "host", "staging"])
@pytest.mark.parametrize("count", [1, 1000])
def test_what_one_device_computes_the_other_reads(pair: tuple[Device, Device], mode: Mode, count: int) -> None:
    memory = asked(pair, mode, 4 * count)
    if memory is None:
        return
    first, second = pair
    assert memory.mode == mode
    x = RNG.standard_normal(count).astype(np.float32)
    here, there = memory.first.view(np.float32), memory.second.view(np.float32)
    step = second.bind("add", there, there)
    go = first.event()
    ticket = first.program([first.bind("add", first.array(x), first.array(x), out=here)]).submit(after=[go])
    done = second.program([step]).submit(after=[memory.hand_over(after=[ticket])])
    assert not done.done
    go.signal()
    done.wait()
    assert np.array_equal(step.outputs[0].numpy(), 4 * x)
    back = second.program([second.bind("scale", there, a=0.5, out=there)]).submit()
    memory.hand_over(after=[back], back=True).wait()
    assert np.array_equal(here.numpy(), x)


def test_shared_modes_have_one_memory_and_no_copy(pair: tuple[Device, Device]) -> None:
    memory = shared_memory(*pair, 256)
    assert memory.mode == modes(*pair)[0] != "staging"
    values = RNG.integers(0, 256, 256, dtype=np.uint8)
    memory.first.write(values)
    assert np.array_equal(memory.second.numpy(), values)
    memory.second[16:32] = 7
    assert (memory.first.numpy()[16:32] == 7).all()


def test_software_vulkan_imports_host_memory_here(vulkan: VulkanDevice) -> None:
    """Continuous integration must try the mode: lavapipe offers it."""
    if vulkan.info.is_hardware:
        pytest.skip("a claim about the software driver")
    with open_device("cpu") as cpu:
        assert modes(vulkan, cpu) == ("host", "staging")


def test_either_end_may_go_first(pair: tuple[Device, Device]) -> None:
    memory = shared_memory(*pair, 64)
    memory.first.write(np.arange(64, dtype=np.uint8))
    second = memory.second
    del memory
    gc.collect()
    pair[0].close()
    if pair[0] is not pair[1]:
        assert np.array_equal(second.numpy(), np.arange(64))


def test_work_that_fails_is_an_error_of_what_was_to_read_it() -> None:
    with open_device("cpu") as second:
        first = open_device("cpu")
        memory = shared_memory(first, second, 16, "staging")
        event = memory.hand_over(after=[first.event("never")])
        first.close()
        with pytest.raises(errors.ClosedError, match="never"):
            event.wait(timeout=10)


def test_bad_requests_are_refused(vulkan: VulkanDevice) -> None:
    with open_device("null") as null:
        assert shared_memory(null, vulkan, 16).mode == "staging"
        with pytest.raises(errors.UnsupportedOperationError, match="cannot share memory by mode='host'"):
            shared_memory(null, vulkan, 16, "host")
        for nbytes in (0, -1, 1.5):
            with pytest.raises(errors.InputError):
                shared_memory(null, vulkan, nbytes)  # type: ignore[arg-type]
        with pytest.raises(errors.InputError, match="none of 'exported', 'host', 'staging'"):
            shared_memory(null, vulkan, 16, "magic")  # type: ignore[arg-type]
        with pytest.raises(errors.InputError, match="is no device"):
            shared_memory("cpu", vulkan, 16)  # type: ignore[arg-type]
        with pytest.raises(errors.LimitError, match=r"more than .* can bind"):
            shared_memory(null, vulkan, 1 << 40)
    with pytest.raises(errors.ClosedError):
        shared_memory(null, vulkan, 16)
