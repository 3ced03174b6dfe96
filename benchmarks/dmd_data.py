"""What dynamic mode decomposition needs to be a fair baseline: how long it follows unseen seeds, by the pairs of frames
that it was fitted to, by rank and by variant. Needs PyDMD.

    python benchmarks/dmd_data.py --device cpu --out runs/dmd-data

Setting: Kolmogorov flow as in closure_skill.py, k_cut 8 (196 numbers); seeds 1 to 7 for fits, 8 for choices, 21 to 24
to look at. Writes dmd.json and dmd.md.
"""

from __future__ import annotations

import argparse
import json
import sys
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
from closure_skill import settings

from dashi.flow.evaluation.scores import horizons
from dashi.flow.proxy import Schema
from dashi.flow.proxy._dmd import RANKS, Dmd, require_pydmd
from dashi.flow.proxy.states import correlations, encoded, validation_score
from dashi.io._files import write_text
from dashi.runtime import open_device
from dashi.runtime.device import Device

UNSEEN: Final = range(21, 25)
DATA: Final = {"3 seeds x 2 windows x 40": (3, 2, 40), "3 x 4 x 120": (3, 4, 120), "7 x 4 x 120": (7, 4, 120)}
VARIANTS: Final[Mapping[str, dict[str, Any]]] = {
    "projected": {},
    "exact": {"exact": True},
    "forward-backward": {"forward_backward": True},
    "less the mean": {},
}


class Bench:
    """z of all seeds, and the times of its frames."""

    def __init__(self, device: Device) -> None:
        setting = settings(128, 1200)["kolmogorov"]
        self.schema, self.device = Schema(128, 8), device
        self.interval = setting.interval * setting.flow.dt
        self.z = {
            name: encoded(self.schema, setting.made(seeds, device), device=device).astype(np.float64)
            for name, seeds in (("train", setting.train), ("validation", setting.validation), ("unseen", UNSEEN))
        }

    def row(self, data: str, variant: str, rank: int) -> dict[str, Any]:
        """One decomposition, scored."""
        seeds, windows, frames = DATA[data]
        held = self.schema.parts["modes"]
        every = self.z["train"].reshape(7, 4, *self.z["train"].shape[1:])
        z = every[:seeds, :windows, : frames + 1, held].reshape(seeds * windows, frames + 1, -1)
        mean = z.mean(axis=(0, 1)) if variant == "less the mean" else np.zeros(z.shape[-1])
        before, after = ((part - mean).reshape(-1, z.shape[-1]).T for part in (z[:, :-1], z[:, 1:]))
        with warnings.catch_warnings():
            # It warns of badly conditioned data, which some of these are.
            warnings.simplefilter("ignore")
            made = require_pydmd().DMD(svd_rank=min(rank, *before.shape), **VARIANTS[variant]).fit(before, after)
        model = Dmd(self.schema, self.interval, np.asarray(made.modes), np.asarray(made.eigs))
        return {
            "data": data, "pairs": before.shape[1], "variant": variant, "rank": len(made.eigs),
            "skill": self.scored(model, mean, "validation")[0], "time to 0.5": self.scored(model, mean, "unseen")[1],
        }  # fmt: skip

    def scored(self, model: Dmd, mean: Any, name: str) -> tuple[float, float]:
        """The skill, and the mean time to correlation below 0.5."""
        reference, held = self.z[name], self.schema.parts["modes"]
        start = reference[:, 0].copy()
        start[:, held] -= mean
        made = model.rollout(start, reference.shape[1] - 1, device=self.device, stop_on_nonfinite=False)
        made[..., held] += mean
        times = np.arange(reference.shape[1]) * self.interval
        follows = horizons(correlations(self.schema, made, reference), times, (0.5,))[0.5]
        return validation_score(self.schema, made, reference), float(follows.mean())


def table(rows: Sequence[dict[str, Any]]) -> str:
    """Time to 0.5 on unseen seeds by rank; in bold the one that the validation seed chose."""
    ranks = sorted({row["rank"] for row in rows})
    lines = [f"| data | pairs | variant | {' | '.join(map(str, ranks))} |", "|---" * (len(ranks) + 3) + "|"]
    for data in DATA:
        for variant in VARIANTS:
            some = {row["rank"]: row for row in rows if (row["data"], row["variant"]) == (data, variant)}
            best = max(some, key=lambda rank: some[rank]["skill"])
            cells = [f"{some[rank]['time to 0.5']:.2f}" if rank in some else "" for rank in ranks]
            cells[ranks.index(best)] = f"**{cells[ranks.index(best)]}**"
            lines.append(f"| {data} | {some[best]['pairs']} | {variant} | {' | '.join(cells)} |")
    return "\n".join([*lines, ""])


def main(arguments: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--out", type=Path, required=True)
    given = parser.parse_args(arguments)
    given.out.mkdir(parents=True, exist_ok=True)
    require_pydmd()
    with open_device(given.device) as device:
        bench = Bench(device)
        rows = [bench.row(data, variant, rank) for data in DATA for variant in VARIANTS for rank in RANKS]
        document = {"device": device.info.name, "rows": rows}
    write_text(given.out / "dmd.json", json.dumps(document, indent=1))
    write_text(given.out / "dmd.md", table(rows))
    print(table(rows))


if __name__ == "__main__":
    main(sys.argv[1:])
