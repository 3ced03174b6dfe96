"""Checkpoints: a rollout's state and everything it observed so far, in one file that is either the old or the new one.

A checkpoint knows the inputs that it belongs to, and goes on with no others; and the strides of its observers, which
stay what they were. A resumed run has the hashes of one that was never interrupted.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

from dashi.core.certificates.certificate import array_digest
from dashi.core.observations.observation import Hash, Observation
from dashi.core.operators.operator import Operator
from dashi.errors import FileError
from dashi.io.arrays import read_arrays, write_arrays
from dashi.kernels.hash.blake3 import hexdigest128
from dashi.types import Array, Shape

VERSION: Final = 1
STRIDES: Final = 4
_NUMBERS: Final = ("norm_before", "norm", "ratio", "defect")
_ARRAYS: Final = (
    "version", "identity", "step", "strides", "state", "hash_steps", "hash_digests", "observed_steps", "observed",
    "nonfinite", "sheet", "sheet_steps",
)  # fmt: skip
_FIRST: Final = {"hash_steps": 1, "observed_steps": 1, "sheet_steps": 0}
"""The first step that each list may have; the last is the one at which the run stands."""


@dataclass(frozen=True, eq=False)
class Checkpoint:
    """Where a rollout stands: the states after so many steps, and what was observed up to there."""

    step: int
    state: Array
    hashes: tuple[Hash, ...]
    observations: tuple[Observation, ...]
    sheet: Array
    sheet_steps: tuple[int, ...]
    strides: tuple[int, ...]
    """Of hashes, observations and the sheet, and the number of bands."""


def identity(operator: Operator, z0: Array) -> str:
    """The digest of all that decides the states of a run, but not of how far it goes, nor where."""
    facts = {
        "operator": [operator.kind, operator.version, dict(operator.parameters)],
        "arrays": {name: array_digest(values) for name, values in operator.arrays.items()},
        "z0": array_digest(z0),
    }
    return hexdigest128(json.dumps(facts, sort_keys=True).encode())


def write_checkpoint(path: Path, belongs: str, now: Checkpoint) -> None:
    """Keeps a checkpoint, all or nothing, under the identity of its run."""
    seen = now.observations
    digests = b"".join(bytes.fromhex(h.digest) for h in now.hashes)
    # An index is at least 0, so -1 can stand for none.
    firsts = [-1 if o.first_nonfinite is None else o.first_nonfinite for o in seen]
    write_arrays(
        path,
        {
            "version": np.array(VERSION, np.int64),
            "identity": np.array(belongs),
            "step": np.array(now.step, np.int64),
            "strides": np.array(now.strides, np.int64),
            "state": now.state,
            "hash_steps": np.array([h.step for h in now.hashes], np.int64),
            "hash_digests": np.frombuffer(digests, np.uint8).reshape(-1, 16),
            "observed_steps": np.array([o.step for o in seen], np.int64),
            "observed": np.array([[getattr(o, n) for n in _NUMBERS] for o in seen], np.float64).reshape(-1, 4),
            "nonfinite": np.array([[o.nonfinite for o in seen], firsts], np.int64),
            "sheet": now.sheet,
            "sheet_steps": np.array(now.sheet_steps, np.int64),
        },
    )


def read_checkpoint(path: Path, belongs: str, shape: Shape, dtype: np.dtype[Any]) -> Checkpoint:
    """The checkpoint of this very run: states of this shape and type; refuses any other."""
    found = read_arrays(path)
    if set(found) != set(_ARRAYS) or found["version"].shape or found["version"].item() != VERSION:
        raise FileError(
            f"{path} is not a checkpoint that this dashi reads.", f"start anew: remove {path}, and leave --resume away."
        )
    if found["identity"].shape or found["identity"].item() != belongs:
        raise FileError(
            f"{path} is a checkpoint of a run with other inputs.",
            "give the inputs of that run, or start a new one in another folder.",
        )
    _check(path, found, shape, dtype)
    step, hash_steps = int(found["step"].item()), found["hash_steps"].tolist()
    hashes = [Hash(s, bytes(d).hex()) for s, d in zip(hash_steps, found["hash_digests"], strict=True)]
    return Checkpoint(
        step,
        found["state"],
        tuple(hashes),
        tuple(_observations(found)),
        found["sheet"],
        tuple(found["sheet_steps"].tolist()),
        tuple(found["strides"].tolist()),
    )


def are_in_order(steps: Array, least: int, last: int) -> bool:
    """Whether steps rise, from at least one step to at most another."""
    listed: list[int] = steps.tolist()
    return all(a < b for a, b in itertools.pairwise(listed)) and all(least <= step <= last for step in listed)


def _observations(found: Mapping[str, Array]) -> Sequence[Observation]:
    counts, firsts = found["nonfinite"].tolist()
    rows = zip(found["observed_steps"].tolist(), found["observed"].tolist(), counts, firsts, strict=True)
    return [
        Observation(step, *(row[0], row[1], row[2], row[3]), count, None if first < 0 else first)
        for step, row, count, first in rows
    ]


def _check(path: Path, found: Mapping[str, Array], shape: Shape, dtype: np.dtype[Any]) -> None:
    """The identity says that the file was meant for this run; this, that it is whole."""
    counts = {name: len(found[name]) if found[name].ndim else -1 for name in _ARRAYS}
    wanted = {
        "state": (shape, dtype),
        "step": ((), np.dtype(np.int64)),
        "strides": ((STRIDES,), np.dtype(np.int64)),
        "hash_steps": ((counts["hash_steps"],), np.dtype(np.int64)),
        "hash_digests": ((counts["hash_steps"], 16), np.dtype(np.uint8)),
        "observed_steps": ((counts["observed_steps"],), np.dtype(np.int64)),
        "observed": ((counts["observed_steps"], 4), np.dtype(np.float64)),
        "nonfinite": ((2, counts["observed_steps"]), np.dtype(np.int64)),
        "sheet_steps": ((counts["sheet"],), np.dtype(np.int64)),
    }
    for name, (size, kind) in wanted.items():
        if found[name].shape != size or found[name].dtype != kind:
            raise FileError(
                f"{path} is damaged: {name} does not fit the run.",
                f"start anew: remove {path}, and leave --resume away.",
            )
    step = found["step"].item()
    in_order = all(are_in_order(found[name], least, step) for name, least in _FIRST.items())
    if step < 0 or not in_order or found["sheet"].dtype.kind != "f" or min(found["strides"].tolist()) < 0:
        raise FileError(
            f"{path} is damaged: its steps or its sheet do not fit.",
            f"start anew: remove {path}, and leave --resume away.",
        )
