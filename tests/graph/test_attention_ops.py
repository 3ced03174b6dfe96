"""Attention with all its operands, rotary embeddings and caches in graphs: the bits of NumPy on every device."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dashi import graph as dg
from dashi import kernels
from dashi.errors import GraphError
from dashi.runtime._vulkan_device import VulkanDevice
from dashi.runtime.device import Device
from dashi.types import HostArray

B, H, G, M, N, D = 2, 4, 2, 3, 70, 8
AWKWARD = (np.nan, np.inf, -np.inf, -0.0, 1e-40, 3e38)


def normal(*shape: int, seed: int = 0) -> HostArray:
    return np.random.default_rng([seed, *shape]).standard_normal(shape).astype(np.float32)


def same_on(device: Device, graph: dg.Graph, inputs: dict[str, HostArray]) -> dict[str, HostArray]:
    """The results, if every way to run the graph gives one and the same, and none of it on the host."""
    expected = dg.evaluate(graph, inputs)
    assert dg.parse_graph(str(graph)) == graph
    for passes in (dg.PASSES, dg.UNFUSED):
        with dg.compile(graph, device, passes=passes) as pipeline:
            assert pipeline.report().host_steps == {}
            got = pipeline.dispatch(inputs)
            assert {t: a.tobytes() for t, a in got.items()} == {t: a.tobytes() for t, a in expected.items()}
    return expected


def full_attention(heads_last: bool) -> dg.Graph:
    b = dg.Builder("full")

    def four(name: str, heads: int, rows: int) -> dg.Tensor:
        return b.input(name, (B, rows, heads, D) if heads_last else (B, heads, rows, D))

    y = dg.attention(
        four("q", H, M), four("k", G, N), four("v", G, N), b.input("mask", (B, H, 1, N), "bool"),
        bias=b.input("bias", (1, H, M, N)), lengths=b.input("lengths", (B,), "u32"),
        positions=b.input("positions", (B,), "u32"), causal=True, window=40, offset=2, scale=0.3, heads_last=heads_last,
    )  # fmt: skip
    return b.graph(y=y)


def full_inputs() -> dict[str, HostArray]:
    inputs: dict[str, HostArray] = {"q": normal(B, H, M, D), "k": normal(B, G, N, D, seed=1), "v": normal(B, G, N, D)}
    inputs["mask"] = np.random.default_rng(1).random((B, H, 1, N)) > 0.2
    inputs["bias"] = normal(1, H, M, N)
    inputs["bias"][0, 0, :, ::7] = -np.inf
    return inputs | {"lengths": np.array([60, 22], np.uint32), "positions": np.array([55, 20], np.uint32)}


def test_a_block_of_attention_is_its_parts_in_five_dispatches(device: Device) -> None:
    width, length = 12, 5
    names = {"wq": (width, H * D), "wk": (width, G * D), "wv": (width, G * D), "wo": (H * D, 10)}
    vectors = {"bq": H * D, "bk": G * D, "bo": 10}
    tables = dg.rope_tables(length, D)

    def build(turn: bool, *, whole: bool) -> dg.Graph:
        b = dg.Builder("block")
        x = b.input("x", (B, length, width))
        w = [b.param(name, normal(*shape)) for name, shape in names.items()]
        bq, bk, bo = (b.param(name, normal(n, seed=2)) for name, n in vectors.items())
        angles = tuple(b.param(name, table) for name, table in zip(("cos", "sin"), tables, strict=True))
        if whole:
            y = dg.attention_block(
                x, w, H, biases=(bq, bk, None, bo), tables=(angles[0], angles[1]) if turn else None, causal=True
            )
            return b.graph(y=y)
        q = (x @ w[0] + bq).reshape(B, length, H, D)
        k = (x @ w[1] + bk).reshape(B, length, G, D)
        if turn:
            q, k = (dg.rope(part, *angles, heads_last=True) for part in (q, k))
        v = (x @ w[2]).reshape(B, length, G, D)
        mixed = dg.attention(q, k, v, causal=True, heads_last=True)
        return b.graph(y=mixed.reshape(B, length, H * D) @ w[3] + bo)

    inputs = {"x": normal(B, length, width, seed=3)}
    for turn in (False, True):
        expected = dg.evaluate(build(turn, whole=False), inputs)["y"]
        assert same_on(device, build(turn, whole=True), inputs)["y"].tobytes() == expected.tobytes()
    lowered = dg.run_passes(build(False, whole=True))
    steps = dg.Schedule().run(lowered)
    assert (len(steps), max(step.level for step in steps)) == (5, 3)


@pytest.mark.parametrize(
    ("count", "heads", "text"),
    [(3, 4, "3 weights and 4 biases for x of 3 axes"), (4, 3, "are none of 3 heads"), (4, 0, "are none of 0 heads")],
)
def test_a_block_that_does_not_fit_is_an_error_with_a_fix(count: int, heads: int, text: str) -> None:
    b = dg.Builder("block")
    x, w = b.input("x", (1, 5, 12)), b.param("w", normal(12, 32))
    with pytest.raises(GraphError, match=rf"{text}.*\s*Fix: pass"):
        dg.attention_block(x, [w] * count, heads)


def test_attention_takes_every_operand_in_both_layouts(device: Device) -> None:
    inputs = full_inputs()
    for name in "kv":
        inputs[name][0, :, 60:], inputs[name][1, :, 22:] = np.nan, np.inf
    first = same_on(device, full_attention(False), inputs)["y"]
    assert np.isfinite(first).all()
    turned = inputs | {name: np.ascontiguousarray(inputs[name].transpose(0, 2, 1, 3)) for name in "qkv"}
    last = same_on(device, full_attention(True), turned)["y"]
    assert np.ascontiguousarray(last.transpose(0, 2, 1, 3)).tobytes() == first.tobytes()


def test_attention_means_what_its_words_say() -> None:
    inputs = full_inputs()
    got = dg.evaluate(full_attention(False), inputs)["y"]
    k, v = (np.repeat(inputs[name].astype(np.float64), H // G, axis=1) for name in "kv")
    scores = 0.3 * inputs["q"].astype(np.float64) @ k.swapaxes(-1, -2) + inputs["bias"].astype(np.float64)
    key = np.arange(N)
    position = 2 + inputs["positions"][:, None].astype(int) + np.arange(M)
    behind = position[:, None, :, None] - key
    there = (key < inputs["lengths"].astype(int)[:, None, None, None]) & inputs["mask"].astype(bool)
    counts = there & (behind >= 0) & (behind < 40)
    weights = np.exp(np.where(counts, scores, -np.inf))
    expected = weights @ v / weights.sum(axis=-1, keepdims=True)
    assert np.abs(got - expected).max() < 2e-6  # scores up to 4 have errors of 1e-7 each, and so have weights


def test_the_scale_is_one_by_the_root_of_the_depth_unless_it_is_named() -> None:
    b = dg.Builder("scale")
    q, wide = b.input("q", (1, 1, 2, 7)), b.input("wide", (1, 1, 2, 7), "f64")
    scales = [dg.attention(x, x, x).node.number("scale") for x in (q, wide)]
    assert scales == [float(np.float32(1 / np.sqrt(7))), 1 / np.sqrt(7)]
    assert dg.attention(q, q, q, scale=2.0).node.number("scale") == 2.0


def test_attention_reads_heads_where_a_product_left_them(device: Device) -> None:
    """q, k and v side by side in one product, as (B, S, 3, H, D) or heads first: no copies."""
    b = dg.Builder("packed")
    x = b.input("x", (2, 5, 12))
    packed = (x @ b.param("w", normal(12, 3 * 4 * D))).reshape(2, 5, 3, 4, D)
    q, k, v = (dg.slice_(packed, [0, 0, part], [2, 5, part + 1]).reshape(2, 5, 4, D) for part in range(3))
    mask = dg.expand(b.input("mask", (2, 5)).reshape(2, 1, 1, 5), (2, 4, 5, 5))
    last = dg.attention(q, k, v, mask, heads_last=True)
    turned_q, turned_k, turned_v = (part.transpose(0, 2, 1, 3) for part in (q, k, v))
    first = dg.attention(turned_q, turned_k, turned_v, mask, causal=True).transpose(0, 2, 1, 3).reshape(2, 5, 4 * D)
    graph = b.graph(last=last, first=first @ b.param("mix", normal(4 * D, 6)))
    inputs: dict[str, HostArray] = {"x": normal(2, 5, 12), "mask": normal(2, 5)}
    inputs["x"].reshape(-1)[:3] = 1e-40, -0.0, np.inf
    same_on(device, graph, inputs)
    with dg.compile(graph, device) as pipeline:
        report = pipeline.report()
        assert report.longest_chain == 3
        assert "fused" not in report.kernels


def test_attention_copies_what_it_cannot_read_in_rows(device: Device) -> None:
    b = dg.Builder("columns")
    x, at = b.input("x", (1, 2, D, 5)), b.input("at", (2, 1), "u32")
    q = x.transpose(0, 1, 3, 2)
    lengths = dg.slice_(at, [1], [2]).reshape(1)
    graph = b.graph(y=dg.attention(q, q, dg.slice_(q, [0, 0, 0, 0], [1, 2, 5, D]), lengths=lengths))
    inputs: dict[str, HostArray] = {"x": normal(1, 2, D, 5), "at": np.array([[9], [3]], np.uint32)}
    same_on(device, graph, inputs)


def test_a_chunk_of_a_prompt_is_a_part_of_it_at_its_position(device: Device) -> None:
    q, k, v = normal(1, H, 20, D), normal(1, G, 20, D, seed=1), normal(1, G, 20, D, seed=2)

    def run(first: int, count: int, keys: int) -> HostArray:
        b = dg.Builder("chunk")
        shapes = [(1, H, count, D), (1, G, keys, D), (1, G, keys, D)]
        tensors = [b.input(name, shape) for name, shape in zip("qkv", shapes, strict=True)]
        y = dg.attention(*tensors, scale=0.3, causal=True, positions=b.input("at", (1,), "u32"))
        cache = [np.full(shapes[1], np.nan, np.float32) for _ in "kv"]
        for whole, part in zip((k, v), cache, strict=True):
            part[:, :, : first + count] = whole[:, :, : first + count]
        chunk = np.ascontiguousarray(q[:, :, first : first + count])
        with dg.compile(b.graph(y=y), device) as pipeline:
            at = np.array([first], np.uint32)
            return pipeline.dispatch({"q": chunk, "k": cache[0], "v": cache[1], "at": at})["y"]

    whole = run(0, 20, 20)
    for first, count, keys in ((0, 7, 20), (13, 7, 150), (19, 1, 64)):
        expected = np.ascontiguousarray(whole[:, :, first : first + count])
        assert run(first, count, keys).tobytes() == expected.tobytes()


@pytest.mark.parametrize(
    ("depth", "turned", "interleaved", "heads_last", "own_rows"),
    [(8, 8, False, True, True), (8, 8, True, False, False), (6, 4, True, True, False), (4, 2, False, False, True)],
)
def test_rope_turns_pairs_by_their_position(
    depth: int, turned: int, interleaved: bool, heads_last: bool, own_rows: bool, device: Device
) -> None:
    b = dg.Builder("rope")
    x = b.input("x", (2, 5, 3, depth) if heads_last else (2, 3, 5, depth))
    tables = dg.rope_tables(50, turned)
    at = b.input("at", (2, 5) if own_rows else (5,), "u32")
    cos, sin = (dg.gather(b.param(name, table), at) for name, table in zip(("cos", "sin"), tables, strict=True))
    graph = b.graph(y=dg.rope(x, cos, sin, interleaved=interleaved, heads_last=heads_last))
    inputs: dict[str, HostArray] = {"x": normal(*x.shape)}
    inputs["at"] = np.random.default_rng(2).integers(0, 50, at.shape).astype(np.uint32)
    got = same_on(device, graph, inputs)["y"].astype(np.float64)
    angles = inputs["at"].astype(np.float64)[..., None] * 10000.0 ** (-np.arange(0, turned, 2) / turned)
    angles = np.broadcast_to(angles, (2, 5, turned // 2))
    angles = angles[:, :, None] if heads_last else angles[:, None]
    order = (slice(0, turned, 2), slice(1, turned, 2))
    first, second = order if interleaved else (slice(turned // 2), slice(turned // 2, turned))
    value = inputs["x"].astype(np.float64)
    spun = (value[..., first] + 1j * value[..., second]) * np.exp(1j * angles)
    value[..., first], value[..., second] = spun.real, spun.imag
    assert np.abs(got - value).max() < 1e-6  # two products of numbers up to 4, and tables rounded once
    inputs["x"].reshape(-1)[: len(AWKWARD)] = AWKWARD
    same_on(device, graph, inputs)


def test_rope_tables_are_rounded_once_and_take_frequencies_of_their_own() -> None:
    cos, sin = dg.rope_tables(4096, 64, base=500000.0)
    angles = np.arange(4096)[:, None] * 500000.0 ** (-np.arange(0, 64, 2) / 64)
    # NumPy's fp64 may differ in its last bit, which decides a rounding to float32 once in many million.
    assert np.abs(cos - np.cos(angles)).max() <= 2.0**-24
    assert np.abs(sin - np.sin(angles)).max() <= 2.0**-24
    assert dg.rope_tables(9, 4, frequencies=[1.0, 0.01])[0].tobytes() == dg.rope_tables(9, 4)[0].tobytes()
    with pytest.raises(GraphError, match="no frequencies for a depth of 4"):
        dg.rope_tables(9, 4, frequencies=[1.0])
    with pytest.raises(GraphError, match=r"no tables of 10000000000 positions for 4\. Fix: use an even depth"):
        dg.rope_tables(10**10, 4)


def test_rows_are_written_from_a_position_on(device: Device) -> None:
    b = dg.Builder("write")
    x, rows, at = b.input("x", (4, 6, 2, 3)), b.input("rows", (4, 2, 2, 3)), b.input("at", (4,), "u32")
    graph = b.graph(y=dg.write_rows(x, dg.tanh(rows), at) * 1.0)
    inputs: dict[str, HostArray] = {"x": normal(*x.shape), "rows": normal(*rows.shape)}
    inputs["x"].reshape(-1)[: len(AWKWARD)] = AWKWARD
    inputs["at"] = np.array([0, 3, 5, 2**32 - 1], np.uint32)
    got = same_on(device, graph, inputs)["y"]
    assert np.abs(got[1, 3:5] - np.tanh(inputs["rows"][1])).max() < 1e-6
    assert np.abs(got[2, 5] - np.tanh(inputs["rows"][2, 0])).max() < 1e-6
    assert got[1, :3].tobytes() == inputs["x"][1, :3].tobytes()
    assert got[3].tobytes() == inputs["x"][3].tobytes()


def _q(b: dg.Builder) -> dg.Tensor:
    return b.input("q", (B, H, M, D))


MISTAKES: dict[str, tuple[Callable[[dg.Builder], object], str]] = {
    "mask": (
        lambda b: dg.attention(_q(b), _q2 := b.input("k", (B, G, N, D)), _q2, b.input("m", (B, M)), scale=1.0),
        r"no mask of 2 x 70 keys\. Fix: pass f32 of shape \(B, n\) or \(B, H, m, n\) = \(2, 4, 3, 70\)",
    ),
    "bias": (lambda b: dg.attention(*[_q(b)] * 3, scale=1.0, bias=b.input("x", (M, M))), "is no bias of 2 x 3 keys"),
    "lengths": (
        lambda b: dg.attention(*[_q(b)] * 3, scale=1.0, lengths=b.input("x", (B,))),
        r"is no lengths of 2 x 3 keys\. Fix: pass u32 of shape \(2,\)",
    ),
    "positions": (
        lambda b: dg.attention(*[_q(b)] * 3, scale=1.0, positions=b.input("x", (H,), "u32")),
        "is no positions of 2 x 3 keys",
    ),
    "window": (
        lambda b: dg.attention(*[_q(b)] * 3, scale=1.0, window=-1),
        "are no positions. Fix: use 0 to 1073741824",
    ),
    "tables": (lambda b: dg.rope(_q(b), b.input("c", (5, 4)), b.input("s", (5, 4))), "are no angles of"),
    "odd tables": (lambda b: dg.rope(_q(b), b.input("c", (3, 4)), b.input("s", (3, 3))), "sines of one shape"),
    "rope of one axis": (
        lambda b: dg.rope(b.input("x", (4,)), b.input("c", (4, 2)), b.input("s", (4, 2))),
        "rope needs x",
    ),
    "rows": (lambda b: dg.write_rows(_q(b), b.input("r", (B, 1, D)), b.input("p", (B,), "u32")), "are no rows of"),
    "places": (lambda b: dg.write_rows(_q(b), _q(dg.Builder()), b.input("p", (B,))), "belongs to another graph"),
    "types": (lambda b: dg.write_rows(x := _q(b), x, b.input("p", (B,))), "pass floats, and positions of uint32"),
}


@pytest.mark.parametrize("what", MISTAKES)
def test_what_does_not_fit_is_an_error_with_the_name_of_the_node(what: str) -> None:
    build, message = MISTAKES[what]
    with pytest.raises(GraphError, match=message):
        build(dg.Builder())


def test_a_text_whose_extras_do_not_name_its_inputs_is_refused() -> None:
    leaves = "%x = input : f32[1,1,2,2]\n%m = input : f32[1,2]"
    text = f"graph g\n{leaves}\n%y = attention %x %x %x %m {{EXTRAS}} : f32[1,1,2,2]\nreturn y=%y\n"
    good = text.replace("EXTRAS", 'extras=["mask"], scale=1.0')
    assert str(dg.parse_graph(good)) == good
    for extras in ('extras=["lengths"]', "offset=0", 'extras=["mask","bias"]', 'extras="mask"', "extras=[3]"):
        with pytest.raises(GraphError, match=r"extras=|is no lengths"):
            dg.parse_graph(text.replace("EXTRAS", f"{extras}, scale=1.0"))


@pytest.mark.long
@given(seed=st.integers(0, 2**16))
@settings(max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_attention_of_awkward_values_has_one_value_whatever_it_is_given(seed: int, vulkan: VulkanDevice) -> None:
    rng = np.random.default_rng(seed)
    batch, heads, shared, queries, depth = (int(rng.integers(1, most)) for most in (3, 3, 3, 4, 20))
    keys = int(rng.choice([1, 64, 65, 200]))
    b = dg.Builder("random")

    def values(name: str, *shape: int) -> dg.Tensor:
        array = rng.standard_normal(shape).astype(np.float32)
        array[rng.random(shape) < 0.05] = rng.choice(np.array(AWKWARD, np.float32))
        inputs[name] = array
        return b.input(name, shape)

    def numbers(name: str) -> dg.Tensor:
        inputs[name] = rng.integers(0, keys + 2, batch).astype(np.uint32)
        return b.input(name, (batch,), "u32")

    inputs: dict[str, HostArray] = {}
    q = values("q", batch, heads * shared, queries, depth)
    k, v = (values(name, batch, heads, keys, depth) for name in "kv")
    extras = {
        "mask": lambda: values("mask", batch, keys),
        "bias": lambda: values("bias", batch, 1, queries, keys),
        "lengths": lambda: numbers("lengths"),
        "positions": lambda: numbers("positions"),
    }
    chosen: dict[str, Any] = {name: make() for name, make in extras.items() if rng.random() < 0.5}
    window, causal = int(rng.choice([0, 30])), bool(rng.integers(2))
    graph = b.graph(y=dg.attention(q, k, v, scale=0.4, causal=causal, window=window, **chosen))
    expected = same_on(vulkan, graph, inputs)["y"]
    kernel = kernels.attention_with(" ".join(chosen))
    arrays = [inputs[name] for name in ("q", "k", "v", *chosen)]
    options = {"scale": 0.4, "causal": int(causal), "window": window}
    split = vulkan.run(kernel, *arrays, tuning="split", **options).numpy()
    assert split.tobytes() == expected.tobytes()
