"""Rollouts as jobs: what they compute, what they leave, and how they say that something is wrong."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dashi
from dashi import lab
from dashi.core.certificates._certificate import read_certificate
from dashi.core.certificates.inputs import load_operator, save_operator
from dashi.core.operators.affine import Affine, Linear
from dashi.core.rollouts.run import Run
from dashi.errors import DashiError, DTypeError, FileError, InputError, Interrupted, NonFiniteError
from dashi.io.metrics import read_metrics
from dashi.kernels.hash._blake3 import hexdigest128
from dashi.kernels.portable import canon
from dashi.lab import rollouts
from dashi.lab.events import Silent

D = 12


@pytest.fixture
def here(here: Path, write_inputs: Callable[[int], None]) -> Path:
    """A folder with inputs."""
    write_inputs(D)
    return here


class Heard(Silent):
    """Events that keep what was remarked."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def remark(self, *lines: str) -> None:
        self.lines += lines


def asked(**more: Any) -> lab.RolloutRequest:
    """A request for a few steps of the matrix in the folder."""
    inputs = {} if "operator" in more else {"A": "A.npz"}
    return lab.RolloutRequest(**{"z0": "z0.npz", "steps": 4, **inputs, **more})


def run(device: str = "cpu", out: str | None = None, **more: Any) -> Run:
    return lab.rollout(asked(**more), device=device, out=out)


def refused(**more: Any) -> str:
    with pytest.raises(DashiError) as error:
        run(**more)
    return str(error.value)


def hashes(result: Run) -> list[tuple[int, str]]:
    return [(found.step, found.digest) for found in result.hashes]


# What it computes


def test_hashes_are_those_of_the_states(here: Path) -> None:
    result = run(steps=5, hash_every=2, certificate="c.json")
    z: Any = np.load("z0.npz")["z0"]
    matrix = np.load("A.npz")["A"]
    by_name = {}
    with dashi.open("cpu") as device:
        for step in range(1, 6):
            z = device.run("gemv", z, matrix).numpy()
            by_name[step] = hexdigest128(canon(z))
    assert hashes(result) == [(step, by_name[step]) for step in (2, 4, 5)]
    assert [c.hash for c in read_certificate(here / "c.json").hashes] == [by_name[2], by_name[4], by_name[5]]
    assert [*result.certificates] == [Path("c.json")]
    assert result.folder is None


@pytest.mark.usefixtures("here")
def test_arrays_operators_and_files_give_the_same_hashes() -> None:
    matrix, b, z0 = np.load("A.npz")["A"], np.load("b.npz")["b"], np.load("z0.npz")["z0"]
    files = run(b="b.npz", psi="squash", alpha=0.25, steps=9)
    assert hashes(run(A=matrix, b=b, z0=z0, psi="squash", alpha=0.25, steps=9)) == hashes(files)
    operator = Affine(matrix, b, "squash", alpha=0.25)
    assert hashes(run(operator=operator, z0=z0, steps=9)) == hashes(files)
    assert hashes(run(operator=operator, z0="z0.npz", steps=9)) == hashes(files)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("z0", ["z0.npz", "many.npz"])
@pytest.mark.parametrize("psi", [{}, {"b": "b.npz"}, {"psi": "squash", "alpha": 0.5}, {"psi": "clamp"}])
@pytest.mark.usefixtures("here")
def test_every_device_gives_the_same_hashes(dtype: str, z0: str, psi: dict[str, Any]) -> None:
    request: dict[str, Any] = {"z0": z0, "steps": 7, "hash_every": 3, "dtype": dtype, **psi}
    first = run(**request)
    assert first.metrics.states == (3 if z0 == "many.npz" else 1)
    assert first.metrics.dtype == dtype
    if any(info.spec == "vulkan:0" for info in dashi.devices()):
        two = run("vulkan:0", **request, strategy="stepwise")
        assert hashes(two) == hashes(first)
        assert two.metrics.hotloop_dispatches > 0


@pytest.mark.usefixtures("here")
def test_dtype_is_that_of_z0_unless_said_and_a_change_is_told() -> None:
    np.savez("wide.npz", z0=np.ones(D))
    events = Heard()
    result = lab.rollout(asked(z0="wide.npz", steps=2), device="cpu", events=events)
    assert result.metrics.dtype == "float64"
    assert "A is float32 in A.npz; it is used as float64" in events.lines


@pytest.mark.usefixtures("here")
def test_an_operator_has_a_dtype_of_its_own() -> None:
    operator = Linear(np.eye(D, dtype=np.float32))
    assert run(operator=operator, z0=np.ones(D)).metrics.dtype == "float32"
    with pytest.raises(DTypeError, match=r"the operator is of float32, and float64 is asked for. Fix: .*`dtype=`"):
        run(operator=operator, dtype="float64")


def test_an_operator_file_of_any_kind_runs(here: Path) -> None:
    matrix = np.load("A.npz")["A"]
    save_operator(here / "op.npz", Affine(matrix, np.load("b.npz")["b"], "squash", alpha=0.25))
    assert load_operator(here / "op.npz").parameters["alpha"] == 0.25
    one = run(operator="op.npz", steps=9, certificate="c.json")
    assert hashes(one) == hashes(run(b="b.npz", psi="squash", alpha=0.25, steps=9))
    assert {i.name: i.path for i in read_certificate(here / "c.json").inputs} == {
        "z0": "z0.npz", "A": "op.npz", "b": "op.npz",
    }  # fmt: skip


def test_device_order_is_not_portable_and_has_no_certificate(here: Path) -> None:
    result = run(portable=False, out="run")
    assert result.metrics.portable is False
    assert not (here / "run" / "certificate.json").exists()
    assert "own order are not portable" in refused(portable=False, certificate="c.json")


@pytest.mark.usefixtures("here")
def test_an_open_device_runs_it_and_stays_open() -> None:
    with dashi.open("cpu") as device:
        result = lab.rollout(asked(), device=device)
        assert hashes(lab.rollout(asked(), device=device)) == hashes(result)


# What it leaves


def test_a_run_folder_is_whole_and_verifies_wherever_it_is_moved(here: Path) -> None:
    result = run(steps=40, hash_every=10, sheet_every=5, bands=4, out="run", metrics="m.json")
    assert sorted(p.name for p in (here / "run").iterdir()) == [
        ".dashi-run", "certificate.json", "inputs.npz", "metrics.json", "sheet_energy.npy", "state.npz",
    ]  # fmt: skip
    metrics = read_metrics(here / "run" / "metrics.json")
    assert metrics == read_metrics(here / "m.json") == result.metrics
    last = result.hashes[-1].digest
    with np.load(here / "run" / "state.npz", allow_pickle=False) as state:
        assert hexdigest128(state["z"]) == last
        assert (state["z"].shape, int(state["step"])) == ((D,), 40)
    sheet = np.load(here / "run" / "sheet_energy.npy", allow_pickle=False)
    assert sheet.shape == (8, 4)
    # A rotation keeps the sum of squares; fp32 keeps six digits of it over 40 steps.
    total = float(np.sum(np.load("z0.npz")["z0"].astype(np.float64) ** 2))
    assert np.allclose(sheet.sum(axis=1), total, rtol=1e-5) or np.allclose(sheet.sum(axis=1) * D / 4, total, rtol=1e-5)
    (here / "run").rename(here / "moved")
    for name in ("A.npz", "z0.npz"):
        (here / name).unlink()
    assert lab.verify(lab.VerifyRequest(certificate="moved/certificate.json"), device="cpu").same


@pytest.mark.usefixtures("here")
def test_metrics_tell_where_it_ran() -> None:
    metrics = run(steps=20).metrics
    assert (metrics.op_backend_requested, metrics.op_backend_used, metrics.op_device_type) == (
        "cpu",
        "cpu",
        "reference",
    )
    assert metrics.gpu_hotloop_active is False
    assert metrics.perf_flags == []
    assert metrics.ns_per_step == pytest.approx(1e9 / metrics.steps_per_s)
    assert (metrics.stage_seconds.wall or 0) >= (metrics.stage_seconds.rollout or 0) > 0
    assert metrics.peak_host_memory_bytes > 1 << 20
    assert metrics.verdict is not None
    assert metrics.verdict.name == "oscillating"


@pytest.mark.usefixtures("here", "vulkan")
def test_metrics_of_software_vulkan_are_no_gpu() -> None:
    metrics = run("vulkan:0", steps=20).metrics
    assert metrics.hotloop_dispatches > 0
    assert metrics.gpu_hotloop_active is (metrics.op_device_type != "software")
    assert metrics.peak_device_memory_bytes > 0
    assert metrics.kernel_fingerprints


# Where it runs


def test_a_device_that_is_not_there_is_an_error_unless_falling_back_is_allowed(here: Path) -> None:
    assert "99" in refused(device="vulkan:99", out="run")
    assert not (here / "run").exists()
    metrics = run("vulkan:99", allow_fallback=True, metrics="m.json").metrics
    assert metrics.op_backend_requested == "vulkan:99"
    assert metrics.op_backend_used != "vulkan:99"
    (flag,) = metrics.perf_flags
    assert (flag.name, flag.requested, flag.used) == ("op_device", "vulkan:99", metrics.op_backend_used)
    assert read_metrics(here / "m.json").perf_flags[0].reason == flag.reason


@pytest.mark.usefixtures("here")
def test_a_strategy_that_is_not_possible_is_an_error_unless_falling_back_is_allowed(vulkan: Any) -> None:
    if vulkan.info.type != "software":
        pytest.skip("this device can run tagged")
    assert "'tagged' here" in refused(device="vulkan:0", strategy="tagged")
    (flag,) = run("vulkan:0", strategy="tagged", allow_fallback=True).metrics.perf_flags
    assert (flag.name, flag.requested) == ("way", "tagged")


@pytest.mark.parametrize("allow_fallback", [False, True])
def test_a_gpu_that_is_required_must_be_there(here: Path, allow_fallback: bool) -> None:
    for device in ("cpu", "null"):
        said = refused(device=device, require_gpu=True, allow_fallback=allow_fallback, out="run")
        assert said.startswith(f"a GPU is required, but {device!r} is")
    assert not (here / "run").exists()


# Bad input


def savez(name: str, **arrays: Any) -> str:
    np.savez(name, **arrays)
    return name


@pytest.mark.usefixtures("here")
def test_nan_in_z0_is_refused() -> None:
    z0 = np.ones(D, np.float32)
    z0[3] = np.nan
    said = "z0 holds 1 values that are not finite, the first at [3]. Fix: "
    assert refused(z0=z0).startswith(said)
    assert refused(z0=savez("bad.npz", z0=z0)).startswith(said)


@pytest.mark.usefixtures("here")
def test_shapes_that_do_not_fit_are_refused() -> None:
    message = refused(A=savez("bad.npz", A=np.ones((D, D + 1), np.float32)))
    assert message.startswith(f"A has shape ({D}, {D + 1}); it must be square. Fix: ")
    message = refused(z0=np.ones(D + 1, np.float32))
    assert message.startswith(f"z0 has shape ({D + 1},); the operator advances states of shape ({D},). Fix: ")
    assert refused(b=savez("bad.npz", b=np.ones(D - 1, np.float32))).startswith("b is float32 of shape")


@pytest.mark.usefixtures("here")
def test_a_truncated_file_is_refused() -> None:
    whole = Path("z0.npz").read_bytes()
    Path("bad.npz").write_bytes(whole[: len(whole) // 2])
    assert refused(z0="bad.npz").startswith("bad.npz is damaged or cut short")


def test_a_pickled_file_is_refused_and_nothing_runs(here: Path) -> None:
    class Trap:
        def __reduce__(self) -> Any:
            return os.mkdir, (str(here / "trapped"),)

    savez("bad.npz", z0=np.array([Trap()], object))
    assert "it would need pickle, which can run code" in refused(z0="bad.npz")
    assert not (here / "trapped").exists()


@pytest.mark.parametrize("name", ["hash_every", "observe_every", "sheet_every", "checkpoint_every"])
def test_a_stride_of_0_is_refused(here: Path, name: str) -> None:
    for value in (0, -5):
        said = refused(out="run", **{name: value})
        assert said == f"`{name}=` is {value}. Fix: give a stride of 1 or more, or leave the option away."
    assert not (here / "run").exists()


@pytest.mark.parametrize("what", ["certificate", "metrics", "out"])
def test_a_full_disk_is_told_and_the_old_files_stay(here: Path, what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    run(**{what: "place"})
    before = {path: path.read_bytes() for path in here.rglob("*") if path.is_file()}

    def full(handle: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    assert "cannot be written: No space left on device. Fix: make room on that disk" in refused(**{what: "place"})
    assert {path: path.read_bytes() for path in here.rglob("*") if path.is_file()} == before


@pytest.mark.parametrize("name", ["metrics", "certificate"])
@pytest.mark.parametrize("out", [None, "run"])
def test_a_file_that_can_no_longer_be_written_takes_nothing_else_with_it(
    here: Path, monkeypatch: pytest.MonkeyPatch, name: str, out: str | None
) -> None:
    """Somebody put a folder there while the steps were made."""
    whole, steps = run(), rollouts.engine.rollout

    def meanwhile(*words: Any, **named: Any) -> Any:
        (here / "taken").mkdir()
        return steps(*words, **named)

    monkeypatch.setattr(rollouts.engine, "rollout", meanwhile)
    with pytest.raises(FileError, match=r"taken cannot be written: Is a directory\. Fix: ") as error:
        run(out=out, **{name: "taken"})
    assert hashes(error.value.result) == hashes(whole)
    assert error.value.result.folder == (Path(out) if out else None)
    if out:
        assert read_metrics(here / out / "metrics.json") == error.value.result.metrics


@pytest.mark.usefixtures("here")
def test_files_that_are_missing_or_lack_the_key_are_told() -> None:
    assert "there is no file none.npz" in refused(z0="none.npz")
    assert "A.npz has no array 'z0'; it has A" in refused(z0="A.npz")


@pytest.mark.usefixtures("here")
def test_other_types_are_refused_or_converted_when_asked() -> None:
    ints = np.ones(D, np.int64)
    assert "z0 is an array of int64; a run has states of float32 or float64" in refused(z0=ints)
    assert run(z0=ints, dtype="float32").metrics.dtype == "float32"
    assert "not of numbers" in refused(z0=np.array(["a"] * D), dtype="float32")
    said = refused(z0=np.full(D, 1e300), dtype="float32")
    assert said == "z0 has values that float32 cannot hold. Fix: use `dtype=float64`."


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"A": None}, "an operator is needed, and one only. Fix: give `A=`, or `operator=`."),
        ({"A": "A.npz", "operator": "A.npz"}, "an operator is needed, and one only"),
        ({"operator": "A.npz"}, "describes no operator"),
        ({"operator": "A.npz", "psi": "squash"}, "`b=`, `psi=` and `portable=False` go with `A=`"),
        ({"steps": 0}, "`steps=` is 0. Fix: ask for 1 step or more."),
        ({"checkpoint_every": 2}, "checkpoints are kept in a run folder. Fix: name one with `out=`."),
        ({"psi": "clamp", "low": 2.0}, "nothing between low"),
        ({"bands": 100, "out": "run"}, "no 100 bands"),
        ({"z0": np.ones(D), "certificate": "c.json"}, "some of these are arrays. Fix: give `out=` instead of"),
    ],
)
@pytest.mark.usefixtures("here")
def test_requests_that_cannot_be_meant_are_told(more: dict[str, Any], said: str) -> None:
    assert said in refused(**more)


@pytest.mark.usefixtures("here")
def test_going_on_needs_a_folder_with_a_checkpoint() -> None:
    with pytest.raises(FileError, match="checkpoints are kept in a run folder"):
        lab.rollout(asked(), device="cpu", resume=True)
    with pytest.raises(FileError, match="new holds no checkpoint"):
        lab.rollout(asked(), device="cpu", out="new", resume=True)


def test_a_state_that_blows_up_stops_the_run_with_step_and_index(here: Path) -> None:
    request: dict[str, Any] = {"A": np.eye(D, dtype=np.float32) * 1e10, "steps": 40, "observe_every": 10}
    with pytest.raises(NonFiniteError, match=r"not finite after step 4, the first at index 0.*nonfinite=False`"):
        run(**request, hash_every=2, out="run")
    metrics = read_metrics(here / "run" / "metrics.json")
    assert (metrics.steps, metrics.stopped, metrics.nonfinite_count) == (4, True, D)
    assert metrics.verdict is not None
    assert metrics.verdict.name == "blown up"
    assert read_certificate(here / "run" / "certificate.json").steps == 2
    verdict = run(**request, stop_on_nonfinite=False).metrics.verdict
    assert verdict is not None
    assert verdict.name == "blown up"


# Stopped, and going on


def stopped_at(step: int) -> Callable[..., Any]:
    """A rollout that Ctrl-C ends after so many steps."""
    real = rollouts.engine.rollout

    def stops(operator: Any, z0: Any, steps: int, **named: Any) -> Any:
        from dataclasses import replace

        named.pop("progress", None)
        raise Interrupted(replace(real(operator, z0, min(step, steps), **named), stopped=True))

    return stops


@pytest.mark.parametrize("step", [8, 7])
def test_ctrl_c_leaves_the_result_so_far_and_the_run_goes_on(
    here: Path, monkeypatch: pytest.MonkeyPatch, step: int
) -> None:
    request = asked(steps=20, hash_every=4, sheet_every=2)
    whole = lab.rollout(request, device="cpu", out="whole")
    with monkeypatch.context() as during:
        during.setattr(rollouts.engine, "rollout", stopped_at(step))
        with pytest.raises(Interrupted) as stop:
            lab.rollout(request, device="cpu", out="run")
    partial = stop.value.partial
    assert isinstance(partial, Run)
    assert (partial.steps, partial.metrics.stopped, partial.folder) == (step, True, Path("run"))
    assert read_certificate(here / "run" / "certificate.json").steps == step // 4 * 4
    events = Heard()
    on = lab.rollout(request, device="cpu", out="run", resume=True, events=events)
    assert f"going on after {step} steps" in events.lines
    assert hashes(on) == hashes(whole)
    for name in ("state.npz", "sheet_energy.npy"):
        assert (here / "run" / name).read_bytes() == (here / "whole" / name).read_bytes()
    assert not (here / "run" / "checkpoint.npz").exists()


def test_ctrl_c_before_the_first_hash_certifies_nothing(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rollouts.engine, "rollout", stopped_at(3))
    events = Heard()
    with pytest.raises(Interrupted):
        lab.rollout(asked(steps=20, hash_every=4), device="cpu", out="run", events=events)
    assert "it ended before the first hash: there is nothing to certify" in events.lines
    assert not (here / "run" / "certificate.json").exists()


def test_a_checkpoint_of_other_inputs_or_strides_is_refused(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    request: dict[str, Any] = {"steps": 12, "hash_every": 2, "checkpoint_every": 5}
    with monkeypatch.context() as killed:
        killed.setattr(rollouts.run_folder, "close_run", lambda *_, **__: None)
        run(**request, out="run")
    assert (here / "run" / "checkpoint.npz").exists()

    def goes_on(**other: Any) -> Run:
        return lab.rollout(asked(**{**request, **other}), device="cpu", out="run", resume=True)

    for inputs in ({"b": "b.npz"}, {"psi": "squash"}, {"dtype": "float64"}):
        with pytest.raises(FileError, match="of a run with other inputs"):
            goes_on(**inputs)
    for name in ("hash_every", "sheet_every", "bands"):
        with pytest.raises(DashiError, match=rf"the run that goes on has `{name}=` \d+, not 3. Fix: leave `{name}=`"):
            goes_on(**{name: 3})
    assert hashes(goes_on(steps=20)) == hashes(run(steps=20, hash_every=2))


@pytest.mark.parametrize("out", [None, "run"])
def test_a_finished_run_goes_on_with_the_bits_of_one_that_never_stopped(here: Path, out: str | None) -> None:
    strides: dict[str, Any] = {"hash_every": 4, "observe_every": 3}
    whole = run(steps=20, **strides)
    part = run(steps=9, out=out, **strides)
    on = part.resume(20)
    assert isinstance(on, Run)
    assert hashes(on) == hashes(whole)
    assert [one.step for one in on.observations] == [one.step for one in whole.observations]
    assert (on.folder, on.metrics.steps) == (Path(out) if out else None, 20)
    with pytest.raises(InputError, match=r"20 steps are done already, 20 asked for\. Fix: ask for more"):
        on.resume(20)


def test_a_run_of_no_job_says_what_it_has_not(here: Path) -> None:
    alone = replace(run(), job=None)
    assert (alone.folder, alone.certificates) == (None, {})
    for what in ("metrics", "certificate", "fields", "request"):
        with pytest.raises(InputError, match=rf"of no job, which would give it {what}\. Fix: use dashi.rollout"):
            getattr(alone, what)
