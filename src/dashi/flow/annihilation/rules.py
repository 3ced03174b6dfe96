"""Rules of annihilation on ternary fields, applied on a device and counted after every step.

Each rule only sets sites to 0: no sign changes and no support appears. Removing sites cannot put two of other signs
side by side, so pairs of other signs become fewer or stay.

- `coherence`: sites whose coherence, sign times mean sign of the box round them, does not exceed eps.
- `box`: sites that have both signs in the box round them.
- `clash`: sites with a neighbour of the other sign where the encounter, the smaller of both strengths, reaches theta.
- `head-on`: the same of the four neighbours along the axes alone.
- `majority`: after the rule `coherence`, sites that the majority of their 3 x 3 box does not confirm.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from dashi import kernels
from dashi.errors import InputError
from dashi.kernels.expressions import arguments
from dashi.runtime.array import Array
from dashi.runtime.device import AnyStep, Device
from dashi.runtime.using import using_device
from dashi.types import HostArray

RULES: Final = ("coherence", "box", "clash", "head-on", "majority")


@dataclass(frozen=True)
class Census:
    """What is left of a field."""

    plus: int
    minus: int
    opposite_pairs: int
    """Neighbours along rows and columns of other signs."""

    @property
    def active(self) -> int:
        return self.plus + self.minus


@dataclass(frozen=True, eq=False)
class Annihilated:
    """A field after a rule: what is left, and the census before and after every step."""

    field: HostArray
    steps: tuple[Census, ...]
    fixed: bool
    """Whether the last step changed nothing."""

    @property
    def annihilated_fraction(self) -> float:
        """The part of the active sites that is gone."""
        first, last = self.steps[0].active, self.steps[-1].active
        return (first - last) / first if first else 0.0


def apply_rule(
    field: npt.ArrayLike,
    rule: str,
    *,
    device: Device | str = "cpu",
    strength: npt.ArrayLike | None = None,
    eps: float = 0.0,
    theta: float = 0.0,
    radius: int = 1,
    rounds: int = 64,
) -> Annihilated:
    """Applies a rule to a field (h, w) of -1, 0 and +1 again and again, until nothing changes or `rounds` are over.
    `strength` (h, w) is for `clash` and `head-on`; without it all are 1."""
    trits = np.asarray(field)
    if trits.ndim != 2 or not trits.size or not np.isin(trits, (-1, 0, 1)).all():
        raise InputError(f"a field of shape {trits.shape} is not ternary.", "pass (h, w) of -1, 0 and +1.")
    if rule not in RULES:
        raise InputError(f"there is no rule {rule!r}.", f"use {', '.join(RULES)}.")
    if not 1 <= rounds <= 1 << 20 or not 0 <= radius <= min(trits.shape):
        raise InputError(f"{rounds} rounds with a radius of {radius}.", "use 1 round or more, and a radius that fits.")
    sizes = np.ones(trits.shape, np.float32) if strength is None else np.asarray(strength, np.float32)
    if sizes.shape != trits.shape:
        raise InputError(f"strengths {sizes.shape} of a field {trits.shape}.", "pass one for every site.")
    with using_device(device) as opened:
        s = opened.array(trits.astype(np.int8))
        counts = opened.empty((3,), np.uint32)
        census = opened.bind("ternary_census", s, out=counts)
        steps = _steps(opened, s, rule, opened.array(sizes), eps, theta, radius)
        with opened.program([census]) as first, opened.program([*steps, census]) as again:
            first.run()
            found = [_census(counts)]
            for _ in range(rounds):
                again.run()
                found.append(_census(counts))
                if found[-1] == found[-2]:
                    break
        return Annihilated(s.numpy(), tuple(found), found[-1].active == found[-2].active)


def _census(counts: Array) -> Census:
    return Census(*(int(number) for number in counts.numpy()))


def _steps(
    device: Device, s: Array, rule: str, strength: Array, eps: float, theta: float, radius: int
) -> list[AnyStep]:
    """One round, from the field s to itself."""
    bind, next_ = device.bind, device.empty(s.shape, np.int8)
    back = bind("copy", next_.view(np.uint8), out=s.view(np.uint8)) if s.size else None
    assert back is not None
    if rule == "box":
        return [bind("ternary_annihilate_pairs", s, out=next_, radius=radius), back]
    if rule in ("clash", "head-on"):
        head_on = int(rule == "head-on")
        return [bind("ternary_annihilate_clash", s, strength, out=next_, theta=theta, head_on=head_on), back]
    coherent = [*_coherence(device, s, next_, eps, radius), back]
    if rule == "coherence":
        return coherent
    voted, agreement = device.empty(s.shape, np.int8), device.empty(s.shape, np.float32)
    return [
        *coherent,
        bind("ternary_majority", s, out=voted),
        bind(_agreement(), s, voted, out=agreement),
        bind("ternary_annihilate", s, agreement, out=next_, eps=0.0),
        back,
    ]


def _coherence(device: Device, s: Array, target: Array, eps: float, radius: int) -> list[AnyStep]:
    bind, h, w = device.bind, *s.shape
    real, mean, coherence = (device.empty((1, h, w), np.float32) for _ in range(3))
    a, b = arguments("a b")
    return [
        bind(kernels.cast("i8", "f32"), s, out=real.reshape(h, w)),
        bind("box_smooth", real, out=mean, radius=radius),
        bind(kernels.fuse(a * b), real, mean, out=coherence),
        bind("ternary_annihilate", s, coherence.reshape(h, w), out=target, eps=eps),
    ]


def _agreement() -> Any:
    """The product of two ternary fields, as float32."""
    a, b = arguments("a b")
    return kernels.fuse(a * b, inputs="a b", types={"a": "i8", "b": "i8", "result": "f32"}, compute="f32")
