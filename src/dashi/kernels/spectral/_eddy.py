"""Plan and reference of the tendency of vorticity with Smagorinsky's eddy viscosity, in three passes as without it.

Six fields go back, -(u w_x + v w_y) and the flux (nu_t w_x, nu_t w_y) come forward, and the divergence of the flux is
added as the columns are stored.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import numpy as np

from dashi.kernels.abi import Binding, Call, Kernel, Operand, Plan, Scalar, Shader
from dashi.kernels.fft import _plans as fourier_plans
from dashi.kernels.fft._layouts import prefer
from dashi.kernels.fft._plans import FftPass
from dashi.kernels.fft._reference import forward_real, inverse_real, transform
from dashi.kernels.portable import canon, mul, sqrt
from dashi.kernels.spectral._modes import MODES, Floats, pairs, parts
from dashi.kernels.spectral._stages import (
    INPUTS,
    TUNINGS,
    WRITTEN,
    case,
    extended,
    kept_columns,
    require_side,
    shaders,
    spectra_of,
)
from dashi.types import Cost, HostArray

FIELDS: Final = 6
PRODUCTS: Final = 3


def tendency_of(
    modes: HostArray,
    wave_x: HostArray,
    wave_y: HostArray,
    inverse: HostArray,
    twiddles: HostArray,
    twiddles_columns: HostArray,
    eddy: float,
) -> Floats:
    """The modes of -(u w_x + v w_y) + div(nu_t grad w)."""
    members, n, width, _ = modes.shape
    require_side(n, width)
    keep = kept_columns(n)
    result = np.zeros(modes.shape, modes.dtype)
    kx, ky = canon(wave_x)[None, :keep], canon(wave_y)[:, None]
    for member in range(members):
        spectra = spectra_of(modes[member, :, :keep], wave_x[:keep], wave_y, inverse[:, :keep], strains=True)
        columns = np.zeros((FIELDS, n, width, 2), modes.dtype)
        columns[:, :, :keep] = transform(spectra, twiddles_columns, True, 1.0, raw=2)
        fields = inverse_real(columns.reshape(FIELDS * n, width, 2), twiddles, n, 1.0, raw=1).reshape(FIELDS, n, n)
        rows = forward_real(_products(fields, eddy).reshape(PRODUCTS * n, n), twiddles, 1.0, raw=2)
        kept = np.ascontiguousarray(rows.reshape(PRODUCTS, n, width, 2)[:, :, :keep])
        (a, ai), (b, bi), (c, ci) = map(parts, transform(kept, twiddles_columns, False, 1.0 / (n * n), raw=1))
        result[member, :, :keep] = pairs(a - (mul(kx, bi) + mul(ky, ci)), ai + (mul(kx, b) + mul(ky, c)))
    return result


def _products(fields: Floats, eddy: float) -> Floats:
    u, v, slope_x, slope_y, normal, shear = fields
    viscosity = mul(canon(np.asarray(eddy, fields.dtype)), sqrt(mul(normal, normal) + mul(shear, shear)))
    along = canon(-(mul(u, slope_x) + mul(v, slope_y)))
    return np.stack([along, canon(mul(viscosity, slope_x)), canon(mul(viscosity, slope_y))])


def _plan(call: Call) -> Plan:
    members, n, width = (call.dims[name] for name in ("members", "n", "modes"))
    require_side(n, width)
    if members == 0:
        return Plan(())
    keep = kept_columns(n)
    buffers = ("modes", "twiddles_columns", "wave_x", "wave_y", "inverse", "spectra")
    back = FftPass("back", buffers, FIELDS * members, n, keep, inverse=True, raw=2)
    rows = FftPass("rows", ("spectra", "twiddles", "between"), members * n, n // 2, scale=0.5, raw=3)
    ends = ("between", "twiddles_columns", "wave_x", "wave_y", "result")
    columns = FftPass("columns", ends, members, n, keep, scale=1.0 / (n * n), raw=1)
    along = fourier_plans.sized(call, n)
    within = replace(along, tuning={**along.tuning, "parts": 1})
    dispatches = (
        extended(back.dispatch(along), 1, {}, width=width),
        extended(rows.dispatch(within), 12, {}, kept=keep, height=n, eddy=call.scalars["eddy"]),
        extended(columns.dispatch(along), 3, {}, width=width),
    )
    size = 2 * members * n * keep
    return Plan(dispatches, {"spectra": ("T", FIELDS * size), "between": ("T", PRODUCTS * size)})


def _cost(call: Call) -> Cost:
    members, n = call.dims["members"], call.dims["n"]
    keep, many = kept_columns(n), FIELDS + PRODUCTS
    flops = members * (many * n * fourier_plans.real_flops(n) + many * keep * fourier_plans.flops(n) + 12 * n * n)
    moved = call.bytes("modes", "result", "inverse") + 4 * many * members * n * keep * call.dtype.size
    return Cost(flops, moved, 3 if members else 0)


def _passes() -> dict[str, Shader]:
    waves = (Binding("wave_x"), Binding("wave_y"))
    rows = shaders("rows", "rows.comp", "fft_pairs.glsl", WRITTEN, push=("kept", "height", Scalar("eddy")))
    return {
        **shaders(
            "back", "back.comp", "fft_complex.glsl", *waves, Binding("inverse"), WRITTEN, push=("width",),
            prelude="#define FIELDS 6u\n",
        ),
        **{name: replace(shader, includes=("portable.glsl", *shader.includes)) for name, shader in rows.items()},
        **shaders("columns", "kernel.comp", "fft_line.glsl", *waves, WRITTEN, push=("width",)),
    }  # fmt: skip


EDDY: Final = Kernel(
    summary="modes of -(u w_x + v w_y) + div(nu_t grad w) of vorticity, Smagorinsky's nu_t, dealiased",
    inputs=INPUTS,
    outputs=(Operand("result", shape=MODES),),
    shaders=_passes(),
    plan=_plan,
    reference=tendency_of,
    cost=_cost,
    cases=tuple(
        replace(case(members, n), scalars={"eddy": eddy})
        for members, n, eddy in ((2, 12, 0.25), (1, 16, 1e-3), (0, 8, 0.0))
    ),
    bench=tuple(replace(case(1, n), scalars={"eddy": 1e-4}) for n in (128, 1024)),
    scalars=(Scalar("eddy", doc="(Cs dx)^2"),),
    tunings=TUNINGS,
    prefer=prefer,
)
