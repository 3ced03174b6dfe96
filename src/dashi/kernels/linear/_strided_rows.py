"""Products that do not fill a device, or have few rows, of operands with strides: `_include/strided_rows.glsl`.

Rows of a lie along k and rows of b along columns; what is between rows, and batch axes, may be anything.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

from dashi.kernels.abi import Binding, Call, Dispatch, Number, Scalar, Shader, Spec
from dashi.kernels.linear import _few_rows as few_rows
from dashi.kernels.linear import _small_tiles as small_tiles

STRIDES: Final = ("a_start", "a_batch", "a_row", "b_start", "b_batch", "b_depth")
SMALL_NUMBERS: Final = ("m", "n", "begin", "end", "across", "span", "per_batch", "fresh", "last", *STRIDES)
FEW_NUMBERS: Final = ("m", "n", "begin", "end", "down", "per_batch", "fresh", "last", *STRIDES)


@dataclass(frozen=True)
class Rest:
    """What all shaders of a product with strides share: buffers behind a and b, constants, scalars of a tail."""

    buffers: tuple[Binding, ...]
    spec: tuple[Spec, ...]
    scalars: tuple[Scalar, ...]


def shaders(rest: Rest) -> dict[str, Shader]:
    """Small tiles and few rows, for rows of whole vectors of 16 bytes and for any."""
    listed: dict[str, Shader] = {}
    for kind, plain, numbers in (
        ("small", small_tiles.shaders(), SMALL_NUMBERS),
        ("few", few_rows.shaders(), FEW_NUMBERS),
    ):
        for name, shader in plain.items():
            if "pairs" not in name:
                element = shader.buffers[0].dtype
                listed[f"strided_{name}"] = replace(
                    shader,
                    buffers=(Binding("a", element), Binding("b", element), *rest.buffers),
                    push=(*(Scalar(number, "u32") for number in numbers), *rest.scalars),
                    spec=(*shader.spec, *rest.spec),
                    file=f"strided_{kind}_{name.rsplit('_', 1)[1]}.comp",
                )
    return listed


def multiply(
    call: Call, batches: int, reach: tuple[int, int], flags: Mapping[str, Number], *, vectors: bool, few: bool
) -> Dispatch | None:
    """The dispatch of a product of call.dims in so many batches, without strides and operands; None where it does not
    fit. Lengths are multiples of a vector where `vectors` are read."""
    sums = {"fresh": flags["fresh"], "last": flags["last"]}
    if few:
        plain = few_rows.multiply(call, reach, "result", sums, vectors=vectors)
    else:
        # Tiles are as large as leave all batches together enough of them.
        spread = replace(call, dims={**call.dims, "m": call.dims["m"] * batches})
        lengths = (small_tiles.VECTOR_BYTES // call.dtype.size,) if vectors else (1,)
        shape = small_tiles.shape_for(spread, reach[1] - reach[0])
        plain = None
        if shape is not None:
            plain = small_tiles.multiply(call, reach, "result", sums, ordered=True, vectors=lengths, chosen=shape)
    if plain is None or plain.groups[0] * batches > call.limits.groups:
        return None
    push = {**{name: value for name, value in plain.push.items() if name != "k"}, **flags, "per_batch": plain.groups[0]}
    return replace(plain, shader=f"strided_{plain.shader}", push=push, groups=(plain.groups[0] * batches, 1, 1))
