"""Claims about z: its layout, encode and lowpass decode on every device, its files, and what is refused."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dashi.errors import DTypeError, FileError, InputError, ShapeError
from dashi.flow import Flow, ensemble, to_field
from dashi.flow.proxy import choose_anchors, decode, encode, load_z, save_z
from dashi.flow.proxy.encode import FieldEncoder, enstrophy_share
from dashi.flow.proxy.lowpass import decode_states
from dashi.flow.proxy.schema import VERSION, Schema
from dashi.io.arrays import read_arrays, write_arrays
from dashi.runtime import Device
from dashi.runtime._cpu_device import CpuDevice

ANCHORS = ((9, 0), (-3, 9), (0, 11))


def fields_of(n: int = 32, dtype: str = "float64", count: int = 3) -> Any:
    flow = Flow(n, dtype=dtype)
    return to_field(ensemble(flow, "random", seeds=list(range(count)), peak=4))


@pytest.mark.parametrize(("k_cut", "numbers"), [(8, 196), (12, 440), (16, 796), (21, 1372)])
def test_z_has_the_sizes_that_are_compared(k_cut: int, numbers: int) -> None:
    for n in (64, 128, 256):
        schema = Schema(n, k_cut)
        assert schema.numbers == numbers
        assert schema.size == numbers + 4
        assert len(schema.low) * 2 == numbers


def test_the_layout_is_what_the_page_says() -> None:
    schema = Schema(64, 8, 12, ANCHORS)
    low = schema.low
    assert low.tolist()[:9] == [[0, kx] for kx in range(1, 9)] + [[1, 0]]
    assert ((low[:, 1] > 0) | ((low[:, 1] == 0) & (low[:, 0] > 0))).all()
    assert (np.diff(schema.places[: len(low)]) > 0).all()
    assert schema.parts["low"] == slice(0, 196)
    assert schema.parts["anchors"] == slice(196, 202)
    assert schema.parts["high_energy"] == slice(205, 206)
    assert schema.size == 206
    assert [tuple(k) for k in schema.modes[-3:].tolist()] == list(ANCHORS)
    assert Schema(64, 8).mid_cut == 12


def test_a_schema_comes_back_from_its_parameters_and_has_a_digest_of_its_own() -> None:
    one, two = Schema(64, 8, 12, ANCHORS), Schema(64, 8, 12)
    assert Schema.restore(one.parameters) == one
    assert Schema.restore(two.parameters) == two
    assert len({one.digest, two.digest, Schema(64, 9, 12).digest, Schema(96, 8, 12).digest}) == 4


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ((64, 22), "use a k_cut from 1 to 21"),
        ((64, 8, 7), "use a mid_cut from k_cut to 21"),
        ((64, float("nan")), "pass a finite number"),
        ((64, 8, 12, ((3, 3),)), "not in the half of the mid band"),
        ((64, 8, 12, ((-9, 0),)), "kx = 0 and ky > 0"),
        ((64, 8, 12, ((9, 0), (9, 0))), "name every mode once"),
        ((64, 8, 12, 5), "pass pairs (ky, kx), such as ((0, 4), (4, 1))"),
        ((64, 8, 12, (9, 0)), "the anchors are no pairs of whole numbers"),
        ((64, 8, 12, (("a", 0),)), "the anchors are no pairs of whole numbers"),
        ((64, 8, 12, ((9.5, 0),)), "the anchors are no pairs of whole numbers"),
        ((62, 8), "use n = 60 or 64"),
        ((64.0, 8), "use n = 64"),
        (("many", 8), "there is no solver for n = 'many': it must be whole, even"),
    ],
)
def test_a_schema_that_no_grid_has_is_refused(arguments: tuple[Any, ...], text: str) -> None:
    with pytest.raises(InputError, match="Fix:") as error:
        Schema(*arguments)
    assert text in str(error.value)


def test_a_flow_on_another_grid_is_refused_with_a_schema_that_it_could_have() -> None:
    with pytest.raises(
        InputError, match=r"Fix: use a flow on the grid of the schema, or a schema for this one"
    ) as error:
        Schema(64, 21).require_flow(Flow(16))
    assert "Schema(n=16, k_cut=..., length=6.283185307179586), with a k_cut from 1 to 5." in str(error.value)


@pytest.mark.parametrize(("dtype", "rounding"), [("float32", 2.0**-22), ("float64", 2.0**-51)])
def test_encode_then_lowpass_decode_is_exact_on_the_modes_held(dtype: str, rounding: float, device: Device) -> None:
    # Two transforms there and two back: a few roundings of values of order 1.
    schema, fields = Schema(48, 6, 12, ((7, 0), (-5, 5))), fields_of(48, dtype)
    z = encode(schema, fields, device=device)
    again = encode(schema, decode(schema, z, device=device), device=device)
    held = schema.parts["modes"]
    assert z.dtype == np.dtype(dtype)
    assert np.abs(z[:, held]).max() > 0.1
    np.testing.assert_allclose(again[:, held], z[:, held], rtol=0, atol=rounding)
    states = decode_states(schema, z, device=device)
    np.testing.assert_array_equal(encode(schema, states, device=device)[:, held], z[:, held])


def test_lowpass_decode_is_what_a_library_makes_of_the_low_modes(device: Device) -> None:
    schema, fields = Schema(32, 5), fields_of(32)
    modes = np.fft.fft2(fields)
    ky, kx = (k.reshape(shape) * 32 for k, shape in ((np.fft.fftfreq(32), (-1, 1)), (np.fft.fftfreq(32), (1, -1))))
    low = (ky**2 + kx**2 <= 25) & ((ky != 0) | (kx != 0))
    expected = np.fft.ifft2(np.where(low, modes, 0)).real
    found = decode(schema, encode(schema, fields, device=device), device=device)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-13 * np.abs(fields).max())


def test_anchors_are_decoded_unless_left_away(device: Device) -> None:
    plain, schema = Schema(48, 6, 12), Schema(48, 6, 12, ((7, 0), (-5, 5)))
    fields = fields_of(48)
    z = encode(schema, fields, device=device)
    without = decode(schema, z, device=device, anchors=False)
    np.testing.assert_array_equal(without, decode(plain, encode(plain, fields, device=device), device=device))
    assert np.abs(decode(schema, z, device=device) - without).max() > 1e-3


def test_the_share_of_enstrophy_is_the_square_of_the_correlation_with_what_z_holds(device: Device) -> None:
    flow = Flow(32)
    field = to_field(ensemble(flow, "random", [2], peak=4))
    for k_cut in (2, 5, 10):
        schema = Schema(32, k_cut)
        held = decode(schema, encode(schema, field, device=device), device=device)
        together = float((held * field).sum() / np.sqrt((held**2).sum() * (field**2).sum()))
        assert enstrophy_share(schema, field) == pytest.approx(together**2, rel=1e-4)  # held is float32


def test_the_scalars_are_those_of_the_whole_field(device: Device) -> None:
    schema, fields = Schema(48, 4, 7), fields_of(48)
    z = encode(schema, fields, device=device)
    part = {name: z[:, schema.parts[name]][:, 0] for name in ("energy", "enstrophy", "mid_energy", "high_energy")}
    np.testing.assert_allclose(part["enstrophy"], 0.5 * (fields**2).mean(axis=(1, 2)), rtol=1e-13)
    modes = np.abs(np.fft.fft2(fields)) ** 2 / 48**4
    k = np.fft.fftfreq(48) * 48
    square = k[:, None] ** 2 + k[None, :] ** 2
    energy = 0.5 * modes / np.where(square > 0, square, np.inf)
    for name, where in (("energy", square > 0), ("mid_energy", (square > 16) & (square <= 49))):
        np.testing.assert_allclose(part[name], (energy * where).sum(axis=(1, 2)), rtol=1e-12)
    np.testing.assert_allclose(part["high_energy"], (energy * (square > 49)).sum(axis=(1, 2)), rtol=1e-10)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_encode_and_decode_give_the_same_bits_on_every_backend(dtype: str, vulkan: Device) -> None:
    schema, fields = Schema(40, 7, 10, ((8, 0),)), fields_of(40, dtype)
    with CpuDevice() as cpu:
        states = encode(schema, fields, device=cpu)
        back = decode(schema, states, device=cpu)
    assert states.tobytes() == encode(schema, fields, device=vulkan).tobytes()
    assert back.tobytes() == decode(schema, states, device=vulkan).tobytes()


def test_many_fields_go_through_in_batches(monkeypatch: pytest.MonkeyPatch, device: Device) -> None:
    schema, fields = Schema(16, 3), fields_of(16, count=7).reshape(7, 1, 16, 16)
    whole = encode(schema, fields, device=device)
    for name in ("encode", "lowpass"):
        monkeypatch.setattr(import_module(f"dashi.flow.proxy.{name}"), "BATCH", 3 * 16**2)
    assert whole.shape == (7, 1, schema.size)
    np.testing.assert_array_equal(encode(schema, fields, device=device), whole)
    fields_back = decode(schema, whole, device=device)
    assert fields_back.shape == (7, 1, 16, 16)
    np.testing.assert_array_equal(fields_back[6, 0], decode(schema, whole[6, 0], device=device))


def test_sums_too_long_for_one_list_are_added_in_pieces(monkeypatch: pytest.MonkeyPatch, device: Device) -> None:
    schema, fields = Schema(32, 4, 6), fields_of(32)
    whole = encode(schema, fields, device=device)
    monkeypatch.setattr(import_module("dashi.flow.proxy.encode"), "_PIECE", 50)
    pieces = encode(schema, fields, device=device)
    np.testing.assert_allclose(pieces, whole, rtol=1e-13)
    np.testing.assert_array_equal(pieces[:, schema.parts["modes"]], whole[:, schema.parts["modes"]])


def test_encoding_can_be_recorded_with_other_steps(device: Device) -> None:
    schema, flow = Schema(32, 4), Flow(32)
    states = ensemble(flow, "random", seeds=[4, 5], peak=4)
    encoder = FieldEncoder(schema, device, flow.numpy_dtype)
    out = device.empty((2, schema.size))
    with device.program(encoder.steps(device.array(states), out)) as program:
        program.run()
    np.testing.assert_array_equal(out.numpy(), encode(schema, states, device=device))


def test_the_strongest_modes_of_the_mid_band_become_anchors(device: Device) -> None:
    fields = fields_of(48)
    y, x = (np.arange(48) * 2 * np.pi / 48).reshape(-1, 1), (np.arange(48) * 2 * np.pi / 48).reshape(1, -1)
    fields = fields + 50 * np.cos(7 * y) + 30 * np.cos(5 * x - 6 * y)
    found = choose_anchors(Schema(48, 6, 10), fields, 2, device=device)
    assert found.anchors == ((7, 0), (-6, 5))
    with pytest.raises(InputError, match=r"ask for 102 at most, or use a larger k_cut \(or mid_cut"):
        choose_anchors(Schema(48, 6, 10), fields, 10_000, device=device)


def test_fields_that_do_not_fit_are_refused() -> None:
    schema, fields = Schema(32, 4), fields_of(32)
    with CpuDevice() as cpu:
        with pytest.raises(ShapeError, match=r"grid of 32 x 32 points. Fix: pass vorticity of shape"):
            encode(schema, fields_of(16), device=cpu)
        with pytest.raises(DTypeError, match="Fix: convert them"):
            encode(schema, fields.astype(np.float16), device=cpu)
        broken = fields.copy()
        broken[1, 2, 3] = np.nan
        with pytest.raises(InputError, match=r"not finite, the first at \[1, 2, 3\]. Fix:"):
            encode(schema, broken, device=cpu)
        z = encode(schema, fields, device=cpu)
        with pytest.raises(ShapeError, match=r"has 52 numbers. Fix: pass z of shape \(..., 52\)"):
            decode(schema, z[:, :-1], device=cpu)
        with pytest.raises(InputError, match="not finite"):
            decode(schema, np.where(np.arange(z.shape[1]) == 4, np.inf, z), device=cpu)
        with pytest.raises(InputError, match="the flow has 48 x 48 points"):
            schema.require_flow(Flow(48))


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A file of z."""
    schema = Schema(32, 4, 6, ((5, 0),))
    with CpuDevice() as cpu:
        save_z(tmp_path / "z.npz", schema, encode(schema, fields_of(32, "float32"), device=cpu))
    return tmp_path / "z.npz"


def test_a_file_of_z_knows_its_schema(file: Path) -> None:
    schema, z = load_z(file)
    assert schema == Schema(32, 4, 6, ((5, 0),))
    assert z.shape == (3, schema.size)
    assert z.dtype == np.float32


def test_a_z_of_another_schema_version_is_refused(file: Path) -> None:
    write_arrays(file, {**read_arrays(file), "schema_version": np.array(VERSION + 1)})
    with pytest.raises(FileError, match=rf"schema version {VERSION + 1}; this dashi reads version {VERSION}. Fix: enc"):
        load_z(file)


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        ("schema_length", np.array(5.0), "digest that it claims"),
        ("schema_k_cut", np.array("x"), "not numbers"),
        ("schema_n", np.array(1 << 40), "there is no solver"),
        ("schema_anchors", np.array("5;0"), "anchors are damaged"),
        ("schema_extra", np.array(1), "'extra' missing or too much"),
        ("schema_version", np.array("one"), "nothing of the schema"),
        ("z", np.zeros((3, 5)), "numbers"),
        ("z", np.full((3, 54), np.nan), "not finite"),
        ("z", np.zeros((3, 54), np.int64), "z is int64"),
    ],
)
def test_a_damaged_file_of_z_is_refused(name: str, value: Any, text: str, file: Path) -> None:
    write_arrays(file, {**read_arrays(file), name: value})
    with pytest.raises(FileError, match="Fix:") as error:
        load_z(file)
    assert text in str(error.value)
    assert str(file) in str(error.value)


def test_a_file_without_z_is_refused(file: Path) -> None:
    arrays = read_arrays(file)
    write_arrays(file, {name: values for name, values in arrays.items() if name != "z"})
    with pytest.raises(FileError, match="holds no z"):
        load_z(file)
