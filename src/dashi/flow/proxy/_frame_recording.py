"""Frames of a model's rollout: states stay on the device; what is looked at comes back, some frames at a time, while
the next ones are under way."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from dashi.core.operators.operator import Operator
from dashi.core.rollouts.observer import Bound, Context, Observer, Values
from dashi.core.rollouts.rollout import rollout
from dashi.flow.grid import Floats
from dashi.runtime.array import Array
from dashi.runtime.device import Device, Step
from dashi.types import Shape

Look = Callable[[Context, Array, Array], Sequence[Step]]
"""Binds the steps that fill a second array from the states in a first one."""


class StateFrames(Observer[None]):
    """The states on a stride, or an array of `shape` that `look` makes of them: (frames, *shape)."""

    name = "frames"
    certified = False

    def __init__(self, every: int, frames: Floats, look: Look | None = None) -> None:
        self.every, self._frames, self._look = every, frames, look or _copied

    def bind(self, context: Context) -> Bound:
        look, frames = self._look, self._frames

        def steps(_: Array, after: Array, slots: Sequence[Array]) -> Sequence[Step]:
            return look(context, after, slots[0])

        def take(step: int, values: Values) -> None:
            frames[step // self.every - 1] = values[0]

        return Bound([(frames.shape[1:], context.operator.dtype)], steps, take)


def record_frames(
    operator: Operator, states: Floats, frames: int, steps: int, *, device: Device, shape: Shape | None = None,
    look: Look | None = None,
) -> Floats:  # fmt: skip
    """What is seen of the states (m, *operator.shape) after every `steps` steps, (frames, *shape): the states
    themselves, unless `look` binds what makes an array of `shape` of them. Values that are not finite go on."""
    record = np.empty((frames, *(shape or states.shape)), operator.dtype)
    if frames:
        # A kernel that does many steps has nothing to gain where every one is looked at.
        strategy = "auto" if steps > 1 else "stepwise"
        rollout(
            operator, states, frames * steps, device=device, observers=[StateFrames(steps, record, look)],
            strategy=strategy, stop_on_nonfinite=False,
        )  # fmt: skip
    return record


def _copied(context: Context, states: Array, out: Array) -> Sequence[Step]:
    """Canonical values times 1 are themselves."""
    return [context.device.bind("scale", states, out=out, a=1.0)]
