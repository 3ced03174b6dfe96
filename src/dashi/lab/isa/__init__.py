"""Machine code that vendors' compilers make of kernels: compiled without their hardware, read, and counted."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dashi._lazy import lazy_names

if TYPE_CHECKING:
    from dashi.lab.isa import machine_code as machine_code

if not TYPE_CHECKING:  # to a type checker a name that is not imported above is a mistake
    __all__, __getattr__, __dir__ = lazy_names(__name__, {}, more=("machine_code",))
