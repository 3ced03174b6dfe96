"""`dashi filament track`: records of anyone, what it prints and leaves, and flags in its errors."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from dashi.cli.main import app
from dashi.filament.threads import _known as known
from dashi.filament.threads.files import read_genealogy

xarray = pytest.importorskip("xarray")


def track(*words: str) -> Any:
    return CliRunner().invoke(app, ["filament", "track", *words])


def two_that_merge(file: Path, times: Any = None, **names: str) -> None:
    n, apart = 48, np.linspace(1.6, 0.0, 9)
    frames = np.stack(
        [
            known.render(
                [known.KnownVortex(i, 3 + s * d / 2, 3, 1 + 0.1 * i, 0.3, 1, 0) for i, s in enumerate((-1, 1))], n
            )
            for d in apart
        ]
    )
    # Two of the other sign far away: vorticity has no mean in a periodic box.
    frames = frames - np.roll(frames[:1], n // 2, (1, 2)) * (frames.sum(axis=(1, 2)) / frames[0].sum())[:, None, None]
    points = np.arange(n) * (known.LENGTH / n)
    data = xarray.Dataset(
        {"vorticity": (("time", "y", "x"), frames)},
        {"time": np.arange(len(apart)) * 0.5 if times is None else times, "y": points, "x": points},
    )
    data.rename(names).to_zarr(file, consolidated=False)


def test_two_vortices_that_merge_are_two_threads_and_one_merge(here: Path) -> None:
    two_that_merge(here / "data.zarr")
    done = track("data.zarr", "--out", "threads", "--json")
    assert done.exit_code == 0, done.output
    document = json.loads(done.stdout)
    counts = {name: document[name] for name in ("threads", "births", "deaths", "merges", "splits")}
    assert counts == {"threads": 4, "births": 0, "deaths": 0, "merges": 1, "splits": 0}
    assert 0 <= document["unattributed"] < 0.05
    assert sorted(path.name for path in (here / "threads").glob("[!.]*")) == [
        "threads.graphml", "threads.json", "threads.npz",
    ]  # fmt: skip
    assert read_genealogy(here / "threads" / "threads.npz").digest == document["digest"]
    table = json.loads((here / "threads" / "threads.json").read_text())
    assert [row["ending"] for row in table["thread_table"]].count("merge") == 1
    # The same command again replaces its own folder; other settings do not.
    assert track("data.zarr", "--out", "threads").exit_code == 0
    refused = track("data.zarr", "--out", "threads", "--level", "2")
    assert (refused.exit_code, "--overwrite" in refused.stderr) == (3, True)


def test_axes_and_variables_of_others_are_named(here: Path) -> None:
    two_that_merge(here / "data.zarr", time="t", vorticity="w")
    assert track("data.zarr").exit_code == 3
    done = track("data.zarr", "--dims", "time=t", "--variable", "w")
    assert done.exit_code == 0, done.output
    assert "1 merges" in done.stdout


@pytest.mark.parametrize(
    ("words", "what"),
    [
        (["nothing.zarr"], "there is no file nothing.zarr"),
        (["field.npy"], "an array alone has neither times nor places"),
        (["data.zarr", "--member", "3"], "--member 3 is not among the 1 members"),
        (["data.zarr", "--depth", "2"], "--depth is 2.0"),
        (["data.zarr", "--quantum", "1"], "a quantum of 1 is too coarse"),
        (["late.zarr"], "does not rise"),
    ],
)
def test_what_cannot_be_tracked_is_refused_with_flags(here: Path, words: list[str], what: str) -> None:
    two_that_merge(here / "data.zarr")
    two_that_merge(here / "late.zarr", times=-np.arange(9.0))
    np.save(here / "field.npy", np.ones((4, 4)))
    done = track(*words)
    assert done.exit_code == 3
    assert what in done.stderr
    assert "Fix: " in done.stderr
