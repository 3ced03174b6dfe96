"""Binaries: built from a kernel folder, compared with what is committed, and loaded.

A folder's `spirv/index.json` maps "shader.variant" to the digest of the source text (with the toolchain's identity)
and the digest of the binary, which is also its file name. There is one loader and one place that it looks.
"""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import subprocess
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, cast

from dashi._atomic_file import SUFFIX, replace_file
from dashi.errors import KernelError, SpirvError, StaleBinaryError
from dashi.kernels import _glsl as glsl
from dashi.kernels import abi
from dashi.kernels._compiler import TOOLCHAIN, Compiler
from dashi.kernels.abi import Kernel
from dashi.kernels.spirv._check import check_against
from dashi.kernels.spirv._module import parse
from dashi.kernels.spirv._portable_lint import forbid_contraction, lint_portable
from dashi.kernels.spirv._reflect import reflect
from dashi.kernels.spirv._scope import check_scope
from dashi.kernels.spirv._structure import check_structure
from dashi.kernels.spirv._values import check_types

FOLDER: Final = "spirv"
INDEX: Final = "index.json"
_READABLE: Final = 0o644
_DIGEST: Final = re.compile("[0-9a-f]{64}")
_PACKAGE: Final = Path(__file__).parent
_LARGEST_INDEX: Final = 1 << 20


@dataclass(frozen=True)
class Binary:
    """A SPIR-V module that has passed every check, and its SHA-256."""

    words: bytes
    digest: str


@dataclass(frozen=True)
class Built:
    """One freshly compiled variant: the digest of its source, and the binary."""

    source: str
    binary: Binary


def variants(kernel: Kernel) -> tuple[tuple[str, str], ...]:
    """Every (shader, dtype) that the kernel is built for."""
    return tuple((name, dtype) for name, shader in kernel.shaders.items() for dtype in abi.variants(kernel, shader))


def source_digest(kernel: Kernel, shader: str, variant: str) -> str:
    """SHA-256 of the toolchain's identity and the full GLSL text."""
    text = f"{TOOLCHAIN}\n{glsl.source(kernel, shader, variant)}"
    return hashlib.sha256(text.encode()).hexdigest()


def compile_variant(kernel: Kernel, shader: str, variant: str, compiler: Compiler) -> Built:
    """Compile one variant, forbid contraction where that is due, and hold the result against the ABI and the rules."""
    name = f"{kernel.name}/{shader}.{variant}"
    module = parse(compiler.compile(glsl.source(kernel, shader, variant), name))
    if kernel.portable or not kernel.shaders[shader].contracted:
        module = forbid_contraction(module)
    words = module.to_bytes()
    validate(words, kernel, shader, variant)
    spirv_val(words, name)
    return Built(source_digest(kernel, shader, variant), Binary(words, hashlib.sha256(words).hexdigest()))


def validate(words: bytes, kernel: Kernel, shader: str, variant: str) -> None:
    """What a binary must pass when it is built, and before a driver sees one from outside: words and ids, sections and
    blocks, values made before they are used and of the right types, the interface that the ABI declares, the rules of
    portable arithmetic. That stops damage and mistakes. It is not the whole of Khronos' validator, which has the last
    word where it is installed and a binary is built or added; and a shader that was made to hang still hangs."""
    module = parse(words)
    check_structure(module)
    check_scope(module)
    check_types(module)
    check_against(reflect(module), kernel, shader, variant)
    if kernel.portable:
        lint_portable(module, f"{kernel.name}/{shader}.{variant}")


def compile_all(kernel: Kernel, compiler: Compiler) -> dict[str, Built]:
    """Every variant, by "shader.dtype"; none of a kernel whose binaries do not lie in its folder."""
    if kernel.binaries is not None:
        return {}
    return {f"{s}.{v}": compile_variant(kernel, s, v, compiler) for s, v in variants(kernel)}


def build(kernel: Kernel, compiler: Compiler | None = None) -> dict[str, Built]:
    """Compile every variant and write the binaries into the folder; files that nothing refers to are removed."""
    if compiler is None:
        with Compiler() as opened:
            return build(kernel, opened)
    built = compile_all(kernel, compiler)
    if kernel.binaries is not None:
        return built
    try:
        _store(kernel.folder / FOLDER, built)
    except OSError as error:
        raise KernelError(
            f"the binaries of kernel {kernel.name!r} cannot be written to {kernel.folder / FOLDER}: {error.strerror}.",
            "make room there, or get permission to write.",
        ) from error
    return built


def _store(folder: Path, built: Mapping[str, Built]) -> None:
    folder.mkdir(exist_ok=True)
    for entry in built.values():
        replace_file(folder / f"{entry.binary.digest}.spv", entry.binary.words, mode=_READABLE)
    # The index goes last: until then the old one and its binaries stand.
    index = {name: {"source": entry.source, "spirv": entry.binary.digest} for name, entry in sorted(built.items())}
    replace_file(folder / INDEX, (json.dumps(index, indent=2) + "\n").encode(), mode=_READABLE)
    current = {INDEX, *(f"{entry.binary.digest}.spv" for entry in built.values())}
    for path in folder.iterdir():
        if path.name not in current and path.suffix in (".spv", SUFFIX):
            path.unlink(missing_ok=True)


class Loader:
    """Loads binaries, and validates each once in its lifetime, if it comes from outside this package.

    Binaries of the package are as trusted as its code: their digests stand in an index beside them, and every build and
    the tests validate them. `everything` validates those too, which takes longer than loading them.
    """

    def __init__(self, *, everything: bool = False) -> None:
        self._lock = threading.Lock()
        self._passed: set[tuple[str, str, str, str]] = set()
        self._everything = everything

    def load(self, kernel: Kernel, shader: str, variant: str) -> Binary:
        """The binary of a variant, if it belongs to the present sources, is undamaged and is valid."""
        binary = _read(kernel, shader, variant)
        if not self._everything and kernel.binaries is None and _PACKAGE in kernel.folder.parents:
            return binary
        mark = (kernel.binaries.key if kernel.binaries else str(kernel.folder), shader, variant, binary.digest)
        with self._lock:
            passed = mark in self._passed
        if not passed:
            validate(binary.words, kernel, shader, variant)
            with self._lock:
                self._passed.add(mark)
        return binary


def digest_of(kernel: Kernel, shader: str, variant: str) -> str:
    """SHA-256 of the binary of a variant, which belongs to the present sources and is undamaged. Nothing is validated:
    that is for whoever is about to run it."""
    return _read(kernel, shader, variant).digest


def load(kernel: Kernel, shader: str, variant: str) -> Binary:
    """One binary, loaded and validated."""
    return Loader(everything=True).load(kernel, shader, variant)


def check(kernel: Kernel, compiler: Compiler | None = None) -> tuple[str, ...]:
    """Rebuild in memory and say what differs from the folder; nothing, if all is in order."""
    if compiler is None:
        with Compiler() as opened:
            return check(kernel, opened)
    if kernel.binaries is not None:
        return ()
    built = compile_all(kernel, compiler)
    index = _index(kernel)
    problems = [f"{key} is in {FOLDER}/{INDEX}, but no longer a variant" for key in sorted(set(index) - set(built))]
    for key, entry in sorted(built.items()):
        shader, variant = key.rsplit(".", 1)
        try:
            binary = _read(kernel, shader, variant)
        except StaleBinaryError as error:
            problems.append(error.what)
            continue
        if binary.digest != entry.binary.digest:
            problems.append(f"{key} is {binary.digest[:12]} in the folder, but builds as {entry.binary.digest[:12]}")
    current = {INDEX, *(f"{entry['spirv']}.spv" for entry in index.values())}
    present = {p.name for p in (kernel.folder / FOLDER).glob("*")}
    problems.extend(f"{FOLDER}/{name} belongs to no variant" for name in sorted(present - current))
    return tuple(problems)


def _read(kernel: Kernel, shader: str, variant: str) -> Binary:
    """The one search order: index entry, source digest, file, content digest. Kernels without a folder have their own
    binaries."""
    if kernel.binaries is not None:
        words = kernel.binaries.words(shader, variant)
        return Binary(words, hashlib.sha256(words).hexdigest())
    key = f"{shader}.{variant}"
    entry = _index(kernel).get(key)
    if entry is None:
        raise _stale(kernel, f"has no binary {key}")
    if entry["source"] != source_digest(kernel, shader, variant):
        raise _stale(kernel, f"has a stale binary {key}: its sources or the compiler changed since it was built")
    path = kernel.folder / FOLDER / f"{entry['spirv']}.spv"
    try:
        words = path.read_bytes()
    except OSError as error:
        raise _stale(kernel, f"lacks the file {path.name} of {key} ({error.strerror})") from error
    digest = hashlib.sha256(words).hexdigest()
    if digest != entry["spirv"]:
        raise _stale(kernel, f"has a damaged binary {key}: {path.name} does not have the digest that names it")
    return Binary(words, digest)


def _index(kernel: Kernel) -> Mapping[str, Mapping[str, str]]:
    path = kernel.folder / FOLDER / INDEX
    try:
        if path.stat().st_size > _LARGEST_INDEX:
            raise ValueError(f"it has more than {_LARGEST_INDEX} bytes")
        data: Any = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, RecursionError, MemoryError) as error:
        raise _stale(kernel, f"has an unreadable {FOLDER}/{INDEX} ({error})") from error
    if not _is_index(data):
        raise _stale(kernel, f"has a {FOLDER}/{INDEX} that is not an index of binaries")
    return cast("Mapping[str, Mapping[str, str]]", data)


def _is_index(data: Any) -> bool:
    if not isinstance(data, dict):
        return False
    for entry in cast("dict[str, Any]", data).values():
        if not isinstance(entry, dict):
            return False
        found = cast("dict[str, Any]", entry)
        # A digest is also a file name: nothing else may get near a path.
        if not all(isinstance(found.get(k), str) and _DIGEST.fullmatch(found[k]) for k in ("source", "spirv")):
            return False
    return True


def _stale(kernel: Kernel, why: str) -> StaleBinaryError:
    where = f"--folder {kernel.folder}" if kernel.family == "added" else kernel.name
    return StaleBinaryError(f"kernel {kernel.name!r} {why}.", f"run `dashi kernels build {where}`.")


def spirv_val(words: bytes, name: str) -> None:
    """Khronos' own validator has the last word where it is installed."""
    tool = shutil.which("spirv-val")
    if tool is None:
        return
    run = subprocess.run(
        [tool, "--target-env", "vulkan1.2", "-"], input=words, capture_output=True, check=False, timeout=60
    )
    message = (run.stdout + run.stderr).decode(errors="replace").strip()
    # Debian's validator is older than some capabilities; then the checks above must do.
    if run.returncode and "Invalid capability operand" not in message:
        raise SpirvError(f"spirv-val refuses {name}: {message}.", "correct the shader; report it if the GLSL is right.")
