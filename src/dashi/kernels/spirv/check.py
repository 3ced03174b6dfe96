"""The interface that a module has against the one that its ABI declares."""

from __future__ import annotations

from collections.abc import Iterator

from dashi.errors import SpirvError
from dashi.kernels import glsl
from dashi.kernels.abi import Kernel, features
from dashi.kernels.spirv.reflect import Buffer, Reflection
from dashi.types import DTYPES


def check_against(found: Reflection, kernel: Kernel, shader_name: str, variant: str) -> None:
    """Raise a SpirvError where the module's interface is not the one that the ABI declares."""
    where = f"{kernel.name}/{shader_name}.{variant}"
    for what, has, wants in _differences(found, kernel, shader_name, variant):
        raise SpirvError(
            f"the binary of {where} does not fit its ABI: {what} is {has}, declared is {wants}.",
            f"run `dashi kernels build {kernel.name}`, or correct the ABI.",
        )


def _differences(
    found: Reflection, kernel: Kernel, shader_name: str, variant: str
) -> Iterator[tuple[str, object, object]]:
    shader, kind = kernel.shaders[shader_name], DTYPES[variant]
    if found.entry != "main":
        yield "the entry point", found.entry, "main"
    allowed = {"Shader", *(c for f in features(kernel, shader, variant) for c in glsl.FEATURES[f].capabilities)}
    if not found.capabilities <= allowed:
        yield "the set of capabilities", sorted(found.capabilities), sorted(allowed)
    if "NumWorkgroups" in found.builtins:
        yield "a built-in used", "NumWorkgroups", "none that a split dispatch would change (take a push constant)"
    ids = {s.name: n for n, s in enumerate(shader.spec)}
    sizes = tuple(ids[entry] if isinstance(entry, str) else None for entry in shader.local)
    if found.local != glsl.local_default(shader) or found.local_ids != sizes:
        yield "the workgroup size", (found.local, found.local_ids), (glsl.local_default(shader), sizes)
    if found.shared_bytes is not None and found.shared_bytes > shader.shared_bytes:
        yield "the shared memory", f"{found.shared_bytes} bytes", f"at most {shader.shared_bytes}"
    # Buffers and constants that the shader never uses may be absent: a compiler may drop them.
    for number, default in found.spec.items():
        if number >= len(shader.spec) or shader.spec[number].default != default:
            yield f"specialisation constant {number}", default, [s.default for s in shader.spec]
    declared = [Buffer(0, n, glsl.glsl_type(b.dtype, kind), b.access) for n, b in enumerate(shader.buffers)]
    for buffer in found.buffers:
        if buffer not in declared:
            yield f"the buffer (set {buffer.set}, binding {buffer.binding})", buffer, declared
    offsets, _ = glsl.push_layout(shader.push, kind)
    push = tuple(zip(offsets, (glsl.glsl_type(s.dtype, kind) for s in shader.push), strict=True))
    if found.push and found.push != push:
        yield "the push constant block", found.push, push
    if len({(b.set, b.binding) for b in found.buffers}) != len(found.buffers):
        yield "the list of bindings", "one of them twice", "each once"
