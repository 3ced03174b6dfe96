"""Evaluations made of shards: the scores of all windows, and from them tables and intervals, as an evaluation that was
not shared out makes them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from pydantic import ValidationError

from dashi.errors import DashiError, FileError
from dashi.flow.evaluation import Evaluation
from dashi.flow.evaluation._continuation import ENERGIES
from dashi.flow.evaluation._parts import EvaluationPart, combined
from dashi.flow.evaluation._record import EvaluationRecord, read_record
from dashi.flow.evaluation.files import BROKEN, load_evaluation
from dashi.io._run_folder import CONTINUATION
from dashi.io._shards import ShardFolder
from dashi.io.arrays import file_digest, read_arrays
from dashi.lab._evaluation_files import ScoreFolder, command_of, summary_of
from dashi.lab.events import Events
from dashi.lab.shards._evaluation_part import EvaluationWork, part_name, read_part
from dashi.types import HostArray

_AGAIN: Final = "run that shard again."


def merge_evaluation(shards: Sequence[ShardFolder], folder: Path, out: Path, events: Events) -> str | None:
    """Fills a folder with what the whole evaluation would have left, which becomes `out`."""
    work, record = _work_of(shards[0]), _record_of(shards[0])
    files, done = ScoreFolder(folder), list[Evaluation]()
    for name in work.fit_scores:
        done.append(_scores_of_fit(shards, name))
        files.add(done[-1])
    with events.progress("scores", work.sets, "sets of windows") as advance:
        for number in range(work.sets):
            done.append(_combined(shards, work, number))
            files.add(done[-1], None if number else _continuation_of(shards[0], done[-1]))
            advance(1)
    assert record.device is not None
    command = command_of(work.request, work.chosen, record.device.spec, out)
    files.write(
        summary_of(work.request, record.model_copy(update={"command": command}), done, stopped=False, along=False)
    )
    if files.failure is not None:
        raise files.failure
    return None


def _work_of(shard: ShardFolder) -> EvaluationWork:
    try:
        work = EvaluationWork.model_validate_json(json.dumps(shard.record.work))
        _ = work.request, work.seeds_of(shard.record.total)
    except (ValidationError, *BROKEN) as error:
        raise FileError(f"{shard} does not say what was evaluated.", _AGAIN) from error
    return work


def _record_of(shard: ShardFolder) -> EvaluationRecord:
    record = read_record(shard.folder)
    if record is None or record.device is None or record.stopped:
        raise FileError(f"{shard} does not say where it was evaluated.", _AGAIN)
    return record


def _scores_of_fit(shards: Sequence[ShardFolder], name: str) -> Evaluation:
    """Scores on the data that the model saw: they come from its file, so all shards have the same."""
    digests = {file_digest(shard.file(f"{name}.npz")) for shard in shards}
    if len(digests) > 1:
        raise FileError(f"the shards have different files {name}.npz, which all have of the same model.", _AGAIN)
    return load_evaluation(shards[0].file(f"{name}.npz"))


def _continuation_of(shard: ShardFolder, evaluation: Evaluation) -> dict[str, HostArray]:
    """The energies of the canonical figure, of the frames of the scores and those beyond them."""
    frames = len(evaluation.times) + max(line.continued.shape[1] for line in evaluation.lines)
    return read_arrays(shard.file(CONTINUATION), ENERGIES, most=8 * frames)


def _combined(shards: Sequence[ShardFolder], work: EvaluationWork, number: int) -> Evaluation:
    parts = [
        read_part(shard.file(part_name(number)), work.windows_of(len(shard.record.part))) for shard in shards
    ]  # fmt: skip
    for shard, part in zip(shards, parts, strict=True):
        _require_own(shard, work, part)
    try:
        return combined(parts)
    except (DashiError, *BROKEN) as error:
        raise FileError(f"the shards do not fit together: {error}", _AGAIN) from error


def _require_own(shard: ShardFolder, work: EvaluationWork, part: EvaluationPart) -> None:
    """Refuses scores of other windows than those of the shard, and scores that are not all of them."""
    share, evaluation = shard.record.part, part.evaluation
    seeds, scored = work.seeds_of(shard.record.total), evaluation.seeds
    fits = len(scored) == work.windows_of(len(share))
    if fits and seeds is not None:  # as many as were read: they can be listed
        fits = list(dict.fromkeys(scored)) == list(seeds[share.start : share.stop])
    if not fits or evaluation.stopped or evaluation.split != "test":
        raise FileError(f"{shard} holds scores of other windows than its own.", _AGAIN)
