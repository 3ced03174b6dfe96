"""The linear map of v4, z' = z A with z a row: learned over consecutive rows of one trajectory, then rolled.

Both exist twice: in NumPy float64, which is the reference, and by dashi's own learner and rollout on a device.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from dashi.core.learning.ridge import ridge as fit
from dashi.core.operators.affine import Linear
from dashi.core.rollouts.rollout import rollout
from dashi.core.rollouts.run import Run
from dashi.errors import InputError, ShapeError
from dashi.flow._finite import require_finite_frames
from dashi.flow.grid import Floats
from dashi.runtime.device import Device

RIDGE: Final = 1e-3


def learn(z: Floats, ridge: float = RIDGE, *, device: Device | None = None) -> Floats:
    """A = (X^T X + ridge I)^-1 X^T Y over consecutive rows of z (T, D), uncentred. On a device by the kernels of
    `core.ridge`, in fp64."""
    if z.ndim != 2 or len(z) < 2:
        raise ShapeError(f"a trajectory has shape {z.shape}.", "pass at least two rows of z, (T, D).")
    if not ridge > 0:
        raise InputError(f"the ridge is {ridge}.", "pass a number above 0: X has fewer rows than columns.")
    before, after = z[:-1], z[1:]
    if device is not None:
        return np.asarray(fit(before, after, ridge, device=device), np.float64)
    return np.linalg.solve(before.T @ before + ridge * np.eye(z.shape[1]), before.T @ after)


def roll(z0: Floats, A: Floats, steps: int) -> Floats:  # noqa: N803 - A in the equation
    """z0 and the rows after it, (steps + 1, D)."""
    states = np.empty((steps + 1, z0.size))
    states[0] = z0
    with np.errstate(all="ignore"):  # what is not finite is told below
        for t in range(steps):
            states[t + 1] = states[t] @ A
    return require_finite_frames(states[None], "the linear map")[0]


def roll_on(
    device: Device, z0: Floats, A: Floats, steps: int, *, hash_every: int = 0  # noqa: N803 - as above
) -> tuple[Floats, Run]:  # fmt: skip
    """Rows z A^k by CORE's rollout, with A on the device from the first step to the last; every row is read back,
    because v4 decodes any of them."""
    rows: list[Any] = [z0]
    done = rollout(
        Linear(A), z0, steps, device=device, hash_every=hash_every, keep_every=1, keep=lambda r: rows.append(r.state[0])
    )
    return np.array(rows), done
