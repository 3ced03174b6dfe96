"""The class `device`: products in the device's own order, on matrix units where asked for; and what says so."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

from dashi import graph as dg
from dashi import kernels
from dashi.errors import GraphError
from dashi.graph.passes.choose_products import ChooseProducts, product_passes
from dashi.kernels.expressions import arguments, maximum
from dashi.kernels.linear._products import FAST_BOUND
from dashi.runtime._cpu_device import CpuDevice
from dashi.runtime.device import Device
from dashi.types import HostArray

RNG = np.random.default_rng(11)


def numbers(*shape: int) -> Any:
    return RNG.standard_normal(shape).astype(np.float32)


def model() -> dg.Graph:
    """A plain product, one with a tail that reads its result's place, and a batch of them."""
    b = dg.Builder("products")
    x, w, bias = b.input("x", (2, 16, 70)), b.param("w", numbers(64, 70)), b.param("bias", numbers(64))
    plain = x @ w.transpose()
    wide = dg.relu(plain @ b.param("u", numbers(64, 48)) + b.param("more", numbers(48)))
    scores = dg.softmax(plain + bias) @ plain.transpose(0, 2, 1)
    return b.graph(plain=plain, wide=wide, scores=scores)


def exact(graph: dg.Graph, inputs: dict[str, HostArray]) -> dict[str, Any]:
    """Results in fp64, but for what the softmax rounds."""
    x, w, u, more = (
        np.asarray(v, np.float64) for v in (inputs["x"], graph.params["w"], graph.params["u"], graph.params["more"])
    )
    plain = x @ w.T
    return {"plain": plain, "wide": np.maximum(plain @ u + more, 0)}


def difference(result: HostArray, expected: Any) -> float:
    return float(np.linalg.norm(np.asarray(result, np.float64) - expected) / np.linalg.norm(expected))


def test_products_of_the_device_class_are_near_the_exact_ones_and_repeat(device: Device) -> None:
    graph, inputs = model(), {"x": numbers(2, 16, 70)}
    with dg.compile(graph, device, class_="device") as pipeline:
        results, again = pipeline.dispatch(inputs), pipeline.dispatch(inputs)
        report = pipeline.report()
    assert all(results[title].tobytes() == again[title].tobytes() for title in results)
    for title, expected in exact(graph, inputs).items():
        assert difference(results[title], expected) < FAST_BOUND
    assert difference(results["scores"], dg.evaluate(graph, inputs)["scores"]) < 1e-5  # a softmax between two products
    assert {"gemm_fast", "product_fast"} <= report.kernels.keys()
    assert set(report.matmul_choices) == {
        name for name, place in report.places.items() if "product" in place or "gemm" in place
    }
    assert all("any order of summation" in why for why in report.matmul_choices.values())
    assert not any(note.startswith("product") for note in report.rewrites)


def test_the_report_says_how_portable_products_are_computed(vulkan: Device) -> None:
    graph = model()
    with dg.compile(graph, vulkan) as pipeline:
        report = pipeline.report()
    assert len(report.matmul_choices) == 3
    for how in report.matmul_choices.values():
        assert "workgroups; " in how
        assert how.endswith("sums in the order tree64")
    assert report.as_dict()["matmul_choices"] == report.matmul_choices


def test_classes_have_program_ids_of_their_own() -> None:
    graph = model()
    ids = {dg.program_id(graph), dg.program_id(graph, "device"), dg.program_id(graph, "device", matmul="coop")}
    assert len(ids) == 3


def test_a_portable_pipeline_refuses_products_in_any_order() -> None:
    with (
        CpuDevice() as device,
        pytest.raises(GraphError, match=r"is not portable, the graph is. Fix: compile with class_"),
    ):
        dg.compile(model(), device, passes=(*dg.PASSES, ChooseProducts("fast")))


def test_matrix_units_multiply_halves_where_results_are_whole_squares() -> None:
    graph, inputs = model(), {"x": numbers(2, 16, 70)}
    with CpuDevice() as device, dg.compile(graph, device, class_="device", matmul="coop") as pipeline:
        results, report = pipeline.dispatch(inputs), pipeline.report()
        assert report.kernels["gemm_coop"] == 2
        reasons = sorted(why.rsplit(": ", 1)[1] for why in report.matmul_choices.values())
        assert sum("as asked for" in why for why in reasons) == 2
        assert sum("need two matrices as they lie in memory" in why for why in reasons) == 1
        for title, expected in exact(graph, inputs).items():
            assert FAST_BOUND < difference(results[title], expected) < 2e-3  # halves have 11 bits
        twice: Any = np.asarray(graph.params["w"]) * np.float32(2)  # pyright: ignore[reportOperatorIssue]
        pipeline.set_param("w", twice)
        assert pipeline.param("w").tobytes() == twice.tobytes()
        doubled = np.asarray(pipeline.dispatch(inputs)["plain"], np.float64)
        assert difference(results["plain"], doubled / 2) < 1e-6


def test_what_cannot_be_asked_of_products_is_an_error(vulkan: Device) -> None:
    graph = model()
    with pytest.raises(GraphError, match=r"not portable. Fix: compile with class_=\"device\""):
        dg.compile(graph, vulkan, matmul="coop")
    with pytest.raises(GraphError, match=r"there is no matmul='fast'. Fix: leave it away"):
        dg.compile(graph, vulkan, class_="device", matmul=cast("Any", "fast"))
    if "coop_matrix" not in vulkan.features:
        with pytest.raises(GraphError, match=r"needs coop_matrix.* lacks. Fix: leave it away here"):
            dg.compile(graph, vulkan, class_="device", matmul="coop")


def test_translating_drivers_start_with_scalar_products_of_the_same_bits(device: Device) -> None:
    moltenvk = cast(
        "Any", SimpleNamespace(info=SimpleNamespace(driver="MoltenVK", name="Apple M1"), features=frozenset())
    )
    assert product_passes(moltenvk, "portable", None) == (ChooseProducts("scalar"),)
    assert product_passes(device, "portable", None) == ()
    graph, inputs = model(), {"x": numbers(2, 16, 70)}
    expected = dg.evaluate(graph, inputs)
    with dg.compile(graph, device, passes=(*dg.PASSES, ChooseProducts("scalar"))) as pipeline:
        assert pipeline.report().kernels["gemm_scalar"] == 1
        results = pipeline.dispatch(inputs)
    assert all(results[title].tobytes() == expected[title].tobytes() for title in expected)


@pytest.mark.parametrize(("m", "k", "n"), [(1, 1, 1), (5, 130, 67), (70, 64, 132), (17, 4100, 20)])
def test_fast_products_with_tails_are_within_their_bound_under_all_tunings(
    m: int, k: int, n: int, device: Device
) -> None:
    value, bias = arguments("value bias")
    kernel = kernels.fuse_product(maximum(value + bias, 0.0), portable=False)
    assert (kernel.portable, kernel.bound) == (False, FAST_BOUND)
    a, b, c = numbers(m, k), numbers(k, n), np.abs(numbers(n)) + np.float32(4)
    expected = np.maximum(a.astype(np.float64) @ b + c, 0)
    arrays = [device.array(x) for x in (a, b, c)]
    for tuning in kernel.tunings:
        step = device.bind(kernel, *arrays, tuning=tuning)
        device.program([step]).run()
        assert difference(step.outputs[0].numpy(), expected) < FAST_BOUND, tuning
