"""What a model was trained on, kept with it: so that data which overlap are refused wherever it goes."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from dashi.errors import DashiError, FileError
from dashi.flow.equations import Flow
from dashi.flow.evaluation.files import BROKEN, array_json, text_array
from dashi.flow.evaluation.overlap import Seen
from dashi.flow.evaluation.scores import largest_energy
from dashi.flow.windows import Windows
from dashi.types import HostArray

VERSION: Final = 1
RECORDED: Final = "recorded windows"
"""The source of data that no simulation here made, or whose start was not one of those with a name."""
MOST_STEPS: Final = 1_000_000_000
"""More steps than any record has."""


@dataclass(frozen=True, eq=False)
class Training:
    """The data of a fit, training and validation together, and how to make more of the same."""

    flow: Flow
    interval: int
    """Steps between frames."""
    steps: int
    """Steps of a training window."""
    seeds: tuple[int, ...]
    validation_seeds: tuple[int, ...]
    data: Seen
    energy: float
    """The largest of any frame."""
    source: str = "simulation"
    """Or the run that the data are from."""
    spin_up: int = 0
    initial: str = "random"
    options: Mapping[str, int | float] | None = None
    """Options of the initial condition."""

    @classmethod
    def of(cls, train: Windows, validation: Windows | None) -> Training:
        """What is known of a fit to these windows."""
        origin = train.origin
        return cls(
            flow=train.flow,
            interval=train.interval,
            steps=(train.frames - 1) * train.interval,
            seeds=tuple(dict.fromkeys(train.seeds)),
            validation_seeds=tuple(dict.fromkeys(validation.seeds)) if validation is not None else (),
            data=Seen.of(train, validation),
            energy=largest_energy(train, validation),
            source="simulation" if origin else RECORDED,
            spin_up=origin.spin_up if origin else 0,
            initial=origin.initial if origin else RECORDED,
            options=origin.options if origin else {},
        )

    def pack(self) -> dict[str, HostArray]:
        """What a model was fitted to, as named arrays."""
        head = {
            "flow": self.flow.parameters, "interval": self.interval, "steps": self.steps, "seeds": list(self.seeds),
            "validation_seeds": list(self.validation_seeds), "energy": self.energy, "source": self.source,
            "spin_up": self.spin_up, "initial": self.initial, "options": dict(self.options or {}),
        }  # fmt: skip
        digests = b"".join(bytes.fromhex(digest) for digest in sorted(self.data.digests))
        return {
            "version": np.array(VERSION, np.int64),
            "head": text_array(json.dumps(head)),
            "seen_seeds": np.array(self.data.seeds, np.int64),
            "seen_spans": np.array(self.data.spans, np.float64).reshape(-1, 2),
            "seen_digests": np.frombuffer(digests, np.uint8).reshape(-1, 16).copy(),
        }

    @classmethod
    def unpack(cls, arrays: Mapping[str, HostArray], path: object) -> Training:
        """The inverse of `pack`; `path` is for messages."""
        again = "fit it again."
        version = arrays.get("version")
        if version is None or version.shape or version.item() != VERSION:
            raise FileError(f"{path} does not say in a way that this dashi reads what it was trained on.", again)
        try:
            head: dict[str, Any] = array_json(arrays["head"])
            data = _unpack_seen(arrays)
            return cls(
                flow=Flow.restore(head["flow"]),
                interval=_count(head, "interval", 1),
                steps=_count(head, "steps", 1),
                seeds=tuple(int(seed) for seed in head["seeds"]),
                validation_seeds=tuple(int(seed) for seed in head["validation_seeds"]),
                data=data,
                energy=_energy(head["energy"]),
                source=str(head["source"]),
                spin_up=_count(head, "spin_up", 0),
                initial=str(head["initial"]),
                options={str(name): value for name, value in head["options"].items()},
            )
        except (*BROKEN, DashiError) as error:
            raise FileError(f"{path} is damaged: {error}", again) from error


def _count(head: Mapping[str, Any], name: str, least: int) -> int:
    value: Any = head[name]
    if type(value) is not int or not least <= value <= MOST_STEPS:
        raise ValueError(f"{name} is {value!r}, and not a whole number from {least} to {MOST_STEPS}")
    return value


def _energy(value: Any) -> float:
    energy = float(value)
    if not math.isfinite(energy) or energy < 0:
        raise ValueError(f"the largest energy is {energy}")
    return energy


def _unpack_seen(arrays: Mapping[str, HostArray]) -> Seen:
    seeds, spans, digests = (arrays[name] for name in ("seen_seeds", "seen_spans", "seen_digests"))
    if seeds.ndim != 1 or spans.shape != (len(seeds), 2) or digests.ndim != 2 or digests.dtype != np.uint8:
        raise ValueError("what was seen does not fit together")
    if seeds.dtype.kind not in "iu" or spans.dtype.kind != "f" or not np.isfinite(spans).all():
        raise ValueError("what was seen holds seeds or times that are no numbers")
    if any(float(first) > float(last) for first, last in spans):
        raise ValueError("what was seen ends before it begins")
    return Seen(
        tuple(int(seed) for seed in seeds),
        tuple((float(a), float(b)) for a, b in spans),
        frozenset(bytes(row).hex() for row in digests),
    )
