"""The table of skill: how long models of proxies follow flows from seeds that no fit has seen.

    python benchmarks/closure_skill.py --device vulkan:0 --out runs/skill

Setting: box 2 pi, N = 128, nu = 2e-3, ETDRK4 with dt 0.01, a frame every 0.1, windows of 12. Kolmogorov: force
sin(4 y), drag 0.1, spin-up 20, 7 / 1 / 4 seeds with 4 windows each for training, choice and test. Decaying: spin-up 1,
42 / 6 / 8 seeds. Everything is fitted and chosen before the test seeds are simulated; they are looked at once. Writes
skill.json, skill.md and the fitted models.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from dashi.errors import DashiError
from dashi.flow import Flow, Kolmogorov
from dashi.flow.evaluation import Evaluation, evaluate, gap_closed, largest_energy, spread
from dashi.flow.proxy import MODELS, Model, Schema, load_model, save_model
from dashi.flow.proxy.perfect import Perfect
from dashi.flow.simulated import windows_of
from dashi.flow.windows import Windows
from dashi.runtime import open_device
from dashi.runtime.device import Device


@dataclass(frozen=True)
class Setting:
    """A flow, its seeds, and how its windows are cut."""

    flow: Flow
    train: Sequence[int]
    validation: Sequence[int]
    test: Sequence[int]
    windows: int
    spin_up: int
    steps: int = 1200

    def made(self, seeds: Sequence[int], device: Device) -> Windows:
        """Windows of seeds."""
        fast = device.info.type == "reference"
        return windows_of(
            self.flow, seeds, device=device, steps=self.steps, windows=self.windows, spin_up=self.spin_up, fast=fast
        )


def settings(n: int, steps: int) -> dict[str, Setting]:
    """Both flows."""
    kolmogorov = Flow(n=n, nu=2e-3, dt=0.01, drag=0.1, forcing=Kolmogorov(4, 1.0), scheme="etdrk4")
    decaying = Flow(n=n, nu=2e-3, dt=0.01, scheme="etdrk4")
    return {
        "kolmogorov": Setting(kolmogorov, range(1, 8), [8], range(9, 13), 4, 2000, steps),
        "decaying": Setting(decaying, range(101, 143), range(143, 149), range(149, 157), 1, 100, steps),
    }


class PerfectLow(Perfect):
    """The perfect model, of which only the held modes are shown: the like of what the other models show."""

    name: ClassVar[str] = "perfect-low"
    rollout_fields = None  # pyright: ignore[reportAssignmentType]


CLASSES: dict[str, type[Model]] = {**MODELS, "perfect-low": PerfectLow}
PERFECT = 16
"""Up to this k_cut there is something to gain."""
ONCE = ("persistence", "ridge", "delay")


def wanted(cuts: Sequence[int], slaved: Sequence[int]) -> list[tuple[str, int]]:
    """Which models at which k_cut."""
    made = [(name, cuts[0]) for name in ONCE]
    for k in cuts:
        made += [("truncation", k), ("slaved", k)] if k in slaved else []
        made += [("galerkin", k), *([("perfect", k)] if k <= PERFECT else [])]
        made += [("perfect-low", k)] if k in slaved else []
    return made


@dataclass(frozen=True)
class Files:
    """Where models of a flow are kept, and where fits of an earlier run lie."""

    flow: str
    out: Path
    earlier: Path | None

    def of(self, name: str, k: int) -> Path | None:
        """The file of an earlier fit."""
        path = None if self.earlier is None else self.earlier / f"{self.flow}-{name}-{k}.npz"
        return path if path is not None and path.exists() else None


def fitted(
    setting: Setting, names: Sequence[tuple[str, int]], options: Mapping[str, Any], device: Device, files: Files
) -> tuple[dict[str, Model], float]:
    """All models, fitted to training seeds and chosen on validation seeds (or read, where that was done before), and
    the largest energy seen."""
    train, validation = (setting.made(seeds, device) for seeds in (setting.train, setting.validation))
    made: dict[str, Model] = {}
    for name, k in names:
        begin, kept = time.perf_counter(), files.of(name, k)
        more = options if name == "slaved" else {}
        if kept is not None:
            model = load_model(kept)
        else:
            model = CLASSES[name].fit(Schema(setting.flow.n, k), train, validation, device=device, **more)
        made[f"{name} {k}"] = model
        print(f"  {name} {k}: {model.story} ({time.perf_counter() - begin:.1f} s)", flush=True)
        if name in MODELS:
            save_model(files.out / f"{files.flow}-{name}-{k}.npz", model)
    return made, largest_energy(train, validation)


def rows(found: Evaluation, models: Mapping[str, Model]) -> list[dict[str, Any]]:
    """Every model's horizons, means with intervals over windows and over seeds, and how it ends."""
    made: list[dict[str, Any]] = []
    for line in found.lines:
        mean = {by: spread(line.horizons[0.5], found.seeds, by=by) for by in ("windows", "seeds")}
        drift = np.nan_to_num(line.enstrophy / found.enstrophy, nan=np.inf).mean(0)
        made.append({
            "model": line.model, "numbers": line.numbers, "mean": mean["windows"].mean,
            "std": float(np.std(line.horizons[0.5], ddof=1)),
            "windows": [mean["windows"].low, mean["windows"].high], "seeds": [mean["seeds"].low, mean["seeds"].high],
            "0.8": float(np.mean(line.horizons[0.8])), "0.9": float(np.mean(line.horizons[0.9])),
            "all": line.horizons[0.5].tolist(), "enstrophy": [float(drift[j]) for j in (20, 40, -1) if j < len(drift)],
            "spectrum_error": float(np.mean(line.spectrum_error[:, -1])), "seconds": line.seconds,
            "failures": sorted(set(line.failures)), "story": models[line.model].story,
        })  # fmt: skip
    return made


def gaps(found: Evaluation, slaved: Sequence[int]) -> list[dict[str, Any]]:
    """How much of the gap between galerkin and perfect is closed, paired."""
    made: list[dict[str, Any]] = []
    for k in slaved:
        for ceiling in ("perfect", "perfect-low"):
            for by in ("windows", "seeds"):
                try:
                    one = gap_closed(found, f"slaved {k}", base=f"galerkin {k}", ceiling=f"{ceiling} {k}", by=by)
                except DashiError as error:
                    print(f"  {error}")
                    continue
                made.append(
                    {"k_cut": k, "ceiling": ceiling, "by": by, "closed": one.mean, "low": one.low, "high": one.high}
                )
    return made


def table(document: Mapping[str, Any]) -> str:
    """What people read."""
    lines: list[str] = []
    for name, part in document["flows"].items():
        lines += [
            f"### {name}",
            "",
            "| model | k_cut | numbers | time to 0.5 [95 % over windows] | spread | to 0.8 |",
            "|---|---|---|---|---|---|",
        ]
        for row in part["rows"]:
            model, k = row["model"].split()
            low, high = row["windows"]
            times = f"{row['mean']:.2f} [{low:.2f}, {high:.2f}] | {row['std']:.2f} | {row['0.8']:.2f}"
            lines.append(f"| {model} | {k} | {row['numbers']} | {times} |")
        lines += ["", "| k_cut | gap to | drawn by | closed [95 %] |", "|---|---|---|---|"]
        lines += [
            f"| {g['k_cut']} | {g['ceiling']} | {g['by']} | {g['closed']:.2f} [{g['low']:.2f}, {g['high']:.2f}] |"
            for g in part["gaps"]
        ]
        lines += [""]
    return "\n".join(lines)


def main(arguments: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--flow", action="append", choices=["kolmogorov", "decaying"])
    parser.add_argument("--k-cut", default="8,12,16,21")
    parser.add_argument("--slaved", default="8,12")
    parser.add_argument("--option", action="append", default=[], metavar="NAME=VALUE")
    parser.add_argument("--fitted", type=Path, help="a folder of an earlier run: its models are read, not fitted")
    parser.add_argument("--n", type=int, default=128)
    parser.add_argument("--steps", type=int, default=1200)
    given = parser.parse_args(arguments)
    cuts, slaved = ([int(k) for k in text.split(",") if k] for text in (given.k_cut, given.slaved))
    options = {k: float(v) if "." in v else int(v) for k, v in (text.split("=") for text in given.option)}
    given.out.mkdir(parents=True, exist_ok=True)
    document: dict[str, Any] = {"options": options, "n": given.n, "steps": given.steps, "flows": {}}
    with open_device(given.device) as device:
        document["device"] = device.info.name
        for name in given.flow or ("kolmogorov", "decaying"):
            setting = settings(given.n, given.steps)[name]
            print(f"{name} on {device.info.name}", flush=True)
            files = Files(name, given.out, given.fitted)
            models, energy = fitted(setting, wanted(cuts, slaved), options, device, files)
            begin = time.perf_counter()
            test = setting.made(setting.test, device)
            found = evaluate(models, test, device=device, split="test", train_energy=energy)
            print(f"  test: {time.perf_counter() - begin:.1f} s", flush=True)
            document["flows"][name] = {"rows": rows(found, models), "gaps": gaps(found, slaved)}
            (given.out / "skill.json").write_text(json.dumps(document, indent=1))
            (given.out / "skill.md").write_text(table(document))
    print(table(document))


if __name__ == "__main__":
    main(sys.argv[1:])
