"""`dashi verify`: repeats a certified run, anywhere, and compares every hash."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dashi.cli.options import Devices, Json, complete_devices, example, whole
from dashi.cli.output import add_row, new_table, one_line, print_json, print_table
from dashi.cli.progress import Shown

if TYPE_CHECKING:
    from dashi.lab.verification import Verification

_EXAMPLE = "dashi demo --rollout --steps 100 && dashi verify runs/demo-rollout/certificate.json"


def register(app: typer.Typer) -> None:
    """Adds the command to the program."""
    app.command("verify", epilog=example(_EXAMPLE))(verify)


def verify(
    certificate: Annotated[
        Path, typer.Argument(metavar="CERTIFICATE", help="The file to verify, or the run folder that it lies in.")
    ],
    device: Devices = None,
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
    jobs: Annotated[
        int | None,
        typer.Option(
            "--jobs", parser=whole, metavar="N",
            help="Repeat what lies between kept states in N processes. Default: one for each --device.",
        ),
    ] = None,
    sample: Annotated[
        int | None,
        typer.Option(
            "--sample", parser=whole, metavar="M", help="Repeat M segments between kept states, drawn by a seed."
        ),
    ] = None,
    sample_seed: Annotated[
        int | None,
        typer.Option(
            "--sample-seed", parser=whole, metavar="S", help="The seed of --sample. Default: one that nobody knows."
        ),
    ] = None,
    json: Json = False,
) -> None:  # fmt: skip
    """Repeat a certified run in order and compare every hash, up to the first that differs.

    Inputs must have the digests that the certificate claims, and the operator its version. They are looked for where
    the certificate says, but only below its own folder and the working folder, or in --inputs. Exit code 0: all hashes
    are the same; 1: one differs (the interval of steps is named, with --against the exact step); 3: it cannot be
    repeated (an edited certificate, missing or other inputs or states).

    Of a run that kept states (--states-every) the segments between them are repeated apart: --jobs N does N at the same
    time, with the result of one; --sample M does M of them, and says how likely that misses a fault.
    """
    from dashi import lab

    request = lab.VerifyRequest(
        certificate=certificate, against=against, inputs=inputs, jobs=jobs, devices=tuple(device or ()), sample=sample,
        sample_seed=sample_seed,
    )  # fmt: skip
    result = lab.verify(request, events=Shown())
    _print(_document(result), json)
    if not result.same:
        raise typer.Exit(1)


def _document(result: Verification) -> dict[str, Any]:
    claimed, where = result.certificate, result.certificate.device
    driver = f"{where.driver} {where.driver_version}".strip()
    return {
        "certificate": str(result.file),
        "same": result.same,
        "operator": claimed.operator.kind,
        "dtype": claimed.dtype,
        "steps": claimed.steps,
        "hashes": len(claimed.hashes),
        "portable": claimed.portable,
        "made_on": {"device": where.spec, "name": where.name, "driver": driver},
        "checks": [asdict(check) for check in result.checks],
        "segments": result.segments,
        "verified": result.verified,
        "sample_seed": result.sample_seed,
        "missed_with_probability": result.missed_with_probability,
        "finite": result.finite,
        "parting": asdict(result.divergence) if result.divergence else None,
        "remarks": result.remarks,
        "sentences": result.sentences,
    }


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
