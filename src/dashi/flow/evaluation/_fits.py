"""A fit: a model, the baselines fitted to the same data, what the data were, and the scores on them; one file.

The file is what `dashi.flow.proxy.catalogue.save_model` writes, so anything that loads models loads it; the rest lies
beside in arrays named `note_...`.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import numpy as np

from dashi.errors import DashiError, FileError, UnknownNameError, install_extra, suggestion
from dashi.flow.evaluation._training import Training
from dashi.flow.evaluation.files import BROKEN, array_json, pack, text_array, unpack
from dashi.flow.evaluation.result import Evaluation
from dashi.flow.proxy._dmd import Dmd, require_pydmd
from dashi.flow.proxy.catalogue import MODELS, load_model, restore_model, save_model
from dashi.flow.proxy.model import Model
from dashi.flow.proxy.schema import Schema
from dashi.flow.windows import Windows
from dashi.io.arrays import read_arrays
from dashi.runtime.device import Device
from dashi.types import HostArray

BASELINES: Final = ("persistence", "damped", "dmd", "truncation")
"""Models that belong beside every other."""
_NOTE: Final = "note_"


@dataclass(frozen=True, eq=False)
class Fit:
    """A model and all that belongs to it."""

    model: Model
    baselines: Mapping[str, Model]
    training: Training | None
    evaluations: tuple[Evaluation, ...] = field(default=())
    """On training and validation windows."""
    finished: bool = True
    """Not of one that was stopped: baselines or scores may be missing."""

    @property
    def models(self) -> dict[str, Model]:
        """The model first, then the baselines, by the names to show."""
        return {self.model.name: self.model, **{k: v for k, v in self.baselines.items() if k != self.model.name}}


def require_model(name: str, what: str = "model") -> None:
    """Refuses a name that is not known, and one whose library is not there: before any work, and not after it."""
    if name not in MODELS:
        raise UnknownNameError(
            f"there is no {what} {name!r}.", f"{suggestion(name, MODELS)}use one of {', '.join(MODELS)}."
        )
    if name == Dmd.name:
        require_pydmd()


def fit_model(
    name: str, schema: Schema, train: Windows, validation: Windows | None, *, device: Device | str,
    progress: Callable[[int], None] | None = None, options: Mapping[str, Any] | None = None,
) -> Model:  # fmt: skip
    """A model by name, fitted."""
    require_model(name)
    return MODELS[name].fit(schema, train, validation, device=device, progress=progress, **(options or {}))


def save_fit(path: Path, fit: Fit) -> None:
    """Writes the file, all or nothing."""
    notes: dict[str, HostArray] = {}
    if fit.training:
        notes |= {f"training_{name}": values for name, values in fit.training.pack().items()}
    for j, one in enumerate(fit.evaluations):
        notes |= {f"scores{j}_{name}": values for name, values in pack(one).items()}
    heads: list[dict[str, Any]] = []
    for j, (shown, model) in enumerate(fit.baselines.items()):
        heads.append(
            {
                "shown": shown, "kind": model.name, "version": model.version, "interval": model.interval,
                "parameters": dict(model.parameters), "schema": model.schema.parameters,
            }
        )  # fmt: skip
        notes |= {f"baseline{j}_{name}": values for name, values in model.arrays.items()}
    notes["baselines"] = text_array(json.dumps(heads))
    notes |= {} if fit.finished else {"unfinished": np.ones(1, np.uint8)}
    save_model(path, fit.model, notes=notes)


def load_fit(path: Path) -> Fit:
    """A model with whatever lies beside it in its file; a file with a bare model will do."""
    model = load_model(path)
    training = model.training
    notes = {k.removeprefix(_NOTE): v for k, v in read_arrays(path).items() if k.startswith(_NOTE)}
    scores = [_under(notes, f"scores{j}_") for j in range(sum(k.endswith("_head") for k in notes))]
    return Fit(
        model,
        {name: one.with_training(training) for name, one in _baselines(notes, path).items()},
        training,
        tuple(unpack(one, path) for one in scores if one),
        finished="unfinished" not in notes,
    )


def _under(notes: Mapping[str, HostArray], prefix: str) -> dict[str, HostArray]:
    return {name.removeprefix(prefix): values for name, values in notes.items() if name.startswith(prefix)}


def _baselines(notes: Mapping[str, HostArray], path: object) -> dict[str, Model]:
    again = "fit it again."
    baselines: dict[str, Model] = {}
    if "baselines" not in notes:
        return baselines
    try:
        heads: list[dict[str, Any]] = array_json(notes["baselines"])
        for j, head in enumerate(heads):
            kind = MODELS.get(head["kind"])
            if kind is None or head["version"] != kind.version:
                raise FileError(
                    f"{path} holds a baseline {head['kind']!r} of version {head['version']}, which is not known here.",
                    again,
                )
            schema = Schema.restore(head["schema"])
            arrays = _under(notes, f"baseline{j}_")
            interval = float(head["interval"])
            if not math.isfinite(interval) or interval <= 0:
                raise FileError(f"{path}: the time between frames of {head['kind']} is {interval}.", again)
            baselines[str(head["shown"])] = restore_model(kind, schema, interval, arrays, head["parameters"], str(path))
    except (*BROKEN, DashiError) as error:
        if isinstance(error, FileError):
            raise
        raise FileError(f"{path} is damaged: {error}", again) from error
    return baselines


def wanted_baselines(named: Sequence[str]) -> tuple[list[str], str]:
    """The baselines to fit, and what is to be told: PyDMD is left away where it is not installed, unless asked for."""
    from importlib.util import find_spec

    for name in named:
        require_model(name, "baseline")
    if named:
        return list(named), ""
    if find_spec("pydmd") is None:
        told = f"the baseline dmd is left away: PyDMD is not installed. Fix: {install_extra('dmd')}"
        return [name for name in BASELINES if name != Dmd.name], told
    return list(BASELINES), ""
