"""Evaluations in files: an .npz with every array, and beside it a .json with the table and the series along time."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, cast, get_args

import numpy as np

from dashi.errors import FileError
from dashi.flow.evaluation.result import THRESHOLDS, Evaluation, Failure, Line
from dashi.flow.evaluation.table import series, table
from dashi.io._files import write_text
from dashi.io.arrays import read_arrays, write_arrays
from dashi.types import HostArray

VERSION: Final = 1
_ARRAYS: Final = ("correlation", "relative_l2", "energy", "enstrophy", "spectrum_error", "admissible")
_ENDED: Final = ("stopped", "interrupted")
"""Fields of an evaluation that files keep among its settings, as "yes"."""
_LARGEST: Final = 1 << 24
BROKEN: Final = (KeyError, TypeError, ValueError, IndexError, AttributeError, ArithmeticError, RecursionError)
"""What Python answers with when the text of a file is not what it should be."""
LARGEST: Final = 1e100
"""Numbers beyond it are those of damaged files: no figure could show them."""
_AGAIN: Final = "evaluate again with `out=`."


def save_evaluation(path: Path, evaluation: Evaluation) -> None:
    """Writes FILE.npz and FILE.json, each all or nothing."""
    file = path.with_suffix(".npz")
    write_arrays(file, pack(evaluation))
    write_text(file.with_suffix(".json"), as_text(evaluation))


def as_text(evaluation: Evaluation) -> str:
    """What the .json holds."""
    return json.dumps(document(evaluation), indent=1, allow_nan=False) + "\n"


def document(evaluation: Evaluation, *, along: bool = True) -> dict[str, Any]:
    """What is worth reading of an evaluation, as plain numbers; with or without the scores along time."""
    summary: dict[str, Any] = {
        "schema_version": VERSION,
        "split": evaluation.split,
        "data": evaluation.data_kind,
        "windows": [{"seed": s, "start": t} for s, t in zip(evaluation.seeds, evaluation.starts, strict=True)],
        "flow": dict(evaluation.parameters),
        "settings": _settings(evaluation),
        "table": [row.document() for row in table(evaluation)],
        "stories": {line.model: line.story for line in evaluation.lines},
    }
    return summary | ({"series": series(evaluation)} if along else {})


def _settings(evaluation: Evaluation) -> dict[str, int | float | str]:
    """The settings as files have them, with whether Ctrl-C came."""
    ended = {name: "yes" for name in _ENDED if getattr(evaluation, name)}
    return {**evaluation.settings, **ended}


def pack(evaluation: Evaluation) -> dict[str, HostArray]:
    """An evaluation as named arrays."""
    head = {
        "split": evaluation.split,
        "seeds": list(evaluation.seeds),
        "starts": list(evaluation.starts),
        "parameters": dict(evaluation.parameters),
        "settings": _settings(evaluation),
        "lines": [
            {
                "model": line.model, "numbers": line.numbers, "failures": list(line.failures), "seconds": line.seconds,
                "device": line.device, "story": line.story, "thresholds": list(line.horizons),
            }
            for line in evaluation.lines
        ],
    }  # fmt: skip
    arrays: dict[str, HostArray] = {"version": np.array(VERSION, np.int64), "head": text_array(json.dumps(head))}
    for name in ("times", "energy", "enstrophy", "spectrum"):
        arrays[name] = np.asarray(getattr(evaluation, name), np.float64)
    for j, line in enumerate(evaluation.lines):
        for name in (*_ARRAYS, "spectrum", "continued"):
            arrays[f"line{j}_{name}"] = np.asarray(getattr(line, name), np.float64)
        arrays[f"line{j}_horizons"] = np.stack([np.asarray(v, np.float64) for v in line.horizons.values()])
    return arrays


def load_evaluation(path: Path) -> Evaluation:
    """The inverse of `save_evaluation`; refuses what this version did not write."""
    return unpack(read_arrays(path.with_suffix(".npz")), path)


def unpack(arrays: Mapping[str, HostArray], path: object) -> Evaluation:
    """The inverse of `pack`; `path` is for messages."""
    version = arrays.get("version")
    if version is None or version.shape or "head" not in arrays:
        raise FileError(f"{path} holds no evaluation.", "name a file that an evaluation with `out=` left.")
    if version.item() != VERSION:
        raise FileError(f"{path} is an evaluation of version {version.item()}; this dashi reads {VERSION}.", _AGAIN)
    try:
        return _restored(arrays, array_json(arrays["head"]))
    except BROKEN as error:
        raise FileError(f"{path} is damaged: {error}.", _AGAIN) from error


def _restored(arrays: Mapping[str, HostArray], head: Mapping[str, Any]) -> Evaluation:
    seeds, starts = (tuple(int(v) for v in head[name]) for name in ("seeds", "starts"))
    odd = [k for k, v in arrays.items() if k not in ("version", "head") and v.dtype.kind != "f"]
    if odd:
        raise ValueError(f"the array {odd[0]} holds no numbers")
    times = arrays["times"]
    shape = (len(seeds), len(times))
    lines = [_line(arrays, j, entry, shape) for j, entry in enumerate(cast("list[dict[str, Any]]", head["lines"]))]
    if len(starts) != len(seeds) or arrays["spectrum"].ndim != 1:
        raise ValueError("windows or the spectrum of the reference do not fit")
    if times.ndim != 1 or not shape[1] or any(arrays[name].shape != shape for name in ("energy", "enstrophy")):
        raise ValueError("arrays of the reference do not fit")
    if not shape[0] or not arrays["spectrum"].size or not lines or len({line.model for line in lines}) < len(lines):
        raise ValueError("there are no windows, shells or models, or a model is there twice")
    if any(not (np.abs(arrays[name]) < LARGEST).all() for name in ("times", "energy", "enstrophy", "spectrum")):
        raise ValueError("the times or the numbers of the reference are not finite")
    if (np.diff(times) <= 0).any():
        raise ValueError("the times do not rise")
    for name in ("parameters", "settings"):
        if not all(type(value) in (int, float, str) for value in head[name].values()):
            raise ValueError(f"the {name} are neither numbers nor text")
    return Evaluation(
        str(head["split"]), times, seeds, starts, tuple(lines), arrays["energy"], arrays["enstrophy"],
        arrays["spectrum"], dict(head["parameters"]),
        {name: value for name, value in head["settings"].items() if name not in _ENDED},
        **{name: head["settings"].get(name) == "yes" for name in _ENDED},
    )  # fmt: skip


def _line(stored: Mapping[str, HostArray], j: int, head: Mapping[str, Any], shape: tuple[int, int]) -> Line:
    arrays = {name: stored[f"line{j}_{name}"] for name in _ARRAYS}
    rows = stored[f"line{j}_horizons"]
    odd = [name for name, values in arrays.items() if values.shape != shape]
    if odd or rows.shape != (len(head["thresholds"]), shape[0]) or len(head["failures"]) != shape[0]:
        raise ValueError(f"arrays of {head['model']} do not fit")
    spectrum, continued = stored[f"line{j}_spectrum"], stored[f"line{j}_continued"]
    if spectrum.shape != stored["spectrum"].shape or continued.ndim != 2 or len(continued) not in (0, shape[0]):
        raise ValueError(f"the spectrum of {head['model']}, or what continues it, does not fit")
    if not all(failure in get_args(Failure) for failure in head["failures"]):
        raise ValueError(f"failures of {head['model']} have names that are not known")
    thresholds = [float(threshold) for threshold in head["thresholds"]]
    if thresholds != [*THRESHOLDS] or not np.isfinite(rows).all():
        raise ValueError(f"the horizons of {head['model']} are not those of {', '.join(map(str, THRESHOLDS))}")
    seconds, numbers = float(head["seconds"]), int(head["numbers"])
    if not 0 <= seconds < LARGEST or not 0 <= numbers < 1 << 53:
        raise ValueError(f"the seconds or the size of {head['model']} are no such numbers")
    return Line(
        model=str(head["model"]), numbers=numbers, failures=tuple(head["failures"]),
        horizons=dict(zip(thresholds, rows, strict=True)), spectrum=spectrum, seconds=seconds,
        device=str(head["device"]), story=str(head["story"]), continued=continued, **arrays,
    )  # fmt: skip


def text_array(text: str) -> HostArray:
    """Text of any length as an array of its bytes."""
    return np.frombuffer(text.encode(), np.uint8).copy()


def array_json(values: HostArray) -> Any:
    """The document in an array of text; all text in it can be written again."""
    document = json.loads(array_text(values))
    json.dumps(document, ensure_ascii=False).encode()  # refuses halves of surrogate pairs
    return document


def array_text(values: HostArray) -> str:
    """The inverse of `text_array`."""
    if values.dtype != np.uint8 or values.ndim != 1 or values.size > _LARGEST:
        raise ValueError("what should be text is none")
    return values.tobytes().decode()
