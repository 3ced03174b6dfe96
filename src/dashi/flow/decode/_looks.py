"""What observers look at: small sums, whole fields, pictures. Bound only when somebody asks."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt

from dashi.flow.decode import _tables as tables
from dashi.flow.decode._pipeline import DecodePipeline
from dashi.kernels.view.images import pack, unpack
from dashi.runtime.array import Array
from dashi.runtime.device import AnyStep, Step
from dashi.types import HostArray

_STOPS: Final = ((5, 48, 97), (67, 147, 195), (247, 247, 247), (214, 96, 77), (103, 0, 31))
"""Blue for negative vorticity, white for none, red for positive; both ends are as dark."""


class Looks:
    """Binds what is measured of the field and the mask of a pipeline."""

    def __init__(self, pipeline: DecodePipeline) -> None:
        self._pipeline = pipeline
        device, schema, kind = pipeline.device, pipeline.schema, pipeline.settings.numpy_dtype
        n, members = schema.n, pipeline.members
        self._weights = device.array(tables.looks(schema).astype(kind))
        self._modes = device.empty((members, n, n // 2 + 1, 2), kind)

    def steps(self, field: Array, mask: Array, sums: Array, counts: Array) -> list[AnyStep]:
        """The steps that fill `sums` (`tables.LOOKS` of every member) and `counts` (sites that are +1 and -1)."""
        device = self._pipeline.device
        return [
            self._pipeline.transforms.forward(field, self._modes),
            device.bind("band_energies", self._modes, self._weights, out=sums),
            device.bind("trit_counts", mask, out=counts),
        ]


class Pictures:
    """Binds the colours of the fields of a pipeline, from -span to span."""

    def __init__(self, pipeline: DecodePipeline, span: float) -> None:
        self._pipeline, self.span = pipeline, span
        self._colours = pipeline.device.array(diverging())

    def steps(self, field: Array, pixels: Array) -> list[Step]:
        """The steps that fill `pixels` (members n, n), one member below another."""
        device = self._pipeline.device
        rows = device.part(field, 0, pixels.shape)
        return [device.bind("colour_map", rows, self._colours, out=pixels, lo=-self.span, hi=self.span)]

    def pictures(self, pixels: HostArray) -> npt.NDArray[np.uint8]:
        """(members, n, n, 3) of what came back: red, green, blue."""
        n = self._pipeline.schema.n
        return np.ascontiguousarray(unpack(pixels).reshape(-1, n, n, 4)[..., :3])


def diverging() -> npt.NDArray[np.uint32]:
    """A table of 256 colours for values of both signs."""
    stops = np.array(_STOPS, np.float64)
    at = np.linspace(0, len(stops) - 1, 256)
    rgb = np.stack([np.interp(at, np.arange(len(stops)), stops[:, c]) for c in range(3)], axis=1)
    channels: Any = np.concatenate([np.floor(rgb + 0.5), np.full((256, 1), 255.0)], axis=1).astype(np.uint8)
    return pack(channels)


def nice_span(least: float, most: float) -> float:
    """The end of a scale of colours that holds these values: a number of two digits."""
    peak = max(abs(least), abs(most))
    if not np.isfinite(peak) or peak < 1e-30:
        return 1.0
    unit = 10.0 ** (np.floor(np.log10(peak)) - 1)
    return float(np.ceil(peak / unit) * unit)
