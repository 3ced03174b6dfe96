"""to_f16: fp32 to IEEE halves, to the nearest, ties to even.

From 65520 on the result is infinite; below 2^-14 it is subnormal, at 2^-25 and below +0. -0 becomes +0, NaN 0x7e00.
"""

from dashi.kernels._float16 import narrow_f16, narrowing

KERNEL = narrowing(summary="fp32 as halves, rounded to the nearest, ties to even", target="f16", reference=narrow_f16)
