"""The table of skill: how long models of proxies follow flows from seeds that no fit has seen.

    python benchmarks/closure_skill.py --device vulkan:0 --out runs/skill
    python benchmarks/closure_skill.py --device cpu --quick --out runs/skill-quick

Setting: box 2 pi, N = 128, nu = 2e-3, ETDRK4 with dt 0.01, a frame every 0.1, windows of 12. Kolmogorov: force
sin(4 y), drag 0.1, spin-up 20, 7 / 1 / 4 seeds with 4 windows each for training, choice and test. Decaying: spin-up 1,
42 / 6 / 8 seeds. Everything is fitted and chosen before the test seeds are simulated; they are looked at once. Writes
skill.json, skill.md and the fitted models. A run that was stopped goes on with the same command: what was fitted is
read, and a flow that was scored is not scored again.

Beside every time to 0.5 stand the numbers and bits of a state, the seconds that the rollouts took, and, for slaved,
what galerkin reaches in no more time with as many modes as that allows. Differences of times are paired by window, with
intervals over seeds. --test FIRST:LAST names other test seeds; those of a table should be looked at once.

--quick runs all of it in a minute or two on flows that are small, easy and few: it shows that the command runs, and
its numbers mean nothing.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import Any, ClassVar, Final

import numpy as np

from dashi.errors import DashiError, InputError
from dashi.flow import Flow, Kolmogorov
from dashi.flow.evaluation import Evaluation, evaluate, gap_closed, largest_energy, spread, time_gained
from dashi.flow.proxy import MODELS, Model, Schema, load_model, save_model
from dashi.flow.proxy._perfect import Perfect
from dashi.flow.proxy._restarted import Restarted
from dashi.flow.proxy.closure._plan import PLAN
from dashi.flow.proxy.galerkin._model import Truncation
from dashi.flow.windows import Windows
from dashi.flow.windows.simulated import windows_of
from dashi.io._files import write_text
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
    interval: int = 10
    peak: float | None = None
    """Wave number of the initial condition, if not the usual one."""

    def made(self, seeds: Sequence[int], device: Device) -> Windows:
        """Windows of seeds."""
        fast = device.info.type == "reference"
        return windows_of(
            self.flow, seeds, device=device, steps=self.steps, interval=self.interval, windows=self.windows,
            spin_up=self.spin_up, options=None if self.peak is None else {"peak": self.peak}, host_fft=fast,
        )  # fmt: skip


def settings(n: int, steps: int, *, quick: bool = False) -> dict[str, Setting]:
    """Both flows."""
    if quick:
        forced = Flow(n=n, nu=5e-3, dt=0.02, drag=0.1, forcing=Kolmogorov(2, 1.0), scheme="etdrk4")
        free = Flow(n=n, nu=5e-3, dt=0.02, scheme="etdrk4")
        return {
            "kolmogorov": Setting(forced, range(1, 4), [4], range(5, 9), 2, 500, steps, 5, 3.0),
            "decaying": Setting(free, range(101, 107), [107, 108], range(109, 113), 1, 50, steps, 5, 3.0),
        }
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


PERFECT = 16
"""Up to this k_cut there is something to gain."""
ONCE: Final = ("persistence", "ridge", "delay", "dmd")
SIZES: Final = {"n": 128, "steps": 1200, "k_cut": "8,12,16,21", "slaved": "8,12"}
QUICK: Final = {"n": 32, "steps": 400, "k_cut": "4,6", "slaved": "4"}
QUICK_OPTIONS: Final = ("iterations=20", "long_iterations=5", "batch=8")


def wanted(cuts: Sequence[int], slaved: Sequence[int]) -> list[tuple[str, int]]:
    """Which models at which k_cut."""
    made = [(name, cuts[0]) for name in ONCE if name != "dmd" or find_spec("pydmd")]
    for k in cuts:
        made += [("truncation", k), ("slaved", k), ("trained-eddy", k)] if k in slaved else []
        made += [("galerkin", k), *([("perfect", k)] if k <= PERFECT else [])]
        made += [("restarted", k), ("perfect-low", k)] if k in slaved else []
    return made


def without_data(name: str, k: int, setting: Setting) -> Model | None:
    """A model that needs no data; None where it does."""
    schema, interval = Schema(setting.flow.n, k), setting.interval * setting.flow.dt
    kinds = {model.name: model for model in (Perfect, PerfectLow, Restarted)}
    if name in kinds:
        return kinds[name](schema, interval, setting.flow)
    if name == Truncation.name:
        return Truncation(schema, setting.flow, interval, np.zeros(len(schema.modes), setting.flow.numpy_dtype), 0.0)
    return None


@dataclass(frozen=True)
class Files:
    """Where models of a flow are kept, and where fits of an earlier run lie."""

    flow: str
    out: Path
    earlier: Path | None

    def own(self, name: str, k: int) -> Path:
        """Where a fit of this run is kept."""
        return self.out / f"{self.flow}-{name}-{k}.npz"

    def of(self, name: str, k: int) -> Path | None:
        """The file of a fit that was made before: by this run, before it was stopped, or by an earlier one."""
        folders = [self.out, *([] if self.earlier is None else [self.earlier])]
        found = [folder / self.own(name, k).name for folder in folders]
        return next((path for path in found if path.exists()), None)


@dataclass(frozen=True)
class Data:
    """The windows of a setting that fits may see; simulated where they are needed."""

    setting: Setting
    device: Device
    files: Files

    @cached_property
    def train(self) -> Windows:
        return self.setting.made(self.setting.train, self.device)

    @cached_property
    def validation(self) -> Windows:
        return self.setting.made(self.setting.validation, self.device)

    @property
    def energy(self) -> float:
        """The largest of any frame, kept for when the run goes on."""
        kept = self.files.out / f"{self.files.flow}-energy.json"
        if not kept.exists():
            write_text(kept, json.dumps(largest_energy(self.train, self.validation)))
        return float(json.loads(kept.read_text()))


def fitted(data: Data, names: Sequence[tuple[str, int]], options: Mapping[str, Any]) -> dict[str, Model]:
    """All models, fitted to training seeds and chosen on validation seeds, or read, where that was done before."""
    made: dict[str, Model] = {}
    setting, files = data.setting, data.files
    for name, k in names:
        begin, kept, schema = time.perf_counter(), files.of(name, k), Schema(setting.flow.n, k)
        model = without_data(name, k, setting)
        if model is not None:
            made[f"{name} {k}"] = model
            continue
        if kept is not None:
            model = load_model(kept)
        else:
            more = options if name == "slaved" else {}
            more = {key: value for key, value in options.items() if key in PLAN} if name == "trained-eddy" else more
            model = MODELS[name].fit(schema, data.train, data.validation, device=data.device, **more)
        made[f"{name} {k}"] = model
        how = f"{time.perf_counter() - begin:.1f} s" if kept is None else f"from {kept}"
        print(f"  {name} {k}: {model.description} ({how})", flush=True)
        if name in MODELS and kept != files.own(name, k):
            save_model(files.own(name, k), model)
    return made


def rows(found: Evaluation, models: Mapping[str, Model]) -> list[dict[str, Any]]:
    """Every model's horizons, means with intervals over windows and over seeds, and how it ends."""
    made: list[dict[str, Any]] = []
    for line in found.lines:
        mean = {by: spread(line.horizons[0.5], found.seeds, by=by) for by in ("windows", "seeds")}
        drift = np.nan_to_num(line.enstrophy / found.enstrophy, nan=np.inf).mean(0)
        made.append({
            "model": line.model, "numbers": line.numbers, "bits": 32 * line.numbers, "mean": mean["windows"].mean,
            "std": float(np.std(line.horizons[0.5], ddof=1)),
            "windows": [mean["windows"].low, mean["windows"].high], "seeds": [mean["seeds"].low, mean["seeds"].high],
            "0.8": float(np.mean(line.horizons[0.8])), "0.9": float(np.mean(line.horizons[0.9])),
            "all": line.horizons[0.5].tolist(), "enstrophy": [float(drift[j]) for j in (20, 40, -1) if j < len(drift)],
            "spectrum_error": float(np.mean(line.spectrum_error[:, -1])), "seconds": line.seconds,
            "failures": sorted(set(line.failures)), "story": models[line.model].description,
        })  # fmt: skip
    return made


def gaps(found: Evaluation, slaved: Sequence[int]) -> list[dict[str, Any]]:
    """How much of the gap between galerkin and perfect is closed, paired."""
    made: list[dict[str, Any]] = []
    for k in slaved:
        for ceiling in ("perfect", "perfect-low"):
            if not {f"slaved {k}", f"galerkin {k}", f"{ceiling} {k}"} <= {line.model for line in found.lines}:
                continue
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


DIFFERENCES: Final = (
    ("slaved", "galerkin"), ("slaved", "trained-eddy"), ("trained-eddy", "galerkin"), ("galerkin", "restarted"),
    ("perfect", "slaved"), ("perfect-low", "slaved"),
)  # fmt: skip
"""Pairs of models whose times are compared at one k_cut."""


def differences(found: Evaluation, slaved: Sequence[int]) -> list[dict[str, Any]]:
    """How much longer one model follows than another, paired by window, with intervals over seeds."""
    names = {line.model for line in found.lines}
    made: list[dict[str, Any]] = []
    for k in slaved:
        for name, other in DIFFERENCES:
            if {f"{name} {k}", f"{other} {k}"} <= names:
                gained = time_gained(found, f"{name} {k}", f"{other} {k}")
                ends = {"time": gained.mean, "low": gained.low, "high": gained.high}
                made.append({"k_cut": k, "model": name, "other": other, **ends})
    return made


def equal_cost(rows_of_flow: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """For each slaved model what galerkin reaches in no more seconds, at the largest k_cut that they allow."""
    galerkins = [row for row in rows_of_flow if row["model"].startswith("galerkin ")]
    found: dict[str, str] = {}
    for row in rows_of_flow:
        within = [other for other in galerkins if other["seconds"] <= row["seconds"]]
        if row["model"].startswith("slaved ") and within:
            best = max(within, key=lambda other: other["numbers"])
            found[row["model"]] = f"{best['mean']:.2f} ({best['model']})"
    return found


def table(document: Mapping[str, Any]) -> str:
    """What people read."""
    lines: list[str] = []
    for name, part in document["flows"].items():
        lines += [
            f"### {name}",
            "",
            "| model | k_cut | numbers | bits | time to 0.5 [95 % over seeds] | spread | to 0.8 | s | equal cost |",
            "|---|---|---|---|---|---|---|---|---|",
        ]
        same_cost = equal_cost(part["rows"])
        for row in part["rows"]:
            model, k = row["model"].split()
            low, high = row["seeds"]
            least = ">= " if max(row["all"]) >= part["length"] else ""
            times = f"{least}{row['mean']:.2f} [{low:.2f}, {high:.2f}] | {row['std']:.2f} | {row['0.8']:.2f}"
            cost = f"{row['seconds']:.1f} | {same_cost.get(row['model'], '')}"
            lines.append(f"| {model} | {k} | {row['numbers']} | {row['bits']} | {times} | {cost} |")
        lines += ["", "| k_cut | longer | than | by [95 % over seeds] |", "|---|---|---|---|"]
        lines += [
            f"| {d['k_cut']} | {d['model']} | {d['other']} | {d['time']:+.2f} [{d['low']:.2f}, {d['high']:.2f}] |"
            for d in part["differences"]
        ]
        lines += ["", "| k_cut | gap to | drawn by | closed [95 %] |", "|---|---|---|---|"]
        lines += [
            f"| {g['k_cut']} | {g['ceiling']} | {g['by']} | {g['closed']:.2f} [{g['low']:.2f}, {g['high']:.2f}] |"
            for g in part["gaps"]
        ]
        lines += [""]
    return "\n".join(lines)


def parsed(arguments: Sequence[str]) -> argparse.Namespace:
    """What was asked for, with the sizes of --quick where nothing else was."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--flow", action="append", choices=["kolmogorov", "decaying"])
    parser.add_argument("--quick", action="store_true", help="small, easy and few: to see that it runs")
    parser.add_argument("--k-cut")
    parser.add_argument("--slaved")
    parser.add_argument("--option", action="append", metavar="NAME=VALUE", help="of slaved; may be repeated")
    parser.add_argument("--fitted", type=Path, help="a folder of an earlier run: its models are read, not fitted")
    parser.add_argument("--model", action="append", help="only these models; may be repeated")
    parser.add_argument("--test", metavar="FIRST:LAST", help="test seeds, instead of those of the setting")
    parser.add_argument("--n", type=int)
    parser.add_argument("--steps", type=int)
    given = parser.parse_args(arguments)
    for name, usual in (QUICK if given.quick else SIZES).items():
        if getattr(given, name) is None:
            setattr(given, name, usual)
    given.flow = given.flow or ["kolmogorov", "decaying"]
    given.option = given.option or (QUICK_OPTIONS if given.quick else ())
    return given


def seeds_of(text: str) -> range:
    """The seeds FIRST:LAST."""
    first, _, last = text.partition(":")
    return range(int(first), int(last or first) + 1)


def begun(given: argparse.Namespace) -> dict[str, Any]:
    """The document of this run, as far as it came before it was stopped. Another run's folder is refused."""
    plan: dict[str, Any] = {
        "n": given.n, "steps": given.steps, "quick": given.quick, "k_cut": given.k_cut, "slaved": given.slaved,
        "option": list(given.option), "flow": given.flow, "fitted": str(given.fitted or ""), "asked": given.device,
        "model": given.model, "test": given.test,
    }  # fmt: skip
    kept, done = given.out / "plan.json", given.out / "skill.json"
    given.out.mkdir(parents=True, exist_ok=True)
    if not kept.exists():
        if any(given.out.iterdir()):
            raise InputError(f"{given.out} holds files, and no run of this command.", "name another folder with --out.")
        write_text(kept, json.dumps(plan, indent=1))
    before = json.loads(kept.read_text())
    for name, value in plan.items():
        if before.get(name) != value:
            raise InputError(
                f"{given.out} holds a run with {name} = {before.get(name)!r}, and this one has {value!r}.",
                "name another folder with --out, or repeat that command to go on with it.",
            )
    return json.loads(done.read_text()) if done.exists() else {**plan, "flows": {}}


def main(arguments: Sequence[str]) -> None:
    given = parsed(arguments)
    document = begun(given)
    cuts, slaved = ([int(k) for k in text.split(",") if k] for text in (given.k_cut, given.slaved))
    options = {k: float(v) if "." in v else int(v) for k, v in (text.split("=") for text in given.option)}
    with open_device(given.device) as device:
        for name in given.flow:
            if name in document["flows"]:
                print(f"{name}: scored before", flush=True)
                continue
            setting = settings(given.n, given.steps, quick=given.quick)[name]
            print(f"{name} on {device.info.name}", flush=True)
            data = Data(setting, device, Files(name, given.out, given.fitted))
            names = [(one, k) for one, k in wanted(cuts, slaved) if given.model is None or one in given.model]
            models = fitted(data, names, options)
            known = [model.training.energy for model in models.values() if model.training is not None]
            energy = max(known) if known else data.energy
            begin = time.perf_counter()
            test = setting.made(seeds_of(given.test) if given.test else setting.test, device)
            found = evaluate(models, test, device=device, split="test", train_energy=energy)
            print(f"  test: {time.perf_counter() - begin:.1f} s", flush=True)
            part = {"device": device.info.name, "length": float(test.times[-1])}
            document["flows"][name] = {**part, "rows": rows(found, models), "gaps": gaps(found, slaved),
                "differences": differences(found, slaved)}  # fmt: skip
            write_text(given.out / "skill.md", table(document))
            write_text(given.out / "skill.json", json.dumps(document, indent=1))
    print(table(document))


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except DashiError as error:
        sys.exit(f"error: {error}")
    except KeyboardInterrupt:
        sys.exit("stopped: the same command goes on.")
