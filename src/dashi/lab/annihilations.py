"""`annihilate`: how deep the coherence of fields in a file goes, against surrogates."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dashi.errors import InputError
from dashi.flow.annihilation import Annihilation, AnnihilationSettings, measure_depth
from dashi.flow.annihilation.trace import filament_table
from dashi.io._files import require_writable
from dashi.io._paths import path_of
from dashi.io.arrays import read_array, write_arrays
from dashi.lab._arguments import require_request
from dashi.lab._capacity import require_memory
from dashi.lab._job import Job, Request
from dashi.lab.events import SILENT, Events
from dashi.runtime._notebook import html_table
from dashi.runtime.device import Device
from dashi.runtime.info import DeviceInfo


@dataclass(frozen=True, kw_only=True)
class AnnihilateRequest(Request):
    """A file of square periodic vorticity, (n, n) or (fields, n, n), and how its coherence is measured."""

    source: Path
    """An .npy file, or an .npz file with the array `vorticity`."""
    settings: AnnihilationSettings = field(default_factory=AnnihilationSettings)
    filaments: Path | None = None
    """An .npz file to write: birth, death, censored, sign, area and circulation of every filament."""

    def __post_init__(self) -> None:
        if self.filaments is not None:
            object.__setattr__(self, "filaments", path_of("filaments", self.filaments))
            if self.filaments.suffix != ".npz":
                raise InputError(f"`filaments=` is {self.filaments}.", "name a file that ends in .npz.")
            require_writable(self.filaments)
        object.__setattr__(self, "source", path_of("source", self.source))
        super().__post_init__()


@dataclass(frozen=True, eq=False)
class MeasuredFile:
    """The depth of the fields of a file, and the device that measured it."""

    request: AnnihilateRequest
    device: DeviceInfo
    annihilation: Annihilation

    def as_json(self) -> dict[str, Any]:
        """What `--json` prints."""
        place = {"spec": self.device.spec, "name": self.device.name, "type": self.device.type}
        return {"source": str(self.request.source), "device": place, **self.annihilation.as_json()}

    def __repr__(self) -> str:
        return f"<MeasuredFile {self.request.source}: {self.annihilation.verdict}>"

    def _repr_html_(self) -> str:
        return html_table(HEADINGS, band_rows(self.annihilation), self.annihilation.verdict)


HEADINGS = ("k", "statistic", "null", "spread", "p")


def band_rows(annihilation: Annihilation) -> list[tuple[str, ...]]:
    """The bands of the chosen statistic as text."""
    return [
        (
            f"{band.k:.3g}", f"{band.statistic:.3f}", f"{band.null_mean:.3f}", f"{band.null_sd:.3f}",
            "" if band.p is None else f"{band.p:.3g}",
        )
        for band in annihilation.bands
    ]  # fmt: skip


def annihilate(request: AnnihilateRequest, *, device: str | Device = "auto", events: Events = SILENT) -> MeasuredFile:
    """Measures how deep coherent signs go in the fields of a file. The numbers have the same bits on every device."""
    require_request(request, AnnihilateRequest)
    fields = read_array(request.source, "vorticity")
    count = 1 if fields.ndim == 2 else len(fields)
    side = fields.shape[-1] if fields.ndim else 0
    require_memory(64 * side * side * 8, f"all scales of a field of {side} x {side}", "use fewer points.")
    settings, trace = request.settings, request.filaments is not None
    with Job(command="flow annihilate", request=request, device=device, events=events).place() as placed:
        if placed.device.info.type == "null":
            raise InputError("the null device measures nothing.", "use cpu, or a Vulkan device.")
        with events.progress("annihilate", settings.surrogates * count, "surrogates") as advance:
            measured = measure_depth(fields, settings, device=placed.device, progress=advance, trace=trace)
        info = placed.device.info
    if request.filaments is not None and measured.filaments is not None:
        write_arrays(request.filaments, filament_table(measured.filaments))
    return MeasuredFile(request, info, measured)
