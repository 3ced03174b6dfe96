"""`inspect_machine_code`: every kernel through a vendor's own compiler, and what its machine code does to floats.

    from dashi import lab
    report = lab.inspect_machine_code(lab.MachineCodeRequest("amd", kernels=("axpy", "gemm_fast")))
    report.ok, report.fused(portable=False)

A portable kernel must have no fused multiply-add and no estimate of the hardware (reciprocal, root, exponential, ...)
but those of integer divisions. Kernels of the device class are the control: their multiply-adds must be seen.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from dashi import kernels
from dashi.errors import InputError
from dashi.kernels._build import Loader
from dashi.kernels.abi import Kernel
from dashi.lab.events import SILENT, Advance, Events
from dashi.lab.isa._compiler import VendorCompiler
from dashi.lab.isa._instructions import ISAS, InstructionCounts, count
from dashi.lab.isa._modules import ModuleUse, module_uses
from dashi.lab.isa._vendors import Gpu, Vendor, toolchain, vendor_named
from dashi.runtime._notebook import html_table

MEMORY: Final = 6 << 30
TIMEOUT: Final = 120.0


@dataclass(frozen=True)
class MachineCodeRequest:
    """Which kernels, through whose compiler, within which bounds."""

    vendor: str
    kernels: tuple[str, ...] = ()
    """By name; none means all."""
    gpu: str = ""
    """A part of the name of one of the vendor's GPUs; empty means all that are known."""
    drivers: Path | None = None
    """The folder of unpacked compilers; None means the system's for AMD, `.drivers/vendors` for the others."""
    memory: int = MEMORY
    """Bytes that the compiler's process may have."""
    timeout: float = TIMEOUT
    """Seconds for a module."""


@dataclass(frozen=True)
class MachineCode:
    """What became of one module; `problem` says why it could not be compiled, `skipped` what the GPU lacks for it."""

    gpu: str
    driver: str
    kernel: str
    shader: str
    variant: str
    spec: tuple[int, ...]
    portable: bool
    counts: InstructionCounts = field(default_factory=InstructionCounts)
    problem: str = ""
    skipped: str = ""
    seconds: float = 0.0

    @property
    def ok(self) -> bool:
        """Whether the module was compiled, and to nothing that a portable kernel must not have."""
        clean = not (self.counts.fused or self.counts.estimates)
        return not self.problem and (clean or not self.portable)

    def as_json(self) -> dict[str, Any]:
        return {**asdict(self), "ok": self.ok}


@dataclass(frozen=True)
class MachineCodeReport:
    """The machine code of all modules."""

    request: MachineCodeRequest
    rows: tuple[MachineCode, ...]

    @property
    def ok(self) -> bool:
        """Whether every module was compiled, and no portable one has what it must not have."""
        return all(row.ok for row in self.rows)

    def fused(self, *, portable: bool) -> int:
        """Fused multiply-adds in all modules of portable kernels, or of the others."""
        return sum(row.counts.fused for row in self.rows if row.portable is portable)

    def multiply_adds(self, *, portable: bool) -> int:
        """Multiply-adds in one instruction, fused or not."""
        return self.fused(portable=portable) + sum(r.counts.unfused for r in self.rows if r.portable is portable)

    def __repr__(self) -> str:
        failed = sum(not row.ok for row in self.rows)
        return f"<MachineCodeReport: {len(self.rows)} modules for {self.request.vendor}, {failed} failed>"

    def _repr_html_(self) -> str:
        rows = [
            (row.kernel, row.variant, row.gpu, row.counts.fused, row.counts.estimates, row.problem or row.skipped)
            for row in self.rows
        ]
        return html_table(("kernel", "type", "gpu", "fused", "estimates", "note"), rows, self.request.vendor)


def inspect_machine_code(request: MachineCodeRequest, *, events: Events = SILENT) -> MachineCodeReport:
    """Compiles the kernels for every GPU asked for and counts what their machine code does. Nothing is run, and no
    hardware is needed."""
    vendor = vendor_named(request.vendor)
    gpus = [gpu for gpu in vendor.gpus if request.gpu.lower() in gpu.name.lower()]
    if not gpus:
        known = ", ".join(gpu.name for gpu in vendor.gpus)
        raise InputError(f"{vendor.name} has no GPU {request.gpu!r} here.", f"choose one of: {known}.")
    chosen = [kernels.get(name) for name in request.kernels or kernels.names()]
    rows: list[MachineCode] = []
    for gpu in gpus:
        with events.progress(f"compiling for {gpu.name}", len(chosen), "kernels") as advance:
            rows += _inspect(request, vendor, gpu, chosen, advance)
    return MachineCodeReport(request, tuple(rows))


def _inspect(
    request: MachineCodeRequest, vendor: Vendor, gpu: Gpu, chosen: list[Kernel], advance: Advance
) -> Iterator[MachineCode]:
    with VendorCompiler(toolchain(vendor, gpu, request.drivers), request.memory, request.timeout) as compiler:
        inspection = _Inspection(compiler, vendor.name, gpu.name)
        for kernel in chosen:
            uses, lacking = module_uses(kernel, compiler.info)
            yield from map(inspection.row, uses)
            for text in lacking:
                variant, _, features = text.partition(": ")
                use = ModuleUse(kernel, "", variant, ())
                yield replace(inspection.empty_row(use), skipped=f"needs {features}")
            advance(1)


class _Inspection:
    """One compiler, and what it made so far: variants that only move words have the same module."""

    def __init__(self, compiler: VendorCompiler, vendor: str, gpu: str) -> None:
        self._compiler, self._isa, self._gpu = compiler, ISAS[vendor], gpu
        self._driver = f"{compiler.info.driver} {compiler.info.driver_info}"
        self._loader = Loader()
        self._compiled: dict[str, tuple[InstructionCounts, str]] = {}

    def empty_row(self, use: ModuleUse) -> MachineCode:
        kernel = use.kernel
        return MachineCode(self._gpu, self._driver, kernel.name, use.shader, use.variant, use.spec, kernel.portable)

    def row(self, use: ModuleUse) -> MachineCode:
        began = time.perf_counter()
        request = use.request(self._compiler.info, self._loader)
        key = hashlib.sha256(json.dumps(request).encode()).hexdigest()
        if key not in self._compiled:
            text, problem = self._compiler.compile(request)
            counts = count(self._isa, text)
            if not problem and not counts.instructions:
                problem = "the driver gave no machine code that could be read"
            self._compiled[key] = counts, problem
        counts, problem = self._compiled[key]
        seconds = round(time.perf_counter() - began, 3)
        return replace(self.empty_row(use), counts=counts, problem=problem, seconds=seconds)
