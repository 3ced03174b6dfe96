"""How long a kernel from text takes to its first result: with an empty cache, and from the cache in a new process.

    python benchmarks/text_kernel.py --device vulkan:0

Prints JSON, in seconds: `import` of dashi with NumPy, `open` the device, `kernel` (the text is compiled, or read from
the cache), `run` (the kernel is compared with its reference, the driver compiles it, 2^20 values are computed and read
back), and `again` (the same call once more). Each row is a process of its own; the first has an empty cache folder, the
second the one that the first has left.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence

CHILD = """
import json, sys, time
start = time.perf_counter()
import numpy as np
import dashi
from dashi.kernels.portable import mul
imported = time.perf_counter()
with dashi.open(sys.argv[1]) as d:
    opened = time.perf_counter()
    kernel = dashi.kernel(
        "T apply(T x, T y) { return p_tanh(mul(a, x) + y); }", inputs="x y", scalars="a",
        reference=lambda x, y, a: dashi.kernels.get("tanh").reference(mul(a, x) + y),
    )
    compiled = time.perf_counter()
    x = np.linspace(-1, 1, 1 << 20, dtype=np.float32)
    d.run(kernel, x, x, a=2).numpy()
    done = time.perf_counter()
    d.run(kernel, x, x, a=2).numpy()
    again = time.perf_counter()
    moments = [start, imported, opened, compiled, done, again]
    times = dict(zip(("import", "open", "kernel", "run", "again"), np.diff(moments)))
    print(json.dumps({"device": d.info.name, **{name: round(float(t), 4) for name, t in times.items()}}))
"""


def main(words: Sequence[str] | None = None) -> int:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description="Time to the first result of a kernel from text.")
    parser.add_argument("--device", default="vulkan:0")
    chosen = parser.parse_args(words)
    rows: dict[str, object] = {}
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "DASHI_CACHE_DIR": folder}
        for row in ("device tried", "first", "second"):
            if row == "first":  # what is known of the driver stays; kernels and pipelines go
                for name in ("kernels", "pipelines"):
                    shutil.rmtree(os.path.join(folder, name), ignore_errors=True)
            done = subprocess.run(
                [sys.executable, "-c", CHILD, chosen.device],
                env=environment,
                capture_output=True,
                text=True,
                check=True,
            )
            rows[row] = json.loads(done.stdout)
    del rows["device tried"]
    sys.stdout.write(json.dumps(rows, indent=2) + "\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
