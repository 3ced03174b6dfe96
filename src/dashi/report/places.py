"""The sections on the run itself: where everything ran, its certificate, and how to repeat it."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from dashi.io.metrics import NOTHING, Metrics
from dashi.report import records
from dashi.report.html import Cell, command, figure, pair, section, table
from dashi.report.style import svg

if TYPE_CHECKING:
    from dashi.report.page import Report


def where(report: Report) -> str:
    """Devices, drivers and fallbacks, as the metrics tell them."""
    told = report.metrics
    if told is None:
        return section("where", "Where it ran", "", _timeline(report))
    parts = table(["part", "device", "asked for", "used"], _parts(told), "Where each part ran", text=True)
    flags = (
        table(
            ["what fell back", "asked for", "used instead", "why"],
            [[flag.name, flag.requested, flag.used, flag.reason] for flag in told.perf_flags],
            "Fallbacks",
            text=True,
        )
        if told.perf_flags
        else '<p class="note">Nothing fell back: all ran as asked.</p>'
    )
    gpu = "yes" if told.gpu_hotloop_active else "no"
    facts: list[list[Cell]] = [
        ["driver", f"{told.driver_name} {told.driver_version}".strip()],
        ["hot loop on a GPU", f"{gpu} ({told.op_device_type}; {told.hotloop_dispatches:,} dispatches executed there)"],
        [
            "steps",
            f"{told.steps:,} in {told.dtype}" + (f", {told.ns_per_step / 1e3:,.1f} us each" if told.steps else ""),
        ],
        ["wall time", _stages(told)],
        [
            "memory, at most",
            f"{_size(told.peak_host_memory_bytes)} host, {_size(told.peak_device_memory_bytes)} device",
        ],
    ]
    kernels = ""
    if told.kernel_fingerprints:
        rows: list[list[Cell]] = [[name, digest] for name, digest in told.kernel_fingerprints.items()]
        listed = table(["kernel", "SHA-256 of its SPIR-V"], rows, "Kernels", text=True)
        kernels = f"<details><summary>{len(rows)} kernels, by the digest of what ran</summary>{listed}</details>"
    return section(
        "where", "Where it ran", "Read off the devices and off what was executed there; nothing sets it by hand.",
        parts, flags, pair(table(["", ""], facts, "Facts of the run", text=True), _timeline(report)), kernels,
    )  # fmt: skip


def _timeline(report: Report) -> str:
    if not report.spans:
        return ""
    devices = [*dict.fromkeys(span.group for span in report.spans if span.group != "stages")]
    star = f" * {', '.join(devices)}: from submission until the host saw the end." if devices else ""
    return figure(
        svg(records.timeline(report.spans), "timeline"),
        "Timeline",
        "Bars of when each stage and each device queue was at work.",
        f"Wall time.{star} trace.perfetto-trace holds every span: open it in ui.perfetto.dev.",
    )


def _parts(told: Metrics) -> list[list[Cell]]:
    rows: list[list[Cell]] = [["hot loop", told.op_device, told.op_backend_requested, told.op_backend_used]]
    if told.fft_backend_used != NOTHING:
        name = told.fft_device or told.op_device
        rows.append(["Fourier transforms", name, told.fft_backend_requested, told.fft_backend_used])
    if told.decode_backend_used != NOTHING:
        rows.append(["decode", told.decode_device, told.decode_backend_requested, told.decode_backend_used])
    return rows


def _stages(told: Metrics) -> str:
    seconds = told.stage_seconds.model_dump(exclude_none=True)
    wall = seconds.pop("wall")
    parts = [f"{name} {value:.2g}" for name, value in seconds.items() if value >= 0.005]
    return f"{wall:.1f} s" + (f" ({', '.join(parts)})" if parts else "")


def _size(nbytes: int) -> str:
    return f"{nbytes / 2**30:.2f} GiB" if nbytes >= 2**30 else f"{nbytes / 2**20:.0f} MiB"


def proof(report: Report) -> str:
    """The certificate: its digest, and how to verify it."""
    made = report.proof
    if made is None:
        return ""
    rows: list[list[Cell]] = [
        ["digest of the certificate", made.digest],
        ["what it claims", f"{made.steps:,} steps of {made.operator}, {made.hashes} hashes, the last one {made.last}"],
        ["made on", made.device],
        ["holds on", "every device: the run is portable" if made.portable else "that device and driver alone"],
    ]
    if made.checked:
        rows.append(["repeated already", made.checked])
    told = (
        "The certificate names inputs, operator and the hashes of states. Whoever repeats it must find the same bits."
    )
    return section(
        "proof",
        "Proof",
        told,
        table(["", ""], rows, "The certificate", text=True),
        command(f"dashi verify {made.file}"),
    )


def repeat(report: Report) -> str:
    """The command, what was chosen, versions and files."""
    parts: list[str] = []
    if report.command:
        parts.append(command(report.command))
    for title, rows in (("settings", report.settings), ("versions", report.versions), ("files", report.files)):
        if rows:
            listed = table(["", ""], [[k, v] for k, v in rows.items()], title.capitalize(), text=True)
            opened = " open" if title == "files" else ""
            parts.append(f"<details{opened}><summary>{escape(title.capitalize())}</summary>{listed}</details>")
    return section("repeat", "Repeat it", "", *parts)
