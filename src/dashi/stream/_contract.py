"""What every result of a stage has to be, whatever the stage does."""

from __future__ import annotations

from typing import Any

from dashi.errors import StageFailedError, StreamRuleError
from dashi.stream._rules import R1


def check_result(stage: str, item: int, value: Any, result: Any, *, device: str = "", last: bool = False) -> None:
    """Raises what is wrong with a result whatever the stage is: None, a State that is none any more (but after the
    `last` stage), or one of lesser semantic depth (rule R1)."""
    if result is None:
        raise nothing_returned(stage, "compute", item)
    depth = getattr(value, "semantic_depth", None)
    if not isinstance(depth, int):
        return
    deeper = getattr(result, "semantic_depth", None)
    if not isinstance(deeper, int):
        if last:
            return
        raise StageFailedError(
            f"stage {stage!r} was given a {type(value).__name__} and returned a {type(result).__name__} for item "
            f"{item}.",
            "return a State: dataclasses.replace(state, payload=...).",
        )
    if deeper < depth:
        raise StreamRuleError.of(
            R1,
            "",
            device,
            f"stage {stage!r} was given a State of semantic depth {depth} and returned one of {deeper} for item "
            f"{item}.",
            "let a stage keep the depth of its States, or raise it: run this op in an earlier stage.",
        )


def nothing_returned(stage: str, part: str, item: int) -> StageFailedError:
    """The error of a callable that forgot to return something."""
    return StageFailedError(
        f"`{part}` of stage {stage!r} returned None for item {item}.",
        "return the result; what only looks on is an observer: `observers=`.",
    )
