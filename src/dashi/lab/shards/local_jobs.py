"""A job in several processes of this machine: each runs one shard, and what they leave is merged."""

from __future__ import annotations

import contextlib
import json
import pickle
import queue
import signal
import subprocess
import threading
from collections.abc import Generator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from dashi.errors import DashiError, InputError, Interrupted, ShardError
from dashi.io._files import require_writable
from dashi.io._parts import remove
from dashi.io._run_mark import as_settings
from dashi.io._shard_standing import is_of_another_run
from dashi.io._shards import Shard
from dashi.io._whole_folder import require_replaceable
from dashi.lab import evaluations, simulations
from dashi.lab._child_processes import error_of, start_child
from dashi.lab._evaluation_files import settings_of as evaluation_settings
from dashi.lab._job import AnyPath, as_path
from dashi.lab._seeds import seed_count
from dashi.lab.evaluation_plans import check_evaluation, chosen
from dashi.lab.events import SILENT, Events
from dashi.lab.shards._shard_job import GRACE, AnyRequest, ShardJob
from dashi.lab.shards.merging import Merged, merge, owner_of
from dashi.lab.simulation_setup import SimulateRequest, check_simulation, settings_of, states_of, strides_of

MOST: Final = 4096
"""Processes at the same time."""


def run_jobs(
    request: AnyRequest, jobs: int, *, out: AnyPath, device: str = "auto", overwrite: bool = False,
    events: Events = SILENT,
) -> Merged:  # fmt: skip
    """Runs a job as `jobs` shards, each in a process of its own, and merges them into `out`: the bytes of the job in
    one process. Where there is less to share, there are fewer processes.

    The shards lie beside `out`, in `OUT-shards`, until they are merged. An error of one stops the others, and is raised
    with its shard. Ctrl-C stops all of them, and raises Interrupted. Asked again, those that are finished are not run
    again, and the others go on. What the shards of another run left there is replaced with `overwrite` alone.
    """
    place = as_path(out)
    if place is None:
        raise InputError("shards are merged into a folder.", "name it with `out=`.")
    _check(request, jobs)
    command, settings, total = _whole(request, place)
    owner = owner_of(command, as_settings(settings), overwrite=overwrite)
    require_replaceable(place, owner)
    base = place.with_name(f"{place.name}-shards")
    require_writable(base, folder=True)
    count = jobs if total is None else min(jobs, total)
    shards = [Shard(index, count) for index in range(1, count + 1)]
    work: list[ShardJob] = []
    for shard in shards:
        folder, own = base / f"{shard.index}-of-{count}", {**settings, "shard": str(shard)}
        # Those of this run are kept: finished ones are not run again, and the others go on.
        anew = overwrite and is_of_another_run(folder, command, own)
        work.append(ShardJob(replace(request, shard=shard), device, folder, overwrite=anew))
    events.remark(f"{count} shard(s) in processes of their own, in {base}")
    _run(work, events)
    merged = merge([job.out for job in work], out=place, overwrite=overwrite, events=events)
    for job in work:
        with contextlib.suppress(OSError):
            remove(job.out)
    with contextlib.suppress(OSError):
        base.rmdir()  # what was in it before stays
    return merged


def _check(request: AnyRequest, jobs: int) -> None:
    if type(jobs) is not int or not 1 <= jobs <= MOST:
        raise InputError(f"`jobs=` is {jobs!r}.", f"use 1 to {MOST} processes.")
    if request.shard is not None:
        raise InputError("`jobs=` makes shards itself, and `shard=` names one.", "leave one of them away.")
    if request.trace is not None:
        raise InputError("`trace=` is of one process, and `jobs=` starts several.", "leave one of them away.")
    if isinstance(request, SimulateRequest) and request.states_every is not None:
        raise InputError(
            "`jobs=` makes shards, and a shard keeps no states on the way.",
            "leave `states_every=` away, or run the whole without `jobs=`.",
        )
    if isinstance(request, SimulateRequest) and request.observers:
        raise InputError("`observers=` look at one process, and `jobs=` starts several.", "leave one of them away.")


def _whole(request: AnyRequest, out: Path) -> tuple[str, dict[str, object], int | None]:
    """The command, what decides the results of the whole, and how much there is to share, where that is known."""
    if isinstance(request, SimulateRequest):
        check_simulation(request, out)
        every = strides_of(request, out)
        if request.states is None and not request.from_file:
            return simulations.COMMAND, settings_of(request, every, None), seed_count(request.seeds)
        states = states_of(request)
        return simulations.COMMAND, settings_of(request, every, states), len(states)
    check_evaluation(request)
    training = evaluations.training_of(request)
    what = chosen(request, training)
    total = None if request.source is not None else seed_count(what.simulated_seeds)
    return evaluations.COMMAND, evaluation_settings(request, what), total


def _run(work: Sequence[ShardJob], events: Events) -> None:
    """Runs all shards at the same time; none of their processes is left behind, whatever ends this."""
    messages: queue.SimpleQueue[tuple[int, dict[str, Any]]] = queue.SimpleQueue()
    first = work[0].request
    total = first.steps * len(work) if isinstance(first, SimulateRequest) else None
    with _started(work, messages) as children, events.progress("shards", total, "steps") as advance:
        remarked, running = set[str](), set(range(len(work)))
        failure: DashiError | None = None
        while running:
            number, message = messages.get()
            shard = work[number].request.shard
            if message.get("unit") == "steps":
                advance(message["advance"])
            for line in message.get("remark", ()):
                if line not in remarked:
                    remarked.add(line)
                    events.remark(line)
            if "end" not in message:
                continue
            running.discard(number)
            error = _ending(str(shard), message)
            if error is None:
                events.remark(f"shard {shard} is finished")
            elif failure is None and not isinstance(error, _Stopped):
                failure = error
                for child in children:
                    _ask_to_stop(child)
        if failure is not None:
            raise failure


class _Stopped(DashiError):
    """A shard that was asked to stop."""


def _ending(shard: str, message: dict[str, Any]) -> DashiError | None:
    """The error of a shard, with its name; None where it was finished."""
    if message["end"] == "done":
        return None
    if message["end"] == "stopped":
        return _Stopped(f"shard {shard} was stopped.", "run the same again: it goes on.")
    if message["end"] == "failed":
        return error_of(message["kind"], f"shard {shard}: {message['what']}", message["fix"])
    return ShardError(
        f"the process of shard {shard} {message['how']}, before its work was done.",
        "run the same again: shards that are finished are not run again; use fewer `jobs=` where memory is short.",
    )


@contextlib.contextmanager
def _started(
    work: Sequence[ShardJob], messages: queue.SimpleQueue[tuple[int, dict[str, Any]]]
) -> Generator[list[subprocess.Popen[bytes]]]:
    """The processes of all shards, and threads that hand on what they say."""
    children: list[subprocess.Popen[bytes]] = []
    listeners: list[threading.Thread] = []
    try:
        for number, job in enumerate(work):
            children.append(_start(job, len(work)))
            listeners.append(threading.Thread(target=_listen, args=(number, children[-1], messages), daemon=True))
            listeners[-1].start()
        yield children
    except KeyboardInterrupt:
        raise Interrupted from None
    finally:
        _stop(children)
        for listener in listeners:
            listener.join()


def _start(job: ShardJob, jobs: int) -> subprocess.Popen[bytes]:
    try:
        packed = pickle.dumps(job)
    except Exception as error:  # whatever an object of the caller's raises
        raise InputError(f"the request cannot be handed to another process: {error}.", "pass plain values.") from error
    child = start_child(("-P", "-m", "dashi.lab.shards._child"), jobs, failed=ShardError)
    assert child.stdin is not None
    with contextlib.suppress(BrokenPipeError):  # it ended at once, which whoever listens is told
        child.stdin.write(packed)
        child.stdin.flush()
    return child


def _listen(
    number: int, child: subprocess.Popen[bytes], messages: queue.SimpleQueue[tuple[int, dict[str, Any]]]
) -> None:
    """Hands on what a process says; how it ended, where it does not say so itself."""
    assert child.stdout is not None
    ended = False
    with child.stdout as lines:
        for line in lines:
            with contextlib.suppress(ValueError):
                message: dict[str, Any] = json.loads(line)
                ended = ended or "end" in message
                messages.put((number, message))
    code = child.wait()
    if not ended:
        messages.put((number, {"end": "gone", "how": _how(code)}))


def _how(code: int) -> str:
    if code >= 0:
        return f"ended with exit code {code}"
    with contextlib.suppress(ValueError):
        return f"was ended by {signal.Signals(-code).name}"
    return f"was ended by signal {-code}"


def _ask_to_stop(child: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(OSError):
        assert child.stdin is not None
        child.stdin.close()


def _stop(children: Sequence[subprocess.Popen[bytes]]) -> None:
    """Stops processes that run: each has the time to keep what it did; a second Ctrl-C ends them."""
    try:
        for child in children:
            _ask_to_stop(child)
        for child in children:
            with contextlib.suppress(subprocess.TimeoutExpired):
                child.wait(GRACE)
    finally:
        for child in children:
            if child.poll() is None:
                child.kill()
                child.wait()
