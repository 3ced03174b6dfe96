"""Claims about splitting windows into those to train on and those to choose on, and about names in records."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from dashi.errors import InputError
from dashi.flow import Flow, Windows
from dashi.flow.windows import UNKNOWN, Naming, split_windows


def windows(seeds: Sequence[int], starts: Sequence[int]) -> Windows:
    fields = np.zeros((len(seeds), 2, 8, 8), np.float32)
    return Windows(Flow(8), 5, fields, tuple(seeds), tuple(starts))


SEEDED = windows([4, 4, 5, 5, 6, 6], [0, 10] * 3)


@pytest.mark.parametrize(
    ("train", "validate", "wanted"),
    [
        (None, 1, ([4, 4, 5, 5], [6, 6])),
        (None, 2, ([4, 4], [5, 5, 6, 6])),
        (None, 0, ([4, 4, 5, 5, 6, 6], [])),
        (None, [4], ([5, 5, 6, 6], [4, 4])),
        ([4], 1, ([4, 4], [5, 5])),
        ([6], 1, ([6, 6], [4, 4])),
        (range(5, 7), [4], ([5, 5, 6, 6], [4, 4])),
        (2, 1, ([4, 4, 5, 5], [6, 6])),
        (1, 0, ([4, 4], [])),
    ],
)
def test_seeds_are_named_or_counted(
    train: Sequence[int] | int | None, validate: Sequence[int] | int, wanted: tuple[list[int], list[int]]
) -> None:
    some, rest = split_windows(SEEDED, train, validate)
    assert (list(some.seeds), [] if rest is None else list(rest.seeds)) == wanted


@pytest.mark.parametrize(
    ("train", "validate", "said"),
    [
        ([4, 7], 1, r"the record has no seed 7; it has 4, 5, 6. Fix: choose others with `train=`, or leave it away."),
        ([4], [9], r"the record has no seed 9; .* Fix: choose others with `validate=`"),
        ([4, 5], [5], r"seed 5 is in `train=` and in `validate=`. Fix: "),
        (None, [4, 5, 6], r"`train=` is left without a seed. Fix: "),
    ],
)
def test_seeds_that_cannot_be_split_are_told(
    train: Sequence[int] | None, validate: Sequence[int] | int, said: str
) -> None:
    with pytest.raises(InputError, match=said):
        split_windows(SEEDED, train, validate)


def test_a_record_without_several_seeds_is_split_in_time() -> None:
    for seed in (3, UNKNOWN):
        train, validation = split_windows(windows([seed] * 3, [0, 10, 20]), None, 1)
        assert validation is not None
        assert (train.starts, validation.starts) == ((0, 10), (20,))
    alone, nothing = split_windows(windows([UNKNOWN], [0]), None, 1)
    assert (len(alone), nothing) == (1, None)
    with pytest.raises(InputError, match="which seed made it"):
        split_windows(windows([UNKNOWN] * 2, [0, 10]), [1], 1)


def test_names_belong_to_records_of_ones_own() -> None:
    with pytest.raises(InputError, match=r"`variables=` has 3 names. Fix: give one for vorticity, two for velocities"):
        Naming(("a", "b", "c"))
    with pytest.raises(InputError, match=r"`dims=` has no axis 'tim'. Fix: did you mean time\?"):
        Naming((), {"tim": "t"})
    for source in (None, Path("runs/flow")):
        with pytest.raises(InputError, match=r"`variables=` names what a NetCDF file or a Zarr store holds"):
            Naming(("w",)).require_own(source)
    Naming(("w",)).require_own(Path("mine.nc"))
