"""`dashi verify`: repeats a certified run, anywhere, and compares every hash."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dashi.cli.completion import complete_devices
from dashi.cli.options import Json, OneDevice, example
from dashi.cli.output import add_row, new_table, one_line, print_json, print_table, remark

if TYPE_CHECKING:
    from dashi.core.certificates.certificate import Certificate
    from dashi.core.certificates.verify import Check, Parting
    from dashi.core.operators.operator import Operator
    from dashi.runtime.device import Device
    from dashi.types import Array

_EXAMPLE = "dashi demo --rollout --steps 100 && dashi verify runs/demo-rollout/certificate.json"


def register(app: typer.Typer) -> None:
    """Adds the command to the program."""
    app.command("verify", epilog=example(_EXAMPLE))(verify)


def verify(
    certificate: Annotated[Path, typer.Argument(metavar="CERTIFICATE", help="The file to verify.")],
    device: OneDevice = "auto",
    against: Annotated[
        str | None,
        typer.Option(
            "--against",
            metavar="DEVICE",
            help="Repeat it there too, and find the step where the two part.",
            autocompletion=complete_devices,
        ),
    ] = None,
    inputs: Annotated[
        Path | None, typer.Option("--inputs", metavar="DIR", help="Look for the input files, by name, in this folder.")
    ] = None,
    json: Json = False,
) -> None:
    """Repeat a certified run in order and compare every hash, up to the first that differs.

    Inputs must have the digests that the certificate claims, and the operator its version. They are looked for where
    the certificate says, but only below its own folder and the working folder, or in --inputs. Exit code 0: all hashes
    are the same; 1: one differs (the interval of steps is named, with --against the exact step); 3: it cannot be
    repeated (an edited certificate, missing or other inputs).
    """
    import dashi
    from dashi.core.certificates.certificate import read_certificate
    from dashi.core.certificates.inputs import certified_inputs
    from dashi.io.run_reading import named_file

    claimed = read_certificate(named_file(certificate))
    operator, z0 = certified_inputs(claimed, certificate.parent, inputs)
    with dashi.open(device) as first:
        checks = [_check(claimed, operator, z0, first)]
        parting: Parting | None = None
        if against is not None:
            with dashi.open(against) as second:
                checks.append(_check(claimed, operator, z0, second))
                parting = _parting(checks, operator, z0, (first, second))
    _print(_document(certificate, claimed, checks, parting, compared=against is not None), json)
    if any(check.difference for check in checks):
        raise typer.Exit(1)


def _check(claimed: Certificate, operator: Operator, z0: Array, device: Device) -> Check:
    from dashi.cli.progress import progress
    from dashi.core.certificates.verify import check

    remark(f"repeating {claimed.steps} steps of {claimed.operator.kind} on {device.info.name}")
    with progress(device.info.spec, claimed.steps, "steps") as advance:
        return check(claimed, operator, z0, device, progress=advance)


def _parting(checks: list[Check], operator: Operator, z0: Array, devices: tuple[Device, Device]) -> Parting | None:
    """The step where the devices part, in the first interval that they did not do alike."""
    from dashi.core.certificates.verify import find_parting

    found = [check.difference for check in checks if check.difference]
    earliest = min(found, key=lambda d: d.last, default=None)
    if earliest is None or (len(found) == 2 and found[0] == found[1]):
        return None
    remark(f"looking for the step, between {earliest.first} and {earliest.last}")
    return find_parting(operator, z0, (earliest.first, earliest.last), devices)[1]


def _document(
    file: Path, claimed: Certificate, checks: list[Check], parting: Parting | None, *, compared: bool
) -> dict[str, Any]:
    made = claimed.device
    return {
        "certificate": str(file),
        "same": not any(check.difference for check in checks),
        "operator": claimed.operator.kind,
        "dtype": claimed.dtype,
        "steps": claimed.steps,
        "hashes": len(claimed.hashes),
        "portable": claimed.portable,
        "made_on": {"device": made.spec, "name": made.name, "driver": f"{made.driver} {made.driver_version}".strip()},
        "checks": [asdict(check) for check in checks],
        "finite": all(check.finite for check in checks),
        "parting": asdict(parting) if parting else None,
        "remarks": _remarks(claimed, checks),
        "sentences": [*map(_sentence, checks), *_about_parting(checks, parting, compared=compared)],
    }


def _remarks(claimed: Certificate, checks: list[Check]) -> list[str]:
    """What a reader of a certificate that verifies should know all the same."""
    from dashi import kernels

    remarks: list[str] = []
    if not all(check.finite for check in checks):
        remarks.append("the states hold NaN or infinities: the hashes repeat, but the run means nothing from there on")
    unknown = sorted({name.split("/")[0] for name in claimed.kernels} - set(kernels.names()))
    if unknown:
        remarks.append(f"the certificate names kernels that this dashi does not have: {', '.join(unknown)}")
    return remarks


def _sentence(check: Check) -> str:
    at = check.difference
    if at is None:
        return f"{check.name}: all {check.hashes} hashes are the same"
    return (
        f"{check.name}: DIFFERS between step {at.first} and step {at.last}: the hash is {at.found}, "
        f"claimed is {at.claimed} ({check.hashes} hashes before it are the same)"
    )


def _about_parting(checks: list[Check], parting: Parting | None, *, compared: bool) -> list[str]:
    found = [check.difference for check in checks if check.difference]
    if not compared or not found:
        return []
    if parting:
        values = [f"{value!r} (bits {bits})" for value, bits in zip(parting.values, parting.bits, strict=True)]
        return [f"the two devices part at step {parting.step}: component {parting.index} is {' and '.join(values)}"]
    if len(found) == 2 and found[0] == found[1]:
        return ["both devices give the same hash there, which is not the one claimed"]
    return ["step by step, both devices did that interval alike: the difference does not repeat"]


def _print(document: dict[str, Any], as_json: bool) -> None:
    if as_json:
        print_json(document)
        return
    table = new_table("", "")
    made_on = one_line(document["made_on"]["name"])
    add_row(table, "certificate", f"{one_line(document['certificate'])}, made on {made_on}")
    add_row(table, "run", f"{document['steps']} steps of {document['operator']}, {document['dtype']}")
    for sentence in document["sentences"]:
        add_row(table, "verified" if document["same"] else "FAILED", sentence)
    for sentence in document["remarks"]:
        add_row(table, "note", sentence)
    print_table(table)
