"""GLSL to SPIR-V through one pinned compiler wheel: the glslang C interface that it exports, called with ctypes.

Only building needs it. The toolchain's identity is a constant here, so that loading a binary never does.
"""

from __future__ import annotations

import ctypes
import importlib.metadata
import importlib.util
import re
import threading
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any, Final

from dashi.errors import CompileError, CompilerMissingError, install_extra

WHEEL: Final = "vkdispatch-vulkan-native"
VERSION: Final = "0.1.0"
TOOLCHAIN: Final = f"{WHEEL} {VERSION} glslang vulkan1.2 spirv1.5 no-optimiser no-debug contraction-forbidden"
"""Part of every source digest: a new compiler, option or pass after it makes the binaries stale."""

_FIX: Final = install_extra("compile")
_LONGEST: Final = 1 << 14
"""Characters of a statement, macros written out. On a stack of 8 MiB 40,000 of a sum were compiled, and 65,000 ended
the process."""
_SOURCE_GLSL: Final = 1
_STAGE_COMPUTE: Final = 5
_CLIENT_VULKAN: Final = 1
_VULKAN_1_2: Final = (1 << 22) | (2 << 12)
_TARGET_SPV: Final = 1
_SPV_1_5: Final = (1 << 16) | (5 << 8)
_CORE_PROFILE: Final = 2
_MESSAGES: Final = (1 << 3) | (1 << 4)  # SPIR-V rules, Vulkan rules


class _Input(ctypes.Structure):
    """`glslang_input_t`."""

    _fields_ = (
        ("language", ctypes.c_int),
        ("stage", ctypes.c_int),
        ("client", ctypes.c_int),
        ("client_version", ctypes.c_int),
        ("target_language", ctypes.c_int),
        ("target_language_version", ctypes.c_int),
        ("code", ctypes.c_char_p),
        ("default_version", ctypes.c_int),
        ("default_profile", ctypes.c_int),
        ("force_default_version_and_profile", ctypes.c_int),
        ("forward_compatible", ctypes.c_int),
        ("messages", ctypes.c_int),
        ("resource", ctypes.c_void_p),
        ("include_system", ctypes.c_void_p),
        ("include_local", ctypes.c_void_p),
        ("free_include_result", ctypes.c_void_p),
        ("callbacks_ctx", ctypes.c_void_p),
    )


_SIGNATURES: Final[dict[str, tuple[Any, tuple[Any, ...]]]] = {
    "glslang_initialize_process": (ctypes.c_int, ()),
    "glslang_finalize_process": (None, ()),
    "glslang_default_resource": (ctypes.c_void_p, ()),
    "glslang_shader_create": (ctypes.c_void_p, (ctypes.c_void_p,)),
    "glslang_shader_delete": (None, (ctypes.c_void_p,)),
    "glslang_shader_preprocess": (ctypes.c_int, (ctypes.c_void_p, ctypes.c_void_p)),
    "glslang_shader_parse": (ctypes.c_int, (ctypes.c_void_p, ctypes.c_void_p)),
    "glslang_shader_get_info_log": (ctypes.c_char_p, (ctypes.c_void_p,)),
    "glslang_shader_get_preprocessed_code": (ctypes.c_char_p, (ctypes.c_void_p,)),
    "glslang_program_create": (ctypes.c_void_p, ()),
    "glslang_program_delete": (None, (ctypes.c_void_p,)),
    "glslang_program_add_shader": (None, (ctypes.c_void_p, ctypes.c_void_p)),
    "glslang_program_link": (ctypes.c_int, (ctypes.c_void_p, ctypes.c_int)),
    "glslang_program_get_info_log": (ctypes.c_char_p, (ctypes.c_void_p,)),
    "glslang_program_SPIRV_generate": (None, (ctypes.c_void_p, ctypes.c_int)),
    "glslang_program_SPIRV_get_size": (ctypes.c_size_t, (ctypes.c_void_p,)),
    "glslang_program_SPIRV_get_ptr": (ctypes.c_void_p, (ctypes.c_void_p,)),
    "glslang_program_SPIRV_get_messages": (ctypes.c_char_p, (ctypes.c_void_p,)),
}


def installed() -> str | None:
    """Version of the compiler wheel on this machine, or None."""
    try:
        return importlib.metadata.version(WHEEL)
    except importlib.metadata.PackageNotFoundError:
        return None


def available() -> bool:
    """Whether exactly the pinned compiler is there."""
    return installed() == VERSION


class Compiler:
    """The compiler, opened once; `compile` may be called from many threads. Close it, or use it in a `with`."""

    def __init__(self) -> None:
        version = installed()
        if version is None:
            raise CompilerMissingError(f"building shaders needs the compiler wheel {WHEEL} {VERSION}.", _FIX)
        if version != VERSION:
            raise CompilerMissingError(
                f"the compiler wheel is {WHEEL} {version}, but binaries are built with {VERSION} alone.", _FIX
            )
        self._lock = threading.Lock()
        self._open = False
        self._lib = _load()
        if not self._lib.glslang_initialize_process():
            raise CompilerMissingError(f"{WHEEL} {VERSION} does not initialise.", _FIX)
        self._open = True

    def __enter__(self) -> Compiler:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Free what glslang holds. Closing twice is harmless."""
        with self._lock:
            if self._open:
                self._open = False
                self._lib.glslang_finalize_process()

    def compile(self, source: str, name: str) -> bytes:
        """SPIR-V of one compute shader; `name` says in errors which shader it is."""
        try:
            code = source.encode()
        except UnicodeEncodeError as error:
            raise CompileError(f"shader {name} is no text: {error}.", "write it in Unicode characters.") from error
        if b"\0" in code:
            raise CompileError(f"shader {name} holds a NUL character.", "remove it from the GLSL.")
        with self._lock:
            if not self._open:
                raise CompileError(f"shader {name} was given to a closed compiler.", "open a new Compiler.")
            request = _Input(
                language=_SOURCE_GLSL,
                stage=_STAGE_COMPUTE,
                client=_CLIENT_VULKAN,
                client_version=_VULKAN_1_2,
                target_language=_TARGET_SPV,
                target_language_version=_SPV_1_5,
                code=code,
                default_version=460,
                default_profile=_CORE_PROFILE,
                messages=_MESSAGES,
                resource=self._lib.glslang_default_resource(),
            )
            with self._shader(request, name) as shader:
                return self._link(shader, name)

    @contextmanager
    def _shader(self, request: _Input, name: str) -> Generator[int]:
        lib = self._lib
        shader = lib.glslang_shader_create(ctypes.byref(request))
        try:
            for step in (lib.glslang_shader_preprocess, lib.glslang_shader_parse):
                if not step(shader, ctypes.byref(request)):
                    raise _failed(name, lib.glslang_shader_get_info_log(shader))
                if step is lib.glslang_shader_preprocess:
                    _require_short_statements(name, lib.glslang_shader_get_preprocessed_code(shader))
            yield shader
        finally:
            lib.glslang_shader_delete(shader)

    def _link(self, shader: int, name: str) -> bytes:
        lib = self._lib
        program = lib.glslang_program_create()
        try:
            lib.glslang_program_add_shader(program, shader)
            if not lib.glslang_program_link(program, _MESSAGES):
                raise _failed(name, lib.glslang_program_get_info_log(program))
            lib.glslang_program_SPIRV_generate(program, _STAGE_COMPUTE)
            messages = lib.glslang_program_SPIRV_get_messages(program)
            size = lib.glslang_program_SPIRV_get_size(program)
            if messages or not size:
                raise _failed(name, messages)
            return ctypes.string_at(lib.glslang_program_SPIRV_get_ptr(program), size * 4)
        finally:
            lib.glslang_program_delete(program)


def _load() -> ctypes.CDLL:
    """The wheel's library. It is opened as a plain library: importing it would start its Vulkan side."""
    spec = importlib.util.find_spec(WHEEL.replace("-", "_"))
    if spec is None or spec.origin is None:
        raise CompilerMissingError(f"{WHEEL} is listed as installed, but its library is gone.", _FIX)
    try:
        lib = ctypes.CDLL(spec.origin)
        for name, (result, arguments) in _SIGNATURES.items():
            function = getattr(lib, name)
            function.restype = result
            function.argtypes = arguments
    except (OSError, AttributeError) as error:
        raise CompilerMissingError(f"{WHEEL} {VERSION} cannot be used here: {error}.", _FIX) from error
    return lib


def _require_short_statements(name: str, code: bytes) -> None:
    """Refuses what the compiler's recursion would end the process on. `code` has no macros any more."""
    longest = max(map(len, re.split(rb"[;{}]", code)))
    if longest > _LONGEST:
        raise CompileError(
            f"shader {name} has a statement of {longest} characters; {_LONGEST} can be compiled.",
            "cut it into several, with variables for parts of it.",
        )


def _failed(name: str, log: bytes | None) -> CompileError:
    """The compiler's own lines (they name file and line), without its closing summary."""
    lines = [line.strip() for line in (log or b"").decode(errors="replace").splitlines()]
    kept = [line for line in lines if line and "compilation errors" not in line]
    return CompileError(
        f"shader {name} does not compile:\n  " + "\n  ".join(kept or ["no message"]) + "\n",
        "correct the lines named above.",
    )
