"""Plans and references of the kernels that make the tendency of vorticity, alone or with the stage it completes.

Three passes: the modes of u, v, w_x and w_y, made as they are loaded, back along the columns; rows back to physical
space, -(u w_x + v w_y), and rows forward, without leaving the chip; columns forward. Modes with 3 |k| < n along both
axes are looked at, and columns past those are 0 in the results.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

import numpy as np

from dashi.errors import ShapeError
from dashi.kernels.abi import Binding, Call, Case, Dispatch, Kernel, Number, Operand, Plan, Scalar, Shader, Spec
from dashi.kernels.fft import _layouts as fourier_layouts
from dashi.kernels.fft import _plans as fourier_plans
from dashi.kernels.fft._plans import FftPass, filled
from dashi.kernels.fft._reference import forward_real, inverse_real, transform
from dashi.kernels.fft._roots import real_table, require_length, table
from dashi.kernels.portable import canon, mul
from dashi.kernels.spectral._increments import incremented, ticked
from dashi.kernels.spectral._modes import MODES, TABLE, Floats, numbers, pairs, parts
from dashi.types import Cost, HostArray, Shape

TUNINGS: Final = {
    "wide": {**fourier_layouts.TUNINGS["wide"], "each": 8, "long": 1024, "long_each": 16, "beside": 1 << 17},
    "small": {**fourier_layouts.TUNINGS["small"], "long": 4096, "beside": 0},
}
"""As those of the transforms, and: pairs of values of a field, all members together, up to which the four fields of a
row lie side by side on a workgroup: so few leave a device idle."""
TABLES: Final = ("wave_x", "wave_y", "inverse", "twiddles", "twiddles_columns")


def kept_columns(n: int) -> int:
    """Columns of the half spectrum with 3 k < n."""
    return (n - 1) // 3 + 1


def require_side(n: int, modes: int) -> None:
    """An error for what are not the modes of a square of even side."""
    require_length(n)
    if n % 2 or modes != n // 2 + 1:
        raise ShapeError(
            f"{n} rows and {modes} columns are not the modes of a square of even side.",
            f"pass (members, n, n / 2 + 1, 2) with an even n, such as {2 * (modes - 1)}.",
        )


def tendency_of(
    modes: HostArray,
    wave_x: HostArray,
    wave_y: HostArray,
    inverse: HostArray,
    twiddles: HostArray,
    twiddles_columns: HostArray,
) -> Floats:
    """The modes of -(u w_x + v w_y)."""
    members, n, width, _ = modes.shape
    require_side(n, width)
    keep = kept_columns(n)
    result = np.zeros(modes.shape, modes.dtype)
    for member in range(members):
        spectra = spectra_of(modes[member, :, :keep], wave_x[:keep], wave_y, inverse[:, :keep])
        columns = np.zeros((4, n, width, 2), modes.dtype)
        columns[:, :, :keep] = transform(spectra, twiddles_columns, True, 1.0, raw=2)
        u, v, slope_x, slope_y = inverse_real(columns.reshape(4 * n, width, 2), twiddles, n, 1.0, raw=1).reshape(
            4, n, n
        )
        product = canon(-(mul(u, slope_x) + mul(v, slope_y)))
        rows = np.ascontiguousarray(forward_real(product, twiddles, 1.0, raw=2)[:, :keep])
        result[member, :, :keep] = transform(rows[None], twiddles_columns, False, 1.0 / (n * n), raw=1)[0]
    return result


def spectra_of(
    modes: HostArray, wave_x: HostArray, wave_y: HostArray, inverse: HostArray, *, strains: bool = False
) -> Floats:
    """u, v, w_x, w_y, and the strains if asked for, (4 or 6, n, kept, 2)."""
    n = len(modes)
    low = 3 * np.minimum(numbers(n), n - numbers(n)) < n
    real, imaginary = parts(np.where(low[:, None, None], modes, modes.dtype.type(0)))
    x, y, less = canon(wave_x)[None, :], canon(wave_y)[:, None], canon(inverse)
    psi = mul(real, less), mul(imaginary, less)
    factors = ((y, psi), (-x, psi), (x, (real, imaginary)), (y, (real, imaginary)))
    fields = [pairs(-mul(k, z[1]), mul(k, z[0])) for k, z in factors]
    if strains:
        straight = (-(mul(x, y) + mul(x, y)), mul(x, x) - mul(y, y))
        fields += [pairs(mul(k, psi[0]), mul(k, psi[1])) for k in straight]
    made = np.stack(fields)
    # A mode that is not looked at is 0, whatever its factors are.
    return np.where(low[:, None, None], made, made.dtype.type(0))


def dispatches(call: Call, last: str, buffers: tuple[str, ...], spec: Mapping[str, int] | None = None) -> Plan:
    """The three passes; the last one by this shader, with these buffers after its source and factors, and these
    constants besides those of a pass."""
    members, n, width = (call.dims[name] for name in ("members", "n", "modes"))
    require_side(n, width)
    if members == 0:
        return Plan(())
    keep = kept_columns(n)
    first = ("modes", "twiddles_columns", "wave_x", "wave_y", "inverse", "spectra")
    back = FftPass("back", first, 4 * members, n, keep, inverse=True, raw=2)
    columns = FftPass(last, ("between", "twiddles_columns", *buffers), members, n, keep, scale=1.0 / (n * n), raw=1)
    small = members * n * (n // 2) <= call.tuning["beside"]
    along = fourier_plans.sized(call, n)
    within = replace(along, tuning={**along.tuning, "parts": 1})
    along = within if small else along
    passes = (
        extended(back.dispatch(along), 1, {}, width=width),
        extended(_rows(within, members, n, small).dispatch(within), 6, {}, kept=keep, height=n),
        extended(columns.dispatch(along), 1, spec or {}, width=width),
    )
    return Plan(passes, {"spectra": ("T", 8 * members * n * keep), "between": ("T", 2 * members * n * keep)})


def _rows(call: Call, members: int, n: int, small: bool) -> FftPass:
    """The pass over rows: the fields of one side by side, or one after the other."""
    through = ("spectra", "twiddles", "between")
    beside = FftPass("beside", through, 4 * members * n, n // 2, scale=0.5, raw=3, bundle=4)
    made = beside.layout(call)
    if small and (made.parts, made.windows) == (1, 1):
        return beside
    return FftPass("rows", through, members * n, n // 2, scale=0.5, raw=3)


def extended(made: Dispatch, times: int, spec: Mapping[str, int], **push: Number) -> Dispatch:
    """The dispatch of a pass with so many times the loops, and more constants and numbers."""
    return replace(made, push={**made.push, **push}, trips=made.trips * times, spec={**made.spec, **spec})


def transform_cost(call: Call) -> Cost:
    """What the transforms and the products cost, without what is read first and written last."""
    members, n = call.dims["members"], call.dims["n"]
    keep = kept_columns(n)
    flops = members * (5 * n * fourier_plans.real_flops(n) + 5 * keep * fourier_plans.flops(n) + 4 * n * n)
    return Cost(flops, 2 * (8 + 2) * members * n * keep * call.dtype.size, 3 if members else 0)


def case(members: int, n: int, terms: int = 0, *, forced: bool = False, increment: int = 0) -> Case:
    """A case of a tendency, or of a stage of so many terms, with or without a force, as a sum or as a change."""
    modes = n // 2 + 1
    shapes: dict[str, Shape] = {"modes": (members, n, modes, 2), "wave_x": (modes,), "wave_y": (n,)}
    shapes |= {"inverse": (n, modes), "twiddles": (n, 2), "twiddles_columns": (n, 2)}
    shapes |= {f"x{j}": (members, n, modes, 2) for j in range(terms - 1)}
    shapes |= {f"t{j}": (n, modes) for j in range(terms)}
    if terms:
        shapes["force"] = (n * modes if forced else 1, 2)
    fill = {"twiddles": filled(real_table, n), "twiddles_columns": filled(table, n)}
    return Case(shapes, {"increment": increment} if terms else {}, fill)


def shaders(
    name: str,
    file: str,
    include: str,
    *bindings: Binding,
    push: tuple[str | Scalar, ...],
    prelude: str = "",
    spec: tuple[Spec, ...] = (),
) -> dict[str, Shader]:
    """A shader round a transform, for powers of two and for other lengths."""
    powers = Shader(
        (Binding("source", "P"), Binding("turns", "P"), *bindings),
        (*fourier_plans.PUSH, *(Scalar(one, "u32") if isinstance(one, str) else one for one in push)),
        (*fourier_plans.SPECS, *spec),
        local=("LANES", 1, 1),
        file=file,
        includes=(include,),
        extensions=("GL_EXT_control_flow_attributes",),
        prelude=prelude,
        shared_bytes=49152,
    )
    return {name: powers, f"{name}_mixed": replace(powers, prelude=f"#define FFT_MIXED\n{prelude}")}


WRITTEN: Final = Binding("result", "P", "write")
INCREMENT: Final = Scalar("increment", "u32", 0, "1 for x0 plus the sum, 0 for the sum")
PASSES: Final = {
    **shaders(
        "back", "back.comp", "fft_complex.glsl", Binding("wave_x"), Binding("wave_y"), Binding("inverse"), WRITTEN,
        push=("width",), prelude="#define FIELDS 4u\n",
    ),
    **shaders("rows", "rows.comp", "fft_pairs.glsl", WRITTEN, push=("kept", "height")),
    **shaders("beside", "beside.comp", "fft_pairs.glsl", WRITTEN, push=("kept", "height")),
}  # fmt: skip
"""The first two passes."""
INPUTS: Final = (
    Operand("modes", shape=MODES),
    Operand("wave_x", shape=("modes",)),
    Operand("wave_y", shape=("n",)),
    Operand("inverse", shape=TABLE),
    Operand("twiddles", shape=("n", 2)),
    Operand("twiddles_columns", shape=("n", 2)),
)


def fast_stage(terms: int) -> Kernel:
    """The kernel of `stage` in the device class: nothing is flushed."""
    portable = stage(terms)

    def reference(*arrays: HostArray, increment: int = 0) -> tuple[HostArray, HostArray]:
        tendency, advanced = portable.reference(*arrays, increment=increment)
        if increment:  # in a wider type too the clock goes on as in fp32
            advanced[:, :1, :1, 1:] = ticked(arrays[len(INPUTS)][:, :1, :1, 1:].astype(np.float32))
        return tendency, advanced

    return replace(
        portable,
        reference=reference,
        summary=f"{portable.summary}; nothing flushed (the bits are the device's)",
        shaders={name: fourier_plans.fast(shader) for name, shader in portable.shaders.items()},
        portable=False,
        bound=1e-5,
        dtypes=("f32",),
    )


def stage(terms: int) -> Kernel:
    """The kernel that makes the tendency N of `modes`, and t0 x0 + ... + t_last N: a stage of a time scheme. The steady
    force is part of N, unless it is one pair alone. With `increment` the sum is what x0 changes by (`_increments`)."""
    xs, ts = tuple(f"x{j}" for j in range(terms - 1)), tuple(f"t{j}" for j in range(terms))

    def reference(*arrays: HostArray, increment: int = 0) -> tuple[HostArray, HostArray]:
        tendency = tendency_of(*arrays[:6])
        known, tables, force = arrays[6 : 5 + terms], arrays[5 + terms : -1], arrays[-1]
        keep = kept_columns(tendency.shape[1])
        if len(force) > 1:
            steady = canon(force).reshape(tendency.shape[1:])[:, :keep]
            tendency[:, :, :keep] = canon(tendency[:, :, :keep] + steady)
        sums: Floats | None = None
        for x, t in zip((*known, tendency), tables, strict=True):
            term = mul(canon(x), canon(t)[..., None])
            sums = term if sums is None else sums + term
        advanced = np.zeros(tendency.shape, tendency.dtype)
        if sums is not None:
            advanced[:, :, :keep] = (incremented(canon(known[0]), sums) if increment else canon(sums))[:, :, :keep]
        return tendency, advanced

    def plan(call: Call) -> Plan:
        modes = call.dims["n"] * call.dims["modes"]
        if call.dims["forces"] not in (1, modes):
            raise ShapeError(
                f"a force of {call.dims['forces']} pairs does not belong to {modes} modes.",
                f"pass ({modes}, 2), or (1, 2) for none.",
            )
        forced = {"FORCED": int(call.dims["forces"] > 1), "INCREMENT": int(call.scalars["increment"] != 0)}
        return dispatches(call, "columns", (*xs, *ts, "force", "tendency", "result"), forced)

    def cost(call: Call) -> Cost:
        moved = call.bytes("modes", "inverse", *xs, *ts, "force", "tendency", "result")
        return transform_cost(call) + Cost(0, moved, 0)

    add = "".join(f"\n    sums += stage_term(x{j}[i], t{j}[mode]);" for j in range(1, terms - 1))
    prelude = (
        f"#define last_table t{terms - 1}\nP stage_term(P z, T table);\n"
        f"P known_sum(uint i, uint mode) {{\n    P sums = stage_term(x0[i], t0[mode]);{add}\n    return sums;\n}}\n"
    )
    bindings = (
        *(Binding(x, "P") for x in xs),
        *(Binding(t) for t in ts),
        Binding("force", "P"),
        Binding("tendency", "P", "write"),
        WRITTEN,
    )
    text = " + ".join(f"t{j} x{j}" for j in range(terms - 1))
    return Kernel(
        summary=f"the tendency N of vorticity, and {text} + t{terms - 1} N: a stage of a time scheme",
        inputs=(
            *INPUTS,
            *(Operand(x, shape=MODES) for x in xs),
            *(Operand(t, shape=TABLE) for t in ts),
            Operand("force", shape=("forces", 2)),
        ),
        outputs=(Operand("tendency", shape=MODES), Operand("result", shape=MODES)),
        shaders={
            **PASSES,
            **shaders(
                "columns",
                "kernel.comp",
                "vorticity_stage.glsl",
                *bindings,
                push=("width",),
                prelude=prelude,
                spec=(Spec("FORCED", 0), Spec("INCREMENT", 0)),
            ),
        },
        plan=plan,
        reference=reference,
        cost=cost,
        cases=(
            case(2, 12, terms),
            case(2, 8, terms, forced=True),
            case(2, 12, terms, increment=1),
            case(1, 8, terms, forced=True, increment=1),
            case(0, 8, terms),
        ),
        bench=tuple(case(1, n, terms, increment=1) for n in (128, 1024, 2048)),
        scalars=(INCREMENT,),
        tunings=TUNINGS,
        prefer=fourier_layouts.prefer,
    )
