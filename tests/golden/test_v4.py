"""The numbers that the old research code reported, to their last digit, from its definition alone."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import typer
from typer.testing import CliRunner

from dashi.cli import flow_comparisons
from dashi.cli.main import app
from dashi.core.certificates._certificate import read_certificate
from dashi.core.certificates._verify import check
from dashi.core.certificates.inputs import certified_inputs
from dashi.errors import InputError, NoResultError, ShapeError
from dashi.flow.v4 import GOLDEN, Encoder, Layout, Row, Solver, V4Report, encode, learn, measure, roll
from dashi.flow.v4.decode import decode, rest
from dashi.flow.v4.linear import roll_on
from dashi.flow.v4.measure import record, rolled
from dashi.lab import v4_comparison
from dashi.runtime import Device, open_device
from dashi.runtime._cpu_device import CpuDevice


@pytest.fixture(scope="module")
def report() -> V4Report:
    with CpuDevice() as cpu:
        return measure(device=cpu)


@pytest.mark.parametrize("name", GOLDEN)
def test_a_reported_number_is_reached_to_its_digits(name: str, report: V4Report) -> None:
    row = next(row for row in report.rows if row.name == name)
    assert row.digits > 0
    assert row.agreeing(row.ours) == row.digits, f"{row.golden} was reported, {row.ours} is found"


def test_all_reported_numbers_are_measured_and_no_other(report: V4Report) -> None:
    assert [row.name for row in report.rows] == list(GOLDEN)
    assert report.holds


def test_digits_that_differ_are_counted() -> None:
    row = Row("x", "0.466451", 0.46645059)
    assert (row.digits, row.agreeing(0.46645059), row.agreeing(0.4664504), row.agreeing(0.4)) == (6, 6, 5, 0)
    assert Row("x", "-2.38E-4", 0.0).agreeing(-2.3849e-4) == 3
    assert Row("x", "0.000", 0.0).agreeing(0.00049) == 3
    assert Row("x", "0.000", 0.0).agreeing(0.00051) == 2
    assert Row("x", "238", 0.0).agreeing(237.0) == 2
    assert not replace(row, device=0.466452).holds


@pytest.mark.parametrize("n", [64, 96, 128])
def test_z_has_654_numbers_on_every_grid(n: int) -> None:
    layout = Layout(n)
    assert (layout.low.size, layout.mid.size, layout.size) == (197, 244, 654)
    assert layout.low.size + layout.mid.size + layout.high.size == n * n
    start = Solver(n).start(0)
    encoder = Encoder.of(start)
    assert encoder.encode(start).shape == (654,)
    assert rest(encoder).size == 244 - 128


def test_the_first_field_is_that_of_the_legacy_generator() -> None:
    np.random.seed(7)  # noqa: NPY002 - what v4 did
    noise = np.random.randn(64, 64)  # noqa: NPY002 - what v4 did
    line = np.ones(11) / 11
    for axis in (0, 1):
        noise = np.apply_along_axis(lambda row: np.convolve(row, line, mode="same"), axis, noise)
    noise -= noise.mean()
    # Sums of 11 numbers in another order.
    np.testing.assert_allclose(Solver(64).start(7), noise / (noise.std() + 1e-12), rtol=0, atol=1e-13)


def test_derivatives_that_stay_in_the_spectrum_would_end_elsewhere(report: V4Report, monkeypatch: Any) -> None:
    def in_the_spectrum(self: Solver, omega: Any) -> Any:
        kx, ky, _, inverse = self.waves
        psi = np.fft.fft2(omega) * inverse
        u_x, shear = kx * ky * psi, 0.5 * (kx * kx - ky * ky) * psi
        first, second = (np.real(np.fft.ifft2(hat)) for hat in (u_x, shear))
        strain = np.sqrt(4 * first**2 + 4 * second**2 + 1e-30)
        return 1e-4 + (0.17 * 2 * np.pi / self.n) ** 2 * strain

    monkeypatch.setattr(Solver, "viscosity", in_the_spectrum)
    *_, last = Solver(64).frames(0, 300)
    assert np.linalg.norm(last) == pytest.approx(61.7328, abs=5e-5)
    assert np.linalg.norm(report.record.fields[300]) == pytest.approx(61.8156, abs=5e-5)


def test_the_rank_does_not_hang_on_the_last_bits(report: V4Report) -> None:
    values = np.linalg.svd(report.record.z[:-1], compute_uv=False)
    least = values[0] * 654 * np.finfo(np.float64).eps
    # Orders of rows and columns move these values by 2e-5 of themselves at most.
    assert values[237] > least * (1 + 1e-4)
    assert values[238] < least * (1 - 1e-2)


def test_a_rollout_on_a_device_reaches_the_same_digits(report: V4Report, device: Device) -> None:
    result = report.record
    states, run = roll_on(device, result.z[0], report.A, 300, hash_every=100)
    # 300 products of 654 numbers, whose sums are taken in another order.
    np.testing.assert_allclose(states, roll(result.z[0], report.A, 300), rtol=0, atol=1e-9)
    for name, value in rolled(result, states).items():
        assert replace(next(row for row in report.rows if row.name == name), device=value).holds
    assert [h.step for h in run.hashes] == [100, 200, 300]


def test_a_rollout_has_the_same_bits_on_every_backend(report: V4Report, vulkan: Device) -> None:
    with CpuDevice() as cpu:
        single, first = roll_on(cpu, report.record.z[0], report.A, 20, hash_every=10)
    two, second = roll_on(vulkan, report.record.z[0], report.A, 20, hash_every=10)
    assert first.hashes == second.hashes
    assert single.tobytes() == two.tobytes()


@pytest.mark.long
def test_a_map_that_is_learned_on_a_device_reaches_the_same_digits(vulkan: Device) -> None:
    measurement = measure(device=vulkan)
    assert measurement.holds
    assert measurement.rows[4].device is not None
    assert vulkan.info.name in measurement.where["learn"]
    assert vulkan.info.name in measurement.where["roll"]
    assert vulkan.info.name not in measurement.where["decode"]


def test_a_map_that_is_learned_on_a_device_is_the_same_map(device: Device) -> None:
    z = np.random.default_rng(3).standard_normal((12, 20))
    # Normal equations of condition 1e4 or so.
    np.testing.assert_allclose(learn(z, device=device), learn(z), rtol=0, atol=1e-10)


def test_a_residual_is_drawn_anew_at_every_step_and_the_same_again(report: V4Report) -> None:
    encoder, z = report.record.encoder, report.record.z[0]
    assert np.array_equal(decode(encoder, z, 5), decode(encoder, z, 5))
    assert not np.array_equal(decode(encoder, z, 5), decode(encoder, z, 6))


def test_other_settings_have_numbers_but_no_golden_ones() -> None:
    measurement = measure(32, 30, 4)
    assert not measurement.holds
    assert not any(row.golden for row in measurement.rows)
    assert {"enstrophy at t = 30", "seed 4 to seed 5, correlation at t = 1"} <= {row.name for row in measurement.rows}
    assert measurement.record.held == (21, 25, 30)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: Solver(63), "v4 has no grid of n = 63. Fix: use an even n from 32 to 1024."),
        (lambda: Solver(16), "v4 has no grid of n = 16. Fix: use an even n from 32 to 1024."),
        (lambda: Solver(64).start(-1), "a seed is -1. Fix: use a whole number from 0 to 2^32 - 1."),
        (lambda: record(64, 29), "29 steps were asked for. Fix: use 30 or more: a third of them is held out."),
        (
            lambda: record(64, 30, 2**32 - 1),
            "there is no seed after this one to try the map on. Fix: use a smaller seed.",
        ),
        (
            lambda: learn(np.eye(3), 0.0),
            "the ridge is 0.0. Fix: pass a number above 0: X has fewer rows than columns.",
        ),
    ],
)
def test_what_v4_cannot_do_is_said(call: Any, message: str) -> None:
    with pytest.raises(InputError) as caught:
        call()
    assert str(caught.value) == message


def test_a_trajectory_of_one_row_has_no_map() -> None:
    with pytest.raises(ShapeError, match="pass at least two rows of z"):
        learn(np.zeros((1, 654)))


def test_the_null_device_learns_nothing() -> None:
    with open_device("null") as null, pytest.raises(NoResultError, match="computes nothing"):
        measure(32, 30, device=null)


def test_the_command_prints_every_number_and_where_it_ran(
    report: V4Report, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    # Measuring takes seconds, and is done already.
    monkeypatch.setattr(v4_comparison, "measure", lambda *setting, **_: {(64, 300, 0): report}[setting])
    flow_comparisons.run_v4("evaluate", device="cpu", json=True)
    document = json.loads(capsys.readouterr().out)
    assert document["holds"] is True
    assert {one["name"]: one["golden"] for one in document["numbers"]} == GOLDEN
    assert all(one["agree"] == one["digits"] for one in document["numbers"])
    assert all(one["device_agree"] == one["digits"] for one in document["numbers"] if "device" in one)
    assert any("device" in one for one in document["numbers"])
    assert document["where"]["simulate"] == "NumPy float64"
    assert "(cpu)" in document["where"]["roll"]


def test_the_rollout_command_leaves_a_certificate_that_can_be_verified(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], vulkan: Device
) -> None:
    flow_comparisons.run_v4("rollout", n=32, steps=30, seed=1, device="cpu", out=tmp_path / "run")
    printed = capsys.readouterr().out
    certificate = read_certificate(tmp_path / "run" / "certificate.json")
    operator, z0 = certified_inputs(certificate, tmp_path / "run", None)
    assert operator.shape == (654,)
    assert check(certificate, operator, z0, vulkan).difference is None
    assert certificate.hashes[-1].hash in printed
    assert "hold-out" not in printed


@pytest.mark.parametrize("name", ["thesis.txt", ".git"])
def test_a_folder_of_somebody_else_s_is_refused_before_the_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setattr(v4_comparison.Job, "place", pytest.fail)
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / name).write_text("mine")
    for out, said in ((tmp_path / "run", "run "), (tmp_path / "run" / name / "run", "is no folder")):
        done = CliRunner().invoke(app, ["flow", "rollout", "--compat", "v4", "--device", "cpu", "--out", str(out)])
        assert (done.exit_code, said in done.stderr, "\nFix: " in done.stderr) == (3, True, True), done.output
    assert (tmp_path / "run" / name).read_text() == "mine"


@pytest.mark.parametrize("command", ["evaluate", "rollout"])
def test_another_compatibility_mode_is_refused(command: str) -> None:
    done = CliRunner().invoke(app, ["flow", command, "--compat", "v3"])
    assert done.exit_code == 3
    assert done.stderr == "error: there is no compatibility mode 'v3'.\nFix: use --compat v4.\n"


@pytest.mark.parametrize("command", ["evaluate", "rollout"])
def test_another_setting_can_be_asked_for(command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []

    def note(*setting: int, **_: Any) -> Any:
        asked.append(setting)
        raise InputError("seen.", "none.")

    monkeypatch.setattr(v4_comparison, "measure", note)
    words = f"flow {command} --compat v4 --n 32 --steps 40 --seed 7 --device cpu"
    assert CliRunner().invoke(app, words.split()).exit_code == 3
    assert asked == [(32, 40, 7)]


@pytest.mark.parametrize("command", ["evaluate", "rollout"])
def test_a_gpu_that_is_required_is_not_replaced_by_another_device(command: str) -> None:
    done = CliRunner().invoke(app, f"flow {command} --compat v4 --device cpu --require-gpu".split())
    assert done.exit_code == 3
    assert "a GPU is required" in done.stderr


@pytest.mark.parametrize("command", ["evaluate", "rollout"])
def test_both_commands_have_the_mode(command: str, report: V4Report, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(v4_comparison, "measure", lambda *setting, **_: {(64, 300, 0): report}[setting])
    done = CliRunner().invoke(app, ["flow", command, "--compat", "v4", "--device", "cpu", "--json"])
    assert done.exit_code == 0, done.output
    told = json.loads(done.stdout)
    names = {one["name"] for one in told["numbers"]}
    assert names == (set(GOLDEN) if command == "evaluate" else {row.name for row in report.rows if row.device})


def test_the_mask_of_v4_covers_nearly_everything(report: V4Report) -> None:
    start = report.record.fields[0]
    assert np.mean(encode.threshold(start) != 0) == pytest.approx(0.17, abs=0.005)
    assert np.mean(encode.mask(start) != 0) == pytest.approx(0.996, abs=0.0005)


def test_a_missing_digit_is_a_failed_check(
    report: V4Report, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    wrong = replace(report, rows=(replace(report.rows[0], ours=0.4), *report.rows[1:]))
    monkeypatch.setattr(v4_comparison, "measure", lambda *setting, **_: wrong)
    with pytest.raises(typer.Exit) as ended:
        flow_comparisons.run_v4("evaluate", device="cpu")
    assert ended.value.exit_code == 1
    assert "0 of 1" in capsys.readouterr().out
