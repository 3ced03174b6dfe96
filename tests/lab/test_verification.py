"""Verifying: a certificate holds anywhere, or the first step that does not is named."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dashi
from dashi import lab
from dashi.core.certificates import _verify as verifying
from dashi.core.certificates._certificate import document_digest
from dashi.core.certificates.inputs import save_operator
from dashi.core.operators.bands import Bands, tree
from dashi.core.operators.operator import Operator
from dashi.core.operators.quadratic import Quadratic
from dashi.core.operators.sparse import BlockSparse, Csr
from dashi.errors import DashiError
from dashi.runtime import _cpu_device as cpu_device
from dashi.runtime.device import Step

D = 10


@pytest.fixture
def here(here: Path, write_inputs: Callable[[int], None]) -> Path:
    """A folder with inputs and the certificate of a run on the cpu."""
    write_inputs(D)
    certify("c.json", "cpu")
    return here


def certify(file: str, device: str, **more: Any) -> None:
    inputs = {} if "operator" in more else {"A": "A.npz"}
    asked: dict[str, Any] = {"z0": "z0.npz", "steps": 50, "hash_every": 20, "strategy": "stepwise", **inputs, **more}
    lab.rollout(lab.RolloutRequest(certificate=file, **asked), device=device)


def verify(file: str, *, device: str = "cpu", same: bool = True, **more: Any) -> lab.Verification:
    result = lab.verify(lab.VerifyRequest(certificate=file, **more), device=device)
    assert result.same is same
    return result


def refused(file: str, *, device: str = "cpu", **more: Any) -> str:
    with pytest.raises(DashiError) as error:
        lab.verify(lab.VerifyRequest(certificate=file, **more), device=device)
    return f"{type(error.value).__name__}: {error.value}"


def edit(file: str, change: Callable[[dict[str, Any]], Any], *, sign: bool = True) -> None:
    """Changes a certificate and, as its maker could, gives it a new digest."""
    document = json.loads(Path(file).read_text())
    change(document)
    if sign:
        document["digest"] = document_digest(document)
    Path(file).write_text(json.dumps(document))


def test_a_certificate_verifies_on_every_device(here: Path) -> None:
    devices = [info.spec for info in dashi.devices() if info.type != "null"]
    for made in devices:
        certify("other.json", made)
        for device in devices:
            (check,) = verify("other.json", device=device).checks
            assert (check.hashes, check.steps) == (3, 50)


@pytest.mark.parametrize("psi", ["squash", "softplus", "clamp"])
def test_nonlinear_certificates_verify_too(here: Path, psi: str, vulkan: Any) -> None:
    np.savez("b.npz", b=np.linspace(-1, 1, D).astype(np.float32))
    certify("other.json", "cpu", b="b.npz", psi=psi, alpha=0.7, high=0.6)
    verify("other.json", device="vulkan:0")
    certify("other.json", "vulkan:0", b="b.npz", psi=psi, dtype="float64")
    verify("other.json")


def test_a_nonlinearity_without_a_bias_verifies(here: Path) -> None:
    certify("other.json", "cpu", psi="squash", alpha=0.7)
    verify("other.json")


def csr(kind: Any) -> Operator:
    sparse = np.diag(np.linspace(0.5, 1, D)) + np.diag(np.full(D - 1, 0.25), 1)
    return Csr.from_dense(sparse.astype(kind), np.linspace(-1, 1, D).astype(kind), "squash", alpha=0.9)


def block_sparse(kind: Any) -> Operator:
    return BlockSparse.from_dense(np.kron(np.eye(5), [[0.6, -0.8], [0.8, 0.6]]).astype(kind), 2)


def quadratic(kind: Any) -> Operator:
    i = np.arange(D, dtype=np.uint32)
    j, k = (i + 1) % D, (i + 3) % D
    return Quadratic(i, j, k, np.full(D, 0.5, kind), dt=0.01, L=-np.eye(D, dtype=kind), f=np.full(D, 0.1, kind))


def bands(kind: Any) -> Operator:
    rates, coupling = np.linspace(0.05, 0.2, 4).astype(kind), np.full((4, 4), 0.3, kind)
    return Bands(tree(2, 3, kind), rates, coupling, 0.01, "squash")


MAKERS = {made.__name__: made for made in (csr, block_sparse, quadratic, bands)}


@pytest.mark.parametrize("states", [(), (3,)], ids=["one", "ensemble"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", MAKERS)
def test_every_kind_of_operator_verifies_across_devices(
    here: Path, name: str, dtype: str, states: tuple[int, ...], vulkan: Any
) -> None:
    operator = MAKERS[name](np.dtype(dtype))
    save_operator(here / "op.npz", operator)
    z0 = np.random.default_rng(8).uniform(0.1, 1, (*states, *operator.shape)).astype(dtype)
    np.savez("states.npz", z0=z0)
    for made, repeated in (("cpu", "vulkan:0"), ("vulkan:0", "cpu")):
        certify("op.json", made, z0="states.npz", operator="op.npz", steps=30, strategy="auto")
        claimed = verify("op.json", device=repeated).certificate
        assert (claimed.operator.kind, claimed.dtype) == (operator.kind, dtype)


def test_a_run_folder_is_verified_by_its_own_certificate(here: Path) -> None:
    lab.rollout(lab.RolloutRequest(z0="z0.npz", A="A.npz", steps=8, hash_every=4), device="cpu", out="run")
    assert verify("run").file == Path("run/certificate.json")
    assert verify("run").sentences[0].endswith(": all 2 hashes are the same")


def test_the_first_hash_that_differs_is_named_with_its_interval(here: Path) -> None:
    edit("c.json", lambda d: d["hashes"][1].update(hash="ab" * 16))
    result = verify("c.json", same=False)
    (check,) = result.checks
    assert (check.hashes, check.steps) == (1, 20)
    assert check.difference is not None
    assert (check.difference.first, check.difference.last, check.difference.claimed) == (20, 40, "ab" * 16)
    assert "DIFFERS between step 20 and step 40" in result.sentences[0]


def test_a_run_that_goes_wrong_early_ends_early(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dashi.core.rollouts.rollout.BLOCK_US", 0.0)  # blocks of one step
    edit("c.json", lambda d: d["hashes"][0].update(hash="ab" * 16))
    difference = verify("c.json", same=False).checks[0].difference
    assert difference is not None
    assert difference.last == 20
    done: list[int] = []
    from dashi.core.certificates._certificate import read_certificate
    from dashi.core.certificates.inputs import certified_inputs

    claimed = read_certificate(here / "c.json")
    operator, z0 = certified_inputs(claimed, here, None)
    with dashi.open("cpu") as device:
        verifying.check(claimed, operator, z0, device, strategy="stepwise", progress=done.append)
    assert sum(done) == 19  # the block that ends with the wrong hash was the last


def test_both_devices_against_a_wrong_claim_agree_with_each_other(here: Path, vulkan: Any) -> None:
    edit("c.json", lambda d: d["hashes"][1].update(hash="ab" * 16))
    result = verify("c.json", against="vulkan:0", same=False)
    assert result.divergence is None
    assert result.sentences[-1] == "both devices give the same hash there, which is not the one claimed"


@pytest.mark.parametrize("fault", [1, 20, 33, 50])
def test_the_exact_step_is_found_where_a_device_goes_wrong(
    here: Path, fault: int, vulkan: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    spoil_numpy_at(fault, monkeypatch)
    result = verify("c.json", device="vulkan:0", against="cpu", same=False)
    good, bad = result.checks
    assert good.difference is None
    assert bad.difference is not None
    first = (fault - 1) // 20 * 20
    assert (bad.difference.first, bad.difference.last) == (first, min(50, first + 20))
    assert result.divergence is not None
    assert (result.divergence.step, result.divergence.index) == (fault, 7)
    assert f"the two devices part at step {fault}: component 7 is " in result.sentences[-1]


def spoil_numpy_at(fault: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """From now on NumPy makes a mistake in one component, of the state that comes before a certain step."""
    rng_state = np.load("z0.npz")["z0"]
    with dashi.open("cpu") as device:
        for _ in range(fault - 1):
            rng_state = device.run("gemv", rng_state, np.load("A.npz")["A"]).numpy()
    before = rng_state.tobytes()
    right: Any = vars(cpu_device)["_compute"]

    def wrong(step: Step) -> None:
        faulty = step.kernel.name == "gemv" and step.inputs[0].numpy().tobytes() == before
        right(step)
        if faulty:
            values = step.outputs[0].numpy().copy()
            values.reshape(-1)[7] += np.float32(0.5)
            step.outputs[0].write(values)

    monkeypatch.setattr(cpu_device, "_compute", wrong)
    # One dispatch a step, so that there are steps to spoil.
    real = verifying.rollout
    monkeypatch.setattr(verifying, "rollout", lambda *a, **k: real(*a, **{**k, "strategy": "stepwise"}))


# What cannot be repeated


def test_an_edited_certificate_is_refused(here: Path) -> None:
    edit("c.json", lambda d: d["hashes"][1].update(hash="ab" * 16), sign=False)
    assert refused("c.json").startswith("CertificateError: c.json was changed after it was made")


def test_missing_inputs_are_told_and_found_elsewhere(here: Path) -> None:
    (here / "elsewhere").mkdir()
    (here / "A.npz").rename(here / "elsewhere" / "A.npz")
    said = "the input 'A' is not there: A.npz. Fix: put it there, or say in which folder it is with `inputs=`."
    assert said in refused("c.json")
    assert "the input 'z0' is not there" in refused("c.json", inputs="elsewhere")
    (here / "z0.npz").rename(here / "elsewhere" / "z0.npz")
    verify("c.json", inputs="elsewhere")


def test_other_inputs_are_refused(here: Path) -> None:
    values = np.load("A.npz")["A"].copy()
    values[0, 0] = np.nextafter(values[0, 0], np.float32(2))
    np.savez("A.npz", A=values)
    assert "A.npz: A is not the A of this certificate: its digest is other." in refused("c.json")
    np.savez("A.npz", B=values)
    assert "has no array 'A'" in refused("c.json")
    Path("A.npz").write_bytes(b"PK")
    assert "damaged or cut short" in refused("c.json")


def test_a_flow_certified_before_its_bits_changed_is_refused_with_the_reason(here: Path) -> None:
    edit("c.json", lambda d: d["operator"].update(kind="vorticity", version=1))
    assert "made by version 1 of vorticity; this dashi computes version 3: other bits" in refused("c.json")


def test_another_version_of_the_operator_and_an_unknown_one_are_refused(here: Path) -> None:
    edit("c.json", lambda d: d["operator"].update(version=99))
    assert "made by version 99 of linear; this dashi computes version 1: other bits" in refused("c.json")
    edit("c.json", lambda d: d["operator"].update(kind="magic"))
    assert refused("c.json").startswith(
        "CertificateError: the operator cannot be made again: there is no operator 'magic'"
    )


@pytest.mark.parametrize("path", ["../../etc/passwd", "/etc/passwd", "a/../../outside.npz", ".."])
def test_paths_that_lead_elsewhere_are_refused(here: Path, path: str) -> None:
    (here.parent / "outside.npz").write_bytes((here / "A.npz").read_bytes())
    edit("c.json", lambda d: d["inputs"][1].update(path=path))
    told = refused("c.json")
    assert told.startswith("CertificateError: the certificate names an input outside of its folder")
    assert "`inputs=" in told


@pytest.mark.parametrize("path", ["\0", "a" * 4000, "A.npz/below", ""])
def test_paths_that_are_none_are_refused(here: Path, path: str) -> None:
    edit("c.json", lambda d: d["inputs"][1].update(path=path))
    assert refused("c.json")
    assert refused("c.json", inputs=".")


def test_symbolic_links_that_lead_elsewhere_are_refused(here: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    outside = tmp_path_factory.mktemp("outside") / "A.npz"
    (here / "A.npz").rename(outside)
    (here / "A.npz").symlink_to(outside)
    assert "names an input outside of its folder" in refused("c.json")
    verify("c.json", inputs=".")


def test_inputs_beside_a_folder_of_certificates_verify_from_the_working_folder(here: Path) -> None:
    certify("made/c.json", "cpu", steps=5, hash_every=5)
    verify("made/c.json")


def test_the_null_device_verifies_nothing(here: Path) -> None:
    assert refused("c.json", device="null").startswith("NoResultError: 'null' gave no hashes to compare")


def test_a_missing_certificate_is_told(here: Path) -> None:
    assert "there is no file none.json" in refused("none.json")
