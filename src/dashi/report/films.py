"""Pictures of fields: reference, prediction and their difference, as stills and as a short film.

A periodic field without waves shorter than its grid can be drawn on a finer one without guessing: its modes are kept
and zeros are added. So pictures are smooth and show nothing that is not in the numbers.
"""

from __future__ import annotations

import base64
import io
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import numpy as np

from dashi.errors import ShapeError
from dashi.flow.grid import Floats
from dashi.report._style import WIDTH, colour_map, new_figure, plot_module, styled

PANELS: Final = ("reference", "proxy alone", "difference")
_GAP: Final = 6
_STOPS: Final = 17
"""Colours of a scale that a page blends between."""
_QUALITY: Final = 80
_TALLEST: Final = 16_000
"""Rows of a picture that every decoder takes (WebP ends at 16,383)."""


@dataclass(frozen=True, eq=False)
class Fields:
    """Vorticity of one window, (frames, n, n): the true one, and what was decoded of the model's states."""

    times: Floats
    reference: Floats
    proxy: Floats | None = None
    name: str = "vorticity"
    numbers: tuple[int, ...] = ()
    """Numbers of the frames where they were read, if some were passed over; else they are counted from 0."""
    unit: str = ""
    """Unit of the values, as the store says: `1/T`, T being the unit of flow time."""
    member: str = ""
    """Which of several members this is, in words."""

    def __post_init__(self) -> None:
        shape = np.shape(self.reference)
        other = shape if self.proxy is None else np.shape(self.proxy)
        if len(shape) != 3 or shape[1] != shape[2] or other != shape or len(self.times) != shape[0]:
            raise ShapeError(
                f"fields have shapes {shape} and {other}, and {len(self.times)} times.",
                "pass (frames, n, n), as many times as frames, and both of one shape.",
            )

    @cached_property
    def limit(self) -> float:
        """The value of the last colour: one scale for all panels and frames, so that they can be compared."""
        finite = self.reference[np.isfinite(self.reference)]
        return float(np.quantile(np.abs(finite), 0.995)) if finite.size else 1.0

    def panels(self, frame: int) -> list[Floats]:
        """What is shown of a frame."""
        truth = self.reference[frame]
        if self.proxy is None:
            return [truth]
        with np.errstate(invalid="ignore"):
            return [truth, self.proxy[frame], self.proxy[frame] - truth]

    @property
    def broken(self) -> list[str]:
        """What is not finite, in words: in which field, from which frame on, and how much of it."""
        named = {self.name: self.reference, f"{self.name} of the proxy alone": self.proxy}
        return [self._broken(name, values) for name, values in named.items() if not _finite(values)]

    def _broken(self, name: str, values: Floats | None) -> str:
        assert values is not None
        bad = ~np.isfinite(values)
        frames = np.flatnonzero(bad.any(axis=(1, 2)))
        first = int(frames[0])
        row, column = (int(one) for one in np.argwhere(bad[first])[0])
        number = self.numbers[first] if self.numbers else first
        before = self.numbers[first - 1] if self.numbers and first else number - 1
        passed = f" (the {number - before - 1} before it were not read)" if number - before > 1 else ""
        value = str(values[first, row, column]).replace("nan", "NaN")
        return (
            f"{name.capitalize()} is not finite from frame {number}, t = {self.times[first]:.4g}, "
            f"on{passed}. {len(frames)} of {len(values)} frames hold NaN or infinities; in that one it is "
            f"{int(bad[first].sum()):,} of {bad[first].size:,} values, the first ({value}) in row {row}, column "
            f"{column}. They are drawn in magenta."
        )


def _finite(values: Floats | None) -> bool:
    return values is None or bool(np.isfinite(values).all())


def finer(field: Floats, size: int) -> Floats:
    """A field's trigonometric polynomial on a grid of `size` points along a side, where that is more. A field that is
    not finite has no modes: its points become squares, NaN where they are not finite."""
    n = field.shape[-1]
    if not np.isfinite(field).all():
        return nearest(np.where(np.isfinite(field), field, np.nan), max(n, size))
    if size <= n:
        return field
    modes = np.fft.fftshift(np.fft.fft2(field))
    if n % 2 == 0:
        modes[0], modes[:, 0] = 0.0, 0.0  # the shortest wave has no partner; dealiased fields hold nothing there
    before = size // 2 - n // 2
    padded = np.pad(modes, ((before, size - n - before),) * 2)
    return np.fft.ifft2(np.fft.ifftshift(padded)).real * (size / n) ** 2


def nearest(field: Floats, size: int) -> Floats:
    """The whole field on a grid of `size` points along a side, each the nearest of its own."""
    places = [place * field.shape[-1] // size for place in range(size)]
    return field[places][:, places]


def snapshots(fields: Fields, frames: Sequence[int], size: int = 128) -> Any:
    """Columns of panels, one for each of the frames; fields alone are laid out in two columns."""
    both = fields.proxy is not None
    columns = len(frames) if both else min(2, len(frames))
    rows = len(PANELS) if both else -(-len(frames) // columns)
    side = (WIDTH - 0.25) / columns
    figure = new_figure(side * rows + (0.75 if both else 0.75 + 0.2 * rows))
    with styled():
        grid = figure.subplots(rows, columns, squeeze=False)
        shown: Any = None
        for axes in grid.flat:
            axes.set_axis_off()
        for place, frame in enumerate(frames):
            cells = grid[:, place] if both else grid[place // columns, place % columns :][:1]
            for axes, panel in zip(cells, fields.panels(frame), strict=True):
                shown = axes.imshow(
                    finer(panel, size), origin="lower", cmap=colour_map("vik"), vmin=-fields.limit, vmax=fields.limit,
                    interpolation="none",
                )  # fmt: skip
                axes.set_axis_on()
                axes.set_xticks([])
                axes.set_yticks([])
                axes.grid(visible=False)
                axes.spines[:].set_visible(False)
            cells[0].set_title(f"t = {fields.times[frame]:.3g}", fontsize=9.5, loc="center")
        for axes, name in zip(grid[:, 0], PANELS if both else (), strict=False):
            axes.set_ylabel(name)
        bar = figure.colorbar(
            shown, ax=grid, orientation="horizontal", aspect=45, pad=0.02, fraction=0.04, extend="both"
        )
        bar.set_label(named(fields))
        bar.outline.set_visible(False)
    return figure


@dataclass(frozen=True)
class Film:
    """Frames one below another in one picture, as a data URI, and what its panels and colours are."""

    uri: str
    frames: int
    width: int
    height: int
    """Pixels of one frame; so is `width`."""
    times: tuple[float, ...]
    panels: tuple[str, ...]
    colours: tuple[str, ...]
    """From the least value to the largest, evenly taken."""
    ticks: tuple[str, ...]
    """Values at even distances along the colours."""
    unit: str
    """What the values are, with their unit."""
    gap: int = _GAP
    """Between panels, in pixels of the picture."""


def film(fields: Fields, most: int = 50, size: int = 192) -> Film:
    """A film of at most so many frames, evenly taken: panels beside one another."""
    image = plot_module("PIL.Image")
    size = max(size, fields.reference.shape[-1]) if fields.reference.shape[-1] <= 256 else 256
    count = min(len(fields.times), most, _TALLEST // size)
    chosen = np.unique(np.linspace(0, len(fields.times) - 1, count).round().astype(int))
    strip = np.concatenate([_frame(fields, int(frame), size) for frame in chosen])
    room = io.BytesIO()
    image.fromarray(strip).save(room, "WEBP", quality=_QUALITY, method=2)
    uri = "data:image/webp;base64," + base64.b64encode(room.getvalue()).decode()
    times = tuple(float(fields.times[frame]) for frame in chosen)
    panels = PANELS if fields.proxy is not None else (fields.name,)
    return Film(uri, len(chosen), strip.shape[1], size, times, panels, _colours(), _ticks(fields.limit), named(fields))


def named(fields: Fields) -> str:
    """What the values are, with their unit."""
    return f"{fields.name} ({fields.unit})" if fields.unit else fields.name


def _colours() -> tuple[str, ...]:
    mapped = colour_map("vik")
    parts = [mapped(place / (_STOPS - 1)) for place in range(_STOPS)]
    return tuple("#" + "".join(f"{round(255 * float(part)):02x}" for part in rgba[:3]) for rgba in parts)


def _ticks(limit: float) -> tuple[str, ...]:
    """The ends, where colours stay as they are, and three between."""
    half, whole = f"{limit / 2:.2g}", f"{limit:.2g}"
    return (f"≤ −{whole}", f"−{half}", "0", half, f"≥ {whole}")


def _frame(fields: Fields, frame: int, size: int) -> Any:
    """Pixels (size, width, 4) of a frame; the page is seen between the panels."""
    mapped = colour_map("vik")
    parts: list[Any] = []
    for panel in fields.panels(frame):
        drawn = finer(panel, size)
        drawn = nearest(drawn, size) if drawn.shape[0] > size else drawn
        part = np.clip(drawn[::-1] / (2 * fields.limit or 1.0) + 0.5, 0, 1)
        parts += [(mapped(part) * 255).round().astype(np.uint8), np.zeros((size, _GAP, 4), np.uint8)]
    return np.concatenate(parts[:-1], axis=1)
