"""Graphs as text, and back: what is printed can be read again and gives an equal graph.

    graph tiny
    %x = input : f32[2,3]
    %w = param : f32[3,4]
    %h = matmul %x %w : f32[2,4]
    %y = transpose %h {axes=[1,0]} : f32[4,2]
    return y=%y

Attributes are JSON. Each line is checked as it is read: names that are taken, values that are used before they are
defined (so that no cycle can be written), unknown ops, and types that differ from what the op infers are errors with
their line.
"""

from __future__ import annotations

import json
import re
from typing import Any, Final

from dashi.errors import GraphError, InputError
from dashi.graph.builder import require_name, typed_node
from dashi.graph.ir import Graph, Node, attributes_of, tensor_type

_NODE: Final = re.compile(r"%(\S+) = (\w+)((?: %\S+)*)(?: \{(.*)\})? : (\w+)\[([\d,]*)\]")
_MOST_LINES: Final = 1_000_000
_MOST_ATTRIBUTES: Final = 64
_LONGEST_NUMBER: Final = 15


def parse_graph(text: str) -> Graph:
    """The graph that a text stands for, with all types inferred again. Values of params are no part of it."""
    if not isinstance(text, str):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise GraphError(f"{type(text).__name__} is no text.", "pass what print_graph gives.")
    lines = [(number, line.strip()) for number, line in enumerate(text.splitlines(), 1)]
    lines = [(number, line) for number, line in lines if line and not line.startswith("#")]
    if len(lines) > _MOST_LINES:
        raise GraphError(f"a text of {len(lines)} lines is too long.", f"use at most {_MOST_LINES}.")
    if len(lines) < 2 or not lines[0][1].startswith("graph ") or not lines[-1][1].startswith("return "):
        raise GraphError("the text is no graph.", "begin it with `graph NAME` and end it with `return y=%node`.")
    nodes: dict[str, Node] = {}
    for number, line in lines[1:-1]:
        try:
            node = _parse_node(line, nodes)
        except InputError as error:
            raise GraphError(f"line {number}: {error.what}", error.fix) from error
        nodes[node.name] = node
    outputs = _parse_outputs(lines[-1][1], nodes)
    return Graph(require_name(lines[0][1].removeprefix("graph ").strip()), tuple(nodes.values()), outputs)


def _parse_node(line: str, before: dict[str, Node]) -> Node:
    from dashi.graph.registry import get

    match = _NODE.fullmatch(line)
    if match is None:
        raise GraphError(f"{line[:80]!r} is no node.", "write `%name = op %input {attribute=1} : f32[2,3]`.")
    name, op, reads, attributes, dtype, lengths = match.groups()
    if require_name(name) in before:
        raise GraphError(f"there are two values {name!r}.", "give each its own name.")
    inputs = tuple(word[1:] for word in reads.split())
    for source in inputs:
        if source not in before:
            raise GraphError(
                f"%{source} is not defined above.", "define values before they are used; there are no cycles."
            )
    if any(len(length) > _LONGEST_NUMBER for length in lengths.split(",")):
        raise GraphError("a length has too many digits.", "use smaller shapes.")
    stated = tensor_type([int(length) for length in lengths.split(",") if length], dtype)
    values = _parse_attributes(attributes or "")
    if op in ("input", "param"):
        if inputs or values:
            raise GraphError(f"{op} %{name} takes neither inputs nor attributes.", "remove them.")
        return Node(name, op, (), stated)
    if op == "constant":
        from dashi.graph.ops._leaves import require_constant

        get(op).require_inputs(len(inputs))
        node = Node(name, op, (), stated, attributes_of(values))
        return require_constant(node)
    node = typed_node(get(op), name, inputs, [before[source].type for source in inputs], values)
    if node.type != stated:
        raise GraphError(f"%{name} is {node.type}, not {stated}.", "correct the type, or leave it to the builder.")
    return node


def _parse_attributes(text: str) -> dict[str, object]:
    values: dict[str, object] = {}
    decoder = json.JSONDecoder()
    while text:
        name, equals, rest = text.partition("=")
        if len(values) == _MOST_ATTRIBUTES:
            raise GraphError(f"a node has more than {_MOST_ATTRIBUTES} attributes.", "write those that its op has.")
        if not equals or not name.isidentifier() or name in values:
            raise GraphError(f"{text[:40]!r} is no attribute.", "write {name=value, ...}, each name once.")
        try:
            value, end = decoder.raw_decode(rest)
        except (ValueError, RecursionError) as error:  # numbers of thousands of digits are a ValueError, too
            raise GraphError(
                f"the attribute {name} is no JSON value.", "write numbers, text and lists as JSON."
            ) from error
        values[name] = _no_objects(name, value)
        text = rest[end:].removeprefix(",").lstrip()
    return values


def _no_objects(name: str, value: Any) -> object:
    if isinstance(value, dict):
        raise GraphError(f"the attribute {name} is an object.", "use numbers, text, and lists of them.")
    return value


def _parse_outputs(line: str, nodes: dict[str, Node]) -> tuple[tuple[str, str], ...]:
    outputs: dict[str, str] = {}
    for word in line.removeprefix("return ").split():
        title, _, name = word.partition("=%")
        if name not in nodes or require_name(title) in outputs:
            raise GraphError(f"{word!r} is no result.", "write `return y=%node`, each name once.")
        outputs[title] = name
    if not outputs:
        raise GraphError("the graph has no results.", "write `return y=%node`.")
    return tuple(outputs.items())
