"""Files that others wrote: whatever is in them, they are understood or refused with what to do, and run no code."""

from __future__ import annotations

import gc
import json
import os
import pickle
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dashi.errors import FileError, InputError
from dashi.flow import Flow, windows_from_dataset
from dashi.flow.windows import _foreign as foreign

xarray = pytest.importorskip("xarray")
pytest.importorskip("zarr")

FLOW = Flow(n=8, length=8.0, nu=0.01, dt=0.1)


def dataset() -> Any:
    line = np.arange(8.0)
    values = np.cos(2 * np.pi * line / 8)[None, None, :] * np.ones((3, 8, 1))
    coordinates = {"time": np.arange(3) * 0.1, "y": line, "x": line}
    return xarray.Dataset({"vorticity": (("time", "y", "x"), values)}, coordinates)


@pytest.fixture(scope="module")
def stores(tmp_path_factory: pytest.TempPathFactory) -> dict[int, Path]:
    """The same record in both versions of Zarr, with another variable beside it."""
    folder = tmp_path_factory.mktemp("stores")
    data = dataset().assign(other=("note", np.arange(3.0)))
    for version in (2, 3):
        data.to_zarr(folder / f"v{version}.zarr", zarr_format=version, consolidated=False)
    return {version: folder / f"v{version}.zarr" for version in (2, 3)}


@pytest.fixture(params=[2, 3])
def store(request: pytest.FixtureRequest, stores: dict[int, Path], tmp_path: Path) -> Path:
    copy = tmp_path / "mine.zarr"
    shutil.copytree(stores[request.param], copy)
    return copy


def metadata(store: Path, variable: str) -> Path:
    return next(file for name in (".zarray", "zarr.json") if (file := store / variable / name).is_file())


def edit(file: Path, change: Callable[[dict[str, Any]], Any]) -> None:
    document = json.loads(file.read_text())
    change(document)
    file.write_text(json.dumps(document))


def test_a_path_is_read_as_the_dataset_in_it(store: Path, tmp_path: Path) -> None:
    expected = windows_from_dataset(dataset(), flow=FLOW)
    assert np.array_equal(windows_from_dataset(store, flow=FLOW).fields, expected.fields)
    dataset().to_netcdf(tmp_path / "mine.nc", engine="scipy")
    assert np.array_equal(windows_from_dataset(str(tmp_path / "mine.nc"), flow=FLOW).fields, expected.fields)


def test_netcdf_4_is_read_like_netcdf_3(tmp_path: Path) -> None:
    pytest.importorskip("h5py")
    pytest.importorskip("h5netcdf")
    file = tmp_path / "mine.nc"
    encoding = {"vorticity": {"zlib": True, "complevel": 4, "chunksizes": (1, 8, 8)}}
    dataset().to_netcdf(file, engine="h5netcdf", encoding=encoding)
    assert file.read_bytes().startswith(b"\x89HDF\r\n")
    wanted = windows_from_dataset(dataset(), flow=FLOW)
    assert np.array_equal(windows_from_dataset(file, flow=FLOW).fields, wanted.fields)
    file.write_bytes(file.read_bytes()[:2000])
    with pytest.raises(FileError, match=r"mine.nc.*Fix: "):
        windows_from_dataset(file, flow=FLOW)


def test_a_data_array_is_vorticity(store: Path) -> None:
    wanted = windows_from_dataset(dataset(), flow=FLOW)
    unnamed = dataset()["vorticity"].rename(None)
    assert np.array_equal(windows_from_dataset(unnamed, flow=FLOW).fields, wanted.fields)
    with pytest.raises(InputError, match="half of a velocity"):
        windows_from_dataset(dataset()["vorticity"].rename("u"), flow=FLOW)


@pytest.mark.parametrize("data", [np.zeros((3, 8, 8)), [1, 2], None, 7, {"vorticity": 1}])
def test_what_is_no_dataset_is_refused_with_how_to_make_one(data: Any) -> None:
    with pytest.raises(InputError, match=r"says nothing of its box and times. Fix: pass xarray.Dataset"):
        windows_from_dataset(data, flow=FLOW)


@pytest.mark.parametrize(
    "spoil",
    [
        lambda d: d.assign_coords(x=[*"abcdefgh"]),
        lambda d: d.assign_attrs(flow_n=[1, 2], flow_nu={"a": 1}),
        lambda d: d.assign_coords(time=[None, 1, 2]),
        lambda d: d.assign_attrs(flow_n=10**400),
    ],
    ids=["letters", "lists", "objects", "huge"],
)
def test_a_dataset_of_nonsense_is_refused(spoil: Callable[[Any], Any]) -> None:
    with pytest.raises(InputError, match="Fix: "):
        windows_from_dataset(spoil(dataset()))


def test_variables_that_nobody_asked_for_are_not_decoded(store: Path) -> None:
    for chunk in (store / "other").rglob("0"):
        if chunk.is_file():
            chunk.write_bytes(b"garbage")
    assert len(windows_from_dataset(store, flow=FLOW)) == 1


def test_a_codec_that_could_run_code_is_refused_before_it_is_reached(tmp_path: Path) -> None:
    """Even where numcodecs is told to trust pickles."""
    store = tmp_path / "evil.zarr"
    dataset().to_zarr(store, zarr_format=2, consolidated=False)
    touched = tmp_path / "touched"

    class Payload:
        def __reduce__(self) -> Any:
            return (os.system, (f"touch {touched}",))

    (store / "evil").mkdir()
    filters = [{"id": "vlen-utf8"}, {"id": "pickle", "protocol": 5}]
    head = {"shape": [1], "chunks": [1], "dtype": "|O", "fill_value": None, "order": "C", "compressor": None}
    (store / "evil" / ".zarray").write_text(json.dumps({**head, "filters": filters, "zarr_format": 2}))
    (store / "evil" / ".zattrs").write_text(json.dumps({"_ARRAY_DIMENSIONS": ["evil"]}))
    (store / "evil" / "0").write_bytes(pickle.dumps(Payload()))
    program = (
        "import sys; from dashi.flow import Flow, windows_from_dataset\n"
        "try: windows_from_dataset(sys.argv[1], flow=Flow(n=8, length=8.0, dt=0.1))\n"
        "except Exception as error: print(type(error).__name__, error)"
    )
    trusting = {**os.environ, "NUMCODECS_ALLOW_UNSAFE_PICKLE_DECODE": "1"}
    done = subprocess.run(
        [sys.executable, "-c", program, str(store)], env=trusting, capture_output=True, text=True, check=True
    )
    assert "FileError" in done.stdout
    assert "asks for the codec 'pickle', which is not read. Fix: write it again" in done.stdout
    assert not touched.exists()


@pytest.mark.parametrize("codec", ["pickle", "numcodecs.pickle", "vlen-array", "json2", "nonsense", "", None, 7, {}])
def test_codecs_that_are_not_known_are_refused(store: Path, codec: Any) -> None:
    def change(document: dict[str, Any]) -> None:
        if "codecs" in document:
            inner = {"chunk_shape": [1], "codecs": [{"name": "bytes"}, {"name": codec}], "index_codecs": []}
            document["codecs"] = [{"name": "sharding_indexed", "configuration": inner}]
        else:
            document["filters"] = [{"id": codec}]

    edit(metadata(store, "other"), change)
    with pytest.raises(FileError, match=r"asks for the codec .* which is not read"):
        windows_from_dataset(store, flow=FLOW)


def test_what_is_no_file_in_a_store_is_refused(store: Path, tmp_path: Path) -> None:
    os.mkfifo(store / "other" / "pipe")
    with pytest.raises(FileError, match="neither a file nor a folder"):
        windows_from_dataset(store, flow=FLOW)
    (store / "other" / "pipe").unlink()
    (store / "beside").symlink_to(tmp_path, target_is_directory=True)
    with pytest.raises(FileError, match="neither a file nor a folder"):
        windows_from_dataset(store, flow=FLOW)
    os.mkfifo(tmp_path / "mine.nc")
    with pytest.raises(FileError, match="not an ordinary file"):
        windows_from_dataset(tmp_path / "mine.nc", flow=FLOW)


def test_chunks_and_records_that_do_not_fit_into_memory_are_refused(
    store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def change(document: dict[str, Any]) -> None:
        document["shape"] = [1 << 20, 1 << 10, 1 << 10]
        if "chunks" in document:
            document["chunks"] = document["shape"]
        else:
            document["chunk_grid"]["configuration"]["chunk_shape"] = document["shape"]

    edit(metadata(store, "vorticity"), change)
    with pytest.raises(FileError, match="claims chunks of 8796093022208 bytes"):
        windows_from_dataset(store, flow=FLOW)
    monkeypatch.setattr(foreign, "LIMIT", 1 << 62)
    monkeypatch.setattr("dashi.io._memory.available_memory", lambda: 1 << 30)
    with pytest.raises(FileError, match=r"a chunk of .* takes 8192.0 GiB of memory; 1.0 GiB are free"):
        windows_from_dataset(store, flow=FLOW)


def test_a_record_larger_than_memory_is_refused_before_it_is_loaded(
    store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dashi.io._memory.SMALL", 100)
    monkeypatch.setattr("dashi.io._memory.available_memory", lambda: 1000)
    monkeypatch.setattr(foreign, "_require_small_chunks", lambda *_: None)
    with pytest.raises(FileError, match="of memory"):
        windows_from_dataset(store, flow=FLOW)


NONSENSE = [None, [], {}, -1, 10**400, "\ud800", "$", 1.5, [[]], True, "<f4", [8, 8], {"id": []}]


def test_metadata_of_nonsense_are_refused_or_read(store: Path) -> None:
    """Each value of the metadata of an array and of a coordinate, in turn, becomes something else."""
    for variable in ("vorticity", "x"):
        file = metadata(store, variable)
        whole = json.loads(file.read_text())
        for key in whole:
            for value in (*NONSENSE, "gone"):
                document = {k: v for k, v in whole.items() if k != key or value != "gone"}
                file.write_text(json.dumps(document if value == "gone" else {**document, key: value}))
                refused_or_read(store)
        file.write_text(json.dumps(whole))


@pytest.mark.parametrize("seed", range(12))
def test_damaged_bytes_are_refused_or_read(store: Path, seed: int, tmp_path: Path) -> None:
    rng = np.random.default_rng(seed)
    files = sorted(path for path in store.rglob("*") if path.is_file())
    file = files[rng.integers(len(files))]
    octets = bytearray(file.read_bytes())
    for place in rng.integers(len(octets), size=3):
        octets[place] = rng.integers(256)
    file.write_bytes(bytes(octets[: rng.integers(len(octets))] if seed % 3 == 0 else octets))
    refused_or_read(store)
    dataset().to_netcdf(tmp_path / "mine.nc", engine="scipy")
    octets = bytearray((tmp_path / "mine.nc").read_bytes())
    for place in rng.integers(300, size=4):
        octets[place] = rng.integers(256)
    (tmp_path / "mine.nc").write_bytes(octets)
    refused_or_read(tmp_path / "mine.nc")


def test_damaged_netcdf4_is_refused_or_read_and_prints_nothing(tmp_path: Path) -> None:
    pytest.importorskip("h5netcdf")
    file = tmp_path / "mine.nc"
    dataset().to_netcdf(file, engine="h5netcdf")
    octets = file.read_bytes()
    for place in (8, 64, 66, 98, 110, 127, *range(140, 700, 40)):  # up to the attributes of the first group
        damaged = bytearray(octets)
        damaged[place] ^= 255
        file.write_bytes(damaged)
        refused_or_read(file)  # what is forgotten half open would be an error of the test
    gc.collect()


def refused_or_read(path: Path) -> None:
    try:
        windows_from_dataset(path, flow=FLOW)
    except InputError as error:
        if not error.fix:
            raise


def test_a_store_without_metadata_is_refused(tmp_path: Path) -> None:
    (tmp_path / "empty.zarr").mkdir()
    (tmp_path / "empty.zarr" / "zarr.json").write_text("[" * 100_000)
    with pytest.raises(FileError, match="no metadata of Zarr"):
        windows_from_dataset(tmp_path / "empty.zarr", flow=FLOW)
