"""Results of benches: documents of plain data, rows of text for people, Markdown pages, files to keep."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dashi.io._files import write_text

if TYPE_CHECKING:
    from dashi.bench.kernels import Measurement
    from dashi.runtime._bandwidth import Bandwidth
    from dashi.runtime.info import DeviceInfo

HEADINGS = ("kernel", "type", "case", "tuning", "time", "GB/s", "GFLOP/s", "of copy", "over floor", "checked", "note")


def heading(info: DeviceInfo, date: str, command: str, version: str) -> dict[str, Any]:
    """Where, when and how the numbers were taken."""
    device = {
        "spec": info.spec,
        "name": info.name,
        "type": info.type,
        "driver": info.driver,
        "driver_info": info.driver_info,
        "driver_version": info.driver_version,
        "api_version": info.api_version,
    }
    return {"schema": 1, "device": device, "date": date, "command": command, "dashi": version}


def bandwidth_document(bandwidth: Bandwidth) -> dict[str, Any]:
    """The measured copy bandwidth, in GB/s."""
    return {
        "copy_gb_per_s": round(bandwidth.copy * 1e-9, 3),
        "scale_gb_per_s": round(bandwidth.scale * 1e-9, 3),
        "best_gb_per_s": round(bandwidth.best * 1e-9, 3),
        "array_bytes": bandwidth.nbytes,
    }


def row(m: Measurement, bandwidth: float, flops: float | None) -> dict[str, Any]:
    """One measurement as plain data; rates in 10^9 per second, times in microseconds."""
    w = m.workload
    facts: dict[str, Any] = {
        "kernel": w.kernel.name,
        "family": w.kernel.family,
        "portable": w.kernel.portable,
        "dtype": w.variant,
        "case": w.number,
        "shapes": {name: list(shape) for name, shape in w.case.shapes.items()},
        "scalars": dict(w.case.scalars),
        "tuning": m.tuning,
        "note": w.note,
        "skipped": m.skipped,
        "failed": m.failed,
    }
    if m.times is None:
        return facts
    seconds, floor = m.times.median, m.floor(bandwidth, flops)
    facts |= {
        "us": seconds * 1e6,
        "least_us": m.times.least * 1e6,
        "calls": m.times.calls,
        "runs": m.times.runs,
        "input_sets": m.sets,
        "bytes": m.cost.bytes,
        "flops": m.cost.flops,
        "dispatches": m.cost.dispatches,
        "gb_per_s": m.cost.bytes / seconds * 1e-9,
        "gflop_per_s": m.cost.flops / seconds * 1e-9,
        "of_copy": m.cost.bytes / seconds / bandwidth,
        "floor_us": floor * 1e6,
        "over_floor": seconds / floor if floor else None,
        "checked": m.checked,
    }
    if m.peer is not None:
        facts["peer"] = {
            "name": m.peer.name,
            "us": None if m.peer.seconds is None else m.peer.seconds * 1e6,
            "speed_of_peer": None if m.peer.seconds is None else m.peer.seconds / seconds,
            "how": m.peer.how,
            "difference": m.peer.difference,
            "failed": m.peer.failed,
        }
    return facts


def cells(r: Mapping[str, Any], peer: str | None) -> list[str]:
    """A row for people."""
    case = " ".join(f"{name}{shape}" for name, shape in r["shapes"].items())
    start = [r["kernel"], r["dtype"], case, r["tuning"] or ""]
    if "us" not in r:
        state = f"FAILED: {r['failed']}" if r["failed"] else f"skipped: {r['skipped']}"
        return [*start, *[""] * (6 + 2 * (peer is not None)), state]
    rates = [rate(r["gb_per_s"]), rate(r["gflop_per_s"]), f"{r['of_copy']:.1%}"]
    over = "" if r["over_floor"] is None else f"{r['over_floor']:.2f} x"
    numbers = [duration(r["us"]), *rates, over, r["checked"]]
    beside = r.get("peer")
    if peer is not None:
        numbers += _peer_cells(beside)
    return [*start, *numbers, r["note"]]


def _peer_cells(beside: Mapping[str, Any] | None) -> list[str]:
    if beside is None:
        return ["no peer", ""]
    if beside["failed"]:
        return ["failed", beside["failed"][:60]]
    return [duration(beside["us"]), f"{beside['speed_of_peer']:.1%}"]


def line(r: Mapping[str, Any], peer: str | None) -> str:
    """A row in a line, to be read while the next one is measured."""
    names = headings(peer)
    columns = dict(zip(names, cells(r, peer), strict=True))
    what = " ".join(filter(None, (columns[name] for name in ("kernel", "type", "case", "tuning"))))
    if "us" not in r:
        return f"{what}: {columns['note']}"
    units = {"time": "", "GB/s": " GB/s", "of copy": " of copy bandwidth"}
    if peer is not None and "peer" in r:
        units[f"of {peer}"] = f" of {peer}"
    return f"{what}: " + ", ".join(columns[name] + unit for name, unit in units.items())


def headings(peer: str | None) -> list[str]:
    """The columns; a peer adds its time, and our speed as a part of its."""
    return [*HEADINGS[:-1], *((peer, f"of {peer}") if peer else ()), HEADINGS[-1]]


def duration(microseconds: float) -> str:
    """A time with three or four digits."""
    if microseconds >= 1e5:
        return f"{microseconds * 1e-3:,.0f} ms"
    return f"{microseconds:,.2f} us" if microseconds < 1000 else f"{microseconds * 1e-3:,.3f} ms"


def rate(billions: float) -> str:
    """A rate with three digits or more."""
    return f"{billions:,.{max(0, 2 - len(str(int(billions))) + 1)}f}"


def table(document: Mapping[str, Any]) -> tuple[list[str], list[list[str]]]:
    """Headings and all rows of kernels, as text."""
    peer = document["peer"] and document["peer"]["name"]
    return headings(peer), [cells(r, peer) for r in document["rows"]]


def summary(document: Mapping[str, Any]) -> list[str]:
    """The lines above the table."""
    device, width = document["device"], document["bandwidth"]
    driver = f"{device['driver']} {device['driver_info'] or device['driver_version']}"
    ways = f"vkCmdCopyBuffer {rate(width['copy_gb_per_s'])}, kernel scale {rate(width['scale_gb_per_s'])}"
    lines = [
        f"{device['name']} ({driver}), {document['date']}",
        f"copy bandwidth {rate(width['best_gb_per_s'])} GB/s ({ways}; {width['array_bytes'] >> 20} MiB)",
    ]
    peer = document.get("peer")
    if peer:
        lines.append(
            f"{peer['name']} {peer['version']} on {peer['device']}, copies at {rate(peer['copy_gb_per_s'])} GB/s"
        )
    cases = document.get("cases")
    if cases and cases["measured"] < cases["asked"]:
        lines.append(f"stopped: {cases['measured']} of {cases['asked']} cases were measured")
    return lines


def markdown(document: Mapping[str, Any]) -> str:
    """The document as a page."""
    peer = document["peer"]["name"] if document.get("peer") else None
    names = headings(peer)
    lines = [f"# {document['device']['name']}, {document['date'][:10]}", ""]
    lines += [f"- {line}" for line in summary(document)]
    lines += [f"- dashi {document['dashi']}: `{document['command']}`", ""]
    lines += [f"| {' | '.join(names)} |", f"|{'---|' * len(names)}"]
    lines += ["| " + " | ".join(c.replace("|", "\\|") for c in cells(r, peer)) + " |" for r in document["rows"]]
    return "\n".join(lines) + "\n"


def markdown_page(
    title: str, about: Sequence[str], document: Mapping[str, Any], tables: Sequence[Sequence[Sequence[str]]]
) -> str:
    """Results as Markdown: where, how and by which command they were taken, then the tables; first rows head them."""
    device = document["device"]
    lines = [
        f"# {title} on {device['name']}",
        "",
        f"Driver {device['driver_info'] or device['driver']}, dashi {document['dashi']}, {document['date']}.",
        *about,
        *(f"Peer: {version}." for version in document["peers"].values()),
        "",
        f"    {document['command']}",
    ]
    for first, *rest in tables:
        lines += ["", "| " + " | ".join(first) + " |", "|" + "---|" * len(first)]
        lines += ["| " + " | ".join(line) + " |" for line in rest]
    return "\n".join(lines) + "\n"


def save(document: Mapping[str, Any], folder: Path, text: str | None = None, prefix: str = "") -> tuple[Path, Path]:
    """Writes `<prefix><device>-<date>.json` and `.md` (the text, or that of `dashi bench kernels`); each file is whole
    or not there."""
    device = re.sub(r"[^a-z0-9.]+", "-", document["device"]["name"].lower()).strip("-")
    stem = f"{prefix}{device}-{re.sub('[^0-9]+', '-', document['date'][:19])}"
    data, page = folder / f"{stem}.json", folder / f"{stem}.md"
    write_text(data, json.dumps(document, indent=1, ensure_ascii=False) + "\n")
    write_text(page, markdown(document) if text is None else text)
    return data, page
