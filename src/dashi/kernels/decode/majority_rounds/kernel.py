"""majority_rounds: so many rounds of the 3 x 3 majority M(1, eta) on periodic members, as one dispatch for every eight.

A round is `ternary_majority`: on the support, the sign of the sum over the box where it reaches eta, else 0. Support is
never created, and a field that a round does not change stays as it is, so more rounds than it takes change nothing.
"""

import numpy as np
import numpy.typing as npt

from dashi.errors import LimitError
from dashi.kernels._torus import moved, shifts, trits
from dashi.kernels._trits import FIELDS, random_trits
from dashi.kernels._work import LOCAL, ceil_div, groups_for
from dashi.kernels.abi import Binding, Call, Case, Dispatch, Kernel, Operand, Plan, Scalar, Shader
from dashi.types import Cost, HostArray, Shape

HALO, WIDE, TALL = 8, 16, 16
"""Rounds that a tile can make by itself; its words and its rows."""
LIFTED = (WIDE + HALO // 2) * (TALL + 2 * HALO)
ONES, MIDDLE = 0x01010101, 9
ROUNDS = Scalar("rounds", "u32", 8, "how often")
ETA = Scalar("eta", "i32", 1, "the least magnitude of a sum that decides; below 1 it is 1")
MOST = 1024


def reference(s: HostArray, rounds: int, eta: int) -> HostArray:
    require(rounds)
    members = [_rounds(trits(one), rounds, max(eta, 1)) for one in s]
    return np.stack(members).astype(np.int8) if members else np.zeros(s.shape, np.int8)


def _rounds(field: npt.NDArray[np.int32], rounds: int, eta: int) -> npt.NDArray[np.int32]:
    for _ in range(rounds):
        before = field
        sums = sum((moved(field, shift) for shift in shifts(field.shape, 1)), np.zeros_like(field))
        field = np.where((field != 0) & (np.abs(sums) >= eta), np.sign(sums), 0)
        if np.array_equal(field, before):
            break
    return field


def require(rounds: int) -> None:
    if rounds > MOST:
        raise LimitError(f"{rounds} rounds of a majority are more than {MOST}.", "ask for fewer: fields settle soon.")


def plan(call: Call) -> Plan:
    rounds, eta = int(call.scalars["rounds"]), max(1, int(call.scalars["eta"]))
    require(rounds)
    if call.size("s") == 0:
        return Plan(())
    tiled = call.dims["w"] % 4 == 0
    most = HALO if tiled else 1
    turns = [min(most, rounds - done) for done in range(0, rounds, most)] or [0]
    names = ["s", *(f"field{i % 2}" for i in range(len(turns) - 1)), "result"]
    make = _tiles if tiled else _sites
    made = tuple(make(call, (names[i], names[i + 1]), turn, eta) for i, turn in enumerate(turns))
    return Plan(made, {name: ("i8", call.size("s")) for name in names[1:-1]})


def _tiles(call: Call, buffers: tuple[str, str], turns: int, eta: int) -> Dispatch:
    members, h, w = call.shapes["s"]
    across, down = ceil_div(w, 4 * WIDE), ceil_div(h, TALL)
    groups, rounds = groups_for(members * across * down, 1, call.limits)
    # What makes the top bit of a byte: a raised sum of at least MIDDLE + eta; of more than MIDDLE - eta.
    above, under = 128 - min(MIDDLE + eta, 128), 128 - max(MIDDLE - eta + 1, 0)
    words = w // 4
    push = {
        "items": members * across * down, "stride": groups, "h": h, "w": w, "turns": turns, "across": across,
        "down": down, "lift_h": ceil_div(HALO, h) * h, "lift_w": ceil_div(HALO, 4 * words) * words,
        "above_all": ONES * above, "under_all": ONES * under,
    }  # fmt: skip
    trips = rounds * (1 + (turns + 2) * (1 + ceil_div(LIFTED, LOCAL)))
    return Dispatch("tiles", buffers, push, (groups, 1, 1), trips)


def _sites(call: Call, buffers: tuple[str, str], turns: int, eta: int) -> Dispatch:
    members, h, w = call.shapes["s"]
    items = ceil_div(members * h * w, 4)
    groups, rounds = groups_for(items, LOCAL, call.limits)
    push = {
        "items": items, "stride": groups * LOCAL, "h": h, "w": w, "turns": turns, "sites": members * h * w, "eta": eta,
    }  # fmt: skip
    return Dispatch("sites", buffers, push, (groups, 1, 1), rounds * (1 + 4 * 13))


def cost(call: Call) -> Cost:
    n = call.size("s")
    dispatches = max(1, -(-int(call.scalars["rounds"]) // (HALO if call.dims["w"] % 4 == 0 else 1)))
    return Cost(bytes=2 * n * dispatches, dispatches=dispatches * int(n > 0))


def case(number: int, shape: Shape, rounds: int, eta: int = 1) -> Case:
    return Case({"s": shape}, {"rounds": rounds, "eta": eta}, {"s": FIELDS[number % len(FIELDS)]})


SHAPES = ((1, 1, 1), (1, 4, 4), (2, 8, 8), (3, 5, 7), (1, 64, 64), (2, 100, 132), (1, 17, 16), (0, 4, 4), (2, 6, 10))
WORDS = tuple(Scalar(name, "u32") for name in ("items", "stride", "h", "w", "turns"))
BUFFERS = (Binding("s", "u32"), Binding("result", "u32", "write"))

KERNEL = Kernel(
    summary="rounds of the 3 x 3 majority on periodic fields, eight in a dispatch",
    inputs=(Operand("s", "i8", ("members", "h", "w")),),
    outputs=(Operand("result", "i8", ("members", "h", "w")),),
    scalars=(ROUNDS, ETA),
    shaders={
        "tiles": Shader(
            BUFFERS,
            (*WORDS, *(Scalar(n, "u32") for n in ("across", "down", "lift_h", "lift_w", "above_all", "under_all"))),
            local=(LOCAL, 1, 1),
        ),
        "sites": Shader(BUFFERS, (*WORDS, Scalar("sites", "u32"), ETA), local=(LOCAL, 1, 1), file="sites.comp"),
    },
    plan=plan,
    reference=reference,
    cost=cost,
    cases=(
        *(case(i, shape, (8, 1, 3)[i % 3], 1 + i % 2) for i, shape in enumerate(SHAPES)),
        *(case(i, (1, 48, 64), rounds, eta) for i, (rounds, eta) in enumerate(((0, 1), (9, 1), (17, -3), (8, 9)))),
        case(0, (2, 3, 5), 4), case(4, (1, 3, 5), 0), case(0, (1, 8, 4), 3, 12), case(4, (2, 70, 72), 5, 3),
    ),
    bench=tuple(Case({"s": (1, n, n)}, fill={"s": random_trits}) for n in (128, 4096)),
    dtypes=("u32",),
)  # fmt: skip
