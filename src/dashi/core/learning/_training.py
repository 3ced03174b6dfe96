"""Training of the band model on a device: arrays, steps of descent, and blocks of them recorded once.

Weights and bias are one array of shape (B + 1, M): the bias is the weight of a last feature that is always 1. A block
of steps is one recorded program; before each run the host writes which rows its steps see and Adam's corrections.
Nothing else crosses over, but for the loss on its stride.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Final, Literal, Self

import numpy as np

from dashi.runtime.array import Array
from dashi.runtime.device import Device, Program, Step
from dashi.types import HostArray

Optimiser = Literal["adam", "sgd"]
BLOCK: Final = 64
"""Steps of a recorded program: even, so that it ends in the arrays that it began in."""


@dataclass(frozen=True)
class TrainingSettings:
    """How to descend. `batch` None means all rows in every step; `clamp` None means no clamp."""

    optimiser: Optimiser = "adam"
    rate: float = 1e-2
    batch: int | None = None
    clamp: float | None = None
    beta1: float = 0.9
    beta2: float = 0.999
    epsilon: float = 1e-8


@dataclass(frozen=True, eq=False)
class TrainerState:
    """What a step changes: the weights, and Adam's running means of the gradient and its square."""

    weights: Array
    mean: Array
    square: Array


class DeviceTraining:
    """The arrays of one training on a device. `inputs` has the column of ones, `weights` the row of biases."""

    def __init__(
        self, device: Device, inputs: HostArray, targets: HostArray, weights: HostArray, settings: TrainingSettings
    ) -> None:
        self.device, self.settings = device, settings
        self.inputs, self.targets = device.array(inputs), device.array(targets)
        zero = np.zeros_like(weights)
        self.state, self._spare = (
            TrainerState(device.array(weights), device.array(zero), device.array(zero)) for _ in range(2)
        )
        rows = settings.batch or len(inputs)
        # Of a batch's rows in each step; without batches nothing is chosen.
        self._order = device.array(np.zeros((BLOCK, settings.batch or 0), np.uint32))
        self._corrections = device.array(np.ones((BLOCK, 2), weights.dtype))
        # What a step makes on its way, made once and used by every step.
        columns, outputs = inputs.shape[1], targets.shape[1]
        shapes = {"xt": (columns, rows), "gradient": (columns, outputs)}
        shapes |= dict.fromkeys(("product", "error", "slope"), (rows, outputs))
        if settings.batch is not None:
            shapes |= {"x": (rows, columns), "y": (rows, outputs)}
        self._work = {name: device.empty(shape, weights.dtype) for name, shape in shapes.items()}
        self._powers = (1.0, 1.0)

    def block(self, count: int) -> Program:
        """A recorded program of so many steps from the present state. `state` is then the one that it ends in."""
        steps = [step for place in range(count) for step in self._descend(place)]
        return self.device.program(steps, label=f"descent x {count}")

    def feed(self, order: Iterator[HostArray] | None, count: int) -> None:
        """Writes what the next `count` steps need from the host."""
        if order is not None:
            chosen = np.zeros(self._order.shape, np.uint32)
            for place in range(count):
                chosen[place] = next(order)
            self._order.write(chosen)
        if self.settings.optimiser == "adam":
            self._corrections.write(self._next_corrections(count))

    def _next_corrections(self, count: int) -> HostArray:
        # Products and quotients alone: a power function may differ between machines.
        corrections = np.ones(self._corrections.shape)
        first, second = self._powers
        for place in range(count):
            first, second = first * self.settings.beta1, second * self.settings.beta2
            corrections[place] = 1 / (1 - first), 1 / (1 - second)
        self._powers = first, second
        return corrections.astype(self._corrections.dtype.numpy)

    def gradient(self, place: int = 0) -> Iterator[Step]:
        """Steps that leave the error of the batch at `place` and the gradient of its mean square in the work arrays."""
        bind, work = self.device.bind, self._work
        x, y = self.inputs, self.targets
        if self.settings.batch is not None:
            x, y = work["x"], work["y"]
            yield bind("batch_rows", self.inputs, self._order, out=x, batch=place)
            yield bind("batch_rows", self.targets, self._order, out=y, batch=place)
        yield bind("gemm_tiled", x, self.state.weights, out=work["product"])
        scale = 2.0 / y.size
        yield bind("softplus_error", work["product"], y, out=(work["error"], work["slope"]), scale=scale)
        yield bind("transpose", x, out=work["xt"])
        yield bind("gemm_tiled", work["xt"], work["slope"], out=work["gradient"])

    def _descend(self, place: int) -> Iterator[Step]:
        """One step; the arrays that it left become the spare ones."""
        yield from self.gradient(place)
        bind, old, new, how = self.device.bind, self.state, self._spare, self.settings
        slope = self._work["gradient"]
        if how.optimiser == "adam":
            yield bind(
                "adam_step", old.weights, slope, old.mean, old.square, self._corrections,
                out=(new.weights, new.mean, new.square),
                place=place, rate=how.rate, beta1=how.beta1, beta2=how.beta2, epsilon=how.epsilon,
            )  # fmt: skip
        else:
            yield bind("axpy", slope, old.weights, out=new.weights, a=-how.rate)
        if how.clamp is not None:
            # Back into the array that the step came from: the next one starts there.
            rows = new.weights.shape[0] - 1
            yield bind("column_clamp", new.weights, out=old.weights, rows=rows, limit=how.clamp)
            old, new = TrainerState(new.weights, old.mean, old.square), TrainerState(old.weights, new.mean, new.square)
        self.state, self._spare = new, old

    def losses(self) -> Loss:
        """A program that computes the loss of the present arrays over all rows."""
        product = self.device.bind("gemm_tiled", self.inputs, self.state.weights)
        missed = self.device.bind("softplus_error", product.outputs[0], self.targets, scale=1.0)
        total = self.device.bind("reduce_sumsq", missed.outputs[0])
        program = self.device.program([product, missed, total], label="loss")
        return Loss(program, total.outputs[0], self.targets.size)

    def read(self, name: str) -> Any:
        """A work array, on the host."""
        return self._work[name].numpy()


@dataclass(frozen=True, eq=False)
class Loss:
    """The mean square of the error over all rows: one number comes back."""

    program: Program
    total: Array
    count: int

    def __call__(self) -> float:
        self.program.run()
        return float(self.total.numpy()[0]) / self.count

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.program.close()
