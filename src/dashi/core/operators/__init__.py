"""Operators over states: their kinds, their checks, and how one comes back from a file's arrays."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dashi._lazy import lazy_names

if TYPE_CHECKING:
    from dashi.core.operators import affine as affine
    from dashi.core.operators import bands as bands
    from dashi.core.operators import operator as operator
    from dashi.core.operators import quadratic as quadratic
    from dashi.core.operators import sparse as sparse

if not TYPE_CHECKING:  # to a type checker a name that is not imported above is a mistake
    __all__, __getattr__, __dir__ = lazy_names(
        __name__, {}, more=("affine", "bands", "operator", "quadratic", "sparse")
    )
