"""Claims about the front door: the program that the documentation begins with runs as it stands."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import dashi
from dashi.core.rollouts._observers import BandSheet
from dashi.errors import InputError
from dashi.flow import Flow
from dashi.flow.decode import Decoder, Decodes
from dashi.flow.proxy import Schema

# Small enough for milliseconds; otherwise the lines are those of the documentation.
FLOW = Flow(n=16, nu=0.005, dt=0.02)


def test_a_simulation_is_verified_read_and_resumed(here: Path) -> None:
    pytest.importorskip("zarr")
    flow = FLOW
    run = dashi.flow.simulate(
        flow, seeds=[1, 2], steps=40, out="runs/k", frame_every=10, hash_every=4, device="cpu"
    )  # fmt: skip
    assert run.certificate.verify(device="cpu").same
    assert dict(run.fields.sizes)["time"] == 5
    np.testing.assert_array_equal(run.fields["member"], [1, 2])
    run = run.resume(steps=80)
    assert (run.steps, [h.step for h in run.hashes]) == (80, [*range(4, 81, 4)])
    assert dict(run.fields.sizes)["time"] == 9
    assert run.certificate.verify(device="cpu").same
    whole = dashi.flow.simulate(flow, seeds=[1, 2], steps=80, hash_every=4, device="cpu")
    assert whole.hashes == run.hashes
    assert [look.step for look in whole.diagnostics] == [look.step for look in run.diagnostics]


def test_a_model_is_fitted_and_scored(here: Path) -> None:
    flow = FLOW
    quick = {"device": "cpu", "host_fft": True}
    fit = dashi.flow.fit(
        "galerkin", flow, train=range(1, 3), validate=[5], k_cut=3, out="runs/model.npz", train_steps=20,
        frame_every=5, spin_up=5, initial_options={"peak": 2}, baselines=["persistence"], **quick,
    )  # fmt: skip
    assert fit.path == Path("runs/model.npz")
    assert fit.fit.training is not None
    assert (fit.fit.training.seeds, fit.fit.training.validation_seeds) == ((1, 2), (5,))
    scores = dashi.flow.evaluate(fit, seeds=[100, 101], perturb={"nu": 0.004}, out="runs/scores", steps=20, **quick)
    text = str(scores.table())
    assert "windows: test (2)" in text
    assert "windows: test nu=0.004 (2)" in text
    assert "<caption>windows: test (2)</caption>" in scores._repr_html_()  # pyright: ignore[reportPrivateUsage]
    assert [one.seeds for one in scores.evaluations[-2:]] == [(100, 101)] * 2
    assert (here / "runs" / "scores" / "evaluation.json").is_file()


def test_seeds_that_do_not_follow_each_other_are_scored_and_the_record_repeats_them(here: Path) -> None:
    quick = {"device": "cpu", "host_fft": True}
    fit = dashi.flow.fit(
        "persistence", FLOW, train=[1], validate=0, k_cut=3, out="m.npz", train_steps=10, frame_every=5, spin_up=0,
        baselines=["damped"], **quick,
    )  # fmt: skip
    scores = dashi.flow.evaluate(fit, seeds=[9, 4], steps=10, **quick)
    assert scores.evaluations[-1].seeds == (9, 4)
    again = eval(scores.record.command, {"dashi": dashi})
    np.testing.assert_array_equal(
        again.evaluations[-1].lines[0].correlation, scores.evaluations[-1].lines[0].correlation
    )


def test_what_lies_in_no_file_is_told() -> None:
    run = dashi.flow.simulate(FLOW, steps=2, device="cpu", host_fft=True)
    with pytest.raises(InputError, match=r"no certificate.*Fix: simulate with `out=` and `hash_every=`"):
        _ = run.certificate
    with pytest.raises(InputError, match=r"no frames. Fix: simulate with `out=` and `frame_every=`"):
        _ = run.fields
    fit = dashi.flow.fit(
        "persistence", FLOW, train=[1], validate=0, k_cut=3, train_steps=4, frame_every=2, spin_up=0,
        baselines=["damped"], device="cpu", host_fft=True,
    )  # fmt: skip
    with pytest.raises(InputError, match=r"this fit is in no file. Fix: fit with `out=`"):
        dashi.flow.evaluate(fit)


def test_states_of_ones_own_are_a_start(here: Path) -> None:
    states = dashi.flow.ensemble(FLOW, "random", [3])
    ours = dashi.flow.simulate(FLOW, states, 6, hash_every=3, device="cpu")
    named = dashi.flow.simulate(FLOW, seeds=[3], steps=6, hash_every=3, device="cpu")
    assert ours.hashes == named.hashes
    with pytest.raises(InputError, match=r"are the start themselves. Fix: leave"):
        dashi.flow.simulate(FLOW, states, 6, seeds=[4], device="cpu")


def test_a_rollout_is_certified_and_verified_and_has_a_page(here: Path) -> None:
    A, z0 = np.array([[0.6, 0.8], [-0.8, 0.6]], np.float32), np.ones(2, np.float32)  # noqa: N806
    run = dashi.rollout(dashi.Linear(A), z0, 100, hash_every=10, out="runs/turn", device="cpu")
    assert (run.steps, run.state.shape, run.stopped) == (100, (1, 2), False)
    assert [one.step for one in run.hashes] == [*range(10, 101, 10)]
    assert run.certificate.verify(device="cpu").same
    verification = dashi.verify("runs/turn", device="cpu", against="cpu")
    assert verification.same
    assert len(verification.checks) == 2
    assert "100" in run._repr_html_()  # pyright: ignore[reportPrivateUsage]
    pytest.importorskip("matplotlib")
    assert dashi.report.write("runs/turn") == Path("runs/turn/report.html")
    again = dashi.rollout(dashi.Linear(A), z0, 100, hash_every=10, device="cpu")
    assert again.hashes == run.hashes
    with pytest.raises(InputError, match=r"no certificate. Fix: roll out with `out=`"):
        _ = again.certificate


def test_any_observer_can_be_put_on_a_job(here: Path) -> None:
    schema = Schema(16, 3)
    z0 = np.linspace(-1.0, 1.0, schema.size).astype(np.float32)
    turn = dashi.Linear(np.diag(np.where(np.arange(schema.size) % 2, -1.0, 1.0)).astype(np.float32))
    with dashi.open("cpu") as device, Decoder(schema, device) as decoder:
        run = dashi.rollout(turn, z0, 6, hash_every=2, observers=[Decodes(decoder, 3)], device=device, out="seen")
        looked = dashi.flow.simulate(FLOW, steps=4, hash_every=2, observers=[BandSheet(2)], device=device)
    assert [decode.step for decode in run.records["decodes"]] == [0, 3, 6]
    assert run.hashes == dashi.rollout(turn, z0, 6, hash_every=2, device="cpu").hashes
    assert run.certificate.verify(device="cpu").same
    assert looked.hashes == dashi.flow.simulate(FLOW, steps=4, hash_every=2, device="cpu").hashes
