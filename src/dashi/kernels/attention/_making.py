"""Attention kernels with more operands than q, k and v: the binaries of the kernel `attention`, another interface."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

import numpy as np

from dashi.errors import InputError
from dashi.kernels._registry import default
from dashi.kernels._validate import validate
from dashi.kernels.abi import Case, Kernel, View
from dashi.kernels.attention import _attention as attention
from dashi.types import HostArray, Shape

_CASE: Final[Shape] = (2, 2, 3, 8)
_KEYS: Final[Shape] = (2, 1, 70, 8)


def attention_with(extras: str, views: Mapping[str, View] | None = None, name: str = "") -> Kernel:
    """See `dashi.kernels.attention_with`."""
    asked = extras.split()
    listed = tuple(extra for extra in attention.EXTRAS if extra in asked)
    if len(listed) != len(asked):
        raise InputError(
            f"attention takes {', '.join(attention.EXTRAS)}, each once; asked for is {extras!r}.", "correct `extras`."
        )
    called = name or "_".join(("attention", *listed))
    through = dict(views or {})
    if unknown := sorted(set(through) - {"q", "k", "v", *listed}):
        raise InputError(f"`views` names {unknown[0]!r}, which is no operand of {called}.", "correct the name.")
    form = attention.Attention(called, listed, through)
    plain = default().get("attention")
    kernel = replace(
        plain,
        name=called,
        inputs=form.operands,
        shape_rule=form.shape_rule,
        plan=form.plan,
        reference=form.reference,
        cost=form.cost,
        cases=(_case(form),),
        bench=(),
        aliases=(),
    )
    validate(kernel)
    return kernel


def _case(form: attention.Attention) -> Case:
    shapes = {"q": _CASE, "k": _KEYS, "v": _KEYS, "mask": (2, 70), "bias": (2, 1, 3, 70)}
    shapes |= {"lengths": (2,), "positions": (2,)}
    shapes |= {name: (max(1, view.bounds()[1] + 1),) for name, view in form.views.items()}
    named = [operand.name for operand in form.operands]
    return Case(
        {name: shapes[name] for name in named},
        {"scale": 0.5},
        {name: _numbers for name in named if name in ("lengths", "positions")},
    )


def _numbers(rng: np.random.Generator, shape: Shape) -> HostArray:
    return rng.integers(0, 70, shape).astype(np.uint32)
