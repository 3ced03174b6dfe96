"""A report of made-up numbers, to look at the page without running anything: `dashi report --example`."""

from __future__ import annotations

from typing import Any

import numpy as np

from dashi.core.traces.trace import Span
from dashi.flow.equations import Flow, Kolmogorov
from dashi.flow.evaluation.result import THRESHOLDS, Evaluation, Failure, Line
from dashi.flow.grid import Floats
from dashi.io.metrics import VERSION, Metrics, PerfFlag, StageSeconds
from dashi.report._flow_facts import facts_of_scores
from dashi.report.figures import Continuation
from dashi.report.films import Fields
from dashi.report.page import BandEnergies, Proof, Report

_TIMES = np.linspace(0.0, 8.0, 81)
_FLOW = Flow(64, nu=5e-3, dt=0.0125, drag=0.1, forcing=Kolmogorov(4, 1.0), scheme="etdrk4")
_MODELS = {"perfect": 5.4, "galerkin": 4.2, "truncation": 2.0, "ridge": 0.9, "damped": 0.8, "persistence": 0.7}
"""How long each made-up model holds."""


def example_report() -> Report:
    """Every section, filled. The notes say that nothing in it was measured."""
    return Report(
        title="An example of a report",
        summary="This is how long a proxy of 196 numbers follows a flow of 4,096: made up, to show the page.",
        finished="2026-01-01T00:00:00Z",
        command="dashi report --example",
        tiles=(
            ("4.20", "flow time to correlation < 0.5 on unseen seeds"),
            ("0.70", "the same for persistence: nothing changes"),
            ("196", "numbers in the proxy, of 4,096 in the field"),
            ("12 s", "from the seeds to the scores"),
        ),
        flow=facts_of_scores(example_evaluation()),
        fields=_fields(),
        fields_of="a made-up flow",
        evaluation=example_evaluation(),
        continuation=_continuation(),
        sheet=BandEnergies(_sheet(), float(_TIMES[-1]), "shell", 1, "a made-up run"),
        spans=_spans(),
        metrics=_metrics(),
        proof=Proof("certificate.json", "0" * 32, "vorticity", 1000, 10, "1" * 32, True, "no device", "never"),
        settings={"n": "64", "k_cut": "8"},
        versions={"dashi": "example"},
        files={"report.html": "this page"},
        notes=("Made up: nothing on this page was measured.",),
    )


def example_evaluation(windows: int = 4) -> Evaluation:
    """Lines that fall as those of chaotic flows do."""
    rng = np.random.default_rng(3)
    energy = 1.0 + 0.05 * np.sin(_TIMES + rng.uniform(0, 6, (windows, 1)))
    shells = np.arange(22.0)
    spectrum = np.where(shells > 0, np.maximum(shells, 1) ** -3.5 * np.exp(-shells / 12), 0)
    lines = tuple(_line(name, last, rng, energy, spectrum) for name, last in _MODELS.items())
    return Evaluation(
        "test", _TIMES, tuple(1 + j // 2 for j in range(windows)), tuple(range(windows)), lines, energy, 12 * energy,
        spectrum, _FLOW.parameters, {"k_cut": 8},
    )  # fmt: skip


def _line(name: str, last: float, rng: np.random.Generator, energy: Floats, spectrum: Floats) -> Line:
    windows = len(energy)
    lasts = last * rng.uniform(0.8, 1.2, (windows, 1))
    correlation = 0.98 / (1 + (_TIMES / lasts) ** 3)
    horizons: dict[float, Floats] = {}
    for level in THRESHOLDS:
        below = correlation < level
        first = np.where(below.any(axis=1), below.argmax(axis=1), len(_TIMES) - 1)
        horizons[level] = _TIMES[first]
    drift: Failure = "collapse" if name == "damped" else "none"
    held = energy * (np.exp(-_TIMES / 2) if name == "damped" else 0.97)
    carried = np.where(np.arange(len(spectrum)) <= 8, spectrum, 0) if name != "perfect" else spectrum
    return Line(
        name, 0 if name == "perfect" else 196, correlation, np.sqrt(2 * (1 - correlation)), held, 12 * held,
        1 - correlation, np.ones_like(correlation), horizons, (drift,) * windows, carried, 0.1, "no device", name,
    )  # fmt: skip


def _fields(n: int = 48, frames: int = 24) -> Fields:
    rng = np.random.default_rng(5)
    ky, kx = np.meshgrid(np.fft.fftfreq(n, 1 / n), np.fft.rfftfreq(n, 1 / n), indexing="ij")
    square = kx**2 + ky**2
    size = np.where((square > 0) & (square < (n / 3) ** 2), square / (1 + square / 16) ** 2.2, 0)
    phase = rng.uniform(0, 2 * np.pi, size.shape)
    turn = rng.standard_normal(size.shape)

    def at(time: float, cut: float) -> Floats:
        modes = np.where(square <= cut * cut, size, 0) * np.exp(1j * (phase + turn * time))
        return np.fft.irfft2(modes * n, s=(n, n))

    times = np.linspace(0, 4, frames)
    proxy = np.stack([at(0.97 * t, 8) for t in times])
    return Fields(times, np.stack([at(t, n) for t in times]), proxy, unit="1/T")


def _continuation() -> Continuation:
    times = np.linspace(-4, 12, 161)
    reference = 1 + 0.06 * np.sin(1.3 * times) + 0.03 * np.sin(3.1 * times)
    alone = np.where(times >= 0, 0.95 * (1 + 0.06 * np.sin(1.26 * times)) + 0.02 * np.sin(2.7 * times), np.nan)
    past = times > 8
    return Continuation(times, np.where(past, np.nan, reference), np.where(past, np.nan, 0.95 * reference), alone)


def _sheet() -> Floats:
    shell = np.arange(1.0, 10.0)
    return shell**-3 * (1.1 + np.sin(_TIMES[:, None] * (1 + shell / 3) + shell))


def _spans() -> tuple[Span, ...]:
    second = 1_000_000_000
    stage_times = [
        ("simulate", 0.0, 6.0),
        ("fit", 6.0, 7.5),
        ("roll out", 7.5, 9.0),
        ("decode", 9.0, 9.6),
        ("score", 9.6, 12.0),
    ]
    stages = [Span("stages", name, name, int(a * second), int(b * second)) for name, a, b in stage_times]
    queue = [
        Span("a made-up device", "queue 0", "flow", int(a * second), int((a + 0.2) * second))
        for a in np.arange(0.3, 9.3, 0.3)
    ]
    return (*stages, *queue)


def _metrics() -> Metrics:
    plain: dict[str, Any] = {
        "op_backend_requested": "auto", "op_backend_used": "null", "op_device": "a made-up device",
        "op_device_type": "null", "device_name": "a made-up device", "driver_name": "none", "driver_version": "",
    }  # fmt: skip
    return Metrics(
        schema_version=VERSION, dashi_version="example", command="example", finished="2026-01-01T00:00:00Z", **plain,
        hotloop_dispatches=0, kernel_fingerprints={"axpy/main.f32": "0" * 64}, dtype="float32", steps=1000,
        steps_per_s=100.0, ns_per_step=1e7, stage_seconds=StageSeconds(sim=6.0, learn=1.5, rollout=1.5, wall=12.0),
        hashes=[], nonfinite_count=0, peak_host_memory_bytes=200 << 20, peak_device_memory_bytes=0,
        perf_flags=[PerfFlag(name="op_device", requested="vulkan:0", used="null", reason="this is an example.")],
    )  # fmt: skip
