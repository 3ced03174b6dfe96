"""atan: the arc tangent of x in radians, within 1 ulp."""

from dataclasses import replace

from dashi.kernels import portable
from dashi.kernels.patterns import TUNINGS, elementwise
from dashi.types import HostArray


def reference(x: HostArray) -> HostArray:
    return portable.atan(x)


KERNEL = replace(
    elementwise(
        summary="arc tangent of x in radians",
        flops={"f32": 58, "f64": 76},
        aliases=("arctan",),
        takes="stored",
        reference=reference,
    ),
    # A long function: four copies of it cost a compiler seconds.
    tunings={name: TUNINGS[name] for name in ("each2", "each1")},
    prefer=None,
)
