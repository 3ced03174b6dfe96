"""Activations of neural networks: the formulas of `dashi.kernels.activations`, which `legalize` writes in elementwise
ops, so that they are fused with what stands before and behind them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

from dashi.errors import GraphError
from dashi.graph._arguments import checked
from dashi.graph.ir import Node, TensorType
from dashi.graph.op import Op
from dashi.graph.ops.elementwise import cast, converted, is_narrow
from dashi.kernels import activations
from dashi.kernels._formulas import Formula, formula
from dashi.kernels._storage import COMPUTE
from dashi.kernels.expressions import Expression, arguments
from dashi.types import HostArray
from dashi.types import dtype as dtype_of

if TYPE_CHECKING:
    from dashi.graph.builder import Tensor

_FORMULAS: Final[dict[str, tuple[Callable[..., Expression], tuple[str, ...]]]] = {
    "elu": (activations.elu, ("alpha",)),
    "gelu": (activations.gelu, ()),
    "gelu_tanh": (activations.gelu_tanh, ()),
    "hard_sigmoid": (activations.hard_sigmoid, ("alpha", "beta")),
    "hard_swish": (activations.hard_swish, ()),
    "leaky_relu": (activations.leaky_relu, ("slope",)),
    "mish": (activations.mish, ()),
    "selu": (activations.selu, ("alpha", "gamma")),
    "silu": (activations.silu, ()),
    "tan": (activations.tan, ()),
}
"""Each with its formula, and the names of the formula's numbers."""


@checked
def elu(x: Tensor, alpha: float = 1.0) -> Tensor:
    """x, or alpha (e^x - 1) below 0."""
    return _node("elu", x, alpha=alpha)


@checked
def gelu(x: Tensor) -> Tensor:
    """x times the normal distribution function of x, by erf."""
    return _node("gelu", x)


@checked
def gelu_tanh(x: Tensor) -> Tensor:
    """x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))) / 2, the approximate form of `gelu`."""
    return _node("gelu_tanh", x)


@checked
def hard_sigmoid(x: Tensor, alpha: float = 0.2, beta: float = 0.5) -> Tensor:
    """alpha x + beta, at least 0 and at most 1."""
    return _node("hard_sigmoid", x, alpha=alpha, beta=beta)


@checked
def hard_swish(x: Tensor) -> Tensor:
    """x times `hard_sigmoid` with alpha 1/6."""
    return _node("hard_swish", x)


@checked
def leaky_relu(x: Tensor, slope: float = 0.01) -> Tensor:
    """x, or slope x below 0."""
    return _node("leaky_relu", x, slope=slope)


@checked
def mish(x: Tensor) -> Tensor:
    """x tanh(softplus(x))."""
    return _node("mish", x)


@checked
def selu(x: Tensor, alpha: float = 1.67326319217681884765625, gamma: float = 1.05070102214813232421875) -> Tensor:
    """gamma times `elu`, with the constants of G. Klambauer et al., arXiv:1706.02515."""
    return _node("selu", x, alpha=alpha, gamma=gamma)


@checked
def silu(x: Tensor) -> Tensor:
    """x sigmoid(x), also called swish."""
    return _node("silu", x)


@checked
def tan(x: Tensor) -> Tensor:
    """sin(x) / cos(x), of radians."""
    return _node("tan", x)


def _node(name: str, x: Tensor, **numbers: float) -> Tensor:
    attributes: dict[str, Any] = {key: float(number) for key, number in numbers.items()}
    return x.builder.apply(name, x, **attributes)


def _formula(node: Node) -> Formula:
    function, names = _FORMULAS[node.op]
    (x,) = arguments("x")
    return formula([function(x, **{name: node.number(name) for name in names})], ["x"])


def _infer(node: Node, types: Sequence[TensorType]) -> TensorType:
    if not types[0].dtype.is_float:
        raise GraphError(f"{node.op} is not defined for {types[0].dtype}.", "cast to float32.")
    _formula(node)
    return types[0]


def _evaluate(node: Node, x: HostArray) -> HostArray:
    own = dtype_of(x.dtype)
    wide = converted(x, COMPUTE[own.name]) if is_narrow(own) else x
    values = _formula(node).evaluate({"x": wide}, {})[0].reshape(x.shape)
    return converted(values, own.name) if is_narrow(own) else values


def _expand(node: Node, x: Tensor) -> Tensor:
    wide = cast(x, COMPUTE[node.dtype.name]) if is_narrow(node.dtype) else x
    computed = _formula(node)
    values: list[Tensor] = []
    for part in computed.nodes:
        if part.kind == "argument":
            values.append(wide)
        elif part.kind == "constant":
            values.append(x.builder.constant(part.number, wide.dtype))
        else:
            values.append(x.builder.apply(part.kind, *(values[p] for p in part.parts)))
    result = values[computed.results[0]]
    return cast(result, node.dtype) if is_narrow(node.dtype) else result


OPS: Final = tuple(
    # The second version of gelu rounds its constant to the type that it is computed in, also where that is float64.
    Op(name, _infer, _evaluate, "elementwise", arity=(1, 1), version=2 if name == "gelu" else 1, expand=_expand)
    for name in _FORMULAS
)
