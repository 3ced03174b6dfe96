"""How a simulation lies on disk: the arrays of its store, with their axes, units and meanings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from dashi.core.rollouts._state_files import BITS
from dashi.flow._derived_fields import UNITS
from dashi.flow._diagnostics import shell_count
from dashi.flow._fields import Variable, series_variable
from dashi.flow.equations import Flow

_MEANINGS: Final = {
    "vorticity": "vorticity", "streamfunction": "streamfunction", "velocity_x": "velocity along x",
    "velocity_y": "velocity along y", "strain_normal": "twice the normal strain, 2 du/dx",
    "strain_shear": "shear strain, du/dy + dv/dx", "pressure": "pressure over density",
}  # fmt: skip
TOTALS: Final = {"energy": "L^2/T^2", "enstrophy": "1/T^2", "palinstrophy": "1/(L^2 T^2)"}
SPECTRA: Final = {"energy_spectrum": "L^2/T^2", "enstrophy_spectrum": "1/T^2"}
TRANSFER: Final = {"energy_transfer": "L^2/T^3"}


@dataclass(frozen=True)
class FlowStrides:
    """Steps between two looks, frames, hashes and kept states of a simulation; 0 is never. Digests of kept states have
    so many bits."""

    look: int = 0
    frame: int = 0
    hash: int = 0
    states: int = 0
    bits: int = BITS[0]


@dataclass(frozen=True, eq=False)
class TrajectoryLayout:
    """The arrays of the store of a simulation of so many members."""

    flow: Flow
    members: int
    fields: Sequence[str]
    every: FlowStrides
    transfer: bool

    @property
    def shells(self) -> int:
        """Shells of its spectra; none where nothing is looked at."""
        return shell_count(self.flow) if self.every.look else 0

    @property
    def variables(self) -> dict[str, Variable]:
        """All arrays by name."""
        return self._coordinates() | self._frames() | (self._series() if self.every.look else {})

    def _coordinates(self) -> dict[str, Variable]:
        n = self.flow.n
        variables = {
            axis: Variable((axis,), "float64", (n,), {"units": "L", "long_name": f"position along {axis}"})
            for axis in ("x", "y")
        }
        variables["member"] = Variable(("member",), "int64", (self.members,), {"long_name": "seed of the member"})
        variables["time"] = series_variable("time", (), (), "float64", units="T", long_name="time since the start")
        variables["step"] = series_variable("time", (), (), "int64", units="1", long_name="steps done")
        return variables

    def _frames(self) -> dict[str, Variable]:
        shape = (self.members, self.flow.n, self.flow.n)
        return {
            name: Variable(("member", "y", "x"), self.flow.dtype, shape, _attributes(name), "time")
            for name in self.fields
        }

    def _series(self) -> dict[str, Variable]:
        count = self.shells
        wave = Variable(("wavenumber",), "float64", (count,), {"units": "1/L", "long_name": "wave number of a shell"})
        grows, members = "time_look", self.members
        variables = {
            "wavenumber": wave,
            "time_look": series_variable(grows, (), (), "float64", units="T", long_name="time of a look"),
            "courant": series_variable(grows, (), (), "float64", units="1", long_name="dt max(|u| + |v|) / dx"),
        }
        for name, units in TOTALS.items():
            variables[name] = series_variable(
                grows, ("member",), (members,), "float64", units=units, long_name=f"{name} per area"
            )
        for name, units in (SPECTRA | (TRANSFER if self.transfer else {})).items():
            variables[name] = series_variable(
                grows, ("member", "wavenumber"), (members, count), "float64", units=units,
                long_name=name.replace("_", " ") + ", per shell",
            )  # fmt: skip
        return variables


def _attributes(name: str) -> dict[str, str]:
    return {"units": UNITS[name], "long_name": _MEANINGS[name]}
