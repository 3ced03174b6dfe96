"""The picture of a rollout of a wave. Needs the extra `plot`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from dashi.io._files import write_atomic
from dashi.report._style import plot_module
from dashi.types import HostArray


def draw_wave(file: Path, first: HostArray, norms: Sequence[float], every: int, summary: Mapping[str, Any]) -> None:
    """The first states (steps + 1, sites) as a space-time picture, and how well the norm, which is that of every so
    many steps, is kept over the whole run."""
    figure = plot_module("matplotlib.figure").Figure(figsize=(10, 7.2), dpi=150, layout="constrained")
    space, norm = figure.subplots(2, 1, height_ratios=[3, 1])
    states = np.asarray(first, dtype=np.float64)
    limit = float(np.abs(states).max()) * 0.8 or 1.0
    image = space.imshow(
        states.T, aspect="auto", origin="lower", cmap="RdBu_r", vmin=-limit, vmax=limit, interpolation="nearest"
    )
    space.set_xlabel("step")
    space.set_ylabel("site")
    space.set_title(f"State of z' = z A over the first {len(states) - 1} steps", loc="left", fontsize=11)
    figure.colorbar(image, ax=space, label="z", pad=0.01)
    start = float(np.sqrt(np.sum(states[0] ** 2)))
    steps = np.arange(1, len(norms) + 1) * every
    norm.plot(steps, (np.asarray(norms) / start - 1) * 1e6, color="#2166ac", linewidth=1.2)
    norm.axhline(0, color="0.7", linewidth=0.8, zorder=0)
    norm.set_xlabel("step")
    norm.set_ylabel("norm, change (1e-6)")
    norm.set_title("How well fp32 keeps the norm", loc="left", fontsize=11)
    norm.margins(x=0)
    for side in ("top", "right"):
        norm.spines[side].set_visible(False)
    figure.suptitle(
        f"{summary['steps']:,} steps on {summary['device']['name']}, {summary['us_per_step']:.2f} us per step\n"
        f"{summary['verified']}, hash {summary['hash']}",
        fontsize=10, x=0.01, ha="left",
    )  # fmt: skip
    write_atomic(file, lambda opened: figure.savefig(opened, format="png"))
