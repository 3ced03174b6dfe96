"""Annihilation: at which scale coherent signs end, measured against chance (docs/annihilation.md)."""

from dashi.flow.annihilation._gauge_signs import GAUGES
from dashi.flow.annihilation.depth import Band, Depth
from dashi.flow.annihilation.estimators import ESTIMATORS, Estimator
from dashi.flow.annihilation.measurement import Annihilation, DepthMeter, EstimatorResult, measure_depth
from dashi.flow.annihilation.nulls import NULLS, Null
from dashi.flow.annihilation.planted import planted_field
from dashi.flow.annihilation.rules import RULES, Annihilated, Census, apply_rule
from dashi.flow.annihilation.scales import FAMILIES
from dashi.flow.annihilation.settings import AnnihilationSettings
from dashi.flow.annihilation.survival import Survival

__all__ = [
    "ESTIMATORS",
    "FAMILIES",
    "GAUGES",
    "NULLS",
    "RULES",
    "Annihilated",
    "Annihilation",
    "AnnihilationSettings",
    "Band",
    "Census",
    "Depth",
    "DepthMeter",
    "Estimator",
    "EstimatorResult",
    "Null",
    "Survival",
    "apply_rule",
    "measure_depth",
    "planted_field",
]
