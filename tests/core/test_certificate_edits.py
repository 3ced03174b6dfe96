"""Every field of a certificate means something: whichever is edited, the certificate is refused or does not verify.

Each leaf and each container of the document is changed in turn, with the digest made anew, as the maker of a forged
certificate could. What is left free is listed here, and in docs/certificates.md.
"""

from __future__ import annotations

import copy
import hashlib
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import dashi
from dashi.cli.main import app
from dashi.core.certificates import _certificate as certificates
from dashi.core.certificates._certificate import (
    document_digest,
    read_certificate,
    write_certificate,
)
from dashi.core.certificates._certified_run import CertifiedRun, joined
from dashi.core.certificates._certify import certify
from dashi.core.certificates._segments import segments_of
from dashi.core.certificates._verify import check
from dashi.core.certificates.inputs import save_inputs
from dashi.core.operators.affine import Affine, Linear
from dashi.core.operators.operator import Operator
from dashi.core.rollouts._state_files import StateFiles
from dashi.core.rollouts.rollout import rollout
from dashi.errors import CertificateError, InputError
from dashi.flow import Flow
from dashi.flow._operator import Vorticity
from dashi.flow.initial import ensemble
from dashi.runtime.device import Device

Keys = tuple[Any, ...]
Edit = tuple[Keys, str, dict[str, Any]]
"""Where it was edited, how, and the document after it."""

FREE = {
    ("dashi_version",), ("device", "name"), ("device", "driver"), ("device", "driver_version"), ("device", "spec"),
    ("device", "type"), ("kernels", "*"), ("way",),
}  # fmt: skip
"""Fields that describe and are not repeated: any value of their form is believed."""

FREE_TOO: dict[int, set[Keys]] = {1: set(), 2: {("float_rules",)}}
"""More of them, by version."""

UNUSED = {"affine": {("operator", "parameters", "low"), ("operator", "parameters", "high")}}
"""Numbers that the nonlinearity of the run, squash, does not read."""

OTHERS: dict[str, list[Any]] = {
    # Values that keep the form of a field; where it has none, any text does.
    "dashi_version": ["9.9.9"],
    "spec": ["vulkan:7"],
    "type": ["discrete"],
    "way": ["workgroup"],
    "float_rules": ["by custom", "declared for fp32 fp64"],
}


@pytest.fixture(scope="module")
def device() -> Iterator[Device]:
    with dashi.open("cpu") as opened:
        yield opened


def linear() -> tuple[Operator, Any]:
    turn = np.kron(np.eye(3), [[0.6, -0.8], [0.8, 0.6]]).astype(np.float32)
    return Linear(turn), np.arange(1, 7, dtype=np.float32)


def affine() -> tuple[Operator, Any]:
    bias = np.linspace(-1, 1, 6).astype(np.float32)
    return Affine(np.diag(bias), bias, "squash", alpha=0.7), np.arange(1, 7, dtype=np.float32)


def vorticity() -> tuple[Operator, Any]:
    flow = Flow(16, nu=0.01, dt=0.02)
    return Vorticity(flow), ensemble(flow, "random", seeds=[1])


KEPT = [(make, bits) for make, bits in ((linear, 0), (affine, 0), (vorticity, 0), (linear, 128), (affine, 256))]


@pytest.fixture(scope="module", params=KEPT, ids=[f"{make.__name__}, {bits or 'no'} bits" for make, bits in KEPT])
def certificate(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, device: Device) -> Path:
    """The certificate of a run of five steps, beside its inputs, and the states of every two if it keeps them."""
    make, bits = request.param
    operator, z0 = make()
    folder = tmp_path_factory.mktemp("certified")
    states = folder / "states"
    kept = [StateFiles(2, states, bits)] if bits else []
    run = rollout(operator, z0, 5, device=device, hash_every=2, observers=kept, strategy="stepwise")
    file = folder / "certificate.json"
    write_certificate(file, certify(run, file, save_inputs(folder / "inputs.npz", operator, z0), states))
    assert json.loads(file.read_text())["schema_version"] == (2 if bits else 1)
    assert outcome(file, device) == "verified"
    return file


def outcome(file: Path, device: Device) -> str:
    """What `dashi verify` makes of a certificate."""
    try:
        claimed = read_certificate(file)
        run, segments = CertifiedRun.open(claimed, file.parent, None), segments_of(claimed)
        if run.states is not None:
            run.states.require(segments, lambda _: None)
        return "differs" if joined([run.check(each, device) for each in segments]).difference else "verified"
    except InputError as error:
        return "refused" if error.fix else f"refused without a fix: {error}"


def edits(document: dict[str, Any]) -> Iterator[Edit]:
    """Every leaf with another value and another type; every container without each of its parts, and with one more."""
    for keys, value in places(document):
        name = str(keys[-1])
        for other in values_like(name, value):
            yield keys, f"to {other!r}", changed(document, keys, other)
        yield keys, "gone", changed(document, keys)
        if isinstance(value, dict):
            yield keys, "one more", changed(document, (*keys, "guarantee"), "x")
        if isinstance(value, list):
            yield keys, "one more", changed(document, keys, [*value, copy.deepcopy(value[-1]) if value else 1])
    yield (), "one more", changed(document, ("guarantee",), "x")


def places(value: Any, at: Keys = ()) -> Iterator[tuple[Keys, Any]]:
    parts = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in parts:
        yield (*at, key), inner
        yield from places(inner, (*at, key))


def values_like(name: str, value: Any) -> list[Any]:
    if isinstance(value, dict):
        return [[], None, "text"]
    if isinstance(value, list):
        return [{}, None, "text", []] if value else [{}, None, "text", [1]]
    if isinstance(value, bool):
        return [not value, int(value), "yes", None]
    if isinstance(value, int):
        return [value + 1, value - 1, 0, -value, 10**30, str(value), None, True]
    if isinstance(value, float):
        return [value * 2 + 1, str(value), None]
    if len(value) in (32, 64) and set(value) <= set("0123456789abcdef"):
        return [value[::-1], value[:-1], value.upper(), "", 7, None]
    return [*OTHERS.get(name, [f"{value}x"]), "", "\x1b[2J\n", 7, None, [value]]


def changed(document: dict[str, Any], keys: Keys, *value: Any) -> dict[str, Any]:
    """A document with another value at a place, or without it."""
    other = copy.deepcopy(document)
    inner: Any = other
    for key in keys[:-1]:
        inner = inner[key]
    if value:
        inner[keys[-1]] = value[0]
    else:
        del inner[keys[-1]]
    return other


def field(keys: Keys) -> Keys:
    """The field of an edit; all kernels are one."""
    return ("kernels", "*") if keys[0] == "kernels" and len(keys) > 1 else keys


def test_every_edit_without_a_new_digest_is_refused(certificate: Path, device: Device) -> None:
    document = json.loads(certificate.read_text())
    file = certificate.with_name("edited.json")
    edited_once = {keys: edited for keys, _, edited in edits(document)}  # the last edit of every place
    assert len(edited_once) > 40
    for keys, edited in edited_once.items():
        file.write_text(json.dumps(edited))
        assert outcome(file, device) == "refused", keys


def test_every_edit_with_a_new_digest_is_refused_but_for_what_describes(
    certificate: Path, device: Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(certificates, "document_digest", quick_digest)
    document = json.loads(certificate.read_text())
    del document["digest"]
    file = certificate.with_name("edited.json")
    believed: set[Keys] = set()
    count = 0
    for keys, how, edited in edits(document):
        if json.dumps(edited) == json.dumps(document):
            continue
        count += 1
        file.write_text(json.dumps({**edited, "digest": quick_digest(edited)}))
        verdict = outcome(file, device)
        assert verdict in ("verified", "differs", "refused"), f"{keys} {how}"
        if verdict == "verified":
            free = FREE | FREE_TOO[document["schema_version"]]
            assert field(keys) in free | UNUSED.get(document["operator"]["kind"], set()), f"{keys} {how}"
            believed.add(field(keys))
    assert count > 200
    assert believed >= FREE | FREE_TOO[document["schema_version"]]


def quick_digest(document: dict[str, Any]) -> str:
    """The digest is BLAKE3 in NumPy: right and slow. Which hash it is does not matter here."""
    body = {key: value for key, value in document.items() if key != "digest"}
    return hashlib.blake2b(json.dumps(body, sort_keys=True).encode(), digest_size=16).hexdigest()


@pytest.mark.parametrize(
    ("keys", "value"),
    [
        (("device", "type"), "quantum"),
        (("device", "spec"), "mainframe"),
        (("way",), "by hand"),
        (("dashi_version",), "the best"),
        (("kernels",), {"no name": "0" * 64}),
        (("kernels",), {"a/b.f32": "0" * 63}),
        (("tier",), 1),
        (("portable",), False),
        (("hash_every",), 3),
        (("float_rules",), "as it likes"),
        (("kind",), "flow"),
        (("states",), None),
        (("device", "name"), "x" * 2000),
    ],
)
def test_what_describes_keeps_its_form(certificate: Path, device: Device, keys: Keys, value: Any) -> None:
    edited = changed(json.loads(certificate.read_text()), keys, value)
    file = certificate.with_name("edited.json")
    file.write_text(json.dumps({**edited, "digest": document_digest(edited)}))
    assert outcome(file, device) == "refused"


def test_a_claim_of_a_thousand_million_steps_is_refused_before_they_are_listed(certificate: Path) -> None:
    document = json.loads(certificate.read_text())
    document.update(steps=10**9, hash_every=1, hashes=[{"step": 1, "hash": "0" * 32}])
    document["digest"] = document_digest(document)
    file = certificate.with_name("edited.json")
    file.write_text(json.dumps(document))
    import tracemalloc

    tracemalloc.start()
    with pytest.raises(CertificateError, match="are not those of every 1 steps up to 1000000000"):
        read_certificate(file)
    assert tracemalloc.get_traced_memory()[1] < 10_000_000
    tracemalloc.stop()


def test_states_that_are_not_finite_verify_with_a_remark(tmp_path: Path, device: Device) -> None:
    operator, z0 = Linear(np.eye(3) * 1e200), np.ones(3)
    run = rollout(operator, z0, 4, device=device, hash_every=2, stop_on_nonfinite=False)
    file = tmp_path / "certificate.json"
    claimed = certify(run, file, save_inputs(tmp_path / "inputs.npz", operator, z0))
    verdict = check(claimed, operator, z0, device)
    assert verdict.difference is None
    assert not verdict.finite
    write_certificate(file, claimed)
    document = json.loads(CliRunner().invoke(app, ["verify", str(file), "--device", "cpu", "--json"]).stdout)
    assert document["same"]
    assert not document["finite"]
    assert document["remarks"][0].startswith("the states hold NaN or infinities")
    done = CliRunner().invoke(app, ["verify", str(file), "--device", "cpu"])
    assert "the states hold NaN or infinities" in done.stdout


def test_hashes_that_do_not_fit_the_steps_get_no_certificate(tmp_path: Path, device: Device) -> None:
    operator, z0 = linear()
    run = rollout(operator, z0, 4, device=device, hash_every=2)
    sources = save_inputs(tmp_path / "inputs.npz", operator, z0)
    with pytest.raises(CertificateError, match=r"gets no certificate: .* Fix: certify a run"):
        certify(replace(run, steps=5), tmp_path / "c.json", sources)
