"""sample_logits: for each row of logits an index, drawn with the probabilities softmax(logits / temperature).

The largest of logits + temperature x Gumbel's numbers, the lowest index among equals (E. Gumbel, 1954; C. Maddison,
D. Tarlow, T. Minka, arXiv:1411.0030): with the temperature 0 the largest logit. Numbers are named as those of
random_draw: by the row's control words, the index and the stream. A NaN wins.
"""

import numpy as np

from dashi.errors import InputError
from dashi.kernels._work import ceil_div, even_groups
from dashi.kernels.abi import Binding, Call, Case, Dispatch, Kernel, Operand, Plan, Scalar, Shader, Spec
from dashi.kernels.portable import canon, mul, order_key
from dashi.kernels.random import _draws as draws
from dashi.types import Cost, HostArray


def reference(logits: HostArray, keys: HostArray, temperature: float, stream: int) -> HostArray:
    score, heat = canon(logits), canon(np.float32(temperature))
    if heat > 0:
        score = canon(score + mul(heat, draws.draws(keys, logits.shape[1], int(stream), "gumbel")))
    return np.argmax(order_key(score), axis=1).astype(np.uint32)


def plan(call: Call) -> Plan:
    rows, n = call.dims["rows"], call.dims["n"]
    if rows == 0:
        return Plan(())
    if n == 0:
        raise InputError("kernel 'sample_logits': rows without logits.", "pass at least one in each.")
    lanes = min(256, 1 << (call.limits.invocations.bit_length() - 1))
    each = ceil_div(n, lanes) * (1 + draws.TRIPS) + lanes.bit_length() + 1
    groups, rounds = even_groups(rows, call.limits)
    push = {"rows": rows, "n": n, "first_row": 0, "stride": groups, **call.scalars}
    trips = rounds * (1 + each)
    return Plan((Dispatch("main", ("logits", "keys", "result"), push, (groups, 1, 1), trips, {"LANES": lanes}),))


def cost(call: Call) -> Cost:
    size = call.size("logits")
    return Cost(120 * size, 4 * size + 20 * call.dims["rows"], int(call.dims["rows"] > 0))


def case(rows: int, n: int, temperature: float = 1.0, stream: int = 0) -> Case:
    return Case(
        {"logits": (rows, n), "keys": (rows, 4)},
        {"temperature": temperature, "stream": stream},
        {"keys": draws.control_words},
    )


KERNEL = Kernel(
    summary="an index for each row of logits, drawn with the probabilities of their softmax",
    inputs=(Operand("logits", shape=("rows", "n")), Operand("keys", "u32", ("rows", 4))),
    outputs=(Operand("result", "u32", ("rows",)),),
    shaders={
        "main": Shader(
            (Binding("logits"), Binding("keys", "u32"), Binding("result", "u32", "write")),
            (*(Scalar(name, "u32") for name in ("rows", "n", "first_row", "stride", "stream")), Scalar("temperature")),
            (Spec("LANES", 64),),
            local=("LANES", 1, 1),
            includes=("portable.glsl",),
        )
    },
    plan=plan,
    reference=reference,
    cost=cost,
    cases=(
        case(1, 1), case(3, 65), case(2, 300, 0.7, 5), case(2, 1000, 0.0), case(5, 2, 100.0),
        case(0, 3), case(1, 257, 1.5),
    ),
    bench=(case(1, 151_936), case(64, 151_936)),
    scalars=(Scalar("temperature", default=1.0, doc="0: the largest logit"), draws.STREAM),
    dtypes=("f32",),
)  # fmt: skip
