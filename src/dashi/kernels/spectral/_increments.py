"""A change added to a state in fp32 so that no part of it is lost in the long run.

The change of a step may be less than half of the last digit of what it is added to: the sum then is what it was before,
and viscosity does nothing; or it is rounded up every time. So before the sum is rounded, a part of the last digit is
added, from -1/2 to 1/2 of it in all states, that differs from step to step: step c has c g, g the golden ratio, less
the nearest whole number. Sums of those parts grow as the logarithm of their number alone (A. Ostrowski, Abh. Math. Sem.
Univ. Hamburg 1, 1922), so what is added in the mean is the change itself.

Steps are counted by the imaginary part of mode (0, 0), which means nothing in the modes of a real field: c 2^-60, small
enough to disappear beside whatever else counts there (`random_kick`, whole numbers), and 0 again after 2^23 steps.
Numbers of fp64 have digits enough, and are added as they are.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt

from dashi.kernels.portable import canon, mul

Floats = npt.NDArray[Any]
GOLDEN: Final = 0x9E3779B9
"""The golden ratio less 1, times 2^32."""
TICK: Final = 2.0**-60
MOST: Final = 2.0**-37
"""A clock of 2^23 ticks."""
_EXPONENT: Final = 0x7F800000


def steps_counted(clock: Floats) -> Any:
    """The number that a clock shows: ticks, or whole steps from 1 on."""
    value = np.asarray(clock, np.float64)
    with np.errstate(all="ignore"):
        counted = np.where(value < 1, value * 2.0**60, value)
        return np.where((counted >= 0) & (counted < 2.0**24), counted, 0).astype(np.int64)


def ticked(clock: Floats) -> Floats:
    """The clock after one step more."""
    one = clock.dtype.type
    with np.errstate(all="ignore"):
        return np.where(clock >= one(MOST), np.where(clock < 1, one(0), clock), clock + one(TICK))


def last_digits(steps: Any) -> Any:
    """The part of a last digit that is added after so many steps, -1/2 to 1/2, in float32."""
    word = (np.asarray(steps, np.int64) * GOLDEN & 0xFFFFFFFF).astype(np.uint32).view(np.int32)
    return (word >> 8).astype(np.float32) * np.float32(2.0**-24)


def incremented(state: Floats, change: Floats) -> Floats:
    """States (members, n, modes, 2), canonical, plus a change, as the kernels have it; the clock goes on."""
    clock = state[:, :1, :1, 1:]
    single = state.dtype == np.float32
    with np.errstate(all="ignore"):
        added = spread_change(state, change, last_digits(steps_counted(clock))) if single else change
        result = canon(state + added)
    result[:, :1, :1, 1:] = canon(ticked(clock)) if single else clock
    return result


def spread_change(state: Floats, change: Floats, part: Floats) -> Floats:
    """The change, where there is one, with that part of a state's last digit."""
    power = (state.view(np.uint32) & np.uint32(_EXPONENT)).view(np.float32)
    digit = mul(mul(power, np.float32(2.0**-23)), part)
    return np.where(change != 0, change + np.where(state.view(np.int32) < 0, -digit, digit), change)
