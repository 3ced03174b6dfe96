"""Kernels that make an image pixel by pixel, and the levels that stand for values in them.

An image is an array of u32 words, one per pixel, R in the lowest byte, then G, B and A. It is an ordinary buffer:
nothing here is displayed or sampled, so a VkImage would gain nothing and cost portability.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from dashi.errors import InputError
from dashi.kernels._work import groups_for
from dashi.kernels.abi import Binding, Call, Dispatch, Number, Plan, Scalar, Shader, Spec
from dashi.kernels.portable._bits import Floats, canon, mul
from dashi.types import DType

Pixels = npt.NDArray[np.uint32]

NAN_PIXEL: Final = 0xFFFF00FF
"""What a NaN looks like in every image: magenta."""
OPAQUE: Final = 0xFF000000
LOCAL: Final = 256
LEVELS: Final = 256
TUNINGS: Final = {"batch1": {"batch": 1}}
"""Quads of pixels per invocation, where the pixels come in quads. More are faster only where a pixel is much work."""
RANGE: Final = (Scalar("lo", doc="value of the lowest level"), Scalar("hi", doc="value of the highest level"))
_SPAN: Final = 2.0**100


def scale(kernel: str, kind: np.dtype[Any], lo: Number, hi: Number) -> float:
    """Levels per unit, 255 / (hi - lo), rounded to the type; on the host, so that all devices get one number."""
    span = float(hi) - float(lo)
    if not (math.isfinite(lo) and math.isfinite(hi) and 1 / _SPAN <= span <= _SPAN):
        raise InputError(
            f"kernel {kernel!r}: the values from lo={lo} to hi={hi} have no {LEVELS} levels.",
            "pass finite numbers, lo below hi, 2^-100 to 2^100 apart.",
        )
    return float(np.asarray((LEVELS - 1) / span, dtype=kind))


def level_push(kernel: str, dtype: DType, scalars: Mapping[str, Number]) -> dict[str, Number]:
    """The push constants of `_include/levels.glsl`, canonical."""
    lo, hi = scalars["lo"], scalars["hi"]
    return {"lo": float(canon(np.asarray(lo, dtype.numpy))), "scale": scale(kernel, dtype.numpy, lo, hi)}


def levels(kernel: str, values: Floats, lo: float, hi: float) -> npt.NDArray[np.uint32]:
    """The level of each value, rounded to the nearest, halves up; NaN has level 0 here."""
    kind = values.dtype
    factor = np.asarray(scale(kernel, kind, lo, hi), kind)
    with np.errstate(all="ignore"):
        t = mul(canon(values) - canon(np.asarray(lo, kind)), factor) + kind.type(0.5)
    return np.clip(np.where(np.isnan(t), 0, t), 0, LEVELS - 1).astype(np.uint32)


def shaders(
    inputs: Sequence[Binding], quads: Sequence[Binding], push: Sequence[Scalar], *includes: str
) -> dict[str, Shader]:
    """Shader "main" for any number of pixels, and "quads" for multiples of four, with inputs of its own."""
    numbers = (Scalar("n", "u32"), Scalar("stride", "u32"), *push)
    single = Shader(
        (*inputs, Binding("result", "u32", "write")), numbers, local=(LOCAL, 1, 1), includes=(*includes, "pixels.glsl")
    )
    four = Shader(
        (*quads, Binding("result", "u32x4", "write")), numbers, (Spec("BATCH", 1),), (LOCAL, 1, 1), "quads.comp",
        (*includes, "quads.glsl"), extensions=("GL_EXT_control_flow_attributes",),
    )  # fmt: skip
    return {"main": single, "quads": four}


def per_pixel(
    call: Call, buffers: tuple[str, ...], push: Mapping[str, Number] | None = None, quads: bool = True
) -> Plan:
    """One dispatch over all pixels of `result`, by quads where they come out even (and `quads` allows it)."""
    n = call.size("result")
    if n == 0:
        return Plan(())
    if n % 4 or not quads:
        groups, trips = groups_for(n, LOCAL, call.limits)
        numbers: dict[str, Number] = {"n": n, "stride": groups * LOCAL, **(push or {})}
        return Plan((Dispatch("main", buffers, numbers, (groups, 1, 1), trips),))
    batch = call.tuning["batch"]
    groups, rounds = groups_for(n // 4, LOCAL * batch, call.limits)
    numbers = {"n": n // 4, "stride": groups * LOCAL * batch, **(push or {})}
    return Plan((Dispatch("quads", buffers, numbers, (groups, 1, 1), rounds * (1 + 2 * batch), {"BATCH": batch}),))
