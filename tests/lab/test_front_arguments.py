"""Claims about the front door: what does not fit is an error with a fix, never one of Python's own."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dashi
from dashi import lab
from dashi.errors import InputError
from dashi.flow import Flow

FLOW = Flow(n=16, nu=0.005, dt=0.02)
TURN, START = dashi.Linear(np.eye(3, dtype=np.float32)), np.ones(3, np.float32)
HERE: dict[str, Any] = {"device": "cpu"}
# Wrong on purpose: a type checker would refuse all of these.
roll, solve, core_roll = (any_job for any_job in (dashi.rollout, dashi.flow.simulate, dashi.core.rollout))
Call = Callable[..., Any]


def calls(function: Call, *arguments: Any, **named: Any) -> tuple[Call, tuple[Any, ...], dict[str, Any]]:
    return function, arguments, named


WRONG: dict[str, tuple[tuple[Call, tuple[Any, ...], dict[str, Any]], str]] = {
    "a bare matrix": (calls(roll, np.eye(3), START, 5), r"ndarray is no operator. Fix: wrap it: dashi.core.Linear"),
    "a number as an operator": (calls(roll, 5, START, 5), r"int is no operator. Fix: pass one"),
    "steps of a rollout": (
        calls(roll, TURN, START, "a"),
        r"`steps=` is 'a', and not a whole number. Fix: pass a whole",
    ),
    "a stride": (calls(roll, TURN, START, 5, hash_every="2"), r"`hash_every=` is '2'.*Fix: pass .*, or leave it away"),
    "out of a rollout": (calls(roll, TURN, START, 5, out=5), r"`out=` is 5, and a path is needed. Fix: pass a str"),
    "an observer": (calls(roll, TURN, START, 5, observers=[5]), r"^5 is no observer. Fix: .*dashi.core.Observer"),
    "observers": (calls(roll, TURN, START, 5, observers=5), r"`observers=` is 5.*Fix: pass a list"),
    "an observer of the engine": (calls(core_roll, TURN, START, 5, observers=[5]), r"^5 is no observer. Fix"),
    "a flow": (calls(solve, "x", steps=3), r"`flow=` is 'x', and not a dashi.flow.Flow. Fix"),
    "steps of a flow": (calls(solve, FLOW, steps="3"), r"`steps=` is '3', and not a whole number. Fix"),
    "a switch": (calls(solve, FLOW, steps=3, transfer="no"), r"`transfer=` is 'no', and not True or False. Fix"),
    "seeds": (calls(solve, FLOW, steps=3, seeds="ab"), r"`seeds=` is 'ab'. Fix: pass whole numbers"),
    "out of a flow": (calls(solve, FLOW, steps=3, out=5), r"`out=` is 5.*Fix"),
    "a fit's flow": (calls(dashi.flow.fit, "galerkin", 7), r"`flow=` is 7, and not a dashi.flow.Flow. Fix"),
    "a certificate": (calls(dashi.verify, 5), r"`certificate=` is 5.*path.*Fix"),
    "a fit": (calls(dashi.flow.evaluate, 5), r"`model=` is 5.*path.*Fix"),
    "a perturbation": (calls(dashi.flow.evaluate, "m.npz", perturb={"nu": "x"}), r"`perturb=` is .*Fix: pass names"),
    "who listens": (calls(roll, TURN, START, 5, events=5), r"`events=` is 5. Fix: pass dashi.lab.PrintedEvents"),
    "states": (calls(solve, FLOW, np.ones(3), 5), r"`states=` has shape \(3,\). Fix: .*dashi.flow.ensemble"),
    "numbers of a start": (calls(solve, FLOW, steps=3, initial_options=5), r"`initial_options=` is 5.*dict. Fix"),
    "a request": (calls(lab.rollout, 5), r"5 is no RolloutRequest. Fix: pass one: dashi.lab.RolloutRequest"),
    "a request to solve": (calls(lab.simulate, 5), r"5 is no SimulateRequest. Fix"),
    "a request to fit": (calls(lab.fit, 5), r"5 is no FitRequest. Fix"),
    "a request to evaluate": (calls(lab.evaluate, 5), r"5 is no EvaluateRequest. Fix"),
    "a request to follow": (calls(lab.follow, 5), r"5 is no FollowRequest. Fix"),
    "a request to verify": (calls(lab.verify, 5), r"5 is no VerifyRequest. Fix"),
    "a request to show": (calls(lab.demo, 5), r"5 is no DemoRequest. Fix"),
    "a demonstration's folder": (calls(lab.demo, out=5), r"`out=` is 5.*Fix"),
}
"""Calls, and what they are answered; those in `WITHOUT_DEVICE` take none."""
WITHOUT_DEVICE = {
    "a report's folder": (calls(dashi.report.write, 5), r"`folder=` is 5.*Fix"),
    "a kernel": (calls(dashi.kernel, 5), r"^5 is no kernel. Fix: pass its name"),
    "a run that goes on": (
        calls(lambda: dashi.rollout(TURN, START, 2, **HERE).resume("a")),  # pyright: ignore[reportArgumentType]
        r"`steps=` is 'a'. Fix: pass a whole number",
    ),
}


@pytest.mark.parametrize("what", [*WRONG, *WITHOUT_DEVICE])
def test_a_wrong_kind_of_argument_is_an_error_with_a_fix(what: str) -> None:
    (function, arguments, named), text = (WRONG | WITHOUT_DEVICE)[what]
    with pytest.raises(InputError, match=text):
        function(*arguments, **named, **({} if what in WITHOUT_DEVICE else HERE))


def test_a_number_is_one_seed_and_numpys_whole_numbers_are_numbers() -> None:
    run = dashi.flow.simulate(FLOW, seeds=3, steps=np.int64(2), hash_every=2, **HERE)  # pyright: ignore[reportArgumentType]
    assert run.hashes == dashi.flow.simulate(FLOW, seeds=[3], steps=2, hash_every=2, **HERE).hashes
    assert type(run.request.steps) is int


def test_text_is_one_field() -> None:
    request = dashi.flow.simulate(FLOW, steps=1, fields="streamfunction", **HERE).request
    assert request.fields == ("streamfunction",)


def test_packages_below_a_package_are_there_after_one_import() -> None:
    names = (
        "kernels.portable runtime.conformance core.rollouts lab.demos bench.identify flow.proxy.galerkin flow.windows"
    )
    code = f"import dashi; print(*[eval(f'dashi.{{name}}').__name__ for name in {names.split()}])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == [f"dashi.{name}" for name in names.split()]
