"""Where the parts of a decoded rollout run: the steps, the decode, its Fourier transforms."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace

from dashi.core.metrics._placement import Placement
from dashi.errors import NoResultError
from dashi.lab._job import Job
from dashi.runtime._vulkan_device import VulkanDevice
from dashi.runtime.device import Device


@dataclass(frozen=True, eq=False)
class DecodePlaces:
    """The open devices of a decode and of its transforms; they may be that of the steps."""

    decode: Placement
    fft: Placement
    queue: int = 0
    beside: str | None = None
    """What lets it decode beside the steps; None where it is recorded behind them."""

    @property
    def fft_elsewhere(self) -> Device | None:
        """The device of the transforms, where that is not the one that decodes."""
        return None if self.fft.device is self.decode.device else self.fft.device


@contextmanager
def place_decode(
    job: Job, steps: Placement, decode_device: str | None, fft_device: str | None
) -> Generator[DecodePlaces]:
    """Opens what the steps do not have already. The device of the steps decodes on a queue of its own; on one that was
    opened with a single queue, and on NumPy, a second device does."""
    with ExitStack() as stack:
        decode, queue, beside = steps, 0, None
        if decode_device is not None:
            decode = stack.enter_context(job.place_part("decode", decode_device))
            beside = f"a device of its own, {decode.device.info.spec}"
            _require_both(steps.device, decode.device, "decode_device")
            if _has_second_queue(steps.device, decode.device):
                stack.close()
                decode, queue, beside = replace(decode, device=steps.device), 1, _second_queue(steps.device)
        fft = decode
        if fft_device is not None:
            opened = stack.enter_context(job.place_part("fft", fft_device))
            _require_both(steps.device, opened.device, "fft_device")
            same = opened.device.info.spec == decode.device.info.spec
            fft = replace(opened, device=decode.device) if same else opened
        yield DecodePlaces(decode, fft, queue, beside)


def _has_second_queue(steps: Device, decode: Device) -> bool:
    """Whether the device of the steps is the one asked for, with a queue to spare."""
    same = steps.info.spec == decode.info.spec
    return same and isinstance(steps, VulkanDevice) and len(steps.by_role.compute) > 1


def _second_queue(steps: Device) -> str:
    """The queue in words; of a driver that has a single one, whose work does not overlap, it says so."""
    driver = next(family for family in steps.info.queues if family.compute)
    shared = ", which shares a queue of the driver with the steps" if driver.count < 2 else ""
    return f"queue 1 of {steps.info.spec}{shared}"


def _require_both(steps: Device, part: Device, name: str) -> None:
    """Refuses the null device, which computes nothing, for a part."""
    for device in (part, steps):
        if device.info.type == "null":
            raise NoResultError(
                f"the null device computes nothing, and `{name}=` asks for a decode.",
                f"use devices that compute, or leave `{name}=` away.",
            )
