"""The kernels that watch a rollout, the nonlinearities, and how long rollouts are cut."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from dashi import kernels
from dashi.errors import InputError, LimitError, ShapeError
from dashi.kernels._calls import resolve_call
from dashi.kernels._psi import NAMES, apply_psi, number_of
from dashi.kernels._validate import check_plan
from dashi.kernels.abi import Limits
from dashi.kernels.portable import divide
from dashi.runtime.device import Device
from dashi.types import DTYPES

Array = npt.NDArray[Any]
TYPES = (np.float32, np.float64)
NONE = 0xFFFFFFFF


def state(kind: Any, *shape: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed).standard_normal(shape).astype(kind)


@pytest.mark.parametrize("kind", TYPES)
def test_metrics_are_those_of_the_reductions_bit_for_bit(device: Device, kind: Any) -> None:
    before, after = state(kind, 3, 654), state(kind, 3, 654, seed=1)
    metrics, counts = (a.numpy() for a in device.run("state_metrics", before, after))
    least, most, total, squares = device.run("reduce_statistics", after).numpy()
    norms = [device.run("reduce_l2", v).numpy()[0] for v in (before, after, after - before)]
    assert metrics[[0, 1, 5, 6, 7, 8, 9]].tolist() == [*norms, total, squares, least, most]
    assert metrics[2] == divide(np.array(norms[1:2]), np.array(norms[:1]))[0]
    assert metrics[3] == np.abs(after).max()
    assert metrics[4] == device.run("defect_reduce", before, after).numpy()[0]
    assert not metrics[10:].any()
    assert counts.tolist() == [0, NONE, NONE, 0]


def test_the_ratio_is_the_quotient_of_the_norms_and_nothing_over_nothing_is_nothing(device: Device) -> None:
    z = state(np.float64, 1, 100)
    ratio = device.run("state_metrics", z, 0.5 * z)[0].numpy()[2]
    assert ratio == pytest.approx(0.5, rel=1e-15)
    nothing = np.zeros((1, 100))
    assert device.run("state_metrics", nothing, nothing)[0].numpy().tolist() == [0.0] * 16
    assert device.run("state_metrics", nothing, z)[0].numpy()[2] == np.inf


@pytest.mark.parametrize("size", [70, 4097, 9000])
def test_values_that_are_not_finite_are_counted_and_the_first_is_found(device: Device, size: int) -> None:
    before, after = state(np.float32, 1, size), state(np.float32, 1, size)
    for place in (size - 1, size // 2, size // 2 + 3):
        after[0, place] = np.nan if place % 2 else np.inf
    metrics, counts = (a.numpy() for a in device.run("state_metrics", before, after))
    assert counts.tolist() == [3, size // 2, 0, 0]
    assert np.isfinite(metrics[0])
    assert not np.isfinite(metrics[[1, 2, 3, 4, 5, 6, 7]]).any()


def test_small_states_take_one_dispatch_of_one_workgroup() -> None:
    kernel = kernels.get("state_metrics")
    for size, dispatches in ((1, 1), (654, 1), (4096, 1), (4097, 2)):
        for tuning in kernel.tunings.values():
            call = resolve_call(kernel, DTYPES["f64"], [(1, size)] * 2, {}, Limits(), tuning)
            plan = check_plan(kernel, call, kernel.plan(call))
            assert len(plan.dispatches) == dispatches
            assert plan.dispatches[-1].groups == (1, 1, 1)


@pytest.mark.parametrize("kind", TYPES)
def test_band_energies_add_up_to_the_square_of_the_norm(device: Device, kind: Any) -> None:
    z = state(kind, 2, 130)
    edges = np.array([0, 40, 40, 100, 130], np.uint32)
    energies, features = (a.numpy() for a in device.run("qfeat", z, edges, bands=4))
    for s in range(2):
        for j in range(4):
            part = z[s, edges[j] : edges[j + 1]]
            assert energies[s, j] == (device.run("reduce_sumsq", part).numpy()[0] if part.size else 0)
    wide = z.astype(np.float64)
    tiny = 20 * np.finfo(kind).eps  # sums of 130 terms in two levels
    assert np.allclose(features[:, 0], np.sqrt((wide**2).sum(1)), rtol=tiny)
    assert np.allclose(features[:, 1], np.abs(wide).sum(1), rtol=tiny)
    assert np.array_equal(features[:, 2], np.abs(z).max(1))
    shares = energies.astype(np.float64) / energies.astype(np.float64).sum(1)[:, None]
    terms = np.where(shares > 0, -shares * np.log(np.where(shares > 0, shares, 1)), 0)
    assert np.allclose(features[:, 3], terms.sum(1), rtol=tiny)


def test_entropy_is_log_of_the_bands_where_all_are_alike_and_0_where_one_has_all(device: Device) -> None:
    edges = np.arange(0, 33, 4, dtype=np.uint32)
    even = device.run("qfeat", np.ones((1, 32)), edges, bands=8)[1].numpy()
    assert even[0, 3] == pytest.approx(np.log(8), rel=1e-15)
    alone = np.zeros((1, 32))
    alone[0, 5] = 3.0
    assert device.run("qfeat", alone, edges, bands=8)[1].numpy()[0].tolist() == [3.0, 3.0, 3.0, 0.0]
    assert device.run("qfeat", np.zeros((1, 32)), edges, bands=8)[1].numpy()[0].tolist() == [0.0] * 4


def test_edges_that_do_not_fit_the_bands_are_refused(device: Device) -> None:
    with pytest.raises(ShapeError, match=r"3 bands need 4 edges, 3 given.*Fix: pass bands=len\(edges\) - 1"):
        device.run("qfeat", np.ones((1, 8)), np.zeros(3, np.uint32), bands=3)


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("name", NAMES)
def test_an_operator_step_is_a_product_an_activation_and_its_metrics(device: Device, kind: Any, name: str) -> None:
    z, a, b = state(kind, 2, 130), state(kind, 130, 130, seed=1), state(kind, 130, seed=2)
    edges = np.array([0, 50, 130], np.uint32)
    psi: dict[str, Any] = {"psi": number_of(name), "alpha": 0.1, "low": -0.5, "high": 0.75}
    step = [x.numpy() for x in device.run("operator_step", z, a, b, edges, bands=2, t=1.0, dt=0.5, **psi)]
    values = device.run("activate", device.run("gemm_tiled", z, a), b, **psi).numpy()
    metrics, counts = (x.numpy() for x in device.run("state_metrics", z, values))
    assert step[0].tobytes() == values.tobytes()
    assert step[1][:10].tobytes() == metrics[:10].tobytes()
    assert step[1][10:].tolist() == [0.0, 1.5, 0.0, 0.0, 0.0, 0.0]
    assert step[2].tobytes() == counts.tobytes()
    assert step[3].tobytes() == device.run("qfeat", values, edges, bands=2)[0].numpy().tobytes()


def test_a_relaxed_step_goes_part_of_the_way(device: Device) -> None:
    z, target = state(np.float64, 1, 20), state(np.float64, 20, seed=3)
    still = np.zeros((20, 20))
    edges = np.zeros(1, np.uint32)
    result = device.run("operator_step", z, still, target, edges, dt=0.25, flags=1)[0].numpy()
    assert np.allclose(result, z + 0.25 * (target - z), rtol=0, atol=1e-15)
    with pytest.raises(InputError, match="flags is 2"):
        device.run("operator_step", z, still, target, edges, flags=2)


@pytest.mark.parametrize("kind", TYPES)
def test_nonlinearities_are_what_their_names_say(kind: Any) -> None:
    x = np.linspace(-5, 5, 101).astype(kind)
    wide = x.astype(np.float64)
    tiny = 4 * np.finfo(kind).eps  # each is within 1 ulp of its rounded argument
    assert np.array_equal(apply_psi(number_of("none"), x), x)
    assert np.allclose(apply_psi(number_of("squash"), x, alpha=0.5), np.tanh(0.5 * wide), rtol=tiny)
    assert np.allclose(apply_psi(number_of("softplus"), x), np.log1p(np.exp(wide)), rtol=tiny)
    assert np.array_equal(apply_psi(number_of("clamp"), x, low=-1, high=2), np.clip(x, -1, 2))
    for which in range(len(NAMES)):
        assert np.isnan(apply_psi(which, np.array([np.nan], kind)))


def test_a_nonlinearity_that_does_not_exist_or_has_no_range_is_refused(device: Device) -> None:
    x = np.ones((1, 3))
    with pytest.raises(InputError, match=r"no nonlinearity 4.*Fix: pass psi as one of 0 none, 1 squash"):
        device.run("activate", x, x[0], psi=4)
    with pytest.raises(InputError, match=r"nothing between low=1.0 and high=0.0.*Fix: pass low <= high"):
        device.run("activate", x, x[0], psi=3, low=1.0, high=0.0)
    with pytest.raises(InputError, match="no nonlinearity 'tan'"):
        number_of("tan")


ROLLOUTS = ("csr_rollout", "block_rollout", "quadratic_rollout", "bands_rollout")


@pytest.mark.parametrize("name", ROLLOUTS)
def test_long_rollouts_are_cut_into_dispatches_that_respect_the_loop_limit(name: str) -> None:
    kernel = kernels.get(name)
    case = next(c for c in kernel.cases if c.scalars["steps"] >= 3 and min(next(iter(c.shapes.values()))) > 0)
    shapes = [case.shapes[o.name] for o in kernel.inputs]
    tuning = next(iter(kernel.tunings.values()))

    def planned(steps: int, limits: Limits) -> Any:
        call = resolve_call(kernel, DTYPES["f64"], shapes, {**case.scalars, "steps": steps}, limits, tuning)
        return check_plan(kernel, call, kernel.plan(call))

    limits = Limits(loop_trips=2000, shared_bytes=1 << 16, invocations=1024)
    plan = planned(500, limits)
    first, last = kernel.inputs[0].name, kernel.outputs[0].name
    assert sum(int(d.push["steps"]) for d in plan.dispatches) == 500
    assert len(plan.dispatches) > 2
    assert all(d.trips <= 2000 for d in plan.dispatches)
    # Each dispatch goes on where the one before ended, and none writes what it reads, or the source.
    assert plan.dispatches[0].buffers[0] == first
    assert plan.dispatches[-1].buffers[-1] == last
    for before, after in zip(plan.dispatches, plan.dispatches[1:], strict=False):
        assert before.buffers[-1] == after.buffers[0] != after.buffers[-1] != first
    assert len(planned(0, limits).dispatches) == 1
    with pytest.raises(LimitError, match=r"loop iterations.*Fix: take one step in a dispatch"):
        planned(5, Limits(loop_trips=3, shared_bytes=1 << 16))
    with pytest.raises(LimitError, match=r"bytes of shared memory.*Fix: take one step in a dispatch"):
        planned(5, Limits(shared_bytes=8))
