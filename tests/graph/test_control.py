"""Control flow by writing out and by selection: the bits of the loops of the host."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from dashi import graph as dg
from dashi.errors import GraphError
from dashi.runtime.device import Device

X = np.array([[0.25, 9.0, 2.0, -1.0]], np.float32)


def test_what_was_not_chosen_does_not_matter(device: Device) -> None:
    b = dg.Builder("branches")
    x = b.input("x", (1, 4))
    root, other = dg.select(dg.greater(x, 0.0), [dg.sqrt(x), x * 2.0], [x * 0.0 - 1.0, x / 0.0])
    graph = b.graph(root=root, other=other)
    with dg.compile(graph, device) as pipeline:
        results = pipeline.dispatch({"x": X})
    assert results["root"].tolist() == [[0.5, 3.0, np.sqrt(np.float32(2)).item(), -1.0]]
    assert results["other"].tolist() == [[0.5, 18.0, 4.0, -np.inf]]


def collatz(steps: int) -> dg.Graph:
    """How many steps numbers take to become 1, at most so many."""
    b = dg.Builder("collatz")
    x = b.input("x", (6,))

    def body(_: int, n: dg.Tensor, count: dg.Tensor) -> tuple[dg.Tensor, dg.Tensor]:
        half = dg.floor(n * 0.5)
        return dg.where(dg.equal(half * 2.0, n), half, n * 3.0 + 1.0), count + 1.0

    n, count = dg.repeat(body, [x, x * 0.0], steps, lambda n, _: dg.greater(n, 1.0))
    return b.graph(n=n, count=count)


def test_a_loop_ends_for_each_element_by_its_own_condition(device: Device) -> None:
    inputs = {"x": np.array([1, 2, 3, 6, 7, 27], np.float32)}
    with dg.compile(collatz(17), device) as pipeline:
        results = pipeline.dispatch(inputs)
    assert results["count"].tolist() == [0, 1, 7, 8, 16, 17]
    assert results["n"].tolist()[:5] == [1] * 5
    assert {k: v.tobytes() for k, v in results.items()} == {
        k: v.tobytes() for k, v in dg.evaluate(collatz(17), inputs).items()
    }


@pytest.mark.parametrize("reverse", [False, True])
def test_a_cell_written_as_a_scan_has_the_bits_of_the_kernel(reverse: bool, device: Device) -> None:
    rng = np.random.default_rng(0)
    b = dg.Builder("cells")
    x = b.input("x", (6, 3, 5))
    w, r, bias = (b.param(n, rng.standard_normal(s).astype(np.float32) / 2) for n, s in
                  (("w", (1, 4, 5)), ("r", (1, 4, 4)), ("bias", (1, 8))))  # fmt: skip
    options = dg.CellOptions("reverse" if reverse else "forward")
    y, last = dg.rnn(x, w, r, bias, options=options)
    into, own = (dg.slice_(bias, [0, k], [None, k + 4]) for k in (0, 4))

    def body(h: dg.Tensor, element: dg.Tensor) -> tuple[list[dg.Tensor], list[dg.Tensor]]:
        gate = element @ w.reshape(4, 5).transpose() + into
        new = dg.tanh(gate + (h @ r.reshape(4, 4).transpose() + own))
        return [new], [new]

    (state,), (states,) = dg.scan(body, [b.constant(np.zeros((3, 4), np.float32))], [x], reverse=reverse)
    graph = b.graph(y=y, last=last, states=states.reshape(6, 1, 3, 4), state=state.reshape(1, 3, 4))
    inputs = {"x": rng.standard_normal((6, 3, 5)).astype(np.float32)}
    with dg.compile(graph, device) as pipeline:
        results = pipeline.dispatch(inputs)
    assert results["y"].tobytes() == results["states"].tobytes()
    assert results["last"].tobytes() == results["state"].tobytes()


MISTAKES: dict[str, tuple[Callable[[Any, Any], object], str]] = {
    "branches": (lambda x, y: dg.select(dg.greater(x, 0.0), [x], [x, x]), "one branch has 1 values"),
    "types": (lambda x, y: dg.select(dg.greater(x, 0.0), [x], [y]), "let both branches give one type"),
    "condition": (lambda x, y: dg.select(dg.greater(y, 0.0), [x.reshape(4)], [x.reshape(4)]), "is no condition of"),
    "steps": (lambda x, y: dg.repeat(lambda _, v: [v + x], [x], 10**9), "1000000000 steps cannot be written out"),
    "number": (lambda x, y: dg.repeat(lambda _, v: [v, v], [x], 2), "a step makes (f32[1,4], f32[1,4]) of (f32[1,4])"),
    "shapes": (lambda x, y: dg.repeat(lambda _, v: [v.reshape(4)], [x], 2), "a step makes (f32[4])"),
    "lengths": (lambda x, y: dg.scan(lambda a, c: ([], []), [], [x, y]), "sequences of [1, 3] steps"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_control_flow_that_does_not_fit_is_an_error_with_a_fix(mistake: str) -> None:
    make, expected = MISTAKES[mistake]
    b = dg.Builder("wrong")
    with pytest.raises(GraphError) as error:
        make(b.input("x", (1, 4)), b.input("y", (3, 4)))
    assert expected in str(error.value)
    assert "Fix: " in str(error.value)
