"""vorticity_tendency: the modes of -(u w_x + v w_y) of vorticity, in three passes: what lies between stays on the chip.

What `spectral_fields`, `irfft2`, `advection` and `rfft2` (times 1 / n^2) make in seven, bit for bit where it matters:
only modes with 3 |k| < n along both axes are looked at, and columns past those are 0 in the result (rows are what they
are: the tables of a time scheme are 0 there). `twiddles` is `fft._roots.real_table(n)`, `twiddles_columns`
is `_roots.table(n)`.
"""

from dashi.kernels.abi import Call, Kernel, Operand, Plan
from dashi.kernels.fft import _layouts as fourier_layouts
from dashi.kernels.spectral._modes import MODES
from dashi.kernels.spectral._stages import (
    INPUTS,
    PASSES,
    TUNINGS,
    WRITTEN,
    case,
    dispatches,
    shaders,
    tendency_of,
    transform_cost,
)
from dashi.types import Cost


def plan(call: Call) -> Plan:
    return dispatches(call, "columns", ("result",))


def cost(call: Call) -> Cost:
    return transform_cost(call) + Cost(0, call.bytes("modes", "result", "inverse"), 0)


KERNEL = Kernel(
    summary="modes of -(u w_x + v w_y) of vorticity, dealiased",
    inputs=INPUTS,
    outputs=(Operand("result", shape=MODES),),
    shaders={**PASSES, **shaders("columns", "kernel.comp", "fft_complex.glsl", WRITTEN, push=("width",))},
    plan=plan,
    reference=tendency_of,
    cost=cost,
    cases=(case(2, 12), case(1, 16), case(0, 8)),
    bench=tuple(case(1, n) for n in (128, 256, 1024, 2048)),
    tunings=TUNINGS,
    prefer=fourier_layouts.prefer,
)
