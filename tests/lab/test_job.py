"""What every job does around its own work."""

from __future__ import annotations

from pathlib import Path

import pytest

from dashi.core.traces.file import read_trace
from dashi.errors import DeviceNotFoundError, FileError, Interrupted, NoResultError
from dashi.lab._capacity import size_text
from dashi.lab._job import (
    Job,
    Request,
    interrupted_with,
    require_results,
    to_go_on,
    uninterruptible,
    until_interrupted,
)
from dashi.runtime._cpu_device import CpuDevice


def test_a_device_named_is_closed_and_one_that_was_open_stays_open() -> None:
    with Job(command="rollout", request=Request(), device="cpu").place() as placed:
        assert placed.requested == "cpu"
    with CpuDevice() as device:
        with Job(command="rollout", request=Request(), device=device).place() as placed:
            assert placed.device is device
        assert device.run("add", [1.0], [2.0]).numpy() == [3.0]


def test_an_open_device_that_is_no_gpu_is_refused_where_one_is_required() -> None:
    with CpuDevice() as device:
        job = Job(command="rollout", request=Request(require_gpu=True), device=device)
        with pytest.raises(DeviceNotFoundError, match="`require_gpu=True`"), job.place():
            pass


def test_a_trace_is_written_whatever_the_end_is(tmp_path: Path) -> None:
    job = Job(command="rollout", request=Request(trace=tmp_path / "trace"), device="cpu")
    with pytest.raises(ZeroDivisionError), job.place(), job.timed("rollout"):
        raise ZeroDivisionError
    assert "rollout" in {span.name for span in read_trace(tmp_path / "trace")}


def test_going_on_without_a_folder_is_refused() -> None:
    with pytest.raises(FileError, match="name one with `out=`"):
        Job(command="rollout", request=Request(), resume=True).require_place()


def test_interrupted_work_gives_what_was_finished_and_nothing_is_an_interrupt() -> None:
    def stop(partial: object) -> object:
        raise Interrupted(partial)

    assert until_interrupted(lambda: 3) == (3, False)
    assert until_interrupted(lambda: stop("half")) == ("half", True)
    with pytest.raises(Interrupted):
        until_interrupted(lambda: stop(None))


def test_a_job_is_interrupted_with_its_own_result_or_with_none() -> None:
    @interrupted_with(str)
    def job(partial: object) -> str:
        raise Interrupted(partial)

    for partial, left in (("half", "half"), (None, None), (3, None)):
        with pytest.raises(Interrupted) as stop:
            job(partial)
        assert stop.value.partial == left


def test_the_command_line_is_in_the_mark_of_the_run_folder(tmp_path: Path) -> None:
    job = Job(command="rollout", request=Request(command_line="dashi rollout --x"), out=tmp_path / "run")
    job.require_place()
    with job.open_folder({"steps": 1}) as folder:
        assert folder == tmp_path / "run"
    assert "dashi rollout --x" in "".join(path.read_text() for path in (tmp_path / "run").iterdir())


def test_a_full_disk_ends_a_run_that_can_go_on_and_says_so(tmp_path: Path) -> None:
    (tmp_path / "checkpoint.npz").touch()
    with pytest.raises(FileError, match="make room; then go on with `resume=True`"), to_go_on(tmp_path):
        raise FileError("the disk is full.", "make room.")


def test_the_null_device_has_no_results() -> None:
    with (
        Job(command="demo", request=Request(), device="null").place() as placed,
        pytest.raises(NoResultError, match="use `device=` auto, cpu or vulkan:0"),
    ):
        require_results(placed)


def test_what_is_uninterruptible_is_finished_before_ctrl_c_counts() -> None:
    import signal

    done: list[int] = []
    with pytest.raises(KeyboardInterrupt), uninterruptible():  # noqa: PT012 - the signal comes within
        signal.raise_signal(signal.SIGINT)
        done.append(1)
    assert done == [1]


def test_sizes_are_as_people_write_them() -> None:
    assert [size_text(n) for n in (512, 1 << 34, 3 * 1 << 20)] == ["512 B", "16 GiB", "3 MiB"]
