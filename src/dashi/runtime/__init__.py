"""Vulkan, NumPy and null devices behind one interface. `open_device` is the way in."""

from typing import TYPE_CHECKING

from dashi.runtime._clock import Clock, StepSpan
from dashi.runtime._cuda import CudaArray, cuda_array, cuda_problem
from dashi.runtime._feeding import RunSlot
from dashi.runtime._hazards import BarrierProof
from dashi.runtime._steps import CopyStep, FillStep, HostStep
from dashi.runtime._submissions import Submission
from dashi.runtime.array import Array
from dashi.runtime.block import Block
from dashi.runtime.device import Device, Event, Program, Step, Timing
from dashi.runtime.info import DeviceInfo
from dashi.runtime.landing import Download, Ticket
from dashi.runtime.select import open_device
from dashi.runtime.shared import SharedMemory, shared_memory
from dashi.runtime.using import using_device

__all__ = [
    "Array",
    "BarrierProof",
    "Block",
    "Clock",
    "CopyStep",
    "CudaArray",
    "Device",
    "DeviceInfo",
    "Download",
    "Event",
    "FillStep",
    "HostStep",
    "Program",
    "RunSlot",
    "SharedMemory",
    "Step",
    "StepSpan",
    "Submission",
    "Ticket",
    "Timing",
    "cuda_array",
    "cuda_problem",
    "open_device",
    "shared_memory",
    "using_device",
]

if not TYPE_CHECKING:  # to a type checker a name that is not imported above is a mistake

    def __getattr__(name: str) -> object:
        from dashi._lazy import below

        return below(__name__, name)
