"""A Vulkan instance: the loader, the drivers it found, and their devices."""

from __future__ import annotations

import logging
import os
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

from dashi.errors import DeviceNotFoundError, VulkanError
from dashi.kernels.spirv._float_controls import FloatControls
from dashi.runtime import _vk as vk
from dashi.runtime import _vk_instance as raw
from dashi.runtime._drivers import driver_environment
from dashi.runtime._gate import require_usable_drivers
from dashi.runtime.info import DeviceInfo

FLOAT_CONTROLS: Final = "DASHI_FLOAT_CONTROLS"
"""Set to 0, modules are loaded as they are: nothing is declared, as on a device that offers nothing."""
_PORTABILITY: Final = "VK_KHR_portability_enumeration"
_DEBUG: Final = "VK_EXT_debug_utils"
_log = logging.getLogger("dashi")


class Instance:
    """One VkInstance. With `validation`, layers watch every call and `messages` collects what they say. `drivers`
    are the only ones to load; None means those that the loader finds."""

    def __init__(self, validation: bool | None = None, drivers: Sequence[str] | None = None) -> None:
        require_usable_drivers()
        if validation is None:
            validation = os.environ.get("DASHI_VALIDATION", "") not in ("", "0")
        self.messages: list[str] = []
        library, self.loader = vk.load_loader()
        base = vk.global_functions(library)
        self.loader_version = raw.version_text(raw.loader_version(base))
        layers = [raw.VALIDATION_LAYER] if validation else []
        if validation and raw.VALIDATION_LAYER not in raw.layer_names(base):
            raise VulkanError(
                "validation was asked for, but the validation layers are not installed.",
                "install them (Debian: apt-get install vulkan-validationlayers), or unset DASHI_VALIDATION.",
            )
        with driver_environment(drivers):
            offered = set(raw.extension_names(base))
            enabled = [e for e in (_PORTABILITY, *((_DEBUG,) if validation else ())) if e in offered]
            flags = 1 if _PORTABILITY in enabled else 0
            self.handle = raw.create_instance(base, enabled, layers, flags)
        self.debug = _DEBUG in enabled
        self.fns = vk.instance_functions(base, self.handle, debug=self.debug)
        self._messenger: tuple[int, Any] | None = None
        if self.debug:
            self._messenger = raw.create_messenger(self.fns, self.handle, self.messages.append)

    def devices(self) -> list[tuple[int, DeviceInfo]]:
        """Every physical device that can run dashi: its handle and what it offers."""
        handles = raw.physical_devices(self.fns, self.handle)
        described = [(handle, raw.describe(self.fns, handle, i)) for i, handle in enumerate(handles)]
        if os.environ.get(FLOAT_CONTROLS) == "0":
            described = [(handle, replace(info, float_controls=FloatControls())) for handle, info in described]
        return [(handle, info) for handle, info in described if _usable(info)]

    def take_messages(self) -> list[str]:
        """What the validation layers said since the last time. Whoever takes it shows it; what nobody took is logged
        when the instance closes."""
        taken, self.messages[:] = list(self.messages), []
        return taken

    def close(self) -> None:
        """Destroys the instance. Closing twice is harmless."""
        if self.fns.closed:
            return
        if self._messenger is not None:
            self.fns.DestroyDebugUtilsMessengerEXT(self.handle, self._messenger[0], None)
        self.fns.DestroyInstance(self.handle, None)
        self.fns.close()
        for message in dict.fromkeys(self.messages):
            _log.warning("validation layers: %s", message)


def _usable(info: DeviceInfo) -> bool:
    """Vulkan 1.2 with timeline semaphores and a compute queue."""
    version = tuple(int(part) for part in info.api_version.split(".")[:2])
    return version >= (1, 2) and "timeline" in info.features and any(q.compute for q in info.queues)


def find(instance: Instance, name: str) -> tuple[int, DeviceInfo]:
    """The device `vulkan:N` or `vulkan:part-of-name` (without the prefix)."""
    devices = instance.devices()
    for handle, info in devices:
        if info.spec == f"vulkan:{name}":
            return handle, info
    named = [(handle, info) for handle, info in devices if name.lower() in info.name.lower()]
    if named and not name.isdigit():
        return named[0]
    names = ", ".join(f"{info.spec} ({info.name})" for _, info in devices) or "none"
    raise DeviceNotFoundError(
        f"no Vulkan device matches {name!r}; there are: {names}.",
        "choose one of these, or auto, cpu or null (`dashi devices list` shows them).",
    )
