"""`dashi sheet`: look at the band energies of a run."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

import typer

from dashi.cli.help import App
from dashi.cli.options import Json, OneDevice, example
from dashi.cli.output import print_json, remark
from dashi.cli.progress import progress
from dashi.errors import InputError
from dashi.lab._capacity import size_text

if TYPE_CHECKING:
    from dashi.core.observations.sheet import SheetStyle
    from dashi.runtime.device import Device
    from dashi.types import HostArray

app = App("sheet", "The record of band energies over time.")

_OUT: Final = Path("sheet.png")


@app.callback()
def _sheet() -> None:
    """Keeps `view` a word of its own, also while it is the only one."""


@app.command("view", epilog=example("dashi sheet view --example --out sheet.png"))
def view(
    sheet: Annotated[Path | None, typer.Argument(metavar="SHEET", help="A run's sheet_energy.npy, [T, B].")] = None,
    out: Annotated[Path, typer.Option("--out", help="The picture to write (.png).")] = _OUT,
    video: Annotated[Path | None, typer.Option("--video", help="A short film to write as well (.apng).")] = None,
    device: OneDevice = "auto",
    scale: Annotated[Literal["log", "linear"], typer.Option("--scale", help="Of the energies.")] = "log",
    nonfinite: Annotated[
        bool, typer.Option("--nonfinite", help="Allow NaN and infinities; show them magenta.")
    ] = False,
    made_up: Annotated[bool, typer.Option("--example", help="Show a made-up sheet instead of a file.")] = False,
    json: Json = False,
) -> None:
    """Draw a sheet of band energies: time to the right, bands upwards, bright where there is energy.

    The film is an animated PNG, which every browser plays: every step pushes the older ones down and lets them fade.
    Pixels are computed on the device, by kernels that give the same picture on every one.
    """
    import dashi
    from dashi.core.observations.sheet import SheetStyle

    _require_suffix(out, "--out", (".png",))
    if video is not None:
        _require_suffix(video, "--video", (".apng", ".png"))
        if video.absolute() == out.absolute():
            raise InputError(f"--out and --video both name {out}.", "give them different names.")
    energies, look = _read(sheet, made_up), SheetStyle(scale=scale)
    with dashi.open(device) as opened:
        document: dict[str, Any] = {
            "sheet": None if sheet is None else str(sheet),
            "steps": energies.shape[0],
            "bands": energies.shape[1],
            "scale": scale,
            "device": {"spec": opened.info.spec, "name": opened.info.name, "type": opened.info.type},
            "image": _draw(opened, energies, look, out, nonfinite),
            "video": None if video is None else _film(opened, energies, look, video, nonfinite),
        }
    if json:
        print_json(document)
        return
    for made in (document["image"], document["video"]):
        if made is not None:
            frames = f", {made['frames']} frames in {made['seconds']:g} s" if "frames" in made else ""
            sys.stdout.write(
                f"{made['file']}: {made['width']} x {made['height']}{frames}, {size_text(made['bytes'])}\n"
            )


def _require_suffix(file: Path, option: str, allowed: tuple[str, ...]) -> None:
    if file.suffix.lower() not in allowed:
        more = f" (ffmpeg -i {file.stem}.apng {file.name} converts it)" if option == "--video" and file.suffix else ""
        raise InputError(
            f"{option} {file} is not a kind of file that is written here.",
            f"let the name end in {' or '.join(allowed)}{more}.",
        )


def _read(sheet: Path | None, made_up: bool) -> HostArray:
    from dashi.core.observations.sheet import example_sheet, load_sheet
    from dashi.io._run_reading import named_file

    if (sheet is None) != made_up:
        raise InputError(
            "one sheet is to be shown: that of a file, or the example.", "name a sheet_energy.npy, or pass --example."
        )
    return example_sheet() if sheet is None else load_sheet(named_file(sheet))


def _draw(device: Device, energies: HostArray, look: SheetStyle, out: Path, nonfinite: bool) -> dict[str, Any]:
    from dashi.core.observations.png import write_png
    from dashi.core.observations.sheet import draw
    from dashi.io._files import write_atomic

    pixels = draw(device, energies, look, nonfinite=nonfinite)
    write_atomic(out, lambda file: write_png(file, pixels))
    height, width = pixels.shape[:2]
    return {"file": str(out), "width": width, "height": height, "bytes": out.stat().st_size}


def _film(device: Device, energies: HostArray, look: SheetStyle, out: Path, nonfinite: bool) -> dict[str, Any]:
    from dashi.core.observations.png import write_apng
    from dashi.core.observations.sheet import film, film_length
    from dashi.io._files import write_atomic

    count = film_length(energies, look)
    shape = (0, 0)
    remark(f"drawing {count} frames on {device.info.name}")
    with progress("film", count, "frames") as advance:

        def frames() -> Any:
            nonlocal shape
            for pixels in film(device, energies, look, nonfinite=nonfinite):
                shape = pixels.shape[:2]
                yield pixels
                advance(1)

        write_atomic(out, lambda file: write_apng(file, frames(), count, look.milliseconds))
    return {
        "file": str(out),
        "width": shape[1],
        "height": shape[0],
        "frames": count,
        "seconds": count * look.milliseconds / 1000,
        "bytes": out.stat().st_size,
    }
