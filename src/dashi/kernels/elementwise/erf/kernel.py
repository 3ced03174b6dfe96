"""erf: the error function of x, within 1 ulp."""

from dataclasses import replace

from dashi.kernels import portable
from dashi.kernels.patterns import TUNINGS, elementwise
from dashi.types import HostArray


def reference(x: HostArray) -> HostArray:
    return portable.erf(x)


KERNEL = replace(
    elementwise(
        summary="error function of x",
        flops={"f32": 20, "f64": 31},  # float operations of the longer path, |x| >= 1/2
        takes="stored",
        reference=reference,
    ),
    # A long function: four copies of it cost a compiler seconds.
    tunings={name: TUNINGS[name] for name in ("each2", "each1")},
    prefer=None,
)
