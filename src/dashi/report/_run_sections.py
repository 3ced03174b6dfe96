"""The sections on the run itself: where everything ran, its certificate, and how to repeat it."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Final

from dashi.io.metrics import NOTHING, Metrics
from dashi.report import _timeline as timeline
from dashi.report._html import Cell, command, figure, pair, section, table, took
from dashi.report._style import svg

if TYPE_CHECKING:
    from dashi.report.page import Report


_INTRO: Final = "Read off the devices and off what was executed there; nothing sets it by hand."


def where(report: Report) -> str:
    """Devices, drivers and fallbacks, as the metrics tell them."""
    metrics = report.metrics
    if metrics is None:
        return section("where", "Where it ran", _INTRO if report.places else "", _places(report), _timeline(report))
    parts = table(["part", "device", "asked for", "used"], _parts(metrics), "Where each part ran", text=True)
    facts: list[list[Cell]] = [
        ["driver", f"{metrics.driver_name} {metrics.driver_version}".strip()],
        ["hot loop on a GPU", _on_gpu(metrics)],
        [
            "steps",
            f"{metrics.steps:,} in {metrics.dtype}"
            + (f", {took(metrics.ns_per_step * 1e-9)} each" if metrics.steps else ""),
        ],
        ["wall time", _stages(metrics)],
        [
            "memory, at most",
            f"{_size(metrics.peak_host_memory_bytes)} host, {_size(metrics.peak_device_memory_bytes)} device",
        ],
    ]
    return section(
        "where", "Where it ran", _INTRO, parts, _fallbacks(metrics),
        pair(table(["", ""], facts, "Facts of the run", text=True), _timeline(report)), _kernels(metrics),
    )  # fmt: skip


def _places(report: Report) -> str:
    """Where each part of a run without metrics ran, and how long it took where that was measured."""
    if not report.places:
        return ""
    rows: list[list[Cell]] = [
        [place.part, place.device, place.asked, place.used, "" if place.seconds is None else took(place.seconds)]
        for place in report.places
    ]
    whys = [f"{place.used} in place of {place.asked}: {place.why}" for place in report.places if place.why]
    warnings = "".join(f'<p class="warning">Fell back. {escape(why)}</p>' for why in whys)
    return table(["part", "device", "asked for", "used", "took"], rows, "Where each part ran", text=True) + warnings


def _fallbacks(metrics: Metrics) -> str:
    if not metrics.perf_flags:
        return '<p class="note">Nothing fell back: all ran as asked.</p>'
    rows: list[list[Cell]] = [[flag.name, flag.requested, flag.used, flag.reason] for flag in metrics.perf_flags]
    return table(["what fell back", "asked for", "used instead", "why"], rows, "Fallbacks", text=True)


def _on_gpu(metrics: Metrics) -> str:
    if metrics.op_device_type == "reference":
        return "no: NumPy computed it, and nothing was dispatched"
    dispatched = f"{metrics.hotloop_dispatches:,} dispatches executed on {metrics.op_device}"
    return f"yes: {dispatched}" if metrics.gpu_hotloop_active else f"no ({metrics.op_device_type}): {dispatched}"


def _kernels(metrics: Metrics) -> str:
    """What ran by its digest; on NumPy no SPIR-V runs, and the digests are of what another device would run."""
    if not metrics.kernel_fingerprints:
        return ""
    rows: list[list[Cell]] = [[name, digest] for name, digest in metrics.kernel_fingerprints.items()]
    count = f"{len(rows)} kernel{'' if len(rows) == 1 else 's'}"
    if metrics.op_device_type in ("reference", "null"):
        heading = "SHA-256 of the SPIR-V that Vulkan would run"
        title = f"{count} of the hot loop, computed by NumPy: no SPIR-V ran here"
        if metrics.op_device_type == "null":
            title = f"{count} of the hot loop, recorded alone: the null device runs nothing"
    else:
        heading, title = "SHA-256 of its SPIR-V", f"{count} of the hot loop, by the digest of what ran"
    listed = table(["kernel", heading], rows, "Kernels", text=True)
    return f"<details><summary>{escape(title)}</summary>{listed}</details>"


def _timeline(report: Report) -> str:
    if not report.spans:
        return ""
    devices = [*dict.fromkeys(span.group for span in report.spans if span.group != "stages")]
    star = f" * {', '.join(devices)}: from submission until the host saw the end." if devices else ""
    return figure(
        svg(timeline.timeline(report.spans), "timeline"),
        "Timeline",
        "Bars of when each stage and each device queue was at work.",
        f"Wall time.{star} trace.perfetto-trace holds every span: open it in ui.perfetto.dev.",
    )


def _parts(metrics: Metrics) -> list[list[Cell]]:
    rows: list[list[Cell]] = [
        ["steps (the hot loop)", metrics.op_device, metrics.op_backend_requested, metrics.op_backend_used]
    ]
    if metrics.fft_backend_used != NOTHING:
        name = metrics.fft_device or metrics.op_device
        rows.append(["Fourier transforms", name, metrics.fft_backend_requested, metrics.fft_backend_used])
    if metrics.decode_backend_used != NOTHING:
        rows.append(["decode", metrics.decode_device, metrics.decode_backend_requested, metrics.decode_backend_used])
    return rows


_WORDS: Final = {"sim": "simulate", "encode": "encode", "learn": "fit", "rollout": "roll out"}
"""Stages of the metrics in the order of a run, in the words of the timeline; others have their own names."""


def _stages(told: Metrics) -> str:
    seconds = told.stage_seconds.model_dump(exclude_none=True)
    wall = seconds.pop("wall")
    order = dict.fromkeys([*_WORDS, *seconds])
    parts = [f"{_WORDS.get(name, name)} {took(seconds[name])}" for name in order if seconds.get(name, 0) >= 0.005]
    return f"{took(wall)} from the first stage to the last" + (f": {', '.join(parts)}" if parts else "")


def _size(nbytes: int) -> str:
    return f"{nbytes / 2**30:.2f} GiB" if nbytes >= 2**30 else f"{nbytes / 2**20:.0f} MiB"


def proof(report: Report) -> str:
    """The certificate: its digest, and how to verify it."""
    claim = report.proof
    if claim is None:
        return ""
    rows: list[list[Cell]] = [
        ["digest of the certificate", claim.digest],
        [
            "what it claims",
            f"{claim.steps:,} steps of {claim.operator}, {claim.hashes} hashes, the last one {claim.last}",
        ],
        ["made on", claim.device],
        ["holds on", "every device: the run is portable" if claim.portable else "that device and driver alone"],
    ]
    if claim.checked:
        rows.append(["repeated already", claim.checked])
    intro = (
        "The certificate names inputs, operator and the hashes of states. Whoever repeats it must find the same bits."
    )
    return section(
        "proof",
        "Proof",
        intro,
        table(["", ""], rows, "The certificate", text=True),
        command(f"dashi verify {claim.file}"),
    )


def repeat(report: Report) -> str:
    """The command, what was chosen, versions and files."""
    parts: list[str] = []
    if report.command:
        parts.append(command(report.command))
    elif report.proof is not None:
        # A run that does not say how it was called is repeated from its inputs.
        parts.append(command(f"dashi verify {report.proof.file}"))
    for title, rows in (("settings", report.settings), ("versions", report.versions), ("files", report.files)):
        if rows:
            listed = table(["", ""], [[k, v] for k, v in rows.items()], title.capitalize(), text=True)
            opened = " open" if title == "files" else ""
            parts.append(f"<details{opened}><summary>{escape(title.capitalize())}</summary>{listed}</details>")
    if parts:
        parts.append(f"<h3>How to cite</h3>{command(citation(report))}")
    return section("repeat", "Repeat it", "", *parts)


def version_of(report: Report) -> str:
    """The version of dashi that made the run; empty where nothing says it."""
    return report.versions.get("dashi", "") or (report.metrics.dashi_version if report.metrics else "")


def citation(report: Report) -> str:
    """How to cite the run: the program and its version, the run, and the digest of its certificate."""
    version = version_of(report)
    program = f"dashi contributors, dashi{f' {version}' if version else ''}: deterministic GPU compute over Vulkan"
    run = f", run of {report.finished[:10]}" if report.finished else ""
    proof = f", certificate {report.proof.digest}" if report.proof else ""
    return f'{program}. "{report.title}"{run}{proof}.'
