"""What is learned on the device: ridge fits, the band model, and whether rules can be found again."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dashi._lazy import lazy_names

if TYPE_CHECKING:
    from dashi.core.learning import learner as learner
    from dashi.core.learning import ridge as ridge

if not TYPE_CHECKING:  # to a type checker a name that is not imported above is a mistake
    __all__, __getattr__, __dir__ = lazy_names(__name__, {}, more=("learner", "ridge"))
