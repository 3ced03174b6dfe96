"""How long the statistics of annihilation take: all scales of one field, and a batch of surrogates of a null.

    python benchmarks/annihilation.py --device vulkan:0 --n 1024 --surrogates 199

Prints medians in milliseconds, the bytes that come back, and whether a small field has NumPy's bits.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable

import numpy as np

import dashi
from dashi.flow.annihilation import AnnihilationSettings, DepthMeter, measure_depth, planted_field


def median_ms(call: Callable[[], object], repeats: int) -> float:
    """The median time of a call, after one that is not counted."""
    call()
    times = []
    for _ in range(repeats):
        began = time.perf_counter()
        call()
        times.append(1e3 * (time.perf_counter() - began))
    return round(statistics.median(times), 4)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--device", default="auto")
    options.add_argument("--n", type=int, default=1024)
    options.add_argument("--surrogates", type=int, default=199)
    options.add_argument("--null", default="phase")
    options.add_argument("--repeats", type=int, default=5)
    asked = options.parse_args()
    field = np.random.default_rng(0).standard_normal((asked.n, asked.n))
    small = planted_field(64, 2, 4)
    settings = AnnihilationSettings(null=asked.null, surrogates=asked.surrogates)
    with dashi.open(asked.device) as device:
        same = measure_depth(small, surrogates=5, device=device).hash == measure_depth(small, surrogates=5).hash
        with DepthMeter(device, asked.n, settings) as meter:
            meter.measure(field)
            read = meter.field_meter.read()
            print(
                json.dumps(
                    {
                        "device": device.info.name,
                        "n": asked.n,
                        "null": asked.null,
                        "batch": meter.maker.batch,
                        "field_ms": median_ms(meter.load.run, asked.repeats),
                        "surrogates_ms": median_ms(lambda: meter.surrogates_of(0, 0), asked.repeats),
                        "surrogates": asked.surrogates,
                        "bytes_per_surrogate": read.counts.shape[-3] * (15 * 4 + 3 * 4),
                        "same_bits_as_numpy": same,
                    }
                )
            )


if __name__ == "__main__":
    main()
