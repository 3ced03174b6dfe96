"""Kernels over rows: the bits of NumPy, whatever the lengths, strides, batches and tunings; and what they compute."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dashi
from dashi.errors import DashiError, InputError, LimitError, ShapeError
from dashi.kernels import _build as build
from dashi.kernels._calls import resolve_call
from dashi.kernels.abi import Kernel, Limits, View
from dashi.kernels.expressions import Expression, absolute, arguments, exp, maximum, relu, scalars
from dashi.kernels.rows import PLACES, REDUCTIONS, ROW_MAPS, Reduction, RowKind
from dashi.runtime._null_device import NullDevice
from dashi.runtime._vulkan_device import VulkanDevice
from dashi.runtime.device import Device

AWKWARD = [0.0, -0.0, 1.0, -1.5, 2.0**-101, -(2.0**-102), 2.0**-126, 1e-45, 3e38, np.inf, -np.inf, np.nan]
TUNINGS = pytest.mark.parametrize("tuning", ["runs", "teams"])
X, Y, G, B = arguments("x y gamma beta")


def numbers(shape: tuple[int, ...], kind: Any = np.float32, seed: int = 0, awkward: bool = True) -> Any:
    """Normal numbers; where awkward, the first row has all the special ones, and others one of them each."""
    values = np.random.default_rng(seed).standard_normal(shape).astype(kind)
    if awkward and values.size:
        rows = values.reshape(-1, shape[-1])
        rows[0, : len(AWKWARD)] = AWKWARD[: shape[-1]]
        for row in range(1, len(rows), 3):
            rows[row, row % shape[-1]] = AWKWARD[row % len(AWKWARD)]
    return values


def as_tuple(results: Any) -> tuple[Any, ...]:
    return results if isinstance(results, tuple) else (results,)


def assert_same_bits(device: Device, kernel: Kernel, *arrays: Any, tuning: str | None = None, **scalars: Any) -> None:
    """The device's results are those of the reference, bit for bit."""
    call = resolve_call(kernel, dashi.types.dtype(arrays[0].dtype), [a.shape for a in arrays], scalars)
    with np.errstate(all="ignore"):
        expected = as_tuple(kernel.reference(*arrays, **call.scalars))
    for array, values in zip(as_tuple(device.run(kernel, *arrays, tuning=tuning, **scalars)), expected, strict=True):
        assert (array.shape, array.dtype) == (values.shape, values.dtype)
        assert array.numpy().tobytes() == values.tobytes()


def arrays_for(kernel: Kernel, shape: tuple[int, ...], kind: Any = np.float32, seed: int = 0) -> list[Any]:
    return [numbers(shape, kind, seed + k) for k in range(len(kernel.inputs))]


@pytest.mark.parametrize("kind", [*REDUCTIONS, *PLACES])
def test_every_reduction_gives_the_same_bits_on_numpy_and_vulkan(vulkan: VulkanDevice, kind: str) -> None:
    kernel = dashi.kernels.reduce_rows(kind, X * 0.75 - Y)
    assert_same_bits(vulkan, kernel, numbers((5, 300)), numbers((300,), seed=1))
    assert_same_bits(vulkan, kernel, *arrays_for(kernel, (3, 70), np.float64), tuning="teams")


@TUNINGS
@pytest.mark.parametrize("kind", ROW_MAPS)
def test_every_map_gives_the_same_bits_on_numpy_and_vulkan(vulkan: VulkanDevice, kind: str, tuning: str) -> None:
    kernel = dashi.kernels.row_map(kind, X + Y, lambda v: v * G + B, inputs="x y gamma beta")
    row = numbers((300,), seed=1, awkward=False)
    assert_same_bits(vulkan, kernel, numbers((7, 300)), numbers((7, 300), seed=2), row, row, tuning=tuning)


@pytest.mark.parametrize("n", [0, 1, 63, 64, 65, 4096, 4097, 70000])
def test_rows_of_any_length_give_the_same_bits(vulkan: VulkanDevice, n: int) -> None:
    total = dashi.kernels.reduce_rows("sum", X)
    for rows, tuning in ((2, "runs"), (1, "teams")):
        assert_same_bits(vulkan, total, numbers((rows, n), awkward=False), tuning=tuning)
    if n:
        largest = dashi.kernels.reduce_rows("argmax", X)
        assert_same_bits(vulkan, largest, np.zeros((3, n), np.float32))  # the lowest index among equals
    if n > 64:
        assert_same_bits(vulkan, dashi.kernels.row_map("layer_norm", X), numbers((2, n), awkward=False), tuning="teams")


@pytest.mark.parametrize("axes", [0, 1, (0, 2), (1, 2), (0, 1, 2), (-1, 0), (3,), (2, 1, 0, 3)])
def test_any_axes_are_reduced_as_numpy_does(device: Device, axes: Any) -> None:
    x = np.arange(2 * 3 * 4 * 5, dtype=np.float32).reshape(2, 3, 4, 5)
    got = device.run(dashi.kernels.reduce_rows("sum", X, axes=axes), x).numpy()
    assert got.tolist() == x.sum(axis=axes).tolist()


def test_a_map_over_axes_in_the_middle_writes_every_element_in_its_place(device: Device) -> None:
    x = numbers((2, 5, 70, 3), awkward=False)
    kernel = dashi.kernels.row_map("softmax", X, axes=(1, 2))
    weights = np.exp(x.astype(np.float64))
    expected = weights / weights.sum(axis=(1, 2), keepdims=True)
    np.testing.assert_allclose(device.run(kernel, x).numpy(), expected, rtol=4e-6)
    assert device.run(kernel, x).numpy().tobytes() == np.asarray(kernel.reference(x)).tobytes()


@st.composite
def heads(draw: st.DrawFn) -> Expression:
    """Light formulas of x, y and a scalar."""
    values: list[Expression] = [X, Y, *scalars("a")]
    for _ in range(draw(st.integers(1, 4))):
        u, v = draw(st.sampled_from(values)), draw(st.sampled_from(values))
        values.append(draw(st.sampled_from([u + v, u - v, u * v, maximum(u, v), relu(u), absolute(v)])))
    return values[-1] + X * Y


@settings(max_examples=8)
@given(
    head=heads(),
    kind=st.sampled_from(["sum", "prod", "max", "argmin", "softmax", "rms_norm"]),
    axes=st.sampled_from([(0,), (1,), (2,), (0, 2), (1, 2)]),
    reverse=st.booleans(),
    dtype=st.sampled_from([np.float32, np.float64]),
    seed=st.integers(0, 99),
)
def test_random_heads_tails_axes_and_strides_agree_on_numpy_and_vulkan(
    vulkan_session: VulkanDevice, head: Expression, kind: str, axes: Any, reverse: bool, dtype: Any, seed: int
) -> None:
    """x is read through a view, transposed and perhaps reversed; y is stretched; the tail has an operand of its own."""
    shape = (3, 4, 7)
    strides, offset = ((1, 3, 12), 0) if not reverse else ((-1, 3, 12), 2)
    views = {"x": View(shape, strides, offset)}
    row = tuple(1 if axis in axes else n for axis, n in enumerate(shape))
    arrays = [numbers((84,), dtype, seed), numbers((4, 1), dtype, seed + 1), numbers(row, dtype, seed + 2)]
    if kind in ROW_MAPS:
        kernel = dashi.kernels.row_map(
            kind, head, lambda v: relu(v) * G - v, axes=axes, views=views, inputs="x y gamma"
        )
    elif kind in PLACES:
        kernel = dashi.kernels.reduce_rows(kind, head, axes=axes, views=views, inputs="x y")
    else:
        kernel = dashi.kernels.reduce_rows(kind, head, lambda v: v * G, axes=axes, views=views, inputs="x y gamma")
    given: dict[str, Any] = {s.name: 0.75 for s in kernel.scalars}
    assert_same_bits(vulkan_session, kernel, *arrays[: len(kernel.inputs)], **given)


@TUNINGS
@pytest.mark.parametrize("n", [20, 300])
def test_a_row_has_the_same_bits_whatever_the_batch_and_its_neighbours(
    vulkan: VulkanDevice, tuning: str, n: int
) -> None:
    kernel = dashi.kernels.row_map("layer_norm", X + Y, lambda v: v * G + B, inputs="x y gamma beta")
    x, y = (numbers((32, n), seed=seed, awkward=False) for seed in (1, 2))
    gamma, beta = (numbers((n,), seed=seed, awkward=False) for seed in (3, 4))
    alone = [np.asarray(kernel.reference(x[i], y[i], gamma, beta)).tobytes() for i in range(32)]
    for batch in (1, 3, 8, 32):
        some = x[:batch].copy()
        some[1::2] = np.nan
        result = vulkan.run(kernel, some, y[:batch].copy(), gamma, beta, tuning=tuning).numpy()
        assert [row.tobytes() for row in result[::2]] == alone[:batch:2]
        assert np.isnan(result[1::2]).all()


def test_layer_norm_of_a_sum_is_one_dispatch_with_the_bits_of_its_kernels(device: Device) -> None:
    kernel = dashi.kernels.row_map(
        "layer_norm", X + Y, lambda v: v * G + B, lambda v: X + Y, inputs="x y gamma beta", outputs="normal residual"
    )
    x, y = numbers((4, 384)), numbers((4, 384), seed=1)
    gamma, beta = (numbers((384,), seed=seed, awkward=False) for seed in (2, 3))
    normal, residual = device.run(kernel, x, y, gamma, beta)
    total = device.run("add", x, y)
    assert residual.numpy().tobytes() == total.numpy().tobytes()
    assert normal.numpy().tobytes() == device.run("layer_norm", total, gamma, beta).numpy().tobytes()
    for n in (384, 4096, 4097):
        call = resolve_call(kernel, "f32", [(4, n), (4, n), (n,), (n,)], limits=Limits(invocations=1024))
        assert len(kernel.plan(call).dispatches) == 1


@pytest.mark.parametrize("name", ["softmax", "layer_norm", "rms_norm"])
def test_kernels_by_name_have_the_bits_of_their_formulas(vulkan: VulkanDevice, name: str) -> None:
    kernel = dashi.kernels.get(name)
    (eps,) = scalars("eps")
    tails: dict[str, Any] = {"softmax": [], "layer_norm": [lambda v: v * G + B], "rms_norm": [lambda v: v * G]}
    again = dashi.kernels.row_map(name, X, *tails[name], eps=eps)
    arrays = [numbers((6, 100)), *(numbers((100,), seed=k, awkward=False) for k in range(1, len(kernel.inputs)))]
    given: dict[str, Any] = {s.name: 1e-3 for s in kernel.scalars}
    assert (
        vulkan.run(kernel, *arrays, **given).numpy().tobytes() == vulkan.run(again, *arrays, **given).numpy().tobytes()
    )


def test_results_are_as_near_to_the_truth_as_sums_of_64_allow() -> None:
    """Sums in runs of 64 err by at most 64 + n / 64 roundings of 2^-24, in practice by a few, and functions by 1."""
    x = numbers((20, 1000), seed=5, awkward=False) * 3 + 2
    exact = x.astype(np.float64)
    weights = np.exp(exact - exact.max(axis=-1, keepdims=True))
    truths = {
        "softmax": weights / weights.sum(axis=-1, keepdims=True),
        "log_softmax": np.log(weights / weights.sum(axis=-1, keepdims=True)),
        "layer_norm": (exact - exact.mean(axis=-1, keepdims=True)) / np.sqrt(exact.var(axis=-1, keepdims=True) + 1e-5),
        "rms_norm": exact / np.sqrt(np.mean(exact**2, axis=-1, keepdims=True) + 1e-5),
    }
    for kind, truth in truths.items():
        got = np.asarray(dashi.kernels.row_map(kind, X).reference(x))
        # exp makes a relative error of what x - max is rounded by.
        scale = truth * (1 + exact.max(axis=-1, keepdims=True) - exact) if kind == "softmax" else np.abs(truth).max()
        assert np.max(np.abs(got - truth) / scale) < 8 * 2.0**-23, kind
    total = np.asarray(dashi.kernels.reduce_rows("logsumexp", X).reference(x), np.float64)
    np.testing.assert_allclose(total, np.logaddexp.reduce(exact, axis=-1), rtol=2.0**-22)


def test_logsumexp_of_infinities_is_infinite_and_reductions_of_nothing_have_their_neutral_value(device: Device) -> None:
    x = np.array([[-np.inf, -np.inf], [np.inf, 1], [np.nan, 1], [2, -np.inf]], np.float32)
    got = device.run(dashi.kernels.reduce_rows("logsumexp", X), x).numpy()
    assert got.tolist()[:2] == [-np.inf, np.inf]
    assert np.isnan(got[2])
    assert got[3] == 2
    none = np.zeros((2, 0), np.float32)
    values = {kind: device.run(dashi.kernels.reduce_rows(kind, X), none).numpy()[0] for kind in ("sum", "prod", "mean")}
    assert (values["sum"], values["prod"], bool(np.isnan(values["mean"]))) == (0, 1, True)


def test_a_kind_of_ones_own_has_up_to_two_reductions(device: Device) -> None:
    """The variance, and every element's distance from the mean over the range of the row."""
    spread = RowKind(
        (Reduction("max"), Reduction("max", settle=lambda total, n, earlier: total)),
        lambda value, reduced: value / reduced[1],
        lambda value, largest: largest - value,
    )
    x = np.array([[1, 2, 5], [4, 4, 2]], np.float32)
    assert device.run(dashi.kernels.row_map(spread, X), x).numpy().tolist() == [[1, 0.75, 0], [0, 0, 1]]


def test_more_rows_than_workgroups_are_worked_through_in_turns(vulkan: VulkanDevice) -> None:
    kernel = dashi.kernels.reduce_rows("max", X)
    assert_same_bits(vulkan, kernel, numbers((4_300_000, 1), awkward=False))
    call = resolve_call(kernel, "f32", [(1000, 100)], limits=Limits(groups=3, loop_trips=100))
    plan = kernel.plan(call)
    assert len(plan.dispatches) > 1
    assert all(d.groups[0] <= 3 and d.trips <= 100 for d in plan.dispatches)
    pushed = [(d.push["first_block"], d.push["beyond"]) for d in plan.dispatches]
    assert [low for low, _ in pushed[1:]] == [high for _, high in pushed[:-1]]


@pytest.mark.parametrize("variant", ["f32", "f64"])
def test_plans_fit_the_smallest_devices(variant: str) -> None:
    for kernel in (dashi.kernels.reduce_rows("argmax", X), dashi.kernels.row_map("softmax", X)):
        for n in (17, 64, 65, 384, 1000, 2048, 4096, 70000):
            call = resolve_call(kernel, variant, [(3, n)])
            (dispatch,) = kernel.plan(call).dispatches
            spec = dispatch.spec
            teams, runs = spec["LANES"] // spec["TEAM"], spec["SPAN"] // 64
            nbytes = teams * ((spec["SPAN"] + runs) * call.dtype.size + 16 * (runs + 1))
            assert spec["LANES"] <= call.limits.invocations
            assert nbytes <= call.limits.shared_bytes
            assert runs <= spec["TEAM"] <= spec["SPAN"]


def test_teams_read_rows_whose_elements_are_neighbours_and_single_invocations_the_others() -> None:
    kernel = dashi.kernels.reduce_rows("sum", X * G, lambda v: v + B, inputs="x gamma beta")
    across = dashi.kernels.reduce_rows("sum", X * G, lambda v: v + B, inputs="x gamma beta", axes=0)
    shaders = [
        k.plan(resolve_call(k, "f32", shapes)).dispatches[0].shader
        for k, shapes in (
            (kernel, [(500, 300), (300,), (500, 1)]),
            (across, [(500, 300), (300,), (1, 300)]),
            (kernel, [(500, 12), (12,), (500, 1)]),
        )
    ]
    assert shaders == ["staged", "runs", "runs"]


def test_batches_share_one_pipeline() -> None:
    kernel = dashi.kernels.row_map("softmax", X)
    plans = [kernel.plan(resolve_call(kernel, "f32", [(rows, 384)])) for rows in (2, 3, 32)]
    assert len({tuple(sorted(plan.dispatches[0].spec.items())) for plan in plans}) == 1


def test_emitted_binaries_pass_the_checks_of_the_house_and_khronos_validator() -> None:
    maps = dashi.kernels.row_map("layer_norm", exp(X) + Y, lambda v: v * G, inputs="x y gamma")
    for kernel in (maps, dashi.kernels.reduce_rows("argmin", X - Y), dashi.kernels.reduce_rows("logsumexp", X)):
        for shader, variant in build.variants(kernel):
            build.spirv_val(build.load(kernel, shader, variant).words, shader)


def test_kernels_over_rows_are_recorded_without_a_device() -> None:
    with NullDevice() as null:
        step = null.bind(dashi.kernels.reduce_rows("mean", X, axes=0), null.zeros((3, 5), np.float32))
        null.program([step]).run()
        assert step.outputs[0].shape == (5,)


def wrong_axis() -> None:
    resolve_call(dashi.kernels.reduce_rows("sum", X, axes=2), "f32", [(3, 4)])


def axis_twice() -> None:
    resolve_call(dashi.kernels.reduce_rows("sum", X, axes=(0, -2)), "f32", [(3, 4)])


def many_operands() -> None:
    dashi.kernels.reduce_rows("sum", sum(arguments("a b c d e f g h")[1:], X), lambda v: v + B + Y)


def long_tail_operand() -> None:
    kernel = dashi.kernels.reduce_rows("sum", X, lambda v: v + Y)
    kernel.plan(resolve_call(kernel, "f32", [(3, 4), (3, 4)]))


def nothing_to_choose_from() -> None:
    kernel = dashi.kernels.reduce_rows("max", X)
    kernel.plan(resolve_call(kernel, "f32", [(3, 0)]))


def scattered_axes() -> None:
    kernel = dashi.kernels.reduce_rows("sum", X, axes=0, views={"x": View((2,) * 8, (1, 2, 4, 8, 16, 32, 64, 128))})
    kernel.plan(resolve_call(kernel, "f32", [(256,)]))


@pytest.mark.parametrize(
    ("do", "error", "message"),
    [
        (wrong_axis, ShapeError, "an array of shape (3, 4) has not the axes 2, each once."),
        (axis_twice, ShapeError, "an array of shape (3, 4) has not the axes 0, -2, each once."),
        (lambda: dashi.kernels.reduce_rows("sum", X, axes=()), InputError, "the axes () are to be reduced."),
        (lambda: dashi.kernels.reduce_rows("median", X), InputError, "there is no reduction 'median'."),
        (lambda: dashi.kernels.row_map("sparsemax", X), InputError, "there is no map over rows 'sparsemax'."),
        (lambda: dashi.kernels.reduce_rows("argmax", X, lambda v: v), InputError, "argmax has no tail"),
        (lambda: dashi.kernels.row_map("softmax", X, outputs="a b"), InputError, "1 results are to be made, with 2"),
        (lambda: dashi.kernels.row_map("softmax", X, inputs="y"), InputError, "head and tail have the arguments x"),
        (many_operands, LimitError, "head and tail have 10 operands; a kernel over rows has at most 8."),
        (long_tail_operand, ShapeError, "the tail reads y of shape (3, 4), but there is one result for all elements"),
        (nothing_to_choose_from, ShapeError, "no elements have no largest or smallest among them."),
        (scattered_axes, ShapeError, "7 axes that do not lie behind one another in memory, where 5 can be walked."),
        (lambda: dashi.kernels.row_map(RowKind(()), X), InputError, "has 0 reductions, and does not move values"),
        (
            lambda: dashi.kernels.reduce_rows(RowKind((Reduction("sum"),), lambda v, r: v), X),
            InputError,
            "an element's",
        ),
    ],
)
def test_bad_calls_are_typed_errors_with_a_fix(do: Any, error: type[DashiError], message: str) -> None:
    with pytest.raises(error) as caught:
        do()
    assert message in str(caught.value)
    assert "Fix:" in str(caught.value)
