"""sin: the sine of x in radians, within 1 ulp. Every finite x is reduced exactly; infinities give NaN."""

from dataclasses import replace

from dashi.kernels import portable
from dashi.kernels.patterns import TUNINGS, elementwise
from dashi.types import HostArray


def reference(x: HostArray) -> HostArray:
    return portable.sin(x)


KERNEL = replace(
    elementwise(
        summary="sine of x in radians; NaN of infinities",
        flops={"f32": 39, "f64": 48},  # float operations of the longer path, |x| >= pi/4
        takes="stored",
        reference=reference,
    ),
    # The reduction is long: four copies of it cost a compiler seconds.
    tunings={name: TUNINGS[name] for name in ("each2", "each1")},
    prefer=None,
)
