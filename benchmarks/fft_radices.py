"""What other radices of powers of two would take: transforms and the solver's step, each checked before its time.

    python benchmarks/fft_radices.py --device vulkan:0 --side 256 --radices 256=16x16,128=16x8 256=8x4x8,128=4x8x4

Radices decide the bits of a length, so they are one list (`dashi.kernels.fft._roots`) and no tuning: this script puts
others in their place for as long as it measures. A field of side n has columns of n values, and rows of n, or of n/2
where it is real: give both lengths. Every set of radices is measured with every number of values that an invocation is
to hold (`--each`); where a pass has few of them that is at most the largest radix. The first line is the list as it is.
On hardware the times of the device class stand in brackets.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from unittest import mock

from dashi import kernels
from dashi.bench import fft as fft_bench
from dashi.bench import flow as flow_bench
from dashi.kernels.fft import _roots as fourier
from dashi.runtime import open_device
from dashi.runtime.device import Device

Radices = dict[int, tuple[int, ...]]
STAGES = 3
"""Most stages of a power of two (`fft_line.glsl`)."""
TUNED = ("rfft2", "irfft2", "fft2", "vorticity_stage2", "vorticity_stage5")


def read(text: str) -> Radices:
    """`256=16x16,128=16x8` as radices by length."""
    found: Radices = {}
    for part in text.split(",") if text else ():
        length, _, factors = part.partition("=")
        sequence = tuple(int(factor) for factor in factors.split("x"))
        fits = math.prod(sequence) == int(length) and len(sequence) <= STAGES
        if not fits or any(factor not in (2, 4, 8, 16) for factor in sequence):
            raise argparse.ArgumentTypeError(f"{part!r}: give a power of two as up to {STAGES} of 2, 4, 8 and 16.")
        found[int(length)] = sequence
    return found


@contextmanager
def instead(radices: Radices, each: int | None) -> Iterator[None]:
    """Other radices, and another number of values of an invocation, while it is open."""
    with ExitStack() as changed:
        changed.enter_context(mock.patch.object(fourier, "ALONE", {**fourier.ALONE, **radices}))
        others = {
            use: {n: sequence for n, sequence in own.items() if n not in radices} for use, own in fourier.OTHERS.items()
        }
        changed.enter_context(mock.patch.object(fourier, "OTHERS", others))
        if each is not None:
            for tuning in {id(t): t for name in TUNED for t in kernels.get(name).tunings.values()}.values():
                # Numbers named long_... stand for longer sides alone: all sides take the same here.
                changed.enter_context(mock.patch.dict(tuning, {key: each for key in tuning if key.endswith("each")}))
        yield


def times(device: Device, side: int) -> str:
    """Microseconds of the transforms and of a step; what is not right has no time."""
    told: list[str] = []
    for kind in ("rfft2", "irfft2", "fft2"):
        case = fft_bench.TransformCase(kind, side)
        (time,) = fft_bench.measure(device, case)
        told.append(f"{kind} {_told(time)}")
        fast = fft_bench.measure_fast(device, case)
        if fast is not None:
            told[-1] += f" [{_told(fast)}]"
    step = flow_bench.measure(device, side)
    told.append(f"RK4 step {step.us:7.2f}" if step.good else "RK4 step WRONG")
    if step.good and step.fast_us is not None:
        told[-1] += f" [{step.fast_us:7.2f}]"
    return ", ".join(told) + f" ({step.dispatches} dispatches)"


def _told(time: fft_bench.Time) -> str:
    return f"{time.us:7.2f}" if time.us is not None else time.checked or time.skipped


def main(words: Sequence[str] | None = None) -> int:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--device", default="vulkan:0")
    options.add_argument("--side", type=int, nargs="+", default=[256])
    options.add_argument("--radices", type=read, nargs="+", default=[])
    options.add_argument("--each", type=int, nargs="+", default=[], help="besides the tuning's own")
    given = options.parse_args(words)
    wrong = 0
    with open_device(given.device) as device:
        print(device.info.name)
        for side in given.side:
            for radices in ({}, *given.radices):
                for each in (None, *given.each):
                    with instead(radices, each):
                        told = times(device, side)
                    named = ",".join(f"{n}={'x'.join(map(str, r))}" for n, r in radices.items()) or "as they are"
                    print(f"n {side}, {named}, each {each or 'as tuned'}: us: {told}", flush=True)
                    wrong += "WRONG" in told
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
