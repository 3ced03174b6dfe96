"""States kept on the way, each a file of its own beside the run, so that others can begin where this run has been."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, ClassVar, Final

import numpy as np

from dashi.core.observations.observation import KeptState
from dashi.core.rollouts.observer import Bound, Context, Observer, Slot, require_stride
from dashi.errors import FileError, InputError
from dashi.io.arrays import read_exact, write_array
from dashi.kernels.hash._blake3 import hexdigest128, hexdigest256
from dashi.runtime.array import Array
from dashi.runtime.device import Step
from dashi.types import HostArray, Shape

BITS_OF: Final[Mapping[int, int]] = MappingProxyType({32: 128, 64: 256})
"""Bits of a digest by how many hexadecimal digits it has."""
BITS: Final = tuple(BITS_OF.values())


class StateFiles(Observer[KeptState]):
    """Writes all states into a file after every so many steps, while the device goes on; nothing stays in memory but
    the digest, of 128 or 256 bits. A checkpoint that names a state is written after it."""

    name = "kept_states"
    needs_finite = True
    certified = False

    columns_of: ClassVar[Mapping[str, Slot]] = {}

    def __init__(self, every: int, folder: Path | None, bits: int = BITS[0]) -> None:
        self.every, self.folder, self.bits = require_stride("states", every), folder, require_bits(bits)

    def bind(self, context: Context) -> Bound:
        def steps(_: Array, after: Array, slots: Sequence[Array]) -> Sequence[Step]:
            return [context.device.bind("copy", after, out=slots[0])]

        return Bound([(context.shape, context.operator.dtype)], steps, lambda step, values: self._keep(step, values[0]))

    def _keep(self, step: int, states: HostArray) -> KeptState:
        if self.folder is not None:
            write_array(self.folder / state_name(step), states)
        return KeptState(step, state_digest(states, self.bits))

    def require_files(self, records: Sequence[KeptState], shape: Shape, dtype: np.dtype[Any]) -> None:
        """Refuses to go on where a file that was written before is gone, or is no longer what it was."""
        if self.folder is None:
            return
        for record in records:
            file = self.folder / state_name(record.step)
            if state_digest(read_exact(file, shape, dtype, within=self.folder), self.bits) != record.digest:
                raise FileError(
                    f"{file} is not the state that was written after step {record.step}.",
                    "put it back; or start anew: remove the checkpoint, and leave `resume=True` away.",
                )

    @property
    def settings(self) -> Mapping[str, int]:
        return {"every": self.every, "bits": self.bits}

    def columns(self, shape: Shape) -> Mapping[str, Slot]:
        return {"digest": ((self.bits // 8,), np.dtype(np.uint8))}

    def pack(self, record: KeptState) -> Mapping[str, Any]:
        return {"digest": np.frombuffer(bytes.fromhex(record.digest), np.uint8)}

    def unpack(self, step: int, values: Mapping[str, Any]) -> KeptState:
        return KeptState(step, bytes(values["digest"]).hex())


def state_name(step: int) -> str:
    """The file of the states after so many steps."""
    return f"{step:012d}.npy"


def state_digest(states: HostArray, bits: int) -> str:
    """BLAKE3 of the bytes of all values, little-endian in C order: of 128 bits that which hashes of a run are."""
    little = np.ascontiguousarray(states, states.dtype.newbyteorder("<"))
    return hexdigest128(little) if bits == BITS[0] else hexdigest256(little)


def require_bits(bits: int) -> int:
    """The length of a digest, if it is one that there is."""
    if bits not in BITS:
        raise InputError(f"`states_bits=` is {bits}.", "use 128, or 256.")
    return bits
