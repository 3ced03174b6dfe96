"""vortex_remesh: particles of strength fields[:, 0] go from the points of a mesh, and are spread to the points again.

The sum of all values stays, and so do moments up to the second (M4') or fourth (M6'): `dashi.kernels.vortex._mesh`.
"""

import numpy as np

from dashi.kernels.portable import canon, mul
from dashi.kernels.vortex import _mesh as mesh
from dashi.kernels.vortex._mesh import Floats


def reference(fields: Floats, velocity: Floats, first: int, reach: float, order: int) -> Floats:
    mesh.require_channels("vortex_remesh", velocity.shape[1], first, order)
    dx, dy = mesh.displacement(velocity, first, reach)
    strength, lost = canon(fields[:, 0]), mesh.too_far(dx, dy)
    total = np.zeros(dx.shape, fields.dtype)
    for a, b in mesh.neighbours(order):
        ways = (mesh.shifted(dx, a, b), mesh.shifted(dy, a, b))
        lost = lost | mesh.too_far(*ways)
        weight = mul(
            mesh.weight(np.asarray(b, fields.dtype) + ways[0], order),
            mesh.weight(np.asarray(a, fields.dtype) + ways[1], order),
        )
        total = total + mul(weight, mesh.shifted(strength, a, b))
    return np.where(lost, canon(np.asarray(np.nan, fields.dtype)), canon(total))


KERNEL = mesh.mesh_kernel(
    "vortex_remesh", "particles that left the points of a mesh, spread to its points again by M4' or M6'", reference,
    ("m", "n", "n"), 81 * 30,
)  # fmt: skip
