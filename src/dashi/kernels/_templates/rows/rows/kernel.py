"""rows: the template of kernels over rows, compiled with bodies that only keep what they may call.

It is no kernel of the catalogue: `dashi.kernels.reduce_rows` and `row_map` fill its functions. As it stands it has no
meaning but this: the largest of each row of the sum of eight arrays, by its shaders of indices.
"""

import numpy as np

from dashi.kernels import _rows_abi as rows
from dashi.kernels.abi import Call, Case, Kernel, Operand, Plan
from dashi.kernels.portable import canon, order_key
from dashi.types import Cost, HostArray

INPUTS = tuple(f"in{k}" for k in range(rows.INPUTS))


def reference(*inputs: HostArray) -> HostArray:
    total = canon(inputs[0])
    for values in inputs[1:]:
        total = total + canon(values)
    return order_key(canon(total)).argmax(axis=-1).astype(np.uint32)


def plan(call: Call) -> Plan:
    shape = call.shapes[INPUTS[0]]
    folding = rows.fold(shape, (-1,), [rows.dense(shape)] * rows.INPUTS, maps=False)
    return rows.plan(call, folding, (*INPUTS, "result"), (), 1, maps=False, places=True)


def cost(call: Call) -> Cost:
    return Cost(bytes=call.bytes(*INPUTS), dispatches=1)


SHADERS = {
    **rows.shaders(rows.INPUTS, 1, places=True),
    **rows.shaders(rows.INPUTS, rows.OUTPUTS, places=False),
}
KERNEL = Kernel(
    summary="where the largest of each row of the sum of eight arrays is, by the template of kernels over rows",
    inputs=tuple(Operand(name) for name in INPUTS),
    outputs=(Operand("result", "u32"),),
    shaders=SHADERS,
    plan=plan,
    reference=reference,
    cost=cost,
    cases=tuple(Case(dict.fromkeys(INPUTS, shape)) for shape in ((1, 1), (3, 65), (2, 700))),
    tunings=rows.TUNINGS,
    reduces=(-1,),
)
