"""dashi: Vulkan compute kernels with the same bits on every device, as operators over NumPy arrays.

    with dashi.open() as d:
        y = d.run("axpy", x, y, a=2).numpy()

Importing does nothing: no device is opened and no driver is loaded before `open` or `devices` is called, and what a
program does not name is not imported. Its packages: `dashi.core`, `fft`, `flow`, `graph`, `io`, `kernels`, `lab`,
`report`, `runtime`, `stream`.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from dashi import errors, kernels
from dashi._lazy import lazy_names

if TYPE_CHECKING:
    from typing import Unpack

    from dashi import bench as bench
    from dashi import core as core
    from dashi import fft as fft
    from dashi import flow as flow
    from dashi import graph as graph
    from dashi import io as io
    from dashi import lab as lab
    from dashi import report as report
    from dashi import runtime as runtime
    from dashi import stream as stream
    from dashi import types as types
    from dashi.core.operators.affine import Affine as Affine
    from dashi.core.operators.affine import Linear as Linear
    from dashi.core.operators.bands import Bands as Bands
    from dashi.core.operators.operator import Operator as Operator
    from dashi.core.operators.quadratic import Quadratic as Quadratic
    from dashi.core.operators.sparse import BlockSparse as BlockSparse
    from dashi.core.operators.sparse import Csr as Csr
    from dashi.core.rollouts.run import Run as Run
    from dashi.kernels._text_operands import TextOptions
    from dashi.kernels.abi import Kernel as Kernel
    from dashi.lab.rollout_front import rollout as rollout
    from dashi.lab.rollout_front import verify as verify
    from dashi.runtime.array import Array as Array
    from dashi.runtime.device import Device as Device
    from dashi.runtime.device import Program as Program
    from dashi.runtime.device import Step as Step
    from dashi.runtime.info import DeviceInfo as DeviceInfo
    from dashi.runtime.landing import Ticket as Ticket

    __version__: str

_PACKAGES = ("bench", "core", "fft", "flow", "graph", "io", "lab", "report", "runtime", "stream", "types")
_MODULES = {
    "core.operators.affine": "Affine Linear",
    "core.operators.bands": "Bands",
    "core.operators.operator": "Operator",
    "core.operators.quadratic": "Quadratic",
    "core.operators.sparse": "BlockSparse Csr",
    "core.rollouts.run": "Run",
    "kernels.abi": "Kernel",
    "lab.rollout_front": "rollout verify",
    "runtime.array": "Array",
    "runtime.device": "Device Program Step",
    "runtime.info": "DeviceInfo",
    "runtime.landing": "Ticket",
}


def open(device: str = "auto", *, timeout: float = 600.0, validation: bool | None = None, queues: int = 1) -> Device:
    """Opens a device: `auto`, `cpu`, `null`, `vulkan:0` or `vulkan:part-of-name`. Use it in a `with` block.

    `auto` takes the best there is and says which; nothing else ever falls back. `timeout` is the longest that one
    wait may last, in seconds; `validation` switches Vulkan's validation layers on (default: the environment variable
    DASHI_VALIDATION); `queues` is how many compute queues to open.
    """
    from dashi.runtime.select import open_device

    return open_device(device, timeout=timeout, validation=validation, queues=queues)


def devices() -> list[DeviceInfo]:
    """Every device of this machine: Vulkan's in the order of their numbers, then `cpu` and `null`."""
    from dashi.runtime.select import list_devices

    return list_devices()


def kernel(source: str, **options: Unpack[TextOptions]) -> Kernel:
    """The kernel of a name or alias; or a new one of GLSL text, compiled by the extra `compile` and kept in the user's
    cache folder.

    A function of values, for arrays that are stretched to one shape: `dashi.kernel("T apply(T x, T y) { return
    mul(a, x) + y; }", inputs="x y", scalars="a")`. Or a whole shader with `void main()`, whose arrays have shapes
    ("x[m,n] index:u32[n]"); it loops over `items` elements of the first output by `stride`. `reference`, a NumPy
    function of the same values, is compared bit for bit before a device first runs the kernel; without one the kernel
    is unproved, and says so. The page on kernels of your own (docs/own-kernels.md) has all options.
    """
    if not isinstance(source, str):  # pyright: ignore[reportUnnecessaryIsInstance] - callers' own
        raise errors.InputError(
            f"{source!r:.80} is no kernel.", 'pass its name, `dashi.kernel("axpy")`, or GLSL: `T apply(T x) { ... }`.'
        )
    if "{" in source:
        from dashi.kernels._text import from_text

        return from_text(source, **options)
    if options:
        raise errors.InputError(
            f"{source!r} is the name of a kernel, but {', '.join(options)} belong to one from text.",
            "leave them away, or pass GLSL: `T apply(T x) { ... }`.",
        )
    return kernels.get(source)


if not TYPE_CHECKING:  # to a type checker a name that is not imported above is a mistake
    __all__, _get, __dir__ = lazy_names(
        __name__, _MODULES, more=("__version__", "devices", "errors", "kernel", "kernels", "open", *_PACKAGES)
    )

    def __getattr__(name: str) -> object:
        if name == "__version__":
            return _version()
        return import_module(f"dashi.{name}") if name in _PACKAGES else _get(name)


def _version() -> str:
    # It is written in pyproject.toml alone; reading a package's metadata takes time that few programs need.
    from importlib import metadata

    try:
        return metadata.version(errors.DISTRIBUTION)
    except metadata.PackageNotFoundError:
        return "0+not.installed"
