"""Vulkan, NumPy and null devices behind one interface. `open_device` is the way in."""

from dashi.runtime._feeding import RunSlot
from dashi.runtime._hazards import BarrierProof
from dashi.runtime._steps import CopyStep, FillStep, HostStep
from dashi.runtime.array import Array
from dashi.runtime.block import Block
from dashi.runtime.device import Device, Program, Step, Timing
from dashi.runtime.info import DeviceInfo
from dashi.runtime.landing import Ticket
from dashi.runtime.select import open_device
from dashi.runtime.using import using_device

__all__ = [
    "Array",
    "BarrierProof",
    "Block",
    "CopyStep",
    "Device",
    "DeviceInfo",
    "FillStep",
    "HostStep",
    "Program",
    "RunSlot",
    "Step",
    "Ticket",
    "Timing",
    "open_device",
    "using_device",
]
