"""Vendors' compilers: which of their GPUs they are started for, where they lie, and how they are started.

RADV compiles without a GPU by itself. The others are told by a library of Mesa (drm-shim) that their hardware is there;
they are unpacked with their own C library (tests/drivers/fetch vendors), and so started by its loader.
"""

from __future__ import annotations

import os
import sys
import sysconfig
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from dashi.errors import DeviceNotFoundError, InputError
from dashi.runtime._drivers import driver_files

FOLDER: Final = Path(".drivers") / "vendors"
_LOADER: Final = "ld-linux-x86-64.so.2"
_FETCH: Final = "unpack them with `tests/drivers/fetch vendors`, in a clone of the project (Linux, x86-64)."


@dataclass(frozen=True)
class Gpu:
    """A GPU that a compiler is started for: its name, and the environment that asks for it."""

    name: str
    environment: Mapping[str, str] = field(default_factory=dict[str, str])


@dataclass(frozen=True)
class Vendor:
    """A vendor: the stem of its driver's library, the library that stands for its hardware, and GPUs of its."""

    name: str
    driver: str
    shim: str
    gpus: tuple[Gpu, ...]
    debug_text: str = ""
    """A variable and value that make the compiler print, where the driver does not give the machine code as text."""


@dataclass(frozen=True)
class Toolchain:
    """How a compiler is started."""

    gpu: str
    command: tuple[str, ...]
    environment: Mapping[str, str]
    debug_text: str = ""


def _radv(family: str) -> dict[str, str]:
    return {"RADV_FORCE_FAMILY": family}


VENDORS: Final[Mapping[str, Vendor]] = {
    vendor.name: vendor
    for vendor in (
        Vendor(
            "amd",
            "radeon",
            "",
            (Gpu("gfx1100 (RDNA3)", _radv("gfx1100")), Gpu("polaris10 (RX 580)", _radv("polaris10"))),
        ),
        Vendor("nvk", "nouveau", "nouveau", (Gpu("GA102 (Ampere)", {"NOUVEAU_CHIPSET": "0x172"}),)),
        Vendor("apple", "asahi", "asahi", (Gpu("M1 (G13G)"),), "AGX_MESA_DEBUG=shaders"),
        Vendor("adreno", "freedreno", "freedreno", (Gpu("Adreno 660", {"FD_GPU_ID": "660"}),)),
    )
}


def vendor_named(name: str) -> Vendor:
    """The vendor of a name; an InputError names those that there are."""
    if name not in VENDORS:
        raise InputError(f"there is no vendor {name!r}.", f"choose one of {', '.join(VENDORS)}.")
    return VENDORS[name]


def toolchain(vendor: Vendor, gpu: Gpu, folder: Path | None) -> Toolchain:
    """How the compiler for a GPU is started: the system's own driver where it needs no help and no folder is named,
    else the one unpacked in the folder."""
    quiet = {"MESA_SHADER_CACHE_DISABLE": "true", **gpu.environment}
    source = str(Path(__file__).parents[3])
    if folder is None and not vendor.shim:
        paths = os.pathsep.join([source, *filter(None, [os.environ.get("PYTHONPATH")])])
        driver = {"VK_DRIVER_FILES": _system_driver(vendor), "VK_ICD_FILENAMES": _system_driver(vendor)}
        return Toolchain(gpu.name, (sys.executable,), {**quiet, **driver, "PYTHONPATH": paths}, vendor.debug_text)
    unpacked = (folder or FOLDER).absolute()
    libraries, driver = unpacked / "lib", unpacked / f"{vendor.driver}.json"
    if not driver.is_file():
        raise DeviceNotFoundError(f"{unpacked} holds no compiler of {vendor.name}: {driver.name} is missing.", _FETCH)
    shim = ["--preload", str(libraries / f"lib{vendor.shim}_noop_drm_shim.so")] if vendor.shim else []
    search = os.pathsep.join([str(libraries), str(sysconfig.get_config_var("LIBDIR") or "")])
    command = (str(libraries / _LOADER), "--library-path", search, *shim, os.path.realpath(sys.executable))
    own = {
        # Started by another loader, the interpreter knows neither its home nor its environment.
        "PYTHONHOME": sys.base_prefix,
        "PYTHONPATH": os.pathsep.join([source, *(path for path in sys.path if path)]),
        "VK_DRIVER_FILES": str(driver),
        "VK_ICD_FILENAMES": str(driver),
    }
    return Toolchain(gpu.name, command, {**quiet, **own}, vendor.debug_text)


def _system_driver(vendor: Vendor) -> str:
    for file in driver_files():
        if vendor.driver in Path(file.path).name and not file.problem:
            return file.path
    raise DeviceNotFoundError(
        f"this system has no driver of {vendor.name} ({vendor.driver}).",
        f"install it (Debian: apt-get install mesa-vulkan-drivers), or {_FETCH}",
    )
