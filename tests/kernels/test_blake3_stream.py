"""Claims about hashing in pieces: the same digest as of the bytes at once, and memory that does not grow."""

from __future__ import annotations

import numpy as np
import pytest

from dashi.kernels.hash._blake3 import hexdigest128, hexdigest128_of

SUBTREE = 8 << 20


@pytest.mark.parametrize("size", [0, 1, 1024, 1025, SUBTREE - 1, SUBTREE, SUBTREE + 1, 2 * SUBTREE, 2 * SUBTREE + 1030])
def test_pieces_have_the_digest_of_the_whole(size: int) -> None:
    rng = np.random.default_rng(size)
    octets = rng.integers(0, 255, size, dtype=np.uint8)
    cuts = sorted(rng.integers(0, size + 1, 5))
    assert hexdigest128_of(np.split(octets, cuts)) == hexdigest128(octets)


def test_memory_that_is_filled_again_changes_no_digest() -> None:
    room = np.zeros(1500, np.uint8)

    def pieces():  # type: ignore[no-untyped-def]
        for value in range(5):
            room[:] = value
            yield room

    assert hexdigest128_of(pieces()) == hexdigest128(np.repeat(np.arange(5, dtype=np.uint8), 1500))
