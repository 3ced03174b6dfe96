"""selective_scan: state spaces whose step and weights depend on the input (Mamba, and Mamba-2), step by step.

For each channel, with delta, a and the skip of its head, and the weights of its group:

    h[k] = exp(delta a[k]) h[k] + (delta x) input_weights[k]
    y    = sum over k of h[k] output_weights[k], in the order tree64, + skip x

`a` has one number for each k (Mamba: A. Gu and T. Dao, arXiv:2312.00752, every channel its own head), or one for all
(Mamba-2: T. Dao and A. Gu, arXiv:2405.21060).
"""

import numpy as np

from dashi.errors import InputError
from dashi.kernels.abi import Call, Case, Kernel, Operand, Plan
from dashi.kernels.portable import canon, exp, mul
from dashi.kernels.sequence import _scans as scans
from dashi.types import Cost, HostArray

_NAMES = ("x", "delta", "a", "input_weights", "output_weights", "skip", "start")


def reference(x: HostArray, delta: HostArray, a: HostArray, input_weights: HostArray, output_weights: HostArray,
              skip: HostArray, start: HostArray, rows: int) -> HostArray:  # fmt: skip
    batch, steps, channels = x.shape
    result = np.zeros((batch, int(rows), channels), x.dtype)
    state = canon(start)
    rates = scans.spread(canon(a).T, channels)
    straight = scans.spread(canon(skip), channels)
    for step in range(steps):
        value, pace = canon(x[:, step]), scans.spread(canon(delta[:, step]), channels)
        into, out = (scans.spread(canon(w[:, step]).swapaxes(1, 2), channels) for w in (input_weights, output_weights))
        decay = exp(mul(pace[:, None], rates))
        state = canon(mul(decay, state) + mul(mul(pace, value)[:, None], into))
        result[:, step] = canon(scans.dot(state, out) + mul(straight, value))
    result[:, steps:] = state
    return result


def plan(call: Call) -> Plan:
    rates = call.dims["rates"]
    if rates not in (1, call.dims["n"]):
        raise InputError(
            f"kernel 'selective_scan': a has {rates} rates for {call.dims['n']} numbers of state.",
            "pass as many, or 1.",
        )
    return scans.plan("selective_scan", call, _NAMES, 1, {"rates": rates})


def cost(call: Call) -> Cost:
    items = call.dims["b"] * call.dims["channels"] * call.dims["steps"]
    return Cost(30 * items * call.dims["n"], call.bytes(*_NAMES, "result"), len(plan(call).dispatches))


def case(b: int, steps: int, channels: int, n: int, heads: int, groups: int = 1, rates: int = 1) -> Case:
    weights = (b, steps, groups, n)
    return Case(
        {"x": (b, steps, channels), "delta": (b, steps, heads), "a": (heads, rates), "input_weights": weights,
         "output_weights": weights, "skip": (heads,), "start": (b, n, channels)},
        {"rows": steps + n},
    )  # fmt: skip


KERNEL = Kernel(
    summary="state spaces with weights that depend on the input (Mamba, Mamba-2), step by step",
    inputs=(
        Operand("x", shape=("b", "steps", "channels")),
        Operand("delta", shape=("b", "steps", "heads")),
        Operand("a", shape=("heads", "rates")),
        Operand("input_weights", shape=("b", "steps", "groups", "n")),
        Operand("output_weights", shape=("b", "steps", "groups", "n")),
        Operand("skip", shape=("heads",)),
        scans.START,
    ),
    outputs=(scans.RESULT,),
    shaders={"main": scans.shader(_NAMES, push=("rates",))},
    plan=plan,
    reference=reference,
    cost=cost,
    cases=(
        case(2, 5, 6, 4, heads=6, rates=4), case(1, 3, 8, 65, heads=2, groups=2), case(2, 4, 6, 1, heads=3),
        case(1, 2, 300, 16, heads=300, rates=16), case(1, 0, 4, 3, heads=2), case(0, 2, 4, 3, heads=2),
        case(1, 700, 1, 100, heads=1),
    ),
    bench=(case(1, 512, 1536, 16, heads=1536, rates=16), case(8, 512, 2048, 128, heads=32)),
    scalars=(scans.ROWS,),
)  # fmt: skip
