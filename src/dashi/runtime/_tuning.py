"""Which tuning of a kernel a device uses: the one asked for, or the environment's, or the one that `dashi kernels
tune` found fastest here, or the kernel's own rule. Tunings change speed, never the bits of portable kernels."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any, Final, cast

from dashi._cache import cache_folder, read_cache, write_cache
from dashi.errors import AbiError, InputError
from dashi.kernels.abi import Kernel, Limits
from dashi.runtime.info import DeviceInfo

ENVIRONMENT: Final = "DASHI_TUNINGS"
"""Overrides, by kernel: "gemm_tiled=wide,prefix_scan=small"."""


def choose(kernel: Kernel, variant: str, limits: Limits, remembered: str | None, asked: str | None) -> str | None:
    """The name of the tuning to use; None for a kernel that has none."""
    if asked is not None:
        return _known(kernel, asked)
    overrides = from_environment()
    for name in (kernel.name, *kernel.aliases):
        if name in overrides:
            return _known(kernel, overrides[name])
    # What was measured with an older version of the kernel may be gone.
    if remembered in kernel.tunings:
        return remembered
    if kernel.prefer is not None and kernel.tunings:
        preferred = kernel.prefer(limits, variant)
        if preferred not in kernel.tunings:
            raise AbiError(
                f"kernel {kernel.name!r} prefers the tuning {preferred!r}, which it does not have.",
                f"let `prefer` return one of {', '.join(kernel.tunings)}.",
            )
        return preferred
    return next(iter(kernel.tunings), None)


def _known(kernel: Kernel, name: str) -> str:
    if name not in kernel.tunings:
        offer = f"use one of {', '.join(kernel.tunings)}." if kernel.tunings else "leave it away: it has none."
        raise InputError(f"kernel {kernel.name!r} has no tuning {name!r}.", offer)
    return name


def from_environment() -> dict[str, str]:
    """The overrides in the environment variable DASHI_TUNINGS."""
    named: dict[str, str] = {}
    text = os.environ.get(ENVIRONMENT, "")
    for entry in filter(None, (part.strip() for part in text.split(","))):
        kernel, equals, name = (part.strip() for part in entry.partition("="))
        if not (kernel and equals and name):
            raise InputError(
                f"{ENVIRONMENT} holds {entry!r}, which is not KERNEL=TUNING.",
                f'set it like {ENVIRONMENT}="gemm_tiled=NAME,prefix_scan=NAME", or unset it.',
            )
        named[kernel] = name
    return named


def _file(identity: str) -> Path:
    return cache_folder() / "tunings" / f"{identity}.bin"


def _key(kernel: Kernel, variant: str) -> str:
    return f"{kernel.name}.{variant}"


class Memory:
    """The tunings found fastest on one device and driver, by kernel and variant: JSON in the cache folder.

    A device without a UUID of its own remembers nothing.
    """

    def __init__(self, info: DeviceInfo) -> None:
        self._identity = f"{info.vendor_id:x}-{info.device_id:x}-{info.uuid}" if info.uuid else ""
        self._known = self._load()

    def _load(self) -> dict[str, str]:
        try:
            document: Any = json.loads(read_cache(_file(self._identity)) or b"{}") if self._identity else {}
        except (ValueError, RecursionError):
            document = {}
        entries = cast("dict[Any, Any]", document) if isinstance(document, dict) else {}
        return {k: v for k, v in entries.items() if isinstance(k, str) and isinstance(v, str)}

    @property
    def known(self) -> dict[str, str]:
        """The tunings, by kernel and variant."""
        return dict(self._known)

    def get(self, kernel: Kernel, variant: str) -> str | None:
        return self._known.get(_key(kernel, variant))

    def get_call(self, kernel: Kernel, call: str) -> str | None:
        """The tuning for a call of a kernel, named by types and shapes; None where none was measured, or is named in
        the environment."""
        name = self._known.get(_key(kernel, call))
        return name if name in kernel.tunings and kernel.name not in from_environment() else None

    def put(self, kernel: Kernel, variant: str, name: str) -> None:
        """Remembers a tuning for a variant, or for calls of these types and shapes, here and on disk; what others wrote
        meanwhile stays."""
        self._known = {**self._load(), _key(kernel, variant): _known(kernel, name)}
        if self._identity:
            body = json.dumps(self._known, indent=1, sort_keys=True).encode()
            write_cache(_file(self._identity), body)
