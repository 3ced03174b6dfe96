"""Packed params: products and gathers read them packed, with the bits of the widened numbers."""

from __future__ import annotations

import re

import numpy as np
import pytest

from dashi import graph as dg
from dashi.errors import GraphError
from dashi.kernels.packed import FORMATS, dequantize, repack
from dashi.kernels.packed._other_formats import OTHER_FORMATS
from dashi.kernels.packed._products import random_blocks
from dashi.kernels.portable import canon, contract, tanh
from dashi.runtime.device import Device
from dashi.types import HostArray

RNG = np.random.default_rng(4)


def weights(name: str, n: int, k: int, seed: int = 0) -> HostArray:
    """Bytes of n rows of k weights, special scales among them."""
    return random_blocks(FORMATS[name], np.random.default_rng(seed), n, k)


def product(name: str, shape: tuple[int, ...], n: int, data: HostArray) -> dg.Graph:
    b = dg.Builder("packed")
    x = b.input("x", shape)
    return b.graph(y=x @ b.packed_param("w", name, (n, shape[-1]), data).transpose())


@pytest.mark.parametrize("name", FORMATS)
def test_a_product_is_that_of_fp32_with_the_dequantised_weights_and_stays_packed(name: str, device: Device) -> None:
    unit = FORMATS[name].length
    for k, m in ((3 * max(unit, 32) + (unit == 1), 1), (max(unit, 32), 3), (5 * max(unit, 32), 17)):
        data = weights(name, 9, k)
        x = RNG.standard_normal((m, k)).astype(np.float32)
        expected = canon(contract(x, canon(dequantize(name, data)).T))
        graph = product(name, (m, k), 9, data)
        assert dg.evaluate(graph, {"x": x})["y"].tobytes() == expected.tobytes()
        assert dg.evaluate(dg.run_passes(graph), {"x": x})["y"].tobytes() == expected.tobytes()
        with dg.compile(graph, device) as pipeline:
            assert pipeline.dispatch({"x": x})["y"].tobytes() == expected.tobytes()
            report = pipeline.report()
            assert (report.kernels, report.host_steps, report.widened) == ({f"matmul_{name.lower()}": 1}, {}, {})
            assert report.stored_bytes == repack(name, data).nbytes


@pytest.mark.parametrize("name", FORMATS)
def test_rows_are_multiplied_with_the_packed_matrices_of_their_groups(name: str, device: Device) -> None:
    unit = max(32, FORMATS[name].length)
    m, groups, n, k = 6, 3, 5, 3 * unit
    data = weights(name, groups * n, k)
    b = dg.Builder("experts")
    x, group = b.input("x", (m, k)), b.input("group", (m,), "u32")
    w = b.packed_param("w", name, (groups, n, k), data)
    graph = b.graph(y=dg.tanh(dg.grouped_matmul(x, w.transpose(0, 2, 1), group)))
    values = {"x": RNG.standard_normal((m, k)).astype(np.float32), "group": np.array([2, 0, 3, 1, 2, 1], np.uint32)}
    numbers = canon(dequantize(name, data)).reshape(groups, n, k)
    alone = [canon(contract(row[None], numbers[g].T)) if g < groups else np.zeros((1, n), np.float32)
             for row, g in zip(values["x"], values["group"].tolist(), strict=True)]  # fmt: skip
    expected = tanh(np.concatenate(alone))
    assert dg.evaluate(graph, values)["y"].tobytes() == expected.tobytes()
    assert dg.evaluate(dg.run_passes(graph), values)["y"].tobytes() == expected.tobytes()
    for passes in (dg.PASSES, dg.UNFUSED):
        with dg.compile(graph, device, passes=passes) as pipeline:
            assert pipeline.dispatch(values)["y"].tobytes() == expected.tobytes()
            report = pipeline.report()
            if passes is dg.PASSES:
                assert (report.kernels[f"grouped_{name.lower()}"], report.host_steps, report.widened) == (1, {}, {})
                assert report.stored_bytes == repack(name, data).nbytes
            if name == "Q4_K":
                pipeline.set_param("w", data[::-1].tobytes())
                turned = pipeline.dispatch({**values, "group": 2 - values["group"].clip(0, 2)})["y"]
                assert turned[[0, 1, 3, 4, 5]].tobytes() == expected[[0, 1, 3, 4, 5], ::-1].tobytes()


def test_a_row_has_the_same_bits_in_every_batch(device: Device) -> None:
    data = weights("Q4_K", 5, 512)
    x = RNG.standard_normal((33, 512)).astype(np.float32)
    x[7] = np.nan
    with dg.compile(product("Q4_K", (33, 512), 5, data), device) as pipeline:
        whole = pipeline.dispatch({"x": x})["y"]
    for rows in (1, 8, 16):
        with dg.compile(product("Q4_K", (rows, 512), 5, data), device) as pipeline:
            assert pipeline.dispatch({"x": x[:rows]})["y"].tobytes() == whole[:rows].tobytes()


def model(data: HostArray) -> dg.Graph:
    """Rows of a table that is also the last factor of a product; batches, views, and tails that read other values."""
    b = dg.Builder("tied")
    w = b.packed_param("w", "Q5_0", (7, 64), data)
    index, bias = b.input("index", (2, 3), "u32"), b.param("bias", np.arange(7, dtype=np.float32))
    x = dg.gather(w, index)
    hidden = dg.tanh(x) * 0.5 + x
    turned = hidden.transpose(1, 0, 2)
    return b.graph(
        y=dg.relu(hidden @ w.transpose() + bias),
        z=turned @ w.transpose(),
        same=hidden.reshape(6, 64) @ w.transpose(),
        picked=dg.gather(w, index.transpose()),
    )


def test_a_table_that_is_a_factor_too_is_stored_once(device: Device) -> None:
    data = weights("Q5_0", 7, 64)
    graph = model(data)
    index = {"index": np.array([[0, 6, 7], [2, 0xFFFFFFFF, 1]], np.uint32)}
    expected = dg.evaluate(graph, index)
    numbers = canon(dequantize("Q5_0", data))
    assert expected["picked"][0, 0].tobytes() == numbers[0].tobytes()
    assert not expected["picked"][2, 0].any()
    lowered = dg.run_passes(graph)
    assert [node.op for node in lowered.nodes].count("tiles") == 1
    for title, values in dg.evaluate(lowered, index).items():
        assert values.tobytes() == expected[title].tobytes()
    with dg.compile(graph, device) as pipeline:
        for title, values in pipeline.dispatch(index).items():
            assert values.tobytes() == expected[title].tobytes(), title
        assert pipeline.report().host_steps == {}
        assert pipeline.report().kernels["gather_q5_0"] == 2


def test_bytes_are_set_anew_and_read_back(device: Device) -> None:
    first, second = weights("Q4_1", 3, 96), weights("Q4_1", 3, 96, seed=1)
    x = {"x": RNG.standard_normal((2, 96)).astype(np.float32)}
    with dg.compile(product("Q4_1", (2, 96), 3, first), device) as pipeline:
        assert pipeline.param("w").tobytes() == first.tobytes()
        for data in (second, first.tobytes()):
            pipeline.set_param("w", data)
            expected = dg.evaluate(product("Q4_1", (2, 96), 3, np.frombuffer(bytes(data), np.uint8)), x)
            assert pipeline.param("w").tobytes() == bytes(data)
            assert pipeline.dispatch(x)["y"].tobytes() == expected["y"].tobytes()
        with pytest.raises(GraphError, match=r"the param 'w' is u8\[3,60\].*\s*Fix: pass an array of shape"):
            pipeline.set_param("w", b"123")


def test_what_no_kernel_reads_packed_is_widened_and_the_report_says_so(device: Device) -> None:
    data = weights("Q8_0", 4, 32)
    b = dg.Builder("other")
    w, x = b.packed_param("w", "Q8_0", (4, 32), data), b.input("x", (2, 4))
    graph = b.graph(y=x @ w, z=w * 2.0)
    values = {"x": RNG.standard_normal((2, 4)).astype(np.float32)}
    expected = dg.evaluate(graph, values)
    with dg.compile(graph, device) as pipeline:
        for title, got in pipeline.dispatch(values).items():
            assert got.tobytes() == expected[title].tobytes()
        (reason,) = pipeline.report().widened.values()
        assert reason == "map, product reads it otherwise than as rows of a product or a gather"
        assert f"widened: dequantize_0: {reason}" in str(pipeline.report())


@pytest.mark.parametrize("name", OTHER_FORMATS)
def test_a_format_that_no_kernel_reads_is_widened_when_it_is_set(name: str, device: Device) -> None:
    form = OTHER_FORMATS[name]
    k = max(64, form.length)
    data = np.frombuffer(np.random.default_rng(1).bytes(6 * form.row_bytes(k)), np.uint8)
    b = dg.Builder("other")
    w = b.packed_param("w", name, (6, k), data)
    graph = b.graph(y=b.input("x", (2, k)) @ w.transpose(), rows=dg.gather(w, b.input("index", (2,), "u32")))
    values = {"x": RNG.standard_normal((2, k)).astype(np.float32), "index": np.array([5, 6], np.uint32)}
    expected = dg.evaluate(graph, values)
    numbers = canon(dequantize(name, data.reshape(6, -1)))
    assert expected["y"].tobytes() == canon(contract(values["x"], numbers.T)).tobytes()
    with dg.compile(graph, device) as pipeline:
        for title, got in pipeline.dispatch(values).items():
            assert got.tobytes() == expected[title].tobytes()
        assert pipeline.report().host_steps == {}
        assert pipeline.report().widened == {"dequantize_0": f"no kernel reads {name}"}


def test_numbers_that_are_results_are_computed() -> None:
    data = weights("F16", 2, 5)
    b = dg.Builder("shown")
    graph = b.graph(w=b.packed_param("w", "F16", (2, 5), data))
    assert dg.evaluate(graph, {})["w"].tobytes() == canon(dequantize("F16", data)).tobytes()
    assert list(dg.host_steps(graph)) == ["dequantize_0"]


def test_the_text_form_names_the_format_and_goes_both_ways() -> None:
    graph = product("Q6_K", (1, 256), 2, weights("Q6_K", 2, 256))
    assert '%dequantize_0 = dequantize %w {format="Q6_K"} : f32[2,256]' in str(graph)
    assert dg.parse_graph(str(graph)) == graph
    lowered = dg.run_passes(graph)
    assert dg.parse_graph(str(lowered)) == lowered


def test_what_is_no_packed_param_is_refused_with_a_fix() -> None:
    b = dg.Builder("wrong")
    with pytest.raises(GraphError, match=r"the packed param 'w' has 3 elements of uint8\.\s*Fix: pass the 68 bytes of"):
        b.packed_param("w", "Q8_0", (2, 32), b"abc")
    with pytest.raises(GraphError, match=re.escape("u8[2,33] are no bytes in Q8_0.") + r"\s*Fix: pass uint8"):
        dg.dequantize(b.param("v", np.zeros((2, 33), np.uint8)), "q8_0")
    with pytest.raises(GraphError, match=r"the packed param 'u' has no rows\.\s*Fix: give the shape"):
        b.packed_param("u", "Q8_0", (), b"")
