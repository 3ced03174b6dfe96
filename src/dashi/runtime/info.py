"""What is known of a device, as plain data: the same record for Vulkan, NumPy and null devices."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from dashi.kernels.abi import Limits
from dashi.kernels.spirv._float_controls import FloatControls
from dashi.runtime._notebook import html_facts, html_table

DeviceType = Literal["discrete", "integrated", "virtual", "software", "other", "reference", "null"]

Barriers = Literal["auto", "all", "none"]
"""Where barriers go: at real hazards; before every dispatch; nowhere (diagnostic: results are then undefined)."""

Role = Literal["compute", "upload", "download"]
"""What a queue is for."""


@dataclass(frozen=True)
class Heap:
    """A memory heap and its kinds of memory."""

    size: int
    device_local: bool


@dataclass(frozen=True)
class MemoryType:
    """One memory type: its heap and its property flags."""

    heap: int
    device_local: bool
    host_visible: bool
    host_coherent: bool
    host_cached: bool


@dataclass(frozen=True)
class QueueFamily:
    """One queue family."""

    count: int
    compute: bool
    transfer: bool
    graphics: bool
    timestamp_bits: int


@dataclass(frozen=True)
class DeviceInfo:
    """Name, driver, features and limits of a device. `spec` opens it (`dashi.open(info.spec)`)."""

    spec: str
    name: str
    type: DeviceType
    driver: str = ""
    driver_info: str = ""
    driver_version: str = ""
    api_version: str = ""
    vendor_id: int = 0
    device_id: int = 0
    uuid: str = ""
    features: frozenset[str] = frozenset()
    extensions: frozenset[str] = field(default=frozenset(), repr=False)
    limits: Limits = field(default_factory=Limits)
    subgroup_size: int = 1
    timestamp_ns: float = 0.0
    max_allocation: int = 0
    non_coherent_atom: int = 1
    heaps: tuple[Heap, ...] = ()
    memory_types: tuple[MemoryType, ...] = ()
    queues: tuple[QueueFamily, ...] = ()
    denormals: Mapping[str, bool] = field(default_factory=dict[str, bool])
    float_controls: FloatControls = field(default_factory=FloatControls)
    """What portable modules declare here when they are loaded."""

    @property
    def is_hardware(self) -> bool:
        """Whether work here runs on a GPU, not on the host's processor."""
        return self.type in ("discrete", "integrated", "virtual")

    @property
    def float_rules(self) -> str:
        """How rounding and NaN are held to on this device: "declared for fp32 fp64", or "by custom", where Vulkan
        leaves them to the driver and all that is known is what it did; empty where no driver takes part."""
        return self.float_controls.text if self.spec.startswith("vulkan:") else ""

    def facts(self) -> list[tuple[str, str]]:
        """What a person asks first, in words."""
        local = sum(heap.size for heap in self.heaps if heap.device_local)
        return [
            ("name", self.name),
            ("type", self.type),
            ("driver", " ".join(filter(None, (self.driver, self.driver_info or self.driver_version)))),
            ("memory", f"{local / 2**30:.1f} GiB" if local else "the host's"),
            ("features", ", ".join(sorted(self.features))),
        ]

    def _repr_html_(self) -> str:
        return html_facts(self.spec, self.facts())

    def as_json(self) -> dict[str, Any]:
        """A JSON-ready dictionary."""
        data = asdict(self)
        data["features"] = sorted(self.features)
        del data["limits"]["features"]  # a device puts them there
        data["extensions"] = sorted(self.extensions)
        return data


class DeviceList(list[DeviceInfo]):
    """Devices of a machine: a list, and in a notebook a table."""

    def _repr_html_(self) -> str:
        rows = [[info.spec, *(value for _, value in info.facts())] for info in self]
        return html_table(["device", "name", "type", "driver", "memory", "features"], rows)
