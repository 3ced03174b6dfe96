"""from_bf16: bf16 words (u16) to fp32, exactly; magnitudes below 2^-102 become +0, every NaN the canonical one."""

from dashi.kernels._float16 import any_words, widen_bf16, widening

KERNEL = widening(summary="bf16 words (u16) as fp32, exactly", source="u16", fill=any_words, reference=widen_bf16)
