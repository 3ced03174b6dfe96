"""The models by name, and the files that keep them: arrays without pickle, read without trust."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np

from dashi import _entry_points as entry_points
from dashi._entry_points import Registered
from dashi.errors import DashiError, FileError
from dashi.flow.proxy.files import pack_schema, read_kept, unpack_schema
from dashi.flow.proxy.model import Model
from dashi.flow.proxy.schema import Schema
from dashi.io.arrays import write_arrays
from dashi.types import HostArray

_TRAINING: Final = "note_training_"
"""What the names of arrays begin with that say what a model was trained on."""


MODELS: Final = Registered(entry_points.MODELS, "model", Model, "name")
"""The classes of models by name: the entry points `dashi.models` of this project and of every other."""
_HEAD: Final = frozenset({"model", "version", "interval"})
_PARTS: Final = ("schema_", "parameter_", "array_", "note_")
"""What a file of a model holds: the first by these names, the rest by names that begin so."""


def model_class(name: str) -> type[Model]:
    """A model by name."""
    return MODELS[name]


def save_model(path: Path | str, model: Model, notes: Mapping[str, HostArray] | None = None) -> None:
    """Keeps a model as an .npz file, all or nothing, with what it was trained on; `notes` are arrays for the reader,
    which the model does not need (they are kept as note_NAME)."""
    own = model.training.pack() if model.training else {}
    kept = {f"{_TRAINING}{name}": values for name, values in own.items()}
    kept |= {f"note_{name}": values for name, values in (notes or {}).items()}
    write_arrays(Path(path), {**pack(model), **kept})


def load_model(path: Path | str) -> Model:
    """The model that a file keeps, and what it was trained on."""
    from dashi.flow.evaluation._training import Training

    found = read_kept(path, "a file of dashi.flow.fit, or of save_model")
    model = unpack(found, str(path))
    known = {name.removeprefix(_TRAINING): values for name, values in found.items() if name.startswith(_TRAINING)}
    return model.with_training(Training.unpack(known, path) if known else None)


def pack(model: Model) -> dict[str, HostArray]:
    """The arrays that keep a model."""
    head = {"model": np.array(model.name), "version": np.array(model.version, np.int64)}
    arrays = {f"array_{name}": np.asarray(values) for name, values in model.arrays.items()}
    numbers = {f"parameter_{name}": np.array(value) for name, value in model.parameters.items()}
    return {**head, "interval": np.array(model.interval), **pack_schema(model.schema), **numbers, **arrays}


def unpack(packed: Mapping[str, HostArray], where: str = "the file") -> Model:
    """The model that arrays keep."""
    name, version = (_plain(packed, key) for key in ("model", "version"))
    if not isinstance(name, str) or type(version) is not int:
        raise FileError(f"{where} holds no model.", "write one with dashi.flow.fit, or save_model.")
    kind = _known(name, where)
    unknown = [key for key in packed if key not in _HEAD and not key.startswith(_PARTS)]
    if unknown:
        raise FileError(f"{where}: a file of a model has no {unknown[0][:40]!r}.", "fit it again.")
    if version != kind.version:
        raise FileError(
            f"{where}: version {version} of the model {name}; this dashi has version {kind.version}.",
            "fit it again.",
        )
    schema = unpack_schema(packed, where)
    interval: Any = _plain(packed, "interval")
    if not isinstance(interval, float) or not math.isfinite(interval) or interval <= 0:
        raise FileError(f"{where}: the time between frames is {interval!r}.", "fit the model again.")
    arrays = {key.removeprefix("array_"): values for key, values in packed.items() if key.startswith("array_")}
    numbers: dict[str, Any] = {
        key.removeprefix("parameter_"): values.tolist()
        for key, values in packed.items()
        if key.startswith("parameter_")
    }
    return restore_model(kind, schema, interval, arrays, numbers, where)


def restore_model(
    kind: type[Model], schema: Schema, interval: float, arrays: Mapping[str, HostArray], numbers: Mapping[str, Any],
    where: str,
) -> Model:  # fmt: skip
    """The model of a kind with these arrays and parameters; what a model of that kind does not have is refused."""
    try:
        model = kind.restore(schema, interval, arrays, numbers)
        unknown = sorted(set(arrays) - set(model.arrays)) + sorted(set(numbers) - set(model.parameters))
    except DashiError as error:
        raise FileError(f"{where}: {error.what}", error.fix) from error
    except (KeyError, TypeError, ValueError, ArithmeticError, IndexError, AttributeError) as error:
        raise FileError(
            f"{where}: what defines the model {kind.name} is damaged ({error}).", "fit it again."
        ) from error
    if unknown:
        raise FileError(f"{where}: a model {kind.name} has no {unknown[0][:40]!r}.", "fit it again.")
    return model


def _known(name: str, where: str) -> type[Model]:
    if name not in MODELS:
        raise FileError(
            f"{where}: the model {name[:40]!r} is not known here.", f"fit one of {', '.join(MODELS)} with this dashi."
        )
    return MODELS[name]


def _plain(found: Mapping[str, HostArray], key: str) -> Any:
    return found[key].item() if key in found and not found[key].ndim else None
