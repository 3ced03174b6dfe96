"""What kernels are made of: the digests of their SPIR-V, as certificates and metrics record them."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable

from dashi.errors import StaleBinaryError
from dashi.kernels._build import digest_of
from dashi.kernels.abi import Call, Kernel

Used = tuple[Kernel, Call]
"""A kernel that was recorded, and one of its calls."""


def fingerprints(used: Iterable[Used]) -> dict[str, str]:
    """SHA-256 of the SPIR-V that the calls dispatch (on NumPy: would dispatch), by "kernel/shader.dtype"; of kernels
    from text that nothing was compared with, by "kernel/shader.dtype (unproved)"."""
    digests: dict[str, str] = {}
    for kernel, call in used:
        for dispatch in kernel.plan(call).dispatches:
            unproved = " (unproved)" if kernel.evidence == "none" else ""
            key = f"{kernel.name}/{dispatch.shader}.{call.dtype.name}{unproved}"
            # NumPy computes without binaries, so they may be stale there; Vulkan would have refused to run them.
            with contextlib.suppress(StaleBinaryError):
                digests[key] = digests.get(key) or digest_of(kernel, dispatch.shader, call.dtype.name)
    return dict(sorted(digests.items()))
