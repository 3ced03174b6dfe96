"""to_bf16: fp32 to bf16, as u16 words: the upper half, rounded to the nearest, ties to even.

Magnitudes below 2^-102 are +0, as everywhere; NaN is 0x7fc0; what rounds past the largest number is infinite.
"""

from dashi.kernels._float16 import narrow_bf16, narrowing

KERNEL = narrowing(
    summary="fp32 as bf16 words (u16), rounded to the nearest, ties to even", target="u16", reference=narrow_bf16
)
