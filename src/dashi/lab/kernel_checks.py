"""Kernels on devices, held against their NumPy references: what `dashi kernels check` runs."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from typing import Any

import dashi
from dashi.kernels.abi import Kernel
from dashi.lab.events import SILENT, Events
from dashi.runtime._notebook import html_table
from dashi.runtime._vulkan_device import VulkanDevice
from dashi.runtime.conformance import Result, check, trials
from dashi.runtime.device import Device


@dataclass(frozen=True)
class KernelChecks:
    """A row of plain data for each device and kernel, every trial that failed, and what the validation layers said
    where they are on (DASHI_VALIDATION=1): a right result can still be luck."""

    rows: list[dict[str, Any]]
    failures: list[dict[str, Any]]
    validation_messages: list[str]

    @property
    def ok(self) -> bool:
        """Whether every trial passed, and the validation layers were silent."""
        return not self.failures and not self.validation_messages

    def __repr__(self) -> str:
        said = f", {len(self.validation_messages)} validation messages" if self.validation_messages else ""
        return f"<KernelChecks: {len(self.rows)} kernels on devices, {len(self.failures)} trials failed{said}>"

    def _repr_html_(self) -> str:
        names = ("kernel", "device", "trials", "passed", "failed", "skipped", "seconds")
        return html_table(names, [[row[name] for name in names] for row in self.rows], "Kernels beside NumPy")


def check_kernels(
    kernels: Sequence[Kernel | str], *, devices: Sequence[str] = ("auto",), quick: bool = False, events: Events = SILENT
) -> KernelChecks:
    """Runs every trial of the kernels (or of those of these names) on each device, one after the other; `quick` keeps
    small cases and two distributions of inputs."""
    kernels = [dashi.kernel(each) if isinstance(each, str) else each for each in kernels]
    with ExitStack() as stack:
        opened = [stack.enter_context(dashi.open(spec)) for spec in devices]
        total = len(opened) * sum(1 for kernel in kernels for _ in trials(kernel, quick=quick))
        advance = stack.enter_context(events.progress("checking", total, "trials"))
        rows: list[dict[str, Any]] = []
        failures: list[dict[str, Any]] = []
        for device in opened:
            for kernel in kernels:
                start = time.perf_counter()
                results: list[Result] = []
                for result in check(device, kernel, quick=quick):
                    results.append(result)
                    advance(1)
                rows.append(_row(device, kernel, results, time.perf_counter() - start))
                failures += [{"device": device.info.spec, **asdict(r)} for r in results if not r.ok]
        messages = [text for d in opened if isinstance(d, VulkanDevice) for text in d.instance.take_messages()]
    return KernelChecks(rows, failures, messages)


def _row(device: Device, kernel: Kernel, results: Sequence[Result], seconds: float) -> dict[str, Any]:
    failed = sum(not r.ok for r in results)
    skipped = [r for r in results if r.skipped]
    return {
        "device": device.info.spec,
        "device_name": device.info.name,
        "kernel": kernel.name,
        "portable": kernel.portable,
        "computed": device.info.type != "null",
        "trials": len(results),
        "passed": len(results) - failed - len(skipped),
        "failed": failed,
        "skipped": len(skipped),
        "missing": sorted({f"{r.variant}: {r.skipped}" for r in skipped}),
        "seconds": round(seconds, 3),
    }
