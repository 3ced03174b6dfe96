"""Arguments of other kinds than signatures say are errors of graphs; numbers of NumPy are numbers."""

from __future__ import annotations

import inspect
from typing import Any, cast

import numpy as np
import pytest

import dashi
from dashi import graph as dg
from dashi.errors import DashiError, GraphError
from dashi.graph._arguments import checked
from dashi.graph.registry import all_ops

WRONG: tuple[Any, ...] = (
    None, "x", "12", 2.7, -1, 10**30, [], [None], ["a"], [1.5], [10**30], {}, object(), np.nan, np.array([1.5]), b"1",
)  # fmt: skip
"""Values that are of some wrong kind nearly everywhere."""
MORE: dict[str, tuple[Any, ...]] = {
    "attention": ((1, 2, 3, 4), (1, 2, 3, 4), (1, 2, 3, 4)), "average_pool": ((1, 2, 5), "args", [3]),
    "batch_norm": ((2, 4, 3), (4,), (4,), (4,), (4,)), "concat": ("args", [], 0), "conv": ((1, 2, 5), (3, 2, 3)),
    "dot_general": ((2, 3), (3, 4), "args", ((1,), (0,)), ((), ())), "elu": ((2, 3), "args", 1.0),
    "expand": ((2, 3), "args", [2, 2, 3]), "group_norm": ((2, 4, 3), (4,), (4,), "args", 2, 1e-5), "lstm":
    ((2, 1, 3), (1, 8, 3), (1, 8, 2)), "maximum": ((2, 3), (2, 3)), "narrow": ((2, 3), "args", 0, 0, 1), "one_hot":
    ((2, 3), "args", 4, -1, 1.0, 0.0, "f32"), "pad": ((2, 3), "args", [(1, 1), (0, 0)], "constant", 0.0), "resize":
    ((1, 2, 5), "args", [1, 2, 9]), "reverse": ((2, 3), "args", [0]), "slice_": ((2, 3), "args", [0], [1], [1]),
    "softmax": ((2, 3), "args", 1), "split": ((2, 3), "args", 2, 0), "sum_": ((2, 3), "args", [1], False), "tile":
    ((2, 3), "args", [1, 2]), "top_k": ((2, 3), "args", 2, 1, True), "rope": ((1, 2, 3, 4), (3, 2), (3, 2)),
    "where": ((2, 3), (2, 3), (2, 3)), "tanh": ((2, 3),), "is_infinite": ((2, 3), "args", True, True),
}  # fmt: skip
"""For some functions the shapes of their tensors, and what stands behind these."""


def arguments_of(name: str) -> list[Any]:
    b, listed = dg.Builder("kinds"), MORE[name]
    cut = listed.index("args") if "args" in listed else len(listed)
    tensors: list[Any] = [b.input(f"x{k}", shape, "u32" if name == "one_hot" else "f32")
                          for k, shape in enumerate(listed[:cut])]  # fmt: skip
    if name == "where":
        tensors[0] = dg.greater(tensors[0], 0.0)
    rest = list(listed[cut + 1 :])
    if name == "concat":
        rest[0] = [b.input("a", (2, 3)), b.input("b", (2, 3))]
    return tensors + rest


@pytest.mark.parametrize("name", MORE)
def test_wrong_kinds_of_arguments_are_typed_errors(name: str) -> None:
    function = getattr(dg, name)
    function(*arguments_of(name))  # as it should be
    refused = 0
    for place, parameter in enumerate(inspect.signature(function).parameters.values()):
        for wrong in WRONG:
            args, named = arguments_of(name), dict[str, Any]()
            if place < len(args):
                args[place] = wrong
            else:
                named[parameter.name] = wrong
            try:
                function(*args, **named)
            except DashiError as error:
                refused += "Fix: " in str(error)
    assert refused > len(WRONG) // 2


def test_the_message_names_function_argument_and_value() -> None:
    b = dg.Builder("named")
    x = b.input("x", (2, 3))
    with pytest.raises(
        GraphError, match=r"softmax: `axis` is 'last', and not a whole number\. Fix: pass a whole number"
    ):
        dg.softmax(x, "last")  # pyright: ignore[reportArgumentType]
    with pytest.raises(
        GraphError, match=r"attention: `mask` is 3, and not a Tensor of a Builder\. Fix: .* leave it away"
    ):
        dg.attention(x, x, x, 3)  # pyright: ignore[reportArgumentType]

    class Silent:
        def __repr__(self) -> str:
            raise ValueError("nothing is said")

    with pytest.raises(GraphError, match="relu: `x` is a Silent, and not a Tensor"):
        dg.relu(Silent())  # pyright: ignore[reportArgumentType]


def test_every_public_function_that_adds_ops_is_checked() -> None:
    modules = {op.infer.__module__ for op in all_ops().values()} | {"dashi.graph.ops.attention_block"}
    functions = [getattr(dg, name) for name in dir(dg) if inspect.isfunction(getattr(dg, name))]
    others = {"rng_words", "rng_input"}
    added = [f for f in functions if f.__module__ in modules and f.__name__ not in others]
    assert len(added) > 80
    assert [f.__name__ for f in added if not hasattr(f, "__wrapped__")] == []
    assert dg.relu.__module__ == "dashi.graph.ops.elementwise"


def test_numbers_of_numpy_are_numbers() -> None:
    b, number = dg.Builder("numpy"), cast("Any", np)
    x = b.input("x", number.array([2, 3]))
    summed = dg.sum_(dg.expand(x, number.array([4, 2, 3])), number.int64(0))
    assert dg.top_k(summed, number.int32(2), number.int8(-1), number.bool_(True))[0].shape == (2, 2)
    assert dg.elu(x, number.float32(0.5)).node.number("alpha") == 0.5
    assert b.input("n", cast("Any", 3)).shape == (3,)


def test_arrays_and_tensors_meet_on_either_side() -> None:
    b = dg.Builder("arrays")
    x, ones = b.input("x", (4,)), cast("Any", np.ones(4, np.float32))
    sums: list[Any] = [ones + x, x + ones, cast("Any", np.float32(1)) + x]
    assert all(isinstance(total, dg.Tensor) and total.shape == (4,) for total in sums)


def test_annotations_are_read_whatever_stands_in_their_brackets() -> None:
    @checked
    def shown(a: int | list[int | None], b: tuple[int, ...] = (), c: str | None = None) -> tuple[Any, ...]:
        return a, b, c

    assert shown(np.int8(3), [np.int64(4), 5]) == (3, (4, 5), None)  # pyright: ignore[reportArgumentType]
    assert shown([None, 1]) == ([None, 1], (), None)
    with pytest.raises(GraphError, match="shown: `b` is"):
        shown(1, [2.5])  # pyright: ignore[reportArgumentType]
    with pytest.raises(TypeError):  # what Python itself says of calls
        shown()  # pyright: ignore[reportCallIssue]


BUILDING: dict[str, Any] = {
    "a shape of fractions": lambda b, x: b.input("z", (2.7,)),
    "no shape": lambda b, x: b.input("z", None),
    "no type": lambda b, x: b.input("z", (2,), 3),
    "lists of two lengths": lambda b, x: b.param("z", [[1], [1, 2]]),
    "a result that is a number": lambda b, x: b.graph(3),
    "a named result": lambda b, x: b.graph(s=3),
    "an op that is a number": lambda b, x: b.add(3, x),
    "the name of an op that is none": lambda b, x: b.apply(3, x),
    "a packed shape": lambda b, x: b.packed_param("w", "Q8_0", 1.5, b""),
    "no parts": lambda b, x: dg.concat([]),
    "too many parts": lambda b, x: dg.split(x, 10**30),
    "options of a cell": lambda b, x: dg.CellOptions(direction=3),  # pyright: ignore[reportArgumentType]
    "a text that is none": lambda b, x: dg.parse_graph(3),  # pyright: ignore[reportArgumentType]
    "no inputs": lambda b, x: dg.evaluate(b.graph(x), 3),  # pyright: ignore[reportArgumentType]
    "no passes": lambda b, x: dg.run_passes(b.graph(x), 3),  # pyright: ignore[reportArgumentType]
    "an odd label": lambda b, x: dg.CallConfig(label=3),  # pyright: ignore[reportArgumentType]
    "odd outputs": lambda b, x: dg.CallConfig(outputs=3),  # pyright: ignore[reportArgumentType]
}  # fmt: skip


@pytest.mark.parametrize("mistake", BUILDING)
def test_wrong_kinds_in_building_are_typed_errors(mistake: str) -> None:
    b = dg.Builder("wrong")
    x = b.input("x", (2, 3))
    with pytest.raises(DashiError, match="Fix: "):
        BUILDING[mistake](b, x)


@pytest.mark.parametrize("name", ["verify", "explain", "run_passes", "program_id", "host_steps"])
def test_what_is_no_graph_is_refused(name: str) -> None:
    with pytest.raises(GraphError, match=r"int is no graph\. Fix: "):
        getattr(dg, name)(3)
    with pytest.raises(GraphError, match=r"int is no graph\. Fix: "):
        dg.evaluate(3, {})  # pyright: ignore[reportArgumentType]


X = np.ones((2, 3), np.float32)
CALLING: dict[str, Any] = {
    "an extent that is a number": lambda p: p.feed(p.bind("x", X), "y", active_extent=3),
    "an extent of three": lambda p: p.feed(p.bind("x", X), "y", active_extent=(1, 2, 3)),
    "a feed of no name": lambda p: p.feed(p.bind("x", X), 3),
    "a bound number": lambda p: p.bind(3, X),
    "outputs that are text": lambda p: p.dispatch_resident({"x": X}, "y"),
    "outputs that are a number": lambda p: p.dispatch_resident({"x": X}, 3),
    "outputs into None": lambda p: p.dispatch_into({"x": X}, {"y": None}),
    "outputs into nothing": lambda p: p.dispatch_into({"x": X}, None),
    "a batch into numbers": lambda p: p.dispatch_batched_into([{"x": X}], [3]),
    "a resident batch into None": lambda p: p.dispatch_resident_batched_into([{"x": X}], [{"y": None}]),
    "resident outputs into None": lambda p: p.dispatch_resident_into({"x": X}, {"y": None}),
    "rows that are none": lambda p: p.dispatch_resident_rows(3),
    "a param that is a number": lambda p: p.set_param(3, X),
    "an input that is a number": lambda p: p.dispatch({1: X}),
    "debug switches that are none": lambda p: dg.compile(doubled(), p.device, debug=3),  # pyright: ignore[reportArgumentType]
    "params that are none": lambda p: dg.compile(doubled(), p.device, params=3),  # pyright: ignore[reportArgumentType]
    "passes that are none": lambda p: dg.compile(doubled(), p.device, passes=3),  # pyright: ignore[reportArgumentType]
}


def doubled() -> dg.Graph:
    b = dg.Builder("doubled")
    return b.graph(y=b.input("x", (2, 3)) * 2.0)


def test_wrong_kinds_in_calls_are_typed_errors_and_later_runs_are_right() -> None:
    with dashi.open("cpu") as device, dg.compile(doubled(), device, slots=2) as pipeline:
        for mistake, call in CALLING.items():
            with pytest.raises(DashiError, match="Fix: "):
                call(pipeline)
            assert pipeline.dispatch({"x": X})["y"].tolist() == [[2] * 3] * 2, mistake
