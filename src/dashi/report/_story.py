"""What a run says of itself for its report: `story.json`, beside the numbers in the other files."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from dashi.errors import FileError
from dashi.flow.evaluation.result import THRESHOLDS, Evaluation
from dashi.io._files import read_plain, write_text
from dashi.io._run_names import STORY
from dashi.io._run_reading import run_file
from dashi.report.scales import evaluated_scales

_LARGEST: Final = 1 << 20
_Text = Annotated[str, Field(max_length=4000)]
_Texts = Annotated[dict[_Text, _Text], Field(max_length=200)]


class Story(BaseModel):
    """Sentences and names; no numbers that stand elsewhere but those that a sentence needs."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    schema_version: Literal[1] = 1
    title: _Text
    summary: _Text = ""
    command: _Text = ""
    """Repeats the run."""
    ours: _Text = "galerkin"
    """The model that the run is about."""
    fields_of: _Text = ""
    """Which window the fields are of."""
    sheet_of: _Text = ""
    sheet_band: _Text = "band"
    sheet_first: int = 0
    """The number of its first band."""
    sheet_end: float | None = None
    """Flow time of the sheet's last row."""
    checked: _Text = ""
    """What was found when the certificate was repeated elsewhere."""
    tiles: Annotated[list[tuple[_Text, _Text]], Field(max_length=12)] = []
    settings: _Texts = {}
    versions: _Texts = {}
    warnings: Annotated[list[_Text], Field(max_length=20)] = []
    """What a reader must know first."""
    notes: Annotated[list[_Text], Field(max_length=20)] = []


def bounded(found: Evaluation, model: str, threshold: float = THRESHOLDS[-1]) -> bool:
    """Whether a mean horizon is a lower bound: a window ended before the correlation fell below the threshold."""
    return held(found, model, threshold) > 0


def held(found: Evaluation, model: str, threshold: float = THRESHOLDS[-1]) -> int:
    """How many windows ended before the correlation fell below the threshold."""
    return int((found.line(model).horizons[threshold] >= found.times[-1]).sum())


def lasts(evaluation: Evaluation, model: str, threshold: float = THRESHOLDS[-1], unit: float = 1.0) -> str:
    """How long a model holds, as the page says it everywhere: `4.95`, or `≥ 7.85` where that is a lower bound; in so
    many units of flow time."""
    mark = "≥ " if bounded(evaluation, model, threshold) else ""
    mean = round(
        float(evaluation.line(model).horizons[threshold].mean()), 4
    )  # as in summary.json, so that both end alike
    return f"{mark}{mean / unit:.2f}"


def in_turnovers(evaluation: Evaluation, model: str) -> str:
    """How long a model holds in eddy turnovers, in brackets after a flow time; empty where those are not known."""
    scales = evaluated_scales(evaluation)
    return "" if scales is None else f" ({lasts(evaluation, model, unit=scales.turnover)} eddy turnovers)"


def write_story(folder: Path, story: Story) -> None:
    """Writes the file, all or nothing."""
    write_text(folder / STORY, story.model_dump_json(indent=1) + "\n")


def read_story(folder: Path) -> Story | None:
    """The story of a run; None where it has none."""
    file = run_file(folder, STORY)
    if not file.is_file():
        return None
    data = read_plain(file, _LARGEST)
    try:
        return Story.model_validate_json(data)
    except (ValidationError, ValueError, RecursionError) as error:
        what = f"{file} is not the story of a run: it is damaged or of another version."
        raise FileError(what, "remove it.") from error
