"""Messages between ranks come back as they were, and nothing else is taken for one."""

from __future__ import annotations

from contextlib import suppress

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dashi.errors import InputError
from dashi.stream.cluster._messages import ALIGNMENT, Kind, Message, decode, encode, encoded_size


def example() -> Message:
    arrays = {
        "z": np.arange(6, dtype=np.float32).reshape(2, 3),
        "mask": np.array([True, False]),
        "none": np.empty((0, 4)),
    }
    return Message(Kind.ITEM, 3, 12345678901, {"stages": ["a"]}, arrays)


def test_messages_come_back_as_they_were() -> None:
    message = example()
    encoded = encode(message)
    back = decode(encoded, source=4, slot=1)
    assert len(encoded) == encoded_size(message)
    assert (back.kind, back.generation, back.step, back.source, back.slot) == (Kind.ITEM, 3, 12345678901, 4, 1)
    assert dict(back.document) == {"stages": ["a"]}
    assert list(back.arrays) == ["z", "mask", "none"]
    for name, values in message.arrays.items():
        assert back.arrays[name].dtype == values.dtype
        assert back.arrays[name].shape == values.shape
        assert back.arrays[name].tobytes() == values.tobytes()
        assert not back.arrays[name].flags.writeable


def test_objects_are_no_arrays() -> None:
    with pytest.raises(InputError, match=r"'z' has the element type object, which is no number\. Fix: send arrays of"):
        encode(Message(Kind.ITEM, 1, 1, arrays={"z": np.array([object()])}))


@given(st.binary(max_size=400))
def test_other_bytes_are_refused(data: bytes) -> None:
    with pytest.raises(InputError, match="Fix: run the same version of dashi on every rank"):
        decode(data)


@given(st.integers(0, 250), st.integers(1, 255))
def test_edited_messages_are_refused_or_read_within_their_bytes(place: int, change: int) -> None:
    encoded = encode(example())
    encoded[place % len(encoded)] ^= change
    with suppress(InputError):
        message = decode(encoded)
        assert sum(values.nbytes for values in message.arrays.values()) <= len(encoded) - ALIGNMENT
