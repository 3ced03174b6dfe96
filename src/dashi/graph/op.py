"""What an op is: its inference, its definition in NumPy, and how devices run it. Each is declared once, in `ops/`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from dashi.errors import GraphError
from dashi.graph.ir import Node, TensorType
from dashi.kernels.abi import Kernel, Number, View
from dashi.types import HostArray, Shape

if TYPE_CHECKING:
    from dashi.graph.builder import Tensor

Kind = Literal["leaf", "view", "elementwise", "rows", "product", "other"]


@dataclass(frozen=True)
class Launch:
    """How a kernel computes a node: its operands are the node's inputs with these shapes, and its result is the node's
    value with the shape `result`. Shapes may differ from the values' own in how they are written, not in size."""

    kernel: Kernel
    shapes: tuple[Shape, ...]
    result: Shape
    scalars: Mapping[str, Number] = field(default_factory=dict[str, Number])


@dataclass(frozen=True)
class Copies:
    """How copies alone make a node's value: the element of it at which each input begins."""

    offsets: tuple[int, ...]


def by_expansion(node: Node, *values: HostArray) -> HostArray:
    """The definition of ops that are nothing but what they are written in: `evaluation.evaluate_node` knows it."""
    raise GraphError(f"{node.op} is computed by its expansion.", "call dashi.graph.evaluation.evaluate_node.")


@dataclass(frozen=True)
class Op:
    """An op of graphs.

    - `arity` is the least and the most inputs that it has; None where there may be any number more.
    - `infer(node, types)` gives the type of the result from those of the inputs and the node's attributes (the node's
      own type is not known yet), or raises a GraphError.
    - `evaluate(node, *values)` is the definition: canonical NumPy values in, canonical values out, with the bits of the
      kernels; or `by_expansion`, of ops that are what `expand` writes. Its `version` goes up whenever it gives other
      bits.
    - `view(node, source)`, of ops that only say which elements they consist of: an index map into what `source` maps
      into, or None where strides cannot say it.
    - `expand(node, *inputs)` writes the node in other ops, with the same bits, or is None where it need not; for what
      has no kernel of its own.
    - `launch(node, types)` is the kernel, or the copies, that make it of dense inputs, or None: then the host does.
    """

    name: str
    infer: Callable[[Node, Sequence[TensorType]], TensorType]
    evaluate: Callable[..., HostArray]
    kind: Kind = "other"
    arity: tuple[int, int | None] = field(kw_only=True)
    version: int = 1
    view: Callable[[Node, View], View | None] | None = None
    expand: Callable[..., Tensor | None] | None = None
    launch: Callable[[Node, Sequence[TensorType]], Launch | Copies | None] | None = None
    canonical: bool = True
    """Whether a device stores canonical values whatever it reads; ops that move bits do not."""

    def require_inputs(self, count: int) -> None:
        """A GraphError where the op does not have so many inputs."""
        least, most = self.arity
        if least <= count and (most is None or count <= most):
            return
        needed = f"{least} or more" if most is None else str(least) if most == least else f"{least} to {most}"
        raise GraphError(f"{self.name} needs {needed} inputs, not {count}.", f"pass {needed}.")
