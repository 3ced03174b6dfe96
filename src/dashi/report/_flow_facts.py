"""What a run folder tells of its flow: from the parameters of its scores, or from what its store of fields says."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from dashi.errors import DashiError
from dashi.flow._fields import read_attributes, read_line
from dashi.flow.evaluation.result import Evaluation
from dashi.flow.initial import INITIAL
from dashi.report._flow_card import FlowFacts, number
from dashi.report._html import counted
from dashi.report.films import Fields
from dashi.report.measures import Measures, flow_of
from dashi.report.scales import Scales, evaluated_scales, flow_of_evaluation, measured_scales

_LONGEST = 200
"""Characters of a name from a file that are shown."""


def facts_of_scores(evaluation: Evaluation, seeds: str = "") -> FlowFacts | None:
    """Facts of the flow that windows were recorded of; `seeds` in words, where a run has told them."""
    flow = flow_of_evaluation(evaluation)
    if flow is None:
        return None
    scales, count = evaluated_scales(evaluation), len(evaluation.seeds)
    known = sorted({seed for seed in evaluation.seeds if seed >= 0})
    more = {
        "windows": f"{count}, each {number(float(evaluation.times[-1]))} long{_turnovers(scales, evaluation.times[-1])}"
    }
    more |= {"seeds": seeds} if seeds else {"scored seeds": listed(known)} if known else {}
    measured = f"the reference ({counted(count, 'window')}; the spectrum is that of the last frames)"
    return FlowFacts(flow, scales, measured, more)


def facts_of_fields(path: Path, shown: Fields, measures: Measures | None, *, decoded: bool) -> FlowFacts | None:
    """Facts of the flow that a store of fields is of; `decoded` fields are of a model's states."""
    flow = flow_of(path)
    if flow is None:
        return None
    scales = None if measures is None else measured_scales(measures.energy, measures.spectra, flow)
    end = float(shown.times[-1])
    more = {"time": f"t = {number(float(shown.times[0]))} to {number(end)}{_turnovers(scales, end - shown.times[0])}"}
    frames = counted(len(shown.times), "frame")
    if decoded:
        role = "This is the flow that the model's states are of; the fields are decoded from those states."
        return FlowFacts(flow, scales, f"the decoded fields ({frames})", more, role)
    member = f" of {shown.member}" if shown.member else ""
    return FlowFacts(flow, scales, f"the fields ({frames}{member})", more | _start(path))


def _start(path: Path) -> dict[str, str]:
    """How a simulation began, and from which seeds, where it says so."""
    told = read_attributes(path)
    initial, options, seed = (told.get(name) for name in ("initial", "initial_options", "seed"))
    if type(seed) is int:
        return {"seed": str(seed)}
    if not isinstance(initial, str):
        return {}
    more = f" ({options[:_LONGEST]})" if isinstance(options, str) and options else ""
    made = {"start": initial[:_LONGEST] + more}
    seeds = member_seeds(path)
    return made | ({"seeds" if len(seeds) > 1 else "seed": listed(seeds)} if seeds else {})


def member_seeds(path: Path) -> list[int]:
    """Seeds of the members of a simulation; empty where they are not known."""
    try:
        known = read_attributes(path).get("initial") in INITIAL
        return [int(seed) for seed in read_line(path, "member")] if known and (path / "member").is_dir() else []
    except (DashiError, TypeError, ValueError, OverflowError):
        return []


def listed(numbers: Sequence[int]) -> str:
    """`3`, `4 and 5`, `1 to 12`, `1, 4, 9`: the shortest that is plain."""
    first, last = numbers[0], numbers[-1]
    if len(numbers) > 2 and [*numbers] == [*range(first, last + 1)]:
        return f"{first} to {last}"
    if len(numbers) > 12:
        return f"{', '.join(str(one) for one in numbers[:11])}, ... ({len(numbers)} in all)"
    return " and ".join(str(one) for one in numbers) if len(numbers) < 3 else ", ".join(str(one) for one in numbers)


def _turnovers(scales: Scales | None, time: float) -> str:
    return "" if scales is None else f" ({number(float(time) / scales.turnover)} eddy turnovers)"
