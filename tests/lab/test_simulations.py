"""Claims about simulations as a job: what they say, refuse, keep, and go on from."""

from __future__ import annotations

import signal
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dashi import lab
from dashi.core.rollouts.run import Run
from dashi.errors import FileError, InputError, Interrupted
from dashi.flow import Flow, Stochastic, ensemble, to_field
from dashi.flow._trajectory import TrajectoryWriter
from dashi.flow.simulation import simulate as solve
from dashi.io._run_folder import CHECKPOINT
from dashi.io._run_reading import is_unfinished
from dashi.lab._flow_windows import faster_choice
from dashi.runtime._cpu_device import CpuDevice
from dashi.runtime.info import DeviceInfo

FLOW = Flow(n=16, nu=0.01)


def request(**more: Any) -> lab.SimulateRequest:
    asked: dict[str, Any] = {"flow": FLOW, "steps": 8, "initial_options": {"peak": 2}, "host_fft": True, **more}
    return lab.SimulateRequest(**asked)


def test_every_part_of_a_simulation_is_told(here: Path, heard: Any) -> None:
    lab.simulate(request(seeds=(0, 1, 2), steps=4), device="cpu", out="run", events=heard)
    assert heard.parts == [("initial conditions", 3, 3), ("preparing", None, 0), ("flow", 4, 4), ("writing", None, 0)]
    assert heard.remarks[0].startswith("4 steps of 16 x 16, float32, on NumPy")


def test_nobody_has_to_listen(capfd: pytest.CaptureFixture[str]) -> None:
    run = lab.simulate(request(), device="cpu")
    assert (run.steps, run.folder, run.stopped) == (8, None, False)
    assert capfd.readouterr() == ("", "")


def test_an_open_device_stays_open() -> None:
    with CpuDevice() as device:
        for _ in range(2):
            assert lab.simulate(request(), device=device).steps == 8


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"steps": 0}, r"`steps=` is 0. Fix: use 1 or more."),
        ({"hash_every": -1}, r"`hash_every=` is -1. Fix: use 1 or more, or 0 for never."),
        ({"frame_every": 2}, r"`frame_every=` writes frames to a run folder. Fix: name it with `out=`"),
        ({"fields": ("vortcity",)}, r"there is no field 'vortcity'. Fix: did you mean vorticity"),
        ({"seeds": ()}, r"`seeds=` is \[\]. Fix: name at least one seed"),
        ({"seeds": (3, 3)}, r"`seeds=` is \[3, 3\]."),
        ({"seeds": range(10**30)}, r"members of 16 x 16 points are .* GiB. Fix: use fewer"),
        ({"flow": Flow(n=16, forcing=Stochastic()), "seeds": (1, 3)}, r"takes seeds that follow each other"),
        ({"flow": Flow(n=16, forcing=Stochastic(seed=7)), "seeds": (1,)}, r"the forcing has the seed 7"),
        ({"initial": "w.npy"}, r"go with a named initial condition. Fix: leave `initial_options=`"),
    ],
)
def test_what_cannot_be_meant_is_told_before_the_work(
    asked: dict[str, Any], said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dashi.lab.simulations.solve", pytest.fail)
    with pytest.raises(InputError, match=said):
        lab.simulate(request(**asked), device="cpu")


def test_a_seed_decides_the_kicks_too() -> None:
    forced = Flow(n=16, nu=0.01, forcing=Stochastic(rate=1.0))
    pair = lab.simulate(request(flow=forced, seeds=(4, 5), hash_every=8), device="cpu")
    alone = lab.simulate(request(flow=forced, seeds=(5,), hash_every=8), device="cpu")
    np.testing.assert_array_equal(pair.state[1], alone.state[0])


def test_a_run_in_memory_goes_on_as_if_never_ended() -> None:
    # 7 is on no stride: its hash and look are those of an end, and the run that goes on has none there.
    part = lab.simulate(request(steps=7, hash_every=2, look_every=2), device="cpu")
    assert [h.step for h in part.hashes] == [2, 4, 6, 7]
    whole = lab.simulate(request(steps=12, hash_every=2, look_every=2), device="cpu")
    more = part.resume(12)
    assert more.hashes == whole.hashes
    assert [look.step for look in more.diagnostics] == [look.step for look in whole.diagnostics]
    with pytest.raises(InputError, match=r"7 steps are done already, 7 asked for. Fix: ask for more with `steps=`"):
        part.resume(7)


def test_a_finished_run_goes_on_in_its_folder(here: Path) -> None:
    strides = {"frame_every": 4, "hash_every": 4, "look_every": 2}
    part = lab.simulate(request(steps=8, **strides), device="cpu", out="a")
    more = part.resume(16)
    assert (more.folder, is_unfinished(here / "a")) == (Path("a"), False)
    whole = lab.simulate(request(steps=16, **strides), device="cpu", out="b")
    names = [sorted(str(p.relative_to(here / x)) for p in (here / x).rglob("*")) for x in ("a", "b")]
    assert names[0] == names[1]
    for name in names[0]:
        if "/c/" in name and (here / "a" / name).is_file():  # chunks of fields.zarr
            assert (here / "a" / name).read_bytes() == (here / "b" / name).read_bytes(), name
    assert more.hashes == whole.hashes


def test_a_run_that_goes_on_and_is_killed_at_once_can_go_on(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    part = lab.simulate(request(steps=8, frame_every=4), device="cpu", out="a")

    class Killed(BaseException):
        pass

    def kill(*_: Any, **__: Any) -> None:
        raise Killed

    with monkeypatch.context() as during:
        during.setattr("dashi.lab.simulations.solve", kill)
        with pytest.raises(Killed):
            part.resume(16)
    assert (here / "a" / CHECKPOINT).is_file()
    assert lab.simulate(request(steps=16, frame_every=4), device="cpu", out="a", resume=True).steps == 16


@pytest.mark.parametrize("frame_every", [0, 2])
def test_ctrl_c_gives_the_run_so_far_which_its_folder_keeps(
    here: Path, monkeypatch: pytest.MonkeyPatch, frame_every: int
) -> None:
    def pressing(*words: Any, **options: Any) -> Any:
        progress = options.pop("progress")

        def advance(amount: int) -> None:
            progress(amount)
            signal.raise_signal(signal.SIGINT)

        return solve(*words, progress=advance, **options)

    with monkeypatch.context() as during:
        during.setattr("dashi.core.rollouts.rollout.BLOCK_US", 0.0)  # blocks of one step
        during.setattr("dashi.lab.simulations.solve", pressing)
        with pytest.raises(Interrupted) as stop:
            lab.simulate(request(steps=8, frame_every=frame_every), device="cpu", out="a")
    partial = stop.value.partial
    assert isinstance(partial, Run)
    assert partial.stopped
    assert 0 < partial.steps < 8
    assert (here / "a" / CHECKPOINT).is_file()
    assert partial.resume(8).steps == 8


def test_states_and_files_are_starts(here: Path) -> None:
    states = ensemble(FLOW, "random", [3, 4], peak=2)
    named = lab.simulate(request(seeds=(3, 4), hash_every=8), device="cpu")
    given = lab.simulate(request(states=states, initial_options={}, hash_every=8), device="cpu", out="s")
    assert given.hashes == named.hashes
    np.save("w.npy", to_field(states))
    read = lab.simulate(request(initial="w.npy", initial_options={}), device="cpu")
    np.testing.assert_allclose(read.state, named.state, atol=1e-4)
    with pytest.raises(FileError, match="other settings"):
        lab.simulate(request(states=states[:1], initial_options={}), device="cpu", out="s")


def test_the_faster_choice_on_a_processor_is_named() -> None:
    with CpuDevice() as cpu:
        info = cpu.info
    software = DeviceInfo(**{**vars(info), "spec": "vulkan:0", "name": "llvmpipe", "type": "software"})
    hardware = DeviceInfo(**{**vars(info), "spec": "vulkan:0", "name": "a GPU", "type": "discrete"})
    assert '`device="cpu"` with `host_fft=True`' in (faster_choice(software, host_fft=False) or "")
    assert "`host_fft=True` is several times faster" in (faster_choice(info, host_fft=False) or "")
    assert faster_choice(info, host_fft=True) is None
    assert faster_choice(hardware, host_fft=False) is None


def test_steps_per_second_count_the_frames_until_they_are_written(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    waited = TrajectoryWriter.wait

    def slow(self: TrajectoryWriter) -> None:
        time.sleep(0.4)
        waited(self)

    monkeypatch.setattr(TrajectoryWriter, "wait", slow)
    run = lab.simulate(request(steps=4, frame_every=2), device="cpu", out=here / "run")
    assert run.seconds >= 0.4
    assert run.metrics.steps_per_s <= 4 / 0.4
