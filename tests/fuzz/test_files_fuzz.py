"""Whatever the bytes, readers of files answer with what they read or with an error that has a fix."""

from __future__ import annotations

import contextlib
import io
import json
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dashi.core.certificates._certificate import document_digest, read_certificate
from dashi.errors import CertificateError, FileError, InputError
from dashi.io.arrays import LIMIT, read_array, read_arrays
from dashi.io.metrics import read_metrics
from dashi.io.operators import read_operator

REUSED = settings(max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture])
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)


def archive(compressed: bool = False) -> bytes:
    buffer = io.BytesIO()
    save = np.savez_compressed if compressed else np.savez
    save(buffer, z0=np.arange(20.0), A=np.eye(4, dtype=np.float32), kind="linear", version=1)
    return buffer.getvalue()


def read(file: Path, data: bytes) -> None:
    file.write_bytes(data)
    for reader in (read_arrays, read_operator, lambda path: read_array(path, "z0")):
        with contextlib.suppress(InputError):
            found: Any = reader(file)
            values = list(found.values()) if isinstance(found, dict) else [getattr(found, "arrays", found)]
            # What was read cannot be larger than what the file could hold.
            assert sum(v.nbytes for v in values if isinstance(v, np.ndarray)) <= min(LIMIT, 1100 * len(data))


@given(st.binary(max_size=300))
@REUSED
def test_random_bytes_are_no_arrays(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "a.npz").write_bytes(data)
    with pytest.raises(FileError):
        read_array(tmp_path / "a.npz", "z0")


@given(
    st.booleans(), st.lists(st.tuples(st.floats(0, 1, exclude_max=True), st.integers(0, 255)), min_size=1, max_size=8)
)
@REUSED
def test_changed_bytes_never_trip_the_reader_of_arrays(
    tmp_path: Path, compressed: bool, changes: list[tuple[float, int]]
) -> None:
    data = bytearray(archive(compressed))
    for place, value in changes:
        data[int(place * len(data))] = value
    read(tmp_path / "a.npz", bytes(data))


@given(st.data())
@REUSED
def test_changed_headers_never_trip_the_reader_of_arrays(tmp_path: Path, data: st.DataObject) -> None:
    head = data.draw(
        st.fixed_dictionaries(
            {
                "descr": st.sampled_from(
                    ["<f8", ">f4", "|O", "<U3", "<U0", "|V8", "<M8[s]", "f8,f8", "", "<c16", 3, None]
                ),
                "fortran_order": st.sampled_from([True, False, 1, "no"]),
                "shape": st.one_of(st.lists(st.integers(-1, 1 << 65), max_size=9).map(tuple), st.just(3), st.just(())),
            }
        )
    )
    text = repr(head).encode()
    body = b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text + data.draw(st.binary(max_size=64))
    read(tmp_path / "a.npy", body)
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", data.draw(st.sampled_from([0, 8]))) as made:
        made.writestr("z0.npy", body)
    read(tmp_path / "a.npz", buffer.getvalue())


@given(st.binary(max_size=200) | JSON.map(lambda d: json.dumps(d).encode()))
@REUSED
def test_random_documents_are_no_certificates_and_no_metrics(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "c.json").write_bytes(data)
    with pytest.raises(CertificateError):
        read_certificate(tmp_path / "c.json")
    with pytest.raises(FileError):
        read_metrics(tmp_path / "c.json")


CERTIFICATE: dict[str, Any] = {
    "schema_version": 1,
    "dashi_version": "0",
    "operator": {"kind": "linear", "version": 1, "parameters": {"alpha": 0.5}},
    "inputs": [
        {"name": n, "path": f"{n}.npz", "key": n, "dtype": "float32", "shape": [4], "digest": "0" * 32}
        for n in ("z0", "A")
    ],
    "dtype": "float32",
    "tier": 0,
    "portable": True,
    "device": {"spec": "cpu", "name": "NumPy", "type": "reference", "driver": "numpy", "driver_version": "2"},
    "kernels": {"gemv/main.f32": "0" * 64},
    "way": "stepwise",
    "steps": 2,
    "hash_every": 1,
    "hashes": [{"step": 1, "hash": "0" * 32}, {"step": 2, "hash": "1" * 32}],
}


def places(value: Any, at: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    below = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [at, *(place for key, inner in below for place in places(inner, (*at, key)))][not at :]


@given(st.sampled_from(places(CERTIFICATE)), JSON)
@REUSED
def test_changed_values_never_trip_the_reader_of_certificates(
    tmp_path: Path, place: tuple[Any, ...], value: Any
) -> None:
    document = json.loads(json.dumps(CERTIFICATE))
    inner = document
    for key in place[:-1]:
        inner = inner[key]
    inner[place[-1]] = value
    file = tmp_path / "c.json"
    file.write_text(json.dumps(document | {"digest": "0" * 32}))
    with pytest.raises(CertificateError):
        read_certificate(file)
    with contextlib.suppress(UnicodeEncodeError):
        file.write_text(json.dumps(document | {"digest": document_digest(document)}))
        with contextlib.suppress(CertificateError):
            read_certificate(file)
