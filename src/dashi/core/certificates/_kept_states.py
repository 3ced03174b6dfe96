"""States that a certificate names: found below its folder alone, and held to its claims before anything is made of
them."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, Final

import numpy as np

from dashi.core.certificates._certificate import StateRecord
from dashi.core.certificates._segments import CertifiedSegment
from dashi.core.rollouts._state_files import state_digest
from dashi.errors import CertificateError, FileError
from dashi.io._run_folder import STATES
from dashi.io._run_reading import named_file
from dashi.io.arrays import read_exact
from dashi.types import HostArray, Shape

_FIND: Final = "get the file that was written with the run (`inputs=` looks for `states/` in another folder)."


@dataclass(frozen=True)
class KeptStateReader:
    """Reads kept states of a run, all of one shape and type."""

    folder: Path
    """That of the certificate."""
    inputs: Path | None
    """Another folder to look for `states/` in."""
    shape: Shape
    dtype: np.dtype[Any]
    bits: int

    def read(self, record: StateRecord) -> HostArray:
        """The states of a record. Raises where its file is missing, other than it must be, or leads elsewhere."""
        path, within = self._locate(record.file)
        if not os.path.isfile(path):  # says no to names that the system refuses, where Path raises
            raise FileError(f"the state after step {record.step} is not there: {path}.", _FIND)
        try:
            states = read_exact(path, self.shape, self.dtype, within=within)
        except FileError as error:
            raise FileError(f"the state after step {record.step} cannot be used: {error.what}", error.fix) from error
        if state_digest(states, self.bits) != record.digest:
            raise CertificateError(
                f"{path} is not the state after step {record.step} of this certificate: its digest is other.", _FIND
            )
        return states

    def require(self, segments: Sequence[CertifiedSegment], advance: Callable[[int], object]) -> None:
        """Refuses segments of which a state, at the start or the end, is not what the certificate claims; one is in
        memory at a time."""
        named = [record for segment in segments for record in (segment.start, segment.end) if record is not None]
        for record in {record.step: record for record in named}.values():
            self.read(record)
            advance(1)

    def _locate(self, recorded: str) -> tuple[Path, Path]:
        """Where a kept state is, and the folder that no link may lead out of."""
        path = PurePosixPath(recorded)
        if self.inputs is not None:
            return self.inputs / STATES / path.name, self.inputs
        if path.is_absolute() or ".." in path.parts or "\0" in recorded or not path.parts:
            raise CertificateError(
                f"the certificate names a state outside of its folder: {recorded}.",
                "get the original certificate, or say in which folder its states are: `inputs=`.",
            )
        return named_file(self.folder / path.parts[0]).joinpath(*path.parts[1:]), self.folder
