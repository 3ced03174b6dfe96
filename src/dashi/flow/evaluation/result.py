"""What an evaluation finds: plain arrays and names that tables, figures and files are made from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from dashi.flow.grid import Floats

Failure = Literal["none", "drift", "collapse", "oscillation", "blow-up"]
THRESHOLDS = (0.9, 0.8, 0.5)


@dataclass(frozen=True, eq=False)
class Line:
    """One model's scores over windows and frames; (windows, frames) unless said."""

    model: str
    """Name shown to people, such as `galerkin` or `persistence`."""
    numbers: int
    """|z|"""
    correlation: Floats
    relative_l2: Floats
    energy: Floats
    """Energy of the decoded field; the reference's is in `Evaluation`."""
    enstrophy: Floats
    spectrum_error: Floats
    """Root mean square over shells of log10 of the ratio of energy spectra, over the shells that the model carries."""
    admissible: Floats
    """Whether the state is finite and its energy below ten times the largest of the training data."""
    horizons: Mapping[float, Floats]
    """Flow time to correlation below a threshold, (windows,); the length of the window where it never falls."""
    failures: tuple[Failure, ...]
    """The failure of each window."""
    spectrum: Floats
    """Energy spectrum at the last frame, mean over windows, (shells,)."""
    seconds: float = 0.0
    """Wall time of the rollout alone."""
    device: str = ""
    """Where the rollout ran."""
    story: str = ""
    continued: Floats = field(default_factory=lambda: np.empty((0, 0)))
    """Energy of the rollout beyond the last frame of the reference, (windows, more frames); at the same distances."""


@dataclass(frozen=True, eq=False)
class Evaluation:
    """All models on one set of windows."""

    split: str
    """`train`, `validation` or `test`."""
    times: Floats
    """(frames,)"""
    seeds: tuple[int, ...]
    starts: tuple[int, ...]
    lines: tuple[Line, ...]
    energy: Floats
    """Energy of the reference, (windows, frames)."""
    enstrophy: Floats
    spectrum: Floats
    """Energy spectrum of the reference at the last frame, (shells,)."""
    parameters: Mapping[str, int | float | str]
    """Parameters of the flow."""
    settings: Mapping[str, int | float | str] = field(default_factory=dict[str, "int | float | str"])
    """k_cut, schema version, and whatever else was chosen."""
    stopped: bool = False
    """Whether Ctrl-C came before all models were scored: the others have no line."""
    interrupted: bool = False
    """Whether Ctrl-C came while the last model was scored: all lines are there."""

    @property
    def data_kind(self) -> str:
        """What the windows are to the models, in words."""
        if self.split != "test":
            return {"train": "training data", "validation": "validation data"}.get(self.split, f"{self.split} data")
        return "data that overlap those trained on" if self.settings.get("overlap") == "yes" else "unseen data"

    def line(self, model: str) -> Line:
        """A model's scores by name."""
        return next(one for one in self.lines if one.model == model)
