"""What every job does around its own work: places the device, opens the run folder, times its stages, keeps a trace,
certifies, and ends in order when Ctrl-C comes.

    job = Job(command="rollout", request=request, device=device, out=out, overwrite=overwrite, events=events)
    job.require_place()                                          # refused before anything is read
    with job.timed("encode", "reading"):
        ...                                                      # what is run
    with job.place() as placed, job.open_folder(settings) as folder:
        with job.timed("rollout", "rollout", steps, "steps") as advance:
            run, _ = until_interrupted(lambda: ...)              # as far as it came, if Ctrl-C was pressed
        digest = certify_folder(run, folder, operator, z0) if folder else None
        metrics = build_metrics(job.command, run, placed, job.stages, certificate=digest)
        ...                                                      # files; run_folder.close_run
    result = ...
    if run.stopped:
        raise Interrupted(result)
    return result
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Generator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from functools import wraps
from pathlib import Path
from typing import ParamSpec, TypeVar

from dashi.core.metrics._document import Stages
from dashi.core.metrics._placement import Placement, is_gpu, place
from dashi.core.rollouts._interrupt import deferred_interrupt
from dashi.core.rollouts.run import Run
from dashi.core.traces.queue import watch
from dashi.core.traces.trace import Trace, write_trace
from dashi.errors import DeviceNotFoundError, FileError, InputError, Interrupted, NoResultError
from dashi.io import _run_folder as run_folder
from dashi.io._files import require_writable
from dashi.io._paths import path_of
from dashi.io.metrics import Metrics
from dashi.lab._arguments import require_events, require_types
from dashi.lab.events import SILENT, Advance, Events
from dashi.report.live import LiveView
from dashi.runtime.device import Device

AnyPath = str | os.PathLike[str]
Given = ParamSpec("Given")
Result = TypeVar("Result")


@dataclass(frozen=True, kw_only=True)
class Request:
    """What every job can be asked besides its own work. A job's request is a frozen dataclass that adds to it."""

    allow_fallback: bool = False
    """Take the best device there is where the one asked for cannot be opened; the metrics say so."""
    require_gpu: bool = False
    """Refuse to run on anything but a GPU."""
    trace: AnyPath | None = None
    """A file for the trace of stages and device queues, for ui.perfetto.dev."""
    command_line: str = ""
    """The shell command that repeats the job, which its files tell; empty where Python asked for it."""

    def __post_init__(self) -> None:
        require_types(self)


@dataclass(frozen=True, kw_only=True, eq=False)
class Job:
    """One job under way: where it runs and leaves its files, who listens, and the clock of its stages. The clock runs
    from when the job is made."""

    command: str
    """The name of the job in files: `rollout`, `flow simulate`."""
    request: Request
    device: str | Device = "auto"
    """Where it computes: a name as `dashi.open` takes it, or an open device, which stays open."""
    out: Path | None = None
    resume: bool = False
    overwrite: bool = False
    events: Events = SILENT
    live: LiveView | None = None
    """Where the run is seen while it goes on."""
    stages: Stages = field(default_factory=Stages)

    def __post_init__(self) -> None:
        require_events(self.events)
        if self.live is not None and not isinstance(self.live, LiveView):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise InputError(f"`live=` is {self.live!r:.80}.", "pass a dashi.report.LiveView, or leave it away.")

    def require_place(self) -> None:
        """Refuses a run folder that could not be written, or that is not this job's to replace."""
        if self.out is None:
            if self.resume:
                raise _no_folder()
            return
        # First whose it is: whether a folder can be written is tried by writing to it.
        run_folder.require_ours(self.out, self.command, overwrite=self.overwrite)
        require_writable(self.out, folder=True)

    @contextmanager
    def place(self, queues: int = 1) -> Generator[Placement]:
        """The device, open, with so many compute queues if it is opened here; what happens on it is traced where the
        request asks for that. A trace is written at the end, whatever the end is."""
        with self._placed(queues) as placed:
            try:
                yield placed
            finally:
                if self.live is not None:
                    self.live.end()

    @contextmanager
    def _placed(self, queues: int) -> Generator[Placement]:
        asked = self.request
        if isinstance(self.device, Device):
            with self._traced(_on_open(self.device, require_gpu=asked.require_gpu)) as placed:
                yield placed
        else:
            with (
                place(
                    self.device, allow_fallback=asked.allow_fallback, require_gpu=asked.require_gpu, queues=queues
                ) as opened,
                self._traced(opened) as placed,
            ):
                yield placed

    @contextmanager
    def place_part(self, part: str, name: str) -> Generator[Placement]:
        """The device of a part of the work (decode, fft), within `place`: open, and traced as that of the job."""
        asked = self.request
        with place(name, part=part, allow_fallback=asked.allow_fallback, require_gpu=asked.require_gpu) as placed:
            trace = self.stages.trace
            with watch(placed.device, trace, part) if trace else nullcontext():
                yield placed

    @contextmanager
    def open_folder(
        self, settings: Mapping[str, object] | None = None, *, files: Collection[str] = run_folder.RESULTS
    ) -> Generator[Path | None]:
        """The run folder to write in, or None where none was asked for. `settings` decide the results, `files` are the
        names that the job may leave."""
        line, overwrite = self.request.command_line, self.overwrite
        with run_folder.open_run(
            self.out, self.resume, self.command, line, files=files, settings=settings, overwrite=overwrite
        ) as folder:
            yield folder

    @contextmanager
    def timed(self, stage: str, title: str = "", total: int | None = None, unit: str = "") -> Generator[Advance]:
        """A stage of `StageSeconds`, with its progress under a title."""
        with self.stages.time(stage), self.events.progress(title or stage, total, unit) as advance:
            if self.live is None or not unit:
                yield advance
                return
            tell = self.live.begin(title or stage, total, unit)

            def both(amount: int) -> None:
                tell(amount)
                advance(amount)

            yield both

    @contextmanager
    def _traced(self, placed: Placement) -> Generator[Placement]:
        if self.request.trace is None:
            yield placed
            return
        file = Path(self.request.trace)
        require_writable(file)
        self.stages.trace = trace = Trace()
        try:
            with watch(placed.device, trace):
                yield placed
        finally:
            self.stages.trace = None
            write_trace(file, trace.spans)


def as_path(path: AnyPath | None, name: str = "out") -> Path | None:
    """A path of the caller's, passed for the parameter `name`; None stays None."""
    return None if path is None else path_of(name, path)


def until_interrupted(work: Callable[[], Result]) -> tuple[Result, bool]:
    """The result of work, and whether Ctrl-C came: then it is what was finished, which the job keeps before it ends.
    Raises Interrupted where that is nothing."""
    try:
        return work(), False
    except Interrupted as stop:
        if stop.partial is None:
            raise
        return stop.partial, True


def interrupted_with(kind: type[Result]) -> Callable[[Callable[Given, Result]], Callable[Given, Result]]:
    """A job whose `Interrupted` has a partial result of the job itself, or none: never that of a smaller rollout,
    simulation or evaluation that it was at when Ctrl-C came."""

    def guarded(job: Callable[Given, Result]) -> Callable[Given, Result]:
        @wraps(job)
        def run(*args: Given.args, **kwargs: Given.kwargs) -> Result:
            try:
                return job(*args, **kwargs)
            except Interrupted as stop:
                if stop.partial is None or (isinstance(stop.partial, kind) and not _without_job(stop.partial)):
                    raise
                raise Interrupted from stop

        return run

    return guarded


def _without_job(result: object) -> bool:
    """Whether it is the run of a smaller rollout, that no job finished."""
    return isinstance(result, Run) and result.job is None


@contextmanager
def uninterruptible() -> Generator[None]:
    """What is written within is written to its end before Ctrl-C counts; a second one counts at once."""
    with deferred_interrupt() as interrupt:
        yield
    if interrupt.asked:
        raise KeyboardInterrupt


@contextmanager
def to_go_on(folder: Path | None) -> Generator[None]:
    """What cannot be written, on a full disk for instance, ends a run that can go on: the error says that too."""
    try:
        yield
    except FileError as error:
        if folder is None or not (folder / run_folder.CHECKPOINT).is_file() or "`resume=" in error.fix:
            raise
        raise FileError(error.what, f"{error.fix.rstrip('.')}; then go on with `resume=True`.") from error


def require_results(placed: Placement) -> None:
    """Refuses the null device, for jobs that read what was computed."""
    if placed.device.info.type == "null":
        raise NoResultError("the null device computes nothing.", "use `device=` auto, cpu or vulkan:0.")


def require_gpu_used(request: Request, metrics: Metrics) -> None:
    """Refuses a run that asked for a GPU and of which no step was executed there."""
    if request.require_gpu and not metrics.gpu_hotloop_active:
        raise DeviceNotFoundError("no step was executed on a GPU.", "look at the metrics: they say what ran where.")


def _on_open(device: Device, *, require_gpu: bool) -> Placement:
    info = device.info
    if require_gpu and not is_gpu(info):
        raise DeviceNotFoundError(
            f"a GPU is required, and the open device is {info.name!r} ({info.type}).",
            "open a GPU, or leave `require_gpu=True` away.",
        )
    return Placement(device, info.spec)


def _no_folder() -> FileError:
    return FileError("checkpoints are kept in a run folder.", "name one with `out=`.")
