"""Vulkan driver files: where they are, which are active, and NVIDIA drivers that come without one."""

from __future__ import annotations

import contextlib
import ctypes.util
import json
import os
import sys
import tempfile
from collections.abc import Generator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

_VARIABLES: Final = ("VK_DRIVER_FILES", "VK_ICD_FILENAMES")
# EGL first: the GLX library is often there too, but refuses to work without an X server's libraries.
_NVIDIA: Final = ("libEGL_nvidia.so.0", "libGLX_nvidia.so.0")
_NVIDIA_FOLDERS: Final = ("/usr/local/nvidia/lib64", "/usr/lib/x86_64-linux-gnu", "/usr/lib64", "/usr/lib/wsl/lib")


@dataclass(frozen=True)
class DriverFile:
    """A driver manifest: its path, the library it names, and what is wrong with it, if anything."""

    path: str
    library: str
    problem: str = ""


def _folders() -> list[Path]:
    data = [Path(p) for p in os.environ.get("XDG_DATA_DIRS", "/usr/local/share:/usr/share").split(":") if p]
    config = [Path(p) for p in os.environ.get("XDG_CONFIG_DIRS", "/etc/xdg").split(":") if p]
    places = [
        *_own("XDG_CONFIG_HOME", ".config"), *config, Path("/etc"), *_own("XDG_DATA_HOME", ".local/share"), *data,
    ]  # fmt: skip
    if sys.platform == "darwin":
        places += [Path("/opt/homebrew/etc"), Path("/opt/homebrew/share"), Path("/usr/local/etc")]
    return [place / "vulkan" / "icd.d" for place in places]


def _own(variable: str, below: str) -> list[Path]:
    """The user's folder of that kind; none for users who have no home."""
    chosen = os.environ.get(variable)
    if chosen:
        return [Path(chosen)]
    with contextlib.suppress(RuntimeError):
        return [Path.home() / below]
    return []


def _manifests() -> list[Path]:
    for variable in _VARIABLES:
        chosen = os.environ.get(variable)
        if chosen:
            return [Path(p) for p in chosen.split(os.pathsep) if p]
    files: list[Path] = []
    for folder in _folders():
        with contextlib.suppress(OSError):
            files += sorted(p for p in folder.iterdir() if p.suffix == ".json")
    return list(dict.fromkeys(files))


def _inspect(path: Path) -> DriverFile:
    try:
        data = json.loads(path.read_text())
        library = str(data["ICD"]["library_path"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        return DriverFile(str(path), "", f"not a driver file ({type(error).__name__}: {error})")
    there = path.parent / library if library.startswith(".") else Path(library)
    if ("/" in library and not there.exists()) or ("/" not in library and not _loadable(library)):
        return DriverFile(str(path), library, "its library is not on this machine")
    return DriverFile(str(path), library)


def _loadable(library: str) -> bool:
    stem = library.removeprefix("lib").split(".so")[0]
    if ctypes.util.find_library(stem):
        return True
    folders = [
        *os.environ.get("LD_LIBRARY_PATH", "").split(":"),
        "/lib",
        "/usr/lib",
        "/usr/local/lib",
        *_NVIDIA_FOLDERS,
    ]
    return any(folder and (Path(folder) / library).exists() for folder in folders)


def driver_files() -> list[DriverFile]:
    """The driver files that the Vulkan loader reads on this machine."""
    return [_inspect(path) for path in _manifests()]


def nvidia_without_file() -> str | None:
    """The library of an NVIDIA driver that no driver file names (containers often have only libEGL_nvidia)."""
    if sys.platform != "linux" or any(os.environ.get(v) for v in _VARIABLES):
        return None
    if any("nvidia" in f.library.lower() and not f.problem for f in driver_files()):
        return None
    for library in _NVIDIA:
        for folder in (*os.environ.get("LD_LIBRARY_PATH", "").split(":"), *_NVIDIA_FOLDERS):
            if folder and (Path(folder) / library).exists():
                return str(Path(folder) / library)
    return None


@contextlib.contextmanager
def driver_environment(only: Sequence[str] | None = None) -> Generator[None]:
    """While it lasts, the loader sees these drivers alone: driver files, or libraries that come without one. By
    default: what it finds by itself, and an NVIDIA driver that ships without a driver file."""
    if only is None and (library := nvidia_without_file()) is not None:
        only = [*(f.path for f in driver_files() if not f.problem), library]
    before = {variable: os.environ.get(variable) for variable in _VARIABLES}
    with tempfile.TemporaryDirectory(prefix="dashi-driver-") as folder:
        # The loader reads the environment when the instance is made; older loaders know only the second name.
        if only is not None:
            os.environ.update(dict.fromkeys(_VARIABLES, _listed(only, Path(folder))))
        elif not any(before.values()):
            # Set but empty, it would mean "no drivers" to some loaders and "as if unset" to others.
            for variable in _VARIABLES:
                os.environ.pop(variable, None)
        try:
            yield
        finally:
            for variable, value in before.items():
                os.environ.pop(variable, None)
                if value is not None:
                    os.environ[variable] = value


def _listed(drivers: Sequence[str], folder: Path) -> str:
    """Driver files as the loader wants them; for bare libraries files are made. No driver is a file that is not there:
    an empty list would mean all of them."""
    files = [p if p.endswith(".json") else _made_file(folder / f"{i}.json", p) for i, p in enumerate(drivers)]
    return os.pathsep.join(files or [str(folder / "none.json")])


def _made_file(path: Path, library: str) -> str:
    content = {"file_format_version": "1.0.1", "ICD": {"library_path": library, "api_version": "1.3.0"}}
    path.write_text(json.dumps(content))
    return str(path)
