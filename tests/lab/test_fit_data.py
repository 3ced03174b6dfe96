"""Claims about the data of a fit in parts: the model of their merge is that of one process."""

from __future__ import annotations

import json
import os
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.lab.conftest import Heard

from dashi import lab
from dashi.errors import DashiError, FileError, InputError
from dashi.flow import Flow, Stochastic
from dashi.io.arrays import read_arrays, write_arrays
from dashi.lab.shards.comparison import compared

FLOW = Flow(16, nu=0.01, dt=0.02)


@pytest.fixture(autouse=True)
def quick_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing here is about a loss of power."""
    monkeypatch.setattr(os, "fsync", lambda _: None)


def asked(**more: Any) -> lab.FitRequest:
    words: dict[str, Any] = {
        "model": "galerkin", "flow": FLOW, "train": (1, 2, 3), "validate": (4,), "train_steps": 10, "frame_every": 5,
        "spin_up": 5, "k_cut": 3, "initial_options": {"peak": 2.0}, "baselines": ("persistence", "damped"),
        "host_fft": True,
    }  # fmt: skip
    return lab.FitRequest(**{**words, **more})


def parts(request: lab.FitRequest, room: Path, count: int) -> list[Path]:
    shards = [replace(request, shard=lab.Shard(index, count)) for index in range(1, count + 1)]
    return [lab.fit_data(shard, device="cpu", out=room / f"{j}-of-{count}").folder for j, shard in enumerate(shards, 1)]


@pytest.mark.parametrize(
    ("more", "counts"),
    [
        ({"windows": 2}, (1, 3)),
        pytest.param({}, (1, 2, 4), marks=pytest.mark.long),
        pytest.param({"flow": replace(FLOW, forcing=Stochastic()), "train": (1, 5, 2)}, (3,), marks=pytest.mark.long),
        pytest.param({"host_fft": False, "flow": Flow(8, nu=0.01, dt=0.02), "k_cut": 2}, (2,), marks=pytest.mark.long),
    ],
)
def test_a_model_of_merged_data_is_that_of_one_process(
    tmp_path: Path, more: dict[str, Any], counts: tuple[int, ...]
) -> None:
    request = asked(**more)
    lab.fit(request, device="cpu", out=tmp_path / "model.npz")
    whole = compared(tmp_path / "model.npz")
    for count in counts:
        room = tmp_path / str(count)
        room.mkdir()
        merged = lab.merge(parts(request, room, count)[::-1], out=room / "model.npz", device="cpu")
        assert compared(merged.out) == whole


def test_finished_data_are_not_made_again(tmp_path: Path, heard: Heard) -> None:
    request = asked(shard=lab.Shard(2, 2))
    lab.fit_data(request, device="cpu", out=tmp_path / "a")
    again = lab.fit_data(request, device="cpu", out=tmp_path / "a", events=heard)
    assert heard.remarks == [f"shard 2/2 in {tmp_path / 'a'} is finished already: nothing is done"]
    assert again.windows == 2
    with pytest.raises(FileError, match=r"with other settings"):
        lab.fit_data(replace(request, train_steps=20), device="cpu", out=tmp_path / "a")


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({}, r"data of a fit are made in parts\. Fix: say which with `shard=`"),
        ({"shard": lab.Shard(5, 5)}, r"`shard=` is 5/5, and there are 4 seeds to share\. Fix: make 4 shards or fewer"),
        ({"shard": lab.Shard(1, 2), "source": "x", "flow": None, "host_fft": False}, "`shard=` shares out simulations"),
    ],
)
def test_data_that_cannot_be_made_are_told(tmp_path: Path, more: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError, match=said):
        lab.fit_data(asked(**more), device="cpu", out=tmp_path / "a")
    with pytest.raises(InputError, match=r"makes data to fit to, and no model\. Fix: use dashi\.lab\.fit_data"):
        lab.fit(asked(shard=lab.Shard(1, 2)), device="cpu", out=tmp_path / "m.npz")


def test_data_from_anyone_are_checked(tmp_path: Path) -> None:
    folders = parts(asked(), tmp_path, 2)
    file = folders[1] / "shard-windows.npz"
    good: dict[str, Any] = dict(read_arrays(file))
    octets = file.read_bytes()

    def refused(said: str) -> None:
        with pytest.raises(DashiError, match=said):
            lab.merge(folders, out=tmp_path / "m.npz", device="cpu")
        assert not (tmp_path / "m.npz").exists()

    for name, values, said in (
        ("fields", good["fields"] + np.float32(1), "were changed after they were made"),
        ("fields", good["fields"][:1], "holds other windows than its own"),
        ("fields", good["fields"].astype(np.float64), "holds other windows than its own"),
        ("fields", np.zeros(1 << 20), "fields claims 8388736 bytes, and 6144 are expected"),
        ("seeds", good["seeds"][::-1], "holds other windows than its own"),
        ("starts", good["starts"] + 1, "holds other windows than its own"),
    ):
        write_arrays(file, {**good, name: values})
        refused(said)
    file.write_bytes(octets[:-30])
    refused("damaged or cut short")
    file.write_bytes(octets)
    for change in ({"flow": {}}, {"train": []}, {"train_steps": 10**12}, {"k_cut": "x"}, {"train": [1]}):
        for folder in folders:
            shutil.copy(folder / "shard.json", folder / "kept")
            document = json.loads((folder / "shard.json").read_text())
            document["work"].update(change)
            (folder / "shard.json").write_text(json.dumps(document))
        refused("does not say what is fitted")
        for folder in folders:
            shutil.move(folder / "kept", folder / "shard.json")
    assert lab.merge(folders, out=tmp_path / "m.npz", device="cpu").unit == "seeds"
