"""Whether data to be scored on were seen in training: by seeds and steps, and by the fields themselves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from dashi.errors import InputError
from dashi.flow.windows import UNKNOWN, Windows

_CLOSE: Final = 1e-9
"""Times are products of floats: so close they are the same."""


@dataclass(frozen=True)
class Seen:
    """Where data came from: a seed and the flow times of its first and last frame, for each window, and the digests of
    all frames."""

    seeds: tuple[int, ...]
    spans: tuple[tuple[float, float], ...]
    digests: frozenset[str]

    @classmethod
    def of(cls, *given: Windows | None) -> Seen:
        """What was seen by whoever saw these windows."""
        parts = [windows for windows in given if windows is not None]
        return cls(
            tuple(seed for part in parts for seed in part.seeds),
            tuple(
                (first * part.flow.dt, last * part.flow.dt)
                for part in parts
                for first, last in zip(part.starts, part.lasts, strict=True)
            ),
            frozenset[str]().union(*(part.digests for part in parts)),
        )


def require_disjoint(train: Windows | Seen | Sequence[Windows | None], test: Windows, *, allow: bool = False) -> bool:
    """Refuses to score on what was trained on: a window of a training seed whose times meet those of training, or a
    frame that was in the training data, wherever it comes from. The same seed later on is a split in time, and is fine.
    With `allow` it only says whether there is an overlap."""
    known = train if isinstance(train, Seen) else Seen.of(*_listed(train))
    dt = test.flow.dt
    spans = [(first * dt, last * dt) for first, last in zip(test.starts, test.lasts, strict=True)]
    if require_unseen(known, test.seeds, spans, allow=allow):
        return True
    same = len(test.digests & known.digests)
    if same and not allow:
        raise _refused(f"{same} of {len(test.digests)} frames are the very same")
    return bool(same)


def require_unseen(
    known: Seen, seeds: Sequence[int], spans: Sequence[tuple[float, float]], *, allow: bool = False
) -> bool:
    """Refuses windows that training saw, by seeds and flow times alone, before any data are made; with `allow` it only
    says whether there are any."""
    for seed, (first, last) in zip(seeds, spans, strict=True):
        for other, (begin, end) in zip(known.seeds, known.spans, strict=True):
            if seed == other != UNKNOWN and first <= end + _CLOSE and begin <= last + _CLOSE:
                if allow:
                    return True
                raise _refused(f"seed {seed} from time {first:g} to {last:g}, and training saw {begin:g} to {end:g}")
    return False


def _refused(what: str) -> InputError:
    return InputError(
        f"the data to score on overlap those trained on: {what}.",
        "use other seeds (`eval_seed=`), or later steps (`start=`); `allow_overlap=True`, or split='train', scores "
        "it all the same.",
    )


def _listed(train: Any) -> list[Any]:
    return [train] if isinstance(train, Windows) else list(train)
