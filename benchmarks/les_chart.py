"""Large-eddy simulation as a degenerate chart: a table and a figure of two flows with one filtered field.

python benchmarks/les_chart.py --n 128 --coarse 32 --out les_chart.png
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

import dashi
from dashi.flow import Flow
from dashi.flow._charts import TWINS, DegenerateChart, les_chart


def told(made: DegenerateChart) -> str:
    """What was found, in lines."""
    rows = [
        f"flow {made.flow.n} x {made.flow.n}, filter: modes of a grid of {made.coarse.n} (|k| <= {made.coarse.cut})",
        f"filtered fields have the same bits: {made.one_image}",
        f"the filtered model's futures have the same bits: {made.one_future}",
        f"true futures, filtered, at t = {made.times[-1]:g}: correlation {made.apart[-1]:.3f}",
        f"the model with each of them: {made.model[0, -1]:.3f} and {made.model[1, -1]:.3f}",
        f"ternary chart of the fine part: differs in {100 * made.trits_apart:.0f} % of its points",
        f"anchors below the filter scale: {made.anchors_apart:.2f} of their size apart",
    ]
    return "\n".join([*rows, *(f"{name}: {a:+.4g} and {b:+.4g}" for name, (a, b) in made.observables.items())])


def figure(made: DegenerateChart) -> Any:
    """Two rows: the start, with what each chart sees of it; then the futures."""
    drawn, axes = plt.subplots(2, 5, figsize=(15, 6.4), layout="constrained")
    size = float(np.abs(made.fields).max())
    top = [("flow A", made.fields[0]), ("flow B", made.fields[1]), ("filtered: A and B", made.filtered[0])]
    top += [("ternary chart of A's fine part", made.trits[0]), ("of B's", made.trits[1])]
    for axis, (title, values) in zip(axes[0], top, strict=True):
        show(axis, title, values, 1.0 if values.dtype == np.int8 else size)
    end = f", t = {made.times[-1]:g}"
    names = (f"A filtered{end}", f"B filtered{end}", f"the model's one future{end}")
    largest = float(np.abs(made.futures).max())
    for axis, title, values in zip(axes[1], names, made.futures, strict=False):
        show(axis, title, values, largest)
    lines = axes[1, 3]
    lines.plot(made.times, made.apart, "k", label="A and B, filtered")
    for one, name, style in zip(made.model, "AB", ("C0--", "C1:"), strict=True):
        lines.plot(made.times, one, style, label=f"model and {name}")
    lines.set(
        xlabel="time", ylabel="correlation", title="one future for two flows", ylim=(min(0, made.model.min()), 1.02)
    )
    lines.legend(frameon=False, fontsize=8)
    spectra = axes[1, 4]
    for one, name, style in zip(made.spectrum, "AB", ("C0-", "C1--"), strict=True):
        spectra.loglog(np.arange(1, len(one)), one[1:], style, label=name)
    spectra.axvline(made.coarse.cut, color="0.6")
    spectra.set(xlabel="|k|", title="the same energy at every scale")
    spectra.legend(frameon=False, fontsize=8)
    return drawn


def show(axis: Any, title: str, values: Any, size: float) -> None:
    """A field, symmetric about 0; y upwards."""
    axis.imshow(values, cmap="RdBu_r", vmin=-size, vmax=size, origin="lower")
    axis.set(title=title, xticks=[], yticks=[])


def main() -> None:
    """The script."""
    parser = argparse.ArgumentParser(description="Two flows, one filtered field.")
    parser.add_argument("--n", type=int, default=128)
    parser.add_argument("--coarse", type=int, default=32)
    parser.add_argument("--steps", type=int, default=600)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--twin", choices=TWINS, default="flip")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--host-fft", action="store_true", help="NumPy's own transforms, with --device cpu")
    parser.add_argument("--dpi", type=int, default=110)
    parser.add_argument("--out", type=Path, default=Path("les_chart.png"))
    given = parser.parse_args()
    with dashi.open(given.device) as device:
        made = les_chart(
            Flow(given.n), device=device, coarse=given.coarse, steps=given.steps, interval=20, seed=given.seed,
            twin=given.twin, host_fft=given.host_fft,
        )  # fmt: skip
    print(told(made))
    given.out.parent.mkdir(parents=True, exist_ok=True)
    figure(made).savefig(given.out, dpi=given.dpi)
    print(f"wrote {given.out}")


if __name__ == "__main__":
    main()
