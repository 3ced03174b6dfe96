"""The ops of graphs: each is declared once, in the module of its family, with its inference, its definition in NumPy
and how devices run it. To add one: declare it there, and list it in that module's OPS."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dashi._lazy import lazy_names

if TYPE_CHECKING:
    from dashi.graph.ops import activations as activations
    from dashi.graph.ops import attention as attention
    from dashi.graph.ops import contractions as contractions
    from dashi.graph.ops import control as control
    from dashi.graph.ops import convolution as convolution
    from dashi.graph.ops import elementwise as elementwise
    from dashi.graph.ops import indexing as indexing
    from dashi.graph.ops import joining as joining
    from dashi.graph.ops import movement as movement
    from dashi.graph.ops import norms as norms
    from dashi.graph.ops import order as order
    from dashi.graph.ops import pools as pools
    from dashi.graph.ops import positions as positions
    from dashi.graph.ops import products as products
    from dashi.graph.ops import quantization as quantization
    from dashi.graph.ops import random as random
    from dashi.graph.ops import recurrent as recurrent
    from dashi.graph.ops import resizing as resizing
    from dashi.graph.ops import rows as rows
    from dashi.graph.ops import scans as scans
    from dashi.graph.ops import scattering as scattering
    from dashi.graph.ops import shaping as shaping
    from dashi.graph.ops import spectral as spectral
    from dashi.graph.ops import state_scans as state_scans

_MODULES = (
    "activations",
    "attention",
    "contractions",
    "control",
    "convolution",
    "elementwise",
    "indexing",
    "joining",
    "movement",
    "norms",
    "order",
    "pools",
    "positions",
    "products",
    "quantization",
    "random",
    "recurrent",
    "resizing",
    "rows",
    "scans",
    "scattering",
    "shaping",
    "spectral",
    "state_scans",
)

if not TYPE_CHECKING:  # to a type checker a name that is not imported above is a mistake
    __all__, __getattr__, __dir__ = lazy_names(__name__, {}, more=_MODULES)
