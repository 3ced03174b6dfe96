"""Formulas whose operands have element types of their own: numbers are converted where they are read and written."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dashi
from dashi.errors import DashiError
from dashi.kernels import _build as build
from dashi.kernels import _cases, activations
from dashi.kernels._edges import edges_of
from dashi.kernels._formulas import formula
from dashi.kernels._fused_glsl import FLOAT_STORAGE, STORAGE
from dashi.kernels._ops import OPS
from dashi.kernels._storage import any_values, saturated
from dashi.kernels.abi import Kernel, View, variant_features
from dashi.kernels.expressions import Expression, apply, arguments, constant, maximum, quotient, scalars, tanh, where
from dashi.runtime._cpu_device import CpuDevice
from dashi.runtime._vulkan_device import VulkanDevice
from dashi.runtime.array import Array
from dashi.runtime.conformance import check
from dashi.runtime.device import Device
from dashi.types import DTYPES

LIGHT = sorted(
    set(OPS) - set("atan atan2 cos div erf exp log mod pow reciprocal rsqrt sigmoid sin softplus sqrt tanh".split())
)
EDGES = [
    0.5, -0.5, 127.9, -128.5, 255.5, 32767.5, 65536, 2.0**31, -(2.0**31), 2.0**32, 2.0**63, -(2.0**63), 2.0**64, 1e30,
]  # fmt: skip


def stored(storage: str, shape: tuple[int, ...], seed: int, distribution: str = "adversarial") -> Any:
    """Elements of a type as they lie in memory: of a distribution, and the ends of every type."""
    kind, rng = DTYPES[storage], np.random.default_rng(seed)
    size = math.prod(shape)
    if not kind.is_float:
        values = np.array(any_values(storage)(rng, (size,)))
        if kind.kind != "b":
            limits = np.iinfo(str(kind.numpy))
            edges = np.array([limits.min, limits.max, limits.max - 1, limits.max // 2 + 1], kind.numpy)
            values[:: max(1, size // 4)][:4] = edges[: len(values[:: max(1, size // 4)][:4])]
        return values.reshape(shape)
    values = np.array(_cases.DISTRIBUTIONS[distribution](rng, size, kind))
    largest = 6e4 if storage == "f16" else 3e38
    edges = kind.to_stored(np.clip(EDGES, -largest, largest).astype(kind.numpy))
    values[1::3][: len(edges)] = edges[: len(values[1::3])]
    return values.reshape(shape)


def on(device: Device, values: Any, storage: str) -> Array:
    return device.array(values).view(storage)


def words(array: Array) -> bytes:
    return array.view("u16").numpy().tobytes() if array.dtype == "bf16" else array.numpy().tobytes()


@pytest.mark.parametrize("source", STORAGE)
def test_every_type_becomes_every_other_with_the_bits_of_numpy(vulkan: VulkanDevice, source: str) -> None:
    values = stored(source, (203,), 1, "uniform_wide")
    array = on(vulkan, values, source)
    for target in STORAGE:
        kernel = dashi.kernels.cast(source, target)
        assert words(vulkan.run(kernel, array)) == np.asarray(kernel.reference(values)).tobytes(), target


@pytest.mark.parametrize("target", [s for s in STORAGE if s not in (*FLOAT_STORAGE, "bool")])
def test_floats_are_cut_towards_zero_and_saturated(target: str) -> None:
    kind = DTYPES[target].numpy
    limits = np.iinfo(str(kind))
    for number in [*EDGES, -1.0, -0.9, 0.0, 3.999, math.inf, -math.inf, math.nan]:
        exact = 0 if math.isnan(number) else max(limits.min, min(limits.max, int(max(-1e40, min(1e40, number)))))
        assert saturated(np.array([number]), kind)[0] == exact


def test_integers_become_the_nearest_float(device: Device) -> None:
    values = np.array([2**24 + 1, 2**24 + 3, -(2**62) - 2**38 - 1, 2**62 + 2**38, 2**62 + 2**38 + 1, -1], np.int64)
    got = device.run(dashi.kernels.cast("i64", "f32"), values).numpy()
    assert got.tolist() == [2**24, 2**24 + 4, -(2**62) - 2**39, 2**62, 2**62 + 2**39, -1]


@st.composite
def formulas(draw: st.DrawFn) -> tuple[Expression, Expression, dict[str, str], str]:
    """Two results of light functions over three arguments, with element types, and a type to compute in."""
    compute = draw(st.sampled_from(["f32", "f64", "i32", "u32", "i64", "u64"]))
    usable = [n for n in LIGHT if (OPS[n].for_floats if compute[0] == "f" else OPS[n].for_integers)]
    values: list[Expression] = [*arguments("x y z"), *scalars("a"), constant(3)]
    x, y, z, *_ = values
    for _ in range(draw(st.integers(1, 6))):
        op = OPS[draw(st.sampled_from(usable))]
        values.append(apply(op.name, *(draw(st.sampled_from(values)) for _ in range(op.inputs))))
    kinds = [s for s in STORAGE if compute[0] == "f" or s not in FLOAT_STORAGE]
    types = {name: draw(st.sampled_from(kinds)) for name in ("x", "y", "z", "u", "v")}
    return values[-1], x + y - z, types, compute


@settings(max_examples=25)
@given(
    case=formulas(),
    shape=st.lists(st.integers(1, 9), min_size=0, max_size=3),
    distribution=st.sampled_from(sorted(_cases.DISTRIBUTIONS)),
    seed=st.integers(0, 99),
)
def test_random_formulas_over_several_types_agree_on_numpy_and_vulkan(
    vulkan_session: VulkanDevice, case: Any, shape: list[int], distribution: str, seed: int
) -> None:
    first, second, types, compute = case
    # x is whole, y reversed and every other of a longer one, z one row of it.
    shapes = [tuple(shape), (2 * math.prod(shape) + 1,), tuple(shape[1:])]
    sizes = [math.prod(shape[axis + 1 :]) for axis in range(len(shape))]
    view = View(tuple(shape), tuple(-2 * s for s in sizes), 2 * math.prod(shape) - 1)
    kernel = dashi.kernels.fuse(
        first, second, outputs="u v", inputs="x y z", types=types, compute=compute, views={"y": view}
    )
    names = ("x", "y", "z")
    arrays = [stored(types[n], s, seed + k, distribution) for k, (n, s) in enumerate(zip(names, shapes, strict=True))]
    numbers: dict[str, Any] = {s.name: 2 for s in kernel.scalars}
    expected = kernel.reference(*arrays, **numbers)
    got = vulkan_session.run(
        kernel, *(on(vulkan_session, a, types[n]) for a, n in zip(arrays, names, strict=True)), **numbers
    )
    assert [words(g) for g in got] == [np.asarray(e).tobytes() for e in expected]


@pytest.mark.parametrize("compute", ["i64", "u32"])
@pytest.mark.parametrize("storage", ["i8", "u16", "i32", "u32", "i64"])
def test_integers_of_any_width_are_compared_and_divided_as_numpy_does(
    vulkan: VulkanDevice, compute: str, storage: str
) -> None:
    x, y = arguments("x y")
    half = apply("shift_right", x, 1)
    results = (x < y, x >= 0, abs(x), apply("sign", x), quotient(x, y), x % y, half, maximum(x, y))
    other = "i16" if storage != "i64" else "u64"
    kernel = dashi.kernels.fuse(*results, types={"x": storage, "y": other}, compute=compute)
    arrays = stored(storage, (259,), 4), stored(other, (259,), 5)
    got = vulkan.run(kernel, *arrays)
    assert [g.numpy().tobytes() for g in got] == [np.asarray(e).tobytes() for e in kernel.reference(*arrays)]


def mask_formula() -> Kernel:
    m, x, y = arguments("m x y")
    return dashi.kernels.fuse(where(m, x, y), x < y, outputs="chosen below", types={"m": "bool", "below": "bool"})


def test_a_choice_leaves_out_what_is_not_chosen(device: Device) -> None:
    m = np.array([True, False, True])
    x, y = np.array([1, np.nan, np.inf], np.float32), np.array([np.nan, 2, np.nan], np.float32)
    chosen, below = device.run(mask_formula(), m, x, y)
    assert chosen.numpy().tolist() == [1, 2, np.inf]
    assert below.numpy().tolist() == [False] * 3
    assert below.dtype == np.bool_
    chosen, below = device.run(mask_formula(), m, np.array([1, 2, 3], np.int8), np.array([4], np.int8))
    assert (chosen.dtype, chosen.numpy().tolist(), below.numpy().all()) == (np.int8, [1, 4, 3], True)


def test_a_kernel_of_several_types_holds_on_its_own_cases(vulkan: VulkanDevice) -> None:
    m, w = arguments("m w")
    mixed = dashi.kernels.fuse(where(m, tanh(w), w), types={"m": "i16", "w": "bf16", "result": "f16"})
    for kernel in (mixed, replace(mask_formula(), cases=mask_formula().cases[3:5], tunings={"wide1": {"local": 256}})):
        wrong = [r for r in check(vulkan, kernel, quick=True) if not r.ok]
        assert not wrong, wrong[0]


def test_results_of_one_byte_touch_nothing_beside_them(vulkan: VulkanDevice) -> None:
    x = stored("f32", (4096 + 16,), 3)
    kernel = dashi.kernels.cast("f32", "u8")
    memory = vulkan.full(3 * 4608, 0xA5, np.uint8)
    part = memory[4608 : 4608 + x.size]
    vulkan.run(kernel, x, out=part)
    whole = memory.numpy()
    assert whole[4608 : 4608 + x.size].tobytes() == np.asarray(kernel.reference(x)).tobytes()
    assert (np.delete(whole, np.s_[4608 : 4608 + x.size]) == 0xA5).all()


def test_no_type_in_memory_needs_a_feature_of_the_device() -> None:
    (x,) = arguments("x")
    for storage in STORAGE:
        kernel = dashi.kernels.fuse(x + 1, types={"x": storage, "result": storage}, compute="f32")
        assert variant_features(kernel, "f32") == frozenset()


def test_emissions_of_several_types_pass_khronos_validator() -> None:
    kernel = mask_formula()
    for shader, variant in build.variants(kernel):
        build.spirv_val(build.load(kernel, shader, variant).words, shader)


def test_a_formula_may_have_sixteen_arrays_and_eight_results(device: Device) -> None:
    named = arguments(" ".join("abcdefghijklmnop"))
    results = [named[k] + named[15 - k] for k in range(8)]
    for types in ({}, {"a": "u8", "y7": "f16"}):
        kernel = dashi.kernels.fuse(*results, types=types, inputs=" ".join("abcdefghijklmnop"))
        arrays = [np.full(67, k, np.uint8 if "a" in types and k == 0 else np.float32) for k in range(16)]
        assert all((r.numpy() == 15).all() for r in device.run(kernel, *arrays))


def test_integers_are_divided_towards_zero_and_leave_the_sign_of_the_divisor(device: Device) -> None:
    x, y = arguments("x y")
    kernel = dashi.kernels.fuse(quotient(x, y), x % y, apply("shift_right", x, y), outputs="q r s")
    u = np.array([7, -7, 7, -7, 5, -(2**31), 2**31 - 1], np.int32)
    v = np.array([2, 2, -2, -2, 0, -1, 33], np.int32)
    q, r, s = (a.numpy().tolist() for a in device.run(kernel, u, v))
    assert q == [3, -3, -3, 3, 0, -(2**31), 65075262]
    assert r == [1, 1, -1, -1, 0, 0, (2**31 - 1) % 33]
    assert s[:2] == [1, -2]
    assert s[-1] == (2**31 - 1) >> 1


FLOAT64 = {
    "gelu": lambda x: x * 0.5 * (1 + np.vectorize(math.erf)(x / math.sqrt(2))),
    "gelu_tanh": lambda x: x * 0.5 * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))),
    "silu": lambda x: x / (1 + np.exp(-x)),
    "leaky_relu": lambda x: np.where(x < 0, 0.01 * x, x),
    "elu": lambda x: np.where(x < 0, np.expm1(x), x),
    "selu": lambda x: 1.0507009873554805 * np.where(x < 0, 1.6732632423543772 * np.expm1(x), x),
    "hard_sigmoid": lambda x: np.clip(0.2 * x + 0.5, 0, 1),
    "hard_swish": lambda x: x * np.clip(x / 6 + 0.5, 0, 1),
    "mish": lambda x: x * np.tanh(np.log1p(np.exp(x))),
    "tan": np.tan,
}


@pytest.mark.parametrize("name", sorted(activations.__all__))
def test_activations_are_their_formulas(device: Device, name: str) -> None:
    x = np.linspace(-4, 4, 41, dtype=np.float32)
    (argument,) = arguments("x")
    kernel = dashi.kernels.fuse(getattr(activations, name)(argument))
    got = device.run(kernel, x).numpy()
    assert got.tobytes() == np.asarray(kernel.reference(x)).tobytes()
    # A few roundings of fp32 (2^-24 each) of numbers of the size of x, at most 4.
    assert np.abs(got - FLOAT64[name](x.astype(np.float64))).max() <= 8 * 2.0**-24 * 4


def refused(make: Any) -> str:
    with pytest.raises(DashiError) as caught:
        make()
    return str(caught.value)


def test_types_that_do_not_go_together_are_refused_with_a_fix() -> None:
    x, y = arguments("x y")
    fuse = dashi.kernels.fuse
    assert refused(lambda: fuse(x, types={"z": "u8"})).startswith(
        "`types` names 'z', which is no operand of the formula"
    )
    assert refused(lambda: fuse(x, types={"x": "c64"})).startswith("x has the element type 'c64'. Fix: use one of f32,")
    assert refused(lambda: fuse(x, compute="f16")).startswith("formulas are not computed in 'f16'. Fix: use one of f32")
    assert refused(lambda: fuse(x + y, types={"x": "f16"}, compute="i32")) == (
        "x is float16, but a formula of i32 reads and writes integers and truth values. Fix: compute in floats "
        '(compute="f32"), or convert the array before.'
    )
    assert refused(lambda: fuse(tanh(x), compute="i32")).startswith("the formula has no meaning for i32: its functions")
    assert refused(lambda: fuse(tanh(quotient(x, y)))).startswith("the formula has no meaning for any element type")
    assert refused(lambda: dashi.kernels.cast("f32", "c64")).startswith("dashi has no element type 'c64'. Fix:")


def test_a_formula_of_one_type_is_the_kernel_that_it_was() -> None:
    x, y = arguments("x y")
    edges = edges_of(formula([x + y], None), ("result",), {}, None)
    assert (edges.text, edges.uniform("f32"), edges.uniform("f16"), edges.same_widths) == ("", True, False, True)
    with CpuDevice() as cpu:
        total = cpu.run(dashi.kernels.fuse(x + y), np.array([250], np.uint8), np.array([10], np.uint8))
        assert total.numpy().tolist() == [4]
