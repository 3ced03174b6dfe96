"""What runs in a child process: which devices there are, and whether they compute. A driver that crashes takes only the
child with it."""

from __future__ import annotations

import contextlib
import json
import os
import sys
from typing import Any, cast

import numpy as np

from dashi.errors import DashiError, KernelError
from dashi.runtime import _vk as vk
from dashi.runtime import _vk_instance as raw
from dashi.runtime._drivers import driver_environment
from dashi.runtime._instance import Instance
from dashi.runtime._probe import STARTED, TIMEOUT, What
from dashi.runtime.select import open_device


def child() -> None:
    """Looks, and answers on stdout."""
    what, drivers = sys.argv[1], json.loads(sys.argv[2])
    # Drivers write to stdout as they like: they get stderr instead, and the answer goes out alone.
    answer = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    with contextlib.suppress(ImportError, ValueError, OSError):
        import resource

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    answer.write(STARTED)
    answer.flush()
    with driver_environment(drivers):
        report = _look(cast("What", what))
    answer.write(json.dumps(report))
    answer.close()


def _look(what: What) -> dict[str, Any]:
    report: dict[str, Any] = {"devices": [], "layers": [], "computed": {}}
    try:
        library, report["loader"] = vk.load_loader()
        base = vk.global_functions(library)
        report["loader_version"] = raw.version_text(raw.loader_version(base))
        report["layers"] = raw.layer_names(base)
        if what == "loader":
            return report
        instance = Instance(validation=False)
        try:
            infos = [info for _, info in instance.devices()]
        finally:
            instance.close()
    except DashiError as error:
        return {**report, "problem": error.what, "fix": error.fix}
    report["devices"] = [info.as_json() for info in infos]
    if what == "compute":
        report["computed"] = {info.spec: _computes(info.spec) for info in infos}
    return report


def _computes(spec: str) -> str:
    """Nothing, if a small kernel gives the right bits on this device; otherwise what went wrong."""
    x = np.arange(1000, dtype=np.float32)
    try:
        with open_device(spec, timeout=TIMEOUT, validation=False) as device:
            result = device.run("add", x, x[::-1].copy()).numpy()
    except KernelError:
        return ""  # a kernel without its binary is no fault of the device, and is reported as what it is
    except DashiError as error:
        return error.what
    return "" if np.array_equal(result, np.full(1000, 999, np.float32)) else "gives wrong results"
