"""Kernels of one's own as folders: begun, built, held against their folders; and the accuracy of the portable maths."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from dashi.errors import InputError
from dashi.io._paths import path_of
from dashi.kernels import _build as build
from dashi.kernels import _scaffold as scaffold
from dashi.kernels import get
from dashi.kernels._compiler import Compiler
from dashi.kernels._registry import read_all
from dashi.kernels.abi import Kernel
from dashi.kernels.portable import _accuracy as accuracy
from dashi.lab._job import AnyPath
from dashi.lab.events import SILENT, Events
from dashi.runtime._notebook import html_table


@dataclass(frozen=True)
class BuiltKernels:
    """Kernels that were built, or compared with their folders: a row of plain data each."""

    rows: list[dict[str, Any]]
    """`name`, and the digests of its `binaries`, or the `differences` that a rebuild would make."""

    @property
    def differing(self) -> list[str]:
        """Names of the kernels that a rebuild would change."""
        return [row["name"] for row in self.rows if row.get("differences")]

    @property
    def ok(self) -> bool:
        """Whether every folder has the binaries that its sources build as."""
        return not self.differing

    def __repr__(self) -> str:
        return f"<BuiltKernels: {len(self.rows)} kernels, {len(self.differing)} differ>"

    def _repr_html_(self) -> str:
        state = [(row["name"], "; ".join(row.get("differences", ())) or "as in its folder") for row in self.rows]
        return html_table(("kernel", "binaries"), state, "Built kernels")


def new_kernel(name: str, folder: AnyPath | None = None, family: str = "user") -> Path:
    """Writes a kernel folder that builds and passes its checks as it stands, `folder`/name, and returns its path.
    Without `folder` it is a kernel of the project, in that family."""
    return scaffold.new(name, None if folder is None else path_of("folder", folder), family)


def read_kernels(folder: AnyPath) -> list[Kernel]:
    """The kernels of a folder outside the project. Its kernel.py is Python that is run here: read only folders that you
    trust."""
    return list(read_all(path_of("folder", folder).resolve()))


def build_kernels(kernels: Sequence[Kernel | str], *, check: bool = False, events: Events = SILENT) -> BuiltKernels:
    """Builds the SPIR-V binaries of kernels (or of those of these names) into their folders by the pinned compiler (the
    extra `compile`). With `check` nothing is written, and the rows say what a rebuild would change."""
    rows: list[dict[str, Any]] = []
    with Compiler() as compiler, events.progress("building", len(kernels), "kernels") as advance:
        for each in kernels:
            kernel = get(each) if isinstance(each, str) else each
            if check:
                rows.append({"name": kernel.name, "differences": list(build.check(kernel, compiler))})
            else:
                built = build.build(kernel, compiler)
                rows.append({"name": kernel.name, "binaries": {key: b.binary.digest for key, b in built.items()}})
            advance(1)
    return BuiltKernels(rows)


def measure_accuracy(samples: int = 1 << 19) -> list[accuracy.AccuracyRow]:
    """The largest error of each function of the portable maths in units in the last place, over random arguments and
    those that are hard to round. Exact values come from mpmath."""
    if find_spec("mpmath") is None:
        raise InputError("mpmath is not installed, and the exact values come from it.", "pip install mpmath.")
    return accuracy.rows(samples)
