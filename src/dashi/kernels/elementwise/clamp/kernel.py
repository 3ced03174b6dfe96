"""clamp: result = x, but at least lo and at most hi. NaN stays NaN; lo <= hi is required."""

from dataclasses import replace

import numpy as np

from dashi.errors import InputError
from dashi.kernels.abi import Call, Number, Plan, Scalar
from dashi.kernels.patterns import WITH_HALVES, elementwise
from dashi.kernels.portable import canon
from dashi.types import HostArray


def require_range(lo: Number, hi: Number) -> None:
    """Refuses an empty range: what should lie in it has no meaning."""
    if not lo <= hi:
        raise InputError(f"kernel 'clamp': there is nothing between lo={lo} and hi={hi}.", "pass lo <= hi.")


def reference(x: HostArray, lo: float, hi: float) -> HostArray:
    require_range(lo, hi)
    v = canon(x)
    low, high = (canon(np.asarray(bound, dtype=x.dtype)) for bound in (lo, hi))
    return np.where(v < low, low, np.where(v > high, high, v))


_BASE = elementwise(
    summary="x limited to the range lo to hi; NaN stays NaN",
    scalars=(Scalar("lo", doc="lowest result"), Scalar("hi", doc="highest result")),
    flops=2,
    wide=True,
    dtypes=WITH_HALVES,
    examples=(
        {"lo": -1.0, "hi": 1.0}, {"lo": 0.0, "hi": 0.0}, {"lo": -np.inf, "hi": 0.5}, {"lo": -1.0e-32, "hi": np.inf},
    ),
    reference=reference,
)  # fmt: skip


def plan(call: Call) -> Plan:
    require_range(call.scalars["lo"], call.scalars["hi"])
    return _BASE.plan(call)


KERNEL = replace(_BASE, plan=plan)
