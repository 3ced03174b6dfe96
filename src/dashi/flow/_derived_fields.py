"""Fields that follow from the states of a flow, made on the device: vorticity, velocity, strains, pressure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from dashi.core.rollouts.observer import Context
from dashi.errors import InputError, ShapeError
from dashi.flow._operator import DeviceTables, numbers_of, tables
from dashi.flow.equations import Flow
from dashi.runtime.array import Array
from dashi.runtime.device import Device, Step

DERIVED: Final = (
    "vorticity", "streamfunction", "velocity_x", "velocity_y", "strain_normal", "strain_shear", "pressure",
)  # fmt: skip
"""Fields that can be asked for. Strains are 2 u_x and u_y + v_x; pressure is over density, with mean 0."""
UNITS: Final = {
    "vorticity": "1/T", "streamfunction": "L^2/T", "velocity_x": "L/T", "velocity_y": "L/T", "strain_normal": "1/T",
    "strain_shear": "1/T", "pressure": "L^2/T^2",
}  # fmt: skip


def require_fields(names: Sequence[str]) -> None:
    """Refuses fields that are not known."""
    for name in names:
        if name not in DERIVED:
            raise InputError(f"there is no field {name!r}.", f"ask for some of {', '.join(DERIVED)}.")


def require_states_of(flow: Flow, context: Context) -> None:
    """Refuses a run whose states are not those of the flow."""
    shape = (flow.n, flow.modes, 2)
    if context.shape[1:] != shape or context.operator.dtype != flow.numpy_dtype:
        raise ShapeError(
            f"the run has states of shape {context.shape[1:]} and {context.operator.dtype}, the flow's have {shape} "
            f"and {flow.dtype}.",
            "observe runs of this flow.",
        )


def flow_tables(flow: Flow, context: Context) -> DeviceTables:
    """The tables of the flow's grid on a run's device: those of its operator, if that is the flow's."""
    loaded = context.constants
    return loaded if isinstance(loaded, DeviceTables) else DeviceTables(context.device, tables(flow))


class FieldReader:
    """Binds the steps that make fields (members, fields, n, n) of states. Readers with the same `work` share what lies
    between."""

    def __init__(self, flow: Flow, device: Device, loaded: DeviceTables, names: Sequence[str], work: str) -> None:
        self._flow, self._device, self._loaded, self._work = flow, device, loaded, work
        self._kinds = device.array(numbers_of(names))

    def steps(self, states: Array, out: Array) -> list[Step]:
        """The steps that fill `out`."""
        loaded, device = self._loaded, self._device
        members, n, modes, _ = states.shape
        fields = self._kinds.size
        spectra = loaded.work(f"{self._work}_spectra", (members, fields, n, modes, 2), self._flow.numpy_dtype)
        waves = (loaded["wave_x"], loaded["wave_y"], loaded["inverse"])
        return [
            device.bind("spectral_fields", states, *waves, self._kinds, out=spectra),
            device.bind(
                "irfft2",
                device.part(spectra, 0, (members * fields, n, modes, 2)),
                *(loaded["twiddles"], loaded["twiddles_columns"]),
                out=device.part(out, 0, (members * fields, n, n)),
            ),
        ]


class PressureReader:
    """Binds the steps that make the pressure (members, 1, n, n) of states: lap p = (w^2 - |S|^2) / 2, taken apart into
    modes and divided by -k^2."""

    def __init__(self, flow: Flow, device: Device, loaded: DeviceTables) -> None:
        self._flow, self._device, self._loaded = flow, device, loaded
        parts = ("vorticity", "strain_normal", "strain_shear")
        self._parts = {name: FieldReader(flow, device, loaded, (name,), f"frame_{name}") for name in parts}
        self._pressure = FieldReader(flow, device, loaded, ("pressure",), "frame_pressure")

    def steps(self, states: Array, out: Array) -> list[Step]:
        """The steps that fill `out`."""
        device, loaded, kind = self._device, self._loaded, self._flow.numpy_dtype
        members, n, modes, _ = states.shape
        shape = (members, 1, n, n)
        values = {name: loaded.work(f"frame_{name}_values", shape, kind) for name in self._parts}
        source = loaded.work("frame_source", shape, kind)
        turned = loaded.work("frame_turned", (members, n, modes, 2), kind)
        return [
            *(step for name, reader in self._parts.items() for step in reader.steps(states, values[name])),
            device.bind("strain_source", *values.values(), out=source),
            device.bind(
                "rfft2",
                device.part(source, 0, (members, n, n)),
                *(loaded["twiddles"], loaded["twiddles_columns"]),
                out=turned,
                modes=modes,
                scale=1.0 / (n * n),
            ),
            *self._pressure.steps(turned, out),
        ]
