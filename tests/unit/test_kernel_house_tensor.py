"""Tensor layouts: what the builder makes of the types that shaders declare by their SPIR-V numbers."""

from __future__ import annotations

from dashi import kernels
from dashi.kernels.build import load
from dashi.kernels.spirv import parse
from dashi.kernels.spirv_tensor import sizes_as_constants


def test_the_sizes_of_a_tensor_layout_are_constants_that_come_before_it() -> None:
    module = parse(load(kernels.get("gemm_coop"), "tensors_128x256x64", "f16").words)
    (layout,) = module.all("TypeTensorLayoutNV")
    made = [module.defined[number] for number in layout.operands]
    assert [(i.info.name, i.operands) for i in made] == [("Constant", (2,)), ("Constant", (0,))]
    assert all(module.defined[i.words[0]].operands == (32, 0) for i in made)
    assert all(i.at < layout.at for i in made)


def test_a_type_that_comes_too_late_for_the_constants_is_moved() -> None:
    header = (0x07230203, 0x10500, 0, 4, 0)
    words = (*header, 4 << 16 | 5370, 1, 2, 0, 4 << 16 | 32, 3, 7, 1, 4 << 16 | 21, 2, 32, 0)
    code = b"".join(word.to_bytes(4, "little") for word in words)
    module = parse(sizes_as_constants(code))
    assert [i.info.name for i in module.instructions] == [
        "TypeInt", "Constant", "Constant", "TypeTensorLayoutNV", "TypePointer",
    ]  # fmt: skip
    assert module.bound == 6


def test_modules_without_tensor_layouts_stay_as_they_are() -> None:
    words = load(kernels.get("add"), next(iter(kernels.get("add").shaders)), "f32").words
    assert sizes_as_constants(words) is words
