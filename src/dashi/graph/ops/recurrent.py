"""Recurrent cells over sequences: RNN, GRU and LSTM, with ONNX's meaning and order of gates.

The inputs' part of all gates of all steps is one product; the steps are one kernel, `recurrence`, in which each
sequence is alone. A row of a sequence past its length is 0, and its last state is that of its last step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from dashi import kernels
from dashi.errors import GraphError, suggestion
from dashi.graph._arguments import argument, checked
from dashi.graph.ir import Node, TensorType
from dashi.graph.op import Launch, Op
from dashi.graph.ops.elementwise import one_dtype
from dashi.graph.ops.movement import slice_
from dashi.kernels.abi import Number
from dashi.kernels.sequence._cells import ACTIVATIONS, CELLS, DEFAULTS, GATES
from dashi.types import HostArray

if TYPE_CHECKING:
    from dashi.graph.builder import Tensor

_DIRECTIONS: Final = {"forward": 0, "reverse": 1, "bidirectional": 2}
"""Directions, and which of them go from the end to the start, as bits."""
_CLASSIC: Final = {"rnn": ("tanh",), "gru": ("sigmoid", "tanh"), "lstm": ("sigmoid", "tanh", "tanh")}


@dataclass(frozen=True)
class CellOptions:
    """What all cells take. `activations` are names with ONNX's meaning, for each direction the same; `alphas` and
    `betas` their numbers, ONNX's own where they are not named. Gates are limited to -`clip` and `clip`, unless that is
    0."""

    direction: str = "forward"
    activations: tuple[str, ...] = ()
    alphas: tuple[float, ...] = ()
    betas: tuple[float, ...] = ()
    clip: float = 0.0

    def __post_init__(self) -> None:
        for field in fields(self):
            value = argument("CellOptions", field.name, str(field.type), getattr(self, field.name))
            object.__setattr__(self, field.name, value)


_DEFAULT: Final = CellOptions()


@checked
def rnn(
    x: Tensor,
    w: Tensor,
    r: Tensor,
    bias: Tensor | None = None,
    start: Tensor | None = None,
    lengths: Tensor | None = None,
    options: CellOptions = _DEFAULT,
) -> tuple[Tensor, Tensor]:
    """All states (steps, directions, batch, units) and the last (directions, batch, units) of h = tanh(x w' + h r' + b)
    for x (steps, batch, inputs), w (directions, units, inputs), r (directions, units, units), bias (directions,
    2 units), the start of h (directions, batch, units) and lengths (batch, uint32)."""
    steps, states = _states("rnn", x, w, r, bias, start, None, None, lengths, options)
    return _row(states, 0, steps), _last(states, steps)


@checked
def gru(
    x: Tensor,
    w: Tensor,
    r: Tensor,
    bias: Tensor | None = None,
    start: Tensor | None = None,
    lengths: Tensor | None = None,
    options: CellOptions = _DEFAULT,
    *,
    linear_before_reset: bool = False,
) -> tuple[Tensor, Tensor]:
    """All states and the last of gated recurrent units, as `rnn` gives them; w is (directions, 3 units, inputs), r
    (directions, 3 units, units), bias (directions, 6 units), with the gates z, r, h."""
    cell = "gru_reset_after" if linear_before_reset else "gru"
    steps, states = _states(cell, x, w, r, bias, start, None, None, lengths, options)
    return _row(states, 0, steps), _last(states, steps)


@checked
def lstm(
    x: Tensor,
    w: Tensor,
    r: Tensor,
    bias: Tensor | None = None,
    start: Tensor | None = None,
    start_c: Tensor | None = None,
    peephole: Tensor | None = None,
    lengths: Tensor | None = None,
    options: CellOptions = _DEFAULT,
) -> tuple[Tensor, Tensor, Tensor]:
    """All states, the last, and the last c (directions, batch, units) of long short-term memory; w is (directions,
    4 units, inputs), r (directions, 4 units, units), bias (directions, 8 units), with the gates i, o, f, c; peephole
    weights are (directions, 3 units), of i, o, f."""
    cell = "lstm" if peephole is None else "lstm_peephole"
    steps, states = _states(cell, x, w, r, bias, start, start_c, peephole, lengths, options)
    return _row(states, 0, steps), _last(states, steps), _last(states, steps + 1)


def _row(states: Tensor, first: int, beyond: int) -> Tensor:
    return slice_(states, [first], [beyond])


def _last(states: Tensor, row: int) -> Tensor:
    return _row(states, row, row + 1).reshape(*states.shape[1:])


def _states(
    cell: str,
    x: Tensor,
    w: Tensor,
    r: Tensor,
    bias: Tensor | None,
    start: Tensor | None,
    start_c: Tensor | None,
    peephole: Tensor | None,
    lengths: Tensor | None,
    options: CellOptions,
) -> tuple[int, Tensor]:
    """The number of steps, and all states, as the op `recurrence` gives them."""
    if not isinstance(options, CellOptions):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise GraphError(f"{cell}: the options are {options!r:.80}.", "pass a dashi.graph.CellOptions.")
    b, kind = x.builder, x.dtype
    gates = GATES[CELLS.index(cell)]
    fits = len(x.shape) == len(w.shape) == len(r.shape) == 3 and w.shape[2] == x.shape[2]
    if not fits or w.shape[1] != gates * r.shape[2] or r.shape[:2] != w.shape[:2]:
        raise GraphError(
            f"{cell}: x {x.shape}, w {w.shape} and r {r.shape} do not fit.",
            "pass (steps, batch, inputs), (directions, gates x units, inputs) and (directions, gates x units, units).",
        )
    (steps, batch, inputs), (directions, units) = x.shape, r.shape[::2]
    if bias is not None and bias.shape != (directions, 2 * gates * units):
        raise GraphError(
            f"{cell}: the bias is {bias.shape}.", f"pass ({directions}, {2 * gates * units}): of w, then of r."
        )
    wide = gates * units
    into, own = (None, None) if bias is None else (_columns(bias, 0, wide), _columns(bias, wide, 2 * wide))
    flat = x.reshape(1, steps * batch, inputs) @ w.transpose(0, 2, 1)
    part = flat if into is None else flat + into.reshape(directions, 1, wide)
    added = b.constant(np.zeros((directions, wide)), kind) if own is None else own
    reached = b.constant(np.full(batch, steps), "u32") if lengths is None else lengths
    operands = [part.reshape(directions, steps, batch, wide), r.transpose(0, 2, 1), added]
    operands.append(added if peephole is None else peephole)
    zeros = np.zeros((directions, batch, units))
    operands += [b.constant(zeros, kind) if state is None else state for state in (start, start_c)]
    attributes: dict[str, Any] = {"cell": cell, "reverse": _reverse(options, directions), **_numbers(cell, options)}
    return steps, b.add(RECURRENCE, *operands, reached, **attributes)


def _columns(values: Tensor, first: int, beyond: int) -> Tensor:
    return slice_(values, [0, first], [None, beyond])


def _reverse(options: CellOptions, directions: int) -> int:
    bits = _DIRECTIONS.get(options.direction)
    if bits is None or directions != 1 + (options.direction == "bidirectional"):
        raise GraphError(
            f"the weights are of {directions} directions, and the direction is {options.direction!r}.",
            "pass forward or reverse with one, bidirectional with two.",
        )
    return bits


def _numbers(cell: str, options: CellOptions) -> dict[str, Any]:
    """Activations with their numbers as attributes."""
    classic = _CLASSIC[cell.partition("_")[0]]
    names = tuple(name.lower().replace(" ", "_") for name in options.activations) or classic
    if len(names) != len(classic):
        raise GraphError(f"{cell} has {len(classic)} activations, not {len(names)}.", "name each, or none.")
    for name in names:
        if name not in ACTIVATIONS:
            raise GraphError(
                f"there is no activation {name!r} of cells.",
                f"{suggestion(name, ACTIVATIONS)}use {', '.join(ACTIVATIONS)}.",
            )
    own = [DEFAULTS.get(name, (0.0, 0.0)) for name in names]
    alphas = [*options.alphas, *(pair[0] for pair in own[len(options.alphas) :])]
    betas = [*options.betas, *(pair[1] for pair in own[len(options.betas) :])]
    return {"activations": names, "alphas": alphas, "betas": betas, "clip": float(options.clip)}


def _cell(node: Node) -> str:
    cell = node.get("cell")
    if not isinstance(cell, str) or cell not in CELLS:
        raise GraphError(f"there is no cell {cell!r}.", f"use {', '.join(CELLS)}.")
    return cell


def _infer(node: Node, types: Sequence[TensorType]) -> TensorType:
    cell, kind, (x, weights, bias, peephole, h, c) = _cell(node), one_dtype(types[:6]), [t.shape for t in types[:6]]
    gates = GATES[CELLS.index(cell)]
    if kind.dtype.name not in ("f32", "f64") or types[6].dtype.name != "u32":
        raise GraphError(f"{cell} of {kind.dtype} with lengths of {types[6].dtype}.", "pass floats, lengths of uint32.")
    if len(x) != 4 or len(h) != 3:
        raise GraphError(
            f"x {x} and the start {h} do not fit.", "pass x (d, steps, b, gates x units), h (d, b, units)."
        )
    (d, steps, b, wide), units = x, h[2]
    parts = (weights, bias, h, c, types[6].shape)
    fits = parts == ((d, units, wide), (d, wide), (d, b, units), (d, b, units), (b,)) and wide == gates * units
    seen = cell != "lstm_peephole" or peephole == (d, 3 * units)
    if not fits or not seen or len(peephole) != 2 or peephole[0] != d or not 0 < d < 3:
        raise GraphError(
            f"{cell}: x {x}, weights {weights}, bias {bias}, peephole weights {peephole}, starts {h} and {c}, lengths "
            f"{types[6].shape} do not fit.",
            f"pass shapes for {gates} gates, and one or two directions.",
        )
    _scalars(node)
    return TensorType((steps + 1 + cell.startswith("lstm"), d, b, units), kind.dtype)


def _floats(node: Node, attribute: str, least: int) -> list[float]:
    values = node.get(attribute)
    listed = [float(v) for v in values if isinstance(v, (int, float))] if isinstance(values, tuple) else []
    if not isinstance(values, tuple) or len(listed) != len(values) or not least <= len(listed) <= 3:
        raise GraphError(f"{attribute}={values!r} are no numbers of activations.", f"pass {least} to 3.")
    return listed + [0.0] * (3 - len(listed))


def _scalars(node: Node) -> dict[str, Number]:
    names, reverse = node.get("activations"), node.integer("reverse")
    if not isinstance(names, tuple) or any(n not in ACTIVATIONS for n in names) or not 0 <= reverse < 4:
        raise GraphError(f"activations={names!r}, reverse={reverse!r}.", f"name some of {', '.join(ACTIVATIONS)}.")
    needed = len(_CLASSIC[_cell(node).partition("_")[0]])
    if len(names) != needed:
        raise GraphError(f"{len(names)} activations.", f"name {needed}.")
    alphas, betas = _floats(node, "alphas", needed), _floats(node, "betas", needed)
    values: dict[str, Number] = {"cell": CELLS.index(_cell(node)), "reverse": reverse, "clip": node.number("clip")}
    for k in range(3):
        values |= {f"alpha_{k}": alphas[k], f"beta_{k}": betas[k]}
        values[f"activation_{k}"] = ACTIVATIONS.index(str(names[k])) if k < len(names) else 0
    return values


def _launch(node: Node, types: Sequence[TensorType]) -> Launch | None:
    from dashi.kernels.sequence.recurrence.kernel import most_units

    if node.shape[3] > most_units(node.dtype.size):
        return None
    scalars = {**_scalars(node), "rows": node.shape[0]}
    return Launch(kernels.get("recurrence"), tuple(kind.shape for kind in types), node.shape, scalars)


def _evaluate(node: Node, *values: HostArray) -> HostArray:
    rounded = {
        name: np.asarray(value, node.dtype.numpy).item() if isinstance(value, float) else value
        for name, value in _scalars(node).items()
    }
    return np.asarray(kernels.get("recurrence").reference(*values, **rounded, rows=node.shape[0]))


RECURRENCE: Final = Op("recurrence", _infer, _evaluate, arity=(7, 7), launch=_launch)
"""States of a cell from the inputs' part of its gates."""
OPS: Final = (RECURRENCE,)
