"""Claims about evaluations as a job: unseen data, nothing finished is lost, what cannot be scored is refused first."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NoReturn

import pytest

from dashi import lab
from dashi.errors import InputError, Interrupted
from dashi.flow import Flow
from dashi.flow.evaluation import load_evaluation
from dashi.flow.proxy._persistence import Damped
from dashi.lab import evaluation_plans

FLOW = Flow(n=16, nu=0.01, dt=0.02)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A fit of the seeds 1 and 2, in windows of 10 steps."""
    out = tmp_path_factory.mktemp("fit") / "m.npz"
    asked = lab.FitRequest(
        model="persistence", flow=FLOW, train=(1,), validate=(2,), train_steps=10, frame_every=5, spin_up=0, k_cut=3,
        initial_options={"peak": 2}, baselines=("damped",), host_fft=True,
    )  # fmt: skip
    lab.fit(asked, device="cpu", out=out)
    return out


def request(model: Path, **more: Any) -> lab.EvaluateRequest:
    return lab.EvaluateRequest(**{"model": model, "seeds": (9,), "steps": 10, "host_fft": True, **more})


def test_the_default_is_two_seeds_that_nobody_saw_for_twice_as_long(model: Path) -> None:
    scores = lab.evaluate(lab.EvaluateRequest(model=model, host_fft=True), device="cpu")
    test = scores.evaluations[-1]
    assert (test.seeds, test.times[-1]) == ((3, 4), pytest.approx(20 * FLOW.dt))
    assert [one.split for one in scores.evaluations] == ["train", "validation", "test"]


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"seeds": (2,)}, r"overlap those trained on: seed 2 from time 0"),
        ({"seeds": 0}, r"`seeds=` is 0. Fix: use 1 or more."),
        ({"seeds": (4, 4)}, r"`seeds=` is \[4, 4\]."),
        ({"first_seed": 3}, r"`seeds=` names seeds, and `first_seed=` too."),
        ({"steps": 12}, r"use 10 or 15 steps"),
        ({"steps": -5}, r"`steps=` is -5. Fix: use 1 or more."),
        ({"windows": 0}, r"`windows=` is 0."),
        ({"perturb": (("length", 1.0),)}, r"'length' is not perturbed"),
        ({"perturb": (("nu", 0.01), ("nu", 0.01))}, r"`perturb=` has nu=0.01 twice."),
        ({"source": "nowhere"}, r"`host_fft=True` is for simulations, and `source=` reads what is there."),
        ({"source": "nowhere", "perturb": (("nu", 1.0),)}, r"`perturb=` is for simulations"),
    ],
)
def test_what_cannot_be_evaluated_is_told_before_the_work(
    model: Path, asked: dict[str, Any], said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(evaluation_plans, "simulate_windows", pytest.fail)
    with pytest.raises(InputError, match=said):
        lab.evaluate(request(model, **asked), device="cpu")


def test_an_evaluation_that_is_stopped_says_so_in_a_field(
    model: Path, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop(*_: Any, **__: Any) -> NoReturn:
        raise KeyboardInterrupt

    monkeypatch.setattr(Damped, "rollout", stop)
    with pytest.raises(Interrupted) as stopped:
        lab.evaluate(request(model), device="cpu", out="s")
    scores = stopped.value.partial
    assert isinstance(scores, lab.ModelScores)
    last = scores.evaluations[-1]
    assert (scores.stopped, last.stopped, [line.model for line in last.lines]) == (True, True, ["persistence"])
    assert "stopped" not in last.settings
    kept = load_evaluation(here / "s" / "evaluation-test.npz")
    assert (kept.stopped, kept.interrupted, kept.settings) == (True, False, dict(last.settings))
    assert '"stopped": "yes"' in (here / "s" / "evaluation-test.json").read_text()  # as files always had it


def test_an_error_on_the_way_has_the_scores_so_far(model: Path, here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = evaluation_plans.simulate_windows

    def simulated(title: str, *words: Any, **options: Any) -> Any:
        if "nu=" in title:
            raise InputError("it blew up.", "use a smaller dt.")
        return real(title, *words, **options)

    monkeypatch.setattr(evaluation_plans, "simulate_windows", simulated)
    with pytest.raises(InputError, match="it blew up") as error:
        lab.evaluate(request(model, perturb=(("nu", 0.02),)), device="cpu", out="s")
    scores = error.value.result
    assert isinstance(scores, lab.ModelScores)
    assert ([one.split for one in scores.evaluations], scores.stopped) == (["train", "validation", "test"], True)
    assert load_evaluation(here / "s" / "evaluation-test.npz").lines


def test_the_record_repeats_it(model: Path, here: Path) -> None:
    scores = lab.evaluate(request(model, perturb=(("nu", 0.02),)), device="cpu", out="s")
    assert scores.record.command == (
        f"dashi flow evaluate {model} --eval-steps 10 --eval-seed 9 --seeds 1 --windows 1 --start 0 "
        "--perturb nu=0.02 --host-fft --device cpu --out s"
    )
