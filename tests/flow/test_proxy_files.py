"""Claims about files of models of z: they come back the same, and what is damaged is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dashi.errors import FileError, InputError
from dashi.flow.proxy import MODELS, Schema, load_model, model_class, save_model
from dashi.flow.proxy.catalogue import pack, unpack
from dashi.flow.proxy.galerkin._model import GalerkinModel
from dashi.flow.proxy.states import encoded
from dashi.flow.windows import Windows
from dashi.io.arrays import read_arrays, write_arrays
from dashi.runtime import Device
from dashi.runtime._cpu_device import CpuDevice

SMALL = Schema(32, 4)


@pytest.mark.parametrize("name", MODELS)
def test_a_model_comes_back_from_its_file_and_rolls_the_same(
    name: str, tiny: Windows, device: Device, tmp_path: Path
) -> None:
    if name == "dmd":
        pytest.importorskip("pydmd")
    schema = Schema(32, 4, 6, ((5, 0), (-3, 4)))
    options: dict[str, Any] = {"iterations": 2, "long_iterations": 0} if name == "slaved" else {}
    model = model_class(name).fit(schema, tiny, tiny.take([0]), device=device, **options)
    file = tmp_path / "model.npz"
    save_model(file, model, {"seeds": np.array(tiny.seeds)})
    same = load_model(file)
    assert type(same) is type(model)
    assert (same.schema, same.interval, same.description) == (model.schema, model.interval, model.description)
    z0 = encoded(schema, tiny, device=device)[:, 0]
    one, two = (m.rollout(z0, 3, device=device) for m in (model, same))
    assert one.shape == (3, 4, schema.size)
    assert one.tobytes() == two.tobytes()
    np.testing.assert_array_equal(one[:, 0], z0)
    assert np.isfinite(one).all()
    assert read_arrays(file)["note_seeds"].tolist() == [1, 2, 3]
    assert unpack(pack(model)).parameters == model.parameters


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        ("model", np.array("other"), "is not known here"),
        ("model", np.array(3), "holds no model"),
        ("version", np.array(9), "version 9 of the model galerkin"),
        ("schema_version", np.array(2), "schema version 2"),
        ("interval", np.array(np.nan), "time between frames"),
        ("interval", np.array(1e9), "no whole number of steps of 0.02 from 1 to 1000000"),
        ("interval", np.array(1e-9), "no whole number of steps"),
        ("interval", np.array(0.05), "no whole number of steps"),
        ("array_eddy", np.zeros(3), "one viscosity for each"),
        ("array_eddy", np.full(24, np.inf), "not finite"),
        ("parameter_factor", np.array("x"), "the option factor of the model galerkin is 'x'"),
        ("parameter_factor", np.array(np.nan), "the option factor of the model galerkin is nan"),
        ("parameter_way", np.array("sideways"), "Fix: use one of auto, grid, triads, numpy"),
        ("parameter_flow_nu", None, "'nu' is missing"),
        ("parameter_flow_dt", None, "'dt' is missing"),
        ("parameter_flow_colour", np.array(1.0), "'colour' is none of its parameters"),
        ("parameter_flow_force_amplitude", None, "the forcing kolmogorov is described by amplitude, wavenumber"),
        ("parameter_flow_forcing", None, "a flow without force is described by nothing"),
        ("parameter_flow_nu", np.array(-1.0), "at least 0"),
        ("parameter_flow_n", np.array(64), "64 x 64"),
        ("parameter_chosen_on", None, "damaged"),
        ("parameter_backscatter", np.array("auto"), "no form 'auto' of backscatter"),
        ("parameter_backscatter", np.array("more"), "backscatter of the model galerkin is 'more'"),
    ],
)
def test_a_damaged_model_is_refused(name: str, value: Any, text: str, tiny: Windows, tmp_path: Path) -> None:
    with CpuDevice() as cpu:
        model = GalerkinModel.fit(SMALL, tiny, None, device=cpu)
    arrays = {**pack(model), name: value}
    file = tmp_path / "model.npz"
    write_arrays(file, {key: values for key, values in arrays.items() if values is not None})
    with pytest.raises(FileError, match="Fix:") as error:
        load_model(file)
    assert text in str(error.value)


def test_fits_from_before_there_were_two_forms_of_backscatter_are_of_the_first() -> None:
    kept = Path(__file__).parents[2] / "docs" / "benchmarks" / "closure-skill" / "kolmogorov-galerkin-8.npz"
    model = load_model(kept)
    assert isinstance(model, GalerkinModel)
    assert (model.backscatter, model.factor, model.chosen_on) == ("scaled", 2.5, 4)


def test_no_model_that_steps_is_restored_with_frames_that_are_no_steps(tiny: Windows) -> None:
    with CpuDevice() as cpu:
        for name in ("slaved", "perfect"):
            options: dict[str, Any] = (
                {"iterations": 1, "frames": 2, "long_iterations": 0, "batch": 1} if name == "slaved" else {}
            )
            model = model_class(name).fit(SMALL, tiny, None, device=cpu, **options)
            again = type(model).restore(SMALL, model.interval, model.arrays, model.parameters)
            assert again.interval == model.interval
            for interval in (1e9, 1e-9, 0.05):
                with pytest.raises(InputError, match=r"no whole number of steps.*Fix: "):
                    type(model).restore(SMALL, interval, model.arrays, model.parameters)


def test_a_model_file_with_bytes_changed_is_read_or_refused_but_never_breaks(tiny: Windows, tmp_path: Path) -> None:
    with CpuDevice() as cpu:
        model = GalerkinModel.fit(SMALL, tiny, None, device=cpu)
    file = tmp_path / "model.npz"
    save_model(file, model)
    good, rng = file.read_bytes(), np.random.default_rng(3)
    fixes: list[str] = []
    for _ in range(150):
        octets = bytearray(good)
        for place in rng.integers(0, len(octets), 3):
            octets[place] = rng.integers(0, 256)
        file.write_bytes(octets[: rng.integers(1, len(octets))] if rng.random() < 0.2 else octets)
        try:
            assert isinstance(load_model(file), GalerkinModel)
        except InputError as error:
            fixes.append(error.fix)
    assert len(fixes) > 30
    assert all(fixes)
