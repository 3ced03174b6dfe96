"""Plans and references that the kernels on the modes of real fields share.

A field (n, n) is kept as half of its modes, (n, n / 2 + 1, 2): rows are the wave numbers along y, in the order of the
FFT, columns those along x from 0 on; pairs are real and imaginary parts. Several fields lie one after another.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from dashi.kernels._work import groups_for
from dashi.kernels.abi import Binding, Call, Case, Dispatch, Kernel, Number, Operand, Plan, Scalar, Shader
from dashi.kernels.portable import canon, mul
from dashi.kernels.spectral._increments import incremented
from dashi.types import Cost, HostArray, Shape

Floats = npt.NDArray[Any]
LOCAL: Final = 256
MODES: Final[tuple[str | int, ...]] = ("members", "n", "modes", 2)
TABLE: Final[tuple[str, ...]] = ("n", "modes")
SIZES: Final[tuple[Shape, ...]] = ((1, 1, 1, 2), (1, 8, 5, 2), (2, 6, 4, 2), (3, 64, 33, 2), (0, 4, 3, 2))
"""Shapes of modes for the cases: one mode, even and odd columns, several members, none."""
FIELDS: Final = (
    "vorticity", "streamfunction", "velocity_x", "velocity_y", "vorticity_x", "vorticity_y", "strain_normal",
    "strain_shear", "pressure", "velocity_sum", "velocity_gap",
)  # fmt: skip
"""What `spectral_fields` makes of vorticity, by its number; `pressure` is what it makes of the source of pressure."""


def shader(*bindings: Binding, push: Sequence[Scalar] = (), local: int = LOCAL) -> Shader:
    """A shader whose invocations run over `total` items with a stride."""
    return Shader(
        bindings,
        (Scalar("total", "u32"), Scalar("stride", "u32"), *push),
        local=(local, 1, 1),
        includes=("portable.glsl",),
    )


def spread(call: Call, buffers: tuple[str, ...], total: int, push: Mapping[str, Number], trips: int = 0) -> Plan:
    """One dispatch of the shader `main` over so many items, each of so many loop iterations."""
    if total == 0:
        return Plan(())
    groups, rounds = groups_for(total, LOCAL, call.limits)
    numbers = {"total": total, "stride": groups * LOCAL, **push}
    return Plan((Dispatch("main", buffers, numbers, (groups, 1, 1), rounds * (1 + trips)),))


def numbers(count: int) -> npt.NDArray[np.int64]:
    """0, 1, ..., count - 1."""
    return np.arange(count, dtype=np.int64)


def parts(z: HostArray) -> tuple[Floats, Floats]:
    """Real and imaginary parts, canonical."""
    values = canon(z)
    return values[..., 0], values[..., 1]


def pairs(real: Floats, imaginary: Floats) -> Floats:
    """Modes from their parts, as they are stored."""
    return canon(np.stack([real, imaginary], axis=-1))


def mode_sum(terms: int, *, increment: bool = False) -> Kernel:
    """The kernel t0 x0 + t1 x1 + ...: modes weighted by real tables, added from the first term on. As an `increment`
    the sum is what x0 changes by (`_increments`)."""
    xs = tuple(f"x{j}" for j in range(terms))
    ts = tuple(f"t{j}" for j in range(terms))
    names = (*xs, *ts, "result")

    def reference(*arrays: HostArray) -> HostArray:
        sums: Any = None
        for x, t in zip(arrays[:terms], arrays[terms:], strict=True):
            term = mul(canon(x), canon(t)[..., None])
            sums = term if sums is None else sums + term
        return incremented(canon(arrays[0]), sums) if increment else canon(sums)

    def plan(call: Call) -> Plan:
        plane = call.dims["n"] * call.dims["modes"]
        return spread(call, names, call.dims["members"] * plane, {"plane": plane})

    def cost(call: Call) -> Cost:
        size = call.size("result")
        return Cost((2 * terms - 1) * size, call.bytes(*names), int(size > 0))

    text = " + ".join(f"t{j} x{j}" for j in range(terms))
    add = "".join(f"\n    sums += term(x{j}[i], t{j}[mode]);" for j in range(1, terms))
    prelude = (
        "P term(P z, T t);\n"
        f"P weighted(uint i, uint mode) {{\n    P sums = term(x0[i], t0[mode]);{add}\n    return sums;\n}}\n"
    )
    main = shader(
        *(Binding(x, "P") for x in xs),
        *(Binding(t) for t in ts),
        Binding("result", "P", "write"),
        push=(Scalar("plane", "u32"),),
    )
    if increment:
        main = replace(main, includes=(*main.includes, "increments.glsl"))
    return Kernel(
        summary=f"{'x0 + ' if increment else ''}{text}: modes weighted by real tables",
        inputs=(*(Operand(x, shape=MODES) for x in xs), *(Operand(t, shape=TABLE) for t in ts)),
        outputs=(Operand("result", shape=MODES),),
        shaders={"main": replace(main, prelude=prelude)},
        plan=plan,
        reference=reference,
        cost=cost,
        cases=tuple(Case({**dict.fromkeys(xs, shape), **dict.fromkeys(ts, shape[1:3])}) for shape in SIZES),
        bench=(Case({**dict.fromkeys(xs, (1, 2048, 1025, 2)), **dict.fromkeys(ts, (2048, 1025))}),),
        in_place=not increment,  # every change looks at the clock
    )
