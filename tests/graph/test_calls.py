"""What calls of a pipeline take beside NumPy arrays, what one may say about a call, and what is counted."""

from __future__ import annotations

import array
import mmap
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, cast

import numpy as np
import pytest

import dashi
from dashi import graph as dg
from dashi.errors import BoundsError, DashiError, GraphError, InputError, TimeoutError_
from dashi.graph.registry import all_ops
from dashi.runtime.device import Device
from dashi.types import HostArray

X = np.arange(6, dtype=np.float32).reshape(2, 3)


def sums() -> dg.Graph:
    b = dg.Builder("sums")
    x = b.input("x", (2, 3))
    return b.graph(total=dg.sum_(x, 1), double=x * 2.0)


@pytest.fixture
def pipeline(device: Device) -> Iterator[dg.CompiledPipeline]:
    with dg.compile(sums(), device) as compiled:
        yield compiled


class Foreign:
    """An array of another library, of which NumPy knows nothing but DLPack. Memory of a device leaves by `get`."""

    def __init__(self, values: Any, device: int = 1) -> None:
        self._values, self._device = values, device

    def __dlpack__(self, **options: Any) -> Any:
        if self._device != 1:
            raise BufferError("memory of a device")
        return self._values.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return (self._device, 0)

    def get(self) -> HostArray:
        return self._values


def test_inputs_are_borrowed_from_any_library(pipeline: dg.CompiledPipeline, device: Device) -> None:
    expected = pipeline.dispatch({"x": X})["total"].tobytes()
    flat = array.array("f", X.reshape(-1))
    for values in (Foreign(X), memoryview(flat).cast("B").cast("f", (2, 3)), np.asfortranarray(X)):
        assert pipeline.dispatch({"x": values})["total"].tobytes() == expected  # pyright: ignore[reportArgumentType]
    assert pipeline.report().calls["copied_through_host"] == 0
    for values in (Foreign(X, device=2), device.array(X)):
        assert pipeline.dispatch({"x": values})["total"].tobytes() == expected  # pyright: ignore[reportArgumentType]
        assert pipeline.dispatch_resident({"x": values})["total"].tobytes() == expected  # pyright: ignore[reportArgumentType]
    assert pipeline.report().calls["copied_through_host"] == 4
    with pytest.raises(GraphError, match=r"the input 'x' is f32\[2,3\], not float64"):
        pipeline.dispatch({"x": [[0.5] * 3] * 2})  # pyright: ignore[reportArgumentType]
    with pytest.raises(InputError, match="a masked array would lose its mask"):
        pipeline.dispatch({"x": np.ma.masked_less(X, 2)})  # pyright: ignore[reportArgumentType]


def page_aligned(length: int) -> Any:
    """float32 numbers that begin with a page."""
    return np.frombuffer(mmap.mmap(-1, 4 * length), np.float32, length)


def test_large_arrays_that_begin_with_a_page_are_read_where_they_are(
    device: Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dashi.graph._runs.IMPORT_FROM", 1 << 14)
    length = 1 << 14
    b = dg.Builder("large")
    x, s = b.input("x", (length,)), b.input("s", (1,))
    with dg.compile(b.graph(y=dg.tanh(x) * s, shown=x), device) as pipeline:
        aligned, scale = page_aligned(length), np.full(1, 2, np.float32)
        apart = page_aligned(length + 1)[1:]  # begins within a page
        expected: dict[str, bytes] = {}
        for round_ in range(3):
            aligned[:] = np.random.default_rng(round_).standard_normal(length)
            aligned[:2] = (-0.0, np.nan)
            apart[:] = aligned
            expected = {title: y.tobytes() for title, y in pipeline.dispatch({"x": apart, "s": scale}).items()}
            out = {"y": np.empty(length, np.float32)}
            pipeline.dispatch_into({"x": aligned, "s": scale}, out)
            assert out["y"].tobytes() == expected["y"]
            for results in (
                pipeline.dispatch({"x": aligned, "s": scale}),
                pipeline.dispatch_resident({"x": aligned, "s": scale}),
                pipeline.dispatch_batched([{"x": aligned, "s": scale}])[0],
                pipeline.dispatch({"x": aligned, "s": scale}, config=dg.CallConfig(timeout=60)),
            ):
                assert {title: y.tobytes() for title, y in results.items()} == expected
        calls = pipeline.report().calls
        assert calls["imported"] == 9
        assert calls["bytes_in"] == calls["runs"] * (4 * length + 4)
        before = calls["imported"]
        read_only = aligned[:]
        read_only.flags.writeable = False
        assert pipeline.dispatch({"x": read_only, "s": scale})["y"].tobytes() == expected["y"]
        assert pipeline.report().calls["imported"] == before


def test_a_call_reads_the_outputs_that_it_names(pipeline: dg.CompiledPipeline) -> None:
    whole = pipeline.dispatch({"x": X})
    config = dg.CallConfig(outputs=["total"])
    before = pipeline.report().calls["bytes_out"]
    named = [
        pipeline.dispatch({"x": X}, config=config),
        pipeline.dispatch_batched([{"x": X}], config=config)[0],
        pipeline.dispatch_resident({"x": X}, config=config),
        pipeline.dispatch_resident_batched([{"x": X}], config=config)[0],
        pipeline.dispatch_timed({"x": X}, config=config)[0],
    ]
    assert [list(results) for results in named] == [["total"]] * 5
    assert {results["total"].tobytes() for results in named} == {whole["total"].tobytes()}
    assert pipeline.report().calls["bytes_out"] - before == 4 * 8 + 32  # the timed recording brings all
    (handle,) = pipeline.dispatch_resident_outputs({"x": X}, config=config)
    assert (handle.name, pipeline.read(handle).tobytes()) == ("total", whole["total"].tobytes())
    assert pipeline.dispatch({"x": X}, config=dg.CallConfig(outputs=[])) == {}
    with pytest.raises(GraphError, match="there is no result 'totl'"):
        pipeline.dispatch({"x": X}, config=dg.CallConfig(outputs=["totl"]))
    for call in (
        lambda: pipeline.dispatch_into({"x": X}, {"total": np.empty(2, np.float32)}, config=config),
        lambda: pipeline.dispatch_resident({"x": X}, ["total"], config=config),
    ):
        with pytest.raises(InputError, match="names its outputs twice"):
            call()


def test_a_label_is_in_errors_and_in_what_is_told_of_submissions(pipeline: dg.CompiledPipeline) -> None:
    labels: list[str] = []
    remove = pipeline.device.on_submit(lambda submission: labels.append(submission.label))
    config = dg.CallConfig(label="token 7")
    pipeline.dispatch({"x": X}, config=config)
    pipeline.dispatch_resident({"x": X}, config=config)
    pipeline.dispatch({"x": X})
    remove()
    assert labels == ["token 7", "token 7", "sums"]
    with pytest.raises(GraphError, match="in the call 'token 7': the input 'x' has no values"):
        pipeline.dispatch({}, config=config)
    with pytest.raises(GraphError, match="in the call 'token 7': item 1 of the batch: the input 'x' has no values"):
        pipeline.dispatch_batched([{"x": X}, {}], config=config)


def test_a_call_waits_no_longer_than_it_says(device: Device, monkeypatch: pytest.MonkeyPatch) -> None:
    b = dg.Builder("slow")
    x = b.input("x", (2, 3), "i32")
    zeros, rows = np.zeros((1, 3), np.int32), np.array([1, 0], np.uint32)  # the first row goes nowhere
    graph = b.graph(y=dg.scatter_add(b.constant(zeros), b.constant(rows), x))
    slow = all_ops()["put"]

    def evaluate(*arguments: Any) -> HostArray:
        time.sleep(0.3)
        return slow.evaluate(*arguments)

    monkeypatch.setitem(all_ops(), "put", replace(slow, evaluate=evaluate))
    inputs: dict[str, HostArray] = {"x": X.astype(np.int32)}
    with dg.compile(graph, device, slots=1) as pipeline:
        assert len(pipeline.report().host_steps) == 1
        with pytest.raises(TimeoutError_, match="in the call 'first'"):
            pipeline.dispatch(inputs, config=dg.CallConfig(timeout=0.05, label="first"))
        assert pipeline.dispatch(inputs)["y"].tolist() == [[3, 4, 5]]
        results = pipeline.dispatch_resident(inputs, config=dg.CallConfig(timeout=60))
        assert results["y"].tolist() == [[3, 4, 5]]
        with pipeline._slots, pytest.raises(TimeoutError_, match="all 1 slots of the pipeline 'slow'"):  # pyright: ignore[reportPrivateUsage]
            pipeline.dispatch(inputs, config=dg.CallConfig(timeout=0.01))
    with pytest.raises(InputError, match="cannot wait for 0 seconds"):
        dg.CallConfig(timeout=0)


def test_the_report_counts_bytes_and_slots(pipeline: dg.CompiledPipeline) -> None:
    out = {"total": np.empty(2, np.float32), "double": np.empty((2, 3), np.float32)}
    for _ in range(5):
        pipeline.dispatch_into({"x": X}, out)
    for _ in range(3):
        (handle, other) = pipeline.dispatch_resident_outputs({"x": X})
        pipeline.free(handle)
        pipeline.free(other)
    calls = pipeline.report().calls
    assert (calls["runs"], calls["bytes_in"], calls["bytes_out"]) == (8, 8 * X.nbytes, 5 * (X.nbytes + 8))
    assert (calls["places_allocated"], calls["places_reused"]) == (2, 4)
    assert calls["slots_allocated"] + calls["slots_reused"] == 8
    assert 1 <= calls["slots_allocated"] <= 4 + 4  # two recordings
    assert pipeline.report().as_dict()["calls"] == calls


def draws() -> dg.Graph:
    b = dg.Builder("draws")
    words = b.input("rng", (2, 4), "u32")
    return b.graph(words=words, more=words + 1, x=b.input("x", (1,)))


def test_set_rng_fills_the_control_words_of_later_runs(device: Device) -> None:
    x = np.ones(1, np.float32)
    with dg.compile(draws(), device) as pipeline:
        with pytest.raises(GraphError, match="the input 'rng' has no values"):
            pipeline.dispatch({"x": x})
        pipeline.set_rng((5 << 32) + 7, request=3, position=9)
        expected = [[7, 5, 3, 9]] * 2
        assert pipeline.dispatch({"x": x})["words"].tolist() == expected
        assert pipeline.dispatch_resident({"x": x}, ["more"])["more"].tolist() == [[8, 6, 4, 10]] * 2
        own = np.arange(8, dtype=np.uint32).reshape(2, 4)
        assert pipeline.dispatch({"x": x, "rng": own})["words"].tolist() == own.tolist()
        assert pipeline.dispatch({"x": x})["words"].tolist() == expected
        with pipeline.clone() as clone:
            clone.set_rng(1)
            assert clone.dispatch({"x": x})["words"].tolist() == [[1, 0, 0, 0]] * 2
        assert pipeline.dispatch({"x": x})["words"].tolist() == expected
        handle = pipeline.bind("rng", own)
        assert pipeline.dispatch_resident({"x": x})["words"].tolist() == own.tolist()
        pipeline.set_rng(2)
        assert pipeline.dispatch_resident({"x": x})["words"].tolist() == [[2, 0, 0, 0]] * 2
        assert pipeline.read(handle).tolist() == [[2, 0, 0, 0]] * 2
        for words in ((-1,), (1 << 64,), (0, 1 << 32), (0, 0, -1)):
            with pytest.raises(InputError, match=r"is no seed|is no number of 32 bits"):
                pipeline.set_rng(*words)
    with dg.compile(sums(), device) as pipeline, pytest.raises(GraphError, match="nothing in it is random"):
        pipeline.set_rng(1)


@pytest.mark.parametrize("dtype", ["f32", "f16", "u8", "f64"])
@pytest.mark.parametrize("width", [(), (3,), (2, 4)])
def test_a_feed_copies_the_rows_in_use_alone(device: Device, dtype: str, width: tuple[int, ...]) -> None:
    b = dg.Builder("prefix")
    x, state = b.input("x", (5, *width), dtype), b.input("state", (6, *width), dtype)
    kind = x.dtype.numpy
    rng = np.random.default_rng(1)
    held = rng.integers(1, 9, (6, *width)).astype(kind)
    with dg.compile(b.graph(y=x, shown=state), device) as pipeline:
        handle = pipeline.bind("state", held)
        for rows, upper in ((2, 4), (0, 4), (4, 4), (3, 4), (5, 5), (0, 0)):
            values = rng.integers(10, 99, (5, *width)).astype(kind)
            pipeline.feed(handle, "y", active_extent=(rows, upper))
            assert pipeline.dispatch_resident({"x": values}, ["shown"])["shown"].tobytes() == held.tobytes()
            held[:rows] = values[:rows]
            assert pipeline.read(handle).tobytes() == held.tobytes()
        assert len(pipeline._recordings) == 3  # one for each `upper`  # pyright: ignore[reportPrivateUsage]


def test_an_extent_beyond_the_rows_is_refused(device: Device) -> None:
    b = dg.Builder("prefix")
    x, state = b.input("x", (5, 2)), b.input("state", (4, 2))
    with dg.compile(b.graph(y=x, shown=state, s=dg.sum_(x, 1)), device) as pipeline:
        handle = pipeline.bind("state", np.zeros((4, 2), np.float32))
        for extent in ((5, 5), (3, 2), (-1, 2)):
            with pytest.raises(BoundsError, match="is none of 4 rows"):
                pipeline.feed(handle, "y", active_extent=extent)
        with pytest.raises(GraphError, match="are none of 'state'"):
            pipeline.feed(handle, "s", active_extent=(1, 1))


def four() -> dg.Graph:
    b = dg.Builder("four")
    control, ring, log, queue = (b.input(name, (3,)) for name in ("control", "ring", "log", "queue"))
    return b.graph(y=control * 2.0 + ring - log * queue)


def test_rows_of_four_handles_are_runs(device: Device) -> None:
    values = [np.full(3, k, np.float32) for k in range(1, 6)]
    with dg.compile(four(), device) as pipeline, dg.compile(four(), device) as source:
        names = ("control", "ring", "log", "queue")
        handles = [source.bind(name, value) for name, value in zip(names, values, strict=False)]
        rows = [handles, handles[::-1], [handles[0]] * 4]
        expected = [
            pipeline.dispatch({name: source.read(handle) for name, handle in zip(names, row, strict=True)})["y"]
            for row in rows
        ]
        results = pipeline.dispatch_resident_rows(rows)
        assert [result["y"].tobytes() for result in results] == [y.tobytes() for y in expected]
        out = [{"y": np.empty(3, np.float32)} for _ in rows]
        pipeline.dispatch_resident_rows_into(rows, out)
        assert [into["y"].tobytes() for into in out] == [y.tobytes() for y in expected]
        with pytest.raises(GraphError, match="item 1 of the batch: a row has 4 handles, not 3"):
            pipeline.dispatch_resident_rows([handles, handles[:3]])
    with dg.compile(sums(), device) as pipeline, pytest.raises(GraphError, match="for graphs with 4 inputs"):
        pipeline.dispatch_resident_rows([])


def test_an_uncompiled_run_borrows_as_well() -> None:
    results = dg.evaluate(sums(), {"x": Foreign(X)})  # pyright: ignore[reportArgumentType]
    assert results["total"].tolist() == X.sum(1).tolist()
    shown = dg.Builder("shown")
    same = dg.evaluate(shown.graph(y=shown.input("x", (2, 3))), {"x": X})["y"]
    same[:] = 9
    assert X[0, 0] == 0  # no result is an array of the caller


def test_the_null_device_counts_too() -> None:
    with dashi.open("null") as null, dg.compile(sums(), null) as pipeline:
        pipeline.dispatch({"x": X}, config=dg.CallConfig(outputs=[]))
        assert pipeline.report().calls["bytes_in"] == X.nbytes


def doubled() -> dg.Graph:
    b = dg.Builder("doubled")
    x = b.input("x", (2, 3))
    return b.graph(y=x * b.param("w", np.full((2, 3), 2, np.float32)))


VALUES = {"x": np.ones((2, 3), np.float32)}
WRONG: dict[str, tuple[Callable[[dg.CompiledPipeline], Any], str]] = {
    "nothing": (lambda p: p.dispatch(cast("Any", None)), "the inputs of a run are NoneType, not values by name"),
    "a list": (lambda p: p.dispatch_resident(cast("Any", [1])), "the inputs of a run are list, not values by name"),
    "a wrong name": (lambda p: p.dispatch({"xx": VALUES["x"]}), "no input 'xx'"),
    "no batch": (lambda p: p.dispatch_batched(cast("Any", None)), "a batch is a list, not NoneType"),
    "no batch of handles": (lambda p: p.dispatch_resident_batched(cast("Any", 3)), "a batch is a list, not int"),
    "an item": (lambda p: p.dispatch_batched([VALUES, cast("Any", 5)]), "item 1 of the batch: the inputs of a run are"),
    "outputs": (lambda p: p.dispatch_batched_into([VALUES], cast("Any", None)), "a batch is a list, not NoneType"),
    "a config": (lambda p: p.dispatch(VALUES, config=cast("Any", 5)), "5 is no config of a call"),
    "a time": (lambda p: p.dispatch(VALUES, config=dg.CallConfig(timeout=cast("Any", "1"))), "wait for '1' seconds"),
    "names": (lambda p: p.dispatch(VALUES, config=dg.CallConfig(outputs="y")), "`outputs` is 'y'"),
    "a constant array": (
        lambda p: p.dispatch_into(VALUES, {"y": np.broadcast_to(np.float32(0), (2, 3))}),
        "is an array that is read only",
    ),
    "no array": (lambda p: p.dispatch_into(VALUES, {"y": cast("Any", [1])}), "`out` for .* is list"),
    "a param": (lambda p: dg.compile(doubled(), p.device, params={"v": VALUES["x"]}), "no param 'v'"),
    "slots": (lambda p: dg.compile(doubled(), p.device, slots=10**9), "1000000000 runs cannot be under way"),
    "no device": (lambda p: dg.compile(doubled(), cast("Any", None)), "NoneType is no device"),
    "no graph": (lambda p: dg.compile(cast("Any", "g"), p.device), "str is no graph"),
}


@pytest.mark.parametrize("mistake", WRONG)
def test_a_wrong_feed_is_a_typed_error_and_the_next_run_is_right(mistake: str, device: Device) -> None:
    call, text = WRONG[mistake]
    with dg.compile(doubled(), device) as compiled:
        with pytest.raises(DashiError, match=rf"(?s){text}.*Fix: "):
            call(compiled)
        for _ in range(6):  # more than there are slots
            assert compiled.dispatch(VALUES)["y"].tolist() == [[2] * 3] * 2
