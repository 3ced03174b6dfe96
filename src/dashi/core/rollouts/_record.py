"""What the observers of a block leave behind: one array on the device, cut into slots, that comes back in one piece."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from dashi.core.observations.observation import Observation
from dashi.runtime.array import Array
from dashi.runtime.device import Device
from dashi.types import HostArray, Shape

METRICS: Final = 16
_NONE: Final = 0xFFFFFFFFFFFFFFFF


class SlotBuffer:
    """Slots for small results, handed out one after another; read back together."""

    def __init__(self, device: Device, slots: list[tuple[Shape, Any]]) -> None:
        pitch = device.part_alignment
        self._slots: list[tuple[int, Shape, Any]] = []
        at = 0
        for shape, kind in slots:
            self._slots.append((at, shape, kind))
            nbytes = int(np.prod(shape)) * np.dtype(kind).itemsize
            at += -(-nbytes // pitch) * pitch
        self.array = device.empty(max(at, pitch), np.uint8)
        self.parts = [device.part(self.array, offset, shape, kind) for offset, shape, kind in self._slots]

    def values(self, fetched: HostArray) -> list[HostArray]:
        """The contents of the slots in the bytes that came back."""
        return [
            fetched[offset : offset + part.nbytes].view(kind).reshape(shape)
            for (offset, shape, kind), part in zip(self._slots, self.parts, strict=True)
        ]


def observation(step: int, metrics: HostArray, counts: HostArray) -> Observation:
    """The record of a step from what the kernel `state_metrics` left."""
    numbers = [float(v) for v in metrics]
    place = int(counts[1]) | int(counts[2]) << 32
    return Observation(
        step=step,
        norm_before=numbers[0],
        norm=numbers[1],
        ratio=numbers[2],
        defect=numbers[4],
        nonfinite=int(counts[0]),
        first_nonfinite=None if place == _NONE else place,
    )


def digest_text(words: HostArray) -> str:
    """The 32 hexadecimal digits of a digest of four words."""
    return words.astype("<u4").tobytes().hex()


def flat(device: Device, states: Array) -> Array:
    """States as rows: (m, d)."""
    m = states.shape[0]
    return device.part(states, 0, (m, states.size // max(1, m)))
