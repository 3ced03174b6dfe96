"""State that stays on the device: the bits of runs that upload everything, and errors for handles that are gone."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import numpy as np
import numpy.typing as npt
import pytest

import dashi
from dashi import graph as dg
from dashi.errors import BoundsError, ClosedError, DashiError, DeviceLostError, GraphError
from dashi.graph._batches import Slots, run_batch
from dashi.runtime._vulkan_device import VulkanDevice
from dashi.runtime.device import Device
from dashi.types import HostArray

RNG = np.random.default_rng(7)


def normal(*shape: int) -> npt.NDArray[np.float32]:
    return RNG.standard_normal(shape).astype(np.float32)


W, U, H0 = normal(4, 5), normal(5, 5), normal(3, 5)
X: list[HostArray] = [normal(3, 4) for _ in range(50)]


def cell() -> dg.Graph:
    """h' = tanh(x W + h U), and the sums of its rows."""
    b = dg.Builder("cell")
    x, h = b.input("x", (3, 4)), b.input("h", (3, 5))
    new = dg.tanh(x @ b.param("w", W) + h @ b.param("u", U))
    return b.graph(state=new, total=dg.sum_(new, 1))


@pytest.fixture
def pipeline(device: Device) -> Iterator[dg.CompiledPipeline]:
    with dg.compile(cell(), device) as compiled:
        yield compiled


def uploaded(pipeline: dg.CompiledPipeline, steps: int = 50) -> list[HostArray]:
    """The states of so many steps, each from values of the host."""
    states: list[HostArray] = [H0]
    for x in X[:steps]:
        states.append(pipeline.dispatch({"x": x, "h": states[-1]})["state"])
    return states


def test_a_recurrent_state_on_the_device_has_the_bits_of_one_that_is_uploaded(pipeline: dg.CompiledPipeline) -> None:
    expected = uploaded(pipeline)
    handle = pipeline.bind("h", H0)
    pipeline.feed(handle, "state")
    for x, before in zip(X, expected[:-1], strict=True):
        results = pipeline.dispatch_resident({"x": x}, ["total"])
        assert list(results) == ["total"]
        assert results["total"].tobytes() == dg.evaluate(cell(), {"x": x, "h": before})["total"].tobytes()
    assert pipeline.read(handle).tobytes() == expected[-1].tobytes()
    assert len(pipeline._recordings) == 1  # pyright: ignore[reportPrivateUsage]


def test_inputs_are_arrays_or_handles_and_an_explicit_one_overrides(pipeline: dg.CompiledPipeline) -> None:
    x, h = pipeline.bind("x", X[0]), pipeline.bind("h", H0)
    expected = pipeline.dispatch({"x": X[0], "h": H0})
    other = pipeline.dispatch({"x": X[0], "h": H0 * 2})
    for inputs in ({}, {"x": x}, {"x": X[0], "h": h}, {"x": x, "h": H0}, {"x": X[0], "h": H0}):
        assert _bytes(pipeline.dispatch_resident(inputs)) == _bytes(expected)
    assert _bytes(pipeline.dispatch_resident({"h": H0 * 2})) == _bytes(other)
    assert _bytes(pipeline.dispatch_resident({})) == _bytes(expected)
    assert pipeline.bind("h", H0 * 2) is h
    out = {"state": np.empty((3, 5), np.float32)}
    pipeline.dispatch_resident_into({}, out)
    assert out["state"].tobytes() == other["state"].tobytes()
    assert pipeline.read(h).tobytes() == (H0 * 2).tobytes()


def test_an_override_seeds_the_fed_state_anew(pipeline: dg.CompiledPipeline) -> None:
    expected = uploaded(pipeline, 2)
    handle = pipeline.bind("h", normal(3, 5))
    pipeline.feed(handle, "state")
    pipeline.dispatch_resident({"x": X[9]})
    pipeline.dispatch_resident({"x": X[0], "h": H0}, [])
    assert pipeline.dispatch_resident({"x": X[1]})["state"].tobytes() == expected[2].tobytes()
    pipeline.feed(handle, None)
    pipeline.dispatch_resident({"x": X[2]})
    assert pipeline.read(handle).tobytes() == expected[2].tobytes()


def test_pipelines_chain_without_the_host_and_reuse_freed_outputs(pipeline: dg.CompiledPipeline) -> None:
    expected = uploaded(pipeline, 2)
    x = X[1]
    with dg.compile(cell(), pipeline.device) as second:
        for _ in range(6):
            outputs = pipeline.dispatch_resident_outputs({"x": X[0], "h": H0})
            assert [handle.name for handle in outputs] == ["state", "total"]
            assert second.dispatch_resident({"x": x, "h": outputs[0]})["state"].tobytes() == expected[2].tobytes()
            assert pipeline.read(outputs[0]).tobytes() == expected[1].tobytes()
            with pytest.raises(GraphError, match="belongs to another pipeline"):
                second.free(outputs[0])
            for handle in outputs:
                pipeline.free(handle)
        assert len(second._recordings) == len(pipeline._recordings) == 1  # pyright: ignore[reportPrivateUsage]


def attend(rows: int, width: int) -> dg.Graph:
    """A causal step: the token's query over a cache of which `mask` says which rows count, and its key and value."""
    b = dg.Builder("attend")
    x = b.input("x", (1, width))
    keys, values, mask = b.input("keys", (rows, width)), b.input("values", (rows, width)), b.input("mask", (1, rows))
    key, value = (dg.tanh(x @ b.param(name, normal(width, width))) for name in ("wk", "wv"))
    # The token itself stands behind the rows of the cache.
    all_keys, all_values = dg.concat([keys, key]), dg.concat([values, value])
    counts = dg.concat([mask, b.constant(np.ones((1, 1), np.float32))], 1)
    shape = (1, 1, rows + 1, width)
    y = dg.attention(x.reshape(1, 1, 1, width), all_keys.reshape(*shape), all_values.reshape(*shape), counts, scale=0.5)
    return b.graph(y=y.reshape(1, width), key=key, value=value)


def test_a_cache_of_keys_and_values_takes_new_rows_on_the_device(device: Device) -> None:
    rows, width = 6, 8
    graph = attend(rows, width)
    cache = {name: np.full((rows, width), np.nan, np.float32) for name in ("keys", "values")}
    with dg.compile(graph, device) as pipeline:
        handles = {name: pipeline.bind(name, array) for name, array in cache.items()}
        for t in range(rows):
            step = {"x": normal(1, width), "mask": (np.arange(rows) < t).astype(np.float32)[None]}
            expected = dg.evaluate(graph, {**step, **cache})
            results = pipeline.dispatch_resident(step, ["y"])
            assert results["y"].tobytes() == expected["y"].tobytes()
            assert np.isfinite(results["y"]).all()
            assert pipeline.read_row("key", 0).tobytes() == expected["key"].tobytes()
            for name, output in (("keys", "key"), ("values", "value")):
                pipeline.feed_rows(handles[name], output, 0, t)
                cache[name][t] = expected[output][0]
        assert pipeline.read(handles["keys"]).tobytes() == cache["keys"].tobytes()


def with_host_step() -> dg.Graph:
    """Halves that the host copies, since no kernel walks nine axes, from an input of a length that fills no word."""
    b = dg.Builder("halves")
    x = b.input("x", (3,) * 9, "f16")
    return b.graph(y=x.transpose(), shown=x, z=dg.tanh(dg.cast(x, "f32")))


def test_halves_and_host_steps_read_and_feed_resident_values(device: Device) -> None:
    graph = with_host_step()
    state = RNG.standard_normal((3,) * 9).astype(np.float16)
    state.reshape(-1)[:5] = -0.0, np.nan, 1e-7, np.inf, -np.inf
    with dg.compile(graph, device) as first, dg.compile(graph, device) as second:
        assert list(first.report().host_steps) == ["y.result"]
        first.feed(first.bind("x", state), "y")
        for _ in range(5):
            expected = dg.evaluate(graph, {"x": state})
            again = dg.evaluate(graph, {"x": expected["y"]})
            outputs = first.dispatch_resident_outputs({})
            assert _bytes(second.dispatch_resident({"x": outputs[0]})) == _bytes(again)
            assert [first.read(handle).tobytes() for handle in outputs] == list(_bytes(expected).values())
            for handle in outputs:
                first.free(handle)
            state = expected["y"]
        assert first.read(first.handles["x"]).tobytes() == state.tobytes()


def test_batches_of_resident_runs_follow_one_another(pipeline: dg.CompiledPipeline) -> None:
    expected = [state.tobytes() for state in uploaded(pipeline, 12)[1:]]
    handle = pipeline.bind("h", H0)
    pipeline.feed(handle, "state")
    results = pipeline.dispatch_resident_batched([{"x": x} for x in X[:12]], ["state"])
    assert [result["state"].tobytes() for result in results] == expected
    pipeline.bind("h", H0)
    out = [{"state": np.empty((3, 5), np.float32)} for _ in range(12)]
    pipeline.dispatch_resident_batched_into([{"x": x} for x in X[:12]], out)
    assert [into["state"].tobytes() for into in out] == expected
    with pytest.raises(GraphError, match="item 1 of the batch: the input 'x' has no values"):
        pipeline.dispatch_resident_batched([{"x": X[0]}, {}])


def test_a_batch_of_resident_runs_is_one_submission_to_the_driver(
    bare_vulkan: VulkanDevice, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[int] = []
    submit = bare_vulkan.raw.fns.QueueSubmit

    def count(queue: int, number: int, at: int, fence: int) -> int:
        calls.append(number)
        return int(submit(queue, number, at, fence))

    monkeypatch.setattr(bare_vulkan.raw.fns, "QueueSubmit", count)
    with dg.compile(cell(), bare_vulkan, slots=5) as pipeline:
        expected = [state.tobytes() for state in uploaded(pipeline, 5)[1:]]
        pipeline.feed(pipeline.bind("h", H0), "state")
        pipeline.dispatch_resident({"x": X[0]}, ["state"])  # records
        pipeline.bind("h", H0)
        calls.clear()
        results = pipeline.dispatch_resident_batched([{"x": x} for x in X[:5]], ["state"])
        assert calls == [5]
    assert [result["state"].tobytes() for result in results] == expected


def test_a_submission_of_several_items_that_fails_names_the_first() -> None:
    @contextmanager
    def lost() -> Iterator[None]:
        yield
        raise DeviceLostError("the device was lost.", "close it.")

    slots = Slots(3)
    with pytest.raises(DeviceLostError, match="item 0 of the batch: the device was lost"):
        run_batch(slots, ["a", "b"], str, lambda _, run: run, lost)
    assert all(slots.acquire(blocking=False) for _ in range(3))
    for _ in range(3):
        slots.release()
    with pytest.raises(GraphError, match="item 1 of the batch: no"):
        run_batch(slots, ["a", "b"], refuse_b, lambda _, run: run)
    assert all(slots.acquire(blocking=False) for _ in range(3))


def refuse_b(item: str) -> str:
    if item == "b":
        raise GraphError("no.", "pass another.")
    return item


def test_batches_are_written_into_arrays(pipeline: dg.CompiledPipeline) -> None:
    batch = [{"x": x, "h": H0} for x in X[:7]]
    out = [{"total": np.empty(3, np.float32)} for _ in batch]
    pipeline.dispatch_batched_into(batch, out)
    for inputs, into in zip(batch, out, strict=True):
        assert into["total"].tobytes() == pipeline.dispatch(inputs)["total"].tobytes()
    with pytest.raises(GraphError, match="7 items cannot be written into 6"):
        pipeline.dispatch_batched_into(batch, out[1:])


def test_a_clone_goes_its_own_way(pipeline: dg.CompiledPipeline) -> None:
    expected = uploaded(pipeline, 3)
    handle = pipeline.bind("h", H0)
    pipeline.feed(handle, "state")
    pipeline.dispatch_resident({"x": X[0]})
    with pipeline.clone() as clone:
        assert clone.program_id == pipeline.program_id
        clone.set_param("w", W * 2)
        clone.dispatch_resident({"x": X[5]})
        pipeline.dispatch_resident({"x": X[1]})
        clone.set_param("w", W)
        clone.bind("h", expected[1])
        assert clone.dispatch_resident({"x": X[1]})["state"].tobytes() == expected[2].tobytes()
    assert pipeline.dispatch_resident({"x": X[2]})["state"].tobytes() == expected[3].tobytes()


def test_threads_share_resident_inputs(pipeline: dg.CompiledPipeline) -> None:
    pipeline.bind("h", H0)
    expected = [pipeline.dispatch({"x": x, "h": H0})["state"].tobytes() for x in X[:24]]
    with ThreadPoolExecutor(6) as pool:
        results = pool.map(lambda x: pipeline.dispatch_resident({"x": x})["state"].tobytes(), X[:24])
        assert list(results) == expected


def test_the_recordings_have_all_their_barriers(pipeline: dg.CompiledPipeline) -> None:
    pipeline.feed(pipeline.bind("h", H0), "state")
    pipeline.dispatch_resident({"x": X[0]})
    for recorded in pipeline._recordings._recorded.values():  # pyright: ignore[reportPrivateUsage]
        recorded.program.check()
        assert list(recorded.inputs) == ["x"]


def test_handles_that_are_gone_are_errors_with_a_fix(pipeline: dg.CompiledPipeline) -> None:
    handle = pipeline.bind("h", H0)
    pipeline.feed(handle, "state")
    pipeline.free(handle)
    for use in (
        lambda: pipeline.free(handle),
        lambda: pipeline.read(handle),
        lambda: pipeline.feed(handle, "state"),
        lambda: pipeline.feed_rows(handle, "state", 0, 0),
        lambda: pipeline.dispatch_resident({"x": X[0], "h": handle}),
    ):
        with pytest.raises(ClosedError, match=r"the handle of 'h' was freed\. Fix: bind the value again"):
            use()
    with pytest.raises(GraphError, match="the input 'h' has no values"):
        pipeline.dispatch_resident({"x": X[0]})
    handle = pipeline.bind("h", H0)
    pipeline.close()
    assert handle.freed
    with pytest.raises(ClosedError, match="the pipeline 'cell' is closed"):
        pipeline.dispatch_resident({"x": X[0]})


def test_wrong_use_is_an_error_with_a_fix(pipeline: dg.CompiledPipeline) -> None:
    handle = pipeline.bind("h", H0)
    with pytest.raises(GraphError, match="has not run yet"):
        pipeline.read_row("state", 0)
    pipeline.dispatch_resident({"x": X[0]})
    with pytest.raises(GraphError, match=r"the output 'total' is f32\[3\], the input 'h' f32\[3,5\]"):
        pipeline.feed(handle, "total")
    with pytest.raises(GraphError, match="rows of the output 'total'"):
        pipeline.feed_rows(handle, "total", 0, 0)
    with pytest.raises(BoundsError, match=r"there is no row 3 in f32\[3,5\]"):
        pipeline.feed_rows(handle, "state", 0, 3)
    with pytest.raises(GraphError, match="there is no result 'stat'"):
        pipeline.dispatch_resident({"x": X[0]}, ["stat"])
    with pytest.raises(GraphError, match="has no input 'y'"):
        pipeline.bind("y", H0)
    with pytest.raises(GraphError, match=r"the input 'x' is f32\[3,4\], the handle of 'h'"):
        pipeline.dispatch_resident({"x": handle})
    with pytest.raises(BoundsError, match="there is no row -1"):
        pipeline.read_row("state", -1)
    with (
        dashi.open("null") as null,
        dg.compile(cell(), null) as elsewhere,
        pytest.raises(GraphError, match="lies on another device"),
    ):
        elsewhere.dispatch_resident({"x": X[0], "h": handle})


def test_freed_handles_and_closed_pipelines_give_their_memory_back(bare_vulkan: VulkanDevice) -> None:
    graph = cell()

    def used() -> int:
        with dg.compile(graph, bare_vulkan) as pipeline, dg.compile(graph, bare_vulkan) as other:
            pipeline.feed(pipeline.bind("h", H0), "state")
            outputs = pipeline.dispatch_resident_outputs({"x": X[0]})
            other.dispatch_resident({"x": X[0], "h": outputs[0]})
            pipeline.feed_rows(pipeline.handles["h"], "state", 0, 1)
            other.clone().close()
        del pipeline, other, outputs
        gc.collect()
        return bare_vulkan.memory().used

    first = used()
    assert [used() for _ in range(5)] == [first] * 5


def test_steady_runs_take_no_memory_of_the_device(bare_vulkan: VulkanDevice) -> None:
    with dg.compile(cell(), bare_vulkan) as pipeline:
        handle = pipeline.bind("h", H0)
        pipeline.feed(handle, "state")

        def used() -> int:
            for x in X[:4]:
                pipeline.dispatch_resident({"x": x}, ["total"])
                pipeline.feed_rows(handle, "state", 0, 1)
                for output in pipeline.dispatch_resident_outputs({"x": x}):
                    pipeline.free(output)
            return bare_vulkan.memory().used

        first = used()
        assert [used() for _ in range(5)] == [first] * 5
        with pytest.raises(GraphError, match="the input 'x' has no values"):
            pipeline.dispatch_resident_outputs({})
        assert used() == first


def _bytes(results: dict[str, HostArray]) -> dict[str, bytes]:
    return {title: array.tobytes() for title, array in results.items()}


@pytest.mark.parametrize("call", ["dispatch", "into", "resident", "batched", "timed"])
def test_rows_are_those_of_the_latest_run_whatever_came_back_of_it(device: Device, call: str) -> None:
    """Results that come back may be written where the host reads them, and nowhere else."""
    b = dg.Builder("rows")
    x, held = b.input("x", (4, 3)), b.input("held", (4, 3))
    graph = b.graph(y=x * 2.0, z=dg.tanh(x), shown=held)
    state, zeros = normal(4, 3), np.zeros((4, 3), np.float32)
    with dg.compile(graph, device) as pipeline:
        handle = pipeline.bind("held", state)
        for x in (normal(4, 3), normal(4, 3)):
            inputs: dict[str, HostArray] = {"x": x, "held": zeros}
            if call == "dispatch":
                pipeline.dispatch(inputs)
            elif call == "into":
                pipeline.dispatch_into(inputs, {"y": np.empty((4, 3), np.float32)})
            elif call == "resident":
                pipeline.dispatch_resident({"x": x}, ["z"])
            elif call == "batched":
                pipeline.dispatch_batched([{"x": zeros, "held": zeros}, inputs])
            else:
                pipeline.dispatch_timed(inputs)
            expected = dg.evaluate(graph, inputs)
            for title in ("y", "z"):
                assert pipeline.read_row(title, 2).tobytes() == expected[title][2].tobytes()
                pipeline.feed_rows(handle, title, 1, 3)
                state[3] = expected[title][1]
                assert pipeline.read(handle).tobytes() == state.tobytes()
            assert pipeline.dispatch_resident({"x": x}, ["shown"])["shown"].tobytes() == state.tobytes()


def test_rows_of_a_run_that_nobody_waited_for_are_its_own(device: Device) -> None:
    b = dg.Builder("late")
    graph = b.graph(y=b.input("x", (4, 3)) * 2.0)
    first, second = normal(4, 3), normal(4, 3)
    with dg.compile(graph, device, slots=1) as pipeline:
        pipeline.dispatch({"x": first})
        with pytest.raises(DashiError):
            pipeline.dispatch_into({"x": second}, {"y": np.empty(5, np.float32)})  # of another shape: not read
        assert pipeline.read_row("y", 0).tobytes() == (second * 2)[0].tobytes()
        assert pipeline.dispatch({"x": first})["y"].tobytes() == (first * 2).tobytes()
