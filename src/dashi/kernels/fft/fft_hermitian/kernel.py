"""fft_hermitian: all n modes of real lines from modes 0 ... n/2, times `scale`: mode n - k is the conjugate of mode k.

Imaginary parts of mode 0, and of mode n/2 where n is even, are ignored.
"""

import numpy as np

from dashi.errors import ShapeError
from dashi.kernels.abi import Binding, Call, Case, Kernel, Operand, Plan, Scalar
from dashi.kernels.fft._plans import SCALE
from dashi.kernels.fft._whole import shader, spread
from dashi.kernels.portable import canon, mul
from dashi.types import Cost, HostArray


def require_modes(modes: int, n: int) -> None:
    if n < 1 or modes != n // 2 + 1:
        raise ShapeError(
            f"kernel 'fft_hermitian': {modes} modes are not those of {n} values.", f"pass n={max(2 * modes - 2, 1)}."
        )


def reference(x: HostArray, n: int, scale: float) -> HostArray:
    lines, modes, _ = x.shape
    require_modes(modes, n)
    by = canon(np.asarray(scale, x.dtype))
    place = np.arange(n)
    mirrored = place >= modes
    j = np.where(mirrored, n - place, place)
    z = canon(x)[:, j]
    result = np.empty((lines, n, 2), x.dtype)
    result[..., 0] = canon(mul(z[..., 0], by))
    result[..., 1] = canon(mul(np.where(mirrored, -z[..., 1], z[..., 1]), by))
    result[:, (j == 0) | (2 * j == n), 1] = 0
    return result


def plan(call: Call) -> Plan:
    lines, modes, n = call.dims["lines"], call.dims["modes"], int(call.scalars["n"])
    require_modes(modes, n)
    return spread(call, ("x", "result"), lines * n, {"n": n, "modes": modes})


def cost(call: Call) -> Cost:
    size = call.size("result")
    return Cost(size, call.bytes("x", "result"), int(size > 0))


def case(lines: int, n: int, scale: float = 1.0) -> Case:
    return Case({"x": (lines, n // 2 + 1, 2)}, {"n": n, "scale": scale})


KERNEL = Kernel(
    summary="all modes of real lines from half of them",
    inputs=(Operand("x", shape=("lines", "modes", 2)),),
    outputs=(Operand("result", shape=("lines", "n", 2)),),
    shaders={"main": shader(Binding("x", "P"), Binding("result", "P", "write"), push=("n", "modes"))},
    plan=plan,
    reference=reference,
    cost=cost,
    cases=(case(3, 1), case(2, 2), case(5, 11, 0.5), case(2, 130), case(0, 4)),
    bench=(case(256, 8191),),
    scalars=(Scalar("n", "u32", doc="values of a line"), SCALE),
)
