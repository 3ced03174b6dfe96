"""What was seen of a run, what became of it, and pictures of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dashi._lazy import lazy_names

if TYPE_CHECKING:
    from dashi.core.observations import observation as observation
    from dashi.core.observations import png as png
    from dashi.core.observations import sheet as sheet
    from dashi.core.observations import verdict as verdict

if not TYPE_CHECKING:  # to a type checker a name that is not imported above is a mistake
    __all__, __getattr__, __dir__ = lazy_names(__name__, {}, more=("observation", "png", "sheet", "verdict"))
