"""Claims about windows from one's own data: a Dataset is understood, or refused with what to do."""

from __future__ import annotations

import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from dashi.cli.main import app
from dashi.errors import DashiError, FileError, InputError, ShapeError
from dashi.flow import Flow, ensemble, to_field, windows_of
from dashi.flow._units import parse_units
from dashi.flow.evaluation import require_disjoint
from dashi.flow.initial import INITIAL
from dashi.flow.windows import UNKNOWN, Naming, read_windows
from dashi.flow.windows import _foreign as foreign
from dashi.flow.windows._periodic import DOUBTFUL, MOST, edge_ratio
from dashi.flow.windows.own_data import windows_from_dataset
from dashi.flow.windows.recorded import windows_from_run

xarray = pytest.importorskip("xarray")


# ---- units


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("m s-1", {"m": 1, "s": -1}),
        ("m/s", {"m": 1, "s": -1}),
        ("1/T", {"T": -1}),
        ("s^-1", {"s": -1}),
        ("s**-1", {"s": -1}),
        ("meters / second", {"m": 1, "s": -1}),
        ("L^2/T^2", {"L": 2, "T": -2}),
        ("m2 s-2", {"m": 2, "s": -2}),
        ("1", {}),
        ("", {}),
    ],
)
def test_units_are_read_as_people_write_them(text: str, expected: dict[str, int]) -> None:
    assert parse_units(text) == expected


# ---- one's own data


def dataset(**change: Any) -> Any:
    """Vorticity and velocity of a shear that turns, on 16 x 16 points, as somebody else would bring it."""
    n, frames = 16, 5
    x = np.arange(n) * (2 * np.pi / n)
    t = np.arange(frames) * 0.1
    phase = t[:, None, None] + x[None, None, :]
    u = np.cos(x)[None, :, None] * np.ones((frames, 1, n))
    v = np.sin(2 * phase) * np.ones((1, n, 1))
    w = 2 * np.cos(2 * phase) + np.sin(x)[None, :, None]
    dims = ("time", "y", "x")
    variables = {
        "vorticity": (dims, w, {"units": "1/s"}),
        "u": (dims, u, {"units": "m/s"}),
        "v": (dims, v, {"units": "m s-1"}),
    }
    line = {"units": "m"}
    coordinates = {"time": ("time", t, {"units": "s"}), "y": ("y", x, line), "x": ("x", x, line)}
    made = xarray.Dataset(variables, coordinates)
    return made.assign(**change) if change else made


OWN = Flow(n=16, nu=0.01, dt=0.02, dtype="float64")


def test_vorticity_and_velocity_of_a_dataset_give_the_same_windows() -> None:
    data = dataset()
    windows = windows_from_dataset(data[["vorticity"]], flow=OWN)
    made = windows_from_dataset(data[["u", "v"]], flow=OWN)
    np.testing.assert_allclose(made.fields, windows.fields, atol=1e-12)
    assert windows.interval == 5
    assert windows.seeds == (UNKNOWN,)
    assert windows.fields.shape == (1, 5, 16, 16)


def test_members_other_names_and_orders_are_understood() -> None:
    data = dataset()[["vorticity"]].rename(vorticity="w", time="t")
    data = xarray.concat([data, 2 * data, 3 * data], "run").transpose("x", "t", "run", "y")
    data["w"].attrs["units"] = "1/s"
    names = {"time": "t", "member": "run"}
    windows = windows_from_dataset(data, flow=OWN, vorticity="w", dims=names, steps=10, seeds=[7, 8, 9], windows=1)
    assert windows.seeds == (7, 8, 9)
    assert windows.fields.shape == (3, 3, 16, 16)
    np.testing.assert_allclose(windows.fields[1], 2 * windows.fields[0], atol=1e-12)


def test_a_run_of_our_own_comes_back_through_xarray(tmp_path: Path) -> None:
    pytest.importorskip("zarr")
    words = "flow simulate --n 16 --nu 0.01 --set peak=2 --device cpu --host-fft --steps 24 --members 2 --seed 5"
    found = CliRunner().invoke(app, [*words.split(), "--frame-every", "2", "--out", str(tmp_path / "run")])
    assert found.exit_code == 0, found.output
    with xarray.open_zarr(tmp_path / "run" / "fields.zarr") as data:
        windows = windows_from_dataset(data[["vorticity"]].load(), steps=8)
    read = windows_from_run(tmp_path / "run", steps=8)
    np.testing.assert_array_equal(windows.fields, read.fields)
    assert (windows.seeds, windows.starts, windows.interval) == (read.seeds, read.starts, read.interval)


def test_later_frames_of_a_dataset_are_a_split_in_time() -> None:
    early = windows_from_dataset(dataset(), flow=OWN, steps=5, windows=1)
    late = windows_from_dataset(dataset(), flow=OWN, steps=10, first=8)
    assert early.starts == (0,)
    assert late.starts == (10,)
    np.testing.assert_array_equal(late.fields[0, 0], windows_from_dataset(dataset(), flow=OWN).fields[0, 2])
    assert not require_disjoint(early, late)


def test_data_are_resampled_to_another_grid() -> None:
    made = windows_from_dataset(dataset(), flow=OWN, n=32)
    assert made.flow == replace(OWN, n=32)
    np.testing.assert_allclose(made.fields[:, :, ::2, ::2], windows_from_dataset(dataset(), flow=OWN).fields, atol=1e-6)


def test_times_of_a_calendar_are_seconds() -> None:
    data = dataset()
    hours = np.datetime64("2026-01-01") + np.arange(5) * np.timedelta64(3600, "s")
    data = data.assign_coords(time=hours)
    made = windows_from_dataset(data[["vorticity"]], flow=replace(OWN, dt=720.0))
    assert made.interval == 5


def closed(data: Any) -> Any:
    """With the first column again at the end."""
    more = data.isel(x=[0]).assign_coords(x=("x", [2 * np.pi], {"units": "m"}))
    return xarray.concat([data, more], "x", coords="minimal", compat="override")


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (lambda d: d.rename(x="lon"), "no 'x'"),
        (lambda d: d.drop_vars("time"), "has no coordinate"),
        (lambda d: d.isel(time=[0, 1, 3]), "'time' is uneven"),
        (lambda d: d.isel(x=slice(None, None, -1)), "does not rise"),
        (lambda d: d.isel(x=slice(None, 8)), "must be a square"),
        (lambda d: closed(d).isel(y=slice(None)), "must be a square"),
        (lambda d: d.assign_coords(x=("x", d.x.values, {"units": "degrees_east"})), "angles on a sphere"),
        (lambda d: d.assign_coords(x=("x", d.x.values, {"units": "km"})), "x is in 'km' and y in 'm'"),
        (lambda d: d.assign_coords(time=("time", d.time.values, {"units": "hours"})), "'1/s', and .* 'h-1'"),
        (lambda d: d.assign(vorticity=d.vorticity.where(d.x > 1)), "not finite"),
        (lambda d: d.assign(vorticity=d.vorticity + 1), "has a mean"),
        (lambda d: d.assign(vorticity=d.vorticity.expand_dims(level=2)), "'vorticity' has the dimensions"),
        (lambda d: d.assign(vorticity=d.vorticity.astype(str)), "convert it"),
        (lambda d: d.drop_vars(["vorticity", "v"]), "neither 'vorticity' nor a pair"),
        (lambda d: d.drop_vars("vorticity").rename(u="v", v="u"), "not free of divergence"),
        (lambda d: d.drop_vars("vorticity").assign(u=d.u + 5), "'u' has a mean"),
    ],
)
def test_data_that_cannot_be_right_are_refused(spoil: Any, said: str) -> None:
    with xarray.set_options(keep_attrs=True):
        data = spoil(dataset())
    with pytest.raises(DashiError, match=said) as caught:
        windows_from_dataset(data, flow=OWN)
    assert isinstance(caught.value, InputError)
    assert caught.value.fix


def test_values_that_are_not_finite_are_located() -> None:
    data = dataset()
    data.vorticity.values[3, 5, 7] = np.nan
    data.vorticity.values[4, 0, 0] = np.inf
    with pytest.raises(InputError) as caught:
        windows_from_dataset(data, flow=OWN)
    assert "2 values of 1280 that are not finite, the first at index time 3, y 5, x 7." in caught.value.what


@pytest.mark.parametrize(
    ("rename", "variables", "dims"),
    [
        ({"vorticity": "w"}, ["w"], {}),
        ({"u": "a", "v": "b"}, ["a", "b"], {}),
        ({"time": "t", "x": "lon", "y": "lat"}, [], {"time": "t", "x": "lon", "y": "lat"}),
    ],
)
def test_a_file_with_other_names_is_read(
    rename: dict[str, str], variables: list[str], dims: dict[str, str], tmp_path: Path
) -> None:
    file = tmp_path / "mine.nc"
    dataset().rename(rename).to_netcdf(file, engine="scipy")
    found = read_windows(file, OWN, naming=Naming(tuple(variables), dims))
    np.testing.assert_allclose(found.fields, windows_from_dataset(dataset(), flow=OWN).fields, atol=1e-5)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("--from mine.nc --variable vortcity", "did you mean vorticity? it holds vorticity, u, v."),
        ("--from mine.nc --dims t=time", "--dims has no axis 't'."),
        ("--from mine.nc --dims time", "--dims time is not AXIS=NAME."),
        ("--from mine.nc --dims time=t", "and no 't'"),
        ("--variable w", "--variable names what a NetCDF file or a Zarr store holds."),
        ("--from mine.nc --variable a --variable b --variable c", "--variable has 3 names."),
        ("--from w.npy", "w.npy is a file that no windows are read from: an array alone has neither times nor places."),
        ("--from w.npy", "a NetCDF file (.nc, .nc4, .netcdf, .h5) or a Zarr store (.zarr)"),
    ],
)
def test_flags_for_names_say_what_does_not_fit(
    words: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    dataset().to_netcdf("mine.nc", engine="scipy")
    np.save("w.npy", np.zeros((4, 16, 16)))
    fit = "flow fit --nu 0.01 --dt 0.02 --train-steps 10 --k-cut 3 --device cpu --out m.npz"
    refused = CliRunner().invoke(app, [*fit.split(), *words.split()])
    assert refused.exit_code == 3
    assert said in refused.stderr


def test_a_point_that_is_there_twice_is_found() -> None:
    data = dataset()[["vorticity"]]
    twice = closed(data)
    square = xarray.concat([twice, twice.isel(y=[0]).assign_coords(y=("y", [2 * np.pi], {"units": "m"}))], "y")
    with pytest.raises(InputError, match="the point is there twice"):
        windows_from_dataset(square, flow=replace(OWN, n=18))


@pytest.mark.parametrize(
    ("flow", "said"),
    [
        (None, "which flow they are of"),
        (replace(OWN, n=32), "16 x 16 points in a box of 6.28319, the flow 32 x 32"),
        (replace(OWN, length=1.0), "the flow 16 x 16 in 1"),
        (replace(OWN, dt=0.03), "no whole number of steps"),
    ],
)
def test_a_flow_that_the_data_are_not_of_is_refused(flow: Flow | None, said: str) -> None:
    with pytest.raises(InputError, match=said):
        windows_from_dataset(dataset(), flow=flow)


def test_seeds_that_do_not_fit_are_refused() -> None:
    with pytest.raises(ShapeError, match="1 members and 2 seeds"):
        windows_from_dataset(dataset(), flow=OWN, seeds=[1, 2])


def test_without_xarray_a_netcdf_file_names_the_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    dataset().to_netcdf(tmp_path / "mine.nc", engine="scipy")
    monkeypatch.setitem(sys.modules, "xarray", None)
    words = ["flow", "fit", "--from", str(tmp_path / "mine.nc"), "--device", "cpu", "--out", str(tmp_path / "m.npz")]
    found = CliRunner().invoke(app, words)
    assert found.exit_code == 3
    assert "pip install 'dashi-compute[fields]'" in found.stderr
    assert not (tmp_path / "m.npz").exists()


def test_a_file_that_is_no_netcdf_is_told(tmp_path: Path) -> None:
    (tmp_path / "mine.nc").write_bytes(b"nothing of the kind")
    words = ["flow", "fit", "--from", str(tmp_path / "mine.nc"), "--device", "cpu", "--out", str(tmp_path / "m.npz")]
    found = CliRunner().invoke(app, words)
    assert found.exit_code == 3, found.output
    assert "xarray does not open" in found.stderr


def test_a_file_that_is_too_large_or_breaks_while_it_is_read_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "mine.nc"
    dataset().to_netcdf(file, engine="scipy")
    with monkeypatch.context() as small:
        small.setattr(foreign, "LIMIT", 1 << 10)
        with pytest.raises(FileError, match=r"unpacks to .* GiB.*Fix: "):
            read_windows(file, OWN)

    def broken(_: Any) -> Any:
        raise OSError("cut short")

    monkeypatch.setattr(xarray.Dataset, "load", broken)
    with pytest.raises(FileError, match=r"cannot be read: OSError: cut short\. Fix: "):
        read_windows(file, OWN)


# ---- parts of periodic boxes


def turbulent(n: int = 64) -> Any:
    """A record of dashi's own solver, as somebody else would bring it."""
    flow = Flow(n=n, nu=4e-3, dt=0.02)
    windows = windows_of(
        flow, [1], device="cpu", steps=20, interval=10, spin_up=60, host_fft=True, options={"peak": 4.0}
    )
    line = np.arange(n) * flow.dx
    axes = {"time": np.arange(windows.frames) * 0.2, "y": line, "x": line}
    return xarray.Dataset({"vorticity": (("time", "y", "x"), windows.fields[0])}, axes)


def test_a_part_of_a_periodic_box_is_refused_with_or_without_its_mean() -> None:
    whole = turbulent()
    assert edge_ratio(whole.vorticity.values) < 1.5
    windows_from_dataset(whole, flow=Flow(n=64, nu=4e-3, dt=0.02))
    part = whole.isel(x=slice(5, 37), y=slice(11, 43))
    flow = Flow(n=32, length=np.pi, nu=4e-3, dt=0.02)
    for given in (part, part.assign(vorticity=part.vorticity - part.vorticity.mean(("y", "x")))):
        with pytest.raises(InputError, match=r"it jumps \d+\.\d times as much as inside, so the box is not periodic"):
            windows_from_dataset(given, flow=flow)
    with pytest.raises(InputError, match="'vorticity' has a mean") as error:
        windows_from_dataset(part, flow=flow, periodic=True)
    assert "no more periodic than with it" in error.value.fix
    with pytest.raises(ShapeError, match="must be a square") as error:
        windows_from_dataset(whole.isel(x=slice(0, 32)), flow=flow)
    assert "a square that is cut out of a larger box is not periodic" in error.value.fix


@pytest.mark.parametrize("name", INITIAL)
@pytest.mark.parametrize("n", [16, 64])
def test_a_flow_in_a_periodic_box_passes_wherever_the_box_begins(name: str, n: int) -> None:
    field = to_field(ensemble(Flow(n=n), name, 1))
    for shift in range(0, n, n // 16):
        assert edge_ratio(np.roll(field, (shift, 3 * shift), (-1, -2))) < DOUBTFUL


def test_a_record_that_may_be_no_periodic_box_is_told(here: Path) -> None:
    n = 64
    away = (np.arange(n) + n / 2) % n - n / 2
    spot = np.exp(-((away / 1.2) ** 2))  # hardly resolved, right on the corner: rare, but periodic
    field = spot[:, None] * spot[None, :]
    line, flow = np.arange(n) * (2 * np.pi / n), Flow(n=n, nu=0.01, dt=0.1)
    values = np.stack([field - field.mean()] * 2)
    data = xarray.Dataset({"vorticity": (("time", "y", "x"), values)}, {"time": [0.0, 0.1], "y": line, "x": line})
    assert DOUBTFUL < edge_ratio(values) < MOST
    with pytest.warns(UserWarning, match="Is it a part of one"):
        windows_from_dataset(data, flow=flow)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        windows_from_dataset(data, flow=flow, periodic=True)
    data.to_netcdf("mine.nc", engine="scipy")
    with pytest.warns(UserWarning, match=r"^mine.nc: 'vorticity' does not go on smoothly across the edges of the box"):
        read_windows(Path("mine.nc"), flow)
