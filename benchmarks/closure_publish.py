"""The published closures with what they were fitted to, and with their bounds on energy.

    python benchmarks/closure_publish.py --device cpu --out runs/published

Reads the fits in --fitted and makes the training and validation windows of closure_skill.py again. Of slaved, tables
stay as they were trained and theta is chosen on the validation seeds; galerkin of the decaying flow gets the form
`bounded`, its factor as it was; `trained-eddy` is fitted where there is none. All are written to --out with the seeds,
times and digests of their data, which `dashi flow evaluate` asks for. No test seed is looked at.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from closure_skill import settings

from dashi.flow.evaluation._training import Training
from dashi.flow.proxy import Model, Schema, model_class, save_model
from dashi.flow.proxy._judge import Judge
from dashi.flow.proxy.catalogue import unpack
from dashi.flow.proxy.closure._energy import THETAS
from dashi.flow.proxy.closure._model import Slaved
from dashi.flow.proxy.galerkin._backscatter import limited_viscosity
from dashi.flow.proxy.galerkin._model import GalerkinModel
from dashi.flow.windows import Windows
from dashi.io.arrays import read_arrays
from dashi.runtime import open_device
from dashi.runtime.device import Device


def earlier(path: Path) -> Model:
    """The model of a file; one of slaved from before its energy was bounded begins with theta 0."""
    arrays = dict(read_arrays(path))
    if arrays["model"].item() == Slaved.name and arrays["version"].item() == 1:
        arrays |= {"version": np.array(Slaved.version, np.int64), "parameter_theta": np.array(0.0)}
    return unpack(arrays, str(path))


def with_bounds(model: Model, validation: Windows, device: Device) -> Model:
    """The model with the bound that its flow asks for, chosen on validation windows where there is a choice."""
    if isinstance(model, Slaved):
        judge = Judge(model.schema, validation, device)
        for theta in THETAS:
            tried = replace(model, theta=theta)
            print(f"    theta {theta:g}: score {judge.score(tried):.2f}, energy {judge.energy_error(tried):.4f}")
        return model.with_best_theta(judge)
    if isinstance(model, GalerkinModel) and model.flow.forcing is None and model.backscatter == "scaled":
        learned = np.asarray(model.eddy, np.float64) / model.factor
        eddy = limited_viscosity(learned, model.factor, "bounded", model.flow)
        return replace(model, eddy=eddy, backscatter="bounded")
    return model


def main(arguments: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--flow", action="append", choices=["kolmogorov", "decaying"])
    parser.add_argument("--trained", default="8,12", help="k_cut of trained-eddy")
    parser.add_argument("--fitted", type=Path, default=Path("docs/benchmarks/closure-skill"))
    given = parser.parse_args(arguments)
    given.out.mkdir(parents=True, exist_ok=True)
    with open_device(given.device) as device:
        for name in given.flow or ["kolmogorov", "decaying"]:
            setting = settings(128, 1200)[name]
            print(f"{name} on {device.info.name}", flush=True)
            train, validation = (setting.made(seeds, device) for seeds in (setting.train, setting.validation))
            training = Training.of(train, validation)
            for path in sorted(given.fitted.glob(f"{name}-*.npz")):
                model = with_bounds(earlier(path), validation, device)
                save_model(given.out / path.name, model.with_training(training))
                print(f"  {path.name}: {model.description}", flush=True)
            for k in (int(k) for k in given.trained.split(",") if k):
                path = given.out / f"{name}-trained-eddy-{k}.npz"
                if path.exists():
                    continue
                options: dict[str, Any] = {}
                model = model_class("trained-eddy").fit(
                    Schema(setting.flow.n, k), train, validation, device=device, **options
                )
                save_model(path, model)
                print(f"  {path.name}: {model.description}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
