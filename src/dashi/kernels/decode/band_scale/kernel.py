"""band_scale: the modes of every band times one number, so that the band has the energy that is still wanted of it.

`band` numbers the modes: 0 is none (the result is 0 there), b + 1 is band b. `drawn[m, b]` is the energy that x has
in a band, `present[m, b]` the energy that is there without it, and z[m, first + b] the energy that both are to have
together: the factor is sqrt((z - present) / drawn), or 0 where nothing is wanted or nothing was drawn.
"""

import numpy as np

from dashi.errors import ShapeError
from dashi.kernels.abi import Binding, Call, Case, Kernel, Operand, Plan, Scalar
from dashi.kernels.portable import canon, divide, mul, sqrt
from dashi.kernels.spectral._modes import MODES, TABLE, pairs, parts, shader, spread
from dashi.types import Cost, HostArray, Shape

FIRST = Scalar("first", "u32", 0, "where in z the energies lie")


def reference(
    x: HostArray, band: HostArray, drawn: HostArray, present: HostArray, z: HostArray, first: int
) -> HostArray:
    bands = drawn.shape[1]
    require(first, bands, z.shape[1])
    wanted = canon(canon(z[:, first : first + bands]) - canon(present))
    found = canon(drawn)
    factors = np.where((wanted > 0) & (found > 0), sqrt(divide(wanted, found)), 0).astype(x.dtype)
    number = band.astype(np.int64)
    held = (number > 0) & (number <= bands)
    chosen = np.pad(factors, ((0, 0), (0, 1)))[:, np.where(held, number - 1, bands)]
    real, imaginary = parts(x)
    made = (np.where(held, mul(chosen, part), 0).astype(x.dtype) for part in (real, imaginary))
    return pairs(*made)


def require(first: int, bands: int, d: int) -> None:
    if first + bands > d:
        raise ShapeError(
            f"kernel 'band_scale': z of {d} numbers has no {bands} energies from {first} on.", "correct `first`."
        )


def plan(call: Call) -> Plan:
    first, bands, d = int(call.scalars["first"]), call.dims["bands"], call.dims["d"]
    require(first, bands, d)
    plane = call.dims["n"] * call.dims["modes"]
    push = {"plane": plane, "bands": bands, "d": d, "first": first}
    return spread(call, ("x", "band", "drawn", "present", "z", "result"), call.dims["members"] * plane, push)


def cost(call: Call) -> Cost:
    size = call.size("result")
    return Cost(size, call.bytes("x", "result", "drawn", "present") + 4 * call.size("band"), int(size > 0))


def case(shape: Shape, bands: int, d: int, first: int) -> Case:
    members, n, modes, _ = shape

    def words(rng: np.random.Generator, size: Shape) -> HostArray:
        return rng.integers(0, bands + 3, size).astype(np.uint32)

    shapes = {
        "x": shape, "band": (n, modes), "drawn": (members, bands), "present": (members, bands), "z": (members, d)
    }  # fmt: skip
    return Case(shapes, {"first": first}, {"band": words})


KERNEL = Kernel(
    summary="modes of every band scaled to the energy that is still wanted",
    inputs=(
        Operand("x", shape=MODES),
        Operand("band", "u32", TABLE),
        Operand("drawn", shape=("members", "bands")),
        Operand("present", shape=("members", "bands")),
        Operand("z", shape=("members", "d")),
    ),
    outputs=(Operand("result", shape=MODES),),
    shaders={
        "main": shader(
            Binding("x", "P"),
            Binding("band", "u32"),
            Binding("drawn"),
            Binding("present"),
            Binding("z"),
            Binding("result", "P", "write"),
            push=tuple(Scalar(name, "u32") for name in ("plane", "bands", "d", "first")),
        )
    },
    plan=plan,
    reference=reference,
    cost=cost,
    cases=(
        case((1, 1, 1, 2), 1, 1, 0), case((2, 8, 5, 2), 2, 9, 7), case((3, 64, 33, 2), 3, 5, 1),
        case((0, 4, 3, 2), 2, 4, 2), case((1, 4, 3, 2), 0, 2, 1),
    ),
    bench=(case((1, 128, 65, 2), 2, 200, 198), case((1, 2048, 1025, 2), 2, 200, 198)),
    scalars=(FIRST,),
    in_place=True,
)  # fmt: skip
