"""Whatever the bytes of a packed field become, unpacking gives a field or an error, in bounded time."""

from __future__ import annotations

import contextlib
import math
import time

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from dashi.errors import InputError
from dashi.filament import pack, unpack

_POINTS = np.arange(16) * (2 * math.pi / 16)
_WAVES = np.sin(3 * _POINTS)[:, None] * np.cos(2 * _POINTS)[None] + np.cos(np.outer(_POINTS, _POINTS[::-1]))
FIELD = _WAVES - _WAVES.mean()
CODES = [pack(FIELD, max_error=0.05, basis="wavelets", atoms=atoms).data for atoms in (0, 3)]
CODES.append(pack(FIELD, max_error=0.2, basis="modes", atoms=0).data)
LONGEST = 5.0
"""Seconds that no code of this length may take."""


def unpacked_or_refused(data: bytes) -> None:
    began = time.monotonic()
    with contextlib.suppress(InputError):
        field = unpack(data).field
        assert field.shape[0] <= 2048
        assert np.isfinite(field).all()
    assert time.monotonic() - began < LONGEST


@settings(max_examples=150, deadline=None)
@given(
    st.sampled_from(CODES),
    st.lists(st.tuples(st.floats(0, 1, exclude_max=True), st.integers(0, 255)), min_size=1, max_size=6),
    st.booleans(), st.floats(0, 1),
)  # fmt: skip
def test_changed_and_cut_codes_never_trip_the_decoder(
    data: bytes, edits: list[tuple[float, int]], in_header: bool, share: float
) -> None:
    changed = bytearray(data)
    for where, value in edits:
        changed[int(where * (14 if in_header else len(data)))] = value
    unpacked_or_refused(bytes(changed))
    unpacked_or_refused(bytes(changed[: int(share * len(changed))]))


@settings(max_examples=60, deadline=None)
@given(st.binary(max_size=80))
def test_random_bytes_after_a_header_never_trip_the_decoder(data: bytes) -> None:
    unpacked_or_refused(data)
    for code in CODES:
        unpacked_or_refused(code[:14] + data)
