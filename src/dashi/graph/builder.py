"""Builds graphs: each op that is added is checked at once, and an impossible one is an error that names its node.

b = Builder("tiny")
x = b.input("x", (2, 3))
w = b.param("w", np.ones((3, 4), np.float32))
g = b.graph(y=tanh(x @ w))
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from dashi.errors import DashiError, GraphError, InputError
from dashi.graph._values import values_of_type
from dashi.graph.ir import Graph, Node, TensorType, attributes_of, tensor_type
from dashi.graph.op import Op
from dashi.types import DType, HostArray, Shape

_LONGEST_NAME: Final = 200


@dataclass(frozen=True, eq=False)
class Tensor:
    """A value of a graph that is being built. Operators and the functions of `dashi.graph` make new ones."""

    builder: Builder
    node: Node
    __array_ufunc__ = None
    """Arrays of NumPy leave operators to tensors: `array + tensor` is a tensor."""

    @property
    def name(self) -> str:
        return self.node.name

    @property
    def shape(self) -> Shape:
        return self.node.shape

    @property
    def dtype(self) -> DType:
        return self.node.dtype

    def __add__(self, other: Operand) -> Tensor:
        return self.builder.apply("add", self, other)

    def __radd__(self, other: Operand) -> Tensor:
        return self.builder.apply("add", other, self)

    def __sub__(self, other: Operand) -> Tensor:
        return self.builder.apply("sub", self, other)

    def __rsub__(self, other: Operand) -> Tensor:
        return self.builder.apply("sub", other, self)

    def __mul__(self, other: Operand) -> Tensor:
        return self.builder.apply("mul", self, other)

    def __rmul__(self, other: Operand) -> Tensor:
        return self.builder.apply("mul", other, self)

    def __truediv__(self, other: Operand) -> Tensor:
        return self.builder.apply("div", self, other)

    def __rtruediv__(self, other: Operand) -> Tensor:
        return self.builder.apply("div", other, self)

    def __neg__(self) -> Tensor:
        return self.builder.apply("neg", self)

    def __matmul__(self, other: Tensor) -> Tensor:
        return self.builder.apply("matmul", self, other)

    def reshape(self, *shape: int) -> Tensor:
        """All elements in C order under another shape; one length may be -1."""
        return self.builder.apply("reshape", self, shape=shape)

    def transpose(self, *axes: int) -> Tensor:
        """Axes in another order; reversed where none are named."""
        return self.builder.apply("transpose", self, axes=axes or tuple(reversed(range(len(self.shape)))))

    def __repr__(self) -> str:
        return f"<Tensor {self.name}: {self.node.op} {self.node.type}>"


Operand = Tensor | int | float


class Builder:
    """Collects nodes. Names are given, or made of the op and a number; `reserved` ones are never made up."""

    def __init__(self, name: str = "graph", reserved: Iterable[str] = ()) -> None:
        self.name = require_name(name)
        self._nodes: dict[str, Node] = {}
        self._params: dict[str, HostArray] = {}
        self._reserved = frozenset(reserved)
        self._counter = 0
        self._prefix = ""

    def input(self, name: str, shape: Iterable[int], dtype: object = "f32") -> Tensor:
        """Values that come with every run."""
        return self._leaf(name, "input", tensor_type(shape, dtype))

    def param(self, name: str, values: Any) -> Tensor:
        """Values that stay from run to run, until they are set again."""
        array = host_values(name, values)
        leaf = self._leaf(name, "param", tensor_type(array.shape, array.dtype))
        self._params[name] = array
        return leaf

    def packed_param(self, name: str, format: str, shape: Sequence[int], data: Any) -> Tensor:
        """The numbers (float32, of that shape) of a param in a block format of GGUF files (Q8_0, Q4_K, ...). `data` are
        its bytes, as they lie in the file, row by row; `set_param` takes bytes too. They are not widened in memory
        where numbers are the transposed factor of a product, or the table of a gather."""
        from dashi.graph.ops.packed import packed_param

        return packed_param(self, name, format, shape, data)

    def constant(self, values: Any, dtype: object = None, *, name: str = "") -> Tensor:
        """Values that are part of the graph: a number, or an array. Floats are rounded to a `dtype` of floats; integers
        must be values of theirs."""
        from dashi.graph.ops._leaves import constant_node

        kind = None if dtype is None else tensor_type((), dtype).dtype
        try:
            array = host_values("constant", values if kind is None else values_of_type("constant", values, kind))
        except (TypeError, ValueError) as error:
            if isinstance(error, DashiError):
                raise
            raise GraphError(f"{values!r:.200} are no numbers: {error}.", "pass numbers.") from error
        return self._keep(constant_node(self._free(name, "constant"), array, kind))

    def add(self, op: Op, *inputs: Tensor, name: str = "", **attributes: object) -> Tensor:
        """A node of an op; its type is inferred now."""
        if not isinstance(op, Op):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise GraphError(f"{op!r:.80} is no op.", "pass a dashi.graph.Op, or call `apply` with its name.")
        for tensor in inputs:
            if tensor.builder is not self:
                raise GraphError(f"{tensor.name!r} belongs to another graph.", "build a graph with one Builder.")
        title = self._free(name, op.name)
        types = [tensor.node.type for tensor in inputs]
        return self._keep(typed_node(op, title, tuple(t.name for t in inputs), types, attributes))

    def apply(self, op: str, *inputs: Operand, name: str = "", **attributes: object) -> Tensor:
        """A node of the op of that name; plain numbers become constants of the type of the other inputs."""
        from dashi.graph.registry import get

        kind = next((tensor.dtype for tensor in inputs if isinstance(tensor, Tensor) and tensor.dtype != "bool"), None)
        tensors = [t if isinstance(t, Tensor) else self.constant(t, kind) for t in inputs]
        return self.add(get(op), *tensors, name=name, **attributes)

    def graph(self, *results: Tensor, **named: Tensor) -> Graph:
        """The graph of everything that the results need, under names of theirs; and all its inputs and params."""
        for tensor in results:
            if not isinstance(tensor, Tensor):  # pyright: ignore[reportUnnecessaryIsInstance]
                raise GraphError(f"the result {tensor!r:.80} is no value of a builder.", "pass its own tensors.")
        outputs = {**{tensor.name: tensor for tensor in results}, **named}
        if not outputs:
            raise GraphError(f"the graph {self.name!r} has no results.", "name some: builder.graph(y=tensor).")
        for title, tensor in outputs.items():
            if not isinstance(tensor, Tensor) or tensor.builder is not self:  # pyright: ignore[reportUnnecessaryIsInstance]
                raise GraphError(f"the result {title!r} is no value of this builder.", "pass its own tensors.")
            require_name(title)
        whole = Graph(self.name, tuple(self._nodes.values()), (), dict(self._params))
        return whole.with_nodes(whole.nodes, [(title, tensor.name) for title, tensor in outputs.items()])

    def adopt(self, node: Node) -> Tensor:
        """A node that was checked before, as a value of this builder."""
        if node.name in self._nodes:
            raise GraphError(f"there are two values {node.name!r} in the graph {self.name!r}.", "rename one.")
        return self._keep(node)

    @property
    def nodes(self) -> tuple[Node, ...]:
        """All nodes so far."""
        return tuple(self._nodes.values())

    @contextmanager
    def scope(self, prefix: str) -> Generator[None]:
        """Names that are made up begin with `prefix.` inside."""
        before, self._prefix = self._prefix, f"{prefix}."
        try:
            yield
        finally:
            self._prefix = before

    def _leaf(self, name: str, op: str, kind: TensorType) -> Tensor:
        require_name(name)
        if name in self._nodes:
            raise GraphError(f"there are two values {name!r} in the graph {self.name!r}.", "give each its own name.")
        return self._keep(Node(name, op, (), kind))

    def _keep(self, node: Node) -> Tensor:
        self._nodes[node.name] = node
        return Tensor(self, node)

    def _free(self, name: str, op: str) -> str:
        if name:
            if require_name(name) in self._nodes:
                raise GraphError(f"there are two values {name!r} in the graph {self.name!r}.", "rename one.")
            return name
        while (made_up := f"{self._prefix}{op}_{self._counter}") in self._nodes or made_up in self._reserved:
            self._counter += 1
        return made_up


def typed_node(
    op: Op, name: str, inputs: tuple[str, ...], types: Sequence[TensorType], attributes: dict[str, object]
) -> Node:
    """A node with the type that its op infers; errors begin with its name."""
    untyped = Node(name, op.name, inputs, TensorType((), types[0].dtype) if types else _NO_TYPE, ())
    try:
        untyped = Node(name, op.name, inputs, untyped.type, attributes_of(attributes))
        op.require_inputs(len(types))
        inferred = op.infer(untyped, types)
        kind = tensor_type(inferred.shape, inferred.dtype)
    except InputError as error:
        raise GraphError(
            f"node {name!r} ({op.name} of {', '.join(map(str, types))}): {error.what}", error.fix
        ) from error
    return Node(name, op.name, inputs, kind, untyped.attributes)


_NO_TYPE: Final = tensor_type((), "f32")


def require_name(name: str) -> str:
    """A name that the text form can hold."""
    if not isinstance(name, str) or not name or len(name) > _LONGEST_NAME:  # pyright: ignore[reportUnnecessaryIsInstance]
        raise GraphError(f"{name!r:.50} is no name.", f"use 1 to {_LONGEST_NAME} characters.")
    if not all(c.isascii() and (c.isalnum() or c in "_.-/") for c in name):
        raise GraphError(f"{name!r} is no name for a value.", "use letters, digits and _ . - / only.")
    return name


def host_values(name: str, values: Any) -> HostArray:
    """Values of the host as an array that no one else changes; Python's floats are float32."""
    try:
        array = np.asarray(values)
    except ValueError as error:  # lists in lists of several lengths
        raise GraphError(f"the values of {name!r} are no array: {error}.", "pass numbers or truth values.") from error
    if array.dtype == np.float64 and not isinstance(values, (np.ndarray, np.generic)):
        array = array.astype(np.float32)
    if array.dtype.kind not in "fiub":
        raise GraphError(f"the values of {name!r} are of {array.dtype}.", "pass numbers or truth values.")
    kind = tensor_type(array.shape, array.dtype)
    copy: HostArray = np.array(array, kind.dtype.numpy, order="C")
    copy.flags.writeable = False
    return copy
