"""Pictures of the band energies of a run: what `dashi sheet view` draws."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import dashi
from dashi.core.observations.png import Pixels, write_apng, write_png
from dashi.core.observations.sheet import SheetStyle, draw, example_sheet, film, film_length, load_sheet
from dashi.errors import InputError
from dashi.io._files import write_atomic
from dashi.io._paths import path_of
from dashi.io._run_reading import named_file
from dashi.lab.events import SILENT, Events
from dashi.runtime._notebook import html_table
from dashi.runtime.device import Device
from dashi.runtime.info import DeviceInfo
from dashi.types import HostArray

IMAGES = (".png",)
FILMS = (".apng", ".png")


@dataclass(frozen=True, kw_only=True)
class SheetRequest:
    """A sheet, `sheet_energy.npy` of a run ([steps, bands]) or the made-up `example`; the picture to write, and a film
    (an animated PNG) where one is asked for."""

    out: Path
    sheet: Path | None = None
    example: bool = False
    video: Path | None = None
    scale: Literal["log", "linear"] = "log"
    nonfinite: bool = False

    def __post_init__(self) -> None:
        for name in ("out", "sheet", "video"):
            value: object = getattr(self, name)
            if value is not None:
                object.__setattr__(self, name, path_of(name, value))
        require_suffix("out", self.out, IMAGES)
        if self.video is not None:
            require_suffix("video", self.video, FILMS)
            if self.video.absolute() == self.out.absolute():
                raise InputError(f"`out=` and `video=` both name {self.out}.", "give them different names.")
        if (self.sheet is None) is not self.example:
            raise InputError(
                "one sheet is to be shown: that of a file, or the example.",
                "name a sheet_energy.npy, or pass `example=True`.",
            )


@dataclass(frozen=True)
class PictureFile:
    """A picture that was written: pixels, bytes; of a film also frames and seconds."""

    file: Path
    width: int
    height: int
    bytes: int
    frames: int | None = None
    seconds: float | None = None


@dataclass(frozen=True)
class SheetPictures:
    """The pictures of a sheet of so many steps and bands, and the device that drew them."""

    steps: int
    bands: int
    device: DeviceInfo
    image: PictureFile
    video: PictureFile | None

    def __repr__(self) -> str:
        files = [str(picture.file) for picture in (self.image, self.video) if picture is not None]
        return f"<SheetPictures of {self.steps} steps and {self.bands} bands: {', '.join(files)}>"

    def _repr_html_(self) -> str:
        pictures = [picture for picture in (self.image, self.video) if picture is not None]
        rows = [(p.file, f"{p.width} x {p.height}", p.bytes, p.frames or 1) for p in pictures]
        return html_table(("file", "pixels", "bytes", "frames"), rows, f"{self.steps} steps, {self.bands} bands")


def draw_sheet(request: SheetRequest, *, device: str = "auto", events: Events = SILENT) -> SheetPictures:
    """Draws a sheet on a device: time to the right, bands upwards, bright where there is energy. Every device draws
    the same pixels."""
    energies = example_sheet() if request.sheet is None else load_sheet(named_file(request.sheet))
    look = SheetStyle(scale=request.scale)
    with dashi.open(device) as opened:
        image = _write_image(opened, energies, look, request)
        video = None if request.video is None else _write_film(opened, energies, look, request, request.video, events)
        steps, bands = energies.shape
        return SheetPictures(steps, bands, opened.info, image, video)


def require_suffix(parameter: str, file: Path, allowed: tuple[str, ...]) -> None:
    """Refuses names of files of another kind."""
    if file.suffix.lower() not in allowed:
        film_name = f"{file.stem}.apng {file.name}"
        more = f" (ffmpeg -i {film_name} converts it)" if parameter == "video" and file.suffix else ""
        raise InputError(
            f"`{parameter}={file}` is not a kind of file that is written here.",
            f"let the name end in {' or '.join(allowed)}{more}.",
        )


def _write_image(device: Device, energies: HostArray, look: SheetStyle, request: SheetRequest) -> PictureFile:
    pixels = draw(device, energies, look, nonfinite=request.nonfinite)
    write_atomic(request.out, lambda file: write_png(file, pixels))
    height, width = pixels.shape[:2]
    return PictureFile(request.out, width, height, request.out.stat().st_size)


def _write_film(
    device: Device, energies: HostArray, look: SheetStyle, request: SheetRequest, out: Path, events: Events
) -> PictureFile:
    count = film_length(energies, look)
    shape = (0, 0)
    events.remark(f"drawing {count} frames on {device.info.name}")
    with events.progress("film", count, "frames") as advance:

        def frames() -> Iterator[Pixels]:
            nonlocal shape
            for pixels in film(device, energies, look, nonfinite=request.nonfinite):
                shape = pixels.shape[:2]
                yield pixels
                advance(1)

        write_atomic(out, lambda file: write_apng(file, frames(), count, look.milliseconds))
    return PictureFile(out, shape[1], shape[0], out.stat().st_size, count, count * look.milliseconds / 1000)
