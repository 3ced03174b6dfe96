"""Where a run goes, and whether that is what was asked for.

Strict is the rule: a device that is not there is an error. Where falling back is allowed, each is booked, once.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass

from dashi.errors import DeviceError, DeviceNotFoundError
from dashi.io.metrics import PerfFlag
from dashi.runtime.device import Device
from dashi.runtime.info import DeviceInfo
from dashi.runtime.select import open_device, open_instead


@dataclass(frozen=True, eq=False)
class Placement:
    """An open device, what was asked for, and the fallbacks it took to get here."""

    device: Device
    requested: str
    flags: tuple[PerfFlag, ...] = ()


@contextmanager
def place(
    requested: str, *, part: str = "op", allow_fallback: bool = False, require_gpu: bool = False, queues: int = 1
) -> Generator[Placement]:
    """Opens the device asked for, with so many compute queues, and closes it at the end; with `allow_fallback`, the
    best there is if that one cannot be opened. `part` is what runs there: op, decode or fft."""
    placed = _open(requested, part, queues, allow_fallback=allow_fallback, require_gpu=require_gpu)
    with placed.device:
        yield placed


def _open(requested: str, part: str, queues: int, *, allow_fallback: bool, require_gpu: bool) -> Placement:
    flags: tuple[PerfFlag, ...] = ()
    try:
        device = open_device(requested, queues=queues)
    except DeviceError as error:
        if not allow_fallback or require_gpu or requested == "auto":
            raise
        device = open_instead(requested, queues)
        name = f"{part}_device"
        flags = (PerfFlag(name=name, requested=requested, used=device.info.spec, reason=error.what),)
    if require_gpu and not is_gpu(device.info):
        info = device.info
        device.close()
        parameter = "device" if part == "op" else f"{part}_device"
        raise DeviceNotFoundError(
            f"a GPU is required, but {requested!r} is {info.name!r} ({info.type}).",
            f"name a GPU with `{parameter}=` (`dashi devices list` shows them), or leave `require_gpu=True` away.",
        )
    return Placement(device, requested, flags)


def is_gpu(info: DeviceInfo) -> bool:
    """Whether it is a Vulkan device that is not a CPU."""
    return info.spec.startswith("vulkan:") and info.type != "software"
