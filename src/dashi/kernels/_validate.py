"""The rules that an ABI must keep, checked when a kernel is read, and those that a plan must keep."""

from __future__ import annotations

import keyword
import math
import re
from collections import Counter
from collections.abc import Iterable
from typing import Final

from dashi.errors import AbiError
from dashi.kernels._glsl import FEATURES, local_default, push_layout
from dashi.kernels.abi import Call, Case, Dispatch, Kernel, Operand, Plan, Shader, part_of, variants, within_trips
from dashi.types import DTYPES, DType

PUSH_BYTES: Final = 128
INVOCATIONS: Final = 1024
AXIS_GROUPS: Final = 65535
_VECTORS: Final = frozenset({"V", "P", "u32x4"})
_VECTOR_BYTES: Final = 16
_WORD_BYTES: Final = 4
_SMALL: Final = 2
"""Bytes of elements that may be written several to a word."""
_NAME: Final = re.compile(r"[a-z][a-z0-9]*(_[a-z0-9]+)*")
_IDENTIFIER: Final = re.compile(r"[A-Za-z][A-Za-z0-9]*(_[A-Za-z0-9]+)*_?")
_DIMENSION: Final = re.compile(_IDENTIFIER.pattern + r"(/[1-9][0-9]*)?")
_FILE: Final = re.compile(r"[A-Za-z0-9_]+\.(glsl|comp)")
_GENERATED: Final = frozenset("T W V V_LANES T_IS_F64 USE_F64 main canon mul".split())
"""Names that the text round the author's uses; a kernel may be called so, an operand may not."""
_RESERVED: Final = frozenset(
    """
    active asm atomic_uint attribute bool break buffer bvec2 bvec3 bvec4 case cast centroid class coherent common const
    continue default discard dmat2 dmat3 dmat4 do double dvec2 dvec3 dvec4 else enum extern external false filter fixed
    flat float for fvec2 fvec3 fvec4 goto half highp hvec2 hvec3 hvec4 if in inline inout input int int64_t interface
    invariant isampler1D ivec2 ivec3 ivec4 layout long lowp mat2 mat3 mat4 mediump namespace noinline noperspective out
    output partition patch precise precision public readonly resource restrict return sample sampler sampler1D
    sampler2D sampler3D shared short sizeof smooth static struct subroutine superp switch template this true typedef
    uint uint64_t uniform union unsigned using uvec2 uvec3 uvec4 varying vec2 vec3 vec4 void volatile while writeonly
    """.split()
)
"""GLSL keywords and reserved words that could be taken for names."""
_TAKEN: Final = _RESERVED | _GENERATED


def check_name(name: str) -> None:
    """A kernel's name is a folder's, a Python identifier's and a command-line word's."""
    if not _NAME.fullmatch(name):
        raise AbiError(f"{name!r} is not a kernel name.", "use lower-case words joined by single underscores.")
    if name in _RESERVED or keyword.iskeyword(name):
        raise AbiError(f"{name!r} is a word of GLSL or Python.", "choose another name for the kernel.")


def validate(kernel: Kernel) -> None:
    """Raise an AbiError for the first rule that the kernel breaks."""
    if not kernel.summary.strip() or "\n" in kernel.summary:
        raise _broken(kernel, "has no one-line summary", "say in one line what it computes.")
    _check_dtypes(kernel)
    _check_operands(kernel)
    _check_promises(kernel)
    if not kernel.shaders:
        raise _broken(kernel, "has no shader", "declare at least one in `shaders`.")
    for name, shader in kernel.shaders.items():
        _check_words(kernel, f"shader {name}", (name,), reserved=False)
        _check_shader(kernel, name, shader)
    _check_cases(kernel)


def _check_dtypes(kernel: Kernel) -> None:
    unknown = [d for d in kernel.dtypes if d not in DTYPES]
    if unknown or not kernel.dtypes or len(set(kernel.dtypes)) != len(kernel.dtypes):
        raise _broken(kernel, f"has the dtypes {kernel.dtypes}", f"name each once, out of {', '.join(DTYPES)}.")
    known = {"T", *DTYPES}
    for item in (*kernel.inputs, *kernel.outputs, *kernel.scalars):
        if item.dtype not in known:
            raise _broken(
                kernel, f"gives {item.name} the dtype {item.dtype!r}", f"use one of {', '.join(sorted(known))}."
            )
    if len(kernel.dtypes) > 1 and not any(o.dtype == "T" for o in kernel.inputs):
        raise _broken(
            kernel,
            f"has the variants {', '.join(kernel.dtypes)}, but no input of type T to tell them apart",
            'give an input the dtype "T", or the kernel one dtype.',
        )


def _check_operands(kernel: Kernel) -> None:
    if not kernel.outputs:
        raise _broken(kernel, "has no output", "declare what it makes in `outputs`.")
    named = (*kernel.inputs, *kernel.outputs, *kernel.scalars)
    _check_words(kernel, "the interface", (item.name for item in named))
    for operand in (*kernel.inputs, *kernel.outputs):
        _check_shape(kernel, operand)
    _check_parts(kernel)
    # An output's length must follow from what the caller passes: a dimension of an input or an integer scalar.
    known = {d for o in kernel.inputs for d in o.shape or ()}
    known |= {s.name for s in kernel.scalars if s.dtype in ("u32", "i32")}
    if any(o.shape is None for o in kernel.inputs):
        known.add("size")
    for operand in kernel.outputs:
        if operand.shape is None and "size" not in known:
            raise _broken(
                kernel, f"gives the output {operand.name} any shape, but no input has one", "name its dimensions."
            )
        missing = [d for d in operand.shape or () if isinstance(d, str) and part_of(d)[0] not in known]
        if missing:
            raise _broken(
                kernel,
                f"gives the output {operand.name} the dimension {missing[0]}, which no input has",
                "use a dimension of an input, or an integer scalar of that name.",
            )


def _check_shape(kernel: Kernel, operand: Operand) -> None:
    for d in operand.shape or ():
        good = d > 0 if isinstance(d, int) else _DIMENSION.fullmatch(d) is not None
        if not good:
            raise _broken(kernel, f"gives {operand.name} the dimension {d!r}", "use a name or a positive number.")


def _check_parts(kernel: Kernel) -> None:
    """What an input is a part of must be known before: the arrays of a call are read in order."""
    known = {s.name for s in kernel.scalars}
    for operand in kernel.inputs:
        for d in operand.shape or ("size",):
            if isinstance(d, str) and "/" in d and part_of(d)[0] not in known:
                raise _broken(
                    kernel,
                    f"gives {operand.name} the dimension {d}, but no operand before it has {part_of(d)[0]}",
                    "name a dimension of an earlier input, or an integer scalar.",
                )
            known.add(str(d))


def _check_promises(kernel: Kernel) -> None:
    if kernel.portable and (kernel.bound is not None or kernel.tier != 0):
        raise _broken(
            kernel, "is portable, yet has an error bound or a tier above 0", "drop them, or set portable=False."
        )
    if not kernel.portable and not (kernel.bound is not None and 0 < kernel.bound < 1):
        raise _broken(kernel, f"is not portable and has the error bound {kernel.bound}", "state one between 0 and 1.")
    if kernel.tier not in (0, 1, 2):
        raise _broken(kernel, f"has the tier {kernel.tier}", "use 0 (fixed order), 1 or 2 (float atomics).")
    for alias in kernel.aliases:
        check_name(alias)


def _check_shader(kernel: Kernel, name: str, shader: Shader) -> None:
    where = f"shader {name}"
    _check_words(kernel, where, (x.name for x in (*shader.buffers, *shader.push, *shader.spec)))
    for binding in shader.buffers:
        if binding.dtype not in {"T", "W", *_VECTORS, *DTYPES} or binding.access not in ("read", "write", "readwrite"):
            raise _broken(
                kernel,
                f"has in {where} the buffer {binding.name} of dtype {binding.dtype!r}, access {binding.access!r}",
                f"use T, W, V, P, u32x4, {', '.join(DTYPES)}, and read, write or readwrite.",
            )
    if all(b.access == "read" for b in shader.buffers):
        raise _broken(kernel, f"writes no buffer in {where}", 'give its output access="write".')
    for scalar in shader.push:
        if scalar.dtype not in {"T", *DTYPES}:
            raise _broken(kernel, f"has in {where} the push constant {scalar.name} of dtype {scalar.dtype!r}", "use T.")
    for variant in variants(kernel, shader):
        size = push_layout(shader.push, DTYPES[variant])[1]
        if size > PUSH_BYTES:
            raise _broken(
                kernel,
                f"has {size} bytes of push constants in {where}.{variant}",
                f"pass at most {PUSH_BYTES}; put the rest into a buffer.",
            )
    _check_local(kernel, where, shader)
    _check_files(kernel, where, shader)


def _check_local(kernel: Kernel, where: str, shader: Shader) -> None:
    named = [entry for entry in shader.local if isinstance(entry, str)]
    if len(set(named)) != len(named) or not set(named) <= {s.name for s in shader.spec}:
        raise _broken(
            kernel, f"names {named} in the workgroup size of {where}", "name specialisation constants, each once."
        )
    if any(not 0 <= s.default < 1 << 32 for s in shader.spec):
        raise _broken(kernel, f"has a specialisation constant in {where} that is no u32", "use 0 to 2^32 - 1.")
    size = local_default(shader)
    if min(size) < 1 or math.prod(size) > INVOCATIONS:
        raise _broken(kernel, f"has the workgroup size {size} in {where}", f"use 1 to {INVOCATIONS} invocations.")


def _check_files(kernel: Kernel, where: str, shader: Shader) -> None:
    files = (shader.file,) if shader.file or not shader.text else ()
    for file in (*files, *shader.includes):
        if not _FILE.fullmatch(file):
            raise _broken(kernel, f"names the file {file!r} in {where}", "use a plain name such as kernel.comp.")
    if kernel.binaries is None and not (kernel.folder / shader.file).is_file():
        raise _broken(kernel, f"has no file {shader.file} for {where}", f"write {kernel.folder / shader.file}.")
    unknown = sorted(shader.features - set(FEATURES))
    if unknown:
        raise _broken(kernel, f"asks for the feature {unknown[0]!r} in {where}", f"use {', '.join(sorted(FEATURES))}.")


def _check_words(kernel: Kernel, where: str, names: Iterable[str], reserved: bool = True) -> None:
    for name, times in Counter(names).items():
        if times > 1:
            raise _broken(kernel, f"uses the name {name!r} {times} times in {where}", "make the names unique.")
        if not _IDENTIFIER.fullmatch(name) or name.startswith("gl_") or keyword.iskeyword(name):
            raise _broken(kernel, f"uses the name {name!r} in {where}", "use a plain identifier.")
        if reserved and name in _TAKEN:
            raise _broken(
                kernel, f"uses the name {name!r} in {where}, a reserved word of GLSL", "choose another (`result`?)."
            )


def _check_cases(kernel: Kernel) -> None:
    if not kernel.cases:
        raise _broken(kernel, "has no cases", "give at least one, so that it is tested and measured.")
    for number, case in enumerate(kernel.cases):
        _check_case(kernel, number, case)


def _check_case(kernel: Kernel, number: int, case: Case) -> None:
    names = {o.name for o in kernel.inputs}
    if set(case.shapes) != names:
        raise _broken(
            kernel, f"gives case {number} shapes for {sorted(case.shapes)}", f"give them for {sorted(names)}."
        )
    for operand in kernel.inputs:
        if operand.dtype != "T" and not DTYPES[operand.dtype].is_float and operand.name not in case.fill:
            raise _broken(
                kernel,
                f"has no `fill` for {operand.name} in case {number}",
                "give one: only float inputs are filled by themselves.",
            )


def check_plan(kernel: Kernel, call: Call, plan: Plan) -> Plan:
    """The plan itself, if it fits the ABI and the limits; every device asks this before it records a plan."""
    for dispatch in plan.dispatches:
        _check_dispatch(kernel, call, plan, dispatch)
        within_trips(kernel.name, dispatch, call.limits)
    return plan


def _check_dispatch(kernel: Kernel, call: Call, plan: Plan, dispatch: Dispatch) -> None:
    shader = kernel.shaders.get(dispatch.shader)
    if shader is None:
        raise _broken(kernel, f"dispatches the shader {dispatch.shader!r}", f"use {', '.join(kernel.shaders)}.")
    where = f"dispatch of {dispatch.shader}"
    if len(dispatch.buffers) != len(shader.buffers):
        raise _broken(kernel, f"binds {len(dispatch.buffers)} buffers in a {where}", f"bind {len(shader.buffers)}.")
    if set(dispatch.push) != {s.name for s in shader.push}:
        raise _broken(
            kernel,
            f"pushes {sorted(dispatch.push)} in a {where}",
            f"push exactly {sorted(s.name for s in shader.push)}.",
        )
    if not set(dispatch.spec) <= {s.name for s in shader.spec}:
        raise _broken(kernel, f"sets {sorted(dispatch.spec)} in a {where}", "set declared constants only.")
    if min(dispatch.groups) < 1:
        raise _broken(kernel, f"asks for {dispatch.groups} groups in a {where}", "leave empty dispatches out.")
    if dispatch.groups[0] > call.limits.groups or max(dispatch.groups[1:]) > AXIS_GROUPS:
        most = (call.limits.groups, AXIS_GROUPS, AXIS_GROUPS)
        raise _broken(
            kernel, f"asks for {dispatch.groups} groups in a {where}", f"ask for at most {most}: loop with a stride."
        )
    inputs = {o.name for o in kernel.inputs}
    for name, binding in zip(dispatch.buffers, shader.buffers, strict=True):
        if name in inputs and binding.access != "read":
            raise _broken(kernel, f"writes its input {name} in a {where}", "write to an output or to scratch.")
        width = _width(kernel, call, plan, name)
        # Any buffer may be read as its 32-bit words, which is how bits are hashed and moved; small elements are written
        # so too, and large ones word by word.
        words = binding.dtype in ("u32", "u32x4") and (binding.access == "read" or width <= _SMALL)
        words |= binding.dtype == "u32" and width % _WORD_BYTES == 0
        if binding.dtype in _VECTORS and not words:
            words = _bytes(kernel, call, plan, name) % _size(binding.dtype, call.dtype) == 0
        if width != _size(binding.dtype, call.dtype) and not words:
            raise _broken(
                kernel, f"binds {name} to {binding.name} of another element size in a {where}", "make the dtypes agree."
            )


def _width(kernel: Kernel, call: Call, plan: Plan, name: str) -> int:
    """Bytes per element of an operand or scratch buffer."""
    for operand in (*kernel.inputs, *kernel.outputs):
        if operand.name == name:
            return _size(operand.dtype, call.dtype)
    if name in plan.scratch:
        return _size(plan.scratch[name][0], call.dtype)
    raise _broken(kernel, f"binds {name!r}, which is neither operand nor scratch", "declare it in `Plan.scratch`.")


def _bytes(kernel: Kernel, call: Call, plan: Plan, name: str) -> int:
    """Size of an operand or scratch buffer."""
    elements = plan.scratch[name][1] if name in plan.scratch else call.size(name)
    return elements * _width(kernel, call, plan, name)


def _size(dtype: str, variant: DType) -> int:
    if dtype in _VECTORS:
        return 2 * variant.size if dtype == "P" else _VECTOR_BYTES
    return variant.size if dtype in ("T", "W") else DTYPES[dtype].size


def _broken(kernel: Kernel, what: str, fix: str) -> AbiError:
    return AbiError(f"kernel {kernel.name!r} {what}.", fix)
