"""The stages of a decode on one device: tables and arrays made once, steps bound to them."""

from __future__ import annotations

from typing import Any

import numpy as np

from dashi.errors import InputError
from dashi.flow.decode import _tables as tables
from dashi.flow.decode._transforms import FieldTransforms
from dashi.flow.decode.settings import GATES, Settings
from dashi.flow.decode.statistics import Statistics
from dashi.flow.grid import Floats
from dashi.flow.proxy.lowpass import Lowpass
from dashi.flow.proxy.schema import Schema
from dashi.runtime.array import Array
from dashi.runtime.device import AnyStep, Device, Step


class DecodePipeline:
    """Binds the stages that make `field` and `mask` of z (members, D)."""

    def __init__(
        self, schema: Schema, device: Device, settings: Settings, members: int, statistics: Statistics | None,
        fft_device: Device | None = None,
    ) -> None:  # fmt: skip
        self.schema, self.device, self.settings, self.members = schema, device, settings, members
        n, kind = schema.n, settings.numpy_dtype
        self._lowpass = Lowpass(schema, device, kind)
        self.transforms = FieldTransforms(device, n, kind, fft_device)
        self.spectrum = self._modes()
        self.low = self._field()
        self.detail = self._field()
        self.rough = device.empty((members, n, n), np.int8)
        self.mask = device.empty((members, n, n), np.int8)
        self.peaks = device.empty((members,), kind)
        self.field = self.low
        if settings.draws:
            self._residual(statistics)

    def _modes(self) -> Array:
        n = self.schema.n
        return self.device.empty((self.members, n, n // 2 + 1, 2), self.settings.numpy_dtype)

    def _field(self) -> Array:
        return self.device.empty((self.members, self.schema.n, self.schema.n), self.settings.numpy_dtype)

    def _residual(self, statistics: Statistics | None) -> None:
        device, kind = self.device, self.settings.numpy_dtype
        amplitude = amplitudes(self.schema, self.settings, statistics)
        self._amplitude = device.array(amplitude.astype(kind))
        self._band = device.array(tables.bands(self.schema))
        self._band_weights = device.array(tables.band_weights(self.schema).astype(kind))
        self.keys = device.array(np.array([self.settings.seed, 0], np.uint32))
        self.drawn, self.scaled = self._modes(), self._modes()
        self.drawn_energy = device.empty((self.members, 2), kind)
        self.present_energy = device.array(np.zeros((self.members, 2), kind))
        self.residual, self.field = self._field(), self._field()

    def stages(self, z: Array, field: Array | None = None, mask: Array | None = None) -> dict[str, list[AnyStep]]:
        """The steps of every stage, by its name, in their order. They leave the field and the mask in arrays of the
        caller's, where those are passed."""
        bind, s = self.device.bind, self.settings
        field, mask = self.field if field is None else field, self.mask if mask is None else mask
        low = self.low if s.draws else field
        stages: dict[str, list[AnyStep]] = {
            "scatter": [*self._lowpass.state_steps(z, self.spectrum)],
            "ifft_lp": [self.transforms.back(self.spectrum, low)],
            "smooth": [bind("box_smooth", low, out=self.detail, radius=s.radius, detail=1)],
            "threshold": [
                bind("ternary_relative", self.detail, out=(self.rough, self.peaks), tau=s.tau, eps=s.eps),
            ],
            "majority": [bind("majority_rounds", self.rough, out=mask, rounds=s.rounds, eta=s.eta)],
        }
        return stages | self._residual_stages(z, field, mask) if s.draws else stages

    def _residual_stages(self, z: Array, field: Array, mask: Array) -> dict[str, list[AnyStep]]:
        bind, s = self.device.bind, self.settings
        gaussian = int(s.residual == "statistics")
        first = self.schema.parts["mid_energy"].start
        energies = (self.drawn_energy, self.present_energy)
        return {
            "synth": [
                bind(
                    "residual_draw", self._amplitude, self.keys, out=self.drawn,
                    members=self.members, gaussian=gaussian,
                ),
                bind("band_energies", self.drawn, self._band_weights, out=self.drawn_energy),
                *self._present(),
                bind("band_scale", self.drawn, self._band, *energies, z, out=self.scaled, first=first),
            ],
            "ifft_resid": [self.transforms.back(self.scaled, self.residual)],
            "combine": [
                bind("gated_sum", self.low, self.residual, mask, out=field, gate=GATES.index(s.gate))
            ],
        }  # fmt: skip

    def _present(self) -> list[Step]:
        """The energies that z brings into the bands: those of anchors, nothing where there are none."""
        if not self.schema.anchors:
            return []
        return [self.device.bind("band_energies", self.spectrum, self._band_weights, out=self.present_energy)]


def amplitudes(schema: Schema, settings: Settings, statistics: Statistics | None) -> Floats:
    """The sizes of drawn modes before they are scaled: of each band only the shape counts."""
    drawn = tables.bands(schema) > 0
    if settings.residual == "seeded":
        return np.where(drawn, 1.0, 0.0)
    if statistics is None:
        raise InputError(
            "a residual of statistics needs those of training data.",
            "pass statistics=fit_statistics(schema, fields), or use the residual seeded.",
        )
    made: Any = np.where(drawn, statistics.amplitude(schema), 0.0)
    return made / max(float(made.max()), 1e-300)
