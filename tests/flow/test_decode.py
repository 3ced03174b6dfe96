"""Decode: the same bits on every device, right by an independent account, and nothing that nobody asked for."""

from __future__ import annotations

import gc
import warnings
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dashi.core.operators.affine import Linear
from dashi.core.rollouts._engine import DeviceEngine
from dashi.core.rollouts.rollout import rollout
from dashi.errors import InputError, NonFiniteError, NoResultError, ShapeError
from dashi.flow import Flow, ensemble, to_field
from dashi.flow.decode import Decoder, Settings, Statistics, fit_statistics
from dashi.flow.decode._parity import agrees, compare
from dashi.flow.decode._plain import decode_plainly
from dashi.flow.decode.decoder import NOTHING
from dashi.flow.decode.observer import Decodes, DecodeTotals
from dashi.flow.decode.settings import GATES, RESIDUALS, STAGES
from dashi.flow.proxy.encode import choose_anchors, encode
from dashi.flow.proxy.lowpass import decode as lowpass
from dashi.flow.proxy.schema import Schema
from dashi.runtime import _stopwatch as stopwatch
from dashi.runtime import open_device
from dashi.runtime._cpu_device import CpuDevice
from dashi.runtime._null_device import NullDevice
from dashi.runtime._vulkan_device import VulkanDevice
from dashi.runtime.device import Device

N = 32
SEEDS = range(5)


@pytest.fixture(scope="module")
def fields() -> np.ndarray:
    return np.asarray(to_field(ensemble(Flow(N), "random", SEEDS, peak=4.0)))


@pytest.fixture(scope="module")
def schema(fields: np.ndarray) -> Schema:
    with CpuDevice() as cpu:
        return choose_anchors(Schema(N, 4), fields, 6, device=cpu)


@pytest.fixture(scope="module")
def z(schema: Schema, fields: np.ndarray) -> np.ndarray:
    with CpuDevice() as cpu:
        return encode(schema, fields.astype(np.float32), device=cpu)


@pytest.fixture(scope="module")
def statistics(schema: Schema, fields: np.ndarray) -> Statistics:
    return fit_statistics(schema, fields)


@pytest.fixture
def cpu() -> Iterator[CpuDevice]:
    with CpuDevice() as device:
        yield device


@pytest.mark.parametrize("gate", GATES)
@pytest.mark.parametrize("residual", RESIDUALS)
def test_decode_gives_the_same_bits_on_numpy_and_vulkan(
    vulkan: VulkanDevice, schema: Schema, fields: np.ndarray, statistics: Statistics, residual: str, gate: str
) -> None:
    settings = Settings(residual=residual, gate=gate)
    for one in compare(schema, fields, SEEDS, settings, device=vulkan, statistics=statistics):
        assert one.same_bits
        assert one.max_error == one.mean_error == one.hamming == one.d_energy == one.d_enstrophy == 0
        assert agrees(one)


@pytest.mark.parametrize("residual", RESIDUALS)
def test_decode_agrees_with_float64_and_numpys_transforms(
    device: Device, schema: Schema, fields: np.ndarray, statistics: Statistics, residual: str
) -> None:
    settings = Settings(residual=residual, gate="signed", dtype="float64")
    for one in compare(schema, fields[:2], [0, 1], settings, device=device, statistics=statistics):
        assert one.plain_max_error < 64 * np.finfo(np.float64).eps  # as in parity.ROUNDINGS
        assert one.plain_hamming == 0


def test_decode_of_an_odd_shape_has_the_same_bits_too(vulkan: VulkanDevice) -> None:
    """Rows that are no whole words take another way through the majority."""
    small = Schema(30, 4)
    field = np.asarray(to_field(ensemble(Flow(30), "random", [1])))
    found = compare(small, field, [1], Settings(residual="seeded"), device=vulkan)
    assert all(agrees(one) for one in found)


def test_members_are_decoded_as_they_are_alone(device: Device, schema: Schema, z: np.ndarray) -> None:
    together = look(Decoder(schema, device, members=3, residual="seeded", seed=4), z[:3], "snapshots")
    for member in range(3):
        alone = look(Decoder(schema, device, residual="seeded", seed=4 + member), z[member], "snapshots")
        assert np.array_equal(together.fields[member], alone.fields)
        assert np.array_equal(together.mask[member], alone.mask)
        assert together.energy[member] == alone.energy


def test_without_a_residual_the_field_is_that_of_the_modes_in_z(device: Device, schema: Schema, z: np.ndarray) -> None:
    made = look(Decoder(schema, device), z[0], "snapshots")
    assert np.array_equal(made.fields, lowpass(schema, z[0], device=device))


def test_anchors_reach_the_output(device: Device, schema: Schema, fields: np.ndarray, z: np.ndarray) -> None:
    """v4 wrote them to the spectrum after the transform."""
    with_anchors = look(Decoder(schema, device), z[0], "snapshots")
    cut = z[0].copy()
    cut[schema.parts["anchors"]] = 0
    without = look(Decoder(schema, device), cut, "snapshots")
    assert _error(with_anchors.fields, fields[0]) < _error(without.fields, fields[0]) - 0.01
    hat = np.fft.rfft2(with_anchors.fields.astype(np.float64)) / N**2
    pairs = z[0][schema.parts["anchors"]].reshape(-1, 2)
    for (ky, kx), (real, imaginary) in zip(schema.anchors, pairs, strict=True):
        assert abs(hat[ky % N, kx] - complex(real, imaginary)) < 1e-6


def test_the_mask_keeps_its_signs_and_majorities_create_no_support(
    device: Device, schema: Schema, z: np.ndarray
) -> None:
    """v4's majority filter grew the support to nearly everything."""
    decoder = Decoder(schema, device)
    frames = look(decoder, z[0], "snapshots")
    assert frames.mask.dtype == np.int8
    assert set(np.unique(frames.mask)) == {-1, 0, 1}
    rough = decoder.pipeline.rough.numpy()[0]
    assert not np.any((rough == 0) & (frames.mask != 0))
    assert 0 < frames.support <= np.count_nonzero(rough) / rough.size < 0.9
    assert frames.signs.tolist() == [int((frames.mask > 0).sum()), int((frames.mask < 0).sum())]


@pytest.mark.parametrize("options", [{}, {"eps": 0.0}, {"tau": 0.0}, {"tau": 1e-30}])
def test_a_field_of_nothing_has_no_support(device: Device, schema: Schema, options: dict[str, Any]) -> None:
    assert look(Decoder(schema, device, **options), np.zeros(schema.size, np.float32), "metrics").support == 0


@pytest.mark.parametrize("residual", ["seeded", "statistics"])
def test_band_energies_hit_what_z_tells(
    device: Device, schema: Schema, z: np.ndarray, statistics: Statistics, residual: str
) -> None:
    for one in z[:3]:
        frames = look(Decoder(schema, device, residual=residual, gate="open", statistics=statistics), one, "metrics")
        wanted = np.concatenate([one[schema.parts[name]] for name in ("mid_energy", "high_energy")])
        # Sums of thousands of squares in float32, scaled and transformed there and back.
        assert np.allclose(frames.bands[1:], wanted, rtol=2e-6)
        assert np.isclose(frames.energy, one[schema.parts["energy"]][0], rtol=2e-6)


def test_a_band_that_z_says_is_empty_stays_empty(device: Device, schema: Schema, z: np.ndarray) -> None:
    arrays = z[0].copy()
    arrays[schema.parts["high_energy"]] = -1.0  # a rollout may bring such a number
    arrays[schema.parts["mid_energy"]] = 0.0
    decoder = Decoder(schema, device, residual="seeded", gate="open")
    made = look(decoder, arrays, "snapshots")
    assert np.array_equal(made.fields, lowpass(schema, arrays, device=device))


def test_a_residual_costs_accuracy_and_parity_shows_it(
    device: Device, schema: Schema, fields: np.ndarray, statistics: Statistics
) -> None:
    """v4 had it on always, and was worse than its own low-pass field."""
    assert Settings().residual == "none"
    for residual in ("seeded", "statistics"):
        for gate in GATES:
            settings = Settings(residual=residual, gate=gate)
            for one in compare(schema, fields[:3], [0, 1, 2], settings, device=device, statistics=statistics):
                assert one.error > one.lowpass_error + 0.01


def test_a_residual_of_the_seed_of_the_flow_is_not_the_flow(device: Device, schema: Schema, fields: np.ndarray) -> None:
    """Both draw from Philox for (seed, k): from streams of their own."""
    with_truth = compare(schema, fields[:1], [0], Settings(residual="seeded", gate="open"), device=device)[0]
    assert with_truth.error > 1.2 * with_truth.lowpass_error


def test_another_frame_is_another_residual_and_the_same_frame_the_same(
    device: Device, schema: Schema, z: np.ndarray
) -> None:
    decoder = Decoder(schema, device, residual="seeded", gate="open")
    first, other, again = (look(decoder, z[0], "snapshots", frame=frame) for frame in (0, 1, 0))
    assert np.array_equal(first.fields, again.fields)
    assert not np.array_equal(first.fields, other.fields)
    plain = decode_plainly(schema, z[0], Settings(residual="seeded", gate="open"), frame=1)
    assert np.abs(other.fields - plain.field).max() < 1e-4


def test_nothing_is_read_back_for_nobody(
    monkeypatch: pytest.MonkeyPatch, device: Device, schema: Schema, z: np.ndarray
) -> None:
    decoder = Decoder(schema, device, residual="seeded")
    with pytest.warns(UserWarning, match="nothing is read back"):
        assert decoder.decode(z[0]) is None
    allocated = _forbid(monkeypatch, device, "_allocate")
    read = _forbid(monkeypatch, device, "read")
    for one in z:
        decoder.decode(one)
    assert not allocated
    assert not read
    assert decoder.bytes_read == 0
    assert decoder.snapshots == 1 + len(z)


@pytest.mark.parametrize(
    ("observer", "expected"), [("metrics", 28), ("snapshots", 28 + 5 * N * N), ("visualize", 28 + 4 * N * N)]
)
def test_bytes_read_back_are_counted(
    monkeypatch: pytest.MonkeyPatch, device: Device, schema: Schema, z: np.ndarray, observer: str, expected: int
) -> None:
    decoder = Decoder(schema, device, span=20.0)
    look(decoder, z[0], observer)
    read = _forbid(monkeypatch, device, "read")
    before = decoder.bytes_read
    made = look(decoder, z[1], observer)
    assert made.bytes_read == decoder.bytes_read - before == expected
    (program,) = [recorded.program for recorded in decoder._programs.values()]
    assert sum(array.nbytes for array in program.fetches) == expected
    assert not read  # all of it came back with the program


def test_asking_for_nothing_warns_once(device: Device, schema: Schema, z: np.ndarray) -> None:
    decoder = Decoder(schema, device)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for one in z:
            decoder.decode(one)
    assert [str(one.message) for one in caught] == [NOTHING]


def test_states_on_the_device_are_decoded_where_they_are(device: Device, schema: Schema, z: np.ndarray) -> None:
    decoder = Decoder(schema, device)
    there = device.array(z[:1])
    made, same = look(decoder, there, "snapshots"), look(decoder, z[0], "snapshots")
    assert np.array_equal(made.fields[0], same.fields)


def test_ever_new_states_do_not_pile_up(device: Device, schema: Schema, z: np.ndarray) -> None:
    decoder = Decoder(schema, device)
    for _ in range(40):
        look(decoder, device.array(z[:1]), "metrics")
    assert len(decoder._programs) == 16


def test_decoders_leave_no_memory_behind(fresh_vulkan: VulkanDevice, schema: Schema, z: np.ndarray) -> None:
    def use() -> None:
        with Decoder(schema, fresh_vulkan, residual="seeded") as decoder:
            for observer in ("metrics", "snapshots", "visualize"):
                look(decoder, z[0], observer)

    use()
    gc.collect()
    before = fresh_vulkan.memory().used
    for _ in range(4):
        use()
    gc.collect()
    assert fresh_vulkan.memory().used == before


def test_pictures_have_the_colours_of_their_signs(device: Device, schema: Schema, z: np.ndarray) -> None:
    decoder = Decoder(schema, device)
    result, calls = look(decoder, z[0], "visualize"), look(decoder, z[0], "snapshots")
    assert result.images.shape == (N, N, 3)
    strong = np.abs(calls.fields) > 0.5 * np.abs(calls.fields).max()
    red, blue = result.images[..., 0].astype(int), result.images[..., 2].astype(int)
    assert np.array_equal(np.sign(red - blue)[strong], np.sign(calls.fields)[strong])


def test_stage_times_are_measured_apart_and_told_with_what_is_decoded(
    device: Device, schema: Schema, z: np.ndarray
) -> None:
    decoder = Decoder(schema, device, residual="seeded")
    before = look(decoder, z[0], "metrics")
    assert not before.stage_ns
    decoder.calibrate(repeats=1)
    after = look(decoder, z[0], "metrics")
    assert tuple(after.stage_ns) == (*STAGES, "decode")
    assert all(ns > 0 for ns in after.stage_ns.values())


def test_a_gpu_is_warm_before_its_stages_are_timed(schema: Schema, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stopwatch, "HARDWARE", replace(stopwatch.HARDWARE, warm=0))
    labels: list[str] = []
    with CpuDevice() as gpu:
        gpu.info = replace(gpu.info, type="discrete")  # as if it were one
        result = gpu.program

        def program(*words: Any, label: str, **named: Any) -> Any:
            labels.append(label)
            return result(*words, label=label, **named)

        monkeypatch.setattr(gpu, "program", program)
        found = Decoder(schema, gpu).calibrate(repeats=1)
    assert labels == ["warming", *["decode stage"] * len(found)]


def test_the_hot_path_is_few_dispatches(vulkan: VulkanDevice, statistics: Statistics, schema: Schema) -> None:
    assert Decoder(schema, vulkan).dispatches() == 8
    assert Decoder(schema, vulkan, residual="statistics", statistics=statistics).dispatches() == 15


def test_the_null_device_decodes_nothing(schema: Schema, z: np.ndarray) -> None:
    with open_device("null") as null:
        assert Decoder(schema, null).decode(z[0], "snapshots") is None
        with pytest.raises(NoResultError, match="computes nothing"):
            compare(schema, np.zeros((1, N, N)), [0], Settings(), device=null)


def test_a_rollout_decodes_on_its_stride_and_reads_nothing_else(device: Device, schema: Schema, z: np.ndarray) -> None:
    turn, _ = np.linalg.qr(np.random.default_rng(0).standard_normal((schema.size, schema.size)))
    decoder = Decoder(schema, device)
    operator = Linear(turn.astype(np.float32))
    run = rollout(operator, z[:1], 10, device=device, observers=[Decodes(decoder, 4)], hash_every=3)
    decodes = run.records["decodes"]
    assert [one.step for one in decodes] == [0, 4, 8]
    assert (DecodeTotals.of(run).count, DecodeTotals.of(run).bytes_read) == (3, 3 * 28)
    for decode in decodes:
        state = rollout(operator, z[:1], decode.step, device=device).state
        assert look(decoder, state, "metrics").energy == decode.decoded.energy
    silent = rollout(operator, z[:1], 10, device=device, observers=[Decodes(Decoder(schema, device), 4, "none")])
    assert DecodeTotals.of(silent) == DecodeTotals(3, DecodeTotals.of(silent).looking, 0)
    assert np.array_equal(silent.state, run.state)


@pytest.mark.parametrize("observer", ["snapshots", "visualize"])
@pytest.mark.parametrize("residual", ["none", "seeded"])
def test_what_a_run_decodes_is_what_the_decoder_makes_of_its_states(
    device: Device, schema: Schema, z: np.ndarray, observer: str, residual: str
) -> None:
    operator = Linear(np.diag(np.linspace(0.5, 1.0, schema.size).astype(np.float32)))
    handed: list[tuple[int, Any]] = []
    decoder = Decoder(schema, device, members=2, residual=residual)
    decodes = Decodes(decoder, 2, observer, lambda step, decoded: handed.append((step, decoded)))
    run = rollout(operator, z[:2], 5, device=device, observers=[decodes], observe_every=1)
    assert [one.decoded for one in run.records["decodes"]] == [None] * 3  # whoever was handed them keeps them
    assert [step for step, _ in handed] == [0, 2, 4]
    other = Decoder(schema, device, members=2, residual=residual)
    for step, decoded in handed:
        alone = look(other, rollout(operator, z[:2], step, device=device).state, observer)
        for name in ("energy", "enstrophy", "bands", "signs", "fields", "mask", "images"):
            np.testing.assert_array_equal(getattr(decoded, name), getattr(alone, name))


def test_decodes_do_not_stop_the_solver_from_submitting(
    device: Device, schema: Schema, z: np.ndarray, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dashi.core.rollouts.rollout.BLOCK_US", 0.0)  # blocks of one step
    submitted: list[int] = []
    behind: list[int] = []
    submit = DeviceEngine.submit
    monkeypatch.setattr(
        DeviceEngine, "submit", lambda self, block, way: (submitted.append(block.last), submit(self, block, way))[1]
    )
    decodes = Decodes(
        Decoder(schema, device), 1, "snapshots", lambda step, _: behind.append(max(submitted, default=0) - step)
    )
    rollout(Linear(np.eye(schema.size, dtype=np.float32)), z[:1], 6, device=device, observers=[decodes])
    assert behind == [0, *[1] * 5, 0]  # the next block was under way, until the last


def test_a_rollout_that_blows_up_says_so_and_keeps_what_was_decoded(
    device: Device, schema: Schema, z: np.ndarray
) -> None:
    operator = Linear(np.diag(np.full(schema.size, 1e30, np.float32)))
    with pytest.raises(NonFiniteError, match="not finite after step 2") as caught:
        rollout(operator, z[:1], 10, device=device, observers=[Decodes(Decoder(schema, device), 1)], observe_every=1)
    assert [one.step for one in caught.value.rollout.records["decodes"]] == [0, 1]


def test_bad_input_is_refused_with_a_fix(cpu: CpuDevice, schema: Schema, z: np.ndarray, tmp_path: Path) -> None:
    decoder = Decoder(schema, cpu)
    with pytest.raises(ShapeError, match=f"a z of this schema .* has {schema.size} numbers. Fix: pass z of shape"):
        decoder.decode(z[0][:-1])
    with pytest.raises(ShapeError, match=r"takes 1 member\(s\). Fix: .* members=2"):
        look(decoder, z[:2], "metrics")
    spoilt = z[0].copy()
    spoilt[3] = np.nan
    with pytest.raises(InputError, match="z holds 1 values that are not finite, the first at"):
        look(decoder, spoilt, "metrics")
    with pytest.raises(InputError, match=r"there is no observer 'all'\. Fix: use one of none, metrics"):
        decoder.decode(z[0], "all")
    with pytest.raises(InputError, match="there is no residual 'white'"):
        Decoder(schema, cpu, residual="white")
    with pytest.raises(InputError, match=r"needs those of training data\. Fix: pass statistics="):
        Decoder(schema, cpu, residual="statistics")
    with pytest.raises(InputError, match="a decode has no such setting"):
        Decoder(schema, cpu, colour="red")
    with pytest.raises(InputError, match=r"radius is -1\. Fix: use a whole number from 0 to 4096"):
        Decoder(schema, cpu, radius=-1)
    with pytest.raises(ShapeError, match=r"advances states of shape \(3,\)"):
        rollout(Linear(np.eye(3, dtype=np.float32)), z[0][:3], 4, device=cpu, observers=[Decodes(decoder, 1)])
    still = Linear(np.eye(schema.size, dtype=np.float32))
    with pytest.raises(ShapeError, match=r"the run has 2 states, the decoder takes 1\. Fix: .* members=2"):
        rollout(still, z[:2], 4, device=cpu, observers=[Decodes(decoder, 1)])
    with pytest.raises(InputError, match=r"the operator is float64, and fields are float32\. Fix: use one element"):
        rollout(Linear(np.eye(schema.size)), z[0].astype(float), 1, device=cpu, observers=[Decodes(decoder, 1)])
    with NullDevice() as other, pytest.raises(NoResultError, match=r"one of them computes nothing\. Fix: use the null"):
        rollout(still, z[0], 4, device=other, observers=[Decodes(decoder, 1)])
    with pytest.raises(InputError, match=r"a field after every 0 steps cannot be decoded\. Fix: use 1 or more"):
        Decodes(decoder, 0)


def look(decoder: Decoder, z: Any, observer: str, frame: int = 0) -> Any:
    made = decoder.decode(z, observer, frame=frame)
    assert made is not None
    return made


def _error(made: Any, truth: np.ndarray) -> float:
    return float(np.linalg.norm(made - truth) / np.linalg.norm(truth))


def _forbid(monkeypatch: pytest.MonkeyPatch, device: Device, name: str) -> list[str]:
    """Notes every use of a device's method from now on."""
    noted: list[str] = []
    usual = getattr(device, name)

    def note(*given: Any) -> Any:
        noted.append(name)
        return usual(*given)

    monkeypatch.setattr(device, name, note)
    return noted
