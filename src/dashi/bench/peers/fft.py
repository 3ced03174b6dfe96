"""Fourier transforms by torch (cuFFT, in a CUDA graph), for comparison only."""

from __future__ import annotations

import statistics
from typing import Any, Final

from dashi.bench.fft import REPEATS, ROUNDS, TransformCase
from dashi.bench.peers.cuda_timing import replays_us
from dashi.bench.peers.gpu_library import load_library

NAMES: Final = ("torch",)


class TorchFft:
    """`torch.fft`, captured in a CUDA graph."""

    name = "torch"

    def __init__(self, torch: Any) -> None:
        self._torch = torch
        self.version = f"torch {torch.__version__}, CUDA graph"

    def us(self, case: TransformCase) -> float:
        """The median over rounds of one transform."""
        torch = self._torch
        real = getattr(torch, case.dtype)
        field = torch.randn(case.shape, device="cuda", dtype=real)
        if case.kind in ("fft2", "ifft2"):
            field = torch.complex(field, torch.randn_like(field))
        elif case.kind == "irfft2":
            field = torch.fft.rfft2(field)
        transform = getattr(torch.fft, case.kind)

        def many() -> None:
            for _ in range(REPEATS):
                transform(field)

        return statistics.median(us / REPEATS for us in replays_us(torch, many, ROUNDS))


def load(name: str) -> TorchFft:
    """The peer of that name, on a GPU: on a processor its numbers would compare nothing."""
    return TorchFft(load_library(name, NAMES))
