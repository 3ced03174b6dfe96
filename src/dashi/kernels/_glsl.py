"""The full GLSL of one shader variant: declarations generated from the ABI, then includes, then the author's file.

The author's file holds no declarations of its own. Buffers, push constants and specialisation constants are plain
global names in it; `T` is the variant's type, `W` the integer word as wide, `T_IS_F64` and `USE_F64` are 0 or 1.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

from dashi.errors import AbiError, CompileError
from dashi.kernels.abi import Binding, Kernel, Scalar, Shader, Spec, features
from dashi.types import DTYPES, DType

INCLUDES: Final = Path(__file__).parent / "_include"
_PACKAGE: Final = f"{INCLUDES.parent}{os.sep}"
_INCLUDE: Final = re.compile(r"^\s*#\s*include\b(.*)$")
_QUOTED: Final = re.compile(r'\s*"((?:(?:[a-z0-9_]+/){2,3})?[A-Za-z0-9_]+\.(?:glsl|comp))"\s*(?://.*)?$')
"""A file by its name, or one of another kernel or template of this package as family/name/file."""
TEXT: Final = "text"
"""What compile errors call GLSL that is in no file."""
_AXES: Final = ("x", "y", "z")
_ACCESS: Final = {"read": "readonly ", "write": "writeonly ", "readwrite": ""}


@dataclass(frozen=True)
class _Include:
    """A file that stands in place of a line, and the line directive behind it."""

    file: str
    resume: str


Piece = str | _Include
"""Text that is taken as it is, or an include."""


@dataclass(frozen=True)
class Feature:
    """A device feature: the GLSL extensions that switch it on, and the SPIR-V capabilities that it permits."""

    extensions: tuple[str, ...]
    capabilities: tuple[str, ...]


FEATURES: Final[dict[str, Feature]] = {
    "fp64": Feature((), ("Float64",)),
    "int64": Feature(("GL_EXT_shader_explicit_arithmetic_types_int64",), ("Int64",)),
    "fp16": Feature(
        ("GL_EXT_shader_explicit_arithmetic_types_float16", "GL_EXT_shader_16bit_storage"),
        ("Float16", "StorageBuffer16BitAccess"),
    ),
    "int8": Feature(
        ("GL_EXT_shader_explicit_arithmetic_types_int8", "GL_EXT_shader_8bit_storage"),
        ("Int8", "StorageBuffer8BitAccess"),
    ),
    "int16": Feature(("GL_EXT_shader_explicit_arithmetic_types_int16",), ("Int16",)),
    "atomics_int64": Feature(("GL_EXT_shader_atomic_int64",), ("Int64Atomics",)),
    "atomics_float": Feature(("GL_EXT_shader_atomic_float",), ("AtomicFloat32AddEXT",)),
    "memory_model": Feature(("GL_KHR_memory_scope_semantics",), ("VulkanMemoryModel", "VulkanMemoryModelDeviceScope")),
    # Workgroups that wait for each other; devices say nothing of it, so it is tried (runtime/_probes.py).
    "rendezvous": Feature((), ()),
    "coop_matrix": Feature(("GL_KHR_cooperative_matrix",), ("CooperativeMatrixKHR",)),
    "subgroup": Feature(
        (
            "GL_KHR_shader_subgroup_basic",
            "GL_KHR_shader_subgroup_vote",
            "GL_KHR_shader_subgroup_ballot",
            "GL_KHR_shader_subgroup_shuffle",
            "GL_KHR_shader_subgroup_arithmetic",
        ),
        (
            "GroupNonUniform",
            "GroupNonUniformVote",
            "GroupNonUniformBallot",
            "GroupNonUniformShuffle",
            "GroupNonUniformArithmetic",
        ),
    ),
    "subgroup_quad": Feature(
        ("GL_KHR_shader_subgroup_basic", "GL_KHR_shader_subgroup_quad"), ("GroupNonUniform", "GroupNonUniformQuad")
    ),
}
"""What a shader may ask of a device on top of Vulkan 1.2 compute."""


def source(kernel: Kernel, shader_name: str, variant: str) -> str:
    """The text that is compiled for a shader and a dtype. The same sources always give the same text."""
    shader = kernel.shaders[shader_name]
    included: set[str] = set()
    parts = [declarations(kernel, shader, variant), shader.prelude]
    for name in shader.includes:
        parts.extend(_expand(kernel.folder, name, included))
    if shader.text:
        parts.append(f'#line 1 "{TEXT}"\n')
        parts.extend(_joined(kernel.folder, _pieces(TEXT, shader.text), included))
    if shader.file:
        parts.extend(_expand(kernel.folder, shader.file, included))
    return "".join(parts)


def declarations(kernel: Kernel, shader: Shader, variant: str) -> str:
    """Everything that comes before the author's text."""
    kind = DTYPES[variant]
    needed = features(kernel, shader, variant)
    extensions = sorted({e for f in needed for e in FEATURES[f].extensions} | set(shader.extensions))
    lines = [
        "#version 460",
        "#extension GL_GOOGLE_cpp_style_line_directive : require",
        *(f"#extension {name} : require" for name in extensions),
        f"#define T {kind.glsl}",
        f"#define W {kind.word}",
        f"#define T_IS_F64 {int(kind.name == 'f64')}",
        f"#define USE_F64 {int({'fp64', 'int64'} <= needed)}",
        *_vector(shader, kind),
        *_local_size(shader),
        *_spec(shader),
        *(_buffer(i, b) for i, b in enumerate(shader.buffers)),
        *_push(shader.push, kind),
    ]
    return "\n".join(lines) + "\n"


def glsl_type(dtype: str, variant: DType) -> str:
    """The GLSL type of a declared dtype in a variant."""
    if dtype == "T":
        return variant.glsl
    if dtype == "W":
        return variant.word
    if dtype == "V":
        return variant.vector
    if dtype == "P":
        return f"{'d' * (variant.name == 'f64')}vec2"
    if dtype == "u32x4":
        return "uvec4"
    return DTYPES[dtype].glsl


def push_layout(push: Sequence[Scalar], variant: DType) -> tuple[tuple[int, ...], int]:
    """Offsets of the push constants, each aligned to its own size, and the bytes in all."""
    offsets: list[int] = []
    end = 0
    for scalar in push:
        size = (variant if scalar.dtype == "T" else DTYPES[scalar.dtype]).size
        offsets.append(end + -end % size)
        end = offsets[-1] + size
    return tuple(offsets), end


def local_default(shader: Shader) -> tuple[int, int, int]:
    """The workgroup size when no specialisation constant is set."""
    defaults = {s.name: s.default for s in shader.spec}
    x, y, z = (defaults[entry] if isinstance(entry, str) else entry for entry in shader.local)
    return x, y, z


def _vector(shader: Shader, kind: DType) -> Iterator[str]:
    if any(b.dtype == "V" for b in shader.buffers):
        yield f"#define V {kind.vector}"
        yield f"#define V_LANES {16 // kind.size}"
    if any(b.dtype == "P" for b in shader.buffers):
        yield f"#define P {glsl_type('P', kind)}"


def _local_size(shader: Shader) -> Iterator[str]:
    ids = {s.name: i for i, s in enumerate(shader.spec)}
    parts: list[str] = []
    for axis, entry, size in zip(_AXES, shader.local, local_default(shader), strict=True):
        parts.append(f"local_size_{axis} = {size}")
        if isinstance(entry, str):
            parts.append(f"local_size_{axis}_id = {ids[entry]}")
    yield f"layout({', '.join(parts)}) in;"


def _spec(shader: Shader) -> Iterator[str]:
    # A constant that sizes the workgroup is declared by the layout above; a second one of the same id is not allowed.
    axes = {entry: axis for axis, entry in zip(_AXES, shader.local, strict=True) if isinstance(entry, str)}
    for index, spec in enumerate(shader.spec):
        yield _spec_line(index, spec, axes.get(spec.name))


def _spec_line(index: int, spec: Spec, axis: str | None) -> str:
    if axis is not None:
        return f"const uint {spec.name} = gl_WorkGroupSize.{axis};"
    return f"layout(constant_id = {index}) const uint {spec.name} = {spec.default}u;"


def _buffer(index: int, binding: Binding) -> str:
    kind = binding.dtype if binding.dtype in ("T", "W", "V", "P") else glsl_type(binding.dtype, DTYPES["u32"])
    access = _ACCESS[binding.access]
    return f"layout(set = 0, binding = {index}, std430) {access}buffer Buffer{index} {{ {kind} {binding.name}[]; }};"


def _push(push: Sequence[Scalar], variant: DType) -> Iterator[str]:
    if not push:
        return
    offsets, _ = push_layout(push, variant)
    yield "layout(push_constant, std430) uniform Push {"
    for scalar, offset in zip(push, offsets, strict=True):
        yield f"    layout(offset = {offset}) {glsl_type(scalar.dtype, variant)} {scalar.name};"
    yield "};"


def _expand(folder: Path, name: str, included: set[str]) -> Iterator[str]:
    """A file with its includes in their places, each file at most once; line directives keep errors readable."""
    if name not in included:
        included.add(name)
        yield f'#line 1 "{name}"\n'
        yield from _joined(folder, _read(folder, name), included)


def _joined(folder: Path, pieces: Sequence[Piece], included: set[str]) -> Iterator[str]:
    for piece in pieces:
        if isinstance(piece, str):
            yield piece
        else:
            yield from _expand(folder, piece.file, included)
            yield piece.resume


def _pieces(name: str, text: str) -> tuple[Piece, ...]:
    """A text cut at its includes."""
    pieces: list[Piece] = []
    plain: list[str] = []
    for number, line in enumerate(text.splitlines(), start=1):
        directive = _INCLUDE.match(line)
        if directive is None:
            plain.append(line + "\n")
            continue
        quoted = _QUOTED.match(directive.group(1))
        if quoted is None:
            raise CompileError(
                f"{name}:{number}: {line.strip()!r} does not name a plain file.",
                'write #include "name.glsl", a file of the kernel\'s folder or of the shared includes.',
            )
        pieces += ["".join(plain), _Include(quoted.group(1), f'#line {number + 1} "{name}"\n')]
        plain = []
    return (*pieces, "".join(plain))


def _read(folder: Path, name: str) -> tuple[Piece, ...]:
    # The shared file wins, so that no folder can change what `canon` means; then what the family shares, also with the
    # templates of that family.
    family = (folder.parent / INCLUDES.name, INCLUDES.parent / folder.parent.name / INCLUDES.name)
    for place in (INCLUDES.parent,) if "/" in name else (INCLUDES, *family, folder):
        path = place / name
        pieces = _packaged(path, name) if str(path).startswith(_PACKAGE) else _cut(path, name)
        if pieces is not None:
            return pieces
    raise AbiError(
        f"there is no GLSL file {name!r} in {folder}, nor among the shared includes.",
        "write the file, or correct the name in the ABI or the #include.",
    )


def _cut(path: Path, name: str) -> tuple[Piece, ...] | None:
    """A file cut at its includes; None where there is none."""
    if not path.is_file():
        return None
    try:
        return _pieces(name, path.read_text(encoding="utf-8"))
    except UnicodeDecodeError as error:
        raise CompileError(f"{path} is not UTF-8 text: {error}.", "save it as UTF-8.") from error


_packaged: Final = cache(_cut)
"""Files of this package are read once in a process, as its code is: every kernel that is loaded asks for them."""
