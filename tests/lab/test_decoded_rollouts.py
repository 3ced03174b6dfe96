"""Claims about rollouts that are decoded, as a job: what contradicts itself is refused, what was stopped can go on."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dashi import lab
from dashi.core.rollouts.rollout import rollout
from dashi.core.rollouts.run import Run
from dashi.errors import InputError, Interrupted, NonFiniteError
from dashi.flow import Flow
from dashi.flow.decode.observer import DecodeTotals
from dashi.flow.proxy import Schema
from dashi.flow.proxy.files import load_z, save_z
from dashi.lab.decoded_rollouts import setup_of
from dashi.lab.front import follow, simulate

SCHEMA = Schema(16, 3)


@pytest.fixture
def files(here: Path) -> dict[str, Path]:
    """A z of one member, and a matrix that turns it."""
    rng = np.random.default_rng(3)
    save_z(here / "z0.npz", SCHEMA, rng.standard_normal(SCHEMA.size))
    turn, _ = np.linalg.qr(rng.standard_normal((SCHEMA.size, SCHEMA.size)))
    np.savez(here / "A.npz", A=turn)
    return {"z0": Path("z0.npz"), "A": Path("A.npz")}


def request(**asked: Any) -> lab.FollowRequest:
    return lab.FollowRequest(**{"steps": 20, "decode_every": 5, "stage_times": False, **asked})


def test_a_map_is_rolled_out_decoded_and_certified(files: dict[str, Path], heard: Any) -> None:
    result = lab.follow(request(**files), device="cpu", out="out", events=heard)
    assert (result.steps, DecodeTotals.of(result).count, result.stopped) == (20, 5, False)
    assert result.certificate.path == Path("out/certificate.json")
    assert result.metrics.certificate_digest
    np.testing.assert_array_equal(load_z(Path("out/z.npz"))[1], result.state)
    assert any("decoded to 16 x 16 after every 5" in line for line in heard.remarks)


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({}, r"a rollout starts from one place.* Fix: give `z0=` with `A=`, `operator=` or `model=`; `start=` with"),
        ({"z0": "z0.npz"}, r"z is advanced by one of `A=`, `operator=` and `model=`."),
        ({"start": "run", "A": "A.npz"}, r"`start=` goes with `model=`"),
        ({"fit_from": "run", "A": "A.npz"}, r"`fit_from=` fits the operator itself."),
        ({"z0": "z0.npz", "A": "A.npz", "decode_every": 0}, r"`decode_every=` is 0. Fix: use 1 or more."),
        ({"z0": "z0.npz", "A": "A.npz", "observer": "snapshots"}, r'`observer="snapshots"` has nowhere to put fields.'),
        ({"z0": "z0.npz", "A": "A.npz", "observer": "film"}, r"there is no observer 'film'. Fix: use one of none"),
        ({"z0": "z0.npz", "A": "A.npz", "k_cut": 3.0}, r"`k_cut=` goes with `fit_from=`. Fix: leave `k_cut=` away."),
        ({"z0": "z0.npz", "A": "A.npz", "seed": 3}, r"`seed=` goes with a residual, and there is none."),
        ({"z0": "z0.npz", "A": "A.npz", "residual": "statistics"}, r"needs those of training data. Fix: give"),
        ({"fit_from": "run", "ridge": -1.0}, r"`ridge=` is -1. Fix: use a finite number, 0 or more"),
        ({"fit_from": "run", "anchors": -1}, r"`anchors=` is -1. Fix: use 0 or more."),
        (
            {"model": "m.npz", "start": "run", "hash_every": 2},
            r"a model is not hashed, so `hash_every=`",
        ),
        ({"model": "m.npz", "start": "run", "steps": 10**12}, r"would take about .* Fix: use fewer `steps=`"),
    ],
)
def test_a_request_that_contradicts_itself_is_refused_before_anything_is_read(asked: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError, match=said):
        lab.follow(request(**asked), device="cpu")


def test_a_stopped_map_has_a_request_that_goes_on_with_the_same_bits(
    files: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = lab.follow(request(**files), device="cpu")
    assert lab.remaining_request(whole) is None

    def pressing(*words: Any, **options: Any) -> Any:
        progress = options.pop("progress")

        def advance(amount: int) -> None:
            progress(amount)
            signal.raise_signal(signal.SIGINT)

        return rollout(*words, progress=advance, **options)

    with monkeypatch.context() as during:
        during.setattr("dashi.core.rollouts.rollout.BLOCK_US", 0.0)  # blocks of one step
        during.setattr("dashi.lab.decoded_rollouts.rollout", pressing)
        with pytest.raises(Interrupted) as stop:
            lab.follow(request(**files), device="cpu", out="out")
    partial = stop.value.partial
    assert isinstance(partial, Run)
    assert 0 < partial.steps < 20
    remaining = lab.remaining_request(partial)
    assert remaining is not None
    assert (remaining.steps, remaining.z0) == (20 - partial.steps, Path("out/z.npz"))
    np.testing.assert_array_equal(lab.follow(remaining, device="cpu").state, whole.state)


def test_a_map_that_blows_up_is_an_error_that_has_what_was_done(files: dict[str, Path], here: Path) -> None:
    np.savez(here / "A.npz", A=1e8 * np.eye(SCHEMA.size))
    with pytest.raises(NonFiniteError, match="Fix: look at the map's spectral radius") as error:
        lab.follow(request(**files), device="cpu", out="out")
    result = error.value.result
    assert isinstance(result, Run)
    assert result.steps < 20
    with pytest.raises(InputError, match=r"Fix: follow the request `dashi.lab.remaining_request"):
        result.resume(20)
    assert (here / "out" / "metrics.json").is_file()


def test_decodes_are_compared_with_numpy_as_a_job() -> None:
    asked = lab.ParityRequest(n=16, k_cut=3.0, anchors=2, seeds=1, residuals=("none", "seeded"))
    parity = lab.compare_decodes(asked, device="cpu")
    assert (parity.same, parity.other_device, len(parity.fields)) == (True, False, 2)
    with pytest.raises(InputError, match=r"`seeds=` is 0. Fix: use 1 or more."):
        lab.compare_decodes(lab.ParityRequest(seeds=0))


def test_a_run_is_followed_by_a_fit_to_it(here: Path) -> None:
    run = simulate(
        Flow(n=16, nu=0.01, dt=0.02), seeds=[1], steps=20, frame_every=5, device="cpu", host_fft=True, out="run"
    )
    result = follow(fit_from=run, steps=4, k_cut=3, decode_every=2, device="cpu", stage_times=False)
    assert (result.steps, DecodeTotals.of(result).count, setup_of(result).schema.k_cut) == (4, 3, 3)
    with pytest.raises(InputError, match="this is no decoded rollout"):
        setup_of(run)
