"""band_energies: result[m, b] = sum over modes k of weights[b, k] |x[m, k]|^2, in the order tree64.

Weights of 0 leave modes out: so one table makes energies of bands, of a whole field, or of its gradients. Two passes:
one value for every tile of 4096 modes, then their sum.
"""

from dataclasses import replace

import numpy as np

from dashi.errors import LimitError
from dashi.kernels._work import RUN, ceil_div, groups_for
from dashi.kernels.abi import Binding, Call, Case, Dispatch, Kernel, Operand, Plan, Scalar, Shader
from dashi.kernels.portable import canon, mul, sum64
from dashi.kernels.spectral._modes import MODES, parts
from dashi.types import Cost, HostArray, Shape

TILE = RUN * RUN


def reference(x: HostArray, weights: HostArray) -> HostArray:
    require(weights.shape[1] * weights.shape[2])
    real, imaginary = parts(x)
    squares = mul(real, real) + mul(imaginary, imaginary)
    energies = np.zeros((len(x), len(weights)), x.dtype)
    for band, weight in enumerate(canon(weights)):
        energies[:, band] = _two_passes(mul(weight, squares).reshape(len(x), -1)) if len(x) else 0
    return canon(energies)


def _two_passes(addends: HostArray) -> HostArray:
    """tree64, with sums of tiles made canonical between the passes."""
    tiles = ceil_div(addends.shape[1], TILE)
    padded = np.pad(addends, ((0, 0), (0, tiles * TILE - addends.shape[1])))
    sums = canon(sum64(padded.reshape(len(addends), tiles, TILE)))
    return sums[:, 0] if tiles == 1 else canon(sum64(sums))


def require(plane: int) -> None:
    if plane > TILE * TILE:
        raise LimitError(f"kernel 'band_energies': {plane} modes are more than {TILE * TILE}.", "use a smaller grid.")


def plan(call: Call) -> Plan:
    plane, sums = call.dims["n"] * call.dims["modes"], call.dims["members"] * call.dims["bands"]
    require(plane)
    if sums == 0:
        return Plan(())
    tiles = max(1, ceil_div(plane, TILE))
    target = "result" if tiles == 1 else "partial"
    groups, rounds = groups_for(sums * tiles, 1, call.limits)
    push = {"total": sums * tiles, "stride": groups, "tiles": tiles, "plane": plane, "bands": call.dims["bands"]}
    first = Dispatch("main", ("x", "weights", target), push, (groups, 1, 1), rounds * (1 + 3 * RUN))
    if tiles == 1:
        return Plan((first,))
    groups, rounds = groups_for(sums, 1, call.limits)
    push = {"total": sums, "stride": groups, "tiles": tiles}
    rest = Dispatch("rest", ("partial", "result"), push, (groups, 1, 1), rounds * (1 + 3 * RUN))
    return Plan((first, rest), {"partial": ("T", sums * tiles)})


def cost(call: Call) -> Cost:
    plane, sums = call.dims["n"] * call.dims["modes"], call.dims["members"] * call.dims["bands"]
    moved = sums * plane * 3 * call.dtype.size + call.bytes("result")
    return Cost(5 * sums * plane, moved, (1 + int(plane > TILE)) * int(sums > 0))


def case(shape: Shape, bands: int) -> Case:
    return Case({"x": shape, "weights": (bands, *shape[1:3])})


MAIN = Shader(
    (Binding("x", "P"), Binding("weights"), Binding("result", access="write")),
    tuple(Scalar(name, "u32") for name in ("total", "stride", "tiles", "plane", "bands")),
    local=(RUN, 1, 1),
    includes=("portable.glsl",),
    extensions=("GL_EXT_control_flow_attributes",),
)

KERNEL = Kernel(
    summary="weighted sums of |x|^2 over modes, one for every band",
    inputs=(Operand("x", shape=MODES), Operand("weights", shape=("bands", "n", "modes"))),
    outputs=(Operand("result", shape=("members", "bands")),),
    shaders={
        "main": MAIN,
        "rest": replace(
            MAIN, buffers=(Binding("partial"), Binding("result", access="write")), push=MAIN.push[:3], file="rest.comp"
        ),
    },
    plan=plan,
    reference=reference,
    cost=cost,
    cases=(
        case((1, 1, 1, 2), 1), case((2, 8, 5, 2), 3), case((1, 64, 33, 2), 2), case((3, 128, 65, 2), 2),
        case((0, 4, 3, 2), 2), case((1, 4, 3, 2), 0), case((1, 64, 64, 2), 1), case((1, 64, 65, 2), 1),
    ),
    bench=(case((1, 128, 65, 2), 2), case((1, 2048, 1025, 2), 2)),
)  # fmt: skip
