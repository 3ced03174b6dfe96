"""maths: one function of the portable maths, chosen by number, so that every one is proved on every device."""

from dataclasses import replace

from dashi.kernels import portable
from dashi.kernels.abi import Case, Scalar
from dashi.kernels.patterns import TUNINGS, elementwise
from dashi.types import HostArray

FUNCTIONS = ("divide", "reciprocal", "sqrt", "rsqrt", "exp", "log", "sin", "cos", "tanh", "softplus", "mul")


def reference(x: HostArray, y: HostArray, function: int) -> HostArray:
    name = FUNCTIONS[min(int(function), len(FUNCTIONS) - 1)]
    if name == "divide":
        return portable.divide(x, y)
    if name == "mul":
        return portable.canon(portable.mul(portable.canon(x), portable.canon(y)))
    return getattr(portable, name)(x)


KERNEL = replace(
    elementwise(
        summary="one function of the portable maths: " + ", ".join(f"{i} {name}" for i, name in enumerate(FUNCTIONS)),
        inputs=("x", "y"),
        scalars=(Scalar("function", "u32", default=0, doc="which"),),
        flops=20,
        takes="index",
        reference=reference,
    ),
    # Every function in one shader: one copy of it is enough for a compiler.
    tunings={"each1": TUNINGS["each1"]},
    prefer=None,
    cases=tuple(Case({"x": (1 << 14,), "y": (1 << 14,)}, {"function": i}) for i in range(len(FUNCTIONS))),
)
