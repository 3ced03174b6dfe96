"""from_f16: IEEE halves to fp32, exactly, subnormals too; -0 becomes +0, every NaN the canonical one."""

from dashi.kernels._float16 import any_halves, widen_f16, widening

KERNEL = widening(summary="halves as fp32, exactly", source="f16", fill=any_halves, reference=widen_f16)
