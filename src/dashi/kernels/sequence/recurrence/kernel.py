"""recurrence: the steps of a recurrent cell (RNN, GRU, LSTM) over sequences, from the inputs' parts of its gates.

x holds them: (directions, steps, batch, gates x units), with ONNX's order of gates. Row t of the result is h after step
t, for t below the sequence's length, else 0; the row `steps` is the last h, and an LSTM's row `steps` + 1 the last c.
Directions whose bit in `reverse` is set go from a sequence's own end to its start. Every sequence is a function of its
own inputs. h times weights adds in the order tree64.
"""

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from dashi.errors import InputError, LimitError
from dashi.kernels._work import RUN, ceil_div
from dashi.kernels.abi import Binding, Call, Case, Dispatch, Kernel, Number, Operand, Plan, Scalar, Shader, Spec
from dashi.kernels.portable import canon, contract, prepare
from dashi.kernels.sequence import _cells as cells
from dashi.types import Cost, HostArray, Shape

_SHARED: Final = 16384
_NAMES: Final = ("x", "weights", "bias", "peephole", "start_h", "start_c", "lengths", "result")
_NUMBERS: Final = tuple(Scalar(f"{name}_{k}", default=0.0) for k in range(3) for name in ("alpha", "beta"))
_WORDS: Final = ("d", "b", "h", "gh", "q", "steps", "begin", "end_step", "first_row", "reverse")


def most_units(size: int) -> int:
    """The most units of a cell, of numbers of so many bytes, whose state every device holds on chip."""
    return _SHARED // (3 * size)


def reference(x: HostArray, weights: HostArray, bias: HostArray, peephole: HostArray, start_h: HostArray,
              start_c: HostArray, lengths: HostArray, **scalars: Number) -> HostArray:  # fmt: skip
    directions, steps, batch, _ = x.shape
    units, lstm = start_h.shape[2], cells.CELLS[int(scalars["cell"])].startswith("lstm")
    result = np.zeros((int(scalars["rows"]), directions, batch, units), x.dtype)
    if not result.size:
        return result
    reached: Any = np.minimum(lengths, np.uint32(steps)).astype(np.int64)
    for direction in range(directions):
        h, c = canon(start_h[direction]), canon(start_c[direction])
        advance = _stepper(int(scalars["cell"]), weights[direction], bias[direction], peephole[direction], scalars)
        for step in range(int(reached.max(initial=0))):
            rows = np.flatnonzero(reached > step)
            at = reached[rows] - 1 - step if int(scalars["reverse"]) >> direction & 1 else np.full(len(rows), step)
            gates = canon(x[direction, at, rows])
            h[rows], c[rows] = advance(gates, h[rows], c[rows])
            result[at, direction, rows] = h[rows]
        result[steps, direction] = h
        if lstm:
            result[steps + 1, direction] = c
    return result


def _stepper(cell: int, weights: Any, bias: Any, peephole: Any, scalars: Any) -> Any:
    """One step of the cell for rows: from gates, h and c to h and c."""
    units = len(weights)
    parts: dict[tuple[int, int], tuple[Any, Any]] = {}
    for first, last in {"gru": ((0, 2), (2, 3))}.get(cells.CELLS[cell], ((0, cells.GATES[cell]),)):
        span = slice(first * units, last * units)
        parts[first, last] = prepare(np.ascontiguousarray(weights[:, span])), canon(bias[span])

    def product(h: Any, first: int, last: int) -> Any:
        matrix, add = parts[first, last]
        return canon(contract(h, matrix) + add)

    def activation(place: int, v: Any) -> Any:
        clip = canon(np.asarray(scalars["clip"], v.dtype))
        if place < 2 and clip > 0:
            v = np.where(v < -clip, -clip, np.where(v > clip, clip, v))
        numbers = scalars[f"alpha_{place}"], scalars[f"beta_{place}"]
        return cells.activate(int(scalars[f"activation_{place}"]), v, *numbers)

    def advance(gates: Any, h: Any, c: Any) -> Any:
        before = [gates[:, at : at + units] for at in range(0, gates.shape[1], units)]
        return cells.step(cell, before, h, c, product, activation, canon(peephole))

    return advance


def plan(call: Call) -> Plan:
    numbers: dict[str, Number] = dict(call.scalars)
    cell, dims = int(numbers["cell"]), call.dims
    _require_fit(cell, dims, numbers)
    d, b, h, steps = dims["d"], dims["b"], dims["h"], dims["steps"]
    if 3 * h * call.dtype.size > min(_SHARED, call.limits.shared_bytes):
        raise LimitError(
            f"kernel 'recurrence': the state of {h} units does not fit on chip.",
            f"use at most {most_units(call.dtype.size)}, or go step by step with products.",
        )
    if d * b * h == 0:
        return Plan(())
    lanes = min(ceil_div(h, 32) * 32, 256 if call.limits.software else 1024, call.limits.invocations)
    turns, products = ceil_div(h, lanes), cells.PASSES[cell]
    # More than there are: weights come four rows at a time.
    per_step = 4 + turns * (4 + products * (4 + 3 * ceil_div(h, RUN) + h))  # loops count once more when they end
    most = max(1, (call.limits.loop_trips - 4 * turns - 4) // per_step)
    if call.limits.software:
        most = max(1, min(most, (1 << 27) // (h * dims["gh"])))  # about 100 ms of a processor
    spec = {"LANES": lanes, "UNITS": h, "CELL": cell, "GATES": cells.GATES[cell]}
    spec |= {f"ACTIVATION_{k}": int(numbers[f"activation_{k}"]) for k in range(3)}
    fixed = {name: dims[name] for name in ("d", "b", "h", "gh", "q", "steps")}
    fixed |= {name: numbers[name] for name in ("reverse", "clip", *(n.name for n in _NUMBERS))}
    dispatches: list[Dispatch] = []
    for begin in range(0, max(1, steps), most):
        end = min(steps, begin + most)
        for row in range(0, d * b, call.limits.groups):
            push = {**fixed, "begin": begin, "end_step": end, "first_row": row}
            groups = (min(d * b - row, call.limits.groups), 1, 1)
            trips = 4 * turns + 4 + (end - begin) * per_step
            dispatches.append(Dispatch("main", _NAMES, push, groups, trips, spec))
    return Plan(tuple(dispatches))


def _require_fit(cell: int, dims: Any, numbers: dict[str, Number]) -> None:
    if not cell < len(cells.CELLS) or any(numbers[f"activation_{k}"] >= len(cells.ACTIVATIONS) for k in range(3)):
        raise InputError(
            "kernel 'recurrence': there is no such cell, or activation.",
            f"pass numbers below {len(cells.CELLS)} and {len(cells.ACTIVATIONS)}.",
        )
    rows = dims["steps"] + 1 + cells.CELLS[cell].startswith("lstm")
    peephole = 3 * dims["h"] if cells.CELLS[cell] == "lstm_peephole" else dims["q"]
    if dims["gh"] != cells.GATES[cell] * dims["h"] or dims["rows"] != rows or dims["q"] != peephole:
        raise InputError(
            f"kernel 'recurrence': {dims['gh']} columns, {dims['rows']} rows and {dims['q']} peephole weights do not "
            f"fit {dims['steps']} steps of the cell {cells.CELLS[cell]} of {dims['h']} units.",
            f"pass {cells.GATES[cell] * dims['h']} columns and {rows} rows.",
        )


def cost(call: Call) -> Cost:
    steps, rows = call.dims["steps"], call.dims["d"] * call.dims["b"]
    products = steps * rows * call.dims["h"] * call.dims["gh"]
    moved = call.bytes("x", "start_h", "result") + steps * rows * call.bytes("weights") // max(1, call.dims["d"])
    return Cost(2 * products, moved, len(plan(call).dispatches))


def case(cell: str, steps: int, b: int, h: int, d: int = 1, acts: Sequence[int] = (0, 1, 1), **more: Number) -> Case:
    """A cell of so many units; the first sequences are shorter than the others, one has no step."""
    number = cells.CELLS.index(cell)
    gh, lstm = cells.GATES[number] * h, cell.startswith("lstm")

    def lengths(rng: np.random.Generator, shape: Shape) -> HostArray:
        return np.array([steps + 1 - k % (steps + 2) for k in range(*shape)], np.uint32)

    q = 3 * h if cell == "lstm_peephole" else 1
    shapes: dict[str, Shape] = {"x": (d, steps, b, gh), "weights": (d, h, gh), "bias": (d, gh), "peephole": (d, q)}
    shapes |= {"start_h": (d, b, h), "start_c": (d, b, h), "lengths": (b,)}
    scalars: dict[str, Number] = {f"activation_{k}": a for k, a in enumerate(acts)}
    return Case(shapes, {"cell": number, "rows": steps + 1 + lstm, **scalars, **more}, {"lengths": lengths})


KERNEL = Kernel(
    summary="steps of a recurrent cell (RNN, GRU, LSTM) over sequences, each in one workgroup",
    inputs=(
        Operand("x", shape=("d", "steps", "b", "gh")),
        Operand("weights", shape=("d", "h", "gh")),
        Operand("bias", shape=("d", "gh")),
        Operand("peephole", shape=("d", "q")),
        Operand("start_h", shape=("d", "b", "h")),
        Operand("start_c", shape=("d", "b", "h")),
        Operand("lengths", "u32", ("b",)),
    ),
    outputs=(Operand("result", shape=("rows", "d", "b", "h")),),
    shaders={
        "main": Shader(
            (
                *(Binding(name, "u32" if name == "lengths" else "T") for name in _NAMES[:-1]),
                Binding("result", access="readwrite"),
            ),
            (*(Scalar(name, "u32") for name in _WORDS), Scalar("clip"), *_NUMBERS),
            (Spec("LANES", 64), Spec("UNITS", 64), Spec("CELL", 0), Spec("GATES", 4),
             *(Spec(f"ACTIVATION_{k}", 0) for k in range(3))),
            local=("LANES", 1, 1),
            includes=("portable.glsl",),
            extensions=("GL_EXT_control_flow_attributes",),
        )
    },
    plan=plan,
    reference=reference,
    cost=cost,
    cases=(
        case("rnn", 5, 3, 4, 2, acts=(2, 0, 0), reverse=2), case("gru", 4, 3, 5, 2, reverse=2),
        case("gru", 2, 1, 70, acts=(8, 9, 0), alpha_0=1.5), case("gru_reset_after", 3, 2, 8, reverse=1),
        case("lstm", 5, 3, 6, 2, reverse=2, clip=0.5),
        case("lstm", 2, 2, 65, acts=(10, 5, 4), alpha_1=0.3, alpha_2=0.1),
        case("lstm_peephole", 4, 2, 5, 1, (7, 3, 6), alpha_0=0.2, beta_0=0.5, alpha_1=0.5, alpha_2=2.0, beta_2=0.5),
        case("lstm", 0, 2, 3), case("lstm", 2, 0, 3), case("rnn", 110, 1, 300),
    ),
    bench=(case("lstm", 128, 1, 128), case("lstm", 128, 32, 128), case("gru", 128, 32, 512)),
    scalars=(
        Scalar("cell", "u32", 3, "its number: 0 rnn, 1 gru, 2 gru_reset_after, 3 lstm, 4 lstm_peephole"),
        Scalar("rows", "u32", doc="rows of the result: steps + 1, an LSTM's steps + 2"),
        Scalar("reverse", "u32", 0, "bit d: direction d goes from the end to the start"),
        *(Scalar(f"activation_{k}", "u32", d, "an activation by its number") for k, d in enumerate((0, 1, 1))),
        Scalar("clip", default=0.0, doc="gates are limited to -clip and clip; 0: they are not"),
        *_NUMBERS,
    ),
)  # fmt: skip
