"""A device given as itself or by its name: whoever opens one closes it."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

from dashi.errors import InputError
from dashi.runtime.device import Device
from dashi.runtime.select import open_device


@contextmanager
def using_device(device: Device | str) -> Generator[Device]:
    """An open device for the length of a `with` block: the one given, which stays open, or the one of that name
    (`auto`, `cpu`, `vulkan:0`, ...), which is opened here and closed at the end."""
    if isinstance(device, Device):
        device.require_open()
        yield device
    elif isinstance(device, str):  # pyright: ignore[reportUnnecessaryIsInstance]
        with open_device(device) as opened:
            yield opened
    else:
        raise InputError(
            f"{device!r} is neither an open device nor the name of one.",
            'pass dashi.open("cpu") or a name: "auto", "cpu", "vulkan:0".',
        )
