"""The ops of graphs: each is declared once, in the module of its family, with its inference, its definition in NumPy
and how devices run it. To add one: declare it there, and list it in that module's OPS."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dashi._lazy import lazy_names

if TYPE_CHECKING:
    from dashi.graph.ops import attention as attention
    from dashi.graph.ops import elementwise as elementwise
    from dashi.graph.ops import indexing as indexing
    from dashi.graph.ops import movement as movement
    from dashi.graph.ops import products as products
    from dashi.graph.ops import rows as rows

_MODULES = ("attention", "elementwise", "indexing", "movement", "products", "rows")

if not TYPE_CHECKING:  # to a type checker a name that is not imported above is a mistake
    __all__, __getattr__, __dir__ = lazy_names(__name__, {}, more=_MODULES)
