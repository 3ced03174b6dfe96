"""Certificates as files: they say what was done, an edited one is known, and whatever else comes is refused."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dashi.core.certificates._certificate import (
    Certificate,
    Source,
    array_digest,
    document_digest,
    hashed_steps,
    read_certificate,
    write_certificate,
)
from dashi.core.certificates._certify import certify
from dashi.core.observations.observation import Hash
from dashi.core.operators.operator import Operator
from dashi.core.rollouts._fingerprint import Used, fingerprints
from dashi.core.rollouts._observers import Hashes
from dashi.core.rollouts.run import Run
from dashi.errors import CertificateError, FileError
from dashi.runtime._cpu_device import CpuDevice, cpu_info
from dashi.types import HostArray


class Doubling(Operator):
    """An operator that is never run here."""

    kind = "doubling"
    version = 3

    @property
    def shape(self) -> tuple[int, ...]:
        return (2,)

    @property
    def arrays(self) -> Mapping[str, HostArray]:
        return {"A": 2 * np.eye(2)}

    @property
    def parameters(self) -> Mapping[str, int | float | str]:
        return {"alpha": 0.1, "psi": "none"}

    @property
    def dtype(self) -> np.dtype[Any]:
        return np.dtype(np.float64)

    @classmethod
    def restore(cls, arrays: Any, parameters: Any) -> Operator:
        return cls()

    def step(self, device: Any, constants: Any, source: Any, target: Any) -> Any:
        raise NotImplementedError


def sample(file: Path, steps: int = 250, every: int = 100) -> Certificate:
    z0 = np.array([1.0, 2.0])
    sources = {
        "z0": Source(file.parent / "data" / "z0.npz", "z0", z0),
        "A": Source(file.parent / "A.npz", "A", Doubling().arrays["A"]),
    }
    hashes = [Hash(step, f"{step:032x}") for step in hashed_steps(steps, every)]
    return certify(run_of(steps, every, hashes), file, sources)


def run_of(steps: int, every: int, hashes: list[Hash]) -> Run:
    return Run(
        operator=Doubling().facts, device=cpu_info(), steps=steps, state=np.ones((1, 2)),
        records={"hashes": tuple(hashes)}, observers=(Hashes(every),), used=used(),
    )  # fmt: skip


def used() -> tuple[Used, ...]:
    with CpuDevice() as cpu:
        step = cpu.bind("gemv", cpu.array(np.ones(2)), cpu.array(np.eye(2)))
    return ((step.kernel, step.call),)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "c.json"
    write_certificate(path, sample(path))
    return path


def test_a_certificate_says_what_was_done(file: Path) -> None:
    document = json.loads(file.read_text())
    assert list(document)[-1] == "digest"
    assert document["operator"] == {"kind": "doubling", "version": 3, "parameters": {"alpha": 0.1, "psi": "none"}}
    assert [(i["name"], i["path"], i["key"], i["dtype"], i["shape"]) for i in document["inputs"]] == [
        ("z0", "data/z0.npz", "z0", "float64", [2]),
        ("A", "A.npz", "A", "float64", [2, 2]),
    ]
    assert [h["step"] for h in document["hashes"]] == [100, 200, 250]
    assert (document["steps"], document["hash_every"], document["dtype"]) == (250, 100, "float64")
    assert (document["tier"], document["portable"], document["device"]["driver"]) == (0, True, "numpy")
    assert document["kernels"] == fingerprints(used())
    assert [name.split("/")[0] for name in document["kernels"]] == ["gemv"]


def test_a_certificate_is_read_back_as_it_was_written(file: Path) -> None:
    assert read_certificate(file) == sample(file)
    (file.parent / "other").mkdir()
    spaced = file.parent / "spaced.json"
    spaced.write_text(json.dumps(json.loads(file.read_text()), indent=8, sort_keys=True))
    assert read_certificate(spaced) == sample(file)


def test_the_digest_of_an_array_is_of_type_shape_and_bytes() -> None:
    values = np.arange(6.0)
    digests = {
        array_digest(v)
        for v in (values, values.reshape(2, 3), values.astype(np.float32), values.view(np.int64), -values)
    }
    assert len(digests) == 5
    assert array_digest(values.astype(">f8")) == array_digest(values)
    assert array_digest(np.asfortranarray(values.reshape(2, 3))) == array_digest(values.reshape(2, 3))
    assert array_digest(np.zeros((0, 3))) != array_digest(np.zeros((3, 0)))


EDITS: dict[str, Callable[[dict[str, Any]], Any]] = {
    "a hash": lambda d: d["hashes"][1].update(hash="0" * 32),
    "fewer hashes": lambda d: d["hashes"].pop(),
    "steps": lambda d: d.update(steps=251),
    "an input's digest": lambda d: d["inputs"][0].update(digest="0" * 32),
    "a parameter": lambda d: d["operator"]["parameters"].update(alpha=0.2),
    "the device": lambda d: d["device"].update(name="another"),
    "the digest": lambda d: d.update(digest="0" * 32),
    "no digest": lambda d: d.pop("digest"),
    "a new field": lambda d: d.update(note="trust me"),
}


@pytest.mark.parametrize("name", EDITS)
def test_an_edited_certificate_is_known(name: str, file: Path) -> None:
    document = json.loads(file.read_text())
    EDITS[name](document)
    file.write_text(json.dumps(document))
    with pytest.raises(CertificateError, match=r"was changed after it was made: its digest does not fit. Fix: get the"):
        read_certificate(file)


CONTRADICTIONS: dict[str, Callable[[dict[str, Any]], Any]] = {
    "fewer hashes": lambda d: d["hashes"].pop(),
    "hashes out of order": lambda d: d["hashes"].reverse(),
    "a hash that is none": lambda d: d["hashes"][1].update(hash="ABCDEF" * 6),
    "a number as text": lambda d: d.update(steps="250"),
    "a step as a fraction": lambda d: d.update(steps=250.5),
    "an unknown field": lambda d: d.update(note="trust me"),
    "no z0": lambda d: d["inputs"].pop(0),
    "an input twice": lambda d: d["inputs"].append(d["inputs"][0]),
    "another type": lambda d: d.update(dtype="float16"),
    "no steps": lambda d: d.update(steps=0),
    "hash stride 0": lambda d: d.update(hash_every=0),
    "a missing field": lambda d: d.pop("operator"),
    "text as a document": lambda d: d.update(operator="linear"),
}


@pytest.mark.parametrize("name", CONTRADICTIONS)
def test_a_certificate_that_contradicts_itself_is_refused_even_with_a_digest(name: str, file: Path) -> None:
    document = json.loads(file.read_text())
    CONTRADICTIONS[name](document)
    document["digest"] = document_digest(document)
    file.write_text(json.dumps(document))
    with pytest.raises(CertificateError, match=r"is not a certificate of dashi: .* Fix: "):
        read_certificate(file)


@pytest.mark.parametrize("version", [0, 3, 1.0, 2.0, "1", None, True])
def test_an_unknown_version_is_refused(version: Any, file: Path) -> None:
    document = json.loads(file.read_text()) | {"schema_version": version}
    document["digest"] = document_digest(document)
    file.write_text(json.dumps(document))
    with pytest.raises(
        CertificateError, match=r"is a certificate of version .*; this dashi reads versions 1 and 2. Fix"
    ):
        read_certificate(file)


@pytest.mark.parametrize(
    "data",
    [b"", b"{", b"[]", b"null", b"\xff\xff", b"[" * 200_000, b'{"a": 1, "a": 2}', b'{"a": NaN}', b'{"a": 1e999}',
     b'{"a": "\\ud800"}', b'{"a": ' + b"1" * 5000 + b"}"],
)  # fmt: skip
def test_files_that_are_no_certificate_are_refused(data: bytes, file: Path) -> None:
    file.write_bytes(data)
    with pytest.raises(CertificateError, match=r" Fix: "):
        read_certificate(file)


def test_every_truncation_is_refused(file: Path) -> None:
    whole = file.read_bytes()
    for size in range(0, len(whole) - 2, 11):
        file.write_bytes(whole[:size])
        with pytest.raises(CertificateError, match="damaged or cut short"):
            read_certificate(file)


def test_a_missing_certificate_is_told(tmp_path: Path) -> None:
    with pytest.raises(FileError, match=r"there is no file .*none.json. Fix: correct the path."):
        read_certificate(tmp_path / "none.json")


def test_a_run_without_hashes_has_no_certificate(tmp_path: Path) -> None:
    with pytest.raises(CertificateError, match="needs hashes"):
        certify(run_of(10, 100, []), tmp_path / "c.json", {})


@pytest.mark.parametrize(
    ("steps", "every", "wanted"), [(4, 2, [2, 4]), (5, 2, [2, 4, 5]), (3, 5, [3]), (1, 1, [1]), (3, 1, [1, 2, 3])]
)
def test_the_state_is_hashed_on_every_stride_and_at_the_end(steps: int, every: int, wanted: list[int]) -> None:
    assert list(hashed_steps(steps, every)) == wanted
