"""rendezvous: every workgroup waits, not for ever, until all have come; the probe for how many run at the same time.

Workgroups are as large as a device allows, so that few share a multiprocessor.
"""

from typing import Final

import numpy as np

from dashi.errors import LimitError
from dashi.kernels.abi import Binding, Call, Case, Dispatch, Kernel, Operand, Plan, Scalar, Shader, Spec
from dashi.types import Cost, HostArray, Shape

LOCAL: Final = 1024


def reference(x: HostArray) -> HostArray:
    return np.add(x, 1, dtype=np.uint32)


def plan(call: Call) -> Plan:
    n = call.dims["n"]
    if n == 0:
        return Plan(())
    if n > call.limits.groups:
        raise LimitError(f"kernel 'rendezvous': {n} workgroups are more than a dispatch has.", "ask for fewer.")
    lanes = {"LANES": min(LOCAL, call.limits.invocations)}
    return Plan(
        (
            Dispatch("clear", ("come",), {}, (1, 1, 1)),
            # The polls are not counted: a device that ends them early only finds fewer workgroups.
            Dispatch("meet", ("x", "come", "result"), {"n": n}, (n, 1, 1), trips=1, spec=lanes),
        ),
        {"come": ("u32", 4)},
    )


def cost(call: Call) -> Cost:
    n = call.dims["n"]
    return Cost(flops=n, bytes=2 * call.bytes("x"), dispatches=2 * int(n > 0))


def _words(rng: np.random.Generator, shape: Shape) -> HostArray:
    return rng.integers(0, 1 << 31, shape, dtype=np.uint32)


KERNEL = Kernel(
    summary="x + 1 where all workgroups met, x where they did not: finds how many run at the same time",
    inputs=(Operand("x", "u32", ("n",)),),
    outputs=(Operand("result", "u32", ("n",)),),
    shaders={
        "clear": Shader((Binding("come", "u32", "write"),), local=(4, 1, 1), file="clear.comp"),
        "meet": Shader(
            (Binding("x", "u32"), Binding("come", "u32", "readwrite"), Binding("result", "u32", "write")),
            (Scalar("n", "u32"),),
            (Spec("LANES", 128),),
            local=("LANES", 1, 1),
            features=frozenset({"memory_model", "rendezvous"}),
        ),
    },
    plan=plan,
    reference=reference,
    cost=cost,
    cases=tuple(Case({"x": (n,)}, {}, {"x": _words}) for n in (0, 1, 2, 5)),
    dtypes=("u32",),
)
