"""Fourier transforms with NumPy's names and conventions, and the same bits on every device.

    modes = dashi.fft.rfft2(field)                      # NumPy in, NumPy out
    modes = dashi.fft.rfft2(field, device=d)            # computed on the device d
    plan = dashi.fft.plan(d, (1024, 1024), "rfft2")     # for arrays that stay there: plan.steps(source, target)

Lengths are 2^a 3^b 5^c 7^d, up to 4096. docs/fft.md says what is computed, exactly.
"""

from __future__ import annotations

from dashi.fft.plans import Kind, Norm, Plan, plan
from dashi.fft.transforms import fft, fft2, fftfreq, ifft, ifft2, irfft, irfft2, rfft, rfft2, rfftfreq

__all__ = [
    "Kind",
    "Norm",
    "Plan",
    "fft",
    "fft2",
    "fftfreq",
    "ifft",
    "ifft2",
    "irfft",
    "irfft2",
    "plan",
    "rfft",
    "rfft2",
    "rfftfreq",
]
