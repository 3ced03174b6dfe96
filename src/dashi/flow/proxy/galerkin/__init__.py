"""Galerkin models: the truncated flow and its closures by an eddy viscosity."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dashi._lazy import lazy_names

if TYPE_CHECKING:
    from dashi.flow.proxy.galerkin._model import GalerkinModel as GalerkinModel
    from dashi.flow.proxy.galerkin._model import Truncation as Truncation
    from dashi.flow.proxy.galerkin._operator import Galerkin as Galerkin

_MODULES = {"_model": "GalerkinModel Truncation", "_operator": "Galerkin"}

if not TYPE_CHECKING:  # to a type checker a name that is not imported above is a mistake
    __all__, __getattr__, __dir__ = lazy_names(__name__, _MODULES)
