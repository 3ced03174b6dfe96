"""The benches' work by other libraries (torch, JAX, NumPy, SciPy), timed between CUDA events and from CUDA graphs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dashi._lazy import lazy_names

if TYPE_CHECKING:
    from dashi.bench.peers import cuda_timing as cuda_timing
    from dashi.bench.peers import fft as fft
    from dashi.bench.peers import flow as flow
    from dashi.bench.peers import gpu_library as gpu_library
    from dashi.bench.peers import kernels as kernels
    from dashi.bench.peers import minilm as minilm
    from dashi.bench.peers import rollout as rollout

if not TYPE_CHECKING:  # to a type checker a name that is not imported above is a mistake
    __all__, __getattr__, __dir__ = lazy_names(
        __name__, {}, more=("cuda_timing", "fft", "flow", "gpu_library", "kernels", "minilm", "rollout")
    )
