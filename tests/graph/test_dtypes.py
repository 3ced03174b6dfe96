"""Every element type: compares, selection, casts and copies on the device, with the bits of the uncompiled run."""

from __future__ import annotations

import numpy as np
import pytest

from dashi import graph as dg
from dashi.errors import GraphError
from dashi.runtime.device import Device
from dashi.types import HostArray
from dashi.types import dtype as dtype_of

KINDS = ("f32", "f64", "i32", "u32", "i64", "u64", "f16", "i16", "u16", "i8", "u8", "bool", "bf16")
AWKWARD = (np.nan, np.inf, -np.inf, -0.0, 1e-45, 3e9, -3e9, 0.5)


def any_values(kind: str) -> HostArray:
    rng, numpy = np.random.default_rng(4), dtype_of(kind).numpy
    if numpy.kind == "f":
        values = rng.standard_normal((3, 5)) * 50
        values.reshape(-1)[: len(AWKWARD)] = AWKWARD
        with np.errstate(all="ignore"):
            return values.astype(numpy)
    if numpy.kind == "b":
        return rng.random((3, 5)) < 0.5
    limits = np.iinfo(str(numpy))
    return rng.integers(limits.min, limits.max, (3, 5), dtype=np.dtype(str(numpy)), endpoint=True)


@pytest.mark.parametrize("kind", KINDS)
def test_elements_of_every_type_are_moved_compared_chosen_and_cast_on_the_device(kind: str, device: Device) -> None:
    b = dg.Builder("types")
    x = b.input("x", (3, 5), kind)
    turned = x.transpose().reshape(3, 5)
    results = {f"to_{other}": dg.cast(x, other) for other in KINDS}
    results |= {"turned": x.transpose(), "same": x, "equal": dg.equal(x, turned)}
    graph = b.graph(**results, chosen=dg.where(dg.less(x, turned), x, turned))
    inputs = {"x": any_values(kind)}
    expected = dg.evaluate(graph, inputs)
    with dg.compile(graph, device) as pipeline:
        assert pipeline.report().host_steps == {}
        computed = pipeline.dispatch(inputs)
    assert {n: v.tobytes() for n, v in computed.items()} == {n: v.tobytes() for n, v in expected.items()}


def test_truth_values_are_constants_of_formulas(device: Device) -> None:
    b = dg.Builder("truth")
    x, yes = b.input("x", (3,)), b.constant(True)
    no = b.constant(np.zeros(3, np.bool_))
    graph = b.graph(y=dg.where(yes, x, x * 2.0), z=dg.where(dg.equal(dg.less(x, 0.0), no), x, 5.0))
    inputs = {"x": np.array([-1, 0, 1], np.float32)}
    with dg.compile(graph, device) as pipeline:
        results = pipeline.dispatch(inputs)
        assert pipeline.report().host_steps == {}
    assert (results["y"].tolist(), results["z"].tolist()) == ([-1, 0, 1], [5, 0, 1])


def test_constants_that_no_float_holds_are_exact(device: Device) -> None:
    large = 2**60 + 1
    b = dg.Builder("large")
    graph = b.graph(y=dg.maximum(b.input("x", (2,), "u32"), 5), z=dg.equal(b.input("i", (2,), "i64"), large))
    inputs = {"x": np.array([1, 9], np.uint32), "i": np.array([large, large - 1], np.int64)}
    with dg.compile(graph, device) as pipeline:
        results = pipeline.dispatch(inputs)
    assert (results["y"].tolist(), results["z"].tolist()) == ([5, 9], [True, False])


@pytest.mark.parametrize("kind", ["bf16", "f16"])
def test_narrow_floats_are_rounded_by_definitions_as_by_pipelines(kind: str, device: Device) -> None:
    b = dg.Builder("narrow")
    x = b.input("x", (3, 5), kind)
    unary = (dg.gelu, dg.exp, dg.mish, dg.sqrt, lambda v: dg.cumsum(v, 1), lambda v: dg.softmax(v, 0))
    results = {f"u{k}": op(x) for k, op in enumerate(unary)}
    results |= {"sum": dg.sum_(x, (1,)), "most": dg.max_(x, (0,)), "mean": dg.mean(x, (0, 1)), "fma": dg.fma(x, x, x)}
    graph = b.graph(**results, power=dg.power(x, x), chain=x * x + x / 3.0)
    assert {node.dtype for node in graph.nodes} == {dtype_of(kind)}
    inputs = {"x": np.random.default_rng(4).standard_normal((3, 5)).astype(dtype_of(kind).numpy)}
    expected = dg.evaluate(graph, inputs)
    assert all(values.tobytes() == rounded(values, kind).tobytes() for values in expected.values())
    with dg.compile(graph, device) as pipeline:
        computed = pipeline.dispatch(inputs)
    assert {n: v.tobytes() for n, v in computed.items()} == {n: v.tobytes() for n, v in expected.items()}


def rounded(values: HostArray, kind: str) -> HostArray:
    """Values as a type holds them."""
    return dtype_of(kind).from_bytes(dtype_of(kind).to_stored(values)).reshape(values.shape)


def test_constants_and_params_of_bf16_are_rounded_once_and_printed_as_they_are(device: Device) -> None:
    b = dg.Builder("constants")
    x = b.input("x", (3,), "bf16")
    listed = b.constant(np.array([0.1, 1, np.inf], np.float32), "bf16")
    folded = dg.sqrt(b.constant(0.1, "bf16"))
    graph = b.graph(y=x * 0.1 + listed, z=dg.maximum(x, folded), w=dg.where(dg.less(x, 0.5), x, 2.0))
    assert 'constant {data="zT2AP4B/"} : bf16[3]' in str(graph)
    assert "constant {value=0.10009765625} : bf16[]" in str(graph)
    assert dg.parse_graph(str(graph)) == graph
    stored = dg.parse_graph(
        "graph g\n%x = input : bf16[3]\n%w = param : bf16[3]\n%y = add %x %w : bf16[3]\nreturn y=%y"
    )
    inputs, params = (
        {name: np.array(values, np.float32)} for name, values in (("x", [0.3, 0.7, -2.01]), ("w", [0.1, 1e-3, 5]))
    )
    expected = {**dg.evaluate(graph, inputs), "sum": dg.evaluate(stored, inputs, params)["y"]}
    with dg.compile(graph, device) as first, dg.compile(stored, device, params=params) as second:
        computed = {**first.dispatch(inputs), "sum": second.dispatch(inputs)["y"]}
    assert {n: v.tobytes() for n, v in computed.items()} == {n: v.tobytes() for n, v in expected.items()}


def test_a_number_that_no_bf16_is_cannot_be_a_constant() -> None:
    with pytest.raises(GraphError, match=r"is 0\.1, which no bfloat16 is"):
        dg.parse_graph("graph g\n%c = constant {value=0.1} : bf16[2]\nreturn y=%c")
