"""What an evaluation says of itself in `evaluation.json`: how it was called, where it ran, with which versions."""

from __future__ import annotations

import platform
from pathlib import Path
from typing import Annotated, Final

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from dashi.errors import FileError
from dashi.io._files import read_plain
from dashi.io._run_folder import SCORES
from dashi.io._run_reading import run_file
from dashi.runtime.info import DeviceInfo

_LARGEST: Final = 1 << 26
_Text = Annotated[str, Field(max_length=4000)]
_Texts = Annotated[dict[_Text, _Text], Field(max_length=200)]


class DevicePlace(BaseModel):
    """The device that was asked for, and the one that was used."""

    model_config = ConfigDict(frozen=True, extra="ignore", strict=True)

    requested: _Text
    spec: _Text
    name: _Text
    type: _Text
    driver: _Text = ""
    fallback: _Text = ""
    """Why another device than that asked for was used; empty if it was the same."""

    @classmethod
    def of(cls, info: DeviceInfo, requested: str, fallback: str = "") -> DevicePlace:
        """The place of a device that is open."""
        driver = f"{info.driver} {info.driver_info or info.driver_version}".strip()
        return cls(
            requested=requested, spec=info.spec, name=info.name, type=info.type, driver=driver, fallback=fallback
        )


class EvaluationRecord(BaseModel):
    """The document, less the scores: those are read from `evaluation-*.npz`."""

    model_config = ConfigDict(frozen=True, extra="ignore", strict=True)

    command: _Text = ""
    """Repeats the evaluation, with everything that was left to its default."""
    finished: _Text = ""
    """When it ended: UTC, ISO 8601."""
    stopped: bool = False
    """By Ctrl-C or an error, before all was scored."""
    fit_finished: bool = True
    """Not where the fit of the model was stopped: baselines, or scores on its own data, may be missing."""
    device: DevicePlace | None = None
    """Where windows were simulated, encoded and decoded; every model's place stands with its scores."""
    settings: _Texts = {}
    versions: _Texts = {}


def versions_here(info: DeviceInfo) -> dict[str, str]:
    """Versions of all that has a say in the numbers: dashi, Python, NumPy, the driver."""
    import dashi

    return {
        "dashi": dashi.__version__, "Python": platform.python_version(), "NumPy": np.__version__,
        "driver": f"{info.driver} {info.driver_info or info.driver_version}".strip(),
        "system": f"{platform.system()} {platform.release()} on {platform.machine()}",
    }  # fmt: skip


def read_record(folder: Path) -> EvaluationRecord | None:
    """The record of an evaluation's folder; None where there is none. Read without trust."""
    file = run_file(folder, SCORES)
    if not file.is_file():
        return None
    data = read_plain(file, _LARGEST)
    try:
        return EvaluationRecord.model_validate_json(data)
    except (ValidationError, ValueError, RecursionError) as error:
        raise FileError(f"{file} is no record of an evaluation.", "evaluate again, or remove it.") from error
