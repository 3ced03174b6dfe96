"""Looking at drivers from a child process, so that one which crashes or hangs takes nobody with it."""

from __future__ import annotations

import contextlib
import hashlib
import json
import logging
import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final, Literal, cast

from dashi._cache import cache_folder, read_cache, write_cache
from dashi.kernels.abi import Limits
from dashi.runtime import _vk_instance as raw
from dashi.runtime._drivers import driver_files, nvidia_without_file
from dashi.runtime.info import DeviceInfo, Heap, MemoryType, QueueFamily

What = Literal["loader", "look", "compute"]
TIMEOUT: Final = 60.0
_INSIDE: Final = "DASHI_PROBE"
STARTED: Final = "started\n"
_CHILD: Final = "from dashi.runtime._probe_trial import child; child()"
_log = logging.getLogger("dashi")


@dataclass(frozen=True)
class Probe:
    """What a child process found.

    `unsafe`: a driver crashed or hung, and would have taken this process with it. `computed` says of each device, by
    its spec, what went wrong when a kernel was tried on it: nothing, if the text is empty.
    """

    devices: tuple[DeviceInfo, ...] = ()
    problem: str = ""
    fix: str = ""
    unsafe: bool = False
    loader: str = ""
    loader_version: str = ""
    layers: tuple[str, ...] = ()
    computed: Mapping[str, str] = field(default_factory=dict[str, str])

    @property
    def validation(self) -> bool:
        """Whether the validation layers are installed."""
        return raw.VALIDATION_LAYER in self.layers

    def as_json(self) -> dict[str, Any]:
        """A JSON-ready dictionary."""
        return {**asdict(self), "devices": [d.as_json() for d in self.devices]}


def probe(what: What = "look", drivers: Sequence[str] | None = None, timeout: float = TIMEOUT) -> Probe:
    """Looks from a child process: at the `loader` alone, at the devices of these drivers (`look`; None means all that
    the loader finds), or also at whether a kernel runs on each of them (`compute`)."""
    command = [sys.executable, "-c", _CHILD, what, json.dumps(drivers if drivers is None else list(drivers))]
    paths = [str(Path(__file__).parents[2]), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = {**os.environ, _INSIDE: "1", "PYTHONPATH": os.pathsep.join(paths)}
    try:
        done = subprocess.run(
            command, env=environment, capture_output=True, stdin=subprocess.DEVNULL, timeout=timeout, check=False
        )
    except subprocess.TimeoutExpired:
        return Probe(problem=f"did not answer within {timeout:g} s", unsafe=True)
    except OSError as error:
        return Probe(problem=f"could not be probed: {error}")
    output = done.stdout.decode(errors="replace")
    said = (done.stderr.decode(errors="replace").strip().splitlines() or [""])[-1]
    if not output.startswith(STARTED):
        return Probe(problem=f"could not be probed: {said or f'exit code {done.returncode}'}")
    if done.returncode:
        return Probe(problem=_ending(done.returncode, said), unsafe=True)
    return _report(json.loads(output.removeprefix(STARTED)))


def probe_each(timeout: float = TIMEOUT) -> dict[str, Probe]:
    """One probe per driver, so that a bad one does not hide the others; the verdict is remembered."""
    names = drivers()
    # Each child keeps a core busy for a moment; two at a time is as fast as it gets on a small machine.
    with ThreadPoolExecutor(2) as pool:
        running = {name: pool.submit(probe, "look", [name], timeout) for name in names}
        probes = {name: result.result() for name, result in running.items()}
    _remember(probes)
    return probes


def drivers() -> list[str]:
    """The drivers of this machine: the driver files that can be read, and the library of one that has no file."""
    library = nvidia_without_file()
    return [*(f.path for f in driver_files() if not f.problem), *([library] if library else [])]


def safe_drivers(timeout: float = TIMEOUT) -> list[str] | None:
    """The drivers that neither crash nor hang, or None where all are well and nothing need be left out.

    Tried once in a child process, then remembered on disk until a driver changes; `dashi doctor` tries again.
    """
    # A program packed into one file is its own interpreter: starting it again would start the program.
    if os.environ.get(_INSIDE) or not sys.executable or getattr(sys, "frozen", False):
        return None
    verdict = _remembered()
    if verdict is None:
        if not drivers() or not probe("look", None, timeout).unsafe:
            _remember({})
            return None
        _log.warning("a Vulkan driver crashed or hung in a probe; finding out which")
        verdict = _verdict(probe_each(timeout))
    for driver, problem in verdict.bad.items():
        _log.warning("the Vulkan driver %s is left out: it %s; `dashi doctor` tries it again", driver, problem)
    return verdict.good


def _memory() -> Path:
    """The file that remembers the verdict on the present drivers; its name changes when one of them does."""
    marks = [(name, _mark(name), library, _mark(library)) for name, library in _named()]
    digest = hashlib.sha256(repr(marks).encode()).hexdigest()
    return cache_folder() / "probes" / f"drivers-{digest[:32]}.bin"


def _named() -> list[tuple[str, str]]:
    library = nvidia_without_file()
    return [*((f.path, f.library) for f in driver_files()), *([(library, library)] if library else [])]


def _mark(path: str) -> tuple[int, int]:
    with contextlib.suppress(OSError):
        status = Path(path).stat()
        return status.st_size, status.st_mtime_ns
    return 0, 0


@dataclass(frozen=True)
class _Verdict:
    """Drivers that crash or hang and how, and those that are loaded instead of all: None where none is bad."""

    good: list[str] | None
    bad: dict[str, str]


def _remember(probes: Mapping[str, Probe]) -> None:
    write_cache(_memory(), json.dumps(asdict(_verdict(probes))).encode())


def _remembered() -> _Verdict | None:
    """What was found before; None where that is not to be read."""
    try:
        document: Any = json.loads(read_cache(_memory()))
        good, bad = document["good"], document["bad"]
    except (ValueError, TypeError, LookupError, RecursionError):
        return None
    if not isinstance(bad, dict) or not (good is None or isinstance(good, list)):
        return None
    problems, names = cast("dict[str, Any]", bad), cast("list[Any] | None", good)
    if not all(isinstance(text, str) for text in (*problems.values(), *(names or ()))):
        return None
    return _Verdict(names, problems)


def _verdict(probes: Mapping[str, Probe]) -> _Verdict:
    bad = {driver: p.problem for driver, p in probes.items() if p.unsafe}
    return _Verdict([driver for driver in probes if driver not in bad] if bad else None, bad)


def _ending(code: int, said: str) -> str:
    if code < 0:
        with contextlib.suppress(ValueError):
            return f"crashed with {signal.Signals(-code).name}"
        return f"crashed with signal {-code}"
    return f"ended the process with exit code {code}" + (f" ({said})" if said else "")


def _report(data: dict[str, Any]) -> Probe:
    devices = tuple(_info(d) for d in data.pop("devices"))
    return Probe(devices, layers=tuple(data.pop("layers")), **data)


def _info(data: dict[str, Any]) -> DeviceInfo:
    """The inverse of `DeviceInfo.as_json`."""
    parts: dict[str, Any] = {
        "features": frozenset(data["features"]),
        "extensions": frozenset(data["extensions"]),
        "limits": Limits(**data["limits"]),
        "heaps": tuple(Heap(**heap) for heap in data["heaps"]),
        "memory_types": tuple(MemoryType(**kind) for kind in data["memory_types"]),
        "queues": tuple(QueueFamily(**family) for family in data["queues"]),
    }
    return DeviceInfo(**{**data, **parts})
