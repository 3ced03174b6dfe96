"""What the modes beyond z matter for, and what a closure could know: measured on seeds that no test uses.

    python benchmarks/closure_tried.py --device cpu --out runs/closure-tried

Setting: Kolmogorov flow as in closure_skill.py, validation seed 8 and seeds 21 to 23, four windows each. R2 is the part
of the missing tendency tau = P N(w) - N(P w) that is explained, frame by frame: by nu_e, and by the true modes of the
band up to 1.5 k_cut. `perfect, restarted` forgets all but z every so often. Models of nu_e and slaved are read from
--fitted. Writes tried.json and tried.md.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import numpy as np
from closure_skill import settings

from dashi.flow.evaluation.scores import horizons
from dashi.flow.grid import Floats
from dashi.flow.proxy import Model, Schema, decode, encode, load_model
from dashi.flow.proxy._eddy import eddy_viscosity, subgrid
from dashi.flow.proxy._perfect import Perfect
from dashi.flow.proxy.states import correlations, encoded, squares
from dashi.flow.windows import Windows
from dashi.io._files import write_text
from dashi.runtime import open_device
from dashi.runtime.device import Device

SEEDS: Final = (8, 21, 22, 23)
EVERY: Final = (1, 5, 10)
"""Frames of 0.1 between two restarts."""
FRAMES: Final = 400
"""Frames that tendencies are compared in, spread evenly over all windows."""


def explained(schema: Schema, windows: Windows, device: Device) -> dict[str, float]:
    """R2 of nu_e of these very windows, and of the true band."""
    band = Schema(schema.n, 1.5 * schema.k_cut)
    chosen = np.unique(np.linspace(0, len(windows) * windows.frames - 1, FRAMES).astype(int))
    fields = windows.fields.reshape(1, -1, schema.n, schema.n)[:, chosen]
    whole = Windows(windows.flow, windows.interval, fields, (0,), (0,))
    narrow = replace(whole, fields=decode(band, encode(band, fields, device=device), device=device))
    found, near = (subgrid(schema, some, device=device) for some in (whole, narrow))
    drained = -np.repeat(eddy_viscosity(schema, found) * squares(schema), 2) * found.modes
    total = float((found.tau**2).sum())
    return {
        name: 1 - float(((found.tau - tau) ** 2).sum()) / total for name, tau in (("nu_e", drained), ("band", near.tau))
    }


def restarted(model: Model, z0: Floats, frames: int, every: int, device: Device) -> Floats:
    """z of a rollout that starts anew from its own z after every few frames."""
    made = [z0[:, None]]
    while sum(part.shape[1] for part in made) <= frames:
        made.append(model.rollout(made[-1][:, -1], every, device=device, stop_on_nonfinite=False)[:, 1:])
    return np.concatenate(made, axis=1)[:, : frames + 1]


def rows_of(k: int, windows: Windows, fitted: Path, device: Device) -> list[dict[str, Any]]:
    """All that is tried at one k_cut."""
    schema, flow = Schema(windows.flow.n, k), windows.flow
    z = encoded(schema, windows, device=device)
    known = explained(schema, windows, device)
    perfect = Perfect(schema, windows.interval * flow.dt, flow)
    made: dict[str, Floats] = {
        name: load_model(fitted / f"kolmogorov-{name}-{k}.npz").rollout(z[:, 0], windows.frames - 1, device=device)
        for name in ("galerkin", "slaved")
    }
    for every in (*EVERY, windows.frames - 1):
        told = "perfect" if every >= windows.frames - 1 else f"perfect, restarted every {every / 10:g}"
        made[told] = restarted(perfect, z[:, 0], windows.frames - 1, every, device)
        print(f"  {told}", flush=True)
    follows = {
        name: horizons(correlations(schema, rolled, z), windows.times, (0.5,))[0.5] for name, rolled in made.items()
    }
    explains = {"galerkin": known["nu_e"], "perfect": known["band"]}
    return [
        {"tried": name, "k_cut": k, "R2": explains.get(name), "time to 0.5": float(times.mean())}
        for name, times in follows.items()
    ]


def table(rows: Sequence[dict[str, Any]]) -> str:
    """What people read; the R2 of the band stands beside perfect."""
    lines = ["| tried | k_cut | R2 | time to 0.5, held modes shown |", "|---|---|---|---|"]
    for row in rows:
        share = "" if row["R2"] is None else f"{row['R2']:.4f}"
        lines.append(f"| {row['tried']} | {row['k_cut']} | {share} | {row['time to 0.5']:.2f} |")
    return "\n".join([*lines, ""])


def main(arguments: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--fitted", type=Path, default=Path("docs/benchmarks/closure-skill"))
    given = parser.parse_args(arguments)
    given.out.mkdir(parents=True, exist_ok=True)
    with open_device(given.device) as device:
        windows = settings(128, 1200)["kolmogorov"].made(SEEDS, device)
        rows = [row for k in (8, 12) for row in rows_of(k, windows, given.fitted, device)]
        document = {"device": device.info.name, "seeds": SEEDS, "rows": rows}
    write_text(given.out / "tried.json", json.dumps(document, indent=1))
    write_text(given.out / "tried.md", table(rows))
    print(table(rows))


if __name__ == "__main__":
    main(sys.argv[1:])
