"""Copies within a device by the driver and by a kernel: seconds from the call to the end, by size.

    python benchmarks/copies.py --device auto

`device.copy` and `device.copy_step` take the kernel from `KERNEL_COPY_BYTES` on; this shows whether that is where the
lines cross.
"""

from __future__ import annotations

import argparse
import time

import numpy as np

import dashi
from dashi.runtime._asynchronous import CopyBy
from dashi.runtime.device import Device


def seconds(device: Device, nbytes: int, by: CopyBy, rounds: int) -> float:
    """The best of some rounds."""
    x, y = (device.empty(nbytes // 4, np.uint32) for _ in range(2))
    x.write(np.arange(nbytes // 4, dtype=np.uint32))
    best = float("inf")
    for _ in range(rounds):
        start = time.perf_counter()
        device.copy(x, y, by=by).wait()
        best = min(best, time.perf_counter() - start)
    if not np.array_equal(x.numpy(), y.numpy()):
        raise SystemExit(f"a copy of {nbytes} bytes by {by} is wrong")
    return best


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--rounds", type=int, default=20)
    words = parser.parse_args()
    with dashi.open(words.device, validation=False) as device:
        print(f"{device.info.name}: microseconds, GB/s moved (read and written)")
        for power in range(12, 31, 2):
            nbytes = 1 << power
            if nbytes > device.limits.storage_range:
                break
            row = [seconds(device, nbytes, by, words.rounds) for by in ("transfer", "kernel")]
            cells = "  ".join(f"{s * 1e6:10.1f} us {2 * nbytes / s / 1e9:8.1f}" for s in row)
            print(f"{nbytes:>12} bytes  {cells}")


if __name__ == "__main__":
    main()
