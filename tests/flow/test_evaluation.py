"""Claims about evaluation: what scores mean, what failures are called, and that a model sees its start alone."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dashi.errors import FileError, InputError, Interrupted, NonFiniteError, ShapeError
from dashi.flow import Flow
from dashi.flow.evaluation import (
    Evaluation,
    evaluate,
    gap_closed,
    load_evaluation,
    save_evaluation,
    score_residual,
    table,
)
from dashi.flow.evaluation.scores import Reference, correlation
from dashi.flow.grid import Floats
from dashi.flow.proxy.encode import encode
from dashi.flow.proxy.lowpass import decode
from dashi.flow.proxy.model import Model
from dashi.flow.proxy.schema import Schema
from dashi.flow.windows import Windows
from dashi.flow.windows.simulated import windows_of
from dashi.lab._score_tables import ScoreText
from dashi.runtime._cpu_device import CpuDevice
from dashi.runtime.device import Device

FLOW = Flow(n=32, nu=5e-3, dt=0.02, scheme="etdrk4")


class Fake(Model):
    """Rolls out by a function of (z0, frame); remembers what it was given."""

    name = "fake"

    def __init__(self, schema: Schema, interval: float, step: Callable[[Floats, int], Floats]) -> None:
        self.schema, self.interval, self._step = schema, interval, step
        self.given: list[Floats] = []

    @classmethod
    def learn(cls, schema: Schema, train: Windows, validation: Windows | None, **options: Any) -> Fake:
        raise NotImplementedError

    def advance(self, z0: Floats, frames: int, *, device: Device) -> Floats:
        self.given.append(z0)
        return np.stack([self._step(z0, j) for j in range(frames + 1)], axis=1)

    @property
    def state_size(self) -> int:
        return self.schema.numbers

    @property
    def arrays(self) -> Mapping[str, Any]:
        return {}

    @classmethod
    def restore(cls, schema: Any, interval: Any, arrays: Any, parameters: Any) -> Fake:
        raise NotImplementedError


def still(z0: Floats, frame: int) -> Floats:
    return z0


@pytest.fixture(scope="module")
def device() -> Any:
    with CpuDevice() as cpu:
        yield cpu


@pytest.fixture(scope="module")
def windows(device: Device) -> Windows:
    """Three seeds, two windows of each, 11 frames, after a short spin-up."""
    return windows_of(FLOW, [1, 2, 3], device=device, steps=50, interval=5, windows=2, spin_up=20, host_fft=True)


def model(step: Callable[[Floats, int], Floats] = still, k_cut: float = 6, n: int = 32, interval: float = 0.1) -> Fake:
    return Fake(Schema(n, k_cut), interval, step)


# ---- evaluate


def test_persistence_of_the_whole_field_is_right_at_first_and_then_decays(windows: Windows, device: Device) -> None:
    evaluation = evaluate({"still": model()}, windows, device=device, split="test")
    line = evaluation.line("still")
    assert line.correlation.shape == (6, 11)
    low = decode(Schema(32, 6), encode(Schema(32, 6), windows.fields[:, 0], device=device), device=device)
    np.testing.assert_allclose(line.correlation[:, 0], correlation(low, windows.fields[:, 0]), rtol=1e-6)
    assert (line.correlation[:, 0] > line.correlation[:, -1]).all()
    np.testing.assert_allclose(line.energy, line.energy[:, :1] * np.ones(11), rtol=1e-6)
    assert (line.admissible == 1).all()
    np.testing.assert_allclose(evaluation.enstrophy, (windows.fields.astype(float) ** 2).mean((2, 3)) / 2, rtol=1e-5)
    assert evaluation.times[-1] == pytest.approx(1.0)
    assert evaluation.spectrum.sum() == pytest.approx(evaluation.energy[:, -1].mean())
    assert evaluation.settings["k_cut"] == 6


def test_a_model_that_knows_its_modes_of_the_future_has_no_spectrum_error(windows: Windows, device: Device) -> None:
    schema = Schema(32, 6)
    truth = encode(schema, windows.fields, device=device)
    told = Fake(schema, 0.1, lambda z0, frame: truth[:, frame])
    evaluation = evaluate({"told": told}, windows, device=device, split="test")
    line = evaluation.line("told")
    assert line.spectrum_error.max() < 1e-5
    assert set(line.failures) == {"none"}
    # What is left to be wrong is what it does not hold: of two fields, one a part of the other.
    np.testing.assert_allclose(line.correlation, np.sqrt(line.enstrophy / evaluation.enstrophy), rtol=1e-4)


def test_a_model_sees_its_start_and_nothing_else(windows: Windows, device: Device) -> None:
    """What follows the first frame may be anything: the rollout is the same bits, only its scores differ."""
    spoiled = windows.fields.copy()
    spoiled[:, 1:] = np.random.default_rng(1).standard_normal(spoiled[:, 1:].shape)
    other = Windows(FLOW, windows.interval, spoiled, windows.seeds, windows.starts)
    first, second = model(), model()
    a = evaluate({"m": first}, windows, device=device, split="test").line("m")
    b = evaluate({"m": second}, other, device=device, split="test").line("m")
    assert len(first.given) == len(second.given) == 1
    np.testing.assert_array_equal(first.given[0], second.given[0])
    np.testing.assert_array_equal(a.energy, b.energy)
    assert not np.allclose(a.correlation[:, 1:], b.correlation[:, 1:])
    # Neither is what it is given a view into the windows, through which the rest could be found.
    assert first.given[0].base is None or first.given[0].base.size == first.given[0].size
    assert not np.shares_memory(first.given[0], windows.fields)


def test_a_rollout_that_blows_up_is_scored_and_named(windows: Windows, device: Device) -> None:
    def explode(z0: Floats, frame: int) -> Floats:
        return z0 * np.float32(10) ** (20 * frame) if frame < 4 else np.full_like(z0, np.nan)

    with np.errstate(over="ignore"):
        evaluation = evaluate({"bad": model(explode), "still": model()}, windows, device=device, split="test")
    line = evaluation.line("bad")
    assert set(line.failures) == {"blow-up"}
    assert (line.admissible[:, 0] == 1).all()
    assert (line.admissible[:, 1:] == 0).all()
    assert (line.correlation[:, 4:] == 0).all()
    assert np.isinf(line.relative_l2[:, 4:]).all()
    np.testing.assert_allclose(line.horizons[0.5], 0.2)  # at 0.1 it is only far too large
    assert evaluation.line("still").failures == ("none",) * 6


def test_a_model_that_stops_with_an_error_is_a_blow_up_too(windows: Windows, device: Device) -> None:
    def stop(z0: Floats, frame: int) -> Floats:
        raise NonFiniteError("the state is not finite.", "smaller steps.")

    line = evaluate({"bad": model(stop)}, windows, device=device, split="test").line("bad")
    assert set(line.failures) == {"blow-up"}
    assert "the state is not finite" in line.story


def test_the_limit_of_admissible_energy_is_ten_times_that_of_training(windows: Windows, device: Device) -> None:
    energy = float(Reference(FLOW, windows.fields).energy.max())
    twice = model(lambda z0, frame: z0 * np.float32(2 if frame else 1))
    assert (evaluate({"m": twice}, windows, device=device, split="t", train_energy=energy).lines[0].admissible).all()
    low = evaluate({"m": twice}, windows, device=device, split="t", train_energy=energy / 10)
    assert set(low.lines[0].failures) == {"blow-up"}


def test_a_rollout_goes_on_where_the_reference_ends(windows: Windows, device: Device) -> None:
    found = evaluate({"m": model()}, windows, device=device, split="test", beyond=7)
    line = found.line("m")
    assert line.continued.shape == (6, 7)
    np.testing.assert_allclose(line.continued, line.energy[:, -1:] * np.ones(7), rtol=1e-6)


def test_windows_with_fewer_frames_than_the_model_makes_are_met_in_between(windows: Windows, device: Device) -> None:
    twice = model(interval=0.05)
    evaluate({"m": twice}, windows, device=device, split="test")
    grow = model(lambda z0, frame: z0 * np.float32(1 + frame), interval=0.05)
    line = evaluate({"m": grow}, windows, device=device, split="test").line("m")
    np.testing.assert_allclose(np.sqrt(line.energy / line.energy[:, :1])[0, :4], [1, 3, 5, 7], rtol=1e-5)


def test_a_model_of_another_grid_is_resampled(windows: Windows, device: Device) -> None:
    here = evaluate({"m": model()}, windows, device=device, split="test").line("m")
    there = evaluate({"m": model(n=48)}, windows, device=device, split="test").line("m")
    np.testing.assert_allclose(here.correlation, there.correlation, atol=1e-5)


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (lambda: Fake(Schema(32, 6, length=1.0), 0.1, still), "box of 1"),
        (lambda: model(interval=0.07), "a frame every 0.07"),
        (lambda: model(n=64, k_cut=18), "modes up to 18"),
        (lambda: model(lambda z0, frame: z0[:, :5]), "shape"),
    ],
)
def test_a_model_that_does_not_fit_is_refused(
    wrong: Callable[[], Fake], said: str, windows: Windows, device: Device
) -> None:
    with pytest.raises((InputError, ShapeError), match=said) as caught:
        evaluate({"m": wrong()}, windows, device=device, split="test")
    assert caught.value.fix


def test_no_model_is_an_error(windows: Windows, device: Device) -> None:
    with pytest.raises(InputError, match="no model"):
        evaluate({}, windows, device=device, split="test")


def test_ctrl_c_keeps_the_models_that_are_finished(windows: Windows, device: Device) -> None:
    def interrupted(z0: Floats, frame: int) -> Floats:
        raise KeyboardInterrupt

    with pytest.raises(Interrupted) as stop:
        evaluate({"a": model(), "b": model(interrupted), "c": model()}, windows, device=device, split="test")
    assert [line.model for line in stop.value.partial.lines] == ["a"]
    assert stop.value.partial.stopped
    with pytest.raises(Interrupted) as stop:
        evaluate({"b": model(interrupted)}, windows, device=device, split="test")
    assert stop.value.partial is None


def test_progress_is_told_of_every_window_of_every_model(windows: Windows, device: Device) -> None:
    told: list[int] = []
    evaluate({"a": model(), "b": model()}, windows, device=device, split="test", progress=told.append)
    assert sum(told) == 12


# ---- residual synthesis


def test_a_residual_is_scored_by_its_spectrum_and_by_nothing_else(windows: Windows) -> None:
    line = score_residual("seeded", 100, windows.fields[:, :, ::-1].copy(), windows)
    assert np.isnan(line.correlation).all()
    assert np.isnan(line.relative_l2).all()
    assert all(np.isnan(h).all() for h in line.horizons.values())
    assert line.spectrum_error.max() < 1e-6  # a mirrored field has the same spectrum
    wrong = score_residual("seeded", 100, 2 * windows.fields, windows)
    assert wrong.spectrum_error == pytest.approx(math.log10(4), rel=1e-6)
    with pytest.raises(ShapeError, match="decode every frame"):
        score_residual("seeded", 100, windows.fields[:, :3], windows)


# ---- spread


def test_the_gap_that_is_closed_is_paired_by_window(windows: Windows, device: Device) -> None:
    evaluation = evaluate({"a": model(), "b": model(), "c": model()}, windows, device=device, split="test")
    rng = np.random.default_rng(0)
    base = rng.uniform(2, 9, 6)
    lines = tuple(
        replace(line, horizons={0.5: base + more})
        for line, more in zip(evaluation.lines, (0, 0.5 + 0.05 * rng.standard_normal(6), 1.0), strict=True)
    )
    closed = gap_closed(replace(evaluation, lines=lines), "b", base="a", ceiling="c")
    assert closed.mean == pytest.approx(0.5, abs=0.06)
    assert 0.4 < closed.low < closed.high < 0.6  # far less than the spread of the windows themselves
    with pytest.raises(InputError, match="no gap"):
        gap_closed(replace(evaluation, lines=lines), "b", base="c", ceiling="a")


# ---- tables and files


def scored(windows: Windows, device: Device) -> Evaluation:
    return evaluate({"still": model(), "half": model(k_cut=3)}, windows, device=device, split="test", beyond=2)


def test_a_table_has_a_row_for_each_model(windows: Windows, device: Device) -> None:
    rows = table(scored(windows, device))
    assert [row.model for row in rows] == ["still", "half"]
    assert rows[0].numbers > rows[1].numbers
    assert rows[0].windows == 6
    assert rows[0].failures == {"none": 6}
    assert rows[0].horizons[0.5].mean <= 1.0
    end = rows[0].energy_drift
    assert end.low <= end.mean <= end.high
    document = rows[0].document()
    assert document["horizons"]["0.5"]["mean"] == rows[0].horizons[0.5].mean
    assert document["device"] == device.info.name


def test_horizons_are_bounds_where_any_window_outlasts_them(windows: Windows, device: Device) -> None:
    evaluation = evaluate({"still": model()}, windows, device=device, split="test")
    line = evaluation.lines[0]
    outlasting = np.full(len(windows), 0.4)
    outlasting[1] = evaluation.times[-1]
    for times, bound in ((outlasting, True), (np.full(len(windows), 0.4), False)):
        scores = replace(evaluation, lines=(replace(line, horizons=dict.fromkeys(line.horizons, times)),))
        assert (">" in str(ScoreText.of(scores))) is bound


def test_an_evaluation_comes_back_from_its_file(windows: Windows, device: Device, tmp_path: Path) -> None:
    scores = scored(windows, device)
    save_evaluation(tmp_path / "e", scores)
    assert (tmp_path / "e.json").is_file()
    evaluation = load_evaluation(tmp_path / "e.npz")
    assert evaluation.split == "test"
    assert (evaluation.seeds, evaluation.starts) == (scores.seeds, scores.starts)
    assert dict(evaluation.settings) == dict(scores.settings)
    assert dict(evaluation.parameters) == dict(scores.parameters)
    for a, b in zip(evaluation.lines, scores.lines, strict=True):
        assert (a.model, a.numbers, a.failures, a.device) == (b.model, b.numbers, b.failures, b.device)
        for name in ("correlation", "relative_l2", "energy", "spectrum_error", "continued", "spectrum"):
            np.testing.assert_array_equal(getattr(a, name), getattr(b, name))
        for threshold in b.horizons:
            np.testing.assert_array_equal(a.horizons[threshold], b.horizons[threshold])


def test_a_file_of_another_version_or_kind_is_refused(windows: Windows, device: Device, tmp_path: Path) -> None:
    from dashi.flow.evaluation.files import array_text, pack, text_array
    from dashi.io.arrays import write_arrays

    arrays = pack(scored(windows, device))
    write_arrays(tmp_path / "new.npz", {**arrays, "version": np.array(2)})
    with pytest.raises(FileError, match="version 2"):
        load_evaluation(tmp_path / "new.npz")
    write_arrays(tmp_path / "cut.npz", {k: v for k, v in arrays.items() if k != "line0_energy"})
    with pytest.raises(FileError, match="damaged"):
        load_evaluation(tmp_path / "cut.npz")
    write_arrays(tmp_path / "odd.npz", {**arrays, "line0_energy": np.zeros(3)})
    with pytest.raises(FileError, match="do not fit"):
        load_evaluation(tmp_path / "odd.npz")
    odd: dict[str, Any] = {
        "line0_spectrum": np.zeros(2), "line1_continued": np.zeros((5, 2)), "times": np.array(["a"] * 11),
        "line0_correlation": arrays["line0_correlation"].astype(np.int64), "spectrum": np.zeros((2, 2)),
    }  # fmt: skip
    for name, values in odd.items():
        write_arrays(tmp_path / "part.npz", {**arrays, name: values})
        with pytest.raises(FileError, match=r"damaged.*Fix: "):
            load_evaluation(tmp_path / "part.npz")
    head = json.loads(array_text(arrays["head"]))
    head["lines"][0]["failures"][2] = "flood"
    write_arrays(tmp_path / "named.npz", {**arrays, "head": text_array(json.dumps(head))})
    with pytest.raises(FileError, match="names that are not known"):
        load_evaluation(tmp_path / "named.npz")
    write_arrays(tmp_path / "none.npz", {"a": np.zeros(2)})
    with pytest.raises(FileError, match="no evaluation"):
        load_evaluation(tmp_path / "none.npz")
