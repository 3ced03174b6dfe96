"""Graphs as they are built, printed, read and verified; what cannot be is an error with the node's name."""

from __future__ import annotations

import re
import tracemalloc
from collections.abc import Callable
from dataclasses import replace
from typing import cast

import numpy as np
import pytest

from dashi import graph as dg
from dashi.errors import GraphError
from dashi.graph.ir import Node, tensor_type
from dashi.graph.ops._leaves import constant_node
from dashi.graph.registry import all_ops

GOLDEN = """graph tiny
%x = input : f32[2,3]
%w = param : f32[4,3]
%transpose_0 = transpose %w {axes=[1,0]} : f32[3,4]
%h = matmul %x %transpose_0 : f32[2,4]
%constant_0 = constant {value=0.5} : f32[]
%add_0 = add %h %constant_0 : f32[2,4]
%tanh_0 = tanh %add_0 : f32[2,4]
%table = constant {data="AAAAAAEAAAA="} : u32[2]
%gather_0 = gather %tanh_0 %table : f32[2,4]
return y=%gather_0
"""


def tiny() -> dg.Graph:
    b = dg.Builder("tiny")
    x = b.input("x", (2, 3))
    w = b.param("w", np.ones((4, 3), np.float32))
    h = b.apply("matmul", x, w.transpose(), name="h")
    table = b.constant(np.array([0, 1], np.uint32), name="table")
    return b.graph(y=dg.gather(dg.tanh(h + 0.5), table))


def test_a_graph_prints_as_it_reads() -> None:
    assert sorted(str(tiny()).splitlines()) == sorted(GOLDEN.splitlines())
    assert dg.parse_graph(GOLDEN).outputs == (("y", "gather_0"),)
    assert str(dg.parse_graph(GOLDEN)) == GOLDEN
    assert dg.parse_graph(str(tiny())) == tiny()


def test_infinities_and_nan_are_constants_that_round_trip() -> None:
    b = dg.Builder("edges")
    x = b.input("x", ())
    g = b.graph(y=x + float("inf"), z=x * b.constant(float("nan")))
    assert dg.parse_graph(str(g)) == g
    assert np.isnan(dg.evaluate(g, {"x": np.array(1, np.float32)})["z"].item())


MISTAKES: dict[str, tuple[Callable[[dg.Builder, dg.Tensor], object], str]] = {
    "shapes": (lambda b, x: x + b.input("y", (3, 3)), "node 'add_0' (add of f32[2,3], f32[3,3]): shapes"),
    "types": (lambda b, x: x + b.input("y", (2, 3), "f64"), "do not mix"),
    "fractions": (lambda b, x: b.input("i", (2,), "u8") * 0.5, "0.5 in 'constant' is no uint8"),
    "beyond": (lambda b, x: b.input("i", (2,), "u8") + 300, "300 in 'constant' is no uint8"),
    "below": (lambda b, x: dg.maximum(b.input("i", (2,), "u32"), -1), "-1 in 'constant' is no uint32"),
    "no number": (lambda b, x: b.input("i", (2,), "i64") + float("nan"), "nan in 'constant' is no int64"),
    "far beyond": (lambda b, x: b.input("i", (2,), "i64") + 10**30, "the values of 'constant' are of object"),
    "array": (lambda b, x: b.constant(np.array([1.0, 2.5]), "i32"), "2.5 in 'constant' is no int32"),
    "text": (lambda b, x: b.apply("add", x, cast("float", "1")), "the values of 'constant' are of <U1"),
    "filling": (lambda b, x: dg.pad(b.input("i", (2,), "i8"), [(1, 1)], value=128), "128 in 'value' is no int8"),
    "product": (lambda b, x: x @ x, "are no matrices that fit"),
    "reshape": (lambda b, x: x.reshape(4, 2), "6 elements are no array of shape"),
    "axes": (lambda b, x: x.transpose(0, 0), "does not name each of 2 axes once"),
    "reduced": (lambda b, x: dg.sum_(x, 5), "are no axes of"),
    "huge": (lambda b, x: b.input("y", (10**6, 10**6)), "has 1000000000000 elements"),
    "stretched": (lambda b, x: dg.expand(x.reshape(2, 3, 1), (2, 3, 10**12)), "elements"),
    "rank": (lambda b, x: b.input("y", (1,) * 65), "65 axes"),
    "negative": (lambda b, x: b.input("y", (-1,)), "cannot be negative"),
    "duplicate": (lambda b, x: b.input("x", (2,)), "there are two values 'x'"),
    "name": (lambda b, x: b.input("a b", (2,)), "is no name"),
    "index": (lambda b, x: dg.gather(x, x), "an index of uint32"),
    "erf of integers": (lambda b, x: dg.erf(b.input("i", (2,), "i32")), "is not defined for int32"),
    "mask": (lambda b, x: dg.attention(x, x, x, x, scale=1.0), "q has 2 axes"),
    "unknown": (lambda b, x: b.apply("tanhh", x), "there is no op 'tanhh'. Fix: did you mean tanh"),
    "other graph": (lambda b, x: x + dg.Builder("other").input("x", (2, 3)), "belongs to another graph"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_an_impossible_node_is_an_error_when_it_is_added(mistake: str) -> None:
    make, expected = MISTAKES[mistake]
    b = dg.Builder("wrong")
    x = b.input("x", (2, 3))
    with pytest.raises(GraphError) as error:
        make(b, x)
    assert expected in str(error.value)
    assert "Fix: " in str(error.value)


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("%y = tanh %y : f32[2,3]", "line 3: %y is not defined above"),
        ("%y = tanh %z : f32[2,3]\n%z = tanh %y : f32[2,3]", "line 3: %z is not defined above"),
        ("%x = tanh %x : f32[2,3]", "line 3: there are two values 'x'"),
        ("%y = tanh %x : f32[3,2]", "%y is f32[2,3], not f32[3,2]"),
        ("%y = tanh %x : f32[1000000,1000000]", "has 1000000000000 elements"),
        ("%y = tanh %x : f32[99999999999999999999]", "too many digits"),
        ("%y = nothing %x : f32[2,3]", "there is no op 'nothing'"),
        ("%y = sum %x {axes=[0} : f32[3]", "is no JSON value"),
        ("%y = sum %x {axes={}} : f32[3]", "is an object"),
        ("%y = constant {data=\"AAAA\"} : f32[2]", "has no values for f32[2]"),
        ("%y = constant {value=0.1} : f32[2]", "which no float32 is"),
        ("%y = view %x {view=[[7],[1],0]} : f32[7]", "a view of the elements 0 to 6 of 6"),
        ("%y = constant %x {value=1} : f32[2]", "constant needs 0 inputs, not 1"),
        ('%y = map %x {body=["add in0"], views=[null]} : f32[2,3]', "add needs 2 inputs, not 1"),
        ("%y = map %x {body=[], views=[null]} : f32[2,3]", "a formula without lines"),
        ("%y = view %x {view=[[NaN],[1],0]} : f32[1]", "is no view"),
        ("%y = view %x {view=[[6],[true],0]} : f32[6]", "is no view"),
        ('%y = view %x {view=[[0,""],[1,1],0]} : f32[0]', "is no view"),
        ('%y = view %x {view=[[6],[1],"0"]} : f32[6]', "is no view"),
        ("%y = packed %x {view=[[7],[1],0]} : f32[7]", "a view of the elements 0 to 6 of 6"),
        ('%y = packed %x {to="u8", view=[[6],[1],0]} : u8[6]', "float32 is not packed as uint8"),
        ('%y = map %x {body=[""], views=[null]} : f32[2,3]', "'' is no line of a formula"),
        ('%y = map %x {body=["cast:i32 in0"], views=[null]} : i32[2,3]', "a map of f32 and i32"),
        (('%h = cast %x {to="bf16"} : bf16[2,3]\n%y = rows %h {axes=[0], head=[], kind="l1", tail=[], views=[null]} '
         ": bf16[3]"), "line 4: node 'y' (rows of bf16[2,3]): rows of bfloat16"),
        (('%y = rows %x %x {axes=[0], head=[], keepdims=true, kind="sum", tail=["add value in1"], views=[null,null]} '
         ": f32[2,3]"), "a tail stretches f32[1,3] to f32[2,3]"),
        (('%b = param : f32[4,3,1]\n%y = product %x %x %b {tail=["add value in2"], views=[null,[[3,2],[1,3],0],null]} '
         ": f32[4,3,2]"), "shapes"),
        (('%b = param : f32[4,2,1]\n%y = product %x %x %b {tail=["add value in2"], views=[null,[[3,2],[1,3],0],null]} '
         ": f32[4,2,2]"), "a tail stretches f32[2,2] to f32[4,2,2]"),
        (('%h = cast %x {to="f64"} : f64[2,3]\n%y = rows %h %x {axes=[0], head=["less in0 in0",'
          '"where v0 in1 f32:0.0"], keepdims=false, kind="sum", tail=[], views=[null,null]} : f32[3]'),
         "rows of float32 and float64"),
        ('%y = map %x {body=[" "], views=[null]} : f32[2,3]', "' ' is no line of a formula"),
        (f"%y = relu %x {{{','.join(f'a{k}=1' for k in range(65))}}} : f32[2,3]", "has more than 64 attributes"),
        ("nonsense", "is no node"),
    ],
)  # fmt: skip
def test_text_that_is_no_graph_is_refused_with_its_line(line: str, expected: str) -> None:
    with pytest.raises(GraphError) as error:
        dg.parse_graph(f"graph bad\n%x = input : f32[2,3]\n{line}\nreturn y=%x\n")
    assert expected in str(error.value)


def parse_error(line: str) -> str:
    """What is wrong with a node's line, behind %x and %u; empty where nothing is."""
    try:
        dg.parse_graph(f"graph bad\n%x = input : f32[2,3]\n%u = input : u32[4]\n{line}\nreturn y=%x\n")
    except GraphError as error:
        return str(error)
    return ""


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (f"%y = constant {{value={'9' * 5000}}} : f32[]", "is no JSON value"),
        (f"%y = constant {{value={'9' * 400}}} : f32[]", "a number of 1329 bits"),
        (f"%y = constant {{value=-{'9' * 400}}} : i64[]", "a number of 1329 bits"),
        (f"%y = attention %x %x %x {{scale={'9' * 400}}} : f32[2,3]", "a number of 1329 bits"),
        (f"%y = reshape %x {{shape=[{'9' * 4000},{'9' * 4000}]}} : f32[2,3]", "a number of"),
        ("%y = constant {value=18446744073709551616} : u64[]", "a number of 65 bits"),
        ("%y = constant {value=18446744073709551615} : i64[]", "which no int64 is"),
        ("%y = constant {value=1e300} : f32[]", "which no float32 is"),
        ("%y = constant {value=Infinity} : i32[]", "which no int32 is"),
        ("%y = constant {value=NaN} : i32[]", "which no int32 is"),
        ("%y = constant {value=1} : f32[4294967295]", "has 17179869180 bytes"),
        ('%y = constant {data="AAAÄ"} : u8[3]', "has no values for u8[3]"),
        (f"%y = sum %x {{axes={'[' * 18}{']' * 18}}} : f32[3]", "lists in lists, 17 deep"),
        (f"%y = sum %x {{axes={'[' * 900}{']' * 900}}} : f32[3]", "the attribute axes"),
        (f"%y = sum %x {{axes={'[' * 100_000}{']' * 100_000}}} : f32[3]", "the attribute axes is no JSON value"),
        (f"%y = sum %x {{axes=[{{{chr(34)}a{chr(34)}:{'[' * 900}{']' * 900}}}]}} : f32[3]", "has a dict in it"),
    ],
    ids=range(16),
)
def test_numbers_and_lists_beyond_all_measure_are_errors_of_graphs(line: str, expected: str) -> None:
    assert expected in parse_error(line)


def test_parsing_takes_no_memory_for_a_number_that_all_elements_are() -> None:
    tracemalloc.start()
    assert not parse_error("%y = constant {value=1} : f32[268435456]")
    assert tracemalloc.get_traced_memory()[1] < 1 << 20
    tracemalloc.stop()


def test_a_constant_of_the_builder_is_held_to_the_same_size() -> None:
    with pytest.raises(GraphError, match="make it a param"):
        constant_node("c", np.broadcast_to(np.float32(1), (1 << 29,)))


@pytest.mark.parametrize("name", all_ops())
def test_too_few_and_too_many_inputs_are_an_error_of_every_op(name: str) -> None:
    least, most = all_ops()[name].arity
    for count in [*range(least), *(range(most + 1, most + 6) if most is not None else ())]:
        error = parse_error(f"%y = {name}{' %x' * count} : f32[2,3]")
        assert re.match(f"line 4: .*({name} needs {least}|takes neither inputs).* Fix: ", error)


@pytest.mark.parametrize("name", sorted(set(all_ops()) - {"input", "param"}))
def test_a_node_that_says_nothing_true_of_itself_is_an_error_of_graphs(name: str) -> None:
    for source in "xu":
        inputs = f" %{source}" * all_ops()[name].arity[0]
        assert parse_error(f"%y = {name}{inputs} : f16[7]").startswith("line 4: ")


def test_verify_finds_what_a_pass_could_break() -> None:
    g = tiny()
    with pytest.raises(GraphError, match="does not stand before it"):
        dg.verify(replace(g, nodes=tuple(reversed(g.nodes))))
    with pytest.raises(GraphError, match="says that it is"):
        dg.verify(replace(g, nodes=(*g.nodes[:-1], replace(g.nodes[-1], type=tensor_type((9,), "f32")))))
    with pytest.raises(GraphError, match="two nodes"):
        dg.verify(replace(g, nodes=(*g.nodes, g.nodes[-1])))
    with pytest.raises(GraphError, match="which is no node"):
        dg.verify(replace(g, outputs=(("y", "gone"),)))
    with pytest.raises(GraphError, match="reads other nodes"):
        dg.verify(replace(g, nodes=(*g.nodes, Node("leaf", "input", ("x",), g.nodes[0].type))))


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (
            "%p = packed %x {view=[[3,2],[1,3],0]} : f32[3,2]\n%y = relu %p : f32[3,2]",
            "'p' packs 'x', which is no param",
        ),
        ("%y = packed %w {view=[[3,2],[1,3],0]} : f32[3,2]", "the result 'y' is the packed param 'y'"),
    ],
)
def test_params_alone_are_packed_and_show_their_numbers_in_no_result(lines: str, expected: str) -> None:
    graph = dg.parse_graph(f"graph g\n%x = input : f32[2,3]\n%w = param : f32[2,3]\n{lines}\nreturn y=%y")
    with pytest.raises(GraphError, match=re.escape(expected)):
        dg.verify(graph)


def test_inputs_are_held_to_their_types() -> None:
    g = tiny()
    with pytest.raises(GraphError, match="has no values"):
        dg.evaluate(g, {})
    with pytest.raises(GraphError, match=r"is f32\[2,3\], not float64"):
        dg.evaluate(g, {"x": np.ones((2, 3))})
    with pytest.raises(GraphError, match="has no input 'xx'"):
        dg.evaluate(g, {"x": np.ones((2, 3), np.float32), "xx": np.ones(1, np.float32)})
