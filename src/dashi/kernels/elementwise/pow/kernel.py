"""pow: x to the power of y, within 1 ulp. x^0 and 1^y are 1; a negative x has powers of integers only, else NaN."""

from dataclasses import replace

from dashi.kernels import portable
from dashi.kernels.patterns import TUNINGS, elementwise
from dashi.types import HostArray


def reference(x: HostArray, y: HostArray) -> HostArray:
    return portable.pow(x, y)


KERNEL = replace(
    elementwise(
        summary="x to the power of y; NaN of a negative x and a y that is no integer",
        inputs=("x", "y"),
        flops={"f32": 104, "f64": 127},
        aliases=("power",),
        takes="stored",
        reference=reference,
    ),
    # A long function: four copies of it cost a compiler seconds.
    tunings={name: TUNINGS[name] for name in ("each2", "each1")},
    prefer=None,
)
