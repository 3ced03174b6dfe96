"""The interface that a module has against the one that its ABI declares."""

from __future__ import annotations

from collections.abc import Iterator

from dashi.errors import SpirvError
from dashi.kernels import _glsl as glsl
from dashi.kernels.abi import Kernel, features
from dashi.kernels.spirv._reflect import BufferVariable, Reflection
from dashi.types import DTYPES


def check_against(reflection: Reflection, kernel: Kernel, shader_name: str, variant: str) -> None:
    """Raise a SpirvError where the module's interface is not the one that the ABI declares."""
    where = f"{kernel.name}/{shader_name}.{variant}"
    for what, has, wants in _differences(reflection, kernel, shader_name, variant):
        raise SpirvError(
            f"the binary of {where} does not fit its ABI: {what} is {has}, declared is {wants}.",
            f"run `dashi kernels build {kernel.name}`, or correct the ABI.",
        )


def _differences(
    reflection: Reflection, kernel: Kernel, shader_name: str, variant: str
) -> Iterator[tuple[str, object, object]]:
    shader, kind = kernel.shaders[shader_name], DTYPES[variant]
    if reflection.entry != "main":
        yield "the entry point", reflection.entry, "main"
    allowed = {"Shader", *(c for f in features(kernel, shader, variant) for c in glsl.FEATURES[f].capabilities)}
    if not reflection.capabilities <= allowed:
        yield "the set of capabilities", sorted(reflection.capabilities), sorted(allowed)
    if "NumWorkgroups" in reflection.builtins:
        yield "a built-in used", "NumWorkgroups", "none that a split dispatch would change (take a push constant)"
    ids = {s.name: n for n, s in enumerate(shader.spec)}
    sizes = tuple(ids[entry] if isinstance(entry, str) else None for entry in shader.local)
    if reflection.local != glsl.local_default(shader) or reflection.local_ids != sizes:
        yield "the workgroup size", (reflection.local, reflection.local_ids), (glsl.local_default(shader), sizes)
    if reflection.shared_bytes is not None and reflection.shared_bytes > shader.shared_bytes:
        yield "the shared memory", f"{reflection.shared_bytes} bytes", f"at most {shader.shared_bytes}"
    # Buffers and constants that the shader never uses may be absent: a compiler may drop them.
    for number, default in reflection.spec.items():
        if number >= len(shader.spec) or shader.spec[number].default != default:
            yield f"specialisation constant {number}", default, [s.default for s in shader.spec]
    declared = [BufferVariable(0, n, glsl.glsl_type(b.dtype, kind), b.access) for n, b in enumerate(shader.buffers)]
    for buffer in reflection.buffers:
        if buffer not in declared:
            yield f"the buffer (set {buffer.set}, binding {buffer.binding})", buffer, declared
    offsets, _ = glsl.push_layout(shader.push, kind)
    push = tuple(zip(offsets, (glsl.glsl_type(s.dtype, kind) for s in shader.push), strict=True))
    if reflection.push and reflection.push != push:
        yield "the push constant block", reflection.push, push
    if len({(b.set, b.binding) for b in reflection.buffers}) != len(reflection.buffers):
        yield "the list of bindings", "one of them twice", "each once"
