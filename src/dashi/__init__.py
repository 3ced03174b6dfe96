"""dashi: Vulkan compute kernels with the same bits on every device, as operators over NumPy arrays.

    with dashi.open() as d:
        y = d.run("axpy", x, y, a=2).numpy()

Importing does nothing: no device is opened and no driver is loaded before `open` or `devices` is called.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dashi import errors, kernels

if TYPE_CHECKING:
    from types import ModuleType

    from dashi.runtime.device import Device
    from dashi.runtime.info import DeviceInfo

    __version__: str

__all__ = ["__version__", "devices", "errors", "kernels", "open"]
_PARTS = ("core", "fft", "flow")


def open(device: str = "auto", *, timeout: float = 600.0, validation: bool | None = None, queues: int = 1) -> Device:
    """Opens a device: `auto`, `cpu`, `null`, `vulkan:0` or `vulkan:part-of-name`. Use it in a `with` block.

    `auto` takes the best there is and says which; nothing else ever falls back. `timeout` is the longest that one
    wait may last, in seconds; `validation` switches Vulkan's validation layers on (default: the environment variable
    DASHI_VALIDATION); `queues` is how many compute queues to open.
    """
    from dashi.runtime.select import open_device

    return open_device(device, timeout=timeout, validation=validation, queues=queues)


def devices() -> list[DeviceInfo]:
    """Every device of this machine: Vulkan's in the order of their numbers, then `cpu` and `null`."""
    from dashi.runtime.select import list_devices

    return list_devices()


def __dir__() -> list[str]:
    return sorted([*__all__, *_PARTS])


def __getattr__(name: str) -> str | ModuleType:
    # The version is written in pyproject.toml alone; reading a package's metadata takes time that few programs need.
    if name == "__version__":
        from importlib import metadata

        try:
            return metadata.version(errors.DISTRIBUTION)
        except metadata.PackageNotFoundError:
            return "0+not.installed"
    # Parts that not every program needs are imported when they are first named.
    if name in _PARTS:
        from importlib import import_module

        return import_module(f"dashi.{name}")
    raise AttributeError(f"module 'dashi' has no attribute {name!r}")
