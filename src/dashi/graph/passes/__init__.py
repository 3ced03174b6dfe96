"""The passes of the compiler, one module each: frozen dataclasses whose fields are their options."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dashi._lazy import lazy_names

if TYPE_CHECKING:
    from dashi.graph.passes.assign_layouts import AssignLayouts as AssignLayouts
    from dashi.graph.passes.choose_products import ChooseProducts as ChooseProducts
    from dashi.graph.passes.cut import CutLargeValues as CutLargeValues
    from dashi.graph.passes.fuse import Fuse as Fuse
    from dashi.graph.passes.legalize import Legalize as Legalize
    from dashi.graph.passes.plan_memory import PlanMemory as PlanMemory
    from dashi.graph.passes.record import Record as Record
    from dashi.graph.passes.rewrite import Rewrite as Rewrite
    from dashi.graph.passes.schedule import Schedule as Schedule

_MODULES = {
    "assign_layouts": "AssignLayouts",
    "choose_products": "ChooseProducts",
    "cut": "CutLargeValues",
    "fuse": "Fuse",
    "legalize": "Legalize",
    "plan_memory": "PlanMemory",
    "record": "Record",
    "rewrite": "Rewrite",
    "schedule": "Schedule",
}

if not TYPE_CHECKING:  # to a type checker a name that is not imported above is a mistake
    __all__, __getattr__, __dir__ = lazy_names(__name__, _MODULES)
