"""How long a snapshot takes to decode: stages by the device's clock, whole calls by the wall clock, for every observer.

python benchmarks/decode_times.py [DEVICE] [N ...]
"""

from __future__ import annotations

import json
import sys
import time
import warnings

import numpy as np

import dashi
from dashi.flow import Flow, ensemble, to_field
from dashi.flow.decode import Decoder, fit_statistics
from dashi.flow.proxy import Schema, encode
from dashi.runtime import _stopwatch as stopwatch
from dashi.runtime.array import Array

ANCHORS = ((9, 1), (0, 10), (10, 0), (-9, 2))
OBSERVERS = ("none", "metrics", "snapshots", "visualize")


def main() -> None:
    spec = sys.argv[1] if len(sys.argv) > 1 else "auto"
    warnings.simplefilter("ignore")  # asking for nothing is what is measured here
    with dashi.open(spec) as device:
        print(device.info.name)
        for n in [int(word) for word in sys.argv[2:]] or [128, 256, 1024]:
            fields = np.asarray(to_field(ensemble(Flow(n=n), "random", [3, 4])), np.float32)
            schema = Schema(n, 8, anchors=ANCHORS)
            z = device.array(encode(schema, fields[:1], device=device))
            statistics = fit_statistics(schema, fields)
            for residual in ("none", "seeded", "statistics"):
                decoder = Decoder(schema, device, residual=residual, statistics=statistics)
                row = {observer: round(wall_us(decoder, z, observer), 1) for observer in OBSERVERS}
                stages = {name: round(ns / 1e3, 2) for name, ns in decoder.calibrate(32).items()}
                print(json.dumps({"n": n, "residual": residual, "wall_us": row, "stage_us": stages}))


def wall_us(decoder: Decoder, z: Array, observer: str, calls: int = 100) -> float:
    """Microseconds of a call, the mean of many on a device that is warm."""
    hardware = decoder.device.info.is_hardware
    stopwatch.warm(lambda: decoder.decode(z, observer), stopwatch.HARDWARE.warm if hardware else 0)
    start = time.perf_counter()
    for _ in range(calls):
        decoder.decode(z, observer)
    return (time.perf_counter() - start) / calls * 1e6


if __name__ == "__main__":
    main()
