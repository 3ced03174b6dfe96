"""Claims about shards from anyone: whatever is odd is one error with a fix, and nothing of a merge is left behind."""

from __future__ import annotations

import errno
import json
import os
import shutil
import signal
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dashi import lab
from dashi.core.certificates._certificate import read_certificate, write_certificate
from dashi.errors import DashiError, FileError, InputError
from dashi.flow import Flow
from dashi.flow._fields import StoredFields
from dashi.io import _files as files
from dashi.io.arrays import read_arrays, write_arrays
from dashi.lab.shards import _merged_simulation
from dashi.lab.shards.comparison import compared

FLOW = Flow(8, nu=0.01, dt=0.02)
ASKED = lab.SimulateRequest(
    flow=FLOW, steps=4, seeds=range(3), look_every=2, frame_every=2, hash_every=2, initial_options={"peak": 2.0}
)  # fmt: skip


@pytest.fixture(scope="module")
def room(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two shards of a simulation, two of an evaluation, and the whole of both."""
    room = tmp_path_factory.mktemp("shards")
    for index in (1, 2):
        lab.simulate(replace(ASKED, shard=lab.Shard(index, 2)), device="cpu", out=room / f"s{index}")
    lab.merge([room / "s1", room / "s2"], out=room / "whole")
    fit = lab.FitRequest(
        model="persistence", flow=FLOW, train=(1,), validate=(2,), train_steps=10, frame_every=5, spin_up=0, k_cut=2,
        initial_options={"peak": 2}, baselines=("damped",), host_fft=True,
    )  # fmt: skip
    lab.fit(fit, device="cpu", out=room / "m.npz")
    for index in (1, 2):
        asked = lab.EvaluateRequest(
            model=room / "m.npz", seeds=range(9, 12), steps=10, host_fft=True, shard=lab.Shard(index, 2)
        )
        lab.evaluate(asked, device="cpu", out=room / f"e{index}")
    return room


@pytest.fixture
def shards(room: Path, tmp_path: Path) -> list[Path]:
    return [Path(shutil.copytree(room / name, tmp_path / name)) for name in ("s1", "s2")]


def refused(folders: list[Path], said: str) -> None:
    """A merge ends with one error that says so, and leaves nothing."""
    out = folders[0].parent / "out"
    before = sorted(path.name for path in out.parent.iterdir())
    with pytest.raises(DashiError, match=said) as caught:
        lab.merge(folders, out=out)
    assert " Fix: " in str(caught.value)
    assert sorted(path.name for path in out.parent.iterdir()) == before


def _edit(file: Path, change: Callable[[Any], Any]) -> None:
    document = json.loads(file.read_text())
    change(document)
    file.write_text(json.dumps(document))


def _edit_both(shards: list[Path], change: Callable[[Any], Any]) -> None:
    for shard in shards:
        _edit(shard / "shard.json", change)


FRAME = "fields.zarr/vorticity/c/1/0/0/0"
STATE = "states.zarr/states/c/0/0/0/0/0"


@pytest.mark.parametrize("name", [FRAME, STATE, "fields.zarr/energy/c/0/0", "state.npz", "inputs.npz", "metrics.json"])
def test_a_file_that_is_missing_or_cut_short_is_named(shards: list[Path], name: str) -> None:
    file = shards[1] / name
    octets = file.read_bytes()
    file.write_bytes(octets[:-9])
    refused(shards, Path(name).name if name.endswith(("npz", "json")) else name)
    file.write_bytes(octets + b"more")
    if not name.endswith("npz"):
        refused(shards, ".")
    file.unlink()
    refused(shards, ".")


def test_states_that_were_edited_are_known_by_their_hashes(shards: list[Path]) -> None:
    file = shards[1] / STATE
    octets = bytearray(file.read_bytes())
    octets[100] ^= 1
    file.write_bytes(octets)
    refused(shards, r"shard 2/2 in .*: its states after step 2 have the hash \w+, and it claims \w+. Fix: run that")
    octets[100] ^= 1
    file.write_bytes(octets)
    arrays: dict[str, Any] = dict(read_arrays(shards[0] / "state.npz"))
    write_arrays(shards[0] / "state.npz", {**arrays, "z": arrays["z"] + np.float32(1)})
    refused(shards, "the last states of the shards are not those that they hashed")
    write_arrays(shards[0] / "state.npz", {**arrays, "z": arrays["z"].astype(np.float64)})
    refused(shards, "z of its state.npz has shape .* of float64")
    write_arrays(shards[0] / "state.npz", {**arrays, "z": np.concatenate([arrays["z"], arrays["z"]])})
    refused(shards, "z of its state.npz has shape")


def test_initial_states_that_were_edited_are_known_by_the_certificate(shards: list[Path]) -> None:
    arrays: dict[str, Any] = dict(read_arrays(shards[0] / "inputs.npz"))
    write_arrays(shards[0] / "inputs.npz", {"z0": arrays["z0"] * np.float32(2)})
    refused(shards, "has other initial states than its certificate claims")


def test_a_certificate_of_other_parameters_is_refused(shards: list[Path]) -> None:
    file = shards[1] / "certificate.json"
    certificate = read_certificate(file)
    operator = certificate.operator
    other = operator.model_copy(update={"parameters": {**operator.parameters, "nu": 0.5}})
    write_certificate(file, certificate.model_copy(update={"operator": other}))
    refused(shards, "shard 2/2 in .*: its certificate is of an operator with other parameters")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("shape", [3, 10**12, 8, 8]), ("shape", [10**9, 2, 8, 8]), ("data_type", "float64"), ("shape", "x"),
        ("codecs", [{"name": "blosc"}]), ("chunk_grid", {}), ("attributes", {}),
    ],
)  # fmt: skip
def test_metadata_of_other_arrays_are_refused_before_memory_is_taken(
    shards: list[Path], name: str, value: object
) -> None:
    _edit(shards[1] / "fields.zarr" / "vorticity" / "zarr.json", lambda document: document.update({name: value}))
    refused(shards, "vorticity/zarr.json describes another array than this run has")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda d: d.update(total=10**9), "describes|claims|does not say|shard|take"),
        (lambda d: d["work"].update(steps=10**15), "frames of 3 members take about"),
        (lambda d: d["work"].update(steps=10**15, frame=0), "its metrics are of another run"),
        (lambda d: d["work"].update(steps=-1), "does not say what was simulated"),
        (lambda d: d["work"].update(frame=1), "describes another array"),
        (lambda d: d["work"].update(hash=1), "its hashes are of other steps"),
        (lambda d: d["work"].update(fields=["../../x"]), "."),
        (lambda d: d["work"].update(fields=["pressure"]), "."),
        (lambda d: d["work"].update(flow={}), "does not say what was simulated"),
        (lambda d: d["work"]["flow"].update(n=4096), "."),
        (lambda d: d["work"].update(seeds=[1, 2]), "does not say what was simulated"),
        (lambda d: d["work"].update(more=1), "does not say what was simulated"),
        (lambda d: d.update(work={}), "does not say what was simulated"),
        (lambda d: d.update(command="flow rollout"), "is of `dashi flow rollout`, which is not merged"),
        (lambda d: d.update(command="flow evaluate"), "does not say what was evaluated"),
    ],
)
def test_records_that_agree_and_lie_are_refused(shards: list[Path], change: Any, said: str) -> None:
    _edit_both(shards, change)
    refused(shards, said)


@pytest.mark.parametrize("name", [FRAME, "state.npz", "fields.zarr", "shard.json", "metrics.json", "states.zarr"])
def test_no_link_is_followed_out_of_a_shard(shards: list[Path], tmp_path: Path, name: str) -> None:
    outside = tmp_path / "outside"
    shutil.move(shards[1] / name, outside)
    (shards[1] / name).symlink_to(outside)
    refused(shards, ".")


@pytest.mark.parametrize("name", ["shard-0.npz", "evaluation-train.npz", "evaluation.json", "continuation.npz"])
def test_scores_that_are_damaged_are_refused(room: Path, tmp_path: Path, name: str) -> None:
    folders = [Path(shutil.copytree(room / part, tmp_path / part)) for part in ("e1", "e2")]
    file = folders[0] / name
    octets = file.read_bytes()
    for broken in (octets[:-20], b"", None):
        file.unlink() if broken is None else file.write_bytes(broken)
        refused(folders, ".")
    file.write_bytes(octets)
    lab.merge(folders, out=tmp_path / "out")


@pytest.mark.parametrize(
    ("names", "file", "key", "shape"),
    [
        (("s1", "s2"), "state.npz", "z", (3, 1 << 20)),
        (("s1", "s2"), "inputs.npz", "z0", (3, 1 << 20)),
        (("e1", "e2"), "shard-0.npz", "scores_energy", (3, 1 << 20)),
        (("e1", "e2"), "continuation.npz", "proxy", (1 << 20,)),
    ],
)
def test_an_array_that_is_larger_than_its_own_is_refused_before_it_is_read(
    room: Path, tmp_path: Path, names: tuple[str, ...], file: str, key: str, shape: Any
) -> None:
    folders = [Path(shutil.copytree(room / part, tmp_path / part)) for part in names]
    arrays: dict[str, Any] = dict(read_arrays(folders[0] / file))
    write_arrays(folders[0] / file, {**arrays, key: np.zeros(shape)})
    refused(folders, f"{file}: {key} claims [0-9]+ bytes, and [0-9]+ are expected")


def test_scores_of_other_windows_are_refused(room: Path, tmp_path: Path) -> None:
    folders = [Path(shutil.copytree(room / part, tmp_path / part)) for part in ("e1", "e2")]
    shutil.copy(folders[1] / "shard-0.npz", folders[0] / "shard-0.npz")
    refused(folders, "holds scores of other windows than its own")
    arrays = read_arrays(room / "e1" / "shard-0.npz")
    for name, values in arrays.items():
        if name.startswith("part_"):
            write_arrays(folders[0] / "shard-0.npz", {**arrays, name: values[:0]})
            refused(folders, r"shard-0.npz is damaged")
    _edit(folders[0] / "shard.json", lambda d: d["work"].update(fit_scores=["evaluation-../../x"]))
    _edit(folders[1] / "shard.json", lambda d: d["work"].update(fit_scores=["evaluation-../../x"]))
    refused(folders, "does not say what was evaluated")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda d: d["work"].update(seeds=1 << 50), "does not say what was evaluated"),
        (lambda d: d["work"].update(seeds=None), "does not say what was evaluated"),
        (lambda d: d["work"].update(first_seed=None), "does not say what was evaluated"),
        (lambda d: d["work"].update(listed=[9, 10]), "does not say what was evaluated"),
        (lambda d: d.update(total=1 << 40), "does not say what was evaluated"),
        (lambda d: (d.update(total=1 << 40), d["work"].update(seeds=1 << 40)), "holds scores of other windows"),
        (lambda d: d["work"].update(windows=1 << 50), "holds scores of other windows"),
    ],
)
def test_numbers_of_an_evaluation_that_lie_are_refused(room: Path, tmp_path: Path, change: Any, said: str) -> None:
    folders = [Path(shutil.copytree(room / part, tmp_path / part)) for part in ("e1", "e2")]
    _edit_both(folders, change)
    refused(folders, said)


def test_more_seeds_than_there_is_memory_for_are_refused_before_they_are_listed(room: Path, tmp_path: Path) -> None:
    for count in (1 << 45, 1 << 70):
        asked = lab.EvaluateRequest(model=room / "m.npz", seeds=count, steps=10, host_fft=True)
        with pytest.raises(InputError, match=f"{count} seeds with 1 windows of 3 frames are .* GiB"):
            lab.evaluate(asked, device="cpu", out=tmp_path / "out")


def test_a_full_disk_leaves_nothing_of_a_merge(
    shards: list[Path], tmp_path: Path, full_disk: Callable[[int], AbstractContextManager[list[Path]]]
) -> None:
    for count in (0, 3, 12):
        with full_disk(count):
            refused(shards, r"cannot be written: No space left on device. Fix: make room on that disk")
    assert os.strerror(errno.ENOSPC) == "No space left on device"
    assert lab.merge(shards, out=tmp_path / "out").certificate


def test_ctrl_c_leaves_nothing_of_a_merge(shards: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real, calls = files._write_beside, [0]  # pyright: ignore[reportPrivateUsage]

    def interrupted(*words: Any) -> None:
        calls[0] += 1
        if calls[0] == 5:
            signal.raise_signal(signal.SIGINT)
        real(*words)

    monkeypatch.setattr(files, "_write_beside", interrupted)
    with pytest.raises(KeyboardInterrupt):
        lab.merge(shards, out=tmp_path / "out")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["s1", "s2"]


def test_what_is_in_the_place_is_replaced_as_by_the_job_itself(room: Path, shards: list[Path], tmp_path: Path) -> None:
    out = tmp_path / "out"
    lab.simulate(replace(ASKED, steps=2), device="cpu", out=out)
    other = compared(out)
    with pytest.raises(FileError, match="holds a finished run of `dashi flow simulate` with other settings"):
        lab.merge(shards, out=out)
    assert compared(out) == other
    lab.merge(shards, out=out, overwrite=True)
    assert compared(out) == compared(room / "whole")
    lab.merge(shards, out=out)
    lab.simulate(ASKED, device="cpu", out=out)
    assert compared(out) == compared(room / "whole")
    (out / "mine.txt").write_text("mine")
    with pytest.raises(FileError, match=r"holds mine.txt, which no run of it left there"):
        lab.merge(shards, out=out)
    for place in (shards[0], shards[0] / "in", tmp_path):
        with pytest.raises(FileError, match="is not apart from shard 1/2"):
            lab.merge(shards, out=place)


def test_a_shard_in_the_folder_of_another_is_refused(shards: list[Path]) -> None:
    with pytest.raises(FileError, match=r"with other settings \(shard is 1/2 there, 2/2 here\)"):
        lab.simulate(replace(ASKED, shard=lab.Shard(2, 2)), device="cpu", out=shards[0])
    with pytest.raises(FileError, match=r"with other settings"):
        lab.simulate(ASKED, device="cpu", out=shards[0])


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"shard": lab.Shard(4, 4)}, "`shard=` is 4/4, and there are 3 members to share. Fix: make 3 shards or fewer."),
        ({"shard": lab.Shard(1, 2), "out": None}, "`shard=1/2` leaves a folder to merge. Fix: name it with `out=`."),
        ({"shard": lab.Shard(1, 2), "device": "null"}, "the null device computes nothing."),
    ],
)
def test_a_shard_that_cannot_be_made_is_told(tmp_path: Path, more: dict[str, Any], said: str) -> None:
    place = {"device": "cpu", "out": tmp_path / "a", **more}
    with pytest.raises(DashiError) as caught:
        lab.simulate(replace(ASKED, shard=place.pop("shard")), **place)
    assert str(caught.value).startswith(said)


def test_what_is_drawn_for_all_windows_is_not_shared_out(room: Path, tmp_path: Path) -> None:
    asked = lab.EvaluateRequest(model=room / "m.npz", residual=True, shard=lab.Shard(1, 2))
    with pytest.raises(InputError, match="draws fine structure for all windows together"):
        lab.evaluate(asked, device="cpu", out=tmp_path / "a")


def test_frames_are_never_in_memory_as_a_whole(shards: list[Path], tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr("dashi.flow._fields._PIECE", 100)
    sizes: list[int] = []
    real = StoredFields.frame

    def watched(self: StoredFields, name: str, index: int) -> Any:
        for piece in real(self, name, index):
            sizes.append(len(piece))
            yield piece

    monkeypatch.setattr(StoredFields, "frame", watched)
    merged = lab.merge(shards, out=tmp_path / "out")
    assert max(sizes) == 100
    assert merged.total == 3


def test_a_machine_without_room_is_told_first(shards: list[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dashi.lab._capacity.memory", lambda: 1000)
    refused(shards, r"states of 3 members of 8 x 8 take about .*; this machine has 1e\+03 B of memory. Fix: merge on")
    assert _merged_simulation.require_memory
