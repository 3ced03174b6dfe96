"""Conversions between element types: a formula that is its argument, with one type at each edge."""

from __future__ import annotations

from functools import cache

from dashi.errors import DTypeError
from dashi.kernels._fused_glsl import STORAGE, width
from dashi.kernels._fusion import fuse
from dashi.kernels._storage import COMPUTE
from dashi.kernels.abi import Kernel
from dashi.kernels.expressions import arguments
from dashi.types import DTYPES


def compute_type(source: str, target: str) -> str:
    """The type that a conversion goes through: floats, if either is one, else that of the narrower integer, since
    integers wrap round; but whether a number is 0 is asked of all its bits."""
    if DTYPES[source].is_float or DTYPES[target].is_float:
        return "f64" if "f64" in (source, target) else "f32"
    if target == "bool" or width(source) <= width(target) == 8 == width(source):
        return COMPUTE[source]
    if width(source) == 8:
        return COMPUTE[target]
    return COMPUTE[source]


@cache
def cast_kernel(source: str, target: str) -> Kernel:
    """The kernel that converts arrays of one element type to another."""
    for kind in (source, target):
        if kind not in STORAGE:
            raise DTypeError(f"dashi has no element type {kind!r}.", f"use one of {', '.join(STORAGE)}.")
    (x,) = arguments("x")
    kernel = fuse(
        x,
        types={"x": source, "result": target},
        compute=compute_type(source, target),
        name=f"cast_{source}_to_{target}",
    )
    return kernel
