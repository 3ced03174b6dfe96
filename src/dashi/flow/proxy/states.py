"""What z says of the field behind it: energies of the held modes, correlation with a reference, and the scalars of a z
whose modes were advanced."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from dashi.errors import InputError
from dashi.flow import grid
from dashi.flow.equations import Flow
from dashi.flow.grid import Floats
from dashi.flow.proxy.encode import encode
from dashi.flow.proxy.lowpass import require_z
from dashi.flow.proxy.schema import Schema
from dashi.flow.windows import Windows
from dashi.runtime.device import Device

MOST_STEPS: Final = 1_000_000
"""Steps of dt between two frames of a model."""


def encoded(schema: Schema, windows: Windows, *, device: Device) -> Floats:
    """z (windows, frames, D) of all frames."""
    schema.require_flow(windows.flow)
    kind = windows.flow.numpy_dtype
    return encode(schema, np.asarray(windows.fields, kind), device=device)


def mean_scalar(schema: Schema, z: Floats, name: str) -> float:
    """Mean of a scalar of z over all frames."""
    return float(np.mean(z[..., schema.parts[name]], dtype=np.float64))


def require_start(schema: Schema, z0: Any, kind: Any) -> Floats:
    """The z that a rollout starts from, (m, D), in the element type of the model."""
    states = require_z(schema, z0)
    if states.ndim != 2:
        raise InputError(f"z0 has shape {states.shape}.", f"pass one z for each state: (m, {schema.size}).")
    return np.ascontiguousarray(states, kind)


def require_same_flow(train: Windows, validation: Windows | None) -> None:
    """Refuses to choose on windows of another flow, or with other times between frames."""
    if validation is not None and (validation.flow, validation.interval) != (train.flow, train.interval):
        raise InputError(
            "the validation windows are of another flow than the training windows, or have other times between frames.",
            "make both with the same Flow and interval; their seeds differ.",
        )


def frame_time(windows: Windows) -> float:
    """Flow time between frames."""
    return windows.interval * windows.flow.dt


def steps_of(interval: float, flow: Flow) -> int:
    """Steps of the flow's dt between frames; refuses a time that is no whole number of them, or out of bounds."""
    ratio = interval / flow.dt
    if not 0.5 <= ratio <= MOST_STEPS or abs(round(ratio) * flow.dt - interval) > 1e-9 * interval:
        raise InputError(
            f"frames every {interval:g} are no whole number of steps of {flow.dt:g} from 1 to {MOST_STEPS}.",
            "use a dt that divides the time between frames, or fit the model again.",
        )
    return round(ratio)


def no_progress(_: int) -> None:
    """Ignore progress: the callback where none was given."""


def squares(schema: Schema) -> Floats:
    """k^2 of the held modes, in the units of the box."""
    scale = grid.unit(Flow(schema.n, length=schema.length))
    return (schema.modes**2).sum(axis=1) * (scale * scale)


def power(schema: Schema, z: Floats) -> Floats:
    """|w_k|^2 of the held modes, (..., K), in float64."""
    pairs = np.asarray(z[..., schema.parts["modes"]], np.float64)
    return pairs[..., 0::2] ** 2 + pairs[..., 1::2] ** 2


def with_updated_scalars(schema: Schema, z0: Floats, modes: Floats) -> Floats:
    """z (m, frames, D) of modes (m, frames, 2 K) that started as those of z0, whose first frame is z0 itself.

    What the modes gain or lose in energy and enstrophy the totals do too; what z does not hold stays as it was.
    """
    held, low = schema.parts["modes"], len(schema.low)
    z = np.empty((*modes.shape[:2], schema.size), modes.dtype)
    z[..., held] = modes
    with np.errstate(all="ignore"):
        now = power(schema, z)
        gained = now - now[:, :1]
        energy = gained / squares(schema)
        changes = {"energy": energy.sum(axis=-1), "enstrophy": gained.sum(axis=-1)}
        changes |= {"mid_energy": energy[..., low:].sum(axis=-1), "high_energy": np.zeros(modes.shape[:2])}
        for name, change in changes.items():
            z[..., schema.parts[name]] = (z0[:, None, schema.parts[name]] + change[..., None]).astype(modes.dtype)
    z[:, 0] = z0
    return z


def correlations(schema: Schema, z: Floats, reference: Floats) -> Floats:
    """The correlation of the lowpass field of z with the whole field of a reference z, (...): both have mean 0, and a
    z knows its field's enstrophy."""
    held = schema.parts["modes"]
    with np.errstate(all="ignore"):
        ours, theirs = (np.asarray(values[..., held], np.float64) for values in (z, reference))
        enstrophy = np.asarray(reference[..., schema.parts["enstrophy"]], np.float64)[..., 0]
        sizes = np.sqrt(2 * (ours * ours).sum(axis=-1) * 2 * enstrophy)
        correlation = 2 * (ours * theirs).sum(axis=-1) / np.where(sizes > 0, sizes, 1.0)
    return np.where(np.isfinite(correlation), correlation, 0.0)


def validation_score(schema: Schema, z: Floats, reference: Floats) -> float:
    """The score that choices are made by: the mean over windows of the time, in frames, that the correlation stays
    above 1/2, counted in full where it is 1 and less and less down to 1/2; after it fell below once, nothing counts."""
    correlation = correlations(schema, z, reference)
    alive = np.logical_and.accumulate(correlation >= 0.5, axis=-1)
    return float((np.where(alive, 2 * correlation - 1, 0.0)).sum(axis=-1).mean())
