"""Compiled pipelines: every call gives the same bits, from any thread, on every device."""

from __future__ import annotations

import gc
import re
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest

import dashi
from dashi import graph as dg
from dashi.errors import ClosedError, GraphError, LimitError, NoResultError
from dashi.graph.op import Launch
from dashi.graph.registry import all_ops
from dashi.runtime._vulkan_device import VulkanDevice
from dashi.runtime.device import Device
from dashi.types import HostArray

RNG = np.random.default_rng(1)
WEIGHTS = RNG.standard_normal((6, 4)).astype(np.float32)


def model(rows: int = 3) -> dg.Graph:
    """Two parts for the device, and between them a step of the host: no kernel adds integers at places."""
    b = dg.Builder("model")
    x = b.input("x", (rows, 4))
    parts = dg.cast(dg.softmax(x @ b.param("w", WEIGHTS).transpose()) * 1000.0, "i32")
    index = b.constant(np.array([1, 0] + [1] * (rows - 2), np.uint32))
    picked = dg.scatter_add(b.constant(np.zeros((2, 6), np.int32)), index, parts)
    return b.graph(y=dg.tanh(dg.cast(picked, "f32")) * 2.0, shown=x)


def values(seed: int = 0, rows: int = 3) -> dict[str, HostArray]:
    return {"x": np.random.default_rng(seed).standard_normal((rows, 4)).astype(np.float32)}


def test_every_call_gives_the_bits_of_the_uncompiled_run(device: Device) -> None:
    expected = dg.evaluate(model(), values())
    with dg.compile(model(), device) as pipeline:
        assert pipeline.dispatch(values())["y"].tobytes() == expected["y"].tobytes()
        out = {"y": np.empty((2, 6), np.float32)}
        pipeline.dispatch_into(values(), out)
        assert out["y"].tobytes() == expected["y"].tobytes()
        results, timing = pipeline.dispatch_timed(values())
        assert results["y"].tobytes() == expected["y"].tobytes()
        assert timing.wall >= timing.wait > 0
        batch = pipeline.dispatch_batched([values(seed) for seed in range(11)])
        for seed, result in enumerate(batch):
            assert result["y"].tobytes() == dg.evaluate(model(), values(seed))["y"].tobytes()


def test_threads_share_a_pipeline(device: Device) -> None:
    expected = [dg.evaluate(model(), values(seed))["y"].tobytes() for seed in range(24)]
    with dg.compile(model(), device, slots=2) as pipeline, ThreadPoolExecutor(6) as pool:
        results = pool.map(lambda seed: pipeline.dispatch(values(seed))["y"].tobytes(), range(24))
        assert list(results) == expected


def test_params_are_set_without_compiling_again(device: Device) -> None:
    other = RNG.standard_normal((6, 4)).astype(np.float32)
    with dg.compile(model(), device) as pipeline:
        pipeline.dispatch(values())
        pipeline.set_param("w", other)
        expected = dg.evaluate(model(), values(), {"w": other})["y"]
        assert pipeline.dispatch(values())["y"].tobytes() == expected.tobytes()
        assert pipeline.param("w").tobytes() == other.tobytes()
        with pytest.raises(GraphError, match=r"the param 'w' is f32\[6,4\]"):
            pipeline.set_param("w", other.T)
        with pytest.raises(GraphError, match="there is no param 'v'"):
            pipeline.set_param("v", other)


def test_params_of_compile_are_those_of_the_call_whatever_becomes_of_the_array(device: Device) -> None:
    passed = RNG.standard_normal((6, 4)).astype(np.float32)
    before = passed.copy()
    with dg.compile(model(), device, params={"w": passed}) as pipeline:
        passed[:] = 7
        assert pipeline.param("w").tobytes() == before.tobytes()
        expected = dg.evaluate(model(), values(), {"w": before})["y"]
        assert pipeline.dispatch(values())["y"].tobytes() == expected.tobytes()


def test_the_report_counts_what_was_recorded(vulkan: Device) -> None:
    with dg.compile(model(), vulkan) as pipeline:
        report = pipeline.report()
        assert report.kernels == {"matmul": 1, "softmax": 1, "cast_f32_to_i32": 1, "cast_i32_to_f32": 1, "fused": 2}
        (name,) = report.host_steps
        assert "no kernel computes put" in report.host_steps[name]
        assert report.places[name] == "host"
        assert report.dispatches == 6
        assert report.longest_chain == 6  # all but the copy of x, and the host's step
        assert report.arena_bytes >= report.liveness_bytes > 0
        assert report.as_dict()["program_id"] == pipeline.program_id
        assert "longest chain" in str(report)


def test_independent_branches_have_no_barrier_between_them(vulkan: Device) -> None:
    b = dg.Builder("branches")
    x, y = b.input("x", (64, 64)), b.input("y", (64, 64))
    with dg.compile(b.graph(u=dg.tanh(x), v=dg.exp(y)), vulkan) as both:
        with dg.compile(b.graph(u=dg.tanh(x)), vulkan) as alone:
            assert both.report().barriers == alone.report().barriers
            assert both.report().barriers_avoided > alone.report().barriers_avoided
            batches = both._recorded.program.schedule()  # pyright: ignore[reportPrivateUsage]
            commands = sum(len(batch.commands) - 1 for batch in batches)
            assert both.report().barriers + both.report().barriers_avoided == commands
        both.check()


def test_the_program_id_is_the_same_everywhere_and_knows_the_definitions() -> None:
    ids: list[tuple[str, str]] = []
    for name in ("cpu", "null"):
        with dashi.open(name) as device, dg.compile(model(), device) as pipeline:
            ids.append((pipeline.program_id, pipeline.id))
    assert ids[0][0] == ids[1][0] == dg.program_id(model())
    assert (ids[0][1][:4], ids[1][1][:5]) == ("cpu:", "null:")
    assert dg.program_id(model()) != dg.program_id(model(2))
    assert dg.program_id(model()) != dg.program_id(model(), "device")
    code = (
        "import numpy as np; from dashi import graph as dg; b = dg.Builder('other'); x = b.input('x', (3, 4));"
        "h = dg.softmax(x @ b.param('w', np.zeros((6, 4), np.float32)).transpose());"
        "parts = dg.cast(h * 1000.0, 'i32'); index = b.constant(np.array([1, 0, 1], np.uint32));"
        "picked = dg.scatter_add(b.constant(np.zeros((2, 6), np.int32)), index, parts);"
        "print(dg.program_id(b.graph(y=dg.tanh(dg.cast(picked, 'f32')) * 2.0, shown=x)))"
    )
    printed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert printed.strip() == dg.program_id(model())


def test_ids_are_those_of_earlier_versions_unless_a_definition_or_a_kernel_changed() -> None:
    assert dg.program_id(model()) == "fa8734cdb7198ff84a441605843d866813ab427a3238d8b2ecde091d97f56892"
    assert dg.program_id(model(), "device") == "5054e129a0dfadbf57afb8aace06ce7a92831a5569a3985994d2e66f066cebe5"
    b = dg.Builder("golden")
    with dashi.open("null") as null, dg.compile(b.graph(y=dg.relu(b.input("x", (3, 4)))), null) as pipeline:
        assert pipeline.program_id == "dbab5bbae3fc950fe73f49250501a515a6284449bca489ec93763d40a3d32b17"
        assert pipeline.id == "null:3c00b9a1e02d20b7cf9dfb0d1dde7a5a"


def test_the_id_knows_the_tunings(monkeypatch: pytest.MonkeyPatch) -> None:
    with dashi.open("null") as null:
        with dg.compile(model(), null) as pipeline:
            usual, tunings = pipeline.id, dashi.kernels.get("matmul").tunings
        ids = {usual}
        for name in tunings:
            monkeypatch.setenv("DASHI_TUNINGS", f"matmul={name}")
            with dg.compile(model(), null) as pipeline:
                ids.add(pipeline.id)
                assert pipeline.program_id == dg.program_id(model())
        assert len(ids) == len(tunings) > 1


def test_the_null_device_records_all_of_it() -> None:
    with dashi.open("null") as null, dg.compile(model(), null) as pipeline:
        pipeline.check()
        assert pipeline.report().dispatches == 6
        with pytest.raises(NoResultError):
            pipeline.dispatch(values())


def test_wrong_use_is_an_error_with_a_fix(device: Device) -> None:
    pipeline = dg.compile(model(), device)
    with pytest.raises(GraphError, match="the input 'x' has no values"):
        pipeline.dispatch({})
    with pytest.raises(GraphError, match="there is no result 'z'"):
        pipeline.dispatch_into(values(), {"z": np.empty(3, np.float32)})
    with pytest.raises(GraphError, match="item 1 of the batch: the input 'x' has no values"):
        pipeline.dispatch_batched([values(), {}, values()])
    assert pipeline.dispatch(values())["y"].shape == (2, 6)
    pipeline.close()
    pipeline.close()
    with pytest.raises(ClosedError, match="the pipeline 'model' is closed"):
        pipeline.dispatch(values())
    with pytest.raises(GraphError, match="there is no class 'fast'"):
        dg.compile(model(), device, class_="fast")  # pyright: ignore[reportArgumentType]


def test_a_portable_pipeline_refuses_a_kernel_that_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    b = dg.Builder("fast")
    graph = b.graph(y=b.input("x", (4, 4)) @ b.input("z", (4, 4)))
    fast = Launch(dashi.kernels.get("gemm_fast"), ((4, 4), (4, 4)), (4, 4))
    monkeypatch.setitem(all_ops(), "product", replace(all_ops()["product"], launch=lambda node, types: fast))
    with dashi.open("null") as null:
        with pytest.raises(GraphError, match="'gemm_fast' is not portable, the graph is"):
            dg.compile(graph, null)
        with dg.compile(graph, null, class_="device") as pipeline:
            assert pipeline.report().kernels == {"gemm_fast": 1}


def test_pipelines_that_are_closed_and_forgotten_give_their_memory_back(bare_vulkan: VulkanDevice) -> None:
    graph = model()

    def used() -> int:
        with dg.compile(graph, bare_vulkan) as pipeline:
            pipeline.dispatch(values())
        del pipeline
        gc.collect()
        return bare_vulkan.memory().used

    first = used()
    assert [used() for _ in range(10)] == [first] * 10


def test_values_beyond_a_binding_are_refused_by_name(vulkan: Device) -> None:
    b = dg.Builder("large")
    x = b.input("x", (vulkan.limits.storage_range // 4 + 1,))
    with pytest.raises(LimitError, match=r"the result 'y' \(f32"):
        dg.compile(b.graph(y=x + 1.0), vulkan)


def test_empty_values_and_scalars_run(device: Device) -> None:
    b = dg.Builder("edges")
    x, s = b.input("x", (0, 4)), b.input("s", ())
    w = b.param("w", WEIGHTS.T.copy())
    graph = b.graph(y=dg.tanh(x @ w), z=s * 2.0, t=dg.sum_(x, 0))
    inputs = {"x": np.empty((0, 4), np.float32), "s": np.asarray(-0.0, np.float32)}
    with dg.compile(graph, device) as pipeline:
        results = pipeline.dispatch(inputs)
    assert results["y"].shape == (0, 6)
    assert results["z"].tobytes() == np.float32(0).tobytes()
    assert results["t"].tobytes() == np.zeros(4, np.float32).tobytes()


WIDE: dict[str, Callable[[dg.Builder, dg.Tensor], dg.Tensor]] = {
    "sum": lambda b, x: dg.sum_(x, (0, 2, 4, 6)),
    "sum with a tail": lambda b, x: dg.sum_(x * 2.0, (0, 2, 4, 6), keepdims=True) + 1.0,
    "softmax": lambda b, x: dg.softmax(x.transpose(6, 5, 4, 3, 2, 1, 0, 7)),
    "product": lambda b, x: x.transpose(5, 4, 3, 2, 1, 0, 6, 7) @ b.param("w", np.eye(2, dtype=np.float32) * 3),
    "attention": lambda b, x: dg.attention(*[b.input("t", (2,) * 9).transpose()] * 3, scale=1.0),
    "stretched": lambda b, x: b.input("y", (2, 1, 2, 1, 2, 1, 2, 2)) @ b.input("z", (1, 2, 1, 2, 1, 2, 2, 2)),
}


@pytest.mark.parametrize("name", WIDE)
def test_more_axes_than_kernels_walk_are_the_hosts(name: str, device: Device) -> None:
    b = dg.Builder("wide")
    x = b.input("x", (2,) * 8)
    graph = b.graph(y=WIDE[name](b, x))
    inputs = {n.name: RNG.standard_normal(n.shape).astype(np.float32) for n in graph.of("input")}
    expected = dg.evaluate(graph, inputs)["y"]
    with dg.compile(graph, device) as pipeline:
        assert pipeline.dispatch(inputs)["y"].tobytes() == expected.tobytes()
        (reason,) = pipeline.report().host_steps.values()
        assert re.match("no kernel computes (rows|product|map) of these shapes", reason)


def test_results_are_canonical_also_where_nothing_is_computed(device: Device) -> None:
    b = dg.Builder("moves")
    x = b.input("x", (2, 2))
    parts = dg.concat([x, x.transpose()])
    graph = b.graph(same=x, turned=x.transpose(), joined=parts, again=parts, flat=parts.reshape(8))
    inputs = {"x": np.array([[-0.0, 1e-40], [np.nan, 1.0]], np.float32)}
    expected = dg.evaluate(graph, inputs)
    assert expected["same"].view(np.uint32)[0, 0] == 0
    with dg.compile(graph, device) as pipeline:
        results = pipeline.dispatch(inputs)
    assert {k: v.tobytes() for k, v in results.items()} == {k: v.tobytes() for k, v in expected.items()}
