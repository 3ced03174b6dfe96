"""Recurrent cells and scans: the truth in float64, one value on every device, and sequences that are alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from dashi import graph as dg
from dashi.errors import GraphError
from dashi.kernels.sequence._cells import ACTIVATIONS
from dashi.runtime.device import Device
from dashi.types import HostArray

Floats = npt.NDArray[Any]
CLASSIC = dg.CellOptions()
STEPS, BATCH, INPUTS, UNITS = 5, 3, 4, 6
GATES = {"rnn": 1, "gru": 3, "lstm": 4}
LENGTHS = np.array([5, 2, 0], np.uint32)
FORMULAS: dict[str, Callable[[Floats], Floats]] = {
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "tanh": np.tanh,
    "relu": lambda x: np.maximum(x, 0),
    "affine": lambda x: 0.7 * x + 0.2,
    "leaky_relu": lambda x: np.where(x < 0, 0.7 * x, x),
    "thresholded_relu": lambda x: np.where(x > 0.7, x, 0),
    "scaled_tanh": lambda x: 0.7 * np.tanh(0.2 * x),
    "hard_sigmoid": lambda x: np.clip(0.7 * x + 0.2, 0, 1),
    "elu": lambda x: np.where(x < 0, 0.7 * (np.exp(x) - 1), x),
    "softsign": lambda x: x / (1 + np.abs(x)),
    "softplus": lambda x: np.log1p(np.exp(x)),
}


def values(cell: str, directions: int, seed: int = 0) -> dict[str, HostArray]:
    """Weights, starts and inputs of a cell."""
    rng = np.random.default_rng(seed)
    wide = GATES[cell] * UNITS
    shapes = {"w": (directions, wide, INPUTS), "r": (directions, wide, UNITS), "bias": (directions, 2 * wide)}
    shapes |= {"x": (STEPS, BATCH, INPUTS), "h": (directions, BATCH, UNITS), "c": (directions, BATCH, UNITS)}
    shapes |= {"p": (directions, 3 * UNITS)}
    return {name: (rng.standard_normal(shape) * 0.6).astype(np.float32) for name, shape in shapes.items()}


def build(cell: str, v: dict[str, HostArray], options: dg.CellOptions = CLASSIC, **more: Any) -> dg.Graph:
    b = dg.Builder(cell)
    x = b.input("x", v["x"].shape)
    w, r, bias, h = (b.param(name, v[name]) for name in ("w", "r", "bias", "h"))
    lengths = b.constant(LENGTHS)
    if cell == "lstm":
        p = b.param("p", v["p"]) if more.get("peephole") else None
        y, last, last_c = dg.lstm(x, w, r, bias, h, b.param("c", v["c"]), p, lengths, options)
        return b.graph(y=y, last=last, last_c=last_c)
    y, last = dg.rnn(x, w, r, bias, h, lengths, options) if cell == "rnn" else dg.gru(
        x, w, r, bias, h, lengths, options, linear_before_reset=bool(more.get("reset_after"))
    )  # fmt: skip
    return b.graph(y=y, last=last)


def truth(
    cell: str, v: dict[str, HostArray], reverse: int = 0, acts: tuple[str, ...] = (), clip: float = np.inf, **more: Any
) -> dict[str, Floats]:
    """ONNX's equations in float64, one sequence after another."""
    d = {name: value.astype(np.float64) for name, value in v.items()}
    directions = len(d["w"])
    names = acts or {"rnn": ("tanh",), "gru": ("sigmoid", "tanh"), "lstm": ("sigmoid", "tanh", "tanh")}[cell]
    act = [lambda x, name=name: FORMULAS[name](np.clip(x, -clip, clip)) for name in names[:2]]
    y = np.zeros((STEPS, directions, BATCH, UNITS))
    last, last_c = d["h"].copy(), d["c"].copy()
    for k in range(directions):
        wb, rb = np.split(d["bias"][k], 2)
        for n, length in enumerate(LENGTHS):
            order = range(int(length))
            for t in reversed(order) if reverse >> k & 1 else order:
                h, c = last[k, n], last_c[k, n]
                gx = np.split(d["x"][t, n] @ d["w"][k].T + wb, GATES[cell])
                gh = np.split(d["r"][k] @ h + rb, GATES[cell])
                if cell == "rnn":
                    h = act[0](gx[0] + gh[0])
                elif cell == "gru":
                    z, r = act[0](gx[0] + gh[0]), act[0](gx[1] + gh[1])
                    inner = r * gh[2] if more.get("reset_after") else d["r"][k, 2 * UNITS :] @ (r * h) + rb[2 * UNITS :]
                    h = (1 - z) * act[1](gx[2] + inner) + z * h
                else:
                    p = np.split(d["p"][k] * bool(more.get("peephole")), 3)
                    i, f = act[0](gx[0] + gh[0] + p[0] * c), act[0](gx[2] + gh[2] + p[2] * c)
                    c = f * c + i * act[1](gx[3] + gh[3])
                    h = act[0](gx[1] + gh[1] + p[1] * c) * FORMULAS[names[2]](c)
                y[t, k, n], last[k, n], last_c[k, n] = h, h, c
    return {"y": y, "last": last, "last_c": last_c}


CASES: dict[str, tuple[str, str, dict[str, Any]]] = {
    "rnn": ("rnn", "forward", {}),
    "rnn in reverse": ("rnn", "reverse", {}),
    "gru both ways": ("gru", "bidirectional", {}),
    "gru, reset after": ("gru", "forward", {"reset_after": True}),
    "lstm both ways": ("lstm", "bidirectional", {}),
    "lstm with peepholes": ("lstm", "reverse", {"peephole": True}),
    "lstm, clipped": ("lstm", "forward", {"clip": 0.3}),
}


@pytest.mark.parametrize("name", CASES)
def test_cells_agree_with_float64_and_give_the_same_bits_on_every_device(name: str, device: Device) -> None:
    cell, direction, more = CASES[name]
    bits = {"forward": 0, "reverse": 1, "bidirectional": 2}[direction]
    v = values(cell, 1 + (direction == "bidirectional"))
    graph = build(cell, v, dg.CellOptions(direction, clip=more.get("clip", 0.0)), **more)
    expected = truth(cell, v, bits, **more)
    with dg.compile(graph, device) as pipeline:
        assert not pipeline.report().host_steps
        results = pipeline.dispatch({"x": v["x"]})
    for title, array in dg.evaluate(graph, {"x": v["x"]}).items():
        # Five steps of sums of ten products below 1, each rounded to 2^-24.
        np.testing.assert_allclose(np.asarray(array, np.float64), expected[title], atol=2e-6)
        assert results[title].tobytes() == array.tobytes(), title


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_each_activation_of_a_cell_is_its_formula(name: str, device: Device) -> None:
    v = values("rnn", 1, seed=3)
    graph = build("rnn", v, dg.CellOptions(activations=(name,), alphas=(0.7,), betas=(0.2,)))
    expected = truth("rnn", v, acts=(name,))
    with dg.compile(graph, device) as pipeline:
        result = pipeline.dispatch({"x": v["x"]})["y"]
    np.testing.assert_allclose(
        np.asarray(result, np.float64), expected["y"], atol=1e-5 * max(1, np.abs(expected["y"]).max())
    )
    assert result.tobytes() == dg.evaluate(graph, {"x": v["x"]})["y"].tobytes()


def test_a_sequence_is_alone_whatever_lies_beside_and_behind_it(device: Device) -> None:
    v = values("lstm", 1)
    graph = build("lstm", v)
    padded = v["x"].copy()
    padded[2:, 1] = np.nan  # behind the end of sequence 1
    padded[:, 2] = np.inf
    with dg.compile(graph, device) as pipeline:
        clean, dirty = pipeline.dispatch({"x": v["x"]}), pipeline.dispatch({"x": padded})
    for title in clean:
        assert clean[title].tobytes() == dirty[title].tobytes(), title


def scan_graph(steps: int, start: bool = False) -> dg.Graph:
    """Mamba, Mamba-2 and the gated delta rule over so many steps of the same names."""
    b = dg.Builder("scans")
    x, delta = b.input("x", (2, steps, 6)), dg.softplus(b.input("delta", (2, steps, 6)))
    weights, outs = b.input("b", (2, steps, 1, 4)), b.input("c", (2, steps, 1, 4))
    starts = [b.input(f"s{k}", (2, 4, 6)) if start else None for k in range(3)]
    rates = -dg.exp(b.param("a", np.linspace(-1, 1, 24, dtype=np.float32).reshape(6, 4)))
    skip = b.param("skip", np.linspace(0, 1, 6, dtype=np.float32))
    heads = dg.slice_(delta, [0, 0, 0], [None, None, 3])
    y, s0 = dg.selective_scan(x, delta, rates, weights, outs, skip, starts[0])
    z, s1 = dg.selective_scan(x, heads, dg.slice_(rates, [0, 0], [3, 1]).reshape(3), weights, outs, None, starts[1])
    u, s2 = dg.gated_delta(outs, weights, x, -heads, dg.sigmoid(heads), starts[2])
    return b.graph(y=y, z=z, u=u, s0=s0, s1=s1, s2=s2)


def scan_inputs(steps: int, seed: int = 0) -> dict[str, HostArray]:
    rng = np.random.default_rng(seed)
    shapes = {"x": (2, steps, 6), "delta": (2, steps, 6), "b": (2, steps, 1, 4), "c": (2, steps, 1, 4)}
    return {name: rng.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()}


def scan_truth(v: dict[str, HostArray]) -> dict[str, Floats]:
    x, b, c = (v[name].astype(np.float64) for name in ("x", "b", "c"))
    delta = np.log1p(np.exp(v["delta"].astype(np.float64)))
    a = -np.exp(np.linspace(-1, 1, 24).reshape(6, 4))
    heads, own = np.repeat(delta[..., :3], 2, axis=2), np.repeat(a[:3, 0], 2)
    y, z, u = np.zeros_like(x), np.zeros_like(x), np.zeros_like(x)
    s0, s1, s2 = (np.zeros((2, 4, 6)) for _ in range(3))
    for t in range(x.shape[1]):
        into, out = b[:, t, 0, :, None], c[:, t, 0, :, None]
        s0 = np.exp(delta[:, t, None] * a.T) * s0 + (delta[:, t] * x[:, t])[:, None] * into
        y[:, t] = (s0 * out).sum(1) + np.linspace(0, 1, 6) * x[:, t]
        s1 = np.exp(heads[:, t] * own)[:, None] * s1 + (heads[:, t] * x[:, t])[:, None] * into
        z[:, t] = (s1 * out).sum(1)
        s2 = np.exp(-heads[:, t])[:, None] * s2
        s2 = s2 + into * (1 / (1 + np.exp(-heads[:, t])) * (x[:, t] - (s2 * into).sum(1)))[:, None]
        u[:, t] = (s2 * out).sum(1)
    return {"y": y, "z": z, "u": u, "s0": s0, "s1": s1, "s2": s2}


def test_scans_agree_with_float64_and_give_the_same_bits_on_every_device(device: Device) -> None:
    v = scan_inputs(7)
    with dg.compile(scan_graph(7), device) as pipeline:
        assert not pipeline.report().host_steps
        results = pipeline.dispatch(v)
    expected = scan_truth(v)
    for title, array in dg.evaluate(scan_graph(7), v).items():
        # The delta rule is no contraction for keys longer than 1: errors grow with the state.
        np.testing.assert_allclose(np.asarray(array, np.float64), expected[title], rtol=1e-4, atol=1e-4)
        assert results[title].tobytes() == array.tobytes(), title


def test_a_sequence_in_chunks_has_the_bits_of_the_whole(device: Device) -> None:
    v = scan_inputs(9)
    whole = dg.evaluate(scan_graph(9), v)
    state = {f"s{k}": np.zeros((2, 4, 6), np.float32) for k in range(3)}
    parts: list[dict[str, HostArray]] = []
    for first, last in ((0, 4), (4, 5), (5, 9)):
        with dg.compile(scan_graph(last - first, start=True), device) as pipeline:
            chunk = {name: np.ascontiguousarray(array[:, first:last]) for name, array in v.items()}
            parts.append(pipeline.dispatch({**chunk, **state}))
            state = {name: parts[-1][name] for name in state}
    for title in "yzu":
        assert np.concatenate([part[title] for part in parts], 1).tobytes() == whole[title].tobytes()
    assert all(state[name].tobytes() == whole[name].tobytes() for name in state)


MISTAKES: dict[str, tuple[Callable[[dg.Builder], object], str]] = {
    "shapes": (lambda b: _cell(b, dg.rnn, w=(1, 6, 9)), "do not fit"),
    "gates": (lambda b: _cell(b, dg.gru, w=(1, 6, 4)), "do not fit"),
    "bias": (lambda b: dg.rnn(*_leaves(b), b.input("bias", (1, 5))), "the bias is (1, 5)"),
    "direction": (lambda b: _cell(b, dg.rnn, options=dg.CellOptions("bidirectional")), "of 1 directions"),
    "turned": (lambda b: _cell(b, dg.rnn, options=dg.CellOptions("sideways")), "'sideways'"),
    "activation": (lambda b: _cell(b, dg.rnn, options=dg.CellOptions(activations=("tanhh",))), "did you mean tanh"),
    "activations": (lambda b: _cell(b, dg.rnn, options=dg.CellOptions(activations=("tanh",) * 2)), "has 1 activations"),
    "lengths": (lambda b: dg.rnn(*_leaves(b), lengths=b.input("n", (3,))), "lengths of"),
    "scan": (lambda b: _scan(b, a=(6, 3)), "do not fit"),
    "heads": (lambda b: _scan(b, a=(4, 4), delta=(2, 5, 4)), "do not fit"),
    "axes": (lambda b: _scan(b, x=(2, 6)), "selective_scan: x (2, 6)"),
    "delta": (lambda b: dg.gated_delta(*(b.input(f"i{k}", (2, 5, 4)) for k in range(5))), "gated_delta: q"),
}


def _leaves(b: dg.Builder, w: tuple[int, ...] = (1, 6, 4)) -> tuple[dg.Tensor, dg.Tensor, dg.Tensor]:
    return b.input("x", (5, 3, 4)), b.input("w", w), b.input("r", (1, 6, 6))


def _cell(b: dg.Builder, make: Any, w: tuple[int, ...] = (1, 6, 4), **more: Any) -> object:
    return make(*_leaves(b, w), **more)


def _scan(b: dg.Builder, **shapes: tuple[int, ...]) -> object:
    all_shapes = {"x": (2, 5, 6), "delta": (2, 5, 6), "a": (6, 4), "b": (2, 5, 4), "c": (2, 5, 4), **shapes}
    return dg.selective_scan(*(b.input(name, shape) for name, shape in all_shapes.items()))


@pytest.mark.parametrize("mistake", MISTAKES)
def test_cells_and_scans_that_do_not_fit_are_errors_with_a_fix(mistake: str) -> None:
    make, expected = MISTAKES[mistake]
    with pytest.raises(GraphError) as error:
        make(dg.Builder("wrong"))
    assert expected in str(error.value)
    assert "Fix: " in str(error.value)


def test_cells_too_large_for_one_workgroup_are_steps_of_the_host() -> None:
    b = dg.Builder("large")
    x, w, r = b.input("x", (1, 1, 2)), b.input("w", (1, 1400, 2)), b.input("r", (1, 1400, 1400))
    assert list(dg.host_steps(b.graph(y=dg.rnn(x, w, r)[0]))) == ["recurrence_3"]
