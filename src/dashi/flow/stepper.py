"""A flow as a function: states in, states out, as many steps as asked for."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from dashi.errors import NonFiniteError, ShapeError
from dashi.flow._operator import Vorticity
from dashi.flow.equations import Flow
from dashi.flow.grid import Floats
from dashi.kernels.portable import canon
from dashi.runtime.device import Device
from dashi.runtime.select import open_device


def stepper(
    flow: Flow, device: Device | str, members: int = 1, *, stop_on_nonfinite: bool = True
) -> Callable[[Floats], Floats]:
    """The function that advances states (members, n, n/2 + 1, 2) by one step of dt on a device: NumPy in, NumPy out.

    The step is recorded once. For many steps `simulate` is faster: nothing comes back between them. A device that is
    named is opened for the function, and closed with it. Values that are not finite are a NonFiniteError.
    """
    if not isinstance(device, Device):
        device = open_device(device)
    operator = Vorticity(flow)
    shape = (members, *operator.shape)
    source, target = (device.empty(shape, flow.numpy_dtype) for _ in range(2))
    program = device.program(operator.step(device, operator.load(device), source, target), label="flow step")

    def step(states: Floats) -> Floats:
        batch = np.asarray(states, flow.numpy_dtype).reshape(-1, *operator.shape)
        if batch.shape != shape:
            raise ShapeError(
                f"the states have shape {np.shape(states)}, this stepper takes {shape}.",
                f"make one for them: stepper(flow, device, members={len(batch)}).",
            )
        device.write(source, canon(batch))
        program.run()
        after = target.numpy()
        if stop_on_nonfinite and not np.isfinite(after).all():
            raise NonFiniteError(
                "the flow blew up: its states are not finite after this step.",
                f"use a smaller dt than {flow.dt:g}, or more viscosity than nu = {flow.nu:g}.",
            )
        return after.reshape(np.shape(states))

    return step
