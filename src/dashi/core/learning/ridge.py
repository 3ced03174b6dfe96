"""The closed-form ridge fit on the device: A with the least |Z' - Z A|^2 + lam |A|^2, over pairs of rows.

The normal equations (Z^T Z + lam I) A = Z^T Z' are formed and solved in fp64 by portable kernels: every device gives
the same bits. A is then refined: what the data themselves leave over, Z^T (Z' - Z A) - lam A, is solved for again and
added, so that the rounding of Z^T Z does not stay in A (N. J. Higham, Accuracy and Stability of Numerical Algorithms,
2nd ed., 2002, sections 12 and 20.5, doi 10.1137/1.9780898718027).

Accuracy: Cholesky does not care how the columns of Z are scaled, so columns of very different sizes cost no digits.
With k the condition number of Z^T Z + lam I scaled to a diagonal of 1, and r the size of what the fit leaves over
beside that of the scaled Z times A, the relative error of A is about 2^-53 (sqrt(k) + k r); the tests hold 64 times
that. A solution of the normal equations by np.linalg.solve has one of about 2^-53 k.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from dashi.errors import DTypeError, InputError, NoResultError, ShapeError
from dashi.runtime.array import Array
from dashi.runtime.device import Device, Step
from dashi.runtime.using import using_device
from dashi.types import HostArray

LARGEST: Final = 4096
"""Features that a fit may have: the normal equations are solved in one piece."""
NARROW: Final = 16
REFINEMENTS: Final = 10
ENOUGH: Final = 2.0**-43
STALLED: Final = 0.25
"""Refining ends after so many corrections, or when one is that small beside A, or that large beside the one before."""
ROUNDING: Final = 8 * 2.0**-52
"""What is left of a diagonal element after sums of its own size were taken away is at least so uncertain."""
SETTLED: Final = 1e-3
"""A last correction above this says that the digits of A are rounding."""


@dataclass(frozen=True)
class RidgeFit:
    """A ridge fit. `margin` is the smallest part of a diagonal element that factoring left; `correction` the size of
    the last refinement relative to A."""

    A: HostArray
    lam: float
    margin: float
    correction: float


def ridge(features: HostArray, targets: HostArray, lam: float, *, device: Device | str) -> HostArray:
    """A of shape (D, M), float64, for features Z of shape (N, D) and targets Z' of shape (N, M)."""
    return fit_ridge(features, targets, lam, device=device).A


def fit_pairs(trajectory: HostArray, lam: float, *, device: Device | str) -> HostArray:
    """A with z' = z A over the consecutive rows of a trajectory (T, D), uncentred; of several, (S, T, D), within each.

    The operator of that A advances a row by one step.
    """
    values = _floats("trajectory", trajectory, (2, 3))
    runs = values.reshape(-1, *values.shape[-2:])
    if runs.shape[1] < 2:
        raise ShapeError(f"a trajectory of shape {values.shape} has no consecutive rows.", "pass at least two rows.")
    before, after = (part.reshape(-1, values.shape[-1]) for part in (runs[:, :-1], runs[:, 1:]))
    return ridge(before, after, lam, device=device)


def fit_ridge(features: HostArray, targets: HostArray, lam: float, *, device: Device | str) -> RidgeFit:
    """A ridge fit with its `margin` and `correction`, which tell how well it went. Raises InputError where the features
    do not determine A to rounding: lam = 0 with dependent columns, for instance."""
    if not isinstance(device, Device):
        with using_device(device) as opened:
            return fit_ridge(features, targets, lam, device=opened)
    z, y = _floats("features", features, (2,)), _floats("targets", targets, (2,))
    _require_fit(z, y, lam)
    if device.info.type == "null":
        raise NoResultError("the null device computes nothing.", "fit on another: cpu, or vulkan:0.")
    system = _System(device, device.array(z), device.array(y), float(lam))
    system.solve()
    return RidgeFit(system.refine(), float(lam), system.least_margin, system.correction)


class _System:
    """The normal equations of one fit on a device."""

    def __init__(self, device: Device, z: Array, y: Array, lam: float) -> None:
        self.device, self.z, self.y, self.lam = device, z, y, lam
        self.least_margin, self.correction = math.nan, math.inf
        self._steps: list[Step] = []
        self.rows = self._do("transpose", z)
        gram = self._do("gemm_tiled", self.rows, z)
        self.factor, self.margin = self._bind("cholesky", gram, shift=lam)
        # Both products have the same bits; the one by tiles would mostly compute what few columns do not have.
        self.product = "gemm_tiled" if y.shape[1] >= NARROW else "gemm_scalar"
        self.a = self._twice(self._do(self.product, self.rows, y))

    def _bind(self, kernel: str, *inputs: Array, **options: Any) -> tuple[Array, ...]:
        step = self.device.bind(kernel, *inputs, **options)
        self._steps.append(step)
        return step.outputs

    def _do(self, kernel: str, *inputs: Array, **options: Any) -> Array:
        return self._bind(kernel, *inputs, **options)[0]

    def _twice(self, right: Array) -> Array:
        half = self._do("triangular_solve", self.factor, right, transposed=0)
        return self._do("triangular_solve", self.factor, half, transposed=1)

    def solve(self) -> None:
        """Factors and solves, once."""
        with self.device.program(self._steps, label="ridge") as program:
            program.run()
        margin: Any = self.margin.numpy()
        weak = np.flatnonzero(~(margin > ROUNDING))
        if weak.size:
            raise _undetermined(int(weak[0]), float(margin[weak[0]]), self.lam)
        self.least_margin = float(margin.min())

    def refine(self) -> HostArray:
        """Corrects A by one recorded program until that gains nothing more; two numbers come back each time."""
        self._steps = []
        missed = self._do("sub", self.y, self._do(self.product, self.z, self.a))
        change = self._twice(self._do("axpy", self.a, self._do(self.product, self.rows, missed), a=-self.lam))
        self._do("add", self.a, change, out=self.a)
        sizes = (self._do("reduce_l2", change), self._do("reduce_l2", self.a))
        with self.device.program(self._steps, label="ridge refinement") as program:
            for _ in range(REFINEMENTS):
                program.run()
                moved, size = (float(array.numpy()[0]) for array in sizes)
                before, self.correction = self.correction, moved / size if size else 0.0
                if self.correction <= ENOUGH or not self.correction < STALLED * before:
                    break
        if not self.correction <= SETTLED:
            least = int(np.argmin(self.margin.numpy()))
            raise _undetermined(least, self.least_margin, self.lam)
        return self.a.numpy()


def _undetermined(feature: int, margin: float, lam: float) -> InputError:
    if math.isnan(margin):
        return InputError(
            f"the squares of the features overflow, or feature {feature} is zero and lam is {lam:g}.",
            "scale the features to below 1e150, and pass lam > 0.",
        )
    return InputError(
        f"the features do not determine a fit with lam = {lam:g}: feature {feature} is, to rounding, a combination "
        f"of those before it (a part of {margin:.1e} of its square is left).",
        "pass a larger lam (1e-3 is usual for features of size 1), or leave that feature out.",
    )


def _floats(name: str, values: HostArray, dimensions: tuple[int, ...]) -> HostArray:
    """The values as float64, which holds float32 exactly."""
    array = np.asarray(values)
    if array.dtype.kind not in "fiu" or array.dtype.itemsize > 8:
        raise DTypeError(f"{name} of type {array.dtype} cannot be fitted.", "pass float32 or float64.")
    if array.ndim not in dimensions or 0 in array.shape:
        wanted = " or ".join(str(d) for d in dimensions)
        raise ShapeError(f"{name} has shape {array.shape}.", f"pass {wanted} dimensions, none of length 0.")
    rows = array.astype(np.float64)
    if not np.isfinite(rows).all():
        place = tuple(int(i) for i in np.argwhere(~np.isfinite(rows))[0])
        raise InputError(f"{name} is not finite at {place}.", "leave out the rows with NaN or infinity.")
    return rows


def _require_fit(z: HostArray, y: HostArray, lam: float) -> None:
    if len(z) != len(y):
        raise ShapeError(f"features have {len(z)} rows, targets {len(y)}.", "pass a row of targets for each.")
    if z.shape[1] > LARGEST:
        raise ShapeError(f"{z.shape[1]} features are more than {LARGEST}.", f"use up to {LARGEST} features.")
    if not (math.isfinite(lam) and lam >= 0):
        raise InputError(f"lam is {lam}.", "pass a finite number, 0 or more.")
