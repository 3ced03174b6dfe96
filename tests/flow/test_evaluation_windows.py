"""Claims about windows: made by simulation, read from runs, and told apart when they overlap."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from dashi.cli.main import app
from dashi.errors import FileError, InputError, NonFiniteError
from dashi.flow import Flow, Kolmogorov, Stochastic
from dashi.flow.evaluation import Seen, require_disjoint
from dashi.flow.windows import UNKNOWN, Windows, cut
from dashi.flow.windows.recorded import windows_from_run
from dashi.flow.windows.simulated import simulated_steps, windows_of
from dashi.runtime._cpu_device import CpuDevice
from dashi.runtime.device import Device

FLOW = Flow(n=16, nu=0.01, dt=0.01)
PEAK = {"peak": 2.0}


@pytest.fixture(scope="module")
def device() -> Any:
    with CpuDevice() as cpu:
        yield cpu


@pytest.fixture(scope="module")
def made(device: Device) -> Windows:
    return windows_of(
        FLOW, [5, 6], device=device, steps=8, interval=2, windows=2, spin_up=4, options=PEAK, host_fft=True
    )


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run folder: two members from seed 5 on, frames of vorticity every 2 steps up to 24."""
    out = tmp_path_factory.mktemp("windows") / "run"
    words = "flow simulate --n 16 --nu 0.01 --set peak=2 --device cpu --host-fft --steps 24 --members 2 --seed 5"
    more = ["--frame-every", "2", "--field", "vorticity", "--field", "velocity_x", "--field", "velocity_y"]
    found = CliRunner().invoke(app, [*words.split(), *more, "--out", str(out)])
    assert found.exit_code == 0, found.output
    return out


def zeros(windows: int = 1, frames: int = 3, n: int = 16) -> Any:
    return np.zeros((windows, frames, n, n), np.float32)


# ---- simulation


def test_windows_of_a_seed_follow_each_other_without_a_shared_frame(made: Windows) -> None:
    assert made.fields.shape == (4, 5, 16, 16)
    assert made.seeds == (5, 5, 6, 6)
    assert made.starts == (4, 14, 4, 14)
    assert made.lasts == (12, 22, 12, 22)
    np.testing.assert_allclose(made.times, [0, 0.02, 0.04, 0.06, 0.08])


def test_a_run_folder_holds_the_same_windows_as_the_simulation(made: Windows, run: Path) -> None:
    read = windows_from_run(run, steps=8, first=4, windows=2)
    assert (read.seeds, read.starts, read.interval, read.flow) == (made.seeds, made.starts, 2, FLOW)
    # Two runs of the same steps; the spin-up of one is rounded once more.
    np.testing.assert_allclose(read.fields, made.fields, atol=1e-5)
    assert len(read.digests) == 20


def test_more_windows_than_any_memory_holds_are_refused_before_anything_is_computed() -> None:
    with CpuDevice() as device, pytest.raises(InputError, match=r"1 seeds with 1 windows .* GiB\. Fix: ask for fewer"):
        windows_of(FLOW, [1], device=device, steps=10**10, interval=1, spin_up=10**9, host_fft=True)


def test_kicks_belong_to_the_seed_and_not_to_its_place(device: Device) -> None:
    kicked = replace(FLOW, forcing=Stochastic(2, 4, 0.5))
    both = windows_of(kicked, [3, 9], device=device, steps=4, interval=4, options=PEAK, host_fft=True)
    alone = windows_of(kicked, [9], device=device, steps=4, interval=4, options=PEAK, host_fft=True)
    np.testing.assert_array_equal(both.fields[1], alone.fields[0])
    assert simulated_steps(kicked, [3, 9], 4, 4, 1, 0) == 8
    assert simulated_steps(FLOW, [3, 9], 4, 4, 1, 0) == 4


def test_progress_is_told_of_as_many_steps_as_were_promised(device: Device) -> None:
    counts: list[int] = []
    windows_of(
        FLOW, [1], device=device, steps=8, interval=2, windows=2, spin_up=3, options=PEAK, host_fft=True,
        progress=counts.append,
    )  # fmt: skip
    assert sum(counts) == simulated_steps(FLOW, [1], 8, 2, 2, 3)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"seeds": []}, "at least one seed"),
        ({"seeds": [1, 1]}, "none twice"),
        ({"steps": 9}, "use 8 or 10"),
        ({"interval": 0}, "interval is 0"),
        ({"windows": 0}, "windows is 0"),
        ({"spin_up": -1}, "spin_up is -1"),
        ({"initial": "nothing"}, "no initial condition"),
    ],
)
def test_what_cannot_be_simulated_is_refused(change: dict[str, Any], said: str, device: Device) -> None:
    given: dict[str, Any] = {"seeds": [1], "steps": 8, "interval": 2, "windows": 1, "spin_up": 0, **change}
    with pytest.raises(InputError, match=said):
        windows_of(FLOW, given.pop("seeds"), device=device, host_fft=True, **given)


def test_a_flow_whose_time_step_is_too_long_makes_no_windows(device: Device) -> None:
    wild = Flow(n=16, nu=0, dt=0.1, forcing=Kolmogorov(2, 50.0))
    with np.errstate(all="ignore"), pytest.raises((NonFiniteError, InputError), match="dt") as caught:
        windows_of(wild, [1], device=device, steps=400, interval=100, options=PEAK, host_fft=True)
    assert "use" in caught.value.fix


def test_the_null_device_makes_no_windows() -> None:
    from dashi.runtime import open_device

    with open_device("null") as null, pytest.raises(InputError, match="computes nothing"):
        windows_of(FLOW, [1], device=null, steps=4, interval=2)


def test_a_record_shorter_than_a_window_is_refused() -> None:
    with pytest.raises(InputError, match="4 frames, and the record 3"):
        cut(FLOW, 1, zeros(), (1,), 0, 4)


@pytest.mark.parametrize(
    ("fields", "seeds", "said"),
    [
        (zeros(n=8), (1,), "16 x 16 points"),
        (zeros()[0], (1,), "shape"),
        (zeros(), (1, 2), "one seed and one start"),
        (np.full((1, 3, 16, 16), np.nan), (1,), "not finite"),
    ],
)
def test_windows_that_cannot_be_are_refused(fields: Any, seeds: tuple[int, ...], said: str) -> None:
    with pytest.raises(InputError, match=said):
        Windows(FLOW, 2, fields, seeds, (0,))


# ---- run folders


def test_vorticity_is_made_of_velocities_where_a_run_has_none(run: Path, tmp_path: Path) -> None:
    import shutil

    shutil.copytree(run, tmp_path / "run")
    shutil.rmtree(tmp_path / "run" / "fields.zarr" / "vorticity")
    whole, made = windows_from_run(run), windows_from_run(tmp_path / "run")
    np.testing.assert_allclose(made.fields, whole.fields, atol=2e-5)
    shutil.rmtree(tmp_path / "run" / "fields.zarr" / "velocity_x")
    with pytest.raises(FileError, match="neither vorticity nor both velocities"):
        windows_from_run(tmp_path / "run")


def test_all_frames_of_a_run_are_one_window_unless_told(run: Path) -> None:
    whole = windows_from_run(run)
    assert whole.fields.shape == (2, 13, 16, 16)
    part = windows_from_run(run / "fields.zarr", first=10, last=20)
    assert part.fields.shape == (2, 6, 16, 16)
    assert part.starts == (10, 10)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"steps": 7}, "use 6 or 8"),
        ({"steps": 8, "windows": 9}, "not 9"),
        ({"first": 23}, "a window takes two"),
        ({"steps": 48}, "25 frames, and the record 13"),
    ],
)
def test_what_a_run_does_not_hold_is_told(run: Path, options: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError, match=said):
        windows_from_run(run, **options)


def test_a_damaged_run_is_told(run: Path, tmp_path: Path) -> None:
    import shutil

    with pytest.raises(FileError, match="there is no"):
        windows_from_run(tmp_path / "nowhere")
    for name, text in (("zarr.json", "{"), ("zarr.json", "[]"), ("step/zarr.json", "{}"), ("zarr.json", '{"a": 1}')):
        shutil.rmtree(tmp_path / "run", ignore_errors=True)
        shutil.copytree(run, tmp_path / "run")
        (tmp_path / "run" / "fields.zarr" / name).write_text(text)
        with pytest.raises(FileError, match=r"damaged|no flow"):
            windows_from_run(tmp_path / "run")
    store = tmp_path / "run" / "fields.zarr"
    shutil.rmtree(tmp_path / "run")
    shutil.copytree(run, tmp_path / "run")
    root = json.loads((store / "zarr.json").read_text())
    root["attributes"]["flow_n"] = 7
    (store / "zarr.json").write_text(json.dumps(root))
    with pytest.raises(FileError, match="no flow that this dashi knows"):
        windows_from_run(tmp_path / "run")
    chunk = store / "step" / "c" / "0"
    shutil.copy(run / "fields.zarr" / "zarr.json", store / "zarr.json")
    chunk.write_bytes(chunk.read_bytes()[:-1])
    with pytest.raises(FileError, match="bytes instead of"):
        windows_from_run(tmp_path / "run")


@pytest.mark.parametrize("name", ["step", "member"])
@pytest.mark.parametrize("value", [np.nan, np.inf, 0.5, 1e30])
def test_steps_and_members_that_are_not_whole_are_told(run: Path, tmp_path: Path, name: str, value: float) -> None:
    import shutil

    shutil.copytree(run, tmp_path / "run")
    folder = tmp_path / "run" / "fields.zarr" / name
    about = json.loads((folder / "zarr.json").read_text())
    (folder / "zarr.json").write_text(json.dumps({**about, "data_type": "float64"}))
    (each,) = about["chunk_grid"]["configuration"]["chunk_shape"]
    for chunk in (folder / "c").iterdir():
        chunk.write_bytes(np.full(each, value).tobytes())
    with pytest.raises(FileError, match=rf"{name} holds numbers that are not whole\. Fix: "):
        windows_from_run(tmp_path / "run")


# ---- overlap


def window(seed: int, start: int, value: float = 0.0, flow: Flow = FLOW) -> Windows:
    """Three frames, 2 steps apart; no two values give the same field."""
    fields = np.random.default_rng(int(1e6 * value) + 1000 * (seed + 2) + start).standard_normal((1, 3, 16, 16))
    return Windows(flow, 2, fields, (seed,), (start,))


def test_the_same_seed_at_the_same_time_is_refused_unless_told() -> None:
    with pytest.raises(InputError, match=r"seed 1 from time 0\.02 to 0\.06") as caught:
        require_disjoint(window(1, 0), window(1, 2, 0.5))
    assert "`eval_seed=`" in caught.value.fix
    assert require_disjoint(window(1, 0), window(1, 2, 0.5), allow=True)


def test_another_seed_and_a_later_time_are_fine() -> None:
    assert not require_disjoint(window(1, 0), window(2, 0))
    assert not require_disjoint(window(1, 0), window(1, 6))
    with pytest.raises(InputError, match="seed 1"):
        require_disjoint(window(1, 0), window(1, 4))  # the last frame is the first


def test_validation_data_count_as_seen() -> None:
    with pytest.raises(InputError, match="seed 2"):
        require_disjoint([window(1, 0), window(2, 0), None], window(2, 0, 0.5))


def test_times_are_compared_where_steps_differ() -> None:
    fine = replace(FLOW, dt=0.005)
    assert require_disjoint(window(1, 0), window(1, 6, 0.5, fine), allow=True)  # 0.03 to 0.05, within 0 to 0.04
    assert not require_disjoint(window(1, 0), window(1, 10, 0.5, fine), allow=True)


def test_the_same_fields_are_found_where_seeds_are_unknown() -> None:
    train = window(UNKNOWN, 0)
    other = Windows(FLOW, 2, train.fields[:, ::-1].astype(np.float32), (UNKNOWN,), (99,))
    with pytest.raises(InputError, match="3 of 3 frames are the very same"):
        require_disjoint(train, other)
    assert not require_disjoint(train, window(UNKNOWN, 0, 0.7))
    with pytest.raises(InputError, match="the very same"):
        require_disjoint(Seen.of(window(4, 0)), Windows(FLOW, 2, window(4, 0).fields, (UNKNOWN,), (0,)))
