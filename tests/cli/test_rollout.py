"""`dashi rollout`: what it computes, what it leaves, and how it says that something is wrong."""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import dashi
from dashi.cli.main import app
from dashi.core.certificates.certificate import read_certificate
from dashi.io.metrics import read_metrics
from dashi.kernels.hash.blake3 import hexdigest128
from dashi.kernels.portable import canon

D = 12


@pytest.fixture
def here(here: Path, write_inputs: Callable[[int], None]) -> Path:
    """A folder with inputs."""
    write_inputs(D)
    return here


INPUTS = ("--z0", "z0.npz", "--A", "A.npz")


def call(*words: str) -> Any:
    return CliRunner().invoke(app, ["rollout", *words])


def good(*words: str) -> dict[str, Any]:
    done = call(*words, "--json")
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)


def bad(*words: str) -> str:
    """What is said on stderr by a call that ends with an error and its fix; the document on stdout says the same."""
    done = call(*words, "--json")
    assert done.exit_code == 3, done.output
    error = json.loads(done.stdout)["error"]
    told = f"error: {error['what']}\nFix: {error['fix']}\n"
    assert done.stderr.endswith(told)
    return told


# What it computes


def test_the_command_of_the_issue_works_and_its_hashes_are_those_of_the_states(here: Path) -> None:
    made = good(*INPUTS, "--steps", "5", "--hash-every", "2", "--certificate", "c.json", "--device", "cpu")
    assert [h["step"] for h in made["hashes"]] == [2, 4, 5]
    z: Any = np.load("z0.npz")["z0"]
    matrix = np.load("A.npz")["A"]
    seen = {}
    with dashi.open("cpu") as device:
        for step in range(1, 6):
            z = device.run("gemv", z, matrix).numpy()
            seen[step] = hexdigest128(canon(z))
    assert [h["hash"] for h in made["hashes"]] == [seen[2], seen[4], seen[5]]
    assert made["hash"] == seen[5]
    assert made["dtype"] == "float32"
    assert made["certificate"] == "c.json"
    assert [c.hash for c in read_certificate(here / "c.json").hashes] == [seen[2], seen[4], seen[5]]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("z0", ["z0.npz", "many.npz"])
@pytest.mark.parametrize("psi", [(), ("--b", "b.npz"), ("--psi", "squash", "--alpha", "0.5"), ("--psi", "clamp")])
def test_every_device_gives_the_same_hashes(here: Path, dtype: str, z0: str, psi: tuple[str, ...]) -> None:
    words = ("--z0", z0, "--A", "A.npz", "--steps", "7", "--hash-every", "3", "--dtype", dtype, *psi)
    one = good(*words, "--device", "cpu")
    assert one["states"] == (3 if z0 == "many.npz" else 1)
    assert one["dtype"] == dtype
    if any(info.spec == "vulkan:0" for info in dashi.devices()):
        two = good(*words, "--device", "vulkan:0", "--way", "stepwise")
        assert two["hashes"] == one["hashes"]
        assert two["hotloop_dispatches"] > 0


def test_dtype_is_that_of_z0_unless_said_and_a_change_is_told(here: Path) -> None:
    np.savez("wide.npz", z0=np.ones(D))
    done = call("--z0", "wide.npz", "--A", "A.npz", "--steps", "2", "--device", "cpu", "--json")
    assert json.loads(done.stdout)["dtype"] == "float64"
    assert "A is float32 in A.npz; it is used as float64" in done.stderr


def test_an_operator_file_of_any_kind_runs(here: Path) -> None:
    from dashi.core.certificates.inputs import load_operator, save_operator
    from dashi.core.operators.affine import Affine

    matrix = np.load("A.npz")["A"]
    save_operator(here / "op.npz", Affine(matrix, np.load("b.npz")["b"], "squash", alpha=0.25))
    assert load_operator(here / "op.npz").parameters["alpha"] == 0.25
    one = good("--z0", "z0.npz", "--operator", "op.npz", "--steps", "9", "--device", "cpu", "--certificate", "c.json")
    two = good(*INPUTS, "--b", "b.npz", "--psi", "squash", "--alpha", "0.25", "--steps", "9", "--device", "cpu")
    assert one["hashes"] == two["hashes"]
    assert {i.name: i.path for i in read_certificate(here / "c.json").inputs} == {
        "z0": "z0.npz", "A": "op.npz", "b": "op.npz",
    }  # fmt: skip


def test_fast_says_that_it_is_not_portable_and_has_no_certificate(here: Path) -> None:
    made = good(*INPUTS, "--steps", "4", "--fast", "--device", "cpu", "--out", "run")
    assert made["portable"] is False
    assert not (here / "run" / "certificate.json").exists()
    assert (
        "no: these hashes hold on this device alone"
        in call(*INPUTS, "--steps", "4", "--fast", "--device", "cpu").stdout
    )
    assert "a fast run is not portable" in bad(*INPUTS, "--steps", "4", "--fast", "--certificate", "c.json")


# What it leaves


def test_a_run_folder_is_whole_and_verifies_wherever_it_is_moved(here: Path) -> None:
    made = good(*INPUTS, "--steps", "40", "--hash-every", "10", "--sheet-every", "5", "--bands", "4", "--out", "run",
                "--device", "cpu", "--metrics", "m.json")  # fmt: skip
    assert sorted(p.name for p in (here / "run").iterdir()) == [
        ".dashi-run", "certificate.json", "inputs.npz", "metrics.json", "sheet_energy.npy", "state.npz",
    ]  # fmt: skip
    metrics = read_metrics(here / "run" / "metrics.json")
    assert metrics == read_metrics(here / "m.json")
    assert metrics.hashes[-1].hash == made["hash"]
    with np.load(here / "run" / "state.npz", allow_pickle=False) as state:
        assert hexdigest128(state["z"]) == made["hash"]
        assert (state["z"].shape, int(state["step"])) == ((D,), 40)
    sheet = np.load(here / "run" / "sheet_energy.npy", allow_pickle=False)
    assert sheet.shape == (8, 4)
    # A rotation keeps the sum of squares; fp32 keeps six digits of it over 40 steps.
    total = float(np.sum(np.load("z0.npz")["z0"].astype(np.float64) ** 2))
    assert np.allclose(sheet.sum(axis=1), total, rtol=1e-5) or np.allclose(sheet.sum(axis=1) * D / 4, total, rtol=1e-5)
    (here / "run").rename(here / "moved")
    for name in ("A.npz", "z0.npz"):
        (here / name).unlink()
    done = CliRunner().invoke(app, ["verify", "moved/certificate.json", "--device", "cpu"])
    assert done.exit_code == 0, done.output


def test_metrics_tell_where_it_ran(here: Path) -> None:
    made = good(*INPUTS, "--steps", "20", "--device", "cpu")
    assert (made["op_backend_requested"], made["op_backend_used"], made["op_device_type"]) == (
        "cpu",
        "cpu",
        "reference",
    )
    assert made["gpu_hotloop_active"] is False
    assert made["perf_flags"] == []
    assert made["ns_per_step"] == pytest.approx(1e9 / made["steps_per_s"])
    assert made["stage_seconds"]["wall"] >= made["stage_seconds"]["rollout"] > 0
    assert made["peak_host_memory_bytes"] > 1 << 20
    assert made["verdict"]["name"] == "oscillating"


def test_metrics_of_software_vulkan_are_no_gpu(here: Path, vulkan: Any) -> None:
    made = good(*INPUTS, "--steps", "20", "--device", "vulkan:0")
    assert made["hotloop_dispatches"] > 0
    assert made["gpu_hotloop_active"] is (made["op_device_type"] != "software")
    assert made["peak_device_memory_bytes"] > 0
    assert made["kernel_fingerprints"]


def test_a_table_is_printed_for_people(here: Path) -> None:
    done = call(*INPUTS, "--steps", "20", "--device", "cpu", "--certificate", "c.json")
    rows = {line.split()[0] for line in done.stdout.splitlines() if line[0] != " "}
    assert rows == {"verdict", "device", "steps", "time", "way", "hash", "certificate"}
    assert done.stderr.startswith("rolling out 20 steps of linear on NumPy")


# Where it runs


def test_a_device_that_is_not_there_is_an_error_unless_falling_back_is_allowed(here: Path) -> None:
    assert "99" in bad(*INPUTS, "--steps", "4", "--device", "vulkan:99", "--out", "run")
    assert not (here / "run").exists()
    made = good(*INPUTS, "--steps", "4", "--device", "vulkan:99", "--allow-fallback", "--metrics", "m.json")
    assert made["op_backend_requested"] == "vulkan:99"
    assert made["op_backend_used"] != "vulkan:99"
    (flag,) = made["perf_flags"]
    assert (flag["name"], flag["requested"], flag["used"]) == ("op_device", "vulkan:99", made["op_backend_used"])
    assert read_metrics(here / "m.json").perf_flags[0].reason == flag["reason"]


def test_a_way_that_is_not_possible_is_an_error_unless_falling_back_is_allowed(here: Path, vulkan: Any) -> None:
    if vulkan.info.type != "software":
        pytest.skip("this device can run tagged")
    words = (*INPUTS, "--steps", "4", "--device", "vulkan:0", "--way", "tagged")
    assert "cannot run the way 'tagged' here" in bad(*words)
    (flag,) = good(*words, "--allow-fallback")["perf_flags"]
    assert (flag["name"], flag["requested"]) == ("way", "tagged")


def test_op_device_overrides_device(here: Path) -> None:
    made = good(*INPUTS, "--steps", "4", "--device", "vulkan:99", "--op-device", "cpu")
    assert (made["op_backend_requested"], made["op_backend_used"]) == ("cpu", "cpu")


@pytest.mark.parametrize("more", [(), ("--allow-fallback",)])
def test_require_gpu_fails_without_one(here: Path, more: tuple[str, ...]) -> None:
    for device in ("cpu", "null"):
        told = bad(*INPUTS, "--steps", "4", "--device", device, "--require-gpu", *more, "--out", "run")
        assert told.startswith(f"error: a GPU is required, but {device!r} is")
    assert not (here / "run").exists()


# Bad input


def savez(name: str, **arrays: Any) -> str:
    np.savez(name, **arrays)
    return name


def test_nan_in_z0_is_refused(here: Path) -> None:
    z0 = np.ones(D, np.float32)
    z0[3] = np.nan
    told = bad("--z0", savez("bad.npz", z0=z0), "--A", "A.npz", "--steps", "4")
    assert told.startswith("error: z0 holds 1 values that are not finite, the first at [3].\nFix: ")


def test_a_that_is_not_square_is_refused(here: Path) -> None:
    told = bad("--z0", "z0.npz", "--A", savez("bad.npz", A=np.ones((D, D + 1), np.float32)), "--steps", "4")
    assert told.startswith(f"error: A has shape ({D}, {D + 1}); it must be square.\nFix: ")


def test_dimensions_that_do_not_fit_are_refused(here: Path) -> None:
    told = bad("--z0", savez("bad.npz", z0=np.ones(D + 1, np.float32)), "--A", "A.npz", "--steps", "4")
    assert told.startswith(f"error: z0 has shape ({D + 1},); the operator advances states of shape ({D},).\nFix: ")
    told = bad(*INPUTS, "--b", savez("bad.npz", b=np.ones(D - 1, np.float32)), "--steps", "4")
    assert told.startswith("error: b is float32 of shape")


def test_a_truncated_file_is_refused(here: Path) -> None:
    whole = Path("z0.npz").read_bytes()
    Path("bad.npz").write_bytes(whole[: len(whole) // 2])
    assert bad("--z0", "bad.npz", "--A", "A.npz", "--steps", "4").startswith("error: bad.npz is damaged or cut short")


def test_a_pickled_file_is_refused_and_nothing_runs(here: Path) -> None:
    class Trap:
        def __reduce__(self) -> Any:
            return os.mkdir, (str(here / "trapped"),)

    savez("bad.npz", z0=np.array([Trap()], object))
    assert "it would need pickle, which can run code" in bad("--z0", "bad.npz", "--A", "A.npz", "--steps", "4")
    assert not (here / "trapped").exists()


@pytest.mark.parametrize("option", ["--hash-every", "--observe-every", "--sheet-every", "--checkpoint-every"])
def test_a_stride_of_0_is_refused(here: Path, option: str) -> None:
    for value in ("0", "-5"):
        told = bad(*INPUTS, "--steps", "4", option, value, "--out", "run")
        assert told == f"error: {option} is {value}.\nFix: give a stride of 1 or more, or leave the option away.\n"
    assert not (here / "run").exists()


@pytest.mark.parametrize("what", ["c.json", "m.json", "run"])
def test_a_full_disk_is_told_and_the_old_files_stay(here: Path, what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    words = [*INPUTS, "--steps", "4", "--device", "cpu"]
    words += {"c.json": ["--certificate", what], "m.json": ["--metrics", what], "run": ["--out", what]}[what]
    good(*words)
    before = {path: path.read_bytes() for path in here.rglob("*") if path.is_file()}

    def full(handle: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    told = bad(*words)
    assert "cannot be written: No space left on device.\nFix: make room on that disk" in told
    assert {path: path.read_bytes() for path in here.rglob("*") if path.is_file()} == before


def test_a_full_device_is_told(here: Path) -> None:
    told = bad(*INPUTS, "--steps", "4", "--device", "cpu", "--certificate", "/dev/full")
    assert told.startswith("error: /dev/full cannot be written: No space left on device.\nFix: make room on that disk")


def test_files_that_are_missing_or_lack_the_key_are_told(here: Path) -> None:
    assert "there is no file none.npz" in bad("--z0", "none.npz", "--A", "A.npz", "--steps", "4")
    assert "A.npz has no array 'z0'; it has A" in bad("--z0", "A.npz", "--A", "A.npz", "--steps", "4")


def test_other_types_are_refused_or_converted_when_asked(here: Path) -> None:
    words = ("--z0", savez("ints.npz", z0=np.ones(D, np.int64)), "--A", "A.npz", "--steps", "4", "--device", "cpu")
    assert "z0 is an array of int64; a run has states of float32 or float64" in bad(*words)
    assert good(*words, "--dtype", "float32")["dtype"] == "float32"
    savez("text.npz", z0=np.array(["a"] * D))
    assert "not of numbers" in bad("--z0", "text.npz", "--A", "A.npz", "--steps", "4", "--dtype", "float32")
    savez("huge.npz", z0=np.full(D, 1e300))
    assert "float32 cannot hold" in bad("--z0", "huge.npz", "--A", "A.npz", "--steps", "4", "--dtype", "float32")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--z0", "z0.npz", "--steps", "4"), "an operator is needed, and one only"),
        ((*INPUTS, "--operator", "A.npz", "--steps", "4"), "an operator is needed, and one only"),
        (("--z0", "z0.npz", "--operator", "A.npz", "--steps", "4"), "describes no operator"),
        (("--z0", "z0.npz", "--operator", "A.npz", "--psi", "squash", "--steps", "4"), "go with --A"),
        ((*INPUTS, "--steps", "0"), "--steps is 0"),
        ((*INPUTS, "--steps", "4", "--resume"), "checkpoints are kept in a run folder"),
        ((*INPUTS, "--steps", "4", "--checkpoint-every", "2"), "checkpoints are kept in a run folder"),
        ((*INPUTS, "--steps", "4", "--resume", "--out", "new"), "holds no checkpoint"),
        ((*INPUTS, "--steps", "4", "--psi", "clamp", "--low", "2"), "nothing between low"),
        ((*INPUTS, "--steps", "4", "--bands", "100", "--out", "run"), "no 100 bands"),
    ],
)
def test_options_that_cannot_be_meant_are_told(here: Path, words: tuple[str, ...], said: str) -> None:
    assert said in bad(*words)


def test_a_state_that_blows_up_stops_the_run_with_step_and_index(here: Path) -> None:
    savez("grow.npz", A=np.eye(D, dtype=np.float32) * 1e10)
    words = ("--z0", "z0.npz", "--A", "grow.npz", "--steps", "40", "--device", "cpu", "--observe-every", "10")
    told = bad(*words, "--hash-every", "2", "--out", "run", "--certificate", "c.json")
    assert "not finite after step 4, the first at index 0." in told
    assert "--keep-going" in told
    metrics = read_metrics(here / "run" / "metrics.json")
    assert (metrics.steps, metrics.stopped, metrics.nonfinite_count) == (4, True, D)
    assert metrics.verdict is not None
    assert metrics.verdict.name == "blown up"
    assert read_certificate(here / "c.json").steps == 2
    assert good(*words, "--keep-going")["verdict"]["name"] == "blown up"
