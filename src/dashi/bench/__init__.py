"""Measuring: kernels, transforms, flow steps, rollouts, identifiability; the peers beside them.

Each module times one thing on a device, checked first, and gives frozen rows; `peers` times the same work by other
libraries in the same process. The command line prints and saves what these return.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dashi._lazy import lazy_names

if TYPE_CHECKING:
    from dashi.bench import fft as fft
    from dashi.bench import flow as flow
    from dashi.bench import gemv as gemv
    from dashi.bench import host as host
    from dashi.bench import identify as identify
    from dashi.bench import kernels as kernels
    from dashi.bench import minilm as minilm
    from dashi.bench import peers as peers
    from dashi.bench import results as results
    from dashi.bench import rollout as rollout
    from dashi.bench import shards as shards
    from dashi.bench import workloads as workloads

_MODULES = (
    "fft", "flow", "gemv", "host", "identify", "kernels", "minilm", "peers", "results", "rollout", "shards",
    "workloads",
)  # fmt: skip

if not TYPE_CHECKING:  # to a type checker a name that is not imported above is a mistake
    __all__, __getattr__, __dir__ = lazy_names(__name__, {}, more=_MODULES)
