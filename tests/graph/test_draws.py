"""Draws and samples: one value on every device, a function of their names, with the distributions they say."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from dashi import graph as dg
from dashi.errors import DashiError, GraphError, InputError
from dashi.kernels._philox import philox
from dashi.runtime.device import Device
from dashi.types import HostArray


def draw_graph(rows: int, count: int = 6) -> dg.Graph:
    b = dg.Builder("draws")
    rng = dg.rng_input(b, rows)
    u = dg.random_uniform(rng, (count,), low=-1.0, high=3.0)
    z = dg.random_normal(rng, (count // 2, 2), stream=1, mean=2.0, scale=0.5)
    logits = b.input("logits", (rows, 5))
    return b.graph(u=u, z=z, token=dg.sample(logits, rng, temperature=0.7, stream=2))


def logits_of(rows: int) -> HostArray:
    return np.random.default_rng(5).standard_normal((rows, 5)).astype(np.float32)


def test_draws_have_the_same_bits_on_every_device_and_rows_are_alone(device: Device) -> None:
    words = dg.rng_words(2**40 + 7, [3, 4, 5], position=[0, 1, 2], shape=(3, 4))
    inputs = {"rng": words, "logits": logits_of(3)}
    with dg.compile(draw_graph(3), device) as pipeline:
        assert not pipeline.report().host_steps
        results = pipeline.dispatch(inputs)
    for title, array in dg.evaluate(draw_graph(3), inputs).items():
        assert results[title].tobytes() == array.tobytes(), title
    with dg.compile(draw_graph(1), device) as pipeline:
        for row in range(3):
            alone = pipeline.dispatch({"rng": words[row : row + 1], "logits": inputs["logits"][row : row + 1]})
            assert all(alone[title][0].tobytes() == results[title][row].tobytes() for title in results)


def test_a_number_is_that_of_its_name_however_many_are_drawn() -> None:
    """Number i is word i % 4 of Philox for (i / 4, position, request, stream) and the seed."""
    words = dg.rng_words((9 << 32) + 8, request=7, position=6)
    b = dg.Builder("named")
    graph = b.graph(few=dg.random_uniform(dg.rng_input(b), (5,), stream=3), many=dg.random_uniform(
        b.input("again", (4,), "u32"), (4, 100), stream=3))  # fmt: skip
    results = dg.evaluate(graph, {"rng": words, "again": words})
    few, many = results["few"], results["many"].reshape(-1)
    assert few.tobytes() == many[:5].tobytes()
    four = np.stack(philox((np.arange(100), 6, 7, 3), (8, 9)), axis=1).reshape(-1)
    assert (many == (four >> 8).astype(np.float64) * 2.0**-24).all()


def test_every_part_of_a_name_matters() -> None:
    b = dg.Builder("names")
    rng = dg.rng_input(b, 5)
    graph = b.graph(first=dg.random_uniform(rng, (8,)), second=dg.random_uniform(rng, (8,), stream=1))
    names = [(0, 0, 0), (1, 0, 0), (1 << 32, 0, 0), (0, 1, 0), (0, 0, 1)]
    words = np.stack([dg.rng_words(*name) for name in names])
    results = dg.evaluate(graph, {"rng": words})
    rows = [row.tobytes() for row in (*results["first"], *results["second"])]
    assert len(set(rows)) == len(rows)


def test_draws_have_their_distributions() -> None:
    count = 1 << 16
    b = dg.Builder("many")
    rng = dg.rng_input(b)
    graph = b.graph(u=dg.random_uniform(rng, (count,)), z=dg.random_normal(rng, (count,), stream=1))
    results = dg.evaluate(graph, {"rng": dg.rng_words(11)})
    u, z = results["u"].astype(np.float64), results["z"].astype(np.float64)
    assert 0 <= u.min() < u.max() < 1
    # Five standard errors of means and variances of so many numbers.
    error = 5 / np.sqrt(count)
    assert abs(u.mean() - 0.5) < error * np.sqrt(1 / 12)
    assert abs(z.mean()) < error
    assert abs(z.var() - 1) < error * np.sqrt(2)
    assert abs((z**4).mean() - 3) < error * np.sqrt(96)
    assert abs((z[::2] * z[1::2]).mean()) < error * np.sqrt(2)


def test_samples_have_the_probabilities_of_the_softmax() -> None:
    rows = 1 << 13
    logits = np.array([0.0, 1.0, -np.inf, 2.0, -1.0], np.float32)
    b = dg.Builder("samples")
    tokens = dg.sample(b.input("logits", (rows, 5)), dg.rng_input(b, rows), temperature=0.5)
    words = dg.rng_words(3, position=np.arange(rows), shape=(rows, 4))
    result = dg.evaluate(b.graph(t=tokens), {"logits": np.tile(logits, (rows, 1)), "rng": words})["t"]
    expected = np.exp(logits / 0.5) / np.exp(logits / 0.5).sum()
    measured = np.bincount(result, minlength=5) / rows
    assert measured[2] == 0
    assert (np.abs(measured - expected) <= 5 * np.sqrt(expected * (1 - expected) / rows)).all()


def test_without_temperature_a_sample_is_the_largest_logit(device: Device) -> None:
    logits = np.array([[1, 3, 3, 2], [np.inf, 0, np.nan, np.nan], [-np.inf] * 4], np.float32)
    b = dg.Builder("greedy")
    graph = b.graph(t=dg.sample(b.input("logits", (3, 4)), dg.rng_input(b, 3), temperature=0.0))
    with dg.compile(graph, device) as pipeline:
        result = pipeline.dispatch({"logits": logits, "rng": dg.rng_words(1, shape=(3, 4))})["t"]
    assert result.tolist() == [1, 2, 0]


def test_another_seed_needs_no_other_recording(device: Device) -> None:
    with dg.compile(draw_graph(2), device) as pipeline:
        pipeline.bind("logits", logits_of(2))
        handle = pipeline.bind("rng", dg.rng_words(1, shape=(2, 4)))
        first = pipeline.dispatch_resident({})["u"]
        pipeline.bind("rng", dg.rng_words(2, shape=(2, 4)))
        second = pipeline.dispatch_resident({})["u"]
        pipeline.bind("rng", dg.rng_words(1, shape=(2, 4)))
        third = pipeline.dispatch_resident({})["u"]
        pipeline.free(handle)
    assert first.tobytes() == third.tobytes() != second.tobytes()


MISTAKES: dict[str, tuple[Callable[[dg.Builder], object], str]] = {
    "words": (lambda b: dg.random_uniform(b.input("k", (3,), "u32"), (4,)), "are no control words"),
    "types": (lambda b: dg.random_uniform(b.input("k", (4,)), (4,)), "are no control words"),
    "stream": (lambda b: dg.random_uniform(dg.rng_input(b), (4,), stream=1 << 32), "has no 32 bits"),
    "shape": (lambda b: dg.random_normal(dg.rng_input(b), (-1,)), "is no shape of a row"),
    "huge": (lambda b: dg.random_normal(dg.rng_input(b), (10**6, 10**6)), "is no shape of a row"),
    "rows": (lambda b: dg.sample(b.input("l", (2, 5)), dg.rng_input(b)), "would draw the same number"),
    "logits": (lambda b: dg.sample(b.input("l", (2, 5), "f64"), dg.rng_input(b, 2)), "cannot be sampled"),
    "none": (lambda b: dg.sample(b.input("l", (2, 0)), dg.rng_input(b, 2)), "cannot be sampled"),
    "cold": (lambda b: dg.sample(b.input("l", (2, 5)), dg.rng_input(b, 2), temperature=-1), "the temperature is -1"),
    "seed": (lambda b: dg.rng_words(-1), "-1 is no seed"),
    "request": (lambda b: dg.rng_words(1, request=1 << 32), "is no number of 32 bits"),
    "positions": (lambda b: dg.rng_words(1, position=[1, 2, 3], shape=(2, 4)), "values of position"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_draws_of_nothing_are_errors_with_a_fix(mistake: str) -> None:
    make, expected = MISTAKES[mistake]
    with pytest.raises((GraphError, InputError)) as error:
        make(dg.Builder("wrong"))
    assert isinstance(error.value, DashiError)
    assert expected in str(error.value)
    assert "Fix: " in str(error.value)
