"""Digests of items: what `hash_state` makes of the fields of a result, on the device that they are on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np

from dashi import kernels
from dashi.runtime._steps import AnyStep
from dashi.runtime.array import Array
from dashi.runtime.device import Device
from dashi.types import HostArray

WORDS: Final = 4
"""Words of a digest: 128 bits."""


class ItemDigest:
    """Steps that hash the fields of an item: one field is hashed as `hash_state` does, of several their digests, in the
    order of their names. Types that the kernel does not take are hashed as words, the last one filled up with zeros."""

    def __init__(self, device: Device, fields: Mapping[str, Array]) -> None:
        self.result: Final = device.empty(WORDS, np.uint32)
        self.steps: Final[list[AnyStep]] = []
        if len(fields) == 1:
            self._hash(device, next(iter(fields.values())), self.result)
            return
        every = device.zeros((len(fields), WORDS), np.uint32)
        for number, name in enumerate(sorted(fields)):
            one = device.empty(WORDS, np.uint32)
            self._hash(device, fields[name], one)
            self.steps.append(device.copy_step(one, every[number]))
        self.steps.append(device.bind("hash_state", every.reshape(-1), out=self.result))

    def _hash(self, device: Device, array: Array, target: Array) -> None:
        if array.dtype.name not in kernels.get("hash_state").dtypes:
            words = device.zeros(max(1, -(-array.nbytes // 4)), np.uint32)
            if array.nbytes:
                flat = array.reshape(-1).view(np.uint8)
                self.steps.append(device.copy_step(flat, words.view(np.uint8)[: array.nbytes]))
            array = words
        self.steps.append(device.bind("hash_state", array, out=target))


def digest_text(words: HostArray) -> str:
    """A digest as 32 hexadecimal digits, byte by byte."""
    return np.ascontiguousarray(words, "<u4").tobytes().hex()
