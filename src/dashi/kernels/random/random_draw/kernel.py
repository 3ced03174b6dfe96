"""random_draw: rows of random numbers, each from its name: (seed, request, position) of the row's control words, the
index in the row, and the stream.

Uniform numbers from 0 up to, but without, 1; Gaussian ones with mean 0 and variance 1; or Gumbel's.
"""

from dataclasses import replace

from dashi.errors import InputError
from dashi.kernels._work import LOCAL, LOOP_PUSH, loop_plan
from dashi.kernels.abi import Binding, Call, Case, Kernel, Operand, Plan, Scalar, Shader, Spec
from dashi.kernels.random import _draws as draws
from dashi.types import Cost, HostArray


def reference(keys: HostArray, count: int, kind: int, stream: int) -> HostArray:
    return draws.draws(keys, int(count), int(stream), draws.KINDS[int(kind)])


def plan(call: Call) -> Plan:
    kind = int(call.scalars["kind"])
    if kind >= len(draws.KINDS):
        raise InputError(
            f"kernel 'random_draw': there is no kind {kind} of numbers.", f"pass a number below {len(draws.KINDS)}."
        )
    push = {"count": call.scalars["count"], "stream": call.scalars["stream"]}
    whole = loop_plan(call, call.size("result"), ("keys", "result"), push, trips=draws.TRIPS)
    return Plan(tuple(replace(dispatch, spec={"KIND": kind}) for dispatch in whole.dispatches))


def cost(call: Call) -> Cost:
    size = call.size("result")
    return Cost(100 * size, 4 * size + 16 * call.dims["rows"], int(size > 0))


def case(rows: int, count: int, kind: int, stream: int = 0) -> Case:
    return Case({"keys": (rows, 4)}, {"count": count, "kind": kind, "stream": stream}, {"keys": draws.control_words})


KERNEL = Kernel(
    summary="rows of random numbers (uniform, Gaussian, Gumbel), each from its name",
    inputs=(Operand("keys", "u32", ("rows", 4)),),
    outputs=(Operand("result", shape=("rows", "count")),),
    shaders={
        "main": Shader(
            (Binding("keys", "u32"), Binding("result", access="write")),
            (*LOOP_PUSH, Scalar("count", "u32"), Scalar("stream", "u32")),
            (Spec("KIND", 0),),
            local=(LOCAL, 1, 1),
            includes=("portable.glsl",),
        )
    },
    plan=plan,
    reference=reference,
    cost=cost,
    cases=(
        case(1, 1, 0), case(3, 65, 0, 7), case(2, 7, 1), case(1, 257, 1, 2**32 - 1), case(3, 66, 2), case(0, 5, 1),
        case(2, 0, 0),
    ),
    bench=(case(1, 1 << 24, 0), case(1, 1 << 24, 1)),
    scalars=(
        Scalar("count", "u32", doc="numbers in a row"),
        Scalar("kind", "u32", 0, "0 uniform, 1 Gaussian, 2 Gumbel's"),
        draws.STREAM,
    ),
    dtypes=("f32",),
)  # fmt: skip
