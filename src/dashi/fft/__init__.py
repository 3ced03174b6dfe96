"""Fourier transforms with NumPy's names and conventions, and the same bits on every device.

    modes = dashi.fft.rfft2(field)                      # NumPy in, NumPy out
    modes = dashi.fft.rfft2(field, device=d)            # computed on the device d
    plan = dashi.fft.plan(d, (1024, 1024), "rfft2")     # for arrays that stay there: plan.steps(source, target)

Lines of any length up to 32,768, along one axis, two or three. docs/fft.md says what is computed, exactly.
"""

from __future__ import annotations

from dashi.fft.plans import Kind, Norm, Plan, plan
from dashi.fft.transforms import (
    fft,
    fft2,
    fftfreq,
    fftn,
    ifft,
    ifft2,
    ifftn,
    irfft,
    irfft2,
    irfftn,
    rfft,
    rfft2,
    rfftfreq,
    rfftn,
)  # fmt: skip

__all__ = [
    "Kind",
    "Norm",
    "Plan",
    "fft",
    "fft2",
    "fftfreq",
    "fftn",
    "ifft",
    "ifft2",
    "ifftn",
    "irfft",
    "irfft2",
    "irfftn",
    "plan",
    "rfft",
    "rfft2",
    "rfftfreq",
    "rfftn",
]
