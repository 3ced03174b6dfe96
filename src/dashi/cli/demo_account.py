"""The account of `dashi demo`: its metrics document."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from dashi.core.metrics.document import build_metrics
from dashi.core.metrics.placement import Placement
from dashi.flow.evaluation import Evaluation
from dashi.flow.grid import Floats
from dashi.io.metrics import Metrics, PerfFlag, Scores

if TYPE_CHECKING:
    from dashi.cli.demo_job import Job


def metrics_of(job: Job, placed: Placement) -> Metrics | None:
    """The metrics of the certified rollout and of what lies around it; None while there is no rollout."""
    r = job.results
    if r.run is None or r.operator is None:
        return None
    info, flags = placed.device.info, list[PerfFlag]()
    if info.type == "reference":
        flags.append(
            PerfFlag(
                name="solver", requested="portable", used="NumPy's own transforms",
                reason="the portable kernels are slow on NumPy; the flow and all scores but the certified rollout hold "
                "on one machine alone",
            )
        )  # fmt: skip
    update: dict[str, Any] = dict(r.decoder)
    if r.test is not None:
        update["eval"] = _scores(r.test, job.setting.ours)
    if r.train is not None:
        update["train"] = _scores(r.train, job.setting.ours)
    return build_metrics(
        "demo", r.run, placed, job.stages, flags=flags, certificate=r.digest, parts=["fft", "decode"], more=update
    )


def _scores(found: Evaluation, model: str) -> Scores:
    """At the last frame, means over windows."""
    line = found.line(model)

    def off(values: Floats, reference: Floats) -> float | None:
        return _finite(float(np.mean(values[:, -1] / reference[:, -1] - 1)))

    error, still = float(line.relative_l2[:, -1].mean()), None
    if any(one.model == "persistence" for one in found.lines):
        still = error / float(found.line("persistence").relative_l2[:, -1].mean())
    return Scores(
        l2=_finite(error), corr=_finite(float(line.correlation[:, -1].mean())), quotient=_finite(still),
        energy=off(line.energy, found.energy), enstrophy=off(line.enstrophy, found.enstrophy),
    )  # fmt: skip


def _finite(value: float | None) -> float | None:
    return value if value is not None and np.isfinite(value) else None
