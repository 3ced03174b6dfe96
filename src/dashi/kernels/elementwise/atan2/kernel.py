"""atan2: the angle of the point (x, y) in radians, within 1 ulp; of (0, 0) it is 0, and pi for y = 0 and x < 0."""

from dataclasses import replace

from dashi.kernels import portable
from dashi.kernels.patterns import TUNINGS, elementwise
from dashi.types import HostArray


def reference(y: HostArray, x: HostArray) -> HostArray:
    return portable.atan2(y, x)


KERNEL = replace(
    elementwise(
        summary="angle of the point (x, y) in radians, in (-pi, pi]",
        inputs=("y", "x"),
        flops={"f32": 58, "f64": 76},
        aliases=("arctan2",),
        takes="stored",
        reference=reference,
    ),
    # A long function: four copies of it cost a compiler seconds.
    tunings={name: TUNINGS[name] for name in ("each2", "each1")},
    prefer=None,
)
