"""Calls as people write them: devices and forcings by name, one seed; wrong kinds are refused with what fits."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from dashi import fft
from dashi.cli.flow_options import Force
from dashi.core.learning.learner import fit_bands
from dashi.core.learning.ridge import ridge
from dashi.core.operators.affine import Linear
from dashi.core.rollouts.rollout import rollout
from dashi.errors import InputError, UnknownNameError
from dashi.flow import Flow, Kolmogorov, Stochastic, ensemble, stepper, windows_of
from dashi.flow.decode import Decoder
from dashi.flow.equations import FORCINGS, UNFORCED
from dashi.flow.evaluation import evaluate
from dashi.flow.proxy import MODELS, Schema, choose_anchors, decode, encode
from dashi.flow.simulation import simulate
from dashi.runtime._cpu_device import CpuDevice

FLOW = Flow(16, nu=2e-2, dt=0.02)
SCHEMA = Schema(16, k_cut=3)


# ---- flows


def test_a_forcing_by_its_name_is_the_one_of_the_command_line() -> None:
    assert {force.value for force in Force} == {UNFORCED, *FORCINGS}
    assert Flow(16, forcing="kolmogorov") == Flow(16, forcing=Kolmogorov())  # type: ignore[arg-type]
    assert Flow(16, forcing="stochastic") == Flow(16, forcing=Stochastic())  # type: ignore[arg-type]
    assert Flow(16, forcing="none") == Flow(16)  # type: ignore[arg-type]
    forced, free = (
        simulate(flow, ensemble(flow, "random", 1, peak=2), 3, device="cpu", host_fft=True).state
        for flow in (Flow(16, forcing="kolmogorov"), Flow(16))  # type: ignore[arg-type]
    )
    assert not np.array_equal(forced, free)


def test_types_and_numbers_of_numpy_are_taken() -> None:
    assert Flow(16, dtype=np.float64) == Flow(np.dtype("i8").type(16), dtype="float64")  # type: ignore[arg-type]
    flow = Flow(16, nu=np.float32(0.5), forcing=Kolmogorov(np.int64(2)))  # type: ignore[arg-type]
    assert [type(value) for value in flow.parameters.values()] == [int, *[float] * 5, str, str, str, int, float]
    assert Flow.restore(flow.parameters) == flow


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"forcing": "kolmogorof"}, "there is no forcing 'kolmogorof'. Fix: did you mean kolmogorov?"),
        ({"forcing": "nonsense"}, "there is no forcing 'nonsense'. Fix: use none or one of kolmogorov, stochastic."),
        ({"forcing": Kolmogorov}, "which is none. Fix: pass None, Kolmogorov(...), Stochastic(...) or a name"),
        ({"forcing": 4}, "the forcing is 4, which is none."),
        ({"forcing": Stochastic(low="a")}, "the forcing's low is 'a'."),  # type: ignore[arg-type]
        ({"forcing": Kolmogorov(amplitude=None)}, "the force's amplitude is None."),  # type: ignore[arg-type]
        ({"dtype": np.float16}, "a flow has no element type <class 'numpy.float16'>. Fix: use float32 or float64."),
        ({"dtype": None}, "a flow has no element type None."),
        ({"dtype": [1]}, "a flow has no element type [1]."),
        ({"scheme": None}, "there is no time scheme None."),
        ({"nu": "1e-3"}, "nu is '1e-3'. Fix: pass a finite number"),
        ({"dt": None}, "dt is None."),
        ({"drag": True}, "drag is True."),
        ({"length": [1.0]}, "length is [1.0]."),
        ({"n": "64"}, "there is no solver for n = '64'"),
    ],
)
def test_a_field_of_a_flow_of_the_wrong_kind_is_refused(wrong: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError) as error:
        Flow(**{"n": 16, **wrong})
    assert said in str(error.value)


any_ensemble: Any = ensemble


def test_one_seed_may_stand_by_itself() -> None:
    assert np.array_equal(ensemble(FLOW, "random", 1), ensemble(FLOW, "random", [1]))
    assert np.array_equal(any_ensemble(FLOW, "random", np.arange(2)), ensemble(FLOW, "random", [0, 1]))
    for seeds, said in ((1.5, "a seed is 1.5."), ("1", "a seed is '1'."), ([None], "a seed is None."), (True, "True")):
        with pytest.raises(InputError, match=said):
            any_ensemble(FLOW, "random", seeds)
    assert windows_of(FLOW, 3, device="cpu", steps=2, interval=2, host_fft=True).seeds == (3,)


# ---- wrong kinds

any_rollout: Any = rollout
any_simulate: Any = simulate


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda d: any_rollout(np.eye(3), np.ones(3), 2, device=d), "ndarray is no operator. Fix: wrap it: dashi.core"),
        (lambda d: any_rollout("linear", np.ones(3), 2, device=d), "str is no operator. Fix: pass one"),
        (lambda d: any_rollout(Linear(np.eye(3)), np.ones(3), 2.5, device=d), "2.5 steps were asked for."),
        (lambda d: any_rollout(Linear(np.eye(3)), np.ones(3), 2, device=d, hash_every="1"), "the stride 'hash' is '1'"),
        (lambda d: any_simulate(FLOW, ensemble(FLOW, "random", 1), 2, device=d, look_every="5"), "'look' is '5'"),
        (lambda d: any_simulate(FLOW, ensemble(FLOW, "random", 1), "2", device=d), "'2' steps were asked for."),
        (lambda d: any_simulate("flow", None, 2, device=d), "str is no flow. Fix: pass Flow(n=64, ...)."),
        (lambda d: any_rollout(Linear(np.eye(3)), np.ones(3), 2, device=0), "0 is neither an open device nor the name"),
    ],
)  # fmt: skip
def test_a_wrong_kind_is_refused_with_what_belongs_there(call: Any, said: str) -> None:
    with CpuDevice() as cpu, pytest.raises(InputError) as error:
        call(cpu)
    assert said in str(error.value)


def test_a_model_that_is_not_there_is_an_error_with_the_nearest_name() -> None:
    with pytest.raises(UnknownNameError, match=r"there is no model 'galerkim'. Fix: did you mean galerkin\?") as error:
        MODELS["galerkim"]
    assert isinstance(error.value, KeyError)
    assert MODELS.get("galerkim") is None
    assert "galerkim" not in MODELS


# ---- devices by name


def test_devices_are_taken_by_name_wherever_numpy_goes_in_and_comes_out() -> None:
    train = windows_of(FLOW, [1, 2], device="cpu", steps=20, interval=5, host_fft=True, options={"peak": 2.0})
    test = windows_of(FLOW, [3], device="cpu", steps=20, interval=5, host_fft=True, options={"peak": 2.0})
    with CpuDevice() as cpu:
        x = np.random.default_rng(0).standard_normal((4, 8))
        states, steps = ensemble(FLOW, "random", 1), 2
        z = encode(SCHEMA, train.fields[:, 0], device=cpu)
        for call in (
            lambda d: rollout(Linear(np.eye(3)), np.ones(3), 4, device=d).state,
            lambda d: simulate(FLOW, states, steps, device=d, look_every=1).state,
            lambda d: stepper(FLOW, d)(states),
            lambda d: encode(SCHEMA, train.fields[:, 0], device=d),
            lambda d: decode(SCHEMA, z, device=d),
            lambda d: np.array(choose_anchors(SCHEMA, train.fields[:, 0], 1, device=d).anchors),
            lambda d: MODELS["damped"].fit(SCHEMA, train, None, device=d).rollout(z, 3, device=d),
            lambda d: [*MODELS["damped"].fit(SCHEMA, train, None, device=cpu).pieces(z, 3, device=d, most=2)][1],
            lambda d: evaluate(
                {"damped": MODELS["damped"].fit(SCHEMA, train, None, device=d)}, test, device=d, split="test"
            ).lines[0].correlation,
            lambda d: decoded(d, z),
            lambda d: fft.rfft2(x, device=d),
            lambda d: ridge(x.T, x.T[:, :2], 1.0, device=d),
            lambda d: fit_bands(np.abs(x), np.abs(x), device=d, epochs=2).W,
        ):  # fmt: skip
            assert np.array_equal(call("cpu"), call(cpu))


def decoded(device: Any, z: Any) -> Any:
    with Decoder(SCHEMA, device, members=len(z)) as decoder:
        seen = decoder.decode(z, "snapshots")
        assert seen is not None
        return seen.fields
