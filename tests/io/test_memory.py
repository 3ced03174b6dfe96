"""Nothing that a file claims takes memory before it is known that there is room for it."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dashi.core.certificates._certificate import read_certificate
from dashi.core.traces.file import read_trace
from dashi.errors import CertificateError, FileError, OutOfMemoryError
from dashi.flow import _fields as fields
from dashi.flow.evaluation._record import read_record
from dashi.io import _memory as memory
from dashi.io import arrays
from dashi.io._files import open_plain, read_plain
from dashi.io._memory import available_memory, require_room
from dashi.io.arrays import read_array, read_arrays
from dashi.io.metrics import read_metrics


@pytest.fixture
def little(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine with a thousand bytes left."""
    monkeypatch.setattr(memory, "SMALL", 100)
    monkeypatch.setattr(memory, "available_memory", lambda: 1000)


def test_this_machine_tells_its_memory() -> None:
    free = available_memory()
    assert free is None or 1 << 20 < free < 1 << 50


def test_a_system_that_does_not_tell_refuses_nothing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(memory, "_MEMINFO", tmp_path / "none")
    assert available_memory() is None
    require_room(1 << 60, "it")


@pytest.mark.parametrize(("limit", "wanted"), [("max", 3 << 20), (str(2 << 20), 1 << 20), ("0", 0)])
def test_the_limit_of_a_container_counts(
    limit: str, wanted: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "meminfo").write_text("MemTotal: 9999 kB\nMemAvailable: 2048 kB\nSwapFree: 1024 kB\nOdd: 1\n")
    (tmp_path / "memory.max").write_text(limit)
    (tmp_path / "memory.current").write_text(str(1 << 20))
    monkeypatch.setattr(memory, "_MEMINFO", tmp_path / "meminfo")
    monkeypatch.setattr(memory, "_CGROUP", tmp_path)
    assert available_memory() == wanted


def test_an_archive_is_bounded_as_a_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each member alone is small enough for the test of its ratio; all together are not."""
    monkeypatch.setattr(arrays, "_SMALL", 1 << 20)
    file = tmp_path / "bomb.npz"
    zeros: dict[str, Any] = {f"a{i}": np.zeros((1 << 17) - 32) for i in range(40)}
    np.savez_compressed(file, **zeros)
    with pytest.raises(FileError, match=r"has \d+ bytes and claims to unpack to \d+\. Fix: write it with numpy.savez"):
        read_arrays(file)
    with pytest.raises(FileError, match="claims to unpack"):
        read_array(file, "a0")


def test_arrays_larger_than_memory_are_refused_unread(little: None, tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", large=np.zeros(400), small=np.zeros(20))
    np.save(tmp_path / "a.npy", np.zeros(400))
    for read in (
        lambda: read_arrays(tmp_path / "a.npz"),
        lambda: read_array(tmp_path / "a.npz", "large"),
        lambda: read_array(tmp_path / "a.npy", "a"),
    ):
        with pytest.raises(FileError, match=r"of memory; 0.0 GiB are free on this machine. Fix: use a machine"):
            read()
    assert read_array(tmp_path / "a.npz", "small").size == 20


def test_a_file_of_holes_is_refused_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "available_memory", lambda: 16 << 30)
    file = tmp_path / "holes.npy"
    with file.open("wb") as opened:
        np.lib.format.write_array_header_1_0(opened, {"descr": "<f8", "fortran_order": False, "shape": (60 << 27,)})
        start = opened.tell()
    os.truncate(file, start + (60 << 30))
    begin = time.monotonic()
    with pytest.raises(FileError, match=r"takes 60.0 GiB of memory; 16.0 GiB are free"):
        read_array(file, "holes")
    assert time.monotonic() - begin < 5


def test_memory_that_runs_out_is_an_error_of_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    np.savez(tmp_path / "a.npz", a=np.zeros(4))

    def nothing_left(*_: Any, **__: Any) -> Any:
        raise MemoryError

    monkeypatch.setattr(arrays.np, "empty", nothing_left)
    with pytest.raises(FileError, match=r"a.npz does not fit into memory. Fix: "):
        read_arrays(tmp_path / "a.npz")


@pytest.mark.parametrize("read", [read_certificate, read_metrics, read_trace, lambda file: read_record(file.parent)])
def test_documents_larger_than_memory_are_refused(little: None, tmp_path: Path, read: Any) -> None:
    file = tmp_path / "evaluation.json"
    file.write_text("[" + "1," * 2000 + "1]")
    with pytest.raises(FileError, match="of memory"):
        read(file)


def test_a_frame_larger_than_memory_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = fields.FieldStore(tmp_path / "f.zarr", {"w": fields.Variable(("y", "x"), "float64", (16, 16), {}, "t")}, {})
    store.frame("w", 0, np.zeros((16, 16)))
    store.commit()
    monkeypatch.setattr(memory, "SMALL", 1000)  # metadata are smaller
    monkeypatch.setattr(memory, "available_memory", lambda: 1000)
    with pytest.raises(FileError, match="of memory"):
        fields.read_frame(tmp_path / "f.zarr", "w", 0)


def test_a_certificate_that_does_not_fit_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "c.json").write_text("{}")

    def nothing_left(*_: Any, **__: Any) -> Any:
        raise MemoryError

    monkeypatch.setattr("dashi.core.certificates._certificate.document_digest", nothing_left)
    with pytest.raises(CertificateError, match="does not fit into memory"):
        read_certificate(tmp_path / "c.json")


def test_a_file_that_grows_while_it_is_read_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "a"
    file.write_bytes(b"abc")
    assert read_plain(file, 3) == b"abc"
    with pytest.raises(FileError, match="has 3 bytes; at most 2 are read"):
        read_plain(file, 2)
    zero = Path("/proc/self/status")  # a file that says it has no bytes, and has some
    if zero.is_file():
        with pytest.raises(FileError, match="more than the 0 bytes that it says"):
            read_plain(zero, 100)


def test_errors_of_a_device_stay_what_they_are(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"")
    with pytest.raises(OutOfMemoryError), open_plain(tmp_path / "a", 1):
        raise OutOfMemoryError("the device is full.", "free some.")
