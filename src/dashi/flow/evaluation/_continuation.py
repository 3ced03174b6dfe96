"""The data of the canonical figure: reference energy, energy of its proxy, and the proxy left alone."""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from dashi.flow._resample import resample
from dashi.flow.evaluation.result import Evaluation
from dashi.flow.evaluation.scores import Spectra
from dashi.flow.grid import Floats
from dashi.flow.proxy.encode import encode
from dashi.flow.proxy.lowpass import decode
from dashi.flow.proxy.model import Model
from dashi.flow.windows import Windows
from dashi.runtime.device import Device

ENERGIES: Final = ("times", "reference", "proxy", "alone")
"""The arrays of the figure, in their order in files."""


def continuation(
    evaluation: Evaluation, model: Model, windows: Windows, *, device: Device, window: int = 0
) -> dict[str, Floats]:
    """Energies of one window over time: `times`, `reference` (energy of the full field), `proxy` (of the
    modes of it that z holds) and `alone` (of the model from the first frame on, past the end of the reference as far as
    it was rolled out). Where there is no reference, `reference` and `proxy` are not numbers."""
    line = evaluation.line(model.name)
    more = line.continued.shape[1] if line.continued.size else 0
    fields = np.ascontiguousarray(resample(windows.fields[window], model.schema.n))
    held = decode(model.schema, encode(model.schema, fields, device=device), device=device)
    energy = Spectra(windows.flow).of(resample(held, windows.flow.n))[0].sum(-1)
    gap = np.full(more, math.nan)
    distance = float(evaluation.times[1] - evaluation.times[0])
    return {
        "times": np.concatenate([evaluation.times, evaluation.times[-1] + distance * np.arange(1, more + 1)]),
        "reference": np.concatenate([evaluation.energy[window], gap]),
        "proxy": np.concatenate([energy, gap]),
        "alone": np.concatenate([line.energy[window], line.continued[window] if more else gap]),
    }
