"""`dashi devices`: what this machine can compute on."""

from __future__ import annotations

import contextlib
import sys
from dataclasses import asdict
from typing import TYPE_CHECKING

from dashi.cli.help import App
from dashi.cli.options import Json, example
from dashi.cli.output import add_row, new_table, print_json, print_table
from dashi.lab._capacity import size_text

if TYPE_CHECKING:
    from dashi.runtime.info import DeviceInfo

app = App("devices", "What this machine can compute on.")


@app.callback()
def _devices() -> None:
    """Keeps `list` a word of its own, also while it is the only one."""


@app.command("list", epilog=example("dashi devices list"))
def list_devices(json: Json = False) -> None:
    """List every device: what --device takes, name, type, driver, API version, features, memory.

    With --json also limits, heaps, queues, float controls, and the driver files that the Vulkan loader reads.
    """
    import dashi
    from dashi.runtime._drivers import driver_files

    found = dashi.devices()
    if json:
        files = [asdict(f) for f in driver_files()]
        print_json({"devices": [d.as_json() for d in found], "driver_files": files})
        return
    table = new_table("--device", "name", "type", "driver", "API", "features", "memory")
    for info in found:
        driver = f"{info.driver} {info.driver_info or info.driver_version}".strip()
        add_row(table, info.spec, info.name, info.type, driver, info.api_version, _features(info), memory(info))
    print_table(table)


def _features(info: DeviceInfo) -> str:
    """The features that decide which kernels run."""
    shown = ("fp64", "fp16", "int64", "int8", "atomics_float", "subgroup", "coop_matrix")
    return " ".join(name for name in shown if name in info.features)


def memory(info: DeviceInfo) -> str:
    """The device's own memory; for the NumPy device, the machine's."""
    if info.type == "reference" and sys.platform != "win32":
        import os

        with contextlib.suppress(ValueError, OSError):
            return size_text(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    own = sum(heap.size for heap in info.heaps if heap.device_local)
    return size_text(own) if own else ""
