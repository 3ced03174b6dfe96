"""The kinds of operators by name, and how one comes back from its arrays and parameters."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Final

from dashi.core.operators.affine import Affine, Linear
from dashi.core.operators.bands import Bands
from dashi.core.operators.operator import Operator, Parameter
from dashi.core.operators.quadratic import Quadratic
from dashi.core.operators.sparse import BlockSparse, Csr
from dashi.errors import DashiError, InputError
from dashi.types import Array as HostArray

KINDS: Final[Mapping[str, type[Operator]]] = {
    found.kind: found for found in (Linear, Affine, Csr, BlockSparse, Quadratic, Bands)
}
ELSEWHERE: Final[Mapping[str, tuple[str, str]]] = {
    "vorticity": ("dashi.flow.operator", "Vorticity"),
    "galerkin": ("dashi.flow.proxy.galerkin_operator", "Galerkin"),
    "galerkin-slaved": ("dashi.flow.proxy.closures_operator", "SlavedGalerkin"),
}
"""Kinds of the lanes above this one, by module and class: imported only when one is asked for by name."""


def operator_class(kind: str) -> type[Operator]:
    """The class of a kind."""
    if kind in ELSEWHERE:
        module, name = ELSEWHERE[kind]
        found: type[Operator] = getattr(importlib.import_module(module), name)
        return found
    if kind not in KINDS:
        raise InputError(f"there is no operator {kind!r}.", f"use one of {', '.join([*KINDS, *ELSEWHERE])}.")
    return KINDS[kind]


def restore(kind: str, arrays: Mapping[str, HostArray], parameters: Mapping[str, Parameter]) -> Operator:
    """The operator of that kind with these arrays and parameters: the inverse of its `arrays` and `parameters`."""
    made = operator_class(kind)
    try:
        return made.restore(arrays, parameters)
    except DashiError:
        raise
    except KeyError as missing:
        raise InputError(
            f"an operator {kind!r} needs {missing}, which is not there.",
            "give every array and parameter that defines it (`save_operator` of dashi.core writes them all).",
        ) from missing
    except (TypeError, ValueError, OverflowError) as error:
        raise InputError(
            f"the parameters of an operator {kind!r} do not fit: {error}.", "give numbers where numbers belong."
        ) from error
