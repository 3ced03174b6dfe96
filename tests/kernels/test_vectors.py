"""Buffers read 16 bytes at a time, halves, and kernels of the device class, from the ABI to the binary."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from dashi.errors import AbiError, SpirvError
from dashi.kernels import _glsl as glsl
from dashi.kernels import _registry as registry
from dashi.kernels import _scaffold as scaffold
from dashi.kernels._build import compile_variant
from dashi.kernels._calls import resolve_call
from dashi.kernels._compiler import Compiler
from dashi.kernels._validate import check_plan
from dashi.kernels.abi import Binding, Dispatch, Kernel, Plan, Shader, features
from dashi.kernels.spirv._module import parse
from dashi.kernels.spirv._portable_lint import contractable
from dashi.kernels.spirv._reflect import reflect
from dashi.types import DTYPES, dtype


@pytest.fixture(scope="module")
def compiler() -> Iterator[Compiler]:
    with Compiler() as opened:
        yield opened


@pytest.fixture
def kernel(tmp_path: Path) -> Kernel:
    """One that reads and writes vectors: result = x + x."""
    stored = registry.read(scaffold.new("probe", tmp_path))
    (stored.folder / "kernel.comp").write_text(
        "void main() { uint i = gl_GlobalInvocationID.x; result[i] = x[i] + x[i]; }"
    )
    shader = Shader((Binding("x", "V"), Binding("result", "V", "write")))
    return replace(stored, shaders={"main": shader}, scalars=(), portable=False, bound=1e-6)


@pytest.mark.parametrize(("variant", "vector"), [("f32", "vec4"), ("f64", "dvec2")])
def test_a_vector_is_16_bytes_of_the_variant(kernel: Kernel, compiler: Compiler, variant: str, vector: str) -> None:
    text = glsl.source(kernel, "main", variant)
    assert f"#define V {vector}\n" in text
    assert f"#define V_LANES {16 // DTYPES[variant].size}\n" in text
    found = reflect(parse(compile_variant(kernel, "main", variant, compiler).binary.words))
    assert [b.element for b in found.buffers] == [vector, vector]


def test_shaders_without_vectors_do_not_mention_them(tmp_path: Path) -> None:
    plain = registry.read(scaffold.new("plain", tmp_path))
    assert "#define V " not in glsl.source(replace(plain, shaders={"main": Shader((Binding("x"),))}), "main", "f32")


def test_a_vector_of_doubles_needs_what_doubles_need(kernel: Kernel) -> None:
    assert features(kernel, kernel.shaders["main"], "f64") == {"fp64", "int64"}
    assert features(kernel, kernel.shaders["main"], "f32") == frozenset()


def test_only_a_buffer_of_whole_vectors_is_bound_as_vectors(kernel: Kernel) -> None:
    plan = Plan((Dispatch("main", ("x", "result"), {}, (1, 1, 1)),))
    for size, whole in ((8, True), (7, False)):
        call = resolve_call(kernel, "f32", [(size,)])
        if whole:
            assert check_plan(kernel, call, plan) is plan
        else:
            with pytest.raises(AbiError, match=r"binds .* of another element size"):
                check_plan(kernel, call, plan)


def test_the_device_class_may_be_contracted_and_portable_kernels_may_not(kernel: Kernel, compiler: Compiler) -> None:
    device = parse(compile_variant(kernel, "main", "f32", compiler).binary.words)
    portable = replace(kernel, portable=True, bound=None)
    assert contractable(device)
    assert not contractable(parse(compile_variant(portable, "main", "f32", compiler).binary.words))


@pytest.mark.parametrize(("allowed", "fits"), [(32768, False), (49152, True)])
def test_more_shared_memory_than_every_device_has_must_be_declared(
    kernel: Kernel, compiler: Compiler, allowed: int, fits: bool
) -> None:
    (kernel.folder / "kernel.comp").write_text(
        "shared float held[10000];\nvoid main() { held[0] = x[0].x; result[0] = V(held[0]); }"
    )
    wide = replace(kernel, shaders={"main": replace(kernel.shaders["main"], shared_bytes=allowed)})
    if fits:
        compile_variant(wide, "main", "f32", compiler)
    else:
        with pytest.raises(SpirvError, match="the shared memory is 40000 bytes, declared is at most 32768"):
            compile_variant(wide, "main", "f32", compiler)


def test_halves_have_a_type() -> None:
    half = dtype(np.float16)
    assert (half.name, half.size, half.glsl, half.is_float) == ("f16", 2, "float16_t", True)
    assert half.features == {"fp16"}
