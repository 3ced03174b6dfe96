"""Whatever the arrays of an evaluation or of a fit become, reading them gives one, or an error with a fix."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dashi.errors import FileError
from dashi.flow import Flow
from dashi.flow.evaluation import Evaluation, Line, Seen
from dashi.flow.evaluation._training import Training
from dashi.flow.evaluation.files import array_text, pack, text_array, unpack
from dashi.flow.evaluation.result import THRESHOLDS
from dashi.report._story import lasts

ODD_VALUES = st.sampled_from([10**400, -(10**400), 1e308, 5e-324, "\ud800", "$$", r"$\frac{$", "\x1b[2J", "", 0, -1])
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8) | ODD_VALUES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)
ODD = st.sampled_from([np.zeros(()), np.zeros((0,)), np.zeros((3, 3)), np.array("text"), np.zeros((2, 4), np.uint8)])


def evaluation() -> dict[str, Any]:
    grid = np.ones((2, 4))
    line = Line(
        "m", 5, grid, grid, grid, grid, grid, grid, dict.fromkeys(THRESHOLDS, np.ones(2)), ("none", "drift"),
        np.ones(3), continued=np.ones((2, 1)),
    )  # fmt: skip
    made = Evaluation("test", np.arange(4.0), (1, 2), (0, 0), (line,), grid, grid, np.ones(3), {"n": 8}, {"k_cut": 2})
    return pack(made)


def training() -> dict[str, Any]:
    seen = Seen((1,), ((0.0, 1.0),), frozenset({"00" * 16}))
    return Training(Flow(16), 10, 100, (1,), (2,), seen, 0.5).pack()


@pytest.mark.parametrize(("make", "read"), [(evaluation, unpack), (training, Training.unpack)])
@given(data=st.data())
def test_damaged_arrays_are_told(make: Any, read: Any, data: st.DataObject) -> None:
    arrays = make()
    name = data.draw(st.sampled_from(sorted(arrays)))
    if name == "head":
        head = json.loads(array_text(arrays["head"]))
        *above, last = data.draw(st.sampled_from(places(head)))
        inner = head
        for key in above:
            inner = inner[key]
        inner[last] = data.draw(JSON)
        arrays["head"] = text_array(json.dumps(head))
    elif arrays[name].size and arrays[name].dtype.kind == "f" and data.draw(st.booleans()):
        arrays[name] = arrays[name].copy()
        at = data.draw(st.integers(0, arrays[name].size - 1))
        arrays[name].reshape(-1)[at] = data.draw(st.sampled_from([np.nan, np.inf, -np.inf, 1e308, -1e308, -1.0]))
    elif data.draw(st.booleans()):
        arrays[name] = data.draw(ODD)
    else:
        del arrays[name]
    with contextlib.suppress(FileError):
        result = read(arrays, Path("f.npz"))
        if isinstance(result, Evaluation):
            # What was read can be told, and written.
            " ".join(lasts(result, line.model) for line in result.lines).encode()
            json.dumps([result.data_kind, dict(result.settings)], ensure_ascii=False).encode()


def test_what_is_not_damaged_is_read() -> None:
    assert unpack(evaluation(), "f.npz").line("m").numbers == 5
    assert Training.unpack(training(), "f.npz").steps == 100


def places(value: Any, at: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    below = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [at, *(place for key, inner in below for place in places(inner, (*at, key)))][not at :]


@given(octets=st.binary(max_size=200))
def test_text_that_is_none_is_told(octets: bytes) -> None:
    for arrays, read in ((evaluation(), unpack), (training(), Training.unpack)):
        arrays["head"] = np.frombuffer(octets, np.uint8)
        with pytest.raises(FileError, match="damaged"):
            read(arrays, Path("f.npz"))


def test_text_nested_too_deep_is_told() -> None:
    arrays = evaluation()
    arrays["head"] = text_array("[" * 100_000)
    with pytest.raises(FileError, match="damaged"):
        unpack(arrays, "f.npz")
