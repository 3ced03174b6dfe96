"""Windows to train on and windows to choose on: split by seed where there are several, else in time."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dashi.errors import InputError
from dashi.flow.windows.windows import UNKNOWN, Windows


def split_windows(
    windows: Windows, train: Sequence[int] | int | None = None, validate: Sequence[int] | int = 1
) -> tuple[Windows, Windows | None]:
    """Training and validation windows of a record.

    `train` names seeds, or says how many from the lowest on; None is all that are not for validation. `validate` names
    seeds, or says how many of those that follow; without `train` the last ones. A record with one seed, or with none
    that are known, is split in time: its last windows are for validation.
    """
    seeds = list(dict.fromkeys(windows.seeds))
    if UNKNOWN not in seeds:
        chosen = _chosen_seeds(seeds, train, validate)
        if chosen is not None:
            return _by_seed(windows, *chosen)
    elif train is not None or not isinstance(validate, int):
        raise InputError(
            "the record says of no window which seed made it, so `train=` and `validate=` choose no seeds.",
            "leave `train=` away, and give `validate=` the number of windows to choose on.",
        )
    assert isinstance(validate, int)  # seeds by name were chosen above
    count = len(windows) - (min(validate, len(windows) - 1) if validate else 0)
    order = np.lexsort((range(len(windows)), windows.starts))
    if count == len(windows):
        return windows, None
    return windows.take(np.sort(order[:count])), windows.take(np.sort(order[count:]))


def _chosen_seeds(
    seeds: Sequence[int], train: Sequence[int] | int | None, validate: Sequence[int] | int
) -> tuple[list[int], list[int]] | None:
    """Seeds to train on and to choose on; None where they are too few, and nobody chose."""
    if isinstance(train, int):
        train = range(min(seeds), min(seeds) + train)
    if train is not None:
        rest = [seed for seed in seeds if seed not in train]
        named = rest[:validate] if isinstance(validate, int) else list(validate)
    elif not isinstance(validate, int):
        named = list(validate)
        train = [seed for seed in seeds if seed not in named]
    elif len(seeds) > validate > 0:
        train, named = seeds[:-validate], list(seeds[-validate:])
    else:
        return None
    for name, some in (("train", train), ("validate", named)):
        for seed in some:
            if seed not in seeds:
                raise InputError(
                    f"the record has no seed {seed}; it has {', '.join(map(str, seeds))}.",
                    f"choose others with `{name}=`, or leave it away.",
                )
    both = sorted(set(train) & set(named))
    if both:
        raise InputError(f"seed {both[0]} is in `train=` and in `validate=`.", "choose on seeds not trained on.")
    if not len(train):
        raise InputError("`train=` is left without a seed.", "choose on fewer seeds, or name seeds to train on.")
    return list(train), named


def _by_seed(windows: Windows, train: Sequence[int], validate: Sequence[int]) -> tuple[Windows, Windows | None]:
    seeds = np.array(windows.seeds)
    chosen = np.flatnonzero(np.isin(seeds, validate))
    return windows.take(np.flatnonzero(np.isin(seeds, train))), windows.take(chosen) if len(chosen) else None
