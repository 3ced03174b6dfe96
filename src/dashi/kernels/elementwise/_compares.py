"""Kernels that give truth values: compares, and logic over values of which all but 0 count as true. They are formulas,
so that no binaries lie in their folders: the template of fused kernels is filled when they are first used."""

from __future__ import annotations

from dataclasses import replace

from dashi.kernels import fuse
from dashi.kernels.abi import Kernel
from dashi.kernels.expressions import apply, arguments
from dashi.kernels.patterns import LOCAL, cases
from dashi.types import Shape

_SHAPES: tuple[Shape, ...] = ((65,), (5, 7), (4099,))


def truths(function: str, *, summary: str, inputs: str = "x y", aliases: tuple[str, ...] = ()) -> Kernel:
    """The kernel of a function of `dashi.kernels.expressions` whose results are stored as bool."""
    kernel = fuse(apply(function, *arguments(inputs)), types={"result": "bool"}, name=function)
    return replace(
        kernel,
        summary=summary,
        aliases=aliases,
        cases=cases(inputs.split(), shapes=_SHAPES),
        tunings={"each4": {"local": LOCAL}},
        prefer=None,
    )
