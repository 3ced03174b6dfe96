"""Evaluations in parts: what is measured of each window, and what is made of all of them together.

Nothing that is measured of a window depends on the others, so an evaluation of all is the same bits however windows
are shared out: one that is not shared out is put together here too, of one part.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np

from dashi.errors import InputError
from dashi.flow.evaluation._window import SERIES
from dashi.flow.evaluation.result import Evaluation, Line
from dashi.flow.grid import Floats
from dashi.types import HostArray

WHERE: Final = "device"
"""The setting of an evaluation that tells where it ran."""
_SPECTRA: Final = "spectra"


@dataclass(frozen=True, eq=False)
class EvaluationPart:
    """The scores on some of the windows, and what means over all windows are made of."""

    evaluation: Evaluation
    """The scores of these windows alone."""
    spectra: Floats
    """Energy spectrum of the reference at the last frame, (windows, shells)."""
    line_spectra: tuple[Floats, ...]
    """Energy spectra of each line at the last frame, (windows, shells)."""
    notes: tuple[tuple[str, ...], ...]
    """What stopped a rollout, for each line and window; empty where nothing did."""

    @property
    def arrays(self) -> dict[str, HostArray]:
        """What files keep of it beside the evaluation."""
        lines = {f"line{j}_{_SPECTRA}": values for j, values in enumerate(self.line_spectra)}
        notes = {f"line{j}_notes": np.array(notes) for j, notes in enumerate(self.notes)}
        return {_SPECTRA: self.spectra, **lines, **notes}

    @classmethod
    def restore(cls, evaluation: Evaluation, arrays: Mapping[str, HostArray]) -> EvaluationPart:
        """The inverse of `arrays`. Raises ValueError where they do not fit."""
        shape = (len(evaluation.seeds), len(evaluation.spectrum))
        many = range(len(evaluation.lines))
        if set(arrays) != {_SPECTRA, *(f"line{j}_{name}" for j in many for name in (_SPECTRA, "notes"))}:
            raise ValueError("it holds other arrays than its scores have lines")
        spectra = [arrays[_SPECTRA], *(arrays[f"line{j}_{_SPECTRA}"] for j in many)]
        notes = [arrays[f"line{j}_notes"] for j in many]
        if any(rows.shape != shape or rows.dtype != np.float64 for rows in spectra):
            raise ValueError(f"its spectra are not of shape {shape}")
        if any(texts.shape != shape[:1] or texts.dtype.kind != "U" for texts in notes):
            raise ValueError("its notes are not one for each window")
        stopped = tuple(tuple(str(note) for note in texts) for texts in notes)
        return cls(evaluation, spectra[0], tuple(spectra[1:]), stopped)


def combined(parts: Sequence[EvaluationPart]) -> Evaluation:
    """The evaluation of all windows, of parts in the order of windows. A model that was not scored in one of them has
    no line."""
    _require_alike(parts)
    first = parts[0].evaluation
    names = [line.model for line in first.lines]
    everywhere = [name for name in names if all(name in _names(part) for part in parts)]
    return replace(
        first,
        seeds=sum((part.evaluation.seeds for part in parts), ()),
        starts=sum((part.evaluation.starts for part in parts), ()),
        lines=tuple(_line(name, parts) for name in everywhere),
        energy=_rows([part.evaluation.energy for part in parts]),
        enstrophy=_rows([part.evaluation.enstrophy for part in parts]),
        spectrum=_rows([part.spectra for part in parts]).mean(0),
        settings=_settings(parts),
    )


def _require_alike(parts: Sequence[EvaluationPart]) -> None:
    first = parts[0].evaluation
    for part in parts[1:]:
        one = part.evaluation
        same = (one.split, dict(one.parameters)) == (first.split, dict(first.parameters))
        if not same or one.times.tobytes() != first.times.tobytes() or one.spectrum.shape != first.spectrum.shape:
            raise InputError(
                f"the parts of the evaluation on {first.split} windows are of different windows.",
                "evaluate all of them anew.",
            )


def _settings(parts: Sequence[EvaluationPart]) -> dict[str, int | float | str]:
    """What was chosen: the same in all parts, but for where they ran, and what only some of the windows are."""
    settings: dict[str, int | float | str] = {}
    for name in dict.fromkeys(name for part in parts for name in part.evaluation.settings):
        values = dict.fromkeys(part.evaluation.settings[name] for part in parts if name in part.evaluation.settings)
        if len(values) > 1 and name != WHERE:
            raise InputError(
                f"the parts of the evaluation differ in {name}: {', '.join(map(str, values))}.",
                "evaluate all of them anew.",
            )
        settings[name] = ", ".join(map(str, values)) if name == WHERE else next(iter(values))
    return settings


def _line(name: str, parts: Sequence[EvaluationPart]) -> Line:
    places = [_names(part).index(name) for part in parts]
    lines = [part.evaluation.lines[at] for part, at in zip(parts, places, strict=True)]
    first, note = lines[0], _note([part.notes[at] for part, at in zip(parts, places, strict=True)])
    scores: dict[str, Any] = {key: _rows([getattr(line, key) for line in lines]) for key in SERIES}
    spectra = [part.line_spectra[at] for part, at in zip(parts, places, strict=True)]
    return replace(
        first,
        horizons={key: _rows([line.horizons[key] for line in lines]) for key in first.horizons},
        failures=sum((line.failures for line in lines), ()),
        spectrum=np.mean(_rows(spectra), axis=0),
        seconds=sum(line.seconds for line in lines),
        device=", ".join(dict.fromkeys(line.device for line in lines)),
        story=f"{first.story}{note}",
        continued=_rows([line.continued for line in lines]),
        **scores,
    )


def _note(notes: Sequence[Sequence[str]]) -> str:
    """What stopped the first rollout that was stopped; empty where none was."""
    reason = next((note for part in notes for note in part if note), "")
    return f"; stopped: {reason}" if reason else ""


def _names(part: EvaluationPart) -> list[str]:
    return [line.model for line in part.evaluation.lines]


def _rows(values: Sequence[Floats]) -> Any:
    return np.concatenate(values) if len(values) > 1 else values[0]
