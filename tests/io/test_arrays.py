"""Array files: what NumPy writes is read, what we write NumPy reads, and everything else is refused before it hurts."""

from __future__ import annotations

import errno
import io
import os
import struct
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dashi.errors import DTypeError, FileError
from dashi.io import _files as files
from dashi.io import arrays
from dashi.io._files import nearest_folder, require_writable, write_text
from dashi.io.arrays import read_array, read_arrays, write_array, write_arrays
from dashi.io.operators import StoredOperator, read_operator, write_operator

SAMPLES: list[Any] = [
    np.arange(6, dtype=np.float32).reshape(2, 3),
    np.arange(6.0).reshape(2, 3, order="F"),
    np.asfortranarray(np.arange(24, dtype=np.float64).reshape(2, 3, 4)),
    np.arange(5, dtype=">f8"),
    np.zeros((0, 4), np.float32),
    np.zeros((3, 0, 2), np.int8),
    np.array(3.5),
    np.array(7, np.int64),
    np.array("affine"),
    np.array([True, False]),
    np.arange(100, dtype=np.uint16)[::3],
]


def same(a: Any, b: Any) -> bool:
    return (
        a.shape == b.shape
        and a.dtype == b.dtype.newbyteorder("=")
        and a.tobytes() == np.ascontiguousarray(b.astype(b.dtype.newbyteorder("="))).tobytes()
    )


@pytest.mark.parametrize("values", SAMPLES, ids=lambda v: f"{v.dtype.str}{v.shape}")
def test_what_numpy_writes_is_read_and_the_other_way_round(values: Any, tmp_path: Path) -> None:
    file = tmp_path / "a.npz"
    for save in (np.savez, np.savez_compressed):
        save(file, z0=values, other=np.zeros(3))
        found = read_array(file, "z0")
        assert same(found, values)
        assert found.flags.c_contiguous
    np.save(tmp_path / "a.npy", values)
    assert same(read_array(tmp_path / "a.npy", "z0"), values)
    write_arrays(file, {"z0": values, "b": np.zeros(2)})
    with np.load(file, allow_pickle=False) as loaded:
        assert same(loaded["z0"], values)
        assert set(loaded) == {"z0", "b"}
    write_array(tmp_path / "b.npy", values)
    assert same(np.load(tmp_path / "b.npy", allow_pickle=False), values)


def test_the_same_arrays_give_the_same_file(tmp_path: Path) -> None:
    for name in ("a", "b"):
        write_arrays(tmp_path / name, {"x": np.arange(9.0), "kind": np.array("linear")})
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def refused(file: Path, what: str | None = None, key: str = "z0") -> str:
    with pytest.raises(FileError, match=what) as caught:
        read_array(file, key)
    assert " Fix: " in str(caught.value)
    return str(caught.value)


def test_missing_file_missing_key_folder_and_pipe_are_refused(tmp_path: Path) -> None:
    refused(tmp_path / "none.npz", "there is no file")
    refused(tmp_path, "is not an ordinary file")
    os.mkfifo(tmp_path / "pipe")
    refused(tmp_path / "pipe", "is not an ordinary file")
    refused(Path("/dev/zero"), "is not an ordinary file")
    np.savez(tmp_path / "a.npz", A=np.zeros(3))
    assert refused(tmp_path / "a.npz", "has no array 'z0'; it has A").endswith(
        "Fix: write it with numpy.savez(file, z0=array)."
    )


def test_pickled_arrays_are_refused_and_nothing_runs(tmp_path: Path) -> None:
    class Trap:
        def __reduce__(self) -> Any:
            return os.mkdir, (str(tmp_path / "trapped"),)

    values = np.array([Trap()], object)
    np.savez(tmp_path / "a.npz", z0=values)
    np.save(tmp_path / "a.npy", values)
    for name in ("a.npz", "a.npy"):
        refused(tmp_path / name, "pickle, which can run code")
    np.savez(tmp_path / "b.npz", z0=np.zeros(2, [("x", "f4")]))
    refused(tmp_path / "b.npz", "only numbers and text are read")
    np.savez(tmp_path / "b.npz", z0=np.zeros(2, complex))
    refused(tmp_path / "b.npz", "only numbers and text are read")
    assert not (tmp_path / "trapped").exists()


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed, np.save])
def test_every_truncation_is_refused(save: Any, tmp_path: Path) -> None:
    file = tmp_path / ("a.npy" if save is np.save else "a.npz")
    save(file, np.arange(400.0)) if save is np.save else save(file, z0=np.arange(400.0))
    whole = file.read_bytes()
    for size in range(0, len(whole), 7):
        file.write_bytes(whole[:size])
        refused(file)


def npy(shape: str, descr: str = "'<f8'", data: bytes = b"") -> bytes:
    head = f"{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}}}".encode()
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head + data


@pytest.mark.parametrize(
    "shape",
    ["(1000000000000,)", "(1 << 62,)", "(-1,)", "(2.0,)", "(True,)", "5", "(9223372036854775807, 4)", "(0, 1e9)",
     f"(0, {1 << 60})", f"({'1,' * 50})"],
)  # fmt: skip
def test_a_header_that_claims_too_much_is_refused_before_allocation(
    shape: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(np, "empty", None)  # nothing may be allocated
    (tmp_path / "a.npy").write_bytes(npy(shape, data=bytes(64)))
    refused(tmp_path / "a.npy")
    with zipfile.ZipFile(tmp_path / "a.npz", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("z0.npy", npy(shape, data=bytes(64)))
    refused(tmp_path / "a.npz")


@pytest.mark.parametrize(
    "text", [b"", b"{", b"(" * 9000, b"{'descr': '<f8'}", b"[1]", b"x" * 10001, b"\xff\xfe", b"\0"]
)
def test_headers_that_are_none_are_refused(text: bytes, tmp_path: Path) -> None:
    (tmp_path / "a.npy").write_bytes(b"\x93NUMPY\x02\x00" + struct.pack("<I", len(text)) + text)
    refused(tmp_path / "a.npy")


def test_archives_that_unpack_to_far_more_than_they_are_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "bomb.npz"
    size = 1 << 29
    with (
        zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive,
        archive.open("z0.npy", "w") as to,
    ):
        to.write(npy(f"({size // 8},)"))
        for _ in range(size >> 24):
            to.write(bytes(1 << 24))
    assert file.stat().st_size < size / 200
    assert "which does not compress" in refused(file, "claims to unpack to")


def test_archives_whose_directory_lies_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "a.npz"
    np.savez(file, z0=np.arange(100.0))
    whole = file.read_bytes()
    # The sizes in the central directory, which is what zipfile believes.
    place = whole.index(b"PK\x01\x02") + 20
    for sizes in [(1 << 31, 1 << 31), (800, 1 << 31), (10, 10)]:
        file.write_bytes(whole[:place] + struct.pack("<II", *sizes) + whole[place + 8 :])
        refused(file)


def test_damaged_bytes_are_seen_by_the_checksum(tmp_path: Path) -> None:
    file = tmp_path / "a.npz"
    np.savez(file, z0=np.arange(100.0))
    whole = bytearray(file.read_bytes())
    whole[500] ^= 1
    file.write_bytes(bytes(whole))
    refused(file, "damaged or cut short .*CRC")


def test_names_that_are_listed_twice_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "a.npz"
    with zipfile.ZipFile(file, "w") as archive:
        for values in (1.0, 2.0):
            buffer = io.BytesIO()
            np.save(buffer, np.array([values]))
            name = zipfile.ZipInfo("z0.npy")
            with pytest.warns(UserWarning, match="Duplicate") if values > 1 else open(os.devnull):
                archive.writestr(name, buffer.getvalue())
    refused(file, "one name twice")


def test_other_kinds_of_arrays_are_not_written(tmp_path: Path) -> None:
    with pytest.raises(DTypeError, match=r"x is an array of object, which is not kept in files. Fix: convert it"):
        write_arrays(tmp_path / "a.npz", {"x": np.array([None])})
    assert not list(tmp_path.iterdir())


def test_a_full_disk_leaves_the_old_file_and_nothing_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "a.npz"
    write_arrays(file, {"x": np.arange(3.0)})
    before = file.read_bytes()

    def full(handle: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(FileError, match=r"cannot be written: No space left on device. Fix: make room on that disk"):
        write_arrays(file, {"x": np.arange(5.0)})
    assert file.read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == ["a.npz"]


def test_a_device_is_written_to_and_never_replaced() -> None:
    before = os.stat("/dev/full")
    for write in (lambda: write_text(Path("/dev/full"), "x"), lambda: write_arrays(Path("/dev/full"), {"x": 1.0})):
        with pytest.raises(FileError, match=r"/dev/full cannot be written: No space left on device. Fix: make room"):
            write()
    write_text(Path("/dev/null"), "x")
    assert os.stat("/dev/full").st_rdev == before.st_rdev


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "real.txt").write_text("old")
    (tmp_path / "link.txt").symlink_to(tmp_path / "real.txt")
    write_text(tmp_path / "link.txt", "new")
    assert (tmp_path / "link.txt").is_symlink()
    assert (tmp_path / "real.txt").read_text() == "new"


def test_a_disk_that_fills_while_writing_is_told(tmp_path: Path) -> None:
    def write(target: Any) -> None:
        with open("/dev/full", "wb", buffering=0) as full:
            full.write(b"x")

    with pytest.raises(FileError, match="No space left on device"):
        files.write_atomic(tmp_path / "a", write)
    assert not list(tmp_path.iterdir())


def test_places_that_cannot_be_written_are_told_with_a_fix(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for place in (tmp_path / "file" / "below.txt", tmp_path, Path("/proc/none/a.txt")):
        with pytest.raises(FileError, match=r"cannot be written: .* Fix: "):
            write_text(place, "text")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["file"]


def test_written_files_have_ordinary_permissions(tmp_path: Path) -> None:
    write_text(tmp_path / "new" / "a.txt", "text\n")
    mask = os.umask(0)
    os.umask(mask)
    assert (tmp_path / "new" / "a.txt").stat().st_mode & 0o777 == 0o666 & ~mask
    assert (tmp_path / "new" / "a.txt").read_text() == "text\n"


def test_operators_are_kept_as_one_file_without_pickle(tmp_path: Path) -> None:
    file = tmp_path / "op.npz"
    operator = StoredOperator(
        "affine", 2, {"A": np.eye(3, dtype=np.float32)}, {"alpha": 0.1, "psi": "squash", "count": -(1 << 62)}
    )
    write_operator(file, operator)
    stored = read_operator(file)
    assert (stored.kind, stored.version, stored.parameters) == (operator.kind, operator.version, operator.parameters)
    assert stored.arrays.keys() == {"A"}
    assert same(stored.arrays["A"], operator.arrays["A"])
    np.savez(file, kind="linear", version=1, A=np.eye(2))
    assert read_operator(file).kind == "linear"


def test_files_that_describe_no_operator_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "op.npz"
    wrongs: list[dict[str, Any]] = [{"A": np.eye(2)}, {"kind": "linear", "A": np.eye(2)}, {"kind": 3, "version": 1}]
    for wrong in wrongs:
        np.savez(file, **wrong)
        with pytest.raises(FileError, match=r"describes no operator.* Fix: write it with"):
            read_operator(file)


@pytest.mark.parametrize(
    "stored",
    [
        StoredOperator("linear", 1, {"kind": np.eye(2)}, {}),
        StoredOperator("linear", 1, {"A": np.array(1.0)}, {}),
        StoredOperator("linear", 1, {"A": np.eye(2)}, {"A": 1}),
        StoredOperator("linear", 1, {"A": np.eye(2)}, {"n": 1 << 70}),
        StoredOperator("linear", 1, {"A": np.eye(2)}, {"n": ""}),
    ],
)
def test_operators_that_could_not_be_read_back_are_not_written(stored: StoredOperator, tmp_path: Path) -> None:
    with pytest.raises(arrays.InputError):
        write_operator(tmp_path / "op.npz", stored)
    assert not list(tmp_path.iterdir())


def test_a_place_that_cannot_be_written_is_refused_beforehand_and_nothing_is_left(tmp_path: Path) -> None:
    require_writable(tmp_path / "new" / "folder" / "m.npz")
    assert nearest_folder(tmp_path / "new" / "folder" / "m.npz") == tmp_path
    (tmp_path / "file").write_text("mine")
    (tmp_path / "link").symlink_to("file")
    require_writable(tmp_path / "file")
    require_writable(tmp_path / "link")
    require_writable(tmp_path, folder=True)
    for bad, why in ((tmp_path / "file" / "in", "file is no folder"), (tmp_path, "it is a folder")):
        with pytest.raises(FileError, match=rf"cannot be written: .*{why}. Fix: "):
            require_writable(bad)
    if Path("/proc/self").exists():
        with pytest.raises(FileError, match=r"cannot be written: .* Fix: "):
            require_writable(Path("/proc/none/file"))
    assert {path.name for path in tmp_path.iterdir()} == {"file", "link"}
    assert (tmp_path / "file").read_text() == "mine"


def test_devices_and_pipes_are_written_to_where_they_may_be(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Their folder is not theirs to write in: only root may make files in /dev, and nobody where a pipe is."""
    reading, writing = os.pipe()
    try:
        (tmp_path / "stdout").symlink_to(f"/dev/fd/{writing}")  # as /dev/stdout is
        (tmp_path / "null").symlink_to("/dev/null")
        with monkeypatch.context() as patch:
            patch.setattr(files, "open_part", pytest.fail)
            for place in (Path("/dev/null"), tmp_path / "null", tmp_path / "stdout"):
                require_writable(place)
            patch.setattr(os, "access", lambda *_: False)
            with pytest.raises(FileError, match=r"/dev/null cannot be written: Permission denied. Fix: get permission"):
                require_writable(Path("/dev/null"))
    finally:
        os.close(reading)
        os.close(writing)


def test_an_array_of_more_bytes_than_it_may_have_is_not_read(tmp_path: Path) -> None:
    file = tmp_path / "a.npz"
    np.savez_compressed(file, a=np.zeros(10), b=np.zeros(100_000))
    said = r"a\.npz: b claims 800128 bytes, and 9 are expected\. Fix: get the file that was written with the run\."
    for most in (9, {"a": 80, "b": 9}):
        with pytest.raises(FileError, match=said):
            read_arrays(file, ["a", "b"], most=most)
    assert read_arrays(file, ["a"], most={"a": 80})["a"].shape == (10,)
    assert set(read_arrays(file, most=800_000)) == {"a", "b"}
