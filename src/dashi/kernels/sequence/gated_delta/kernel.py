"""gated_delta: the gated delta rule (S. Yang, J. Kautz and A. Hatamizadeh, arXiv:2412.06464), step by step.

For each channel of the values, with the decay and beta of its head, and the keys and queries of its group:

    s[e] = exp(log_decay) s[e]
    d    = beta (v - sum over e of s[e] k[e])
    s[e] = s[e] + k[e] d
    y    = sum over e of s[e] q[e]

Both sums go in the order tree64.
"""

import numpy as np

from dashi.kernels.abi import Call, Case, Kernel, Operand, Plan
from dashi.kernels.portable import canon, exp, mul
from dashi.kernels.sequence import _scans as scans
from dashi.types import Cost, HostArray

_NAMES = ("q", "k", "v", "log_decay", "beta", "start")


def reference(q: HostArray, k: HostArray, v: HostArray, log_decay: HostArray, beta: HostArray,
              start: HostArray, rows: int) -> HostArray:  # fmt: skip
    batch, steps, channels = v.shape
    result = np.zeros((batch, int(rows), channels), v.dtype)
    state = canon(start)
    for step in range(steps):
        key, query = (scans.spread(canon(w[:, step]).swapaxes(1, 2), channels) for w in (k, q))
        decay, weight = (scans.spread(canon(w[:, step]), channels) for w in (log_decay, beta))
        state = mul(exp(decay)[:, None], state)
        change = mul(weight, canon(canon(v[:, step]) - scans.dot(state, key)))
        state = canon(state + mul(key, change[:, None]))
        result[:, step] = scans.dot(state, query)
    result[:, steps:] = state
    return result


def plan(call: Call) -> Plan:
    return scans.plan("gated_delta", call, _NAMES, 2, {})


def cost(call: Call) -> Cost:
    items = call.dims["b"] * call.dims["channels"] * call.dims["steps"]
    return Cost(7 * items * call.dims["n"], call.bytes(*_NAMES, "result"), len(plan(call).dispatches))


def case(b: int, steps: int, channels: int, n: int, heads: int, groups: int = 1) -> Case:
    keys = (b, steps, groups, n)
    gates = (b, steps, heads)
    return Case(
        {"q": keys, "k": keys, "v": (b, steps, channels), "log_decay": gates, "beta": gates, "start": (b, n, channels)},
        {"rows": steps + n},
    )


KERNEL = Kernel(
    summary="the gated delta rule over sequences, step by step",
    inputs=(
        Operand("q", shape=("b", "steps", "groups", "n")),
        Operand("k", shape=("b", "steps", "groups", "n")),
        Operand("v", shape=("b", "steps", "channels")),
        Operand("log_decay", shape=("b", "steps", "heads")),
        Operand("beta", shape=("b", "steps", "heads")),
        scans.START,
    ),
    outputs=(scans.RESULT,),
    shaders={"main": scans.shader(_NAMES)},
    plan=plan,
    reference=reference,
    cost=cost,
    cases=(
        case(2, 5, 6, 4, heads=2), case(1, 3, 8, 65, heads=4, groups=2), case(2, 4, 6, 1, heads=3),
        case(1, 0, 4, 3, heads=2), case(0, 2, 4, 3, heads=2), case(1, 2, 300, 8, heads=3),
        case(1, 350, 1, 100, heads=1),
    ),
    bench=(case(1, 512, 2048, 128, heads=16), case(8, 512, 2048, 128, heads=16)),
    scalars=(scans.ROWS,),
)  # fmt: skip
