"""Certificates of rollouts: their inputs, their repetition, and checkpoints to go on from."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dashi._lazy import lazy_names

if TYPE_CHECKING:
    from dashi.core.certificates import certified_runs as certified_runs
    from dashi.core.certificates import inputs as inputs

if not TYPE_CHECKING:  # to a type checker a name that is not imported above is a mistake
    __all__, __getattr__, __dir__ = lazy_names(__name__, {}, more=("certified_runs", "inputs"))
