"""trunc, floor, ceil and round of canonical values. They are exact, so that NumPy's own have the bits of the shaders,
which work on the bits; -0 becomes +0, NaN and infinities stay."""

from __future__ import annotations

import numpy as np

from dashi.kernels.portable._bits import Floats, Format
from dashi.kernels.portable._roots import elementwise
from dashi.kernels.portable._tables import Table


@elementwise
def trunc(x: Floats, form: Format, table: Table) -> Floats:
    """The integer next to x towards 0."""
    return np.trunc(x)


@elementwise
def floor(x: Floats, form: Format, table: Table) -> Floats:
    """The largest integer not above x."""
    return np.floor(x)


@elementwise
def ceil(x: Floats, form: Format, table: Table) -> Floats:
    """The smallest integer not below x."""
    return np.ceil(x)


@elementwise
def round(x: Floats, form: Format, table: Table) -> Floats:
    """The integer nearest to x, halves to the even one."""
    return np.rint(x)
