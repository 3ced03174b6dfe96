"""Products of every shape beside cuBLAS, in one run: python benchmarks/products.py [--device vulkan:0] [--json].

For each shape (m, k, n) and class: microseconds of our kernel, of torch on CUDA (without TF32), and what part of its
speed that is. Results are compared with NumPy first, and wrong ones are not timed.
"""

from __future__ import annotations

import argparse
import json
import sys

import dashi
from dashi.bench.kernels import measure
from dashi.bench.peers.gpu_library import load_library
from dashi.bench.peers.kernels import NAMES, TorchPeer
from dashi.bench.workloads import Workload
from dashi.errors import DashiError
from dashi.kernels.abi import Case

SHAPES = (
    (1, 16384, 4096), (1, 4096, 16384), (1, 1024, 1024), (1, 4097, 4099), (2, 4096, 4096), (4, 4096, 4096),
    (8, 4096, 4096), (16, 4096, 4096), (32, 4096, 4096), (16, 2048, 8192), (16, 8192, 2048), (32, 2048, 8192),
    (7, 4097, 4099), (24, 1024, 1024), (128, 4096, 4096), (127, 4095, 4097), (4096, 4096, 4096), (4097, 4095, 4099),
)  # fmt: skip


def main() -> int:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--dtype", default="f32")
    parser.add_argument("--kernel", action="append", choices=("gemm_tiled", "gemm_fast"))
    parser.add_argument("--shape", action="append", help="M,K,N; default: a list of them")
    parser.add_argument("--no-peer", action="store_true")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    shapes = [tuple(map(int, text.split(","))) for text in options.shape or ()] or list(SHAPES)
    peer = None if options.no_peer else TorchPeer(load_library("torch", NAMES))
    rows = []
    with dashi.open(options.device) as device:
        for m, k, n in shapes:
            for name in options.kernel or ("gemm_tiled", "gemm_fast"):
                case = Case({"a": (m, k), "b": (k, n)})
                workload = Workload(dashi.kernel(name), options.dtype, case, 0)
                try:
                    (row,) = measure(device, workload, peer=peer)
                except DashiError as error:
                    print(f"{m} x {k} x {n} {name}: {error}", file=sys.stderr)
                    continue
                ours = row.times.median * 1e6 if row.times else None
                theirs = row.peer.seconds * 1e6 if row.peer and row.peer.seconds else None
                share = theirs / ours if ours and theirs else None
                rows.append({"m": m, "k": k, "n": n, "kernel": name, "us": ours, "peer_us": theirs, "share": share,
                             "failed": row.failed})  # fmt: skip
                if not options.json:
                    numbers = [
                        f"{value:10.2f}" if value is not None else "         -" for value in (ours, theirs, share)
                    ]
                    print(f"{m:5} {k:6} {n:6}  {name:10}", *numbers, row.failed, flush=True)
    if options.json:
        print(json.dumps({"device": device.info.name, "rows": rows}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
