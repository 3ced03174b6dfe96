"""Does a model gain or lose energy in the long run? Rollouts from seeds that no fit and no test has seen.

    python benchmarks/energy_drift.py --device cpu --out runs/energy-drift
    python benchmarks/energy_drift.py --device cpu --flow kolmogorov --out runs/energy-drift-kolmogorov

Settings as in closure_skill.py; energy is that of the held modes, a mean over the seeds, of the model and, in brackets,
of the flow itself. Decaying flow, seeds 201 to 208: `galerkin scaled` has c nu_e in every shell, `galerkin bounded` is
what a flow without a force gets; both are fitted to seeds 101 to 142 and chosen on 143 to 148. Kolmogorov flow, seeds
21 to 24: the models that lie in --fitted, as slaved does for both. Writes drift.json and drift.md.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from closure_skill import Setting, settings

from dashi.flow.evaluation.scores import horizons
from dashi.flow.proxy import Model, Schema, load_model
from dashi.flow.proxy._judge import held_energy
from dashi.flow.proxy.galerkin._model import GalerkinModel
from dashi.flow.proxy.states import correlations, encoded
from dashi.flow.windows import Windows
from dashi.flow.windows.simulated import windows_of
from dashi.io._files import write_text
from dashi.runtime import open_device
from dashi.runtime.device import Device

UNSEEN = {"decaying": range(201, 209), "kolmogorov": range(21, 25)}
SHOWN = (0, 4, 8, 12, 24, 48, 60)


def kept(flow: str, cuts: Sequence[int], names: Sequence[str], fitted: Path) -> dict[str, Model]:
    """Models of an earlier run, where there are any."""
    files = {f"{name} {k}": fitted / f"{flow}-{name}-{k}.npz" for k in cuts for name in names}
    return {name: load_model(file) for name, file in files.items() if file.exists()}


def candidates(setting: Setting, cuts: Sequence[int], fitted: Path, device: Device) -> dict[str, Model]:
    """All models, by what is shown of them."""
    train, chosen_on = (setting.made(seeds, device) for seeds in (setting.train, setting.validation))
    made: dict[str, Model] = {}
    for k in cuts:
        for form in ("scaled", "bounded"):
            schema = Schema(setting.flow.n, k)
            model = GalerkinModel.fit(schema, train, chosen_on, device=device, backscatter=form)
            made[f"galerkin {form} {k}"] = model
            print(f"  {model.description}", flush=True)
    return {**made, **kept("decaying", cuts, ["slaved"], fitted)}


def row(name: str, model: Model, unseen: Windows, shown: Sequence[int], device: Device) -> dict[str, Any]:
    """Energies of a model and of the flow at the times shown, and how long the model follows."""
    z = encoded(model.schema, unseen, device=device)
    made = model.rollout(z[:, 0], unseen.frames - 1, device=device, stop_on_nonfinite=False)
    ours, truth = held_energy(model.schema, made), held_energy(model.schema, z)
    frames = [round(t / model.interval) for t in shown]
    follows = horizons(correlations(model.schema, made, z), unseen.times, (0.5,))[0.5]
    return {
        "model": name, "story": model.description, "time to 0.5": float(follows.mean()),
        "energy": [float(ours[:, j].mean()) for j in frames], "truth": [float(truth[:, j].mean()) for j in frames],
        "largest gain": float((ours.max(axis=1) / ours[:, 0]).max()),
        "worst ratio to the truth": [float(f((ours / truth)[:, frames[-1]])) for f in (np.min, np.max)],
    }  # fmt: skip


def table(rows: Sequence[dict[str, Any]], shown: Sequence[int]) -> str:
    """What people read."""
    heads = " | ".join(f"t = {t}" for t in shown)
    lines = [f"| model, k_cut | {heads} | largest gain | time to 0.5 |", "|---" * (len(shown) + 3) + "|"]
    for one in rows:
        energies = " | ".join(f"{e:.3f} ({t:.3f})" for e, t in zip(one["energy"], one["truth"], strict=True))
        lines.append(f"| {one['model']} | {energies} | {one['largest gain']:.2f} | {one['time to 0.5']:.2f} |")
    return "\n".join([*lines, ""])


def main(arguments: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--k-cut", default="8,12,16,21")
    parser.add_argument("--flow", choices=[*UNSEEN], default="decaying")
    parser.add_argument("--time", type=int, help="of the rollouts: 48, Kolmogorov flow 60")
    parser.add_argument("--fitted", type=Path, default=Path("docs/benchmarks/closure-skill"))
    given = parser.parse_args(arguments)
    given.out.mkdir(parents=True, exist_ok=True)
    free, cuts = given.flow == "decaying", [int(k) for k in given.k_cut.split(",")]
    until = given.time or (48 if free else 60)
    shown = [t for t in SHOWN if t <= until]
    setting = settings(128, 1200)[given.flow]
    with open_device(given.device) as device:
        print(f"{given.flow} flow on {device.info.name}", flush=True)
        models = (
            candidates(setting, cuts, given.fitted, device)
            if free
            else kept(given.flow, cuts, ["galerkin", "slaved"], given.fitted)
        )
        steps, fast, seeds = round(until / setting.flow.dt), device.info.type == "reference", UNSEEN[given.flow]
        unseen = windows_of(setting.flow, seeds, device=device, steps=steps, spin_up=setting.spin_up, host_fft=fast)
        rows = [row(name, model, unseen, shown, device) for name, model in models.items()]
        document = {"device": device.info.name, "flow": given.flow, "times": shown, "rows": rows}
    write_text(given.out / "drift.json", json.dumps(document, indent=1))
    write_text(given.out / "drift.md", table(rows, shown))
    print(table(rows, shown))


if __name__ == "__main__":
    main(sys.argv[1:])
