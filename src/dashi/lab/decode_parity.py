"""`compare_decodes`: the decode of a device held against NumPy's, and both against plain float64."""

from __future__ import annotations

from dataclasses import dataclass

from dashi.errors import InputError
from dashi.flow.decode import Settings, fit_statistics
from dashi.flow.decode._parity import Parity, agrees, compare
from dashi.flow.decode.settings import RESIDUALS
from dashi.flow.equations import Flow
from dashi.flow.grid import to_field
from dashi.flow.initial import ensemble
from dashi.flow.proxy.encode import choose_anchors
from dashi.flow.proxy.schema import Schema
from dashi.lab._arguments import require_request
from dashi.lab._capacity import require_memory
from dashi.lab._job import Job, Request
from dashi.lab.events import SILENT, Events
from dashi.runtime._notebook import html_table
from dashi.runtime.device import Device
from dashi.runtime.info import DeviceInfo


@dataclass(frozen=True, kw_only=True)
class ParityRequest(Request):
    """Random fields that are encoded, and decoded with and without residuals."""

    n: int = 128
    """Points along each side."""
    k_cut: float = 8.0
    """Modes up to this wave number are kept in z."""
    anchors: int = 16
    """Strongest modes of the mid band that are kept besides."""
    seeds: int = 5
    """How many random fields, and residuals."""
    residuals: tuple[str, ...] = RESIDUALS
    gate: str = "support"
    dtype: str = "float32"


@dataclass(frozen=True, eq=False)
class DecodeParity:
    """What the decodes of a device have in common with those of NumPy."""

    request: ParityRequest
    device: DeviceInfo
    fields: tuple[Parity, ...]
    """One for each residual and seed."""

    @property
    def same(self) -> bool:
        """Whether all bits are the same, and float64 agrees to rounding."""
        return all(agrees(field) for field in self.fields)

    @property
    def other_device(self) -> bool:
        """Whether a device took part that is not NumPy itself."""
        return self.device.type != "reference"

    def __repr__(self) -> str:
        verdict = "the same bits, and float64 agrees" if self.same else "NOT the same"
        return f"<DecodeParity: {len(self.fields)} fields on {self.device.name}, {verdict}>"

    def _repr_html_(self) -> str:
        rows = [
            (p.residual, p.seed, "same" if p.same_bits else "OTHER", f"{p.max_error:.1e}", f"{p.hamming} of {p.sites}",
             f"{p.error:.3f}", f"{p.lowpass_error:.3f}")
            for p in self.fields
        ]  # fmt: skip
        names = ("residual", "seed", "bits", "max error", "masks differ", "error", "without residual")
        return html_table(names, rows, f"Decodes on {self.device.name} beside NumPy's")


def compare_decodes(request: ParityRequest, *, device: str | Device = "auto", events: Events = SILENT) -> DecodeParity:
    """Decodes random fields on NumPy and on a device, and compares errors, energies, masks and bands. Both run the
    portable kernels, so fields and masks must have the same bits."""
    require_request(request, ParityRequest)
    n, count = request.n, request.seeds
    if count < 1:
        raise InputError(f"`seeds=` is {count}.", "use 1 or more.")
    # States, fields and what they are compared with, in float64.
    require_memory(8 * 4 * count * Flow(n).n ** 2, f"{count} fields of {n} x {n}", "use fewer `seeds=`.")
    settings = [
        Settings(residual=name, gate=request.gate, dtype=request.dtype) for name in dict.fromkeys(request.residuals)
    ]
    seeds = list(range(count))
    with Job(command="flow parity", request=request, device=device, events=events).place() as placed:
        fields = to_field(ensemble(Flow(n), "random", seeds))
        schema = choose_anchors(Schema(n, request.k_cut), fields, request.anchors, device=placed.device)
        statistics = fit_statistics(schema, fields)
        compared: list[Parity] = []
        with events.progress("parity", len(settings) * count, "fields") as advance:
            for setting in settings:
                compared += compare(
                    schema, fields, seeds, setting, device=placed.device, statistics=statistics, progress=advance
                )
        info = placed.device.info
    return DecodeParity(request, info, tuple(compared))
