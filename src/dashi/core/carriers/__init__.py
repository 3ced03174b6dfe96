"""The ternary carrier, and the checker of kernels on it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dashi._lazy import lazy_names

if TYPE_CHECKING:
    from dashi.core.carriers import carrier as carrier
    from dashi.core.carriers import check_defects as check_defects
    from dashi.core.carriers import check_kernel as check_kernel
    from dashi.core.carriers import check_samples as check_samples

if not TYPE_CHECKING:  # to a type checker a name that is not imported above is a mistake
    __all__, __getattr__, __dir__ = lazy_names(
        __name__, {}, more=("carrier", "check_defects", "check_kernel", "check_samples")
    )
