"""Whether what a program is to be recorded from is what it should be: steps, and how to record them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, Final, cast, get_args

from dashi.errors import InputError
from dashi.runtime._binding import Step
from dashi.runtime._operands import require_on
from dashi.runtime._program import Recording
from dashi.runtime._shapes import whole_number
from dashi.runtime.array import Array
from dashi.runtime.info import Barriers, Role

if TYPE_CHECKING:
    from dashi.runtime.device import Device

_BARRIERS: Final = get_args(Barriers)
_ROLES: Final = get_args(Role)


def recording(device: Device, barriers: Any, timed: bool, queue: Any, fetch: Any, slots: Any) -> Recording:
    """The options of a program, each of them checked."""
    if not isinstance(barriers, str) or barriers not in _BARRIERS:
        near = get_close_matches(str(barriers).lower(), _BARRIERS, 1)
        raise InputError(
            f"barriers={barriers!r} is none of {', '.join(map(repr, _BARRIERS))}.",
            f"did you mean {near[0]!r}?" if near else "leave it away: 'auto' puts them where a hazard is.",
        )
    number = cast("Role", queue) if queue in _ROLES else whole_number(queue, "the queue of a program")
    if isinstance(number, int) and number < 0:
        raise InputError(f"there is no queue {number}.", "queues are counted from 0.")
    most = whole_number(slots, "the number of slots of a program")
    if most < 1:
        raise InputError(f"a program with {most} slots could bring nothing back.", "ask for one slot or more.")
    return Recording(cast("Barriers", barriers), bool(timed), number, _arrays(device, fetch), most)


def _arrays(device: Device, fetch: Any) -> tuple[Array, ...]:
    """The arrays to fetch, each of them once."""
    if isinstance(fetch, Array) or not isinstance(fetch, Iterable):
        raise InputError(f"`fetch` takes a list of arrays, not {type(fetch).__name__}.", "pass fetch=[array].")
    arrays = tuple(cast("Iterable[Any]", fetch))
    for array in arrays:
        require_on(device, "program", "an array to fetch", array)
    return tuple({id(array): array for array in arrays}.values())


def require_steps(device: Device, steps: Any) -> Sequence[Step]:
    """Steps can be recorded only where they were bound."""
    listed: tuple[Any, ...] = tuple(cast("Iterable[Any]", steps)) if isinstance(steps, Iterable) else (steps,)
    try:
        # A program repeats few steps many times: each is looked at once.
        different: Iterable[Any] = set(listed)
    except TypeError:
        different = listed
    wrong = sorted({type(step).__name__ for step in different if not isinstance(step, Step)})
    if isinstance(steps, Step) or wrong:
        raise InputError(
            f"a program is made from a list of steps, not from {', '.join(wrong) or 'one Step'}.",
            "bind kernels to arrays first: device.program([device.bind(...)]).",
        )
    for step in cast("Iterable[Step]", different):
        if any(array.device is not device for array in (*step.inputs, *step.outputs)):
            raise InputError(
                f"a step of kernel {step.kernel.name!r} is bound to arrays of another device.",
                "bind it on this device: device.bind(...).",
            )
    return listed
