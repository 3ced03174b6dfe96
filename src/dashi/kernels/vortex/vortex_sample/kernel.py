"""vortex_sample: values of fields where particles are that left the points of a mesh, interpolated by M4' or M6'.

`dashi.kernels.vortex._mesh` has the weights.
"""

import numpy as np

from dashi.kernels.portable import canon, mul
from dashi.kernels.vortex import _mesh as mesh
from dashi.kernels.vortex._mesh import Floats


def reference(fields: Floats, velocity: Floats, first: int, reach: float, order: int) -> Floats:
    mesh.require_channels("vortex_sample", velocity.shape[1], first, order)
    dx, dy = mesh.displacement(velocity, first, reach)
    values, total = canon(fields), np.zeros(fields.shape, fields.dtype)
    for a, b in mesh.neighbours(order):
        weight = mul(
            mesh.weight(np.asarray(b, fields.dtype) - dx, order), mesh.weight(np.asarray(a, fields.dtype) - dy, order)
        )
        total = total + mul(weight[:, None], mesh.shifted(values, a, b))
    return np.where(mesh.too_far(dx, dy)[:, None], canon(np.asarray(np.nan, fields.dtype)), canon(total))


KERNEL = mesh.mesh_kernel(
    "vortex_sample", "values of fields where particles are that left the points of a mesh, by M4' or M6'", reference,
    ("m", "c", "n", "n"), 81 * 12,
)  # fmt: skip
