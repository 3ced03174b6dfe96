"""Kernels by name. Folders are found by their names alone; a kernel's file is imported when it is asked for."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import importlib.util
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Final

import numpy as np

from dashi.errors import AbiError, DashiError, KernelError, KernelNotFoundError, StaleBinaryError
from dashi.kernels import _build as build
from dashi.kernels._compiler import available
from dashi.kernels._other_names import fix_for
from dashi.kernels._validate import check_name, validate
from dashi.kernels.abi import Kernel, Number
from dashi.types import HostArray

Reference = Callable[..., HostArray | tuple[HostArray, ...]]
ROOT: Final = Path(__file__).parent
TEMPLATES: Final = ROOT / "_templates"
ADDED: Final = "added"

# The one piece of module state: `dashi.kernels.add` has to remember. Made when first needed, never at import.
_default_lock = threading.Lock()
_default: list[Registry] = []


def default() -> Registry:
    """The registry of `dashi.kernels.add`, `get` and `names`."""
    with _default_lock:
        if not _default:
            _default.append(Registry())
        return _default[0]


class Registry:
    """The kernels of a tree `<family>/<name>/kernel.py`, and those added from elsewhere. Safe to share by threads."""

    def __init__(self, root: Path = ROOT) -> None:
        self._lock = threading.RLock()
        self._folders: dict[str, Path] = {}
        self._loaded: dict[str, Kernel] = {}
        for path in sorted(root.glob("[a-z]*/[a-z]*/kernel.py")):
            folder = path.parent
            if folder.name in self._folders:
                raise KernelError(
                    f"two families hold a kernel {folder.name!r}: {self._folders[folder.name]} and {folder}.",
                    "rename one of them.",
                )
            self._folders[folder.name] = folder

    def names(self) -> tuple[str, ...]:
        """Every kernel's name, in order."""
        with self._lock:
            return tuple(sorted(self._folders))

    def __iter__(self) -> Iterator[Kernel]:
        return (self.get(name) for name in self.names())

    def __len__(self) -> int:
        return len(self.names())

    def __contains__(self, name: object) -> bool:
        return name in self.names()

    def get(self, name: str) -> Kernel:
        """The kernel of that name or alias. Only its own file is imported, unless the name is an alias."""
        with self._lock:
            if name not in self._folders:
                return self._by_alias(name)
            if name not in self._loaded:
                folder = self._folders[name]
                self._loaded[name] = read(folder, folder.parent.name)
            return self._loaded[name]

    def add(self, folder: str | Path, build_missing: bool = True) -> Kernel:
        """Register a kernel folder from outside the project; its kernel.py is run. Binaries that are missing or stale
        are built where the compiler is installed, unless `build_missing` is false; otherwise they are an error."""
        path = Path(folder).resolve()
        with self._lock:
            if self._folders.get(path.name) == path:
                return self.get(path.name)
            kernel = read(path)
            for name in (kernel.name, *kernel.aliases):
                if (taken := self.taken(name)) is not None:
                    raise KernelError(
                        f"there is a kernel {name!r} already, in {taken}.", f"rename the folder {path}, or its alias."
                    )
            _ready(kernel, build_missing)
            self._folders[path.name] = path
            self._loaded[path.name] = kernel
            return kernel

    def _by_alias(self, name: str) -> Kernel:
        known = set(self.names())
        for other in self.names():
            # A kernel that cannot be read has no aliases that anyone could know; asking for it by name says why.
            with contextlib.suppress(KernelError):
                kernel = self.get(other)
                if name in kernel.aliases:
                    return kernel
                known.update(kernel.aliases)
        raise KernelNotFoundError(f"there is no kernel {name!r}.", fix_for(name, known))

    def taken(self, name: str) -> Path | None:
        """The folder of the kernel that has this name or alias, if one has."""
        with self._lock:
            if name in self._folders:
                return self._folders[name]
            try:
                return self._by_alias(name).folder
            except KernelNotFoundError:
                return None


@functools.cache
def templates() -> Registry:
    """Kernels that others are made from by filling their functions: built like all, and none that anyone calls."""
    return Registry(TEMPLATES)


def _ready(kernel: Kernel, build_missing: bool) -> None:
    """Check that every binary can be loaded, building them first where that is wanted and possible."""
    try:
        for shader, variant in build.variants(kernel):
            binary = build.load(kernel, shader, variant)
            build.spirv_val(binary.words, f"{kernel.name}/{shader}.{variant}")
    except StaleBinaryError:
        if not (build_missing and available()):
            raise
        build.build(kernel)


def read(folder: Path, family: str = ADDED) -> Kernel:
    """The kernel of a folder, its ABI checked; its binaries are not looked at. Reading a folder runs its kernel.py."""
    path = folder / "kernel.py"
    if not folder.is_dir():
        raise KernelError(f"there is no kernel folder {folder}.", "pass the folder that holds kernel.py.")
    if not path.is_file():
        if inside := _folders_in(folder):
            raise KernelError(
                f"the folder {folder} holds no kernel.py, but {', '.join(p.name for p in inside)} in it "
                f"{'does' if len(inside) == 1 else 'do'}.",
                f"pass {' or '.join(str(p) for p in inside)}.",
            )
        raise KernelError(
            f"the folder {folder} holds no kernel.py.", "write one, or make a folder with `dashi kernels new NAME`."
        )
    check_name(folder.name)
    declared = _import(path)
    kernel = replace(
        declared, name=folder.name, family=family, folder=folder, reference=_guarded(declared.reference, path)
    )
    validate(kernel)
    return kernel


def read_all(folder: Path) -> list[Kernel]:
    """The kernel of a folder; or those of all its subfolders that hold a kernel.py, by name."""
    several = [] if (folder / "kernel.py").is_file() else _folders_in(folder)
    return [read(path) for path in several or [folder]]


def _folders_in(folder: Path) -> list[Path]:
    """The kernel folders right inside another."""
    return sorted(path.parent for path in folder.glob("*/kernel.py"))


def _import(path: Path) -> Kernel:
    # The name is unique per folder, so that two folders called alike do not share a module.
    module_name = f"dashi_kernel_{path.parent.name}_{hashlib.sha256(str(path).encode()).hexdigest()[:12]}"
    spec = importlib.util.spec_from_file_location(module_name, path)
    if spec is None or spec.loader is None:
        raise AbiError(f"{path} cannot be imported.", "make it a plain Python file.")
    module = importlib.util.module_from_spec(spec)
    sys.modules[module_name] = module
    try:
        spec.loader.exec_module(module)
    except DashiError:
        raise
    except (Exception, SystemExit) as error:  # a kernel that ends the program would pass for one that is in order
        raise AbiError(f"{path} does not import: {type(error).__name__}: {error}.", "correct the file.") from error
    finally:
        del sys.modules[module_name]
    declared = getattr(module, "KERNEL", None)
    if not isinstance(declared, Kernel):
        raise AbiError(f"{path} defines no KERNEL.", "end it with KERNEL = Kernel(...), or a pattern that makes one.")
    return declared


def _guarded(reference: Reference, path: Path) -> Reference:
    """Overflow and NaN are values here, not mishaps: NumPy need not warn of them, whoever calls the reference. And no
    reference ends the program."""

    @functools.wraps(reference)
    def guarded(*inputs: HostArray, **scalars: Number) -> HostArray | tuple[HostArray, ...]:
        with np.errstate(all="ignore"):
            try:
                return reference(*inputs, **scalars)
            except SystemExit as error:
                raise KernelError(f"the reference in {path} ends the program.", "correct the file.") from error

    return guarded
