"""`dashi filament pack` and `dashi filament unpack`: fields as bytes of which any prefix decodes."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from dashi.cli.options import Json, example, whole
from dashi.cli.output import print_facts, print_json, remark
from dashi.cli.progress import Shown

FieldFile = Annotated[
    Path, typer.Argument(metavar="FIELD", help="A square periodic field, as .npy; of a record the last frame.")
]
CodeFile = Annotated[Path, typer.Argument(metavar="F", help="What `dashi filament pack` wrote.")]
PackedOut = Annotated[Path, typer.Option("--out", metavar="F", help="The file for the code.")]
FieldOut = Annotated[Path, typer.Option("--out", metavar="FIELD", help="The .npy file for the field.")]
MaxError = Annotated[
    float | None,
    typer.Option("--max-error", metavar="E", help="The error over the norm of the field. Default: 0.001."),
]
MaxBytes = Annotated[
    int | None, typer.Option("--max-bytes", metavar="B", parser=whole, help="So many bytes, as exact as they allow.")
]
Basis = Annotated[
    Literal["auto", "wavelets", "modes"], typer.Option("--basis", help="Of what atoms leave; auto: the shorter.")
]
AtomCount = Annotated[
    int | None, typer.Option("--atoms", metavar="N", parser=whole, help="Atoms at most. Default: what is shortest.")
]
Points = Annotated[int | None, typer.Option("--n", metavar="N", parser=whole, help="Points along a side.")]
PrefixBytes = Annotated[
    int | None, typer.Option("--prefix-bytes", metavar="P", parser=whole, help="Use the first P bytes alone.")
]


def register(app: typer.Typer) -> None:
    """Adds the commands to `dashi filament`."""
    first = "dashi flow simulate --n 32 --steps 20 --frame-every 10 --out runs/small && "
    line = f"{first}dashi filament pack runs/small --max-error 0.1 --out field.df"
    app.command("pack", epilog=example(line), short_help="Pack a field into few bytes.")(pack)
    line += " && dashi filament unpack field.df --out field.npy --prefix-bytes 200"
    app.command("unpack", epilog=example(line), short_help="Unpack a field, or what a prefix has of it.")(unpack)


def pack(
    field: FieldFile,
    out: PackedOut,
    max_error: MaxError = None,
    max_bytes: MaxBytes = None,
    basis: Basis = "auto",
    atoms: AtomCount = None,
    json: Json = False,
) -> None:
    """Pack a field: vortices by falling gain, then what is left of it, bit plane by bit plane.

    Any prefix of the code decodes, and a longer one is never further from the field. The same field gives the same
    bytes on every machine. Prints what the parts of the code take.
    """
    from dashi import lab

    request = lab.PackRequest(field=field, out=out, max_error=max_error, max_bytes=max_bytes, basis=basis, atoms=atoms)
    packed = lab.pack_field(request, events=Shown())
    if json:
        print_json(
            {
                "file": str(out),
                "bytes": len(packed.data),
                "error": packed.error,
                "basis": packed.basis,
                "atoms": packed.atoms,
                "bits": packed.bits,
            }
        )
        return
    print_facts(
        {
            "file": f"{out}: {len(packed.data)} bytes",
            "error": f"{packed.error:.4g} of the norm of the field",
            "what": f"{packed.atoms} atoms, the rest in {packed.basis}",
            "bits": ", ".join(f"{part} {bits}" for part, bits in packed.bits.items()),
        }
    )


def unpack(
    code: CodeFile, out: FieldOut, n: Points = None, prefix_bytes: PrefixBytes = None, json: Json = False
) -> None:
    """Unpack a field, on its own grid or another one, from all of its code or from a prefix.

    What a prefix lacks is said on stderr; a code that was edited is refused.
    """
    from dashi import lab

    request = lab.UnpackRequest(code=code, out=out, n=n, prefix_bytes=prefix_bytes)
    unpacked = lab.unpack_field(request, events=Shown())
    if json:
        print_json(
            {
                "file": str(out),
                "n": unpacked.field.shape[0],
                "complete": unpacked.complete,
                "missing": unpacked.missing,
                "atoms": unpacked.atoms,
            }
        )
        return
    if not unpacked.complete:
        remark(unpacked.missing)
    n_points = unpacked.field.shape[0]
    print_facts({"file": f"{out}: {n_points} x {n_points}", "atoms": str(unpacked.atoms)})
