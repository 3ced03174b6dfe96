"""Claims about `dashi flow benchmark`: its truth is made again to the last bit, others are refused, scores mean what
they say."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import dashi
from dashi import lab
from dashi.cli.main import app
from dashi.errors import FileError, InputError
from dashi.flow.benchmark import (
    FULL,
    QUICK,
    BenchmarkSetting,
    Truth,
    correlation_times,
    load_truth,
    make_truth,
    save_truth,
)
from dashi.flow.benchmark._contestants import fitted, training_data
from dashi.flow.benchmark.scoring import score
from dashi.flow.benchmark.setting import LARGEST_SPEED, SETTINGS, largest_speeds, starts
from dashi.flow.proxy import Schema
from dashi.io.arrays import read_arrays, write_arrays
from dashi.runtime._cpu_device import CpuDevice
from dashi.runtime._vulkan_device import VulkanDevice

TINY: BenchmarkSetting = replace(
    QUICK, name="tiny", n=16, coarse=8, dt=0.02, spin_up=0.2, length=0.4, seeds=(7001, 7002), train_n=16,
    train_seeds=(1,), validation_seeds=(2,), train_length=0.4, k_cut=3.0, solvers=(8,), models={"truncation": {}},
    truth_hash="",
)  # fmt: skip


@pytest.fixture(scope="module")
def truth() -> Truth:
    with CpuDevice() as cpu:
        return make_truth(TINY, device=cpu)[0]


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch, truth: Truth) -> BenchmarkSetting:
    """The setting by name, as one whose truth is known."""
    known = replace(TINY, truth_hash=truth.hash)
    monkeypatch.setitem(SETTINGS, "tiny", known)
    return known


# ---- scores


def test_a_time_is_read_between_frames_where_the_correlation_falls_through_the_threshold() -> None:
    times = np.arange(4) * 0.5
    falling = np.array([[1.0, 0.9, 0.7, 0.2], [1.0, 1.0, 1.0, 1.0], [0.5, 0.9, 0.9, 0.9], [1.0, 0.9, np.nan, 1.0]])
    crossing = correlation_times(falling, times, 0.8)
    # Halfway between 0.9 and 0.7; never, so the length; at once; at the last frame that was a number.
    np.testing.assert_allclose(crossing, [0.75, 1.5, 0.0, 0.5])


def test_the_time_of_the_mean_is_not_the_mean_of_times() -> None:
    draw = np.random.default_rng(0).normal(size=(2, 21, 8, 8)).astype(np.float32)
    ours = draw.copy()
    ours[0, 5:] = -draw[0, 5:]  # one trajectory is lost after 5 frames, the other never
    lost = score("x", 3, ours, draw, np.arange(21) * 0.1, (1, 2), 0.0)
    assert (
        lost.of_mean[0.8] < 0.5 < lost.mean_of_times[0.8].mean == pytest.approx((lost.of_mean[0.8] + 2.0) / 2, abs=0.1)
    )
    assert score("x", 3, draw, draw, np.arange(21) * 0.1, (1, 2), 0.0).outlasts == {0.95, 0.8, 0.5}


# ---- the setting


def test_starts_have_the_largest_speed_of_the_setting_whatever_the_grid() -> None:
    states, finer = (starts(replace(TINY, n=n)) for n in (32, 64))
    np.testing.assert_allclose(largest_speeds(finer), LARGEST_SPEED, rtol=0.02)  # peaks lie between points
    # Modes that both grids keep are the same to float32.
    assert np.allclose(states[:, :9, :9], finer[:, :9, :9], rtol=1e-4, atol=1e-5)


def test_the_full_setting_is_the_published_one_and_holds_no_more_than_its_coarse_field() -> None:
    assert (FULL.nu, FULL.wavenumber, FULL.coarse, len(FULL.seeds), FULL.spin_up) == (1e-3, 4, 64, 16, 40.0)
    assert 2 * len(Schema(FULL.train_n, FULL.k_cut).modes) <= 64**2 < 2 * len(Schema(FULL.train_n, 37.0).modes)
    flow = FULL.flow(64)
    assert round(FULL.frame / flow.dt) * flow.dt == pytest.approx(FULL.frame)
    assert not set(FULL.seeds) & {*FULL.train_seeds, *FULL.validation_seeds}


# ---- the truth


def test_the_truth_has_the_same_hash_on_numpy_and_vulkan(vulkan: VulkanDevice, truth: Truth) -> None:
    theirs, _ = make_truth(TINY, device=vulkan)
    assert theirs.hash == truth.hash
    assert np.array_equal(theirs.fields, truth.fields)
    assert truth.fields.shape == (2, TINY.frames + 1, 8, 8)
    # The start is finer than the coarse field, and the same where both know it.
    assert truth.start.shape[1] > 8


@pytest.mark.long
def test_the_quick_truth_is_the_known_one() -> None:
    with dashi.open("auto") as device:
        assert make_truth(QUICK, device=device)[0].hash == QUICK.truth_hash


def test_a_truth_of_another_setting_or_hash_or_with_changed_fields_is_refused(
    tmp_path: Path, truth: Truth, tiny: BenchmarkSetting
) -> None:
    path = tmp_path / "truth.npz"
    save_truth(path, truth)
    assert np.array_equal(load_truth(path, tiny).fields, truth.fields)
    with pytest.raises(FileError, match=r"another setting than tiny.* Fix: make it again"):
        load_truth(path, replace(tiny, nu=1e-2))
    with pytest.raises(FileError, match=r"with the hash .*, and the setting tiny has 00"):
        load_truth(path, replace(tiny, truth_hash="00"))
    arrays = read_arrays(path)
    fields = arrays["fields"].copy()
    fields[0, 0, 0, 0] += 1
    write_arrays(path, {**arrays, "fields": fields})
    with pytest.raises(FileError, match="do not have the digest that it claims"):
        load_truth(path, tiny)
    write_arrays(path, {"fields": fields})
    with pytest.raises(FileError, match="no truth of a benchmark"):
        load_truth(path, tiny)


# ---- the job


def test_a_run_leaves_its_truth_with_a_certificate_and_another_takes_it_from_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tiny: BenchmarkSetting
) -> None:
    monkeypatch.chdir(tmp_path)
    first = lab.benchmark_flow(lab.BenchmarkRequest(setting="tiny"), device="cpu", out="a")
    names = {path.name for path in Path("a").iterdir() if not path.name.startswith(".")}
    assert names == {"truth.npz", "certificate.json", "inputs.npz", "benchmark.json", "benchmark.md"}
    assert dashi.verify("a", device="cpu").same
    document = json.loads(Path("a/benchmark.json").read_text())
    assert document["truth"]["hash"] == tiny.truth_hash
    assert [one["name"] for one in document["scores"]] == ["solver 8", "truncation 3"]
    again = lab.benchmark_flow(lab.BenchmarkRequest(setting="tiny", truth="a/truth.npz"), device="cpu")
    assert [one.of_mean for one in again.scores] == [one.of_mean for one in first.scores]
    assert "| truncation 3 |" in Path("a/benchmark.md").read_text()
    alone = lab.benchmark_flow(lab.BenchmarkRequest(setting="tiny", truth_only=True), device="cpu")
    assert (alone.scores, alone.truth.hash) == ((), tiny.truth_hash)
    with pytest.raises(InputError, match="leave one of them away"):
        lab.benchmark_flow(lab.BenchmarkRequest(setting="tiny", truth="a/truth.npz", truth_only=True))


def test_what_there_is_not_is_refused(tiny: BenchmarkSetting) -> None:
    with pytest.raises(InputError, match="there is no benchmark 'kochkow'"):
        lab.benchmark_flow(lab.BenchmarkRequest(name="kochkow"))
    with pytest.raises(InputError, match=r"there is no setting 'quik'.*did you mean quick"):
        lab.benchmark_flow(lab.BenchmarkRequest(setting="quik"))
    with CpuDevice() as cpu:
        with pytest.raises(InputError, match="among those of training"):
            training_data(replace(tiny, train_seeds=(7001,)), device=cpu)
        data = training_data(tiny, device=cpu)
        with pytest.raises(InputError, match=r"more than 4\^2"):
            fitted(replace(tiny, coarse=4), "truncation", data, device=cpu)
    done = CliRunner().invoke(app, ["flow", "benchmark", "kochkov", "--truth", "nowhere.npz", "--quick"])
    assert done.exit_code == 3
    assert "nowhere.npz" in done.output
