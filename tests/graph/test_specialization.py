"""Programs that follow from values of inputs: one for each, kept by them."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, cast

import numpy as np
import pytest

import dashi
from dashi import graph as dg
from dashi.errors import ClosedError, DashiError, GraphError
from dashi.runtime.device import Device
from dashi.types import HostArray

X = np.random.default_rng(0).standard_normal((4, 30)).astype(np.float32)


def top(values: Mapping[str, HostArray]) -> dg.Graph:
    b = dg.Builder("top")
    largest, places = dg.top_k(b.input("x", X.shape), int(values["k"]), axis=int(values["axis"][0]))
    return b.graph(largest=largest, places=places)


def test_a_count_and_an_axis_are_values_of_a_run(device: Device) -> None:
    built: list[int] = []

    def build(values: Mapping[str, HostArray]) -> dg.Graph:
        built.append(int(values["k"]))
        return top(values)

    with dg.SpecializedPipeline(build, device, ["k", "axis"], most=2) as pipeline:
        for k, axis in ((3, 1), (2, 0), (3, 1), (5, 1), (3, 1), (2, 0)):
            results = pipeline.dispatch({"x": X, "k": k, "axis": np.array([axis], np.int64)})
            expected = dg.evaluate(top({"k": np.array(k), "axis": np.array([axis])}), {"x": X})
            assert {n: v.tobytes() for n, v in results.items()} == {n: v.tobytes() for n, v in expected.items()}
        assert (built, len(pipeline)) == ([3, 2, 5, 2], 2)  # the one used last stays
        with pipeline.pipeline({"k": 2, "axis": np.array([0], np.int64)}) as held:
            for k in (7, 8, 9):
                pipeline.dispatch({"x": X, "k": k, "axis": [1]})
            assert held.dispatch({"x": X})["largest"].shape == (2, 30)
        with pytest.raises(ClosedError):
            held.dispatch({"x": X})
    with pytest.raises(ClosedError, match="Fix: make it again"):
        pipeline.dispatch({"x": X, "k": 1, "axis": [1]})


def test_threads_share_programs() -> None:
    with dashi.open("cpu") as device, dg.SpecializedPipeline(top, device, ["k", "axis"], most=1) as pipeline:

        def shape(k: int) -> tuple[int, ...]:
            return pipeline.dispatch({"x": X, "k": k, "axis": [1]})["places"].shape

        with ThreadPoolExecutor(6) as pool:
            shapes = list(pool.map(shape, [1, 2] * 9))
        assert shapes == [(4, 1), (4, 2)] * 9
        assert len(pipeline) == 1


def test_what_chooses_no_program_is_an_error_with_a_fix() -> None:
    with dashi.open("cpu") as device:
        for names in ("k", []):
            with pytest.raises(GraphError, match="specialise nothing"):
                dg.SpecializedPipeline(top, device, names)
        with dg.SpecializedPipeline(top, device, ["k", "axis"]) as pipeline:
            wrong: list[tuple[dict[str, Any], str]] = [
                ({"x": X, "k": 3}, "the input 'axis' has no values"),
                ({"x": X, "k": np.zeros(20_000), "axis": [1]}, "more than 65536 bytes would choose"),
                ({"x": X, "k": 300, "axis": [1]}, "300 of the 30 elements"),
                ({"x": X, "k": cast("Any", "abc"), "axis": [1]}, "element type"),
                ({"k": 3, "axis": [1]}, "the input 'x' has no values"),
            ]
            for inputs, text in wrong:
                with pytest.raises(DashiError, match=rf"(?s){text}.*Fix: "):
                    pipeline.dispatch(inputs)
