"""Numbers of 16 bits: their meaning in NumPy, and the kernels that convert them.

f16 is IEEE's half. Its subnormals are numbers like others: halves have no canonical threshold of their own. bf16 is the
upper half of an fp32; NumPy has no such type, so arrays of it are u16 words. Kernels compute in fp32: what they load is
widened exactly, what they store is rounded to the nearest, ties to even; -0 is never stored, and NaN is one NaN.
`_include/halves.glsl` is the twin, on the bits.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from dashi.kernels._work import ceil_div, groups_for
from dashi.kernels.abi import Binding, Call, Case, Dispatch, Fill, Kernel, Operand, Plan, Scalar, Shader
from dashi.kernels.portable import canon
from dashi.types import Cost, HostArray, Shape

LOCAL: Final = 256
QUAD: Final = 4
"""Numbers that an invocation converts: 16 bytes of fp32."""
F16_NAN: Final = 0x7E00
BF16_NAN: Final = 0x7FC0
SHAPES: Final[tuple[Shape, ...]] = (
    (0,), (1,), (2,), (3,), (4,), (7,), (63,), (64,), (257,), (1000,), (4099,), (5, 7), (3, 4, 12), (1 << 17,),
)  # fmt: skip
LARGE: Final = (1 << 28,)

Halves = npt.NDArray[np.float16]
Words = npt.NDArray[np.uint16]
Floats = npt.NDArray[np.float32]


def widen_f16(x: HostArray) -> Floats:
    """Halves as canonical fp32."""
    return canon(x.astype(np.float32))


def narrow_f16(x: HostArray) -> Halves:
    """fp32 as halves."""
    with np.errstate(all="ignore"):
        made = canon(x).astype(np.float16)
    bits = np.where(np.isnan(made), np.uint16(F16_NAN), made.view(np.uint16))
    return np.asarray(np.where(bits == 0x8000, np.uint16(0), bits)).view(np.float16)


def widen_bf16(x: HostArray) -> Floats:
    """bf16 words as canonical fp32."""
    return canon((x.astype(np.uint32) << np.uint32(16)).view(np.float32))


def narrow_bf16(x: HostArray) -> Words:
    """fp32 as bf16 words."""
    values = canon(x)
    bits = values.view(np.uint32).astype(np.uint64)
    rounded = (bits + 0x7FFF + (bits >> 16 & 1)) >> 16
    return np.where(np.isnan(values), np.uint64(BF16_NAN), rounded).astype(np.uint16)


def any_words(rng: np.random.Generator, shape: Shape) -> HostArray:
    """Every pattern of 16 bits alike."""
    return rng.integers(0, 1 << 16, shape, dtype=np.uint16)


def any_halves(rng: np.random.Generator, shape: Shape) -> HostArray:
    """Random float16 of any bits: numbers, NaNs, infinities, subnormals."""
    return any_words(rng, shape).view(np.float16)


def widening(*, summary: str, source: str, fill: Fill, reference: Callable[..., Any]) -> Kernel:
    """The kernel that makes fp32 of `source`; its shader defines float value_of(uint h)."""

    def plan(call: Call) -> Plan:
        n = call.size("result")
        shader = "quads" if n % QUAD == 0 else "main"
        return _each(call, ceil_div(n, QUAD), shader, {"size": n})

    return _conversion(summary, Operand("x", source), Operand("result", "f32"), plan, reference, fill)


def narrowing(*, summary: str, target: str, reference: Callable[..., Any]) -> Kernel:
    """The kernel that makes `target` of fp32; its shader defines uint bits_of(float v), of a canonical number."""

    def plan(call: Call) -> Plan:
        n = call.size("result")
        return _each(call, ceil_div(n, QUAD), "main", {"size": n})

    return _conversion(summary, Operand("x", "f32"), Operand("result", target), plan, reference, None)


def _each(call: Call, quads: int, shader: str, numbers: dict[str, int]) -> Plan:
    if quads == 0:
        return Plan(())
    groups, rounds = groups_for(quads, LOCAL, call.limits)
    push = {"n": quads, "stride": groups * LOCAL, **numbers}
    return Plan((Dispatch(shader, ("x", "result"), push, (groups, 1, 1), rounds * (1 + QUAD)),))


def _shader(x: str, result: str, include: str) -> Shader:
    return Shader(
        (Binding("x", x), Binding("result", result, "write")),
        (Scalar("n", "u32"), Scalar("stride", "u32"), Scalar("size", "u32")),
        local=(LOCAL, 1, 1),
        includes=("portable.glsl", "halves.glsl", include),
        extensions=("GL_EXT_control_flow_attributes",),
        prelude=f"#define RESULT_QUADS {int(result == 'u32x4')}\n",
    )


def _conversion(
    summary: str,
    x: Operand,
    result: Operand,
    plan: Callable[[Call], Plan],
    reference: Callable[..., Any],
    fill: Fill | None,
) -> Kernel:
    def cost(call: Call) -> Cost:
        n = call.size("result")
        return Cost(bytes=6 * n, dispatches=int(n > 0))

    if x.dtype == "f32":
        shaders = {"main": _shader("u32x4", "u32", "narrow.glsl")}
    else:
        shaders = {"main": _shader("u32", "f32", "widen.glsl"), "quads": _shader("u32", "u32x4", "widen.glsl")}
    fills = {"x": fill} if fill else {}
    return Kernel(
        summary=summary,
        inputs=(x,),
        outputs=(result,),
        shaders=shaders,
        plan=plan,
        reference=reference,
        cost=cost,
        cases=tuple(Case({"x": shape}, fill=fills) for shape in SHAPES),
        bench=(Case({"x": LARGE}, fill=fills),),
        dtypes=("f32",),
    )
