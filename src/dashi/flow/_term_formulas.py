"""Formulas of terms, as text: arithmetic and functions of fields at the points of a grid.

Text, since a certificate has to hold it: it is read by Python's own parser, and nothing but numbers, names, operators
and functions that kernels have is let through, so that a file can do nothing else.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection, Mapping
from typing import Any, Final

from dashi.errors import InputError, suggestion
from dashi.kernels import expressions
from dashi.kernels.expressions import Expression, apply, constant

LONGEST: Final = 1000
"""Letters of a formula."""
_BINARY: Final[Mapping[type[ast.operator], str]] = {
    ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.Div: "div", ast.Pow: "pow", ast.Mod: "mod",
}  # fmt: skip
_COMPARES: Final[Mapping[type[ast.cmpop], str]] = {
    ast.Lt: "less", ast.LtE: "less_equal", ast.Gt: "greater", ast.GtE: "greater_equal",
}  # fmt: skip
_FUNCTIONS: Final = (
    "abs", "atan", "atan2", "ceil", "clamp", "cos", "erf", "exp", "floor", "log", "maximum", "minimum", "relu",
    "sigmoid", "sign", "sin", "softplus", "sqrt", "square", "tanh", "trunc", "where",
)  # fmt: skip
FUNCTIONS: Final[Mapping[str, Callable[..., Any]]] = {
    name: getattr(expressions, "absolute" if name == "abs" else name) for name in _FUNCTIONS
}


def names_in(text: str) -> list[str]:
    """The names of values that a formula reads, sorted."""
    tree = _parsed(text)
    called = {id(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
    return sorted({node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and id(node) not in called})


def require_names(text: str, known: Collection[str]) -> None:
    """Refuses a formula that reads what is not there."""
    for name in names_in(text):
        if name not in known:
            raise InputError(
                f"the formula {text!r} reads {name!r}, which is no field.",
                f"{suggestion(name, known)}it may read {', '.join(known)}.",
            )


def expression_of(text: str, values: Mapping[str, Expression]) -> Expression:
    """The formula over these values. Raises InputError."""
    require_names(text, values)
    try:
        result = _built(_parsed(text).body, values, text)
    except TypeError as error:
        raise InputError(f"the formula {text!r} cannot be read: {error}.", "give each function its values.") from error
    return result if isinstance(result, Expression) else constant(float(result))


def _parsed(text: str) -> ast.Expression:
    if not isinstance(text, str) or len(text) > LONGEST:  # pyright: ignore[reportUnnecessaryIsInstance]
        raise InputError(f"a formula is {repr(text)[:40]}.", f"write text of at most {LONGEST} letters.")
    try:
        return ast.parse(text.strip(), mode="eval")
    except (SyntaxError, ValueError, MemoryError, RecursionError) as error:
        raise InputError(f"the formula {text!r} cannot be read.", "write one such as '-0.1 * w * abs(w)'.") from error


def _built(node: ast.expr, values: Mapping[str, Expression], text: str) -> Any:
    def built(inner: ast.expr) -> Any:
        return _built(inner, values, text)

    match node:
        case ast.Constant(value=bool()):
            pass
        case ast.Constant(value=int() | float() as number):
            return constant(float(number))
        case ast.Name(id=name):
            return values[name]
        case ast.UnaryOp(op=ast.USub()):
            return -built(node.operand)
        case ast.UnaryOp(op=ast.UAdd()):
            return built(node.operand)
        case ast.BinOp(op=op) if type(op) in _BINARY:
            return apply(_BINARY[type(op)], built(node.left), built(node.right))
        case ast.Compare(ops=[op], comparators=[right]) if type(op) in _COMPARES:
            return apply(_COMPARES[type(op)], built(node.left), built(right))
        case ast.Call(func=ast.Name(id=name), keywords=[]) if name in FUNCTIONS:
            return FUNCTIONS[name](*(built(one) for one in node.args))
        case _:
            pass
    raise InputError(
        f"the formula {text!r} has something else than arithmetic: {ast.unparse(node)[:60]!r}.",
        f"use numbers, fields, + - * / % **, compares, and {', '.join(FUNCTIONS)}.",
    )
