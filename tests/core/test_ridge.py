"""The ridge fit: how near it is to the true solution, the same bits everywhere, and what it refuses."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from dashi import kernels
from dashi.core.learning.ridge import RidgeFit, fit_pairs, fit_ridge, ridge
from dashi.errors import DTypeError, InputError, NoResultError, ShapeError
from dashi.kernels._calls import resolve_call
from dashi.kernels._validate import check_plan
from dashi.kernels.abi import Call, Limits, Plan
from dashi.runtime._cpu_device import CpuDevice
from dashi.runtime._null_device import NullDevice
from dashi.runtime._vulkan_device import VulkanDevice
from dashi.runtime.device import Device

EPSILON = 2.0**-53


def trajectory(rows: int, features: int, rank: int, seed: int = 3) -> Any:
    """Rows of that rank, like the proxy's: columns of sizes over three decades, and one that is constantly 128."""
    rng = np.random.default_rng(seed)
    times = 0.1 * rng.standard_normal((rows, rank - 1)).cumsum(axis=0)
    x = times @ rng.standard_normal((rank - 1, features)) * 10.0 ** rng.uniform(-3, 0, features)
    x[:, features // 2] = 128.0
    return x


def exact(z: Any, y: Any, lam: float) -> Any:
    """The solution in extended precision, whose unit is 2^-64: by Cholesky, plainly."""
    wide, target = z.astype(np.longdouble), y.astype(np.longdouble)
    gram = wide.T @ wide + np.longdouble(lam) * np.eye(z.shape[1], dtype=np.longdouble)
    x = wide.T @ target
    n = len(gram)
    for j in range(n):
        gram[j:, j] = (gram[j:, j] - gram[j:, :j] @ gram[j, :j]) / np.sqrt(gram[j, j] - gram[j, :j] @ gram[j, :j])
    for i in range(n):
        x[i] = (x[i] - gram[i, :i] @ x[:i]) / gram[i, i]
    for i in reversed(range(n)):
        x[i] = (x[i] - gram[i + 1 :, i] @ x[i + 1 :]) / gram[i, i]
    return x.astype(np.float64)


def by_qr(z: Any, y: Any, lam: float) -> Any:
    """The solution as a least-squares problem without squares: the most accurate that NumPy has in fp64."""
    tall = np.vstack([z, np.sqrt(lam) * np.eye(z.shape[1])])
    q, r = np.linalg.qr(tall)
    return np.linalg.solve(r, q[: len(z)].T @ y)


def error(a: Any, expected: Any) -> float:
    return float(np.linalg.norm(a - expected) / np.linalg.norm(expected))


def bound(z: Any, y: Any, lam: float, a: Any) -> float:
    """64 times the error that docs and docstring state."""
    gram = z.T @ z + lam * np.eye(z.shape[1])
    scale = np.sqrt(np.diag(gram))
    condition = float(np.linalg.cond(gram / scale / scale[:, None]))
    left = np.linalg.norm(y - z @ a) / (np.linalg.norm(z / scale, 2) * np.linalg.norm(a * scale[:, None]))
    return 64 * EPSILON * (np.sqrt(condition) + condition * float(left))


def test_a_rank_deficient_fit_is_as_near_the_true_solution_as_stated(device: Device) -> None:
    x = trajectory(100, 130, 60)
    z, y = x[:-1], x[1:]
    assert np.linalg.matrix_rank(z) == 60
    fit = fit_ridge(z, y, 1e-3, device=device)
    truth = exact(z, y, 1e-3)
    assert error(fit.A, truth) <= bound(z, y, 1e-3, truth) < 1e-10
    # The plain solution of the normal equations is farther away.
    plain = np.linalg.solve(z.T @ z + 1e-3 * np.eye(130), z.T @ y)
    assert error(fit.A, truth) < 0.1 * error(plain, truth)
    assert fit.correction < 1e-12


@pytest.mark.parametrize("lam", [0.0, 1e-6, 10.0])
def test_targets_that_no_operator_explains_are_fitted_as_near_as_stated(device: Device, lam: float) -> None:
    rng = np.random.default_rng(5)
    z, y = rng.standard_normal((90, 33)) * 10.0 ** rng.uniform(-4, 4, 33), rng.standard_normal((90, 2))
    truth = exact(z, y, lam)
    assert error(ridge(z, y, lam, device=device), truth) <= bound(z, y, lam, truth) < 1e-9


def test_the_fit_has_the_same_bits_on_every_device_and_in_every_run(vulkan: VulkanDevice) -> None:
    x = trajectory(70, 90, 40, seed=8)
    first, again = (fit_pairs(x, 1e-3, device=vulkan) for _ in range(2))
    with CpuDevice() as cpu:
        reference = fit_pairs(x, 1e-3, device=cpu)
    assert first.tobytes() == again.tobytes() == reference.tobytes()


def test_a_column_of_targets_agrees_with_itself_fitted_alone(device: Device) -> None:
    # To rounding, not bit for bit: refining stops by the size of all columns together.
    x = trajectory(40, 70, 20)
    together, alone = (ridge(x[:-1], x[1:, part], 1e-2, device=device) for part in (slice(0, 9), slice(4, 5)))
    assert error(together[:, 4:5], alone) <= 1e-12


def test_float32_data_are_fitted_as_the_doubles_they_are(device: Device) -> None:
    x = trajectory(30, 20, 12).astype(np.float32)
    narrow, wide = (fit_pairs(values, 1e-3, device=device) for values in (x, x.astype(np.float64)))
    assert narrow.dtype == np.float64
    assert narrow.tobytes() == wide.tobytes()


def test_pairs_never_join_two_trajectories(device: Device) -> None:
    rng = np.random.default_rng(1)
    operator = rng.standard_normal((6, 6)) / 3
    runs = np.empty((4, 5, 6))
    runs[:, 0] = rng.standard_normal((4, 6))
    for t in range(4):
        runs[:, t + 1] = runs[:, t] @ operator
    assert error(fit_pairs(runs, 0.0, device=device), operator) < 1e-11


def test_a_fit_tells_how_well_it_went(device: Device) -> None:
    x = trajectory(30, 20, 12)
    fit = fit_ridge(x[:-1], x[1:], 1e-3, device=device)
    assert isinstance(fit, RidgeFit)
    assert (fit.lam, fit.A.shape) == (1e-3, (20, 20))
    assert 0 < fit.margin <= 1
    assert 0 <= fit.correction < 1e-10


@pytest.mark.parametrize("seed", range(4))
def test_dependent_features_without_a_ridge_are_refused(device: Device, seed: int) -> None:
    rng = np.random.default_rng(seed)
    z = rng.standard_normal((50, 7)) @ rng.standard_normal((7, 30)) * 10.0 ** rng.uniform(-3, 3, 30)
    with pytest.raises(
        InputError, match=r"do not determine a fit with lam = 0: feature \d+ is, to rounding.*Fix: pass a"
    ):
        ridge(z, z[:, :2], 0.0, device=device)


@pytest.mark.parametrize(
    ("features", "targets", "lam", "kind", "text"),
    [
        (np.ones((3, 2)), np.ones((4, 2)), 1.0, ShapeError, "features have 3 rows, targets 4. Fix"),
        (np.ones(3), np.ones((3, 2)), 1.0, ShapeError, "features has shape"),
        (np.ones((0, 2)), np.ones((0, 2)), 1.0, ShapeError, "none of length 0"),
        (np.ones((2, 5000)), np.ones((2, 1)), 1.0, ShapeError, "5000 features are more than 4096"),
        (np.array([[1.0, np.nan]]), np.ones((1, 1)), 1.0, InputError, r"features is not finite at \(0, 1\)"),
        (np.ones((3, 2)), np.ones((3, 2)), -1.0, InputError, "lam is -1.0"),
        (np.ones((3, 2)), np.ones((3, 2)), np.nan, InputError, "lam is nan"),
        (np.ones((3, 2), complex), np.ones((3, 2)), 1.0, DTypeError, "complex128 cannot be fitted"),
        (np.full((3, 2), 1e200), np.ones((3, 2)), 1.0, InputError, "overflow.*Fix: scale"),
        (np.zeros((3, 2)), np.ones((3, 2)), 0.0, InputError, "feature 0 is zero.*lam > 0"),
    ],
)
def test_what_cannot_be_fitted_is_an_error_that_says_why(
    features: Any, targets: Any, lam: float, kind: type[Exception], text: str
) -> None:
    with CpuDevice() as cpu, pytest.raises(kind, match=text):
        ridge(features, targets, lam, device=cpu)


def test_a_single_row_is_no_trajectory_and_the_null_device_fits_nothing() -> None:
    with CpuDevice() as cpu, pytest.raises(ShapeError, match="no consecutive rows"):
        fit_pairs(np.ones((1, 4)), 1.0, device=cpu)
    with NullDevice() as null, pytest.raises(NoResultError, match="computes nothing"):
        ridge(np.ones((3, 2)), np.ones((3, 2)), 1.0, device=null)


def test_zero_targets_give_zero(device: Device) -> None:
    z = np.random.default_rng(0).standard_normal((9, 4))
    assert not ridge(z, np.zeros((9, 2)), 1e-3, device=device).any()


def test_cholesky_factors_and_the_triangles_solve(device: Device) -> None:
    rng = np.random.default_rng(2)
    root = rng.standard_normal((150, 140))
    a, b = root.T @ root, rng.standard_normal((140, 3))
    factor, margin = (array.numpy() for array in device.run("cholesky", a, shift=0.5))
    np.testing.assert_allclose(factor @ factor.T, a + 0.5 * np.eye(140), atol=1e-11)
    np.testing.assert_allclose(margin, np.diag(factor) ** 2 / (np.diag(a) + 0.5), rtol=1e-10)
    half = device.run("triangular_solve", factor, b).numpy()
    x = device.run("triangular_solve", factor, half, transposed=1).numpy()
    np.testing.assert_allclose((a + 0.5 * np.eye(140)) @ x, b, atol=1e-9)


def test_cholesky_of_an_indefinite_matrix_shows_where_it_fails(device: Device) -> None:
    _, margin = device.run("cholesky", np.diag([4.0, 1.0, -1.0, 1.0]))
    assert margin.numpy()[:2].tolist() == [1.0, 1.0]
    assert margin.numpy()[2] == 1.0  # -1 of -1 is left: the sign shows in the factor
    factor, margin = device.run("cholesky", np.array([[1.0, 2.0], [2.0, 1.0]]))
    assert margin.numpy()[1] == -3.0
    assert np.isnan(factor.numpy()[1, 1])


@pytest.mark.parametrize("name", ["cholesky", "triangular_solve"])
def test_factoring_stays_within_the_least_limits(name: str) -> None:
    kernel = kernels.get(name)
    shapes = [(4096, 4096)] if name == "cholesky" else [(4096, 4096), (4096, 5000)]
    call = resolve_call(kernel, "f64", shapes, limits=Limits())
    assert check_plan(kernel, call, kernel.plan(call)).dispatches
    shapes = [(4097, 4097)] if name == "cholesky" else [(4097, 4097), (4097, 1)]
    with pytest.raises(ShapeError, match="4097"):
        kernel.plan(resolve_call(kernel, "f64", shapes))


def test_few_workgroups_do_not_change_the_bits(vulkan: VulkanDevice) -> None:
    kernel = kernels.get("triangular_solve")

    def plan(call: Call) -> Plan:
        return kernel.plan(replace(call, limits=replace(call.limits, groups=2)))

    rng = np.random.default_rng(4)
    factor, b = np.tril(rng.standard_normal((70, 70))) + 9 * np.eye(70), rng.standard_normal((70, 300))
    whole = vulkan.run(kernel, factor, b).numpy()
    assert vulkan.run(replace(kernel, plan=plan), factor, b).numpy().tobytes() == whole.tobytes()


@pytest.mark.long
def test_a_fit_of_the_size_of_the_proxy_is_near_the_truth_and_the_same_everywhere(bare_vulkan: VulkanDevice) -> None:
    x = trajectory(302, 654, 238)
    z, y = x[:-1], x[1:]
    assert np.linalg.matrix_rank(z) == 238
    start = time.perf_counter()
    fit = fit_ridge(z, y, 1e-3, device=bare_vulkan)
    assert time.perf_counter() - start < 60
    truth = by_qr(z, y, 1e-3)
    # 6e-12 was measured; the bound allows for what the worst data of this condition (5e9) could do.
    assert error(fit.A, truth) <= min(1e-10, bound(z, y, 1e-3, truth))
    with CpuDevice() as cpu:
        assert ridge(z, y, 1e-3, device=cpu).tobytes() == fit.A.tobytes()
