"""SPIR-V from outside: parsed, checked for structure, reflected, and held against the ABI."""

from __future__ import annotations

import struct
from dataclasses import replace
from pathlib import Path

import pytest

from dashi.errors import SpirvError
from dashi.kernels import _build as build
from dashi.kernels import _glsl as glsl
from dashi.kernels import _registry as registry
from dashi.kernels import _scaffold as scaffold
from dashi.kernels._compiler import Compiler
from dashi.kernels.abi import Binding, Kernel, Scalar, Shader, Spec
from dashi.kernels.spirv._check import check_against
from dashi.kernels.spirv._module import MAX_BYTES, Instruction, Module, parse
from dashi.kernels.spirv._ops import OPS
from dashi.kernels.spirv._reflect import BufferVariable, reflect
from dashi.kernels.spirv._structure import check_structure

SHADER = Shader(
    buffers=(Binding("x"), Binding("index", "u32"), Binding("bits", "W", "readwrite"), Binding("result", "T", "write")),
    push=(Scalar("n", "u32"), Scalar("a"), Scalar("m", "i32")),
    spec=(Spec("tile", 16), Spec("wide", 4)),
    local=("wide", 8, 1),
)
BODY = """
shared T part[tile * wide];
T twice(T v) { return v + v; }
void main() {
    uint i = gl_GlobalInvocationID.x;
    part[gl_LocalInvocationIndex % (tile * wide)] = x[index[i]];
    barrier();
    if (i < n) { result[i] = twice(part[0]) * a + T(m); bits[i] = bits[i + 1]; }
}
"""


@pytest.fixture(scope="module")
def kernel(tmp_path_factory: pytest.TempPathFactory) -> Kernel:
    folder = scaffold.new("probe", tmp_path_factory.mktemp("kernels"))
    made = replace(registry.read(folder), shaders={"main": SHADER})
    (folder / "kernel.comp").write_text(BODY)
    return made


@pytest.fixture(scope="module")
def words(kernel: Kernel) -> bytes:
    with Compiler() as compiler:
        return build.compile_variant(kernel, "main", "f32", compiler).binary.words


def refusal(data: bytes) -> str:
    with pytest.raises(SpirvError) as error:
        check_structure(parse(data))
    text = str(error.value)
    head, tail = "the SPIR-V module is refused: ", ". Fix: build the kernel again with `dashi kernels build`."
    assert text.startswith(head)
    assert text.endswith(tail)
    return text.removeprefix(head).removesuffix(tail)


def put(data: bytes, index: int, word: int) -> bytes:
    return data[: 4 * index] + struct.pack("<I", word) + data[4 * index + 4 :]


def drop(module: Module, *names: str) -> bytes:
    kept = tuple(i for i in module.instructions if i.info.name not in names)
    return replace(module, instructions=kept).to_bytes()


def test_parsing_and_writing_gives_the_same_file(words: bytes) -> None:
    module = parse(words)
    assert module.to_bytes() == words
    check_structure(module)


def test_files_that_are_not_spirv_are_refused(words: bytes) -> None:
    assert refusal(b"") == "it has 0 bytes, which is not a whole SPIR-V file (truncated?)"
    assert refusal(words[:18]) == "it has 18 bytes, which is not a whole SPIR-V file (truncated?)"
    assert refusal(b"\x7fELF" + words[4:]) == "it starts with 0x464c457f instead of 0x07230203"
    swapped = struct.pack(f">{len(words) // 4}I", *struct.unpack(f"<{len(words) // 4}I", words))
    assert refusal(swapped) == "it is big-endian; dashi reads little-endian words"
    assert refusal(words + bytes(MAX_BYTES)) == (
        f"it has {len(words) + MAX_BYTES} bytes, more than the {MAX_BYTES} that a shader may have"
    )


def test_absurd_headers_are_refused(words: bytes) -> None:
    assert refusal(put(words, 1, 0x00020000)) == (
        "its version word is 0x00020000, which is no SPIR-V version up to 1.6"
    )
    assert refusal(put(words, 3, 0xFFFFFFFF)) == f"its id bound is 4294967295, absurd for {len(words) // 4} words"
    assert refusal(put(words, 4, 9)) == "its schema word is 9 instead of 0"


def test_truncation_anywhere_is_refused(words: bytes) -> None:
    for size in range(0, len(words), 52):
        assert refusal(words[:size])


def test_bad_instructions_are_refused(words: bytes) -> None:
    count = len(words) // 4
    assert refusal(put(words, 5, 0x00000011)) == (
        f"the instruction at word 5 claims 0 words, {count - 5} are left (truncated?)"
    )
    assert refusal(put(words, 5, 0x7FFF0011)) == (
        f"the instruction at word 5 claims 32767 words, {count - 5} are left (truncated?)"
    )
    assert refusal(put(words, 5, 0x00020000 | 4999)) == (
        "the instruction at word 5 has the number 4999, which no compute shader here may hold"
    )
    assert refusal(put(words, 5, 0x00010011)) == "OpCapability at word 5 has 0 operands instead of 1"


def test_bad_ids_are_refused(words: bytes) -> None:
    module = parse(words)
    first = next(i for i in module.instructions if i.info.name == "FAdd")
    assert refusal(put(words, first.at + 3, 0)) == f"OpFAdd at word {first.at} uses id 0, which nothing defines"
    assert refusal(put(words, first.at + 2, module.bound)) == (
        f"OpFAdd at word {first.at} defines id {module.bound}, outside 1..{module.bound - 1}"
    )
    taken = first.words[0]
    assert refusal(put(words, first.at + 2, taken)) == f"OpFAdd at word {first.at} defines id {taken} a second time"
    label = next(i for i in module.instructions if i.info.name == "Label")
    assert refusal(put(words, first.at + 1, label.words[0])) == (
        f"OpFAdd at word {first.at} has the type {label.words[0]}, which is an OpLabel"
    )


def test_types_made_of_themselves_are_refused(words: bytes) -> None:
    vector = next(parse(words).all("TypeVector"))
    assert refusal(put(words, vector.at + 2, vector.words[0])) == (
        f"OpTypeVector at word {vector.at} uses id {vector.words[0]} before it is made"
    )


def test_a_string_without_an_end_is_refused(words: bytes) -> None:
    name = next(i for i in parse(words).instructions if i.info.name == "Name")
    broken = words
    for k in range(1, len(name.words)):
        broken = put(broken, name.at + 1 + k, 0x61616161)
    assert refusal(broken) == "it holds a string without an end"


def test_structure_out_of_place_is_refused(words: bytes) -> None:
    module = parse(words)
    assert refusal(drop(module, "FunctionEnd")).endswith("does not begin a function where one must begin")
    assert refusal(drop(module, "MemoryModel")) == "it declares no memory model"
    assert refusal(drop(module, "Return", "ReturnValue")).endswith("has no block, or one without an end")
    moved = replace(module, instructions=(*module.instructions[1:], module.instructions[0]))
    assert refusal(moved.to_bytes()).startswith("OpCapability at word")
    outside = Instruction(OPS[253], ())
    split = next(n for n, i in enumerate(module.instructions) if i.info.name == "TypeVoid")
    placed = (*module.instructions[:split], outside, *module.instructions[split:])
    assert refusal(replace(module, instructions=placed).to_bytes()).endswith("stands outside every function")


def test_recursion_is_refused(words: bytes) -> None:
    module = parse(words)
    call = next(module.all("FunctionCall"))
    caller = next(i.words[1] for i in module.instructions if i.info.name == "EntryPoint")
    assert refusal(put(words, call.at + 3, caller)) == f"its function {caller} calls itself"
    constant = next(module.all("Constant")).words[1]
    assert refusal(put(words, call.at + 3, constant)) == f"it calls id {constant}, which is no function"


def test_jumps_stay_in_their_function(words: bytes) -> None:
    module = parse(words)
    branch = next(module.all("Branch"))
    other = list(module.all("Label"))[-1].words[0]
    assert f"jumps to id {other}, which is no block of it" in refusal(put(words, branch.at + 1, other))


def test_reflection_reads_the_whole_interface(words: bytes) -> None:
    reflection = reflect(parse(words))
    assert reflection.entry == "main"
    assert reflection.capabilities == {"Shader"}
    assert (reflection.local, reflection.local_ids) == ((4, 8, 1), (1, None, None))
    assert reflection.spec == {0: 16, 1: 4}
    assert reflection.buffers == (
        BufferVariable(0, 0, "float", "read"),
        BufferVariable(0, 1, "uint", "read"),
        BufferVariable(0, 2, "uint", "readwrite"),
        BufferVariable(0, 3, "float", "write"),
    )
    assert reflection.push == ((0, "uint"), (4, "float"), (8, "int"))
    assert reflection.builtins == {"GlobalInvocationId", "LocalInvocationIndex", "WorkgroupSize"}
    assert reflection.shared_bytes == 16 * 4 * 4


def test_the_double_variant_fits_its_abi(kernel: Kernel) -> None:
    with Compiler() as compiler:
        built = build.compile_variant(kernel, "main", "f64", compiler)
    reflection = reflect(parse(built.binary.words))
    assert reflection.capabilities == {"Shader", "Float64"}
    assert [b.element for b in reflection.buffers] == ["double", "uint", "uvec2", "double"]
    assert reflection.push == ((0, "uint"), (8, "double"), (16, "int"))


@pytest.mark.parametrize(
    ("change", "what"),
    [
        ({"buffers": SHADER.buffers[:3]}, "the buffer (set 0, binding 3)"),
        ({"buffers": (Binding("x", access="readwrite"), *SHADER.buffers[1:])}, "the buffer (set 0, binding 0)"),
        ({"buffers": (Binding("x", "i32"), *SHADER.buffers[1:])}, "the buffer (set 0, binding 0)"),
        ({"push": SHADER.push[:2]}, "the push constant block"),
        ({"push": (Scalar("n", "i32"), *SHADER.push[1:])}, "the push constant block"),
        ({"spec": (Spec("tile", 8), SHADER.spec[1])}, "specialisation constant 0"),
        ({"local": ("wide", 4, 2)}, "the workgroup size"),
        ({"local": (4, 8, 1)}, "the workgroup size"),
    ],
)
def test_a_module_that_differs_from_the_abi_is_refused(
    kernel: Kernel, words: bytes, change: dict[str, object], what: str
) -> None:
    other = replace(kernel, shaders={"main": replace(SHADER, **change)})  # pyright: ignore[reportArgumentType]
    with pytest.raises(SpirvError) as error:
        check_against(reflect(parse(words)), other, "main", "f32")
    assert str(error.value).startswith(f"the binary of probe/main.f32 does not fit its ABI: {what} is ")
    assert str(error.value).endswith(" Fix: run `dashi kernels build probe`, or correct the ABI.")


def test_undeclared_capabilities_are_refused(kernel: Kernel, tmp_path: Path) -> None:
    text = glsl.source(kernel, "main", "f64").replace("#define T double", "#define T double\n#define EXTRA 1")
    with Compiler() as compiler:
        module = parse(compiler.compile(text, "f64"))
    with pytest.raises(SpirvError) as error:
        check_against(reflect(module), kernel, "main", "f32")
    assert "the set of capabilities is ['Float64', 'Shader'], declared is ['Shader']" in str(error.value)


@pytest.mark.parametrize(
    ("source", "why"),
    [
        ("layout(set = 0, binding = 0) uniform U { vec4 v; }; void main() {}", "storage class 2"),
        ("layout(set = 0, binding = 0, r32f) uniform image2D p; void main() {}", "has the number 25"),
        (
            "layout(set = 0, binding = 0) buffer B { float n; float x[]; }; void main() {}",
            "not one array of open length",
        ),
        ("layout(set = 0, binding = 0) buffer B { vec3 x[]; }; void main() {}", "not a dense array of OpTypeVector"),
        ("layout(constant_id = 0) const bool b = true; void main() { if (b) return; }", "is no u32"),
    ],
)
def test_interfaces_that_no_kernel_has_are_refused(source: str, why: str) -> None:
    with Compiler() as compiler:
        data = compiler.compile(f"#version 460\nlayout(local_size_x = 1) in;\n{source}\n", "probe")
    with pytest.raises(SpirvError, match=why):
        reflect(parse(data))


@pytest.mark.parametrize(
    ("declaration", "size"),
    [
        ("shared float a[100];", 400),
        ("shared vec4 a[4][8]; shared uint b;", 4 * 8 * 16 + 4),
        ("struct S { uvec2 p; double q; }; shared S a[3];", 48),
        ("layout(constant_id = 0) const uint k = 6; shared uint a[k * 2 + 1];", 52),
        ("layout(constant_id = 0) const uint k = 6; shared uint a[k / 2];", None),
    ],
)
def test_shared_memory_is_counted(declaration: str, size: int | None) -> None:
    with Compiler() as compiler:
        data = compiler.compile(
            f"#version 460\nlayout(local_size_x = 1) in;\n{declaration}\nvoid main() {{}}\n", "probe"
        )
    assert reflect(parse(data)).shared_bytes == size


def test_too_much_shared_memory_is_refused(kernel: Kernel, words: bytes) -> None:
    found = replace(reflect(parse(words)), shared_bytes=32769)
    with pytest.raises(SpirvError, match="the shared memory is 32769 bytes, declared is at most 32768"):
        check_against(found, kernel, "main", "f32")


def test_a_second_descriptor_set_is_refused(kernel: Kernel) -> None:
    source = glsl.source(kernel, "main", "f32").replace("set = 0, binding = 3", "set = 1, binding = 3")
    with Compiler() as compiler:
        module = parse(compiler.compile(source, "probe"))
    with pytest.raises(SpirvError, match=r"the buffer \(set 1, binding 3\) is "):
        check_against(reflect(module), kernel, "main", "f32")


def test_modules_of_other_stages_are_refused(words: bytes) -> None:
    entry = next(parse(words).all("EntryPoint"))
    with pytest.raises(SpirvError, match="it has 1 entry points; a kernel has one, a compute shader's"):
        reflect(parse(put(words, entry.at + 1, 4)))


def test_an_unused_buffer_is_no_contradiction(kernel: Kernel) -> None:
    folder_text = (kernel.folder / "kernel.comp").read_text()
    try:
        (kernel.folder / "kernel.comp").write_text("void main() { result[0] = x[0]; }\n")
        with Compiler() as compiler:
            assert build.compile_variant(kernel, "main", "f32", compiler)
    finally:
        (kernel.folder / "kernel.comp").write_text(folder_text)
