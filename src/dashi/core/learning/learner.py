"""The band model E' = softplus(E W + b), learned on the device from pairs of band energies.

The loss is the mean over rows and bands of (softplus(E W + b) - E')^2. Its gradient is X^T S with X = [E, 1] and
S = 2 / (N M) (softplus(X W) - E') / (1 + e^-(X W)), and W is moved by SGD or Adam. The norm clamp scales the weights
that feed an output (a column of W) down to a norm: as softplus has slopes below 1, a largest norm below 1 / sqrt(M)
makes the map contractive whatever else is learned. Everything runs in portable kernels, in fp32 or fp64: the same
data, settings and seed give the same weights, bit for bit, on every device.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import numpy as np

from dashi.core.learning._batches import batches
from dashi.core.learning._training import BLOCK, DeviceTraining, Optimiser, TrainingSettings
from dashi.core.operators.affine import Affine
from dashi.errors import DTypeError, InputError, NonFiniteError, NoResultError, ShapeError
from dashi.kernels._psi import number_of
from dashi.runtime.device import Device, Program
from dashi.runtime.using import using_device
from dashi.types import HostArray


@dataclass(frozen=True, eq=False)
class BandModel:
    """Weights (B, M), biases (M,), and the loss over all rows after so many steps, from before the first."""

    W: HostArray
    b: HostArray
    losses: HostArray
    loss_steps: HostArray

    def predict(self, energies: HostArray, *, device: Device | str) -> HostArray:
        """softplus(E W + b) for rows E: one step of the operator, for all of them. What is not finite is an error."""
        rows = _rows("energies", energies, self.W.dtype)
        if rows.shape[1] != len(self.W):
            raise ShapeError(
                f"energies have {rows.shape[1]} bands, the model {len(self.W)}.", "pass rows of the model's bands."
            )
        with using_device(device) as opened:
            product = opened.run("gemm_tiled", rows, self.W)
            following = opened.run("activate", product, self.b, psi=number_of("softplus")).numpy()
        if not np.isfinite(following).all():
            raise NonFiniteError("the energies that follow are not finite.", "fit with a smaller rate.")
        return following

    def operator(self) -> Affine:
        """The model as an operator to roll out; it needs as many outputs as inputs."""
        return Affine(self.W, self.b, psi="softplus")


def fit_bands(
    energies: HostArray,
    following: HostArray,
    *,
    device: Device | str,
    optimiser: Optimiser = "adam",
    rate: float = 1e-2,
    epochs: int = 200,
    batch: int | None = None,
    clamp: float | None = None,
    seed: int = 0,
    progress: Callable[[int], None] | None = None,
) -> BandModel:
    """Learns the band model from rows of energies (N, B) and the rows (N, M) that follow them.

    It starts from zero weights. `batch` rows are seen in a step, all of them by default; in an epoch each is seen
    once, in an order that `seed` gives. `clamp` is the largest norm of a column of W. `progress` is called with the
    number of steps just finished. float32 or float64, as the energies are.
    """
    x, y = _pairs(energies, following)
    settings = _settings(optimiser, rate, batch, clamp, len(x))
    if epochs < 1:
        raise InputError(f"epochs is {epochs}.", "pass 1 or more.")
    with using_device(device) as opened:
        return _learned(opened, x, y, settings, epochs, seed, progress)


def _learned(
    device: Device, x: HostArray, y: HostArray, settings: TrainingSettings, epochs: int, seed: int,
    progress: Callable[[int], None] | None,
) -> BandModel:  # fmt: skip
    if device.info.type == "null":
        raise NoResultError("the null device computes nothing.", "learn on another: cpu, or vulkan:0.")
    per_step = settings.batch or len(x)
    total, per_epoch = -(-epochs * len(x) // per_step), -(-len(x) // per_step)
    training = DeviceTraining(device, _with_ones(x), y, np.zeros((x.shape[1] + 1, y.shape[1]), x.dtype), settings)
    order = None if settings.batch is None else batches(len(x), per_step, seed)
    with ExitStack() as programs:
        record = _LossHistory(training, per_epoch, programs)
        while record.done < total:
            count = min(BLOCK, total - record.done)
            training.feed(order, count)
            record.advance(count, last=record.done + count == total)
            if progress is not None:
                progress(count)
    made: Any = training.state.weights.numpy()
    return BandModel(made[:-1], made[-1], np.array(record.losses), np.array(record.steps))


def loss_gradient(
    weights: HostArray, bias: HostArray, energies: HostArray, following: HostArray, *, device: Device
) -> tuple[float, HostArray, HostArray]:
    """The loss of given weights, and its gradient by W and by b."""
    x, y = _pairs(energies, following)
    whole = np.concatenate([weights, np.reshape(bias, (1, -1))]).astype(x.dtype)
    training = DeviceTraining(device, _with_ones(x), y, whole, TrainingSettings())
    with device.program(list(training.gradient()), label="gradient") as program:
        program.run()
    made = training.read("gradient")
    with training.losses() as loss:
        return loss(), made[:-1], made[-1]


class _LossHistory:
    """Runs blocks of steps and keeps the losses: before the first step, about once an epoch, and after the last."""

    def __init__(self, training: DeviceTraining, stride: int, opened: ExitStack) -> None:
        self._training, self._stride, self._opened = training, stride, opened
        self._loss = opened.enter_context(training.losses())
        self._whole: Program | None = None
        self.done = 0
        self.steps, self.losses = [0], [self._loss()]

    def advance(self, count: int, last: bool) -> None:
        if count < BLOCK:
            with self._training.block(count) as program:
                program.run()
            # A block of odd length ends in the other arrays.
            self._loss = self._opened.enter_context(self._training.losses())
        else:
            self._whole = self._whole or self._opened.enter_context(self._training.block(BLOCK))
            self._whole.run()
        self.done += count
        if last or self.done - self.steps[-1] >= self._stride:
            self.steps.append(self.done)
            self.losses.append(self._loss())
        if not math.isfinite(self.losses[-1]):
            raise NonFiniteError(
                f"the loss is {self.losses[-1]} after {self.steps[-1]} steps.",
                "pass a smaller rate, a clamp, or energies scaled to about 1.",
            )


def _settings(optimiser: Optimiser, rate: float, batch: int | None, clamp: float | None, rows: int) -> TrainingSettings:
    if optimiser not in ("adam", "sgd"):
        raise InputError(f"there is no optimiser {optimiser!r}.", "pass adam or sgd.")
    if not (math.isfinite(rate) and rate > 0):
        raise InputError(f"rate is {rate}.", "pass a finite number above 0.")
    if batch is not None and not 1 <= batch <= rows:
        raise InputError(f"a batch of {batch} rows cannot be drawn from {rows}.", f"pass 1 to {rows}, or None for all.")
    if clamp is not None and not (math.isfinite(clamp) and clamp > 0):
        raise InputError(f"clamp is {clamp}.", "pass a finite norm above 0, or None for no clamp.")
    return TrainingSettings(optimiser, rate, None if batch == rows else batch, clamp)


def _rows(name: str, values: HostArray, kind: np.dtype[Any] | None = None) -> HostArray:
    array = np.asarray(values)
    if array.dtype.name not in ("float32", "float64") or array.dtype != (kind or array.dtype):
        raise DTypeError(
            f"{name} are {array.dtype}, but must be {kind or 'float32 or float64'}.",
            f"convert them: {name}.astype(np.{kind or 'float64'}).",
        )
    if array.ndim != 2 or 0 in array.shape:
        raise ShapeError(f"{name} have shape {array.shape}.", "pass rows of bands, (N, B), with at least one of each.")
    if not np.isfinite(array).all():
        place = tuple(int(i) for i in np.argwhere(~np.isfinite(array))[0])
        raise InputError(f"{name} are not finite at {place}.", "leave out the rows with NaN or infinity.")
    return array


def _pairs(energies: HostArray, following: HostArray) -> tuple[HostArray, HostArray]:
    x = _rows("energies", energies)
    y = _rows("following", following, x.dtype)
    if len(x) != len(y):
        raise ShapeError(f"there are {len(x)} rows of energies, but {len(y)} that follow.", "pass them in pairs.")
    return x, y


def _with_ones(x: HostArray) -> HostArray:
    return np.concatenate([x, np.ones((len(x), 1), x.dtype)], axis=1)
