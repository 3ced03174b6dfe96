"""The generated GLSL: declarations written once, includes, and lines that errors can name."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from dashi.errors import AbiError, CompileError
from dashi.kernels import _glsl as glsl
from dashi.kernels import _registry as registry
from dashi.kernels import _scaffold as scaffold
from dashi.kernels._compiler import Compiler
from dashi.kernels.abi import Binding, Kernel, Scalar, Shader, Spec, pack
from dashi.types import DTYPES


@pytest.fixture
def kernel(tmp_path: Path) -> Kernel:
    return registry.read(scaffold.new("probe", tmp_path))


SHADER = Shader(
    buffers=(Binding("x"), Binding("index", "u32"), Binding("bits", "W", "readwrite"), Binding("result", "T", "write")),
    push=(Scalar("n", "u32"), Scalar("a"), Scalar("m", "i32")),
    spec=(Spec("tile", 16), Spec("wide", 4)),
    local=("wide", 8, 1),
)

GOLDEN_F32 = """\
#version 460
#extension GL_GOOGLE_cpp_style_line_directive : require
#define T float
#define W uint
#define T_IS_F64 0
#define USE_F64 0
layout(local_size_x = 4, local_size_x_id = 1, local_size_y = 8, local_size_z = 1) in;
layout(constant_id = 0) const uint tile = 16u;
const uint wide = gl_WorkGroupSize.x;
layout(set = 0, binding = 0, std430) readonly buffer Buffer0 { T x[]; };
layout(set = 0, binding = 1, std430) readonly buffer Buffer1 { uint index[]; };
layout(set = 0, binding = 2, std430) buffer Buffer2 { W bits[]; };
layout(set = 0, binding = 3, std430) writeonly buffer Buffer3 { T result[]; };
layout(push_constant, std430) uniform Push {
    layout(offset = 0) uint n;
    layout(offset = 4) float a;
    layout(offset = 8) int m;
};
"""


def test_declarations_are_these(kernel: Kernel) -> None:
    assert glsl.declarations(kernel, SHADER, "f32") == GOLDEN_F32


def test_the_double_variant_differs_in_types_extensions_and_offsets_alone(kernel: Kernel) -> None:
    changes = [
        ("#define T float", "#extension GL_EXT_shader_explicit_arithmetic_types_int64 : require\n#define T double"),
        ("#define W uint", "#define W uvec2"),
        ("T_IS_F64 0", "T_IS_F64 1"),
        ("USE_F64 0", "USE_F64 1"),
        ("offset = 4) float", "offset = 8) double"),
        ("offset = 8) int", "offset = 16) int"),
    ]
    expected = GOLDEN_F32
    for old, new in changes:
        assert old in expected
        expected = expected.replace(old, new)
    assert glsl.declarations(kernel, SHADER, "f64") == expected


@pytest.mark.parametrize("variant", ["f32", "f64"])
def test_push_constants_are_packed_where_the_shader_reads_them(variant: str) -> None:
    offsets, size = glsl.push_layout(SHADER.push, DTYPES[variant])
    packed = pack(SHADER.push, {"n": 7, "a": 1.5, "m": -1}, DTYPES[variant])
    assert len(packed) == size
    assert packed[offsets[0] :][:4] == b"\x07\0\0\0"
    assert packed[offsets[2] :][:4] == b"\xff\xff\xff\xff"


def test_a_shader_without_push_constants_declares_none(kernel: Kernel) -> None:
    assert "push_constant" not in glsl.declarations(kernel, replace(SHADER, push=()), "f32")


def test_the_text_is_the_same_every_time(kernel: Kernel) -> None:
    assert glsl.source(kernel, "main", "f64") == glsl.source(kernel, "main", "f64")


def test_line_endings_do_not_change_the_text(kernel: Kernel) -> None:
    before = glsl.source(kernel, "main", "f32")
    path = kernel.folder / "kernel.comp"
    path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
    assert glsl.source(kernel, "main", "f32") == before


def test_each_file_is_included_once_and_in_its_place(kernel: Kernel) -> None:
    (kernel.folder / "one.glsl").write_text('// one\n#include "two.glsl"\n// after two\n')
    (kernel.folder / "two.glsl").write_text('#include "one.glsl"\n// two\n')
    (kernel.folder / "kernel.comp").write_text('#include "two.glsl"\n#include "one.glsl" // again\n// end\n')
    text = glsl.source(kernel, "main", "f32")
    tail = text[text.index('#line 1 "kernel.comp"') :]
    assert tail == (
        '#line 1 "kernel.comp"\n#line 1 "two.glsl"\n#line 1 "one.glsl"\n// one\n#line 3 "one.glsl"\n// after two\n'
        '#line 2 "two.glsl"\n// two\n#line 2 "kernel.comp"\n#line 3 "kernel.comp"\n// end\n'
    )


@pytest.mark.parametrize("line", ['#include "../secret.glsl"', "#include <a.glsl>", '# include "/etc/passwd"'])
def test_an_include_cannot_leave_the_folder(kernel: Kernel, line: str) -> None:
    (kernel.folder / "kernel.comp").write_text(f"// first\n{line}\n")
    with pytest.raises(CompileError) as error:
        glsl.source(kernel, "main", "f32")
    assert str(error.value) == (
        f"kernel.comp:2: {line!r} does not name a plain file. "
        'Fix: write #include "name.glsl", a file of the kernel\'s folder or of the shared includes.'
    )


def test_a_missing_include_is_named(kernel: Kernel) -> None:
    (kernel.folder / "kernel.comp").write_text('#include "absent.glsl"\n')
    with pytest.raises(AbiError) as error:
        glsl.source(kernel, "main", "f32")
    assert str(error.value) == (
        f"there is no GLSL file 'absent.glsl' in {kernel.folder}, nor among the shared includes. "
        "Fix: write the file, or correct the name in the ABI or the #include."
    )


def test_a_folder_cannot_replace_a_shared_include(kernel: Kernel) -> None:
    before = glsl.source(kernel, "main", "f32")
    (kernel.folder / "portable.glsl").write_text("#error mine\n")
    assert glsl.source(kernel, "main", "f32") == before


def test_text_that_is_not_utf8_is_refused(kernel: Kernel) -> None:
    (kernel.folder / "kernel.comp").write_bytes(b"// \xff\n")
    with pytest.raises(CompileError, match=r"is not UTF-8 text: .*Fix: save it as UTF-8"):
        glsl.source(kernel, "main", "f32")


def test_compile_errors_name_the_authors_file_and_line(kernel: Kernel) -> None:
    (kernel.folder / "kernel.comp").write_text("T apply(T x) {\n    return y;\n}\n")
    with Compiler() as compiler, pytest.raises(CompileError) as error:
        compiler.compile(glsl.source(kernel, "main", "f32"), "probe/main.f32")
    lines = str(error.value).splitlines()
    assert lines[0] == "shader probe/main.f32 does not compile:"
    assert lines[1] == "  ERROR: kernel.comp:2: 'y' : undeclared identifier"
    assert lines[-1] == " Fix: correct the lines named above."


def test_every_feature_compiles(kernel: Kernel) -> None:
    (kernel.folder / "kernel.comp").write_text("void main() { result[0] = x[0]; }\n")
    with Compiler() as compiler:
        for feature in glsl.FEATURES:
            shader = Shader((Binding("x"), Binding("result", access="write")), features=frozenset({feature}))
            changed = replace(kernel, shaders={"main": shader})
            assert compiler.compile(glsl.source(changed, "main", "f32"), feature)
