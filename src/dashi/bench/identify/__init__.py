"""The identifiability benchmark: which operators learners can recover from which observations."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dashi._lazy import lazy_names

if TYPE_CHECKING:
    from dashi.bench.identify import learners as learners
    from dashi.bench.identify import study as study
    from dashi.bench.identify import systems as systems

if not TYPE_CHECKING:  # to a type checker a name that is not imported above is a mistake
    __all__, __getattr__, __dir__ = lazy_names(__name__, {}, more=("learners", "study", "systems"))
