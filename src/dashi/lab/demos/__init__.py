"""Demonstrations: the main job from seeds to a report (`main_job`), and a rollout that NumPy repeats (`wave`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dashi._lazy import lazy_names

if TYPE_CHECKING:
    from dashi.lab.demos import main_job as main_job
    from dashi.lab.demos import setting as setting
    from dashi.lab.demos import wave as wave

if not TYPE_CHECKING:  # to a type checker a name that is not imported above is a mistake
    __all__, __getattr__, __dir__ = lazy_names(__name__, {}, more=("main_job", "setting", "wave"))
