"""Fields with a synthetic residual, scored by their spectrum alone.

Fine structure that is drawn at random has the right energy in the wrong places: it lowers correlation and raises L2,
however good its spectrum is. So neither is computed: those scores are not numbers, and tables show a dash.
"""

from __future__ import annotations

import math
import time
from dataclasses import replace

import numpy as np

from dashi.errors import InputError, ShapeError
from dashi.flow._resample import resample
from dashi.flow.decode import Decoder
from dashi.flow.evaluation.result import THRESHOLDS, Failure, Line
from dashi.flow.evaluation.scores import Reference, carried_shells, spectrum_error
from dashi.flow.grid import Floats
from dashi.flow.proxy.encode import encode
from dashi.flow.proxy.model import Model
from dashi.flow.windows import Windows
from dashi.runtime.device import Device


def score_residual(
    name: str, numbers: int, fields: Floats, windows: Windows, *, up_to: float | None = None, story: str = ""
) -> Line:
    """The line of decoded fields (windows, frames, n, n), over the shells up to `up_to` (all, unless told)."""
    if fields.shape != windows.fields.shape:
        raise ShapeError(
            f"the decoded fields have shape {fields.shape}, the windows {windows.fields.shape}.",
            "decode every frame of every window on the windows' grid.",
        )
    reference = Reference(windows.flow, windows.fields)
    spectra = reference.spectra
    carried = slice(1, None) if up_to is None else carried_shells(up_to, spectra.count)
    parts = [spectra.of(window) for window in fields]
    energy = np.stack([part[0] for part in parts])
    unscored = np.full(fields.shape[:2], math.nan)
    failures: tuple[Failure, ...] = ("none",) * len(windows)
    return Line(
        model=name,
        numbers=numbers,
        correlation=unscored,
        relative_l2=unscored,
        energy=energy.sum(-1),
        enstrophy=np.stack([part[1] for part in parts]).sum(-1),
        spectrum_error=spectrum_error(energy, reference.measured[0], carried),
        admissible=np.asarray(np.isfinite(fields).all(axis=(-2, -1)), np.float64),
        horizons={threshold: np.full(len(windows), math.nan) for threshold in THRESHOLDS},
        failures=failures,
        spectrum=energy[:, -1].mean(0),
        story=story or "scored by its spectrum alone: its fine structure is drawn, not predicted",
    )


def residual_line(name: str, model: Model, windows: Windows, *, device: Device, residual: str = "seeded") -> Line:
    """The line of a model whose rollout is decoded with a synthetic residual, another one for each frame."""
    schema = model.schema
    z0 = encode(schema, np.ascontiguousarray(resample(windows.fields[:, 0], schema.n)), device=device)
    every = round(windows.interval * windows.flow.dt / model.interval)
    began = time.perf_counter()
    z = model.advance(z0, (windows.frames - 1) * every, device=device)[:, ::every]
    seconds = time.perf_counter() - began
    if not np.isfinite(z).all():
        raise InputError(f"the rollout of {name} does not stay finite.", "leave the residual away.")
    decoder = Decoder(schema, device, members=len(windows), residual=residual, dtype=z.dtype.name)
    fields = np.empty_like(windows.fields)
    for frame in range(windows.frames):
        decoded = decoder.decode(np.ascontiguousarray(z[:, frame]), "snapshots", frame=frame)
        assert decoded is not None
        assert decoded.fields is not None
        fields[:, frame] = resample(decoded.fields, windows.flow.n)
    made = score_residual(f"{name} + {residual} residual", model.state_size, fields, windows)
    return replace(made, seconds=seconds, device=model.where(device, len(windows)))
