"""all-MiniLM-L6-v2, a sentence transformer, as a graph: real weights, a tokeniser, and what a run takes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dashi._lazy import lazy_names

if TYPE_CHECKING:
    from dashi.bench.minilm import model as model
    from dashi.bench.minilm import run as run
    from dashi.bench.minilm import tokens as tokens
    from dashi.bench.minilm import weights as weights

if not TYPE_CHECKING:  # to a type checker a name that is not imported above is a mistake
    __all__, __getattr__, __dir__ = lazy_names(__name__, {}, more=("model", "run", "tokens", "weights"))
