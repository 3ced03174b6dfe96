"""The band model: its gradient, its optimisers against plain NumPy, the same bits everywhere, and what it refuses."""

from __future__ import annotations

from itertools import islice
from typing import Any

import numpy as np
import pytest

from dashi.core.learning._batches import batches, shuffled
from dashi.core.learning._training import BLOCK
from dashi.core.learning.learner import BandModel, fit_bands, loss_gradient
from dashi.errors import DTypeError, InputError, NonFiniteError, NoResultError, ShapeError
from dashi.runtime._cpu_device import CpuDevice
from dashi.runtime._null_device import NullDevice
from dashi.runtime._vulkan_device import VulkanDevice
from dashi.runtime.array import Array
from dashi.runtime.device import Device

KINDS = pytest.mark.parametrize("kind", [np.float32, np.float64])
ORDER = [6, 7, 1, 2, 9, 0, 5, 8, 3, 4, 10, 11]
"""Of twelve rows by seed 0, in epoch 0."""
OPTIMISERS = pytest.mark.parametrize(("optimiser", "rate"), [("adam", 0.05), ("sgd", 0.5)])


def learn(*pairs: Any, **settings: Any) -> Any:
    """`fit_bands`, of whose arrays nothing is known to the type checker."""
    return fit_bands(*pairs, **settings)


def softplus(x: Any) -> Any:
    return np.logaddexp(0, x)


def problem(rows: int = 60, bands: int = 5, outputs: int = 4, kind: Any = np.float64) -> tuple[Any, Any, Any, Any]:
    """Energies, what follows them, and the weights and biases that make the one from the other."""
    rng = np.random.default_rng(7)
    weights, bias = 0.4 * rng.standard_normal((bands, outputs)), 0.3 * rng.standard_normal(outputs)
    energies = np.abs(rng.standard_normal((rows, bands)))
    return energies.astype(kind), softplus(energies @ weights + bias).astype(kind), weights, bias


def plain_training(
    x: Any, y: Any, steps: int, optimiser: str, rate: float, clamp: float | None, order: Any = None
) -> tuple[Any, Any]:
    """The textbook's algorithm in NumPy."""
    w, b = np.zeros((x.shape[1], y.shape[1])), np.zeros(y.shape[1])
    means = [np.zeros_like(w), np.zeros_like(w), np.zeros_like(b), np.zeros_like(b)]
    for t in range(1, steps + 1):
        rows = slice(None) if order is None else next(order)
        e, f = x[rows], y[rows]
        pre = e @ w + b
        slope = 2 / f.size * (softplus(pre) - f) / (1 + np.exp(-pre))
        grads = e.T @ slope, slope.sum(axis=0)
        moves = list(grads)
        if optimiser == "adam":
            for i, g in enumerate(grads):
                means[2 * i] = 0.9 * means[2 * i] + 0.1 * g
                means[2 * i + 1] = 0.999 * means[2 * i + 1] + 0.001 * g * g
                moves[i] = means[2 * i] / (1 - 0.9**t) / (np.sqrt(means[2 * i + 1] / (1 - 0.999**t)) + 1e-8)
        w, b = w - rate * moves[0], b - rate * moves[1]
        if clamp is not None:
            w = w * np.minimum(1, clamp / np.maximum(np.linalg.norm(w, axis=0), 1e-300))
    return w, b


def test_the_gradient_is_that_of_finite_differences(device: Device) -> None:
    x, y, weights, bias = problem()
    w, b = weights + 0.1, bias - 0.2
    loss, by_w, by_b = loss_gradient(w, b, x, y, device=device)
    whole: Any = np.vstack([w, b])
    values: Any = np.vstack([by_w, by_b])
    assert loss == pytest.approx(np.mean((softplus(x @ w + b) - y) ** 2), rel=1e-13)
    step = 1e-5  # central differences: an error of about step^2, and of 2^-53 / step
    for place in np.ndindex(*whole.shape):
        losses = []
        for sign in (1, -1):
            moved = whole.copy()
            moved[place] += sign * step
            losses.append(loss_gradient(moved[:-1], moved[-1], x, y, device=device)[0])
        assert (losses[0] - losses[1]) / (2 * step) == pytest.approx(values[place], abs=1e-9)


@OPTIMISERS
@pytest.mark.parametrize("clamp", [None, 0.3])
@pytest.mark.parametrize("steps", [3, BLOCK, 2 * BLOCK + 5])
def test_training_takes_the_steps_of_the_textbook(
    device: Device, optimiser: Any, rate: float, clamp: float | None, steps: int
) -> None:
    x, y, _, _ = problem(rows=12)
    model = learn(x, y, device=device, optimiser=optimiser, rate=rate, epochs=steps, clamp=clamp)
    w, b = plain_training(x, y, steps, optimiser, rate, clamp)
    np.testing.assert_allclose(model.W, w, atol=1e-12)  # the same formulas, rounded in another order
    np.testing.assert_allclose(model.b, b, atol=1e-12)


def test_a_batch_is_a_step_on_the_rows_that_the_seed_gives(device: Device) -> None:
    x, y, _, _ = problem(rows=20)
    model = learn(x, y, device=device, rate=0.05, epochs=5, batch=8, seed=3)
    w, b = plain_training(x, y, 13, "adam", 0.05, None, batches(20, 8, 3))
    assert model.loss_steps[-1] == 13  # 100 rows in batches of 8
    np.testing.assert_allclose(model.W, w, atol=1e-12)
    np.testing.assert_allclose(model.b, b, atol=1e-12)


@KINDS
@OPTIMISERS
def test_the_weights_have_the_same_bits_on_every_device_and_in_every_run(
    vulkan: VulkanDevice, kind: Any, optimiser: Any, rate: float
) -> None:
    x, y, _, _ = problem(rows=50, kind=kind)

    def train(device: Device, seed: int = 1) -> BandModel:
        return fit_bands(x, y, device=device, optimiser=optimiser, rate=rate, epochs=12, batch=7, clamp=0.5, seed=seed)

    first, again, other = train(vulkan), train(vulkan), train(vulkan, seed=2)
    with CpuDevice() as cpu:
        reference = train(cpu)
    assert first.W.dtype == kind
    for model in (again, reference):
        assert model.W.tobytes() == first.W.tobytes()
        assert model.b.tobytes() == first.b.tobytes()
        assert model.losses.tobytes() == first.losses.tobytes()
    assert other.W.tobytes() != first.W.tobytes()


def test_a_known_model_is_found_again(device: Device) -> None:
    x, y, weights, bias = problem(rows=200)
    model = learn(x, y, device=device, rate=0.05, epochs=600)
    assert np.abs(model.W - weights).max() < 2e-3
    assert np.abs(model.b - bias).max() < 2e-3
    assert model.losses[-1] < 1e-6 < 1e-2 < model.losses[0]
    np.testing.assert_allclose(model.predict(x, device=device), softplus(x @ model.W + model.b), rtol=1e-14)


@KINDS
def test_the_clamp_keeps_every_column_within_its_norm(device: Device, kind: Any) -> None:
    x, y, _, _ = problem(kind=kind)
    model = learn(x, y, device=device, rate=0.2, epochs=80, clamp=0.25)
    norms = np.linalg.norm(model.W.astype(np.float64), axis=0)
    assert norms.max() <= 0.25 * (1 + 4 * np.finfo(kind).eps)
    assert norms.max() > 0.249  # it is what holds them back
    free = learn(x, y, device=device, rate=0.2, epochs=80)
    assert np.linalg.norm(free.W, axis=0).max() > 0.3


def test_a_clamped_model_is_contractive(device: Device) -> None:
    x, y, _, _ = problem(bands=4)
    model = learn(x, 3 * y, device=device, rate=0.2, epochs=100, clamp=0.49)  # below 1 / sqrt(4)
    rng = np.random.default_rng(0)
    pairs = rng.standard_normal((2, 40, 4))
    made = [model.predict(rows, device=device) for rows in pairs]
    ratio = np.linalg.norm(made[0] - made[1], axis=1) / np.linalg.norm(pairs[0] - pairs[1], axis=1)
    assert ratio.max() < 1


@KINDS
def test_a_model_becomes_the_operator_that_predicts_the_same_bits(device: Device, kind: Any) -> None:
    x, y, _, _ = problem(bands=70, outputs=70, kind=kind)
    model = learn(x, y, device=device, epochs=3)
    operator = model.operator()
    assert (operator.kind, operator.shape, operator.parameters["psi"]) == ("affine", (70,), "softplus")
    source, target = device.array(x), device.empty(x.shape, kind)
    with device.program(operator.step(device, operator.load(device), source, target)) as program:
        program.run()
    assert target.numpy().tobytes() == model.predict(x, device=device).tobytes()


def test_only_losses_and_the_weights_come_back(device: Device, monkeypatch: pytest.MonkeyPatch) -> None:
    x, y, _, _ = problem(rows=32)
    reads: list[int] = []
    read = device.read

    def counted(array: Array) -> Any:
        reads.append(array.nbytes)
        return read(array)

    monkeypatch.setattr(device, "read", counted)
    model = learn(x, y, device=device, epochs=40, batch=4)
    assert model.loss_steps.tolist() == [0, 64, 128, 192, 256, 320]
    assert reads == [8] * 6 + [6 * 4 * 8]


def test_progress_counts_the_steps(device: Device) -> None:
    x, y, _, _ = problem(rows=10)
    counts: list[int] = []
    model = learn(x, y, device=device, epochs=150, progress=counts.append)
    assert counts == [64, 64, 22]
    assert (model.loss_steps[0], model.loss_steps[-1]) == (0, 150)


def test_every_row_is_seen_once_an_epoch() -> None:
    drawn = np.concatenate(list(islice(batches(10, 4, seed=5), 10)))
    assert all(sorted(part.tolist()) == list(range(10)) for part in drawn.reshape(4, 10))
    assert drawn[:10].tolist() != drawn[10:20].tolist()


def test_the_order_of_a_seed_never_changes() -> None:
    assert shuffled(12, 0, 0).tolist() == ORDER
    assert shuffled(12, 1, 0).tolist() != ORDER
    assert shuffled(12, 0, 1).tolist() != ORDER
    assert shuffled(12, -1, 0).tolist() == shuffled(12, (1 << 64) - 1, 0).tolist()


def test_a_rate_that_is_too_large_is_an_error_with_the_step(device: Device) -> None:
    x, y, _, _ = problem(rows=16, kind=np.float32)
    with pytest.raises(NonFiniteError, match=r"the loss is (nan|inf) after \d+ steps. Fix: pass a smaller rate"):
        fit_bands(x, 1e3 * y, device=device, optimiser="sgd", rate=1e38, epochs=100)


@pytest.mark.parametrize(
    ("change", "kind", "text"),
    [
        ({"optimiser": "newton"}, InputError, "no optimiser 'newton'. Fix: pass adam or sgd"),
        ({"rate": 0.0}, InputError, "rate is 0.0. Fix"),
        ({"rate": np.inf}, InputError, "rate is inf. Fix"),
        ({"epochs": 0}, InputError, "epochs is 0. Fix"),
        ({"batch": 61}, InputError, "61 rows cannot be drawn from 60. Fix"),
        ({"batch": 0}, InputError, "a batch of 0 rows"),
        ({"clamp": -1.0}, InputError, "clamp is -1.0. Fix"),
    ],
)
def test_settings_that_mean_nothing_are_errors(change: Any, kind: type[Exception], text: str) -> None:
    x, y, _, _ = problem()
    with CpuDevice() as cpu, pytest.raises(kind, match=text):
        fit_bands(x, y, device=cpu, **change)


def test_energies_that_do_not_fit_are_errors() -> None:
    x, y, _, _ = problem()
    spoilt = x.copy()
    spoilt[3, 1] = np.nan
    with CpuDevice() as cpu:
        with pytest.raises(ShapeError, match="60 rows of energies, but 59 that follow"):
            fit_bands(x, y[1:], device=cpu)
        with pytest.raises(DTypeError, match="following are float32, but must be float64"):
            fit_bands(x, y.astype(np.float32), device=cpu)
        with pytest.raises(DTypeError, match="energies are int64"):
            fit_bands(x.astype(np.int64), y, device=cpu)
        with pytest.raises(ShapeError, match=r"energies have shape \(5,\)"):
            fit_bands(x[0], y, device=cpu)
        with pytest.raises(InputError, match=r"energies are not finite at \(3, 1\)"):
            fit_bands(spoilt, y, device=cpu)
        model = learn(x, y, device=cpu, epochs=1)
        with pytest.raises(ShapeError, match="energies have 4 bands, the model 5"):
            model.predict(y, device=cpu)
    with NullDevice() as null, pytest.raises(NoResultError, match="computes nothing"):
        fit_bands(x, y, device=null)


def test_a_place_outside_the_tables_is_an_error(device: Device) -> None:
    order = np.zeros((2, 3), np.uint32)
    with pytest.raises(InputError, match="no batch 2 among 2"):
        device.run("batch_rows", np.ones((4, 1)), order, batch=2)
    one = np.ones(3)
    with pytest.raises(InputError, match="no row 1 of 1"):
        device.run("adam_step", one, one, one, one, np.ones((1, 2)), place=1)
    with pytest.raises(InputError, match="rows is 3, but x has 2"):
        device.run("column_clamp", np.ones((2, 2)), rows=3)
    with pytest.raises(InputError, match="limit is -1"):
        device.run("column_clamp", np.ones((2, 2)), rows=2, limit=-1.0)


def test_the_clamp_leaves_later_rows_and_short_columns_alone(device: Device) -> None:
    x = np.array([[3.0, 0.1], [4.0, 0.2], [7.0, 9.0]])
    result = device.run("column_clamp", x, rows=2, limit=1.0).numpy()
    np.testing.assert_allclose(result, [[0.6, 0.1], [0.8, 0.2], [7.0, 9.0]], rtol=1e-15)
