"""Float controls: declared in a module when it is loaded, word by word, and only as far as a device offers them."""

from __future__ import annotations

import struct

import pytest

from dashi import kernels
from dashi.kernels import _build as build
from dashi.kernels.spirv._float_controls import FloatControls, Independence, declare_float_controls
from dashi.kernels.spirv._module import parse
from dashi.kernels.spirv._reflect import reflect
from dashi.kernels.spirv._scope import check_scope
from dashi.kernels.spirv._structure import check_structure

EVERYTHING = FloatControls((16, 32, 64), (16, 32, 64))
MAIN, TYPE, FLOAT = 4, 2, 6


def module(*widths: int, version: int = 0x00010500, modes: tuple[int, ...] = ()) -> bytes:
    """A module as short as it gets: an entry point that does nothing, and types of floats."""
    words = [0x07230203, version, 0, 20, 0]
    words += [2 << 16 | 17, 1]  # OpCapability Shader
    words += [3 << 16 | 14, 0, 1]  # OpMemoryModel Logical GLSL450
    words += [5 << 16 | 15, 5, MAIN, *struct.unpack("<2I", b"main\0\0\0\0")]  # OpEntryPoint GLCompute %4 "main"
    words += [6 << 16 | 16, MAIN, 17, 1, 1, 1]  # OpExecutionMode %4 LocalSize 1 1 1
    words += modes
    words += [2 << 16 | 19, TYPE, 3 << 16 | 33, 3, TYPE]  # OpTypeVoid %2, OpTypeFunction %3 %2
    for number, width in enumerate(widths):
        words += [3 << 16 | 22, FLOAT + number, width]
    words += [5 << 16 | 54, TYPE, MAIN, 0, 3, 2 << 16 | 248, 5, 1 << 16 | 253, 1 << 16 | 56]
    return struct.pack(f"<{len(words)}I", *words)


def added(binary: bytes, controls: FloatControls) -> list[list[int]]:
    """Instructions that the module has afterwards and did not have before; all others stand as they stood."""
    before = [(i.info.number, *i.words) for i in parse(binary).instructions]
    after = [(i.info.number, *i.words) for i in parse(declare_float_controls(binary, controls)).instructions]
    new = [i for i in after if i not in before]
    assert [i for i in after if i in before] == before
    return [list(i) for i in new]


def test_a_module_of_fp32_gets_two_capabilities_and_two_modes_word_by_word() -> None:
    before = struct.unpack(f"<{len(module(32)) // 4}I", module(32))
    after = declare_float_controls(module(32), EVERYTHING)
    words = struct.unpack(f"<{len(after) // 4}I", after)
    capabilities = (2 << 16 | 17, 4466, 2 << 16 | 17, 4467)
    modes = (4 << 16 | 16, MAIN, 4461, 32, 4 << 16 | 16, MAIN, 4462, 32)
    assert words == (*before[:7], *capabilities, *before[7:21], *modes, *before[21:])


@pytest.mark.parametrize(
    ("widths", "declared"),
    [
        ((32,), [[16, MAIN, 4461, 32], [16, MAIN, 4462, 32]]),
        ((64,), [[16, MAIN, 4461, 64], [16, MAIN, 4462, 64]]),
        ((64, 32), [[16, MAIN, 4461, 32], [16, MAIN, 4461, 64], [16, MAIN, 4462, 32], [16, MAIN, 4462, 64]]),
        ((), []),
    ],
)
def test_only_widths_that_the_module_has_are_declared(widths: tuple[int, ...], declared: list[list[int]]) -> None:
    assert [i for i in added(module(*widths), EVERYTHING) if i[0] == 16] == declared


@pytest.mark.parametrize(
    ("controls", "declared"),
    [
        (FloatControls(), []),
        (FloatControls((64,), (16,)), []),
        (FloatControls((), (32,)), [[17, 4466], [16, MAIN, 4461, 32]]),
        (FloatControls((32,), ()), [[17, 4467], [16, MAIN, 4462, 32]]),
    ],
)
def test_only_what_the_device_offers_is_declared(controls: FloatControls, declared: list[list[int]]) -> None:
    assert added(module(32), controls) == declared


@pytest.mark.parametrize(
    ("independence", "offered", "used", "declared"),
    [
        ("all", (32,), {32, 64}, {32}),
        ("none", (32,), {32, 64}, set()),
        ("none", (32,), {32}, {32}),
        ("none", (16, 32, 64), {32, 64}, {32, 64}),
        ("32", (32, 64), {16, 32, 64}, {32}),
        ("32", (32, 64), {32, 64}, {32, 64}),
        ("32", (16, 64), {16, 32, 64}, {16, 64}),
    ],
)
def test_widths_that_must_round_alike_are_declared_together_or_not_at_all(
    independence: Independence, offered: tuple[int, ...], used: set[int], declared: set[int]
) -> None:
    assert FloatControls(offered, (), independence).roundings(frozenset(used)) == declared


def test_what_the_module_declares_already_is_not_declared_twice() -> None:
    once = declare_float_controls(module(32, 64), EVERYTHING)
    assert declare_float_controls(once, EVERYTHING) is once
    partly = module(32, modes=(4 << 16 | 16, MAIN, 4462, 32))
    assert [i for i in added(partly, EVERYTHING) if i[0] == 16] == [[16, MAIN, 4461, 32]]


def test_the_extension_is_named_where_the_modes_are_not_yet_core() -> None:
    old = declare_float_controls(module(32, version=0x00010300), EVERYTHING)
    assert reflect(parse(old)).extensions == {"SPV_KHR_float_controls"}
    assert not reflect(parse(declare_float_controls(module(32, version=0x00010400), EVERYTHING))).extensions
    check_structure(parse(old))
    build.spirv_val(old, "a module of SPIR-V 1.3")


@pytest.mark.parametrize("name", ["axpy", "gemm_tiled", "hash_state", "prefix_scan", "maths"])
def test_kernels_with_declarations_are_valid_and_keep_their_interface(name: str) -> None:
    kernel = kernels.get(name)
    for shader, variant in build.variants(kernel)[:4]:
        binary = build.load(kernel, shader, variant)
        words = declare_float_controls(binary.words, EVERYTHING)
        changed, before = parse(words), reflect(parse(binary.words))
        check_structure(changed)
        check_scope(changed)
        build.spirv_val(words, f"{name}/{shader}.{variant}")
        after = reflect(changed)
        more = {"SignedZeroInfNanPreserve", "RoundingModeRTE"} if words is not binary.words else set[str]()
        assert after.capabilities - before.capabilities == more
        assert (after.buffers, after.push, after.spec, after.local) == (
            before.buffers, before.push, before.spec, before.local,
        )  # fmt: skip


@pytest.mark.parametrize(
    ("controls", "text"),
    [
        (EVERYTHING, "declared for fp16 fp32 fp64"),
        (FloatControls((32,), (32,)), "declared for fp32"),
        (FloatControls((32, 64), (32,)), "declared for fp32, rounding alone declared for fp64"),
        (FloatControls((), (32,)), "rounding by custom, NaN and infinity alone declared for fp32"),
        (FloatControls((32,), ()), "rounding alone declared for fp32, NaN and infinity by custom"),
        (FloatControls(), "by custom"),
    ],
)
def test_what_is_declared_is_told_in_words(controls: FloatControls, text: str) -> None:
    assert controls.text == text
