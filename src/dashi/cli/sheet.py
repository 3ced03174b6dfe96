"""`dashi sheet`: look at the band energies of a run."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

import typer

from dashi.cli import options
from dashi.cli.help import App
from dashi.cli.options import Json, OneDevice
from dashi.cli.output import print_json
from dashi.lab._capacity import size_text

if TYPE_CHECKING:
    from dashi.lab.sheets import PictureFile

app = App("sheet", "The record of band energies over time.")

_OUT: Final = Path("sheet.png")


@app.callback()
def _sheet() -> None:
    """Keeps `view` a word of its own, also while it is the only one."""


@app.command("view", epilog=options.example("dashi sheet view --example --out sheet.png"))
def view(
    sheet: Annotated[Path | None, typer.Argument(metavar="SHEET", help="A run's sheet_energy.npy, [T, B].")] = None,
    out: Annotated[Path, typer.Option("--out", help="The picture to write (.png).")] = _OUT,
    video: Annotated[Path | None, typer.Option("--video", help="A short film to write as well (.apng).")] = None,
    device: OneDevice = "auto",
    scale: Annotated[Literal["log", "linear"], typer.Option("--scale", help="Of the energies.")] = "log",
    nonfinite: Annotated[
        bool, typer.Option("--nonfinite", help="Allow NaN and infinities; show them magenta.")
    ] = False,
    example: Annotated[bool, typer.Option("--example", help="Show a made-up sheet instead of a file.")] = False,
    json: Json = False,
) -> None:
    """Draw a sheet of band energies: time to the right, bands upwards, bright where there is energy.

    The film is an animated PNG, which every browser plays: every step pushes the older ones down and lets them fade.
    Pixels are computed on the device, by kernels that give the same picture on every one.
    """
    from dashi import lab
    from dashi.cli.progress import Shown

    request = lab.SheetRequest(out=out, sheet=sheet, example=example, video=video, scale=scale, nonfinite=nonfinite)
    pictures = lab.draw_sheet(request, device=device, events=Shown())
    files = [file for file in (pictures.image, pictures.video) if file is not None]
    if json:
        info = pictures.device
        print_json(
            {
                "sheet": None if sheet is None else str(sheet),
                "steps": pictures.steps,
                "bands": pictures.bands,
                "scale": scale,
                "device": {"spec": info.spec, "name": info.name, "type": info.type},
                "image": _document(pictures.image),
                "video": None if pictures.video is None else _document(pictures.video),
            }
        )
        return
    for file in files:
        frames = "" if file.frames is None else f", {file.frames} frames in {file.seconds:g} s"
        sys.stdout.write(f"{file.file}: {file.width} x {file.height}{frames}, {size_text(file.bytes)}\n")


def _document(picture: PictureFile) -> dict[str, Any]:
    film = {"frames": picture.frames, "seconds": picture.seconds} if picture.frames is not None else {}
    size = {"width": picture.width, "height": picture.height}
    return {"file": str(picture.file), **size, **film, "bytes": picture.bytes}
