"""The error function within 1 ulp: polynomials, below 1/2 in x^2, above on intervals of length 1/2."""

from __future__ import annotations

import numpy as np

from dashi.kernels.portable._bits import Floats, Format
from dashi.kernels.portable._function_tables import function_table_of
from dashi.kernels.portable._roots import elementwise, polynomial
from dashi.kernels.portable._tables import Table


def _erf_large(size: Floats, form: Format) -> Floats:
    """erf from 1/2 to the end of the table: the value at the middle of an interval, and a polynomial."""
    row = (size * form.float(2)).astype(np.int64) - 1
    s = size - (form.float(0.75) + form.float(0.5) * row.astype(form.float))
    middle, *coefficients = np.array(function_table_of(form).erf_rows, form.float)[row].T
    total = coefficients[-1]
    for coefficient in reversed(coefficients[:-1]):
        total = total * s + coefficient
    return middle + total


@elementwise
def erf(x: Floats, form: Format, table: Table) -> Floats:
    """The error function: x + x p(x^2) below 1/2, polynomials on intervals from there, then exactly 1."""
    more, zero, half, unity = function_table_of(form), form.float(0), form.float(0.5), form.float(1)
    size, end = np.abs(x), form.float(0.5 + len(more.erf_rows) / 2)
    near = np.where(size < half, size, zero)
    moved = np.where(near < form.float(table.linear), zero, near)
    small = near + near * polynomial(moved * moved, more.erf, form)
    large = _erf_large(np.where((size >= half) & (size < end), size, half), form)
    result = np.where(size < half, small, np.where(size < end, large, unity))
    return np.where(np.isnan(x), x, np.where(x < zero, -result, result))
