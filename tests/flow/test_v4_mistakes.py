"""The fifteen mistakes of the old code, one test for each: the mistake as it was, and that dashi does not make it.

The old code is not here: where the compatibility mode keeps a mistake it is shown there, elsewhere by a few lines that
make it again.
"""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dashi import kernels
from dashi.cli.rollout import print_report
from dashi.core.carriers.carrier import Carrier
from dashi.core.metrics._document import Stages, build_metrics
from dashi.core.metrics._placement import place
from dashi.core.operators.affine import Linear
from dashi.core.rollouts._strategies import choose_strategy
from dashi.core.rollouts.rollout import rollout
from dashi.errors import DeviceNotFoundError, FeatureError, SpirvError
from dashi.flow import v4
from dashi.flow.decode import Decoder, Settings
from dashi.flow.decode._parity import compare
from dashi.flow.equations import Flow
from dashi.flow.initial import ensemble
from dashi.flow.proxy.encode import choose_anchors, encode
from dashi.flow.proxy.lowpass import decode as decode_lowpass
from dashi.flow.proxy.schema import Schema
from dashi.flow.simulation import simulate
from dashi.flow.v4.encode import majority, mask, threshold
from dashi.io.metrics import Metrics, to_json
from dashi.kernels import _build as build
from dashi.kernels import _glsl as glsl
from dashi.kernels._compiler import Compiler
from dashi.kernels._registry import templates
from dashi.kernels.spirv._module import parse
from dashi.kernels.spirv._reflect import reflect
from dashi.lab._run_job import FinishedJob
from dashi.runtime import Device
from dashi.runtime._cpu_device import CpuDevice
from dashi.runtime._vulkan_device import VulkanDevice
from dashi.runtime.select import open_device

D = 654


@pytest.fixture(scope="module")
def field() -> np.ndarray:
    """A field of the old code on 64 x 64 points."""
    return v4.Solver(64).start(0)


@pytest.fixture(scope="module")
def anchored(field: np.ndarray) -> tuple[Schema, np.ndarray]:
    """A schema with anchors, and the z of that field, made on the host."""
    with CpuDevice() as cpu:
        schema = choose_anchors(Schema(64, 8, 12), field, 64, device=cpu)
        return schema, encode(schema, field, device=cpu)


def l2(found: Any, truth: Any) -> float:
    return float(np.linalg.norm(found - truth) / np.linalg.norm(truth))


def test_1_anchors_reach_the_field(device: Device, field: np.ndarray, anchored: Any) -> None:
    encoder = v4.Encoder.of(field)
    z = encoder.encode(field)
    without = z.copy()
    without[encoder.layout.anchors] = 0
    assert np.array_equal(v4.decode(encoder, z, 3), v4.decode(encoder, without, 3))  # the mistake: they do nothing

    schema, proxy = anchored
    fields = _decoded(schema, proxy, device)
    modes = np.fft.rfft2(fields.fields) / 64**2
    pairs = proxy[schema.parts["anchors"]].reshape(-1, 2)
    found = np.array([modes[ky, kx] for ky, kx in schema.anchors])
    np.testing.assert_allclose(found, pairs[:, 0] + 1j * pairs[:, 1], rtol=0, atol=1e-15)
    assert l2(fields.fields, field) < l2(decode_lowpass(schema, proxy, device=device, anchors=False), field)


def test_2_a_state_is_a_row_on_every_device_and_in_every_way(device: Device) -> None:
    rng = np.random.default_rng(2)
    z, a = rng.standard_normal(40), rng.standard_normal((40, 40)) / 7
    assert l2(a @ z, z @ a) > 0.5  # the mistake: the GPU's product was that of the transposed map

    np.testing.assert_allclose(device.run("gemv", z, a).numpy(), z @ a, rtol=0, atol=1e-13)
    learned = v4.learn(np.stack([z, z @ a, z @ a @ a]), 1e-9, device=device)
    np.testing.assert_allclose(z @ learned, z @ a, rtol=0, atol=1e-6)  # the learner means the same by A
    tried = 0
    for way in ("stepwise", "workgroup", "tagged"):
        try:
            choose_strategy(Linear(a), device, 1, way)
        except FeatureError:
            continue
        state = rollout(Linear(a), z, 3, device=device, strategy=way).state[0]
        np.testing.assert_allclose(state, z @ a @ a @ a, rtol=0, atol=1e-12)
        tried += 1
    assert tried >= 2  # not every device runs workgroups at the same time, as `tagged` wants


def test_3_a_majority_creates_no_support(device: Device, field: np.ndarray, anchored: Any) -> None:
    rough = threshold(field)
    grown = majority(rough)
    assert np.mean(rough != 0) == pytest.approx(0.17, abs=0.005)
    assert np.mean(grown != 0) == pytest.approx(0.996, abs=0.0005)  # the mistake: a mask of ones

    carrier = Carrier.from_numpy(device, rough)
    for _ in range(8):
        after = carrier.majority()
        assert not (after.support() & ~carrier.support()).any()
        carrier = after
    assert not carrier.grown
    assert 0 < carrier.popcount().support <= np.count_nonzero(rough)
    # Growth is there for who asks, and is then told: it is the old filter.
    asked = Carrier.from_numpy(device, rough).majority(grow=True)
    assert asked.grown
    assert asked.popcount().support > np.count_nonzero(rough)

    schema, proxy = anchored
    counts = [_decoded(schema, proxy, device, rounds=rounds).support for rounds in (0, 1, 8)]
    assert 0.5 > counts[0] >= counts[1] >= counts[2] > 0


def _decoded(schema: Schema, z: np.ndarray, device: Device, **options: Any) -> Any:
    with Decoder(schema, device, dtype="float64", **options) as decoder:
        made = decoder.decode(z, "snapshots")
    assert made is not None
    return made


def test_4_no_residual_is_added_unasked_and_its_cost_is_told(device: Device, field: np.ndarray, anchored: Any) -> None:
    encoder = v4.Encoder.of(field)
    z = encoder.encode(field)
    # The mistake: noise of unrelated phases, which makes the field worse than the low-pass field alone.
    assert l2(v4.decode(encoder, z, 0), field) > l2(v4.lowpass(encoder.layout, z), field) + 0.03
    draws = np.random.default_rng(12345).uniform(0, 2 * np.pi, (64, 64))
    assert abs(np.exp(1j * draws[3, 9]) - np.exp(-1j * draws[-3, -9])) > 0.1  # k and -k of a real field are conjugate

    schema, proxy = anchored
    assert Settings().residual == "none"
    plain = _decoded(schema, proxy, device)
    np.testing.assert_array_equal(plain.fields, decode_lowpass(schema, proxy, device=device))
    told = compare(schema, field[None], [5], Settings("seeded", dtype="float64"), device=device)[0]
    assert told.error > told.lowpass_error == pytest.approx(l2(plain.fields, field), rel=1e-12)
    with Decoder(schema, device, residual="seeded", dtype="float64") as decoder:
        decoder.decode(proxy, "metrics")
        drawn = decoder.pipeline.scaled.numpy()[0]
    first = drawn[:, 0, 0] + 1j * drawn[:, 0, 1]
    assert np.abs(first).max() > 0
    np.testing.assert_array_equal(first[1:], np.conj(first[:0:-1]))  # Hermitian


def test_5_the_support_is_counted_where_the_mask_is(device: Device, field: np.ndarray, anchored: Any) -> None:
    encoder = v4.Encoder.of(field)
    on_the_cpu = encoder.encode(field)
    on_the_gpu = on_the_cpu.copy()
    on_the_gpu[encoder.layout.header.start] = 0.0  # the mistake: written into the code, whatever the mask was
    assert on_the_cpu[encoder.layout.header.start] == np.mean(mask(field) != 0) > 0.9 > on_the_gpu[394]

    schema, proxy = anchored
    fields = _decoded(schema, proxy, device)
    assert fields.support == np.mean(fields.mask != 0) > 0
    assert fields.signs.tolist() == [np.count_nonzero(fields.mask == sign) for sign in (1, -1)]
    with CpuDevice() as cpu:
        assert fields.support == _decoded(schema, proxy, cpu).support


def test_6_the_operator_goes_to_the_device_once(device: Device, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(6)
    z, a = rng.standard_normal(64), rng.standard_normal((64, 64)) / 9
    sent: list[int] = []
    write = device.write

    def counted(array: Any, values: Any) -> None:
        sent.append(np.asarray(values).nbytes)
        write(array, values)

    monkeypatch.setattr(device, "write", counted)
    state = z
    for _ in range(5):
        state = device.run("gemv", state, a).numpy()
    assert sum(size == a.nbytes for size in sent) == 5  # the mistake: a product that is handed A every time
    for steps in (5, 200):
        sent.clear()
        run = rollout(Linear(a), z, steps, device=device, hash_every=steps)
        assert sum(size == a.nbytes for size in sent) == 1
        assert sum(sent) < 2 * a.nbytes
        if steps == 5:
            assert np.array_equal(run.state[0], state)


def test_7_a_product_is_right_at_sizes_that_no_tile_divides(device: Device) -> None:
    rng = np.random.default_rng(7)
    z, a = rng.standard_normal(D), rng.standard_normal((D, D))
    assert l2(tiled_with_an_early_return(z, a), z @ a) > 0.01
    assert np.allclose(tiled_with_an_early_return(z[:640], a[:640, :640]), z[:640] @ a[:640, :640])

    # 654 products of numbers of about 1, added in another order.
    np.testing.assert_allclose(device.run("gemv", z, a).numpy(), z @ a, rtol=0, atol=1e-12)
    np.testing.assert_allclose(device.run("gemv_tiled", z, a).numpy(), z @ a, rtol=0, atol=1e-12)
    np.testing.assert_allclose(device.run("gemm_tiled", z[None], a).numpy()[0], z @ a, rtol=0, atol=1e-12)


def tiled_with_an_early_return(z: np.ndarray, a: np.ndarray, tile: int = 32) -> np.ndarray:
    """The old kernel: lane j of a workgroup fetches element j of each tile of z for all, unless its own column does
    not exist, in which case it has returned before the barrier and its element is never there."""
    d = len(z)
    values = np.zeros(d)
    for group in range(0, d, tile):
        lanes = min(tile, d - group)
        for first in range(0, d, tile):
            fetched = z[first : first + lanes]
            values[group : group + lanes] += fetched @ a[first : first + len(fetched), group : group + lanes]
    return values


def test_8_a_hash_sees_where_a_value_stands(device: Device) -> None:
    state = np.random.default_rng(8).standard_normal(D).astype(np.float32)
    moved = state.copy()
    moved[[10, 500]] = moved[[500, 10]]
    assert xor_folded(state) == xor_folded(moved)  # the mistake

    def digest(values: np.ndarray) -> bytes:
        return device.run("hash_state", values).numpy().tobytes()

    assert digest(state) != digest(moved)
    assert digest(state) == digest(state.copy())
    nearby = state.copy()
    nearby.view(np.uint32)[653] ^= 1
    assert len({digest(values) for values in (state, moved, nearby, np.append(state, np.float32(0)))}) == 4


def xor_folded(values: np.ndarray) -> int:
    """The old hash: products without carries into the upper half, folded by XOR."""
    words = values.view(np.uint32).astype(np.uint64)
    return int(np.bitwise_xor.reduce((words * 0x9E3779B1) & 0xFFFFFFFF))


def test_9_quantising_and_reconstructing_applies_the_sign_once(device: Device) -> None:
    x = np.array([0.5, -1.5, 0, 2.0, -0.25], np.float32)
    codes = np.sign(x) * np.round(np.abs(x) * 4)
    assert (np.sign(x) * codes / 4).tolist() == [0.5, 1.5, 0, 2.0, 0.25]  # the mistake: all signs are lost

    *planes, count = device.run("pq_pack_bits", np.sign(x).astype(np.int8))
    magnitudes = (np.abs(codes) / 4).astype(np.float32)[x != 0]
    assert count.numpy().tolist() == [4]
    assert device.run("pq_reconstruct", *planes, magnitudes, n=5).numpy().tolist() == x.tolist()
    signed = np.sign(x)[x != 0].astype(np.float32) * magnitudes
    assert device.run("pq_reconstruct", *planes, signed, n=5).numpy().tolist() == x.tolist()


def test_10_the_size_of_a_workgroup_is_declared_and_held_against_the_binary() -> None:
    commented = "#version 460\n// layout(local_size_x = 256) in;\nvoid main() {}\n"
    with Compiler() as compiler:
        words = compiler.compile(commented, "v4")
    assert reflect(parse(words)).local == (1, 1, 1)  # the mistake: it compiles, and runs one invocation of 256

    kernel = kernels.get("gemv")
    name, variant = build.variants(kernel)[0]
    with pytest.raises(SpirvError, match="the workgroup size is"):
        build.validate(words, kernel, name, variant)
    for known in kernels.names():
        kernel = kernels.get(known)
        for shader in kernel.shaders.values():
            # The layout is generated from the declaration: no shader has one of its own to forget.
            folder = kernel.folder if kernel.binaries is None else templates().get("fused").folder
            assert "local_size" not in (folder / shader.file).read_text(), known
    for known in ("gemv", "hash_state", "reduce_sum", "ternary_majority"):
        kernel = kernels.get(known)
        for name, variant in build.variants(kernel):
            found = reflect(parse(build.load(kernel, name, variant).words))
            assert found.local == glsl.local_default(kernel.shaders[name]), (known, name)


def test_11_a_reduction_takes_more_partials_than_a_workgroup_has_members(device: Device) -> None:
    n = 256 * 256 * 2 + 5
    ones = np.ones(n, np.float32)
    partials = np.add.reduceat(ones, np.arange(0, n, 256))
    assert partials[:256].sum() == 256 * 256 != n  # the mistake: the second pass took 256 of them

    assert device.run("reduce_sum", ones).numpy().tolist() == [n]
    assert device.run("reduce_sumsq", 2 * ones).numpy().tolist() == [4 * n]
    last = np.zeros(n, np.float32)
    last[-1] = 3
    assert device.run("reduce_max", last).numpy().tolist() == [3]
    assert device.run("reduce_argmax", last).numpy().tolist() == [n - 1]
    assert device.run("reduce_min", -last).numpy().tolist() == [-3]
    assert device.run("reduce_l2", last).numpy().tolist() == [3]


def test_12_annihilation_projects_to_zero_and_flips_nothing(device: Device) -> None:
    rng = np.random.default_rng(12)
    s = rng.integers(-1, 2, (48, 64), dtype=np.int8)
    total = sum(np.roll(s, (dy, dx), (0, 1)).astype(int) for dy in (-1, 0, 1) for dx in (-1, 0, 1))
    assert ((np.sign(total) == -s) & (s != 0)).any()  # the mistake: a site took the sign of what surrounds it

    carrier = Carrier.from_numpy(device, s)
    coherence = rng.standard_normal(s.shape).astype(np.float32)
    for made in (carrier.annihilate(coherence, 0.3), carrier.annihilate_pairs()):
        after = made.numpy()
        assert ((after == s) | (after == 0)).all()
        assert 0 < np.count_nonzero(after) < np.count_nonzero(s)
    assert np.array_equal(
        carrier.annihilate(coherence, 0.3).annihilate(coherence, 0.3).numpy(),
        np.where(coherence > np.float32(0.3), s, 0),
    )


def test_13_one_seed_is_one_initial_condition(vulkan: VulkanDevice) -> None:
    old = np.random.RandomState(0).standard_normal(4), np.random.default_rng(0).standard_normal(4)
    assert not np.allclose(*old)  # the mistake: one generator for each backend

    flow = Flow(n=16, dtype="float64")
    digests: list[bytes] = []
    with CpuDevice() as cpu:
        for device in (cpu, vulkan):
            frames: list[Any] = []
            start = ensemble(flow, "random", [0], peak=2)
            simulate(
                flow, start, 2, device=device, frame_every=1, fields=("vorticity",),
                frame=lambda step, fields, into=frames: into.append((step, fields["vorticity"].tobytes())),
            )  # fmt: skip
            assert [step for step, _ in frames] == [0, 1, 2]
            digests.append(frames[0][1])
    assert digests[0] == digests[1]
    assert ensemble(flow, "random", [0]).tobytes() != ensemble(flow, "random", [1]).tobytes()


def test_14_flags_say_what_was_executed_and_times_have_their_units(
    vulkan: VulkanDevice, capsys: pytest.CaptureFixture[str]
) -> None:
    by_name = {spec: _metrics(spec) for spec in ("cpu", "null", "vulkan:0")}
    assert {spec: m.op_backend_used for spec, m in by_name.items()} == {spec: spec for spec in by_name}
    assert by_name["vulkan:0"].op_device == vulkan.info.name != by_name["cpu"].op_device
    assert by_name["vulkan:0"].hotloop_dispatches > 0
    for made in by_name.values():
        is_gpu = made.op_backend_used == "vulkan:0" and vulkan.info.type != "software"
        assert made.gpu_hotloop_active is is_gpu
    # The mistake: a flag that anybody could set. This one contradicts the facts, and is refused.
    with pytest.raises(ValueError, match="gpu_hotloop_active contradicts"):
        Metrics.model_validate_json(to_json(by_name["cpu"]).replace('_active": false', '_active": true'))
    with pytest.raises(DeviceNotFoundError):
        open_device("vulkan:no-such-device")  # what was asked for, or an error

    made = by_name["cpu"]
    assert made.ns_per_step * made.steps_per_s == pytest.approx(1e9)
    # 1 ns is 0.001 us: Python alone needs more for a step, and no step here takes a second.
    assert 1_000 < made.ns_per_step < 1_000_000_000
    run = rollout(Linear(np.eye(4)), np.ones(4), 5, device=vulkan)
    print_report(replace(run, job=FinishedJob(request=None, metrics=made)), None)
    printed = re.search(r"([\d.]+) us per step", capsys.readouterr().out)
    assert printed is not None
    assert float(printed[1]) * 1000 == pytest.approx(made.ns_per_step, abs=1)


def _metrics(spec: str) -> Metrics:
    operator = Linear(np.eye(16))
    with place(spec) as placed:
        run = rollout(operator, np.ones(16), 50, device=placed.device, hash_every=50)
        return build_metrics("rollout", run, placed, Stages())


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_15_the_reference_and_the_device_solve_the_same_equations(vulkan: VulkanDevice, dtype: str) -> None:
    omega = v4.Solver(32).start(0)
    square = v4.Solver(32).waves[2]
    spectral = np.real(np.fft.ifft2(-square * np.fft.fft2(omega)))
    around = sum(np.roll(omega, shift, axis) for shift in (1, -1) for axis in (0, 1))
    assert l2((around - 4 * omega) / (2 * np.pi / 32) ** 2, spectral) > 0.1  # the mistake: differences on one backend

    # The old setting: Smagorinsky's viscosity and Heun's scheme.
    flow = Flow(n=16, nu=1e-4, dt=0.01, smagorinsky=0.17, scheme="heun", dtype=dtype)
    start = ensemble(flow, "random", [0], peak=2)
    with CpuDevice() as cpu:
        run = simulate(flow, start, 6, device=cpu, hash_every=2)
        fast = simulate(flow, start, 6, device=cpu, host_fft=True)
    two = simulate(flow, start, 6, device=vulkan, hash_every=2)
    assert [h.step for h in two.hashes] == [2, 4, 6]
    assert run.hashes == two.hashes
    assert run.state.tobytes() == two.state.tobytes()
    # NumPy's own transforms round otherwise, six steps long; the equations are the same.
    assert l2(fast.state, run.state) < (1e-5 if dtype == "float32" else 1e-13)


def test_the_page_names_the_test_of_every_mistake() -> None:
    page = (Path(__file__).parents[2] / "docs" / "v4.md").read_text()
    tests = [name for name in globals() if re.match(r"test_\d+_", name)]
    assert [int(name.split("_")[1]) for name in tests] == list(range(1, 16))
    for name in tests:
        assert f"`{name}`" in page
