"""What each rank of the tests runs: a chain of four stages, two of which have memory; one rank may kill itself.

mpiexec ... python rank_program.py '{"items": 500, "kill_rank": 3, "kill_at": 157}'
"""

from __future__ import annotations

import faulthandler
import hashlib
import itertools
import json
import os
import resource
import signal
import sys
import time

import numpy as np

from dashi.errors import DashiError
from dashi.stream.cluster import CallableStage, run_chain
from dashi.stream.cluster._mpi_transport import MpiTransport

faulthandler.dump_traceback_later(30)  # whoever hangs says where
settings = {
    "items": 100,
    "kill_rank": -1,
    "kill_at": -1,
    "fail_at": -1,
    "interrupt_at": -1,
    "idle": 0.0,
    "size": 8,
    "delay": 0.0,
}
settings |= json.loads(sys.argv[1])
transport = MpiTransport()
calls = itertools.count(1)


def accumulate(memory, item):
    total = (memory["total"] * 5 + item["z"]) % 1_000_003
    return {"total": total}, {"z": (item["z"] + total) % 1_000_003}


def triple(item):
    call = next(calls)
    if transport.rank == settings["kill_rank"] and call == settings["kill_at"]:
        os.kill(os.getpid(), signal.SIGKILL)
    if call == settings["fail_at"]:
        raise ValueError("no more")
    time.sleep(settings["delay"])
    return {"z": (item["z"] * 3 + 1) % 1_000_003}


def stages():
    memory = {"total": np.arange(settings["size"], dtype=np.int64)}
    return [
        CallableStage("enter", lambda item: item),
        CallableStage("first", accumulate, memory),
        CallableStage("triple", triple),
        CallableStage("second", accumulate, memory),
    ]


def items():
    for i in range(settings["items"]):
        if i and settings["idle"]:
            time.sleep(settings["idle"])
        yield {"z": np.full(settings["size"], i, np.int64)}


delivered = []


def deliver(step, item):
    delivered.append((step, hashlib.sha256(item["z"].tobytes()).hexdigest()))
    if settings["kill_rank"] == transport.rank and settings["kill_at"] == step:
        os.kill(os.getpid(), signal.SIGKILL)
    if settings["interrupt_at"] == step:
        raise KeyboardInterrupt


try:
    run = run_chain(
        stages(), items(), deliver,
        snapshot_every=16, transport=transport,
    )  # fmt: skip
except (DashiError, KeyboardInterrupt) as error:
    print(json.dumps({"rank": transport.rank, "error": type(error).__name__, "text": str(error)}), flush=True)
    sys.exit(3)
usage = resource.getrusage(resource.RUSAGE_SELF)
print(
    json.dumps(
        {
            "rank": run.rank,
            "host": os.uname().nodename,
            "cpu_s": usage.ru_utime + usage.ru_stime,
            "seconds": run.seconds,
            "delivered": delivered,
            "engine": run.engine,
            "items": run.items,
            "losses": [[loss.ranks, loss.again_from, loss.reached, loss.seconds] for loss in run.losses],
            "moves": [[move.stages, move.lost, move.rank] for loss in run.losses for move in loss.moves],
            "reports": sorted(run.reports),
        }
    ),
    flush=True,
)
