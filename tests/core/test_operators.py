"""Sparse, quadratic and band operators: one convention, the same bits however they run."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from dashi.core.certificates.inputs import load_operator, save_operator
from dashi.core.operators._catalogue import KINDS, restore
from dashi.core.operators.affine import Affine, Linear
from dashi.core.operators.bands import Bands, graph, path, ring, tree
from dashi.core.operators.operator import Operator, Strategy
from dashi.core.operators.quadratic import Quadratic
from dashi.core.operators.sparse import BlockSparse, Csr
from dashi.core.rollouts.rollout import rollout
from dashi.errors import FeatureError, InputError
from dashi.kernels.abi import Limits
from dashi.runtime._cpu_device import CpuDevice
from dashi.runtime._vulkan_device import VulkanDevice
from dashi.runtime.device import Device

D = 130  # no multiple of a run, a workgroup or a vector
Array = npt.NDArray[Any]
TYPES = (np.float32, np.float64)


def matrix(kind: Any, density: float = 0.1, seed: int = 0) -> Array:
    rng = np.random.default_rng(seed)
    made = rng.standard_normal((D, D)) * (rng.random((D, D)) < density)
    return (made / max(1.0, float(np.abs(made).sum(0).max()))).astype(kind)


def triads(kind: Any, count: int = 900, seed: int = 1) -> tuple[Array, ...]:
    rng = np.random.default_rng(seed)
    places = rng.integers(0, D, (3, count)).astype(np.uint32)
    return (*places, rng.standard_normal(count).astype(kind))


def csr(kind: Any) -> Operator:
    return Csr.from_dense(matrix(kind), np.linspace(-1, 1, D).astype(kind), "squash", alpha=0.9)


def block_sparse(kind: Any) -> Operator:
    dense = matrix(kind, 1.0)
    dense[:52, 26:78] = 0
    return BlockSparse.from_dense(dense, 26, None, "softplus")


def quadratic(kind: Any) -> Operator:
    return Quadratic(*triads(kind), dt=0.01, L=-matrix(kind, 1.0), f=np.full(D, 0.1, kind))


def quadratic_sparse(kind: Any) -> Operator:
    return Quadratic(*triads(kind), dt=0.01, L=Csr.from_dense(-matrix(kind)))


def quadratic_alone(kind: Any) -> Operator:
    return Quadratic(*triads(kind), dt=0.02, size=D)


def bands(kind: Any) -> Operator:
    rng = np.random.default_rng(2)
    coupling = rng.standard_normal((5, 5)).astype(kind)
    return Bands(tree(3, 3, kind), np.linspace(0.02, 0.2, 5).astype(kind), coupling, 0.01, "squash", alpha=2.0)


def plain_bands(kind: Any) -> Operator:
    coupling = np.full((7, 7), -0.5, kind)
    return Bands(path(1, kind), np.zeros(7, kind), coupling, 0.1, "clamp", low=0.0, high=1.0)


MAKERS: dict[str, Callable[[Any], Operator]] = {
    made.__name__: made
    for made in (csr, block_sparse, quadratic, quadratic_sparse, quadratic_alone, bands, plain_bands)
}


@pytest.fixture(params=MAKERS)
def make(request: pytest.FixtureRequest) -> Callable[[Any], Operator]:
    return MAKERS[request.param]


def states(operator: Operator, count: int = 1, seed: int = 5) -> Array:
    rng = np.random.default_rng(seed)
    return rng.uniform(-1, 1, (count, *operator.shape)).astype(operator.dtype)


def roll(device: Device, operator: Operator, z: Array, steps: int, way: Strategy) -> Array:
    """So many steps that way, from arrays of our own."""
    constants = operator.load(device)
    now, then = device.array(z), device.empty(z.shape, z.dtype)
    if way == "stepwise":
        for _ in range(steps):
            with device.program(list(operator.step(device, constants, now, then))) as program:
                program.run()
            now, then = then, now
        return now.numpy()
    flag = device.empty(4, np.uint32)
    with device.program([operator.step_many(device, constants, now, then, flag, steps, way)]) as program:
        program.run()
    assert now.numpy().tobytes() == z.tobytes(), "a chunk must leave its source as it was"
    return then.numpy()


@pytest.mark.parametrize("kind", TYPES)
def test_stepwise_and_workgroup_give_the_same_bits_on_numpy_and_vulkan(
    make: Callable[[Any], Operator], kind: Any, vulkan: VulkanDevice
) -> None:
    operator = make(kind)
    z = states(operator, 2)
    with CpuDevice() as cpu:
        final_states = {
            (device.info.type, way): roll(device, operator, z, 7, way)
            for device in (cpu, vulkan)
            for way in ("stepwise", "workgroup")
        }
    first = next(iter(final_states.values()))
    assert np.isfinite(first).all()
    assert not np.array_equal(first, z)
    for how, made in final_states.items():
        assert made.tobytes() == first.tobytes(), how


@pytest.mark.parametrize("way", ["stepwise", "workgroup"])
def test_an_ensemble_is_its_states_one_by_one(make: Callable[[Any], Operator], device: Device, way: Strategy) -> None:
    operator = make(np.float32)
    z = states(operator, 3)
    together = roll(device, operator, z, 4, way)
    for s in range(3):
        assert roll(device, operator, z[s : s + 1], 4, way).tobytes() == together[s : s + 1].tobytes()


def test_the_engine_rolls_every_kind_out_with_the_same_hashes_both_ways(
    make: Callable[[Any], Operator], vulkan: VulkanDevice
) -> None:
    operator = make(np.float64)
    z = states(operator)
    runs = [rollout(operator, z, 20, device=vulkan, hash_every=5, strategy=way) for way in ("stepwise", "workgroup")]
    assert [run.strategy for run in runs] == ["stepwise", "workgroup"]
    assert runs[0].hashes == runs[1].hashes
    assert len(runs[0].hashes) == 4


@pytest.mark.parametrize("kind", TYPES)
def test_a_state_is_a_row_so_entry_i_j_moves_component_i_to_j(device: Device, kind: Any) -> None:
    shift = np.eye(D, k=1, dtype=kind)
    z = states(Csr.from_dense(shift))
    expected = np.concatenate([np.zeros((1, 1), kind), z[:, :-1]], axis=1)
    for operator in (Linear(shift), Csr.from_dense(shift), BlockSparse.from_dense(shift, 13)):
        assert np.array_equal(roll(device, operator, z, 1, "stepwise"), expected), operator.kind
    euler = Quadratic([], [], [], np.zeros(0, kind), dt=1.0, L=shift)
    assert np.array_equal(roll(device, euler, z, 1, "stepwise"), z + expected)


@pytest.mark.parametrize("kind", TYPES)
def test_a_sparse_matrix_with_every_entry_stored_has_the_bits_of_the_dense_one(device: Device, kind: Any) -> None:
    dense = matrix(kind, 1.0)
    assert np.count_nonzero(dense) == dense.size
    bias = np.linspace(0, 1, D).astype(kind)
    z = states(Linear(dense), 2)
    expected = roll(device, Affine(dense, bias, "softplus"), z, 3, "stepwise").tobytes()
    for operator in (Csr.from_dense(dense, bias, "softplus"), BlockSparse.from_dense(dense, 65, bias, "softplus")):
        assert roll(device, operator, z, 3, "stepwise").tobytes() == expected, operator.kind
        assert roll(device, operator, z, 3, "workgroup").tobytes() == expected, operator.kind


def test_entries_may_come_in_any_order(device: Device) -> None:
    dense = matrix(np.float64)
    rows, columns = np.nonzero(dense)
    mixed = np.random.default_rng(3).permutation(rows.size)
    sparse = Csr.from_dense(dense)
    other = Csr.from_entries(rows[mixed], columns[mixed], dense[rows, columns][mixed], D)
    z = states(sparse)
    assert roll(device, sparse, z, 2, "stepwise").tobytes() == roll(device, other, z, 2, "stepwise").tobytes()


@pytest.mark.parametrize("kind", TYPES)
def test_conservative_triads_conserve_energy_to_rounding(device: Device, kind: Any) -> None:
    rng = np.random.default_rng(4)
    i, j, k = (rng.permutation(D)[:, None] for _ in range(3))
    weights = rng.standard_normal((D, 3)).astype(kind)
    weights[:, 2] = -(weights[:, 0] + weights[:, 1])
    # Each triple drives each of its three by the product of the other two, with weights that sum to 0.
    left, right, out = (np.concatenate(part, axis=1) for part in ((i, j, k), (j, k, i), (k, i, j)))
    z = states(Linear(np.eye(D, dtype=kind)))
    ends = np.concatenate([[0], np.cumsum(np.bincount(out.reshape(-1), minlength=D))]).astype(np.uint32)
    order = np.argsort(out.reshape(-1), kind="stable")
    pairs = np.stack([left.reshape(-1), right.reshape(-1)], axis=1)[order].astype(np.uint32)
    rate = device.run("triad", z, weights.reshape(-1)[order], pairs, ends, longest=int(np.diff(ends).max())).numpy()
    work = (z.astype(np.float64) * rate).sum()
    # Every rate is a sum of at most 12 rounded products, and the weights' sums are rounded too.
    scale = np.abs(z.astype(np.float64) * rate).sum()
    assert abs(work) <= 20 * np.finfo(kind).eps * scale
    assert scale > 1


@pytest.mark.parametrize("kind", TYPES)
def test_quadratic_steps_match_their_equation(device: Device, kind: Any) -> None:
    i, j, k, c = triads(np.float64)
    linear, force = matrix(np.float64), np.linspace(-1, 1, D)
    operator = Quadratic(i, j, k, c.astype(kind), dt=0.01, L=linear.astype(kind), f=force.astype(kind))
    z = states(operator, 2)
    wide = z.astype(np.float64)
    form = np.zeros((2, D))
    for s in range(2):
        np.add.at(form[s], k, c * wide[s, i] * wide[s, j])
    wanted = wide + 0.01 * (wide @ linear + form + force)
    # Some dozens of roundings of terms of size 1.
    assert np.abs(roll(device, operator, z, 1, "stepwise") - wanted).max() < 50 * np.finfo(kind).eps


def test_diffusion_alone_conserves_every_band_and_evens_it_out(device: Device) -> None:
    operator = Bands(ring(12), np.array([0.0, 0.1, 0.4]), np.zeros((3, 3)), 1.0)
    z = np.abs(states(operator))
    final_states = roll(device, operator, z, 200, "workgroup")
    assert np.allclose(final_states.sum(1), z.sum(1), rtol=1e-13)  # 200 steps of some roundings
    assert np.array_equal(final_states[0, :, 0], z[0, :, 0])
    assert np.ptp(final_states[0, :, 2]) < 1e-3 * np.ptp(z[0, :, 2])


def test_bands_drive_each_other_as_their_equation_says(device: Device) -> None:
    operator = bands(np.float64)
    z = states(operator)
    stored, strength = operator.arrays, float(operator.parameters["strength"])
    nodes, count = operator.shape
    energy = z[0]
    diffused = np.empty_like(energy)
    for v in range(nodes):
        near = slice(int(stored["offsets"][v]), int(stored["offsets"][v + 1]))
        change = stored["weights"][near][:, None] * (energy[stored["neighbours"][near]] - energy[v])
        diffused[v] = energy[v] + stored["kappa"] * change.sum(0)
    gain = np.tanh(2.0 * energy) * np.abs(diffused)
    expected = diffused.copy()
    for b in range(count):
        for other in range(count):
            if other != b:
                expected[:, b] += strength * stored["coupling"][b, other] * gain[:, other]
    assert np.allclose(roll(device, operator, z, 1, "stepwise")[0], expected, rtol=0, atol=1e-14)


def test_graphs_have_the_neighbours_that_their_names_promise() -> None:
    def neighbours(made: Any) -> list[list[int]]:
        return [made.neighbours[a:b].tolist() for a, b in zip(made.offsets[:-1], made.offsets[1:], strict=True)]

    assert neighbours(path(3)) == [[1], [0, 2], [1]]
    assert neighbours(ring(4)) == [[1, 3], [0, 2], [1, 3], [0, 2]]
    assert neighbours(tree(2, 2)) == [[1, 2], [0, 3, 4], [0, 5, 6], [1], [1], [2], [2]]
    assert neighbours(tree(0, 3)) == neighbours(path(1)) == [[]]
    weighted = graph(3, [(2, 0)], [0.5], np.float32)
    assert neighbours(weighted) == [[2], [], [0]]
    assert weighted.weights.dtype == np.float32
    assert weighted.weights.tolist() == [0.5, 0.5]


@pytest.mark.parametrize("kind", TYPES)
def test_every_kind_comes_back_from_its_arrays_and_from_a_file(
    make: Callable[[Any], Operator], kind: Any, tmp_path: Path
) -> None:
    operator = make(kind)
    save_operator(tmp_path / "operator.npz", operator)
    for again in (
        restore(operator.kind, operator.arrays, operator.parameters),
        load_operator(tmp_path / "operator.npz"),
    ):
        assert type(again) is type(operator) is KINDS[operator.kind]
        assert again.shape == operator.shape
        assert again.parameters == operator.parameters
        assert again.dtype == kind
        assert again.arrays.keys() == operator.arrays.keys()
        for name, values in operator.arrays.items():
            assert values.dtype == again.arrays[name].dtype
            assert np.array_equal(values, again.arrays[name])
            assert not values.flags.writeable
    with CpuDevice() as cpu:
        z = states(operator)
        kept = restore(operator.kind, operator.arrays, operator.parameters)
        assert roll(cpu, kept, z, 2, "stepwise").tobytes() == roll(cpu, operator, z, 2, "stepwise").tobytes()


def test_what_does_not_fit_on_chip_is_hindered_with_a_reason_and_refused(make: Callable[[Any], Operator]) -> None:
    operator = make(np.float64)
    small = Limits(shared_bytes=100)
    reason = operator.unsupported_reason("workgroup", small, 1)
    assert "bytes of shared memory" in reason
    assert "100" in reason
    assert operator.unsupported_reason("stepwise", small, 1) == ""
    assert "tagged" in operator.unsupported_reason("tagged", Limits(), 1)
    assert "loop iterations" in operator.unsupported_reason("workgroup", Limits(loop_trips=10, shared_bytes=1 << 20), 1)
    with CpuDevice() as cpu:
        z = cpu.array(states(operator))
        flag = cpu.empty(4, np.uint32)
        with pytest.raises(FeatureError, match="Fix: use stepwise"):
            operator.step_many(cpu, operator.load(cpu), z, cpu.empty(z.shape, z.dtype.numpy), flag, 2, "tagged")


def test_a_list_too_long_for_one_workgroup_is_refused(vulkan: VulkanDevice) -> None:
    count = 4097
    zeros = np.zeros(count, np.uint32)
    operator = Quadratic(zeros, zeros, zeros, np.ones(count, np.float32), dt=1e-4, size=2)
    reason = operator.unsupported_reason("workgroup", vulkan.limits, 1)
    assert "more than 4096 entries" in reason
    z = vulkan.array(np.ones((1, 2), np.float32))
    with pytest.raises(FeatureError, match=r"4096 entries.*Fix: use stepwise"):
        operator.step_many(
            vulkan, operator.load(vulkan), z, vulkan.empty((1, 2)), vulkan.empty(4, np.uint32), 1, "workgroup"
        )


BAD: dict[str, tuple[Callable[[], Any], str]] = {
    "index past the end": (lambda: Csr([1.0], [2], [0, 1, 1]), r"indices\[0\] is 2, which is not an index from 0 to 1"),
    "negative index": (lambda: Csr([1.0], [-1], [0, 1, 1]), r"indices\[0\] is -1"),
    "falling pointer": (lambda: Csr([1.0, 1.0], [0, 1], [0, 2, 1, 2]), r"indptr\[2\] is 1, below indptr\[1\] = 2"),
    "pointer that stops early": (lambda: Csr([1.0, 1.0], [0, 1], [0, 1, 1]), "runs from 0 to 1, but there are 2"),
    "unsorted column": (lambda: Csr([1.0, 1.0], [1, 0], [0, 2, 2]), r"does not come after indices\[0\] = 1"),
    "entry twice": (lambda: Csr([1.0, 1.0], [1, 1], [0, 2, 2]), "in the same column"),
    "NaN in data": (lambda: Csr([np.nan], [0], [0, 1]), "not finite"),
    "integer data": (lambda: Csr([1], [0], [0, 1]), "data is an array of int64"),
    "float indices": (lambda: Csr([1.0], [0.5], [0, 1]), "not of indices"),
    "wrong bias": (lambda: Csr([1.0], [0], [0, 1], [1.0, 2.0]), r"b has shape \(2,\)"),
    "bias of another type": (lambda: Csr([1.0], [0], [0, 1], np.zeros(1, np.float32)), "b is float32"),
    "unknown nonlinearity": (lambda: Csr([1.0], [0], [0, 1], None, "relu"), "no nonlinearity 'relu'"),
    "empty range": (lambda: Csr([1.0], [0], [0, 1], None, "clamp", low=1.0, high=0.0), "nothing between low=1.0"),
    "not square": (lambda: Csr.from_dense(np.ones((2, 3))), "must be square"),
    "oblong blocks": (lambda: BlockSparse(np.ones((1, 2, 3)), [0], [0, 1]), "square blocks"),
    "blocks that do not divide": (lambda: BlockSparse.from_dense(np.ones((5, 5)), 2), "blocks of 2"),
    "block row past the end": (lambda: BlockSparse(np.ones((1, 2, 2)), [1], [0, 1]), r"rows\[0\] is 1"),
    "triads of no size": (lambda: Quadratic([0], [0], [0], [1.0], dt=0.1), "size is None"),
    "size against L": (lambda: Quadratic([0], [0], [0], [1.0], dt=0.1, L=np.eye(2), size=3), "size is 3, and L has 2"),
    "triad past the end": (lambda: Quadratic([0], [2], [0], [1.0], dt=0.1, size=2), r"j\[0\] is 2"),
    "uneven triads": (lambda: Quadratic([0], [0, 1], [0], [1.0], dt=0.1, size=2), "one of each for each triad"),
    "infinite dt": (lambda: Quadratic([0], [0], [0], [1.0], dt=np.inf, size=2), "dt is inf"),
    "L with a bias": (
        lambda: Quadratic([0], [0], [0], [1.0], dt=0.1, L=Csr.from_dense(np.eye(2), np.ones(2))), "L has a bias",
    ),
    "L of another type": (
        lambda: Quadratic([0], [0], [0], [1.0], dt=0.1, L=np.eye(2, dtype=np.float32)), "L is float32",
    ),
    "coupling of another size": (lambda: Bands(path(2), [0.1, 0.2], np.eye(3), 1.0), "coupling has shape"),
    "no bands": (lambda: Bands(path(2), np.zeros(0), np.zeros((0, 0)), 1.0), "no bands"),
    "infinite strength": (lambda: Bands(path(2), [0.1], [[0.0]], np.inf), "strength is inf"),
    "ring of two": (lambda: ring(2), "2 nodes are too few"),
    "tree of nothing": (lambda: tree(-1, 2), "depth -1"),
    "edge past the end": (lambda: graph(2, [(0, 2)]), "edges"),
    "unknown kind": (lambda: restore("dense", {}, {}), "no operator 'dense'"),
    "missing array": (lambda: restore("csr", {"data": np.ones(1)}, {}), "needs 'indices'"),
    "parameter that is no number": (
        lambda: restore("csr", Csr([1.0], [0], [0, 1]).arrays, {"alpha": "wide"}), "do not fit",
    ),
}  # fmt: skip


def test_only_clamp_asks_for_a_range() -> None:
    for operator in (Csr([1.0], [0], [0, 1], None, "squash", low=2.0), Affine(np.eye(1), None, "squash", low=2.0)):
        assert operator.parameters == {"psi": "squash", "alpha": 1.0, "low": 2.0, "high": 1.0}


@pytest.mark.parametrize("what", BAD)
def test_bad_input_is_refused_with_what_is_wrong_and_a_fix(what: str) -> None:
    attempt, text = BAD[what]
    with pytest.raises(InputError, match=text) as error:
        attempt()
    assert "Fix: " in str(error.value)


def test_operators_print_what_they_are() -> None:
    assert repr(Linear(np.eye(3, dtype=np.float32))) == "<Linear of states of 3, float32>"
    squashed = Affine(np.eye(3), np.ones(3), psi="clamp", low=-2.0)
    assert repr(squashed) == "<Affine of states of 3, float64, psi='clamp', alpha=1.0, low=-2.0, high=1.0>"
