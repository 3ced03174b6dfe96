"""Large-eddy simulation as a degenerate chart: two flows that it cannot tell apart.

A chart maps flows to states of a model. That of a filtered model is the filtered field: two fields that differ below
the filter scale alone have one image, so the model gives them one future, whatever its closure is. Their true futures
differ. A chart that keeps fine structure, such as the sign of the fine vorticity where it is strong, tells them apart.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, Literal

import numpy as np

from dashi.errors import InputError
from dashi.flow import grid
from dashi.flow.equations import Flow
from dashi.flow.evaluation.scores import Spectra, correlation
from dashi.flow.grid import Floats, to_field
from dashi.flow.initial import ensemble
from dashi.flow.proxy.encode import choose_anchors, encode
from dashi.flow.proxy.schema import Schema
from dashi.flow.simulation import simulate
from dashi.runtime.device import Device

Twin = Literal["flip", "move"]
TWINS: Final[tuple[Twin, ...]] = ("flip", "move")
"""How the second field is made of the first: its fine part with the other sign, or moved by half a box. Both keep every
mode's size, so spectra, energies and enstrophies are the same on all scales."""
ANCHORS: Final = 32


@dataclass(frozen=True, eq=False)
class DegenerateChart:
    """Two fields, one filtered field, and what follows."""

    flow: Flow
    coarse: Flow
    """The filtered model: the solver on a coarse grid, with Smagorinsky's viscosity."""
    fields: Floats
    """The two, (2, n, n)."""
    filtered: Floats
    """Their filtered fields, (2, m, m) on the coarse grid: the same bits."""
    fine: Floats
    """What the filter takes away, (2, n, n)."""
    trits: Floats
    """The ternary chart of the fine part, (2, n, n) of int8: its sign where it is strong, else 0."""
    anchors: Floats
    """The strongest modes just below the filter scale, as z keeps them, (2, 2 x anchors)."""
    observables: Mapping[str, tuple[float, float]]
    """Fine observables of the two."""
    spectrum: Floats
    """Energy by shells of both, (2, shells)."""
    times: Floats
    apart: Floats
    """Correlation of the two true futures after filtering, (frames,)."""
    model: Floats
    """Correlation of the model's one future with each of the true ones, filtered, (2, frames)."""
    one_future: bool
    """Whether the model's futures from the two have the same bits in every frame."""
    futures: Floats
    """The filtered true fields at the end, and the model's, (3, m, m)."""

    @property
    def one_image(self) -> bool:
        """Whether the filtered fields have the same bits."""
        return bool(np.array_equal(self.filtered[0], self.filtered[1]))

    @property
    def trits_apart(self) -> float:
        """The fraction of points, of those where either ternary chart is not 0, in which they differ."""
        a, b = self.trits
        strong = int(np.count_nonzero((a != 0) | (b != 0)))
        return int(np.count_nonzero(a != b)) / max(1, strong)

    @property
    def anchors_apart(self) -> float:
        """The distance of the anchors, over their size."""
        a, b = self.anchors.astype(np.float64)
        return float(np.linalg.norm(a - b) / np.linalg.norm(a))


def les_chart(
    flow: Flow, *, device: Device, coarse: int = 32, cs: float = 0.17, seed: int = 0, twin: Twin = "flip",
    spin_up: int = 100, steps: int = 400, interval: int = 20, host_fft: bool = False,
    options: Mapping[str, Any] | None = None,
) -> DegenerateChart:  # fmt: skip
    """The two flows and the filtered model of both; the filter keeps the modes of a grid of `coarse` points a side."""
    if twin not in TWINS:
        raise InputError(f"there is no twin {twin!r}.", f"use one of {', '.join(TWINS)}.")
    if not coarse < flow.n or steps % interval or steps < interval:
        raise InputError(
            f"coarse = {coarse} at n = {flow.n}, {steps} steps with a frame every {interval}.",
            "use a coarse grid with fewer points than the flow, and a multiple of the interval.",
        )
    filtering = replace(flow, n=coarse, smagorinsky=cs)
    start = ensemble(flow, "random", [seed], **(options or {}))
    first = simulate(flow, start, spin_up, device=device, host_fft=host_fft).state[0] if spin_up else start[0]
    states = np.stack([first, _twin(first, flow.n, coarse, twin)])
    small = np.stack([filtered(state, coarse) for state in states])
    true = _film(flow, states, steps, interval, device, host_fft)
    model = _film(filtering, small, steps, interval, device, host_fft)
    below = np.stack([[filtered_field(frame, coarse) for frame in film] for film in true])
    return DegenerateChart(
        flow, filtering, to_field(states), to_field(small), to_field(_fine(states, flow.n, coarse)),
        trits=ternary(to_field(_fine(states, flow.n, coarse))),
        anchors=_anchors(flow, filtering, to_field(states), device),
        observables=_observables(flow, states, coarse),
        spectrum=Spectra(flow).of(to_field(states))[0],
        times=np.arange(steps // interval + 1) * (interval * flow.dt),
        apart=correlation(below[0], below[1]),
        model=np.stack([correlation(model[0], future) for future in below]),
        one_future=bool(np.array_equal(model[0], model[1])),
        futures=np.stack([below[0, -1], below[1, -1], model[0, -1]]),
    )  # fmt: skip


def filtered(state: Floats, coarse: int) -> Floats:
    """The modes of a state (n, n/2 + 1, 2) that a coarse grid keeps, as a state of that grid."""
    k = (coarse - 1) // 3
    kept_modes = np.zeros((coarse, coarse // 2 + 1, 2), state.dtype)
    kept_modes[: k + 1, : k + 1] = state[: k + 1, : k + 1]
    kept_modes[-k:, : k + 1] = state[-k:, : k + 1]
    return kept_modes


def filtered_field(field: Floats, coarse: int) -> Floats:
    """A field (n, n) filtered to a coarse grid."""
    return to_field(filtered(grid.to_modes(field), coarse)).astype(field.dtype)


def ternary(fine: Floats, least: float = 1.0) -> Floats:
    """The sign of fields (..., n, n) where they are larger than `least` times their root mean square, else 0, as int8:
    support and sign of what is strong, the simplest chart that keeps fine structure."""
    size = np.sqrt(np.mean(np.square(fine, dtype=np.float64), axis=(-2, -1), keepdims=True))
    return (np.sign(fine) * (np.abs(fine) > least * size)).astype(np.int8)


def _coarse_modes(n: int, coarse: int) -> Any:
    """The modes of the half spectrum of n points that a coarse grid keeps."""
    return (3 * np.abs(grid.rows(n))[:, None] < coarse) & (3 * grid.columns(n)[None, :] < coarse)


def _fine(states: Floats, n: int, coarse: int) -> Floats:
    return np.where(_coarse_modes(n, coarse)[..., None], states.dtype.type(0), states)


def _twin(state: Floats, n: int, coarse: int, twin: Twin) -> Floats:
    """A state whose modes are unchanged where the coarse grid keeps them; elsewhere they have the other sign, or are
    moved by half a box along both axes."""
    odd = (grid.rows(n)[:, None] + grid.columns(n)[None, :]) % 2 == 1
    sign = np.where(np.ones_like(odd) if twin == "flip" else odd, -1.0, 1.0)
    turned = state * sign.astype(state.dtype)[..., None]
    return np.where(_coarse_modes(n, coarse)[..., None], state, turned)


def _film(flow: Flow, states: Floats, steps: int, interval: int, device: Device, host_fft: bool) -> Floats:
    """Vorticity of all frames, (members, frames, n, n)."""
    frames: list[Floats] = []

    def keep(_: int, fields: Mapping[str, Floats]) -> None:
        frames.append(fields["vorticity"].copy())

    simulate(
        flow,
        states,
        steps,
        device=device,
        frame_every=interval,
        look_every=min(100, steps),
        frame=keep,
        host_fft=host_fft,
    )
    return np.stack(frames, axis=1)


def _anchors(flow: Flow, coarse: Flow, fields: Floats, device: Device) -> Floats:
    # The filter keeps a square of modes; anchors are looked for outside of the circle round it.
    schema = Schema(flow.n, min(math.sqrt(2) * coarse.cut, flow.cut - 1.0), length=flow.length)
    schema = choose_anchors(schema, fields[:1], min(ANCHORS, len(schema.mid)), device=device)
    return encode(schema, fields, device=device)[:, schema.parts["anchors"]]


def _observables(flow: Flow, states: Floats, coarse: int) -> dict[str, tuple[float, float]]:
    """Numbers that depend on the fine part beyond its spectrum."""
    fields, fine = (to_field(modes).astype(np.float64) for modes in (states, _fine(states, flow.n, coarse)))
    values = {
        "largest vorticity": fields.max(axis=(1, 2)),
        "smallest vorticity": fields.min(axis=(1, 2)),
        "skewness of vorticity": (fields**3).mean(axis=(1, 2)) / (fields**2).mean(axis=(1, 2)) ** 1.5,
        "mean of fine vorticity where the coarse is positive": _conditional(fields - fine, fine),
        "fine vorticity at the strongest vortex": _at_vortex(fields - fine, fine),
    }
    return {name: (float(a), float(b)) for name, (a, b) in values.items()}


def _conditional(coarse: Floats, fine: Floats) -> Floats:
    return np.array([float(f[c > 0].mean()) for c, f in zip(coarse, fine, strict=True)])


def _at_vortex(coarse: Floats, fine: Floats) -> Floats:
    return np.array([float(f.flat[int(np.abs(c).argmax())]) for c, f in zip(coarse, fine, strict=True)])
