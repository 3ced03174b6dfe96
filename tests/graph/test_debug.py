"""Debug switches: none of them changes a bit, and each shows what it says."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import dashi
from dashi import graph as dg
from dashi.errors import FileError, HazardError, InputError
from dashi.runtime._vulkan_device import VulkanDevice
from dashi.runtime.device import Device
from dashi.types import HostArray

X: dict[str, HostArray] = {"x": np.random.default_rng(5).standard_normal((4, 8)).astype(np.float32)}


def chain() -> dg.Graph:
    """Steps that wait for one another, with results that stay."""
    b = dg.Builder("chain")
    h = b.input("x", (4, 8))
    for _ in range(3):
        h = dg.softmax(h @ b.param(f"w{_}", np.eye(8, dtype=np.float32) * 2))
    return b.graph(y=h)


@pytest.mark.parametrize(
    "debug",
    [dg.Debug(), dg.Debug(barriers="all"), dg.Debug(record_again=True), dg.Debug(check=True), dg.Debug(timing=True)],
)
def test_no_switch_changes_a_bit(device: Device, debug: dg.Debug) -> None:
    expected = dg.evaluate(chain(), X)["y"].tobytes()
    with dg.compile(chain(), device, debug=debug) as pipeline:
        assert pipeline.report().debug == debug.names
        assert not pipeline.report().unsafe
        for _ in range(2):
            assert pipeline.dispatch(X)["y"].tobytes() == expected
            assert pipeline.dispatch_resident(X)["y"].tobytes() == expected
            assert pipeline.dispatch_batched([X] * 5)[4]["y"].tobytes() == expected
            assert pipeline.dispatch_timed(X)[0]["y"].tobytes() == expected


def test_barriers_everywhere_and_nowhere(vulkan: VulkanDevice) -> None:
    def barriers(debug: dg.Debug) -> tuple[int, int, bool]:
        with dg.compile(chain(), vulkan, debug=debug) as pipeline:
            report = pipeline.report()
            return report.barriers, report.dispatches, "UNSAFE" in str(report)

    auto, dispatches, _ = barriers(dg.Debug())
    assert auto > 0
    assert barriers(dg.Debug(barriers="all"))[0] >= auto
    assert barriers(dg.Debug(barriers="none")) == (2, dispatches, True)  # for what comes in and goes out
    with pytest.raises(HazardError):
        dg.compile(chain(), vulkan, debug=dg.Debug(barriers="none", check=True))
    # Where validation is on it sees what is missing, as it should.
    assert all("SYNC-HAZARD" in message for message in vulkan.instance.messages)
    vulkan.instance.messages.clear()


def test_every_run_is_recorded_anew() -> None:
    with dashi.open("null") as null:
        for again, expected in ((False, 0), (True, 6)):
            with dg.compile(chain(), null, debug=dg.Debug(record_again=again)) as pipeline:
                programs: list[object] = []
                null.watcher = lambda program, programs=programs: programs.append(program) or program
                for _ in range(3):
                    pipeline.dispatch_into(X, {})
                    pipeline.dispatch_resident(X, [])
                null.watcher = None
                assert len(programs) == (expected or 1)  # results that nobody reads are another recording


def test_steps_are_timed_on_the_device(device: Device) -> None:
    with dg.compile(chain(), device, debug=dg.Debug(timing=True)) as pipeline:
        pipeline.dispatch(X)
        labels = [span.label for span in pipeline.step_times()]
        assert labels[0] == "feed"
        assert sum("softmax" in label for label in labels) == 3
        pipeline.dispatch_resident(X)
        assert len(pipeline.step_times()) == len(labels)
    with dg.compile(chain(), device) as pipeline, pytest.raises(InputError, match="are not timed"):
        pipeline.step_times()


def test_the_schedule_is_written_to_a_file(vulkan: Device, tmp_path: Path) -> None:
    file = tmp_path / "schedule.txt"
    with dg.compile(chain(), vulkan, debug=dg.Debug(dump=file)):
        assert "softmax" in file.read_text()
    with pytest.raises(FileError, match="cannot be written"):
        dg.compile(chain(), vulkan, debug=dg.Debug(dump=file / "schedule.txt"))


def test_the_environment_sets_switches(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with dashi.open("null") as null:
        monkeypatch.setenv("DASHI_GRAPH_DEBUG", f"barriers=all, record_again,check,timing,dump={tmp_path / 'a'}")
        with dg.compile(chain(), null) as pipeline:
            words = ("barriers=all", "record_again", "check", "timing", f"dump={tmp_path / 'a'}")
            assert pipeline.report().debug == words
        with dg.compile(chain(), null, debug=dg.Debug()) as pipeline:
            assert pipeline.report().debug == ()
        for word in ("chek", "barriers=some", "dump=", "check=1"):
            monkeypatch.setenv("DASHI_GRAPH_DEBUG", word)
            with pytest.raises(InputError, match="which is no switch"):
                dg.compile(chain(), null)
    with pytest.raises(InputError, match="barriers cannot be 'some'"):
        dg.Debug(barriers="some")  # pyright: ignore[reportArgumentType]
