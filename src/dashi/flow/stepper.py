"""A flow as a function: states in, states out, as many steps as asked for."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from dashi.errors import ShapeError
from dashi.flow.equations import Flow
from dashi.flow.grid import Floats
from dashi.flow.operator import Vorticity
from dashi.kernels.portable import canon
from dashi.runtime.device import Device


def stepper(flow: Flow, device: Device, members: int = 1) -> Callable[[Floats], Floats]:
    """The function that advances states (members, n, n/2 + 1, 2) by one step of dt on a device: NumPy in, NumPy out.

    The step is recorded once. For many steps `simulate` is faster: nothing comes back between them.
    """
    operator = Vorticity(flow)
    shape = (members, *operator.shape)
    source, target = (device.empty(shape, flow.kind) for _ in range(2))
    program = device.program(operator.step(device, operator.load(device), source, target), label="flow step")

    def step(states: Floats) -> Floats:
        given = np.asarray(states, flow.kind).reshape(-1, *operator.shape)
        if given.shape != shape:
            raise ShapeError(
                f"the states have shape {np.shape(states)}, this stepper takes {shape}.",
                f"make one for them: stepper(flow, device, members={len(given)}).",
            )
        device.write(source, canon(given))
        program.run()
        return target.numpy().reshape(np.shape(states))

    return step
