"""Fused kernels: one dispatch with the bits of the kernels one after another, whatever the shapes and strides."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dashi
from dashi.cli.kernels import buildable
from dashi.errors import DashiError, InputError, KernelError, LimitError, ShapeError
from dashi.kernels import _build as build
from dashi.kernels import _fused_abi as fused
from dashi.kernels._calls import resolve_call
from dashi.kernels._ops import OPS
from dashi.kernels._registry import templates
from dashi.kernels.abi import Kernel, View
from dashi.kernels.expressions import Expression, apply, arguments, clamp, constant, maximum, scalars, tanh
from dashi.kernels.spirv._emit import Template, id_places
from dashi.kernels.spirv._module import parse
from dashi.runtime._cpu_device import CpuDevice
from dashi.runtime._null_device import NullDevice
from dashi.runtime._vulkan_device import VulkanDevice
from dashi.runtime.device import Device

FLOAT_TYPES = ("f32", "f64", "f16")
FLOATS = pytest.mark.parametrize("kind", [np.float32, np.float64])
LIGHT = sorted(
    name for name, op in OPS.items() if name in "abs add maximum minimum mul neg relu sign square sub".split()
)
AWKWARD = [0.0, -0.0, 1.0, -1.5, 2.0**-101, -(2.0**-102), 2.0**-126, 1e-45, 3e38, np.inf, -np.inf, np.nan]


def test_the_template_is_what_its_sources_build() -> None:
    for template in templates():
        assert build.check(template) == ()


def test_templates_are_built_with_the_kernels_and_by_name_but_are_none_of_them() -> None:
    assert "fused" not in dashi.kernels.names()
    assert [k.name for k in buildable(None, None)] == [*dashi.kernels.names(), *templates().names()]
    assert [k.name for k in buildable(["fused"], None)] == ["fused"]
    assert [k.name for k in buildable(["fused", "add"], None)] == ["add", "fused"]


def chain() -> Kernel:
    x, y = arguments("x y")
    (a,) = scalars("a")
    return dashi.kernels.fuse(maximum(a * x + y, -1.0) - y * y)


def numbers(shape: tuple[int, ...], kind: Any, seed: int = 0) -> Any:
    rng = np.random.default_rng(seed)
    values = rng.standard_normal(shape).astype(kind)
    values.reshape(-1)[:: max(1, values.size // 12)] = np.resize(
        np.array(AWKWARD, kind), values.reshape(-1)[:: max(1, values.size // 12)].shape
    )
    return values


@FLOATS
@pytest.mark.parametrize("size", [1, 64, 4099])
def test_a_fused_chain_has_the_bits_of_its_kernels_one_after_another(device: Device, kind: Any, size: int) -> None:
    x, y = numbers((size,), kind, 1), numbers((size,), kind, 2)
    scaled = device.run("maximum", device.run("axpy", x, y, a=-0.3), np.full(size, -1, kind))
    expected = device.run("sub", scaled, device.run("square", y)).numpy()
    assert device.run(chain(), x, y, a=-0.3).numpy().tobytes() == expected.tobytes()


@pytest.mark.parametrize("name", sorted(name for name, op in OPS.items() if op.floats is None and op.for_floats))
def test_every_function_that_can_be_fused_is_the_kernel_of_its_name(device: Device, name: str) -> None:
    inputs = [numbers((60,), np.float32, seed) for seed in range(OPS[name].inputs)]
    kernel = dashi.kernels.fuse(apply(name, *arguments("x y")[: len(inputs)]))
    assert device.run(kernel, *inputs).numpy().tobytes() == device.run(name, *inputs).numpy().tobytes()


@st.composite
def trees(draw: st.DrawFn, most: int = 6) -> Expression:
    """Random formulas of light functions over three arguments, a scalar and constants; values are used again."""
    values = [*arguments("x y z"), *scalars("a"), constant(draw(st.sampled_from([0.0, -2.5, 1e-33])))]
    for _ in range(draw(st.integers(1, most))):
        op = OPS[draw(st.sampled_from(LIGHT))]
        values.append(apply(op.name, *(draw(st.sampled_from(values)) for _ in range(op.inputs))))
    x, *_ = values
    return apply("add", values[-1], x)  # so that there is an argument


@st.composite
def operands(draw: st.DrawFn) -> tuple[tuple[int, ...], list[tuple[int, ...]]]:
    """A shape, and three that stretch to it."""
    shape = tuple(draw(st.lists(st.integers(1, 4), min_size=0, max_size=5)))
    shapes = []
    for _ in range(3):
        part = tuple(1 if draw(st.booleans()) else n for n in shape)
        shapes.append(part[draw(st.integers(0, len(part))) :] if all(n == 1 for n in part) else part)
    return shape, shapes


@settings(max_examples=15)
@given(tree=trees(), shapes=operands(), kind=st.sampled_from([np.float32, np.float64]), seed=st.integers(0, 99))
def test_random_formulas_agree_on_numpy_and_vulkan(
    vulkan_session: VulkanDevice, tree: Expression, shapes: Any, kind: Any, seed: int
) -> None:
    kernel = dashi.kernels.fuse(tree)
    arrays = [numbers(s, kind, seed + k) for k, s in enumerate(shapes[1])][: len(kernel.inputs)]
    given_scalars: dict[str, Any] = {s.name: 0.75 for s in kernel.scalars}
    expected = kernel.reference(*arrays, **given_scalars)
    got = vulkan_session.run(kernel, *arrays, **given_scalars).numpy()
    assert isinstance(expected, np.ndarray)
    assert (got.shape, got.tobytes()) == (np.broadcast_shapes(*(a.shape for a in arrays)), expected.tobytes())


@pytest.mark.parametrize("kind", [np.int32, np.uint32, np.int64, np.uint64, np.int8, np.uint16])
def test_integers_wrap_round_as_in_numpy(device: Device, kind: Any) -> None:
    x, y = arguments("x y")
    (a,) = scalars("a")
    kernel = dashi.kernels.fuse(maximum(a * x + y, 1) - apply("square", apply("neg", y)), apply("sign", x - y))
    assert kernel.dtypes == (*FLOAT_TYPES[:2], "i32", "u32", "f16", "i64", "u64", "i16", "u16", "i8", "u8")
    limits = np.iinfo(kind)
    u = np.array([limits.min, limits.max, 0, 1, 7, limits.max - 3, 5, 6], kind)
    v = np.arange(8, dtype=kind)
    for left, right in ((u, v), (u[:7].copy(), v[:7].copy()), (u, v[:1].copy())):
        with np.errstate(over="ignore"):
            total = np.maximum(kind(3) * left + right, kind(1)) - np.square(-right)
        expected = [total, np.broadcast_to(np.sign(left - right), total.shape)]
        got = device.run(kernel, left, right, a=3)
        assert [g.numpy().tolist() for g in got] == [e.tolist() for e in expected]


def test_a_formula_has_the_element_types_that_its_functions_and_constants_have() -> None:
    (x,) = arguments("x")
    assert dashi.kernels.fuse(x + 2**31).dtypes == ("f32", "f64", "u32", "f16", "i64", "u64")
    assert dashi.kernels.fuse(x - (-1)).dtypes == ("f32", "f64", "i32", "f16", "i64", "i16", "i8")
    assert dashi.kernels.fuse(x * 0.5).dtypes == dashi.kernels.fuse(tanh(x)).dtypes == FLOAT_TYPES
    assert dashi.kernels.fuse(apply("bit_not", x)).dtypes == ("i32", "u32", "i64", "u64", "i16", "u16", "i8", "u8")
    assert dashi.kernels.fuse(x < 1).dtypes[-1] == "bool"


@st.composite
def strided(draw: st.DrawFn) -> tuple[int, View]:
    """A number of elements, and a view of some of them: permuted, reversed, sliced, repeated."""
    lengths = draw(st.lists(st.integers(1, 4), min_size=1, max_size=4))
    whole = np.arange(int(np.prod(lengths))).reshape(lengths).transpose(draw(st.permutations(range(len(lengths)))))
    steps = [draw(st.sampled_from([1, 2, -1])) for _ in lengths]
    cut = whole[tuple(slice(None, None, step) for step in steps)]
    view = View(cut.shape, tuple(s // cut.itemsize for s in cut.strides), int(cut.reshape(-1)[0]))
    return whole.size, view


@settings(max_examples=15)
@given(case=strided(), kind=st.sampled_from([np.float32, np.float64]))
def test_views_read_the_elements_that_numpy_reads(vulkan_session: VulkanDevice, case: Any, kind: Any) -> None:
    size, view = case
    x, y = arguments("x y")
    kernel = dashi.kernels.fuse(x - y, views={"x": view})
    memory, other = numbers((size,), kind, 3), numbers(view.shape, kind, 4)
    values = np.lib.stride_tricks.as_strided(
        memory[view.offset :], view.shape, [s * memory.itemsize for s in view.strides]
    )
    expected = dashi.kernels.get("sub").reference(values.copy(), other)
    assert vulkan_session.run(kernel, memory, other).numpy().tobytes() == np.asarray(expected).tobytes()
    with CpuDevice() as cpu:
        assert cpu.run(kernel, memory, other).numpy().tobytes() == np.asarray(expected).tobytes()


def test_axes_that_lie_behind_one_another_become_one() -> None:
    shape = (2, 3, 1, 4, 5)
    assert fused.collapse(shape, [fused.dense(shape).strides] * 2) == ((120,), [(1,), (1,)])
    row = fused.stretched(fused.dense((4, 5)), shape)
    assert fused.collapse(shape, [fused.dense(shape).strides, row.strides]) == ((6, 20), [(20, 1), (0, 1)])
    turned = View((5, 4), (1, 5))
    assert fused.collapse((5, 4), [turned.strides]) == ((5, 4), [(1, 5)])


def test_equal_shapes_take_the_path_of_vectors_and_others_the_strided_one() -> None:
    kernel = chain()
    shaders = {
        shapes: kernel.plan(resolve_call(kernel, "f32", shapes, {"a": 1})).dispatches[0].shader
        for shapes in [((8, 8), (8, 8)), ((8, 8), (8,)), ((9,), (9,)), ((1, 4, 4), (4, 4))]
    }
    assert list(shaders.values()) == ["flat", "strided", "strided", "flat"]


def test_a_fused_kernel_may_write_over_its_input(device: Device) -> None:
    x, y = numbers((4096,), np.float32, 5), numbers((4096,), np.float32, 6)
    kernel = chain()
    inside = device.array(x)
    device.run(kernel, inside, y, out=inside, a=2)
    assert inside.numpy().tobytes() == np.asarray(kernel.reference(x, y, a=2)).tobytes()


def test_several_results_come_from_one_dispatch(device: Device) -> None:
    x, y = arguments("x y")
    kernel = dashi.kernels.fuse(x + y, x - y, apply("abs", x), outputs="total difference size")
    a, b = numbers((37,), np.float32, 7), numbers((37,), np.float32, 8)
    results = device.run(kernel, a, b)
    assert [r.numpy().tobytes() for r in results] == [np.asarray(e).tobytes() for e in kernel.reference(a, b)]
    assert len(kernel.plan(resolve_call(kernel, "f32", [(37,), (37,)])).dispatches) == 1


def test_what_is_written_twice_is_computed_once() -> None:
    (x,) = arguments("x")
    kernel = dashi.kernels.fuse(tanh(x) * tanh(x))
    binary = build.load(kernel, "flat", "f32")
    template = Template(parse(binary.words))
    calls = [i.words[2] for i in template.functions[template.function("apply")] if i.info.name == "FunctionCall"]
    assert calls.count(template.function("op_tanh")) == 1
    assert "op_exp" not in template.names  # what the formula does not call is not in the binary
    again = dashi.kernels.fuse(tanh(x) * tanh(x))
    assert (again.name, build.load(again, "flat", "f32").digest) == (kernel.name, binary.digest)


def test_emitted_binaries_pass_the_checks_of_the_house_and_khronos_validator() -> None:
    kernel = chain()
    for shader, variant in build.variants(kernel):
        binary = build.load(kernel, shader, variant)
        build.spirv_val(binary.words, shader)
        module = parse(binary.words)
        assert module.bound == 1 + len({i.words[at] for i in module.instructions for at in id_places(i)})


def test_a_damaged_emission_is_refused_before_a_driver_sees_it(vulkan: VulkanDevice) -> None:
    class Damaged:
        key = "damaged"

        def words(self, shader: str, variant: str) -> bytes:
            words = bytearray(chain_binaries.words(shader, variant))
            words[-8:-4] = (0xFFFF0000 + 248).to_bytes(4, "little")
            return bytes(words)

    kernel = chain()
    assert kernel.binaries is not None
    chain_binaries = kernel.binaries
    with pytest.raises(KernelError, match="Fix:"):
        vulkan.run(replace(kernel, binaries=Damaged()), np.zeros(4, np.float32), np.zeros(4, np.float32), a=1)


def test_a_long_chain_is_one_kernel(device: Device) -> None:
    (x,) = arguments("x")
    value = x
    for _ in range(400):
        value = value * 0.5 + x
    kernel = dashi.kernels.fuse(value)
    values = numbers((16,), np.float32, 9)
    assert len(kernel.summary) < 300
    with CpuDevice() as cpu:
        assert cpu.run(kernel, values).numpy().tobytes() == np.asarray(kernel.reference(values)).tobytes()


def test_clamp_of_a_formula_is_the_kernel_clamp(device: Device) -> None:
    (x,) = arguments("x")
    values = numbers((50,), np.float32, 10)
    got = device.run(dashi.kernels.fuse(clamp(x, -0.5, 0.75)), values).numpy()
    assert got.tobytes() == device.run("clamp", values, lo=-0.5, hi=0.75).numpy().tobytes()


def test_a_fused_kernel_is_planned_and_recorded_without_a_device() -> None:
    with NullDevice() as null:
        null.bind(chain(), null.zeros((3, 5)), null.zeros(5), a=1)


def refused(make: Any) -> str:
    with pytest.raises(DashiError) as caught:
        make()
    return str(caught.value)


def test_what_cannot_be_fused_is_refused_with_a_fix() -> None:
    x, y = arguments("x y")
    fuse = dashi.kernels.fuse
    assert refused(lambda: apply("gemv", x, y)).startswith("no function 'gemv' can be fused. Fix: use one of abs, add")
    assert refused(lambda: apply("add", x)) == "add takes 2 values, 1 given. Fix: pass 2."
    assert refused(lambda: x + "1").startswith("'1' is no expression and no number. Fix:")  # pyright: ignore[reportOperatorIssue]
    assert refused(lambda: bool(x)).startswith("an expression is neither true nor false")
    assert refused(lambda: clamp(x, 1, 0)) == "clamp: there is nothing between lo=1 and hi=0. Fix: pass lo <= hi."
    assert refused(lambda: fuse(constant(1))).startswith("the formula has no argument. Fix:")
    assert refused(lambda: fuse(x + y, inputs="x")).startswith("the formula has the arguments x, y, but")
    assert refused(lambda: fuse(*[x] * 9)).startswith("9 formulas are to be fused")
    assert refused(lambda: fuse(x, views={"z": View((1,), (1,))})).startswith("`views` names 'z'")
    assert refused(lambda: fuse(x, views={"x": View((2, 2), (1,))})).startswith("the view of x has the shape (2, 2)")
    total = sum(arguments(" ".join("abcdefghijklmnopq")), start=constant(0))
    with pytest.raises(LimitError, match=r"has 17 arguments; a fused kernel has at most 16\. Fix: split it"):
        fuse(total)


def test_arrays_that_do_not_fit_are_refused_with_a_fix() -> None:
    x, y = arguments("x y")
    kernel = dashi.kernels.fuse(x + y, name="total")
    with CpuDevice() as cpu:
        with pytest.raises(ShapeError, match=r"kernel 'total': y has shape \(4,\), which does not stretch to \(3,\)"):
            cpu.run(kernel, np.zeros(3, np.float32), np.zeros(4, np.float32))
        viewed = dashi.kernels.fuse(x + y, views={"x": View((3,), (2,), 1)}, name="viewed")
        with pytest.raises(ShapeError, match="x has 5 elements, but its view names the elements 1 to 5"):
            cpu.run(viewed, np.zeros(5, np.float32), np.zeros(3, np.float32))
        shape = (2,) * 18
        scattered = View(shape, tuple(3**k for k in range(18))[::-1])
        deep = dashi.kernels.fuse(x + y, views={"x": scattered})
        call = resolve_call(deep, "f32", [(scattered.bounds()[1] + 1,), shape])
        with pytest.raises(ShapeError, match="18 axes that do not lie behind one another in memory; 8 can be walked"):
            deep.plan(call)
        with pytest.raises(InputError, match="Fix:"):
            cpu.run(kernel, np.zeros(3, np.float32), 2.0)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", ["mul", "mod"])
def test_a_literal_zero_is_a_number_like_others(vulkan: VulkanDevice, name: str, dtype: type) -> None:
    """lavapipe takes a product with a literal 0 for 0, also where the other factor is infinite or NaN."""
    x = np.array([np.inf, -np.inf, np.nan, -0.0, 0.0, -1.0, 3.0, 1e30], dtype)
    (value,) = arguments("x")
    with dashi.open("cpu") as cpu:
        for formula in (apply(name, value, 0.0), apply(name, 0.0, value), apply(name, value, 1e-40) + value):
            kernel = dashi.kernels.fuse(formula)
            assert vulkan.run(kernel, x).numpy().tobytes() == cpu.run(kernel, x).numpy().tobytes()
