"""Whether what a program is to be recorded from is what it should be: steps, and how to record them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, Final, cast, get_args

from dashi.errors import InputError
from dashi.runtime._binding import Step
from dashi.runtime._operands import require_on
from dashi.runtime._program import Recording, Timed
from dashi.runtime._shapes import whole_number
from dashi.runtime._steps import AnyStep
from dashi.runtime.array import Array
from dashi.runtime.info import Barriers, Role

if TYPE_CHECKING:
    from dashi.runtime.device import Device

_BARRIERS: Final = get_args(Barriers)
_ROLES: Final = get_args(Role)


def recording(
    device: Device, barriers: Any, timed: Any, queue: Any, fetch: Any, slots: Any, feed: Any, direct: Any
) -> Recording:
    """The options of a program, each of them checked."""
    if not isinstance(barriers, str) or barriers not in _BARRIERS:
        near = get_close_matches(str(barriers).lower(), _BARRIERS, 1)
        raise InputError(
            f"barriers={barriers!r} is none of {', '.join(map(repr, _BARRIERS))}.",
            f"did you mean {near[0]!r}?" if near else "leave it away: 'auto' puts them where a hazard is.",
        )
    if isinstance(timed, str) and timed != "steps":
        raise InputError(f"timed={timed!r} is none of False, True and 'steps'.", 'pass timed="steps", or timed=True.')
    number = cast("Role", queue) if queue in _ROLES else whole_number(queue, "the queue of a program")
    if isinstance(number, int) and number < 0:
        raise InputError(f"there is no queue {number}.", "queues are counted from 0.")
    most = whole_number(slots, "the number of slots of a program")
    if most < 1:
        raise InputError(f"a program with {most} slots could bring nothing back.", "ask for one slot or more.")
    fetches, feeds = _arrays(device, "fetch", fetch), _arrays(device, "feed", feed)
    for i, array in enumerate(feeds):
        if any(array.overlaps(other) for other in feeds[:i]):
            raise InputError(
                f"two of the arrays that a program is fed with share memory: {array.description} is written twice.",
                "feed arrays that do not overlap.",
            )
    if direct and not (feeds or fetches):
        raise InputError(
            "a direct program uses the memory of arrays that are fed or fetched, and there are none.",
            "name them (feed=[array], fetch=[array]), or leave `direct` away.",
        )
    times: Timed = "steps" if isinstance(timed, str) else bool(timed)
    return Recording(cast("Barriers", barriers), times, number, fetches, most, feeds, bool(direct))


def _arrays(device: Device, name: str, arrays: Any) -> tuple[Array, ...]:
    """The arrays to fetch or to feed, each of them once."""
    if isinstance(arrays, Array) or not isinstance(arrays, Iterable):
        raise InputError(f"`{name}` takes a list of arrays, not {type(arrays).__name__}.", f"pass {name}=[array].")
    listed = tuple(cast("Iterable[Any]", arrays))
    for array in listed:
        require_on(device, "program", f"an array to {name}", array)
    return tuple({id(array): array for array in listed}.values())


def require_steps(device: Device, steps: Any) -> Sequence[AnyStep]:
    """Steps can be recorded only where they were bound."""
    listed: tuple[Any, ...] = tuple(cast("Iterable[Any]", steps)) if isinstance(steps, Iterable) else (steps,)
    try:
        # A program repeats few steps many times: each is looked at once.
        different: Iterable[Any] = set(listed)
    except TypeError:
        different = listed
    wrong = sorted({type(step).__name__ for step in different if not isinstance(step, AnyStep)})
    if isinstance(steps, AnyStep) or wrong:
        single = type(cast("Any", steps)).__name__
        raise InputError(
            f"a program is made from a list of steps, not from {', '.join(wrong) or f'one {single}'}.",
            "bind kernels to arrays first: device.program([device.bind(...)]).",
        )
    for step in cast("Iterable[AnyStep]", different):
        if any(array.device is not device for array in (*step.inputs, *step.outputs)):
            raise InputError(
                f"{_called(step)} is bound to arrays of another device.",
                "bind it on this device: device.bind(...).",
            )
    return listed


def _called(step: AnyStep) -> str:
    return f"a step of kernel {step.name!r}" if isinstance(step, Step) else f"the step {step.name!r}"
