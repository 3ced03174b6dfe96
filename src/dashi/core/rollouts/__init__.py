"""The rollout: blocks of steps, what comes back of them, which strategy they run by and what a step takes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dashi._lazy import lazy_names

if TYPE_CHECKING:
    from dashi.core.rollouts import observer as observer
    from dashi.core.rollouts import rollout as rollout
    from dashi.core.rollouts import run as run

if not TYPE_CHECKING:  # to a type checker a name that is not imported above is a mistake
    __all__, __getattr__, __dir__ = lazy_names(__name__, {}, more=("observer", "rollout", "run"))
