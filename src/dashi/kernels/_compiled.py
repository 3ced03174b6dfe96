"""Binaries of kernels from text: compiled when they are first needed, and kept in the user's cache folder.

A file there is named by the digest of everything that it was made from, and holds that digest too. It is believed only
if it is this user's plain file, undamaged, and passes every check that a fresh binary must pass; else it is made anew.
"""

from __future__ import annotations

import functools
import hashlib
import threading
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Final

from dashi._cache import cache_folder, read_cache, write_cache
from dashi.errors import AbiError, CompileError, KernelError
from dashi.kernels import _build as build
from dashi.kernels import _compiler as compiler
from dashi.kernels import _glsl as glsl
from dashi.kernels._compiler import TOOLCHAIN, Compiler
from dashi.kernels.abi import Kernel
from dashi.kernels.spirv._module import Module, parse
from dashi.kernels.spirv._portable_lint import forbid_contraction

_FOLDER: Final = "kernels"
_NO_BODY: Final = "No function definition (body) found"


@functools.cache
def _open_compiler(version: str | None) -> Compiler:
    """A compiler that stays open: its first text takes a fifth of a second, the next ones a tenth of that. It is asked
    for by the version that is installed, so that one which is gone is not found here."""
    return Compiler()


class Compiled:
    """The binaries of a kernel from text. `declared` is what the text is compiled with, `kernel` what the result must
    fit; `finish` makes the one of the other."""

    def __init__(self, declared: Kernel, kernel: Kernel, finish: Callable[[Module], Module], needs: str) -> None:
        self._declared, self._kernel, self._finish = declared, kernel, finish
        self._needs = needs
        self._lock = threading.Lock()
        self._words: dict[tuple[str, str], bytes] = {}
        parts = [f"{name}\n{shader!r}" for name, shader in sorted(kernel.shaders.items())]
        parts += [shader.text + shader.prelude for shader in declared.shaders.values()]
        self.key = hashlib.sha256("\n".join([TOOLCHAIN, str(kernel.portable), *parts]).encode()).hexdigest()
        """Digest of the text and of the interface."""

    def words(self, shader: str, variant: str) -> bytes:
        """The SPIR-V of a variant: from memory, from the cache, or compiled now."""
        with self._lock:
            if (shader, variant) not in self._words:
                self._words[shader, variant] = self._load(shader, variant)
            return self._words[shader, variant]

    def _load(self, shader: str, variant: str) -> bytes:
        source = glsl.source(self._declared, shader, variant)
        identity = hashlib.sha256(f"{self.key}\n{source}".encode()).digest()
        path = cache_folder() / _FOLDER / f"{identity.hex()}.spv"
        body = read_cache(path)
        if body.startswith(identity):
            try:
                build.validate(body[len(identity) :], self._kernel, shader, variant)
                return body[len(identity) :]
            except KernelError:
                pass  # it passed once, for another version of the rules, or was never ours
        words = self._compile(source, shader, variant)
        if why := write_cache(path, identity + words):
            self._warn(path, why)
        return words

    def _compile(self, source: str, shader: str, variant: str) -> bytes:
        name = f"{self._kernel.name}/{shader}.{variant}"
        try:
            module = parse(_open_compiler(compiler.installed()).compile(source, name))
        except CompileError as error:
            if _NO_BODY in error.what:
                raise AbiError(
                    f"the text of kernel {self._kernel.name!r} does not define `{self._needs}`.",
                    "write that function, with these types and this order; T is the element type.",
                ) from error
            raise
        if self._kernel.portable:
            module = forbid_contraction(module)
        words = self._finish(module).to_bytes()
        build.validate(words, self._kernel, shader, variant)
        build.spirv_val(words, name)
        return words

    def _warn(self, path: Path, why: str) -> None:
        warnings.warn(
            f"kernel {self._kernel.name!r} works, but cannot be kept in {path.parent}: {why}. It is compiled again "
            "next time. Fix: make room there, or set DASHI_CACHE_DIR to another folder.",
            RuntimeWarning,
            stacklevel=2,
        )
