"""Recurrent cells in NumPy: the activations by number, and one step of each cell, as `cells.glsl` computes them.

Numbers are canonical; products of states and weights add in the order tree64."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from dashi.kernels.portable import canon, divide, exp, mul, softplus, tanh

Floats = npt.NDArray[Any]
ACTIVATIONS: Final = (
    "sigmoid", "tanh", "relu", "affine", "leaky_relu", "thresholded_relu", "scaled_tanh", "hard_sigmoid", "elu",
    "softsign", "softplus",
)  # fmt: skip
"""Activations of cells; a number is a place here."""
DEFAULTS: Final[dict[str, tuple[float, float]]] = {
    "affine": (1.0, 0.0), "leaky_relu": (0.01, 0.0), "thresholded_relu": (1.0, 0.0), "scaled_tanh": (1.0, 1.0),
    "hard_sigmoid": (0.2, 0.5), "elu": (1.0, 0.0),
}  # fmt: skip
"""alpha and beta of those that have such, where a call names none (ONNX's)."""
CELLS: Final = ("rnn", "gru", "gru_reset_after", "lstm", "lstm_peephole")
"""Cells; a number is a place here. `reset_after` is ONNX's linear_before_reset."""
GATES: Final = (1, 3, 3, 4, 4)
"""Gates of each cell."""
PASSES: Final = (1, 2, 1, 1, 1)
"""How many products, one after another, a step of each cell has."""


def activate(which: int, x: Floats, alpha: float, beta: float) -> Floats:
    """An activation by its number, of canonical values."""
    kind = x.dtype.type
    a, b = canon(np.asarray(alpha, x.dtype)), canon(np.asarray(beta, x.dtype))
    unit, zero = kind(1), kind(0)

    def sigmoid() -> Floats:
        e = exp(-np.abs(x))
        return divide(np.where(x < 0, e, unit), unit + e)

    def clamped() -> Floats:
        line = canon(mul(a, x) + b)
        return np.where(line < 0, zero, np.where(line > 1, unit, line))

    formulas: dict[str, Callable[[], Any]] = {
        "sigmoid": sigmoid,
        "tanh": lambda: tanh(x),
        "relu": lambda: np.where(x < 0, zero, x),
        "affine": lambda: mul(a, x) + b,
        "leaky_relu": lambda: np.where(x < 0, mul(a, x), x),
        "thresholded_relu": lambda: np.where(x <= a, zero, x),
        "scaled_tanh": lambda: mul(a, tanh(mul(b, x))),
        "hard_sigmoid": clamped,
        "elu": lambda: np.where(x < 0, mul(a, canon(exp(x) - unit)), x),
        "softsign": lambda: divide(x, canon(unit + np.abs(x))),
        "softplus": lambda: softplus(x),
    }
    return canon(formulas[ACTIVATIONS[which]]())


def step(
    cell: int,
    before: Sequence[Floats],
    h: Floats,
    c: Floats,
    product: Callable[[Floats, int, int], Floats],
    activation: Callable[[int, Floats], Floats],
    peephole: Floats,
) -> tuple[Floats, Floats]:
    """The next h and c of rows (b, units). `before` are the gates' parts from the input; `product(x, first, last)` is
    x times the columns of these gates, with its bias; `activation(k, x)` is the cell's k-th, clipped before."""
    units = h.shape[-1]

    def columns(values: Floats) -> list[Floats]:
        return [values[..., at : at + units] for at in range(0, values.shape[-1], units)]

    if CELLS[cell] == "rnn":
        return activation(0, canon(before[0] + product(h, 0, 1))), c
    if CELLS[cell] == "gru_reset_after":
        sums = columns(product(h, 0, 3))
        z, r = (activation(0, canon(before[k] + sums[k])) for k in (0, 1))
        n = activation(1, canon(before[2] + mul(r, canon(sums[2]))))
        return _mixed(z, n, h), c
    if CELLS[cell] == "gru":
        sums = columns(product(h, 0, 2))
        z, r = (activation(0, canon(before[k] + sums[k])) for k in (0, 1))
        n = activation(1, canon(before[2] + product(mul(r, h), 2, 3)))
        return _mixed(z, n, h), c
    totals = [canon(x + y) for x, y in zip(before, columns(product(h, 0, 4)), strict=True)]
    weights = columns(peephole) if CELLS[cell] == "lstm_peephole" else None

    def gate(place: int, state: Floats, weight: int) -> Floats:
        total = totals[place] if weights is None else canon(totals[place] + mul(weights[weight], state))
        return activation(0, total)

    i, f = gate(0, c, 0), gate(2, c, 2)
    new_c = canon(mul(f, c) + mul(i, activation(1, totals[3])))
    o = gate(1, new_c, 1)
    return canon(mul(o, activation(2, new_c))), new_c


def _mixed(z: Floats, n: Floats, h: Floats) -> Floats:
    return canon(mul(canon(z.dtype.type(1) - z), n) + mul(z, h))
