"""Snapshots of a chain on devices: States behind stages as files, written in a thread beside the chain."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

from dashi.errors import InputError, suggestion
from dashi.io._files import require_writable
from dashi.io.arrays import write_arrays
from dashi.stream._device_stage import StageSnapshot
from dashi.stream._plan import StreamPlan
from dashi.stream._renewal import FirstLooks
from dashi.stream._side_band import SideBand, SideTask
from dashi.types import HostArray


class SnapshotFiles:
    """Files STAGE-STEP.npz in a folder, each written all or nothing. `stages` says how often, by the id of the stage.
    A disk that is full ends the run at the next snapshot, or at its end, with the error of that file."""

    def __init__(self, plan: StreamPlan, stages: Mapping[str, int], folder: Path | str | None) -> None:
        ids = [planned.stage.id for planned in plan.stages]
        for name, every in stages.items():
            if name not in ids:
                raise InputError(
                    f"`snapshots=` names the stage {name!r}, which there is not.",
                    f"{suggestion(name, ids)}name one of {', '.join(ids)}.",
                )
            if isinstance(every, bool) or not isinstance(every, int) or every < 1:  # pyright: ignore[reportUnnecessaryIsInstance] - callers' own
                raise InputError(f"`snapshots=` of {name!r} is {every!r}.", "pass a number of steps from 1 on.")
        if stages and folder is None:
            raise InputError("snapshots have no place.", "name a folder for them: `folder=`.")
        self._folder: Final = Path(folder or ".")
        if stages:
            require_writable(self._folder, folder=True)
        self._stages: Final = dict(stages)
        self._error: BaseException | None = None
        task = SideTask(0, 1, self._write, "snapshots")
        self._task: Final = task
        self._side: Final = SideBand([task] if stages else [], self._failed, threading.RLock())

    def settings(self, looks: FirstLooks) -> dict[str, StageSnapshot]:
        """What stages are told: each State once."""
        return {name: StageSnapshot(every, looks.once("snapshots", self._keep)) for name, every in self._stages.items()}

    def _keep(self, step: int, stage: str, values: Mapping[str, HostArray]) -> None:
        self._raise()
        self._side.show(self._task, step, (stage, values))

    def _write(self, step: int, shown: Any) -> None:
        stage, values = shown
        self._folder.mkdir(parents=True, exist_ok=True)
        write_arrays(self._folder / f"{stage}-{step:08d}.npz", values)

    def _failed(self, task: SideTask, step: int, error: BaseException) -> None:
        self._error = error

    def _raise(self) -> None:
        if self._error is not None:
            error, self._error = self._error, None
            raise error

    def __enter__(self) -> Self:
        self._side.start()
        return self

    def finish(self) -> None:
        """Returns when all files are written, or with the error of one."""
        self._side.stop(drop=False)
        for thread in self._side.threads:
            thread.join()
        self._raise()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._side.stop(drop=False)
        for thread in self._side.threads:
            thread.join()
