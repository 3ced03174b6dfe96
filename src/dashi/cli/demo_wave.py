"""`dashi demo --rollout`: a rollout, its hashes verified, a picture and a summary."""

from __future__ import annotations

import shlex
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import typer

from dashi.cli.output import add_row, new_table, print_json, print_table, remark
from dashi.cli.progress import progress
from dashi.errors import InputError

if TYPE_CHECKING:
    from dashi.cli.demo_rollout import Track
    from dashi.runtime.info import DeviceInfo

DIMENSION: Final = 128
STEPS: Final = 5_000


def roll_wave(device: str, out: Path, steps: int, json: bool, *, overwrite: bool = False) -> None:
    """Rolls out z' = z A on a device, verifies its bits against NumPy, and draws it.

    A is a wave operator of dimension 128 in fp32: rotations by the 3-4-5 angle of neighbouring sites. Every hundred
    steps the state is hashed on the device; NumPy must give the same hashes. Writes summary.json, the inputs, a
    certificate for `dashi verify` and, with the extra `plot`, state.png. Exit code 1 if a hash differs. Ctrl-C keeps
    what was finished.
    """
    import dashi
    from dashi.cli.demo_folder import OWNER, beside, require_place
    from dashi.cli.demo_rollout import roll_out

    owner = replace(OWNER, settings={"form": "--rollout", "steps": steps}, overwrite=overwrite)
    place = require_place(out, owner)
    with dashi.open(device) as opened:
        info = opened.info
        words = ["dashi", "demo", "--rollout", "--steps", str(steps), "--device", info.spec, "--out", str(out)]
        with beside(place, shlex.join(words), owner) as folder:
            remark(f"rolling out {steps} steps of dimension {DIMENSION} on {info.name}")
            with progress("device", steps, "steps") as advance:
                track = roll_out(opened, DIMENSION, steps, advance)
            summary = _keep(folder, info, track, None)
            if info.type != "null" and not track.stopped:
                remark("computing the same on NumPy")
                with dashi.open("cpu") as numpy_device, progress("NumPy", steps, "steps") as advance:
                    reference = roll_out(numpy_device, DIMENSION, steps, advance, keep=True)
                summary = _keep(folder, info, track, reference)
                if not reference.stopped:
                    _draw(folder, reference, summary)
                    summary = _keep(folder, info, track, reference)
            if summary["stopped"]:
                _print({**summary, "folder": str(folder)}, json)
                raise KeyboardInterrupt
    _print({**summary, "folder": str(place)}, json)
    if summary["first_difference"] is not None:
        raise typer.Exit(1)


def _keep(folder: Path, info: DeviceInfo, track: Track, reference: Track | None) -> dict[str, Any]:
    """Writes the inputs, the certificate and the summary of what is finished so far; the summary."""
    from dashi.cli.demo_folder import whole
    from dashi.io.files import write_text
    from dashi.io.run_folder import SUMMARY

    with whole():
        summary = _summary(info, track, reference)
        _certify(folder, info, track)
        summary["files"] = sorted({*(path.name for path in folder.iterdir() if path.name[0] != "."), SUMMARY})
        write_text(folder / SUMMARY, _json(summary))
    return summary


def _first_difference(track: Track, reference: Track) -> int | None:
    """The step after which the hashes first differ, as far as both went."""
    pairs = zip(track.run.hashes, reference.run.hashes, strict=False)
    return next((ours.step for ours, theirs in pairs if ours.digest != theirs.digest), None)


def _verdict(info: DeviceInfo, track: Track, reference: Track | None, differs: int | None) -> str:
    if reference is None and track.run.stopped:
        return f"nothing: stopped after {track.run.steps} steps"
    if reference is None:
        return "nothing: null computes nothing" if info.type == "null" else "nothing yet: NumPy has not repeated it"
    if differs is not None:
        return f"FAILED: other bits on {info.name} than on NumPy after {differs} steps"
    if info.type == "reference":
        return "same bits in two runs of NumPy (no other device took part)"
    part = f" in the first {reference.run.steps} steps (stopped there)" if reference.run.stopped else ""
    return f"same bits on {info.name} and NumPy{part}"


def _summary(info: DeviceInfo, track: Track, reference: Track | None) -> dict[str, Any]:
    differs = _first_difference(track, reference) if reference else None
    hashes = track.run.hashes
    return {
        "schema": 1,
        "device": {"spec": info.spec, "name": info.name, "type": info.type, "driver": info.driver_info or info.driver},
        "dimension": DIMENSION,
        "steps": track.run.steps,
        "us_per_step": round(track.us_per_step, 3),
        "numpy_us_per_step": round(reference.us_per_step, 3) if reference else None,
        "hash": hashes[-1].digest if hashes else None,
        "hashes": [{"step": h.step, "hash": h.digest} for h in hashes],
        "verified": _verdict(info, track, reference, differs),
        "first_difference": differs,
        "stopped": track.stopped or (reference is not None and reference.stopped),
        "finished": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
    }


def _certify(folder: Path, info: DeviceInfo, track: Track) -> None:
    """The inputs, and the certificate of what was hashed."""
    from dashi.cli.demo_rollout import CHUNK, start
    from dashi.core.certificates.certificate import Execution, certify, write_certificate
    from dashi.core.certificates.inputs import save_inputs
    from dashi.core.rollouts.fingerprint import fingerprints
    from dashi.io.run_folder import CERTIFICATE, INPUTS

    sources = save_inputs(folder / INPUTS, track.operator, start(DIMENSION))
    run = track.run
    if not run.hashes or run.hashes[-1].step != run.steps:
        return
    done = Execution(info, fingerprints(run.used), run.way, run.steps, CHUNK, run.hashes)
    write_certificate(folder / CERTIFICATE, certify(folder / CERTIFICATE, track.operator, sources, done))


def _draw(folder: Path, reference: Track, summary: dict[str, Any]) -> None:
    from dashi.cli.picture import draw
    from dashi.io.run_names import PICTURE

    try:
        draw(folder / PICTURE, reference, summary)
    except InputError as error:
        remark(f"no picture: {error}")


def _json(document: Any) -> str:
    from json import dumps

    return dumps(document, indent=2) + "\n"


def _print(summary: dict[str, Any], as_json: bool) -> None:
    if as_json:
        print_json(summary)
        return
    table = new_table("", "")
    device = summary["device"]
    rows = {
        "device": f"{device['name']} ({device['spec']}, {device['type']})",
        "steps": f"{summary['steps']} of z' = z A, dimension {summary['dimension']}, fp32",
        "time": f"{summary['us_per_step']:.2f} us per step"
        + (f" (NumPy {summary['numpy_us_per_step']:.2f})" if summary["numpy_us_per_step"] else ""),
        "hash": summary["hash"] or "none",
        "verified": summary["verified"],
        "folder": f"{summary['folder']} ({len(summary['files'])} files)",
    }
    for name, value in rows.items():
        add_row(table, name, value)
    print_table(table)
