"""The health of an installation: what works here, what is missing, and the command that installs it.

Vulkan is only ever touched from child processes: a bad driver ends those, not us.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Final, Literal

import numpy as np

import dashi
from dashi import kernels
from dashi._cache import cache_folder
from dashi.errors import DISTRIBUTION, DashiError, install_extra
from dashi.kernels import _build as build
from dashi.kernels import _compiler as compiler
from dashi.lab.events import SILENT, Events
from dashi.runtime._cuda import cuda_problem
from dashi.runtime._drivers import DriverFile, driver_files, nvidia_without_file
from dashi.runtime._instance import FLOAT_CONTROLS
from dashi.runtime._notebook import html_table
from dashi.runtime._probe import Probe, probe, probe_each
from dashi.runtime.info import DeviceInfo

Status = Literal["ok", "optional", "warning", "failed"]
"""`optional`: not there, and only needed to develop or to draw. `failed`: dashi itself does not work."""

_INSTALL: Final = {
    "apt-get": ("apt-get install", "libvulkan1", "mesa-vulkan-drivers", "vulkan-validationlayers", "spirv-tools"),
    "dnf": ("dnf install", "vulkan-loader", "mesa-vulkan-drivers", "vulkan-validation-layers", "spirv-tools"),
    "pacman": ("pacman -S", "vulkan-icd-loader", "vulkan-swrast", "vulkan-validation-layers", "spirv-tools"),
    "brew": ("brew install", "vulkan-loader", "molten-vk", "vulkan-validationlayers", "spirv-tools"),
}
TIMEOUT: Final = 60.0
_LOADER, _DRIVER, _LAYERS, _SPIRV_VAL = 1, 2, 3, 4
_ONLY_OURS: Final = (
    f"pip uninstall -y dashi {DISTRIBUTION}, then install {DISTRIBUTION} again (in a checkout: pip install .)"
)


@dataclass(frozen=True)
class PartHealth:
    """One part of an installation: how it is, in words, and what mends it."""

    name: str
    status: Status
    text: str
    fix: str = ""


@dataclass(frozen=True)
class Health:
    """How an installation is."""

    parts: tuple[PartHealth, ...]
    loader: Probe | None = None
    """The Vulkan loader; None where the package itself is broken."""
    driver_files: tuple[DriverFile, ...] = ()
    drivers: Mapping[str, Probe] = field(default_factory=dict[str, Probe])
    """What happened when each driver was probed by itself."""
    devices: tuple[DeviceInfo, ...] = ()

    @property
    def failed(self) -> list[str]:
        """Names of the parts without which dashi does not work."""
        return [part.name for part in self.parts if part.status == "failed"]

    @property
    def ok(self) -> bool:
        """Whether dashi works, if need be on the NumPy device alone."""
        return not self.failed

    @property
    def verdict(self) -> str:
        """A sentence that says on what dashi works here."""
        if self.failed:
            return f"dashi does not work here: {', '.join(self.failed)}."
        works = sum(part.name == "Vulkan device" and part.status == "ok" for part in self.parts)
        if not works:
            return "dashi works on the NumPy device (cpu); there is no Vulkan device that works."
        noted = sum(part.status == "warning" for part in self.parts)
        with_warnings = f", with {noted} warning{'s' * (noted > 1)}" if noted else ""
        return f"dashi works on {works} of {len(self.devices)} Vulkan devices and on the NumPy device{with_warnings}."

    def __repr__(self) -> str:
        return f"<Health: {self.verdict}>"

    def _repr_html_(self) -> str:
        rows = [(part.name.strip(), part.status, part.text, part.fix) for part in self.parts]
        return html_table(("part", "status", "what", "fix"), rows, self.verdict)

    def as_json(self) -> dict[str, Any]:
        """The document of `dashi doctor --json`."""
        loader = self.loader
        about = (
            {"name": loader.loader, "version": loader.loader_version, "layers": list(loader.layers)} if loader else {}
        )
        drivers = [{"driver": name, "problem": p.problem, "unsafe": p.unsafe} for name, p in self.drivers.items()]
        return {
            "ok": self.ok,
            "verdict": self.verdict,
            "findings": [asdict(part) for part in self.parts],
            "loader": about,
            "driver_files": [asdict(file) for file in self.driver_files],
            "drivers": drivers,
            "devices": [info.as_json() for info in self.devices],
        }


def examine(timeout: float = TIMEOUT, *, events: Events = SILENT) -> Health:
    """Looks at everything that dashi needs, in child processes where a driver could crash or hang. `timeout` are the
    seconds that a driver may take to answer."""
    parts = [*host()]
    if any(part.name == "dashi" and part.status == "failed" for part in parts):  # nothing of it can be asked anything
        return Health(tuple(parts))
    parts += [binaries(), *tools()]
    about = probe("loader", timeout=timeout)
    parts += loader(about)
    files, probes, offered = driver_files(), dict[str, Probe](), about
    if about.loader:
        events.remark("probing drivers ...")
        probes = probe_each(timeout)
        parts += drivers(files, probes)
        offered = _sound_devices(probes, timeout)
    parts += devices(offered)
    return Health(tuple(parts), about, tuple(files), probes, tuple(offered.devices))


def _sound_devices(probes: Mapping[str, Probe], timeout: float) -> Probe:
    """All devices that the sound drivers give together, numbered as `dashi.open` numbers them."""
    bad = [name for name, p in probes.items() if p.unsafe]
    good = [name for name in probes if name not in bad] if bad else None
    offered = probe("compute", good, timeout)
    if offered.unsafe:
        problem = f"{offered.problem} while a kernel ran"
        looked = probe("look", good, timeout)
        offered = replace(looked, computed={info.spec: problem for info in looked.devices})
    return offered


def install(*packages: int) -> str:
    """The command that installs system packages here."""
    tool = next((t for t in _INSTALL if shutil.which(t)), "apt-get")
    allowed = tool == "brew" or os.name != "posix" or os.geteuid() == 0
    words = _INSTALL[tool]
    return " ".join(["" if allowed else "sudo", words[0], *(words[p] for p in packages)]).strip()


def host() -> Iterator[PartHealth]:
    """Python, the package, the folder for caches, and the NumPy device."""
    yield PartHealth("Python", "ok", f"{platform.python_version()} ({sys.executable}), NumPy {np.__version__}")
    if not hasattr(dashi, "open"):
        text = f"{Path(dashi.__file__).parent} holds other software of that name, or parts of both"
        yield PartHealth("dashi", "failed", text, _ONLY_OURS)
        return
    yield PartHealth("dashi", "ok", f"{dashi.__version__} ({Path(dashi.__file__).parent})")
    yield from other_distribution()
    yield _cache()
    x = np.arange(5, dtype=np.float32)
    try:
        with dashi.open("cpu") as device:
            right = np.array_equal(device.run("add", x, x).numpy(), 2 * x)
    except DashiError as error:
        yield PartHealth("cpu device", "failed", error.what, error.fix)
    else:
        text = "computes" if right else "gives wrong results"
        yield PartHealth(
            "cpu device", "ok" if right else "failed", text, "" if right else f"reinstall numpy and {DISTRIBUTION}."
        )


def other_distribution() -> Iterator[PartHealth]:
    """The software that the package index calls `dashi`: it has our import name, so its files replace ours."""
    try:
        other = importlib.metadata.distribution("dashi")
    except importlib.metadata.PackageNotFoundError:
        return
    what = f"{other.version} ({other.metadata['Summary']})"
    text = f"the distribution dashi {what} is installed too, and is imported by the same name"
    yield PartHealth("other dashi", "warning", text, _ONLY_OURS)


def _cache() -> PartHealth:
    folder = cache_folder()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return PartHealth("cache folder", "ok", f"{folder} can be written")
    except OSError as error:
        return PartHealth(
            "cache folder",
            "warning",
            f"{folder} cannot be written ({error.strerror}): every start compiles pipelines and probes drivers anew",
            "name another folder: export DASHI_CACHE_DIR=/path",
        )


def binaries() -> PartHealth:
    """Whether every kernel's SPIR-V is there and belongs to its sources."""
    bad: list[str] = []
    count = 0
    loader = build.Loader(everything=True)
    for name in kernels.names():
        try:
            kernel = kernels.get(name)
            for shader, variant in build.variants(kernel):
                loader.load(kernel, shader, variant)
                count += 1
        except DashiError as error:
            bad.append(f"{name}: {error.what}")
    if bad:
        return PartHealth("kernel binaries", "failed", "; ".join(bad), "dashi kernels build")
    return PartHealth("kernel binaries", "ok", f"{len(kernels.names())} kernels, {count} binaries, all fresh")


def tools() -> Iterator[PartHealth]:
    """What only developers, or those who draw, need."""
    version = compiler.installed()
    if version == compiler.VERSION:
        yield PartHealth("shader compiler", "ok", f"{compiler.WHEEL} {version}")
    else:
        text = f"{compiler.WHEEL} is {version or 'not installed'}; only writing kernels needs it, in version " + (
            compiler.VERSION
        )
        yield PartHealth("shader compiler", "optional", text, install_extra("compile"))
    tool = shutil.which("spirv-val")
    if tool is None:
        yield PartHealth("spirv-val", "optional", "not installed; only building kernels uses it", install(_SPIRV_VAL))
    else:
        yield PartHealth("spirv-val", "ok", f"{_version(tool)} ({tool})")
    if importlib.util.find_spec("matplotlib") is None:
        yield PartHealth("matplotlib", "optional", "not installed; pictures need it", install_extra("plot"))
    else:
        yield PartHealth("matplotlib", "ok", "installed")


def _version(tool: str) -> str:
    try:
        done = subprocess.run([tool, "--version"], capture_output=True, text=True, timeout=20, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return "does not answer"
    return (done.stdout.splitlines() or ["unknown version"])[0]


def loader(answer: Probe) -> Iterator[PartHealth]:
    """The Vulkan loader and the validation layers."""
    if not answer.loader:
        yield PartHealth("Vulkan loader", "warning", answer.problem.rstrip("."), install(_LOADER))
        return
    yield PartHealth("Vulkan loader", "ok", f"{answer.loader} {answer.loader_version}")
    if answer.validation:
        yield PartHealth("validation layers", "ok", "installed")
    else:
        text = "not installed; only the tests and DASHI_VALIDATION=1 use them"
        yield PartHealth("validation layers", "optional", text, install(_LAYERS))


def drivers(files: list[DriverFile], probes: Mapping[str, Probe]) -> Iterator[PartHealth]:
    """Each driver file, and what happened when it was probed by itself."""
    for file in files:
        if file.problem:
            fix = f"reinstall the driver it belongs to, or remove {file.path}"
            yield PartHealth("driver file", "warning", f"{file.path}: {file.problem}", fix)
    for name, answer in probes.items():
        if answer.unsafe:
            fix = f"update or remove that driver; until then dashi leaves it out (it is named by {name})"
            yield PartHealth("driver", "warning", f"{name} {answer.problem} while it was probed", fix)
        else:
            names = ", ".join(d.name for d in answer.devices) or "no device of its kind here"
            yield PartHealth("driver", "ok", f"{name}: {names}")
    if not files and not probes:
        yield PartHealth("driver", "warning", "there is no Vulkan driver on this machine", install(_DRIVER))


def devices(answer: Probe) -> Iterator[PartHealth]:
    """Each Vulkan device, and whether a kernel gave the right bits on it."""
    for info in answer.devices:
        problem = answer.computed.get(info.spec, "")
        what = f"{info.spec}: {info.name}, {info.type}, {info.driver} {info.driver_info or info.driver_version}"
        if problem:
            yield PartHealth("Vulkan device", "warning", f"{what}: {problem}", "update its driver")
        else:
            yield PartHealth("Vulkan device", "ok", f"{what}, Vulkan {info.api_version}: computes")
        yield PartHealth("  features", "ok", " ".join(sorted(info.features)))
        yield PartHealth("  rounding, NaN", "ok", _float_rules(info))
        if info.is_hardware and "nvidia" in f"{info.driver} {info.name}".lower():
            cuda = cuda_problem(info)
            shares = f"shares no memory with CUDA: {cuda}" if cuda else "shares memory with CUDA (tried)"
            yield PartHealth("  CUDA", "ok", shares)
    if not answer.devices:
        why = (
            answer.problem.rstrip(".") if answer.problem else "the drivers offer none that has Vulkan 1.2 and timelines"
        )
        fix = install(_DRIVER) if answer.loader else install(_LOADER, _DRIVER)
        yield PartHealth("Vulkan device", "warning", f"none: {why}", fix)
    yield from hardware(answer.devices)


def _float_rules(info: DeviceInfo) -> str:
    if info.float_rules != "by custom":
        return f"{info.float_rules} (float controls of the device, in every portable module)"
    switched_off = os.environ.get(FLOAT_CONTROLS) == "0"
    why = f"{FLOAT_CONTROLS}=0" if switched_off else "the device offers no float controls"
    return f"by custom ({why}): nearest even and IEEE NaN are what drivers do, not what Vulkan promises"


def hardware(infos: tuple[DeviceInfo, ...]) -> Iterator[PartHealth]:
    """Graphics hardware that the system shows, but Vulkan does not."""
    if any(info.is_hardware for info in infos):
        return
    closed = [str(p) for p in sorted(Path("/dev/dri").glob("renderD*")) if not os.access(p, os.R_OK | os.W_OK)]
    if closed:
        fix = "sudo usermod -aG render,video $USER, then log in again"
        yield PartHealth("hardware", "warning", f"you may not use {', '.join(closed)}", fix)
    if Path("/dev/nvidiactl").exists() and nvidia_without_file() is None:
        text = "an NVIDIA GPU is here, but no Vulkan device of its: its driver library is missing or of another version"
        fix = "install the driver's Vulkan part; in a container, start it with NVIDIA_DRIVER_CAPABILITIES=all"
        yield PartHealth("hardware", "warning", text, fix)
