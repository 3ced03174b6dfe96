"""The slaved closure: Galerkin with the band beyond z made from z, trained through rollouts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dashi._lazy import lazy_names

if TYPE_CHECKING:
    from dashi.flow.proxy.closure._model import Slaved as Slaved
    from dashi.flow.proxy.closure._operator import SlavedGalerkin as SlavedGalerkin

_MODULES = {"_model": "Slaved", "_operator": "SlavedGalerkin"}

if not TYPE_CHECKING:  # to a type checker a name that is not imported above is a mistake
    __all__, __getattr__, __dir__ = lazy_names(__name__, _MODULES)
