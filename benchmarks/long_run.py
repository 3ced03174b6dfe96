"""Models far beyond their horizon: do they stay on the climate of the flow, and does their energy stay bounded?

    python benchmarks/long_run.py --device cpu --flow kolmogorov --out runs/long-run

Settings as in closure_skill.py, on seeds that no fit, choice or test has: 31 to 38 of the Kolmogorov flow, 301 to 308
of the decaying one. The flow and every model in --fitted go on for --time (40: ten times a horizon of about 4); the
climate is that of the second half, of the held modes. Then every model goes on alone until 100 times its horizon
(--bound 400) with steps of --dt, and its largest energy is noted, of all frames and seeds. Writes long-run-FLOW.json
and .md.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
from closure_skill import settings

from dashi.flow.evaluation.long_run import climate, climate_error
from dashi.flow.proxy import Model, load_model
from dashi.flow.proxy._judge import held_energy
from dashi.flow.proxy.states import encoded
from dashi.flow.windows.simulated import windows_of
from dashi.io._files import write_text
from dashi.runtime import open_device
from dashi.runtime.device import Device

SEEDS = {"kolmogorov": range(31, 39), "decaying": range(301, 309)}
NAMES = ("slaved", "trained-eddy", "galerkin")
APART = 4
"""Frames of a model between two of the flow."""


def bound(model: Model, z0: Any, until: float, dt: float, device: Device) -> dict[str, Any]:
    """Energies of a model that goes on alone."""
    told = model.of_flow(replace(model.flow, dt=dt))  # pyright: ignore[reportAttributeAccessIssue]
    largest, last, rises = 0.0, held_energy(model.schema, z0), 0.0
    start = last.copy()
    for z in told.pieces(z0, round(until / model.interval), device=device, most=200, stop_on_nonfinite=False):
        energy = np.concatenate([last[:, None], held_energy(model.schema, z)], axis=1)
        largest = max(largest, float(np.nanmax(energy))) if np.isfinite(energy).all() else float("inf")
        rises = max(rises, float((energy[:, 1:] / energy[:, :-1]).max() - 1)) if np.isfinite(energy).all() else np.inf
        last = energy[:, -1]
    return {
        "time": until, "dt": dt, "finite": bool(np.isfinite(largest)), "largest energy": largest,
        "largest at the start": float(start.max()), "last energy": float(last.mean()), "largest rise of a frame": rises,
    }  # fmt: skip


def table(rows: Sequence[dict[str, Any]]) -> str:
    """What people read."""
    lines = [
        "| model, k_cut | E / flow | Z / flow | spectrum | last shell | kurtosis | distribution | largest E |",
        "|---" * 8 + "|",
    ]
    for row in rows:
        error, alone = row["climate"], row["bound"]
        if error is None:
            lines.append(f"| {row['model']} | not finite | | | | | | {alone['largest energy']:.3g} |")
            continue
        lines.append(
            f"| {row['model']} | {error['energy']:.3f} | {error['enstrophy']:.3f} | {error['spectrum']:.3f} | "
            f"{error['last_shell']:.2f} | {error['kurtosis']:+.2f} | {error['distribution']:.3f} | "
            f"{alone['largest energy']:.3f} (start {alone['largest at the start']:.3f}) |"
        )
    return "\n".join([*lines, ""])


def main(arguments: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--flow", choices=[*SEEDS], default="kolmogorov")
    parser.add_argument("--k-cut", default="8,12")
    parser.add_argument("--time", type=float, default=40.0)
    parser.add_argument("--bound", type=float, default=400.0)
    parser.add_argument("--dt", type=float, default=0.02)
    parser.add_argument("--seeds", type=int, default=8)
    parser.add_argument("--fitted", type=Path, default=Path("docs/benchmarks/closure-skill"))
    given = parser.parse_args(arguments)
    given.out.mkdir(parents=True, exist_ok=True)
    setting, seeds = settings(128, 1200)[given.flow], SEEDS[given.flow][: given.seeds]
    files = [given.fitted / f"{given.flow}-{name}-{k}.npz" for k in given.k_cut.split(",") for name in NAMES]
    models = [load_model(path) for path in files if path.exists()]
    with open_device(given.device) as device:
        steps = round(given.time / setting.flow.dt)
        flow = windows_of(
            setting.flow, seeds, device=device, steps=steps, interval=APART * setting.interval, spin_up=setting.spin_up,
            host_fft=device.info.type == "reference",
        )  # fmt: skip
        rows: list[dict[str, Any]] = []
        for model in models:
            truth = encoded(model.schema, flow, device=device)
            frames = APART * (flow.frames - 1)
            z = model.rollout(truth[:, 0], frames, device=device, stop_on_nonfinite=False)[:, ::APART]
            half = flow.frames // 2
            finite = bool(np.isfinite(z).all())
            error = climate_error(climate(model.schema, z[:, half:]), climate(model.schema, truth[:, half:]))
            rows.append({
                "model": f"{model.name} {model.schema.k_cut:g}", "climate": asdict(error) if finite else None,
                "energy": held_energy(model.schema, z).mean(0)[:: 10].tolist(),
                "flow's energy": held_energy(model.schema, truth).mean(0)[:: 10].tolist(),
                "bound": bound(model, truth[:, 0], given.bound, given.dt, device),
            })  # fmt: skip
            print(table(rows[-1:]).splitlines()[-1], flush=True)
        document = {
            "device": device.info.name, "flow": given.flow, "seeds": list(seeds), "time": given.time,
            "every": APART * setting.interval * setting.flow.dt * 10, "rows": rows,
        }  # fmt: skip
    write_text(given.out / f"long-run-{given.flow}.json", json.dumps(document, indent=1))
    write_text(given.out / f"long-run-{given.flow}.md", table(rows))
    print(table(rows))


if __name__ == "__main__":
    main(sys.argv[1:])
