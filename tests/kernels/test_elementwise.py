"""What elementwise kernels promise beyond agreeing with their references."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import pytest

from dashi import kernels
from dashi.errors import InputError, ShapeError
from dashi.kernels.abi import Scalar
from dashi.runtime.device import Device

FLOATS = pytest.mark.parametrize("kind", [np.float32, np.float64])


@FLOATS
def test_fma3_rounds_after_the_product_and_after_the_sum(device: Device, kind: Any) -> None:
    # (1 + e)^2 = 1 + 2e + e^2: the product loses e^2 when it is rounded, which a fused operation would keep.
    e = np.finfo(kind).eps
    x = np.array([1 + e], kind)
    z = np.array([-(1 + 2 * e)], kind)
    fused = Fraction(float(x[0])) ** 2 + Fraction(float(z[0]))
    assert fused == Fraction(float(e)) ** 2
    assert device.run("fma3", x, x, z).numpy()[0] == 0


@FLOATS
def test_clamp_keeps_nan_and_limits_infinities(device: Device, kind: Any) -> None:
    x = np.array([np.nan, -np.inf, np.inf, -0.0, 0.25, -3], kind)
    expected = np.array([np.nan, -0.5, 2, 0, 0.25, -0.5], kind)
    got = device.run("clamp", x, lo=-0.5, hi=2).numpy()
    assert got.tobytes() == expected.tobytes()


@pytest.mark.parametrize(("lo", "hi"), [(1.0, -1.0), (np.nan, 1.0), (0.0, np.nan)])
def test_clamp_refuses_an_empty_range(device: Device, lo: float, hi: float) -> None:
    with pytest.raises(InputError) as caught:
        device.run("clamp", np.zeros(3, np.float32), lo=lo, hi=hi)
    assert str(caught.value) == f"kernel 'clamp': there is nothing between lo={lo} and hi={hi}. Fix: pass lo <= hi."


@FLOATS
def test_squash_is_tanh_of_the_scaled_input_and_stays_within_one(device: Device, kind: Any) -> None:
    x = np.array([-np.inf, -100, -0.3, 0, 1e-6, 0.3, 100, np.inf], kind)
    squashed = device.run("squash", x, alpha=3.0).numpy()
    through = device.run("tanh", device.run("scale", x, a=3.0)).numpy()
    assert squashed.tobytes() == through.tobytes()
    assert (np.abs(squashed) <= 1).all()
    assert squashed[0] == -1
    assert squashed[-1] == 1


@FLOATS
def test_softplus_neither_overflows_nor_loses_small_results(device: Device, kind: Any) -> None:
    x = np.array([-np.inf, -40, 0, 1000, np.inf], kind)
    got = device.run("softplus", x).numpy()
    assert got[0] == 0
    assert got[3] == 1000
    assert got[4] == np.inf
    # Both functions are within 1 ulp, so 4 machine epsilons are room enough.
    np.testing.assert_allclose(got[1:3], [np.exp(-40.0), np.log(2.0)], rtol=4 * float(np.finfo(kind).eps))


@FLOATS
@pytest.mark.parametrize("name", ["mul", "scale", "affine", "fma3", "sub"])
def test_a_zero_result_is_never_negative(device: Device, name: str, kind: Any) -> None:
    inputs, scalars = _arguments(name, np.array([0.0, -0.0, -np.finfo(kind).smallest_subnormal], kind), -1.0)
    got = device.run(name, *inputs, **scalars).numpy()
    assert got.tobytes() == np.zeros(3, kind).tobytes()


@pytest.mark.parametrize("name", [k.name for k in kernels.default() if k.family == "elementwise"])
def test_no_elements_give_no_elements(device: Device, name: str) -> None:
    shape = (0, 2) if name.startswith("complex") else (3, 0)
    kind = {"from_f16": np.float16, "from_bf16": np.uint16}.get(name, np.float32)
    inputs, scalars = _arguments(name, np.zeros(shape, kind), 1.0)
    assert device.run(name, *inputs, **scalars).numpy().shape == ((0,) if name == "complex_abs2" else shape)


@FLOATS
def test_relu_keeps_nan_and_has_no_negative_zero(device: Device, kind: Any) -> None:
    x = np.array([np.nan, -np.inf, np.inf, -0.0, 0.25, -3], kind)
    got = device.run("relu", x).numpy()
    assert got.tobytes() == np.array([np.nan, 0, np.inf, 0, 0.25, 0], kind).tobytes()


@FLOATS
def test_sigmoid_is_within_two_ulp_at_both_ends(device: Device, kind: Any) -> None:
    lowest = -70.0 if kind is np.float32 else -670.0
    x = np.concatenate([np.linspace(lowest, 40, 3001), np.linspace(-1, 1, 1000)]).astype(kind)
    got = device.run("sigmoid", x).numpy()
    with mpmath.workdps(40):
        for argument, value in zip(x.tolist(), got.tolist(), strict=True):
            exact = 1 / (1 + mpmath.exp(-mpmath.mpf(argument)))
            ulp = float(np.spacing(kind(exact)))
            assert abs(mpmath.mpf(value) - exact) <= 2 * ulp, argument
    ends = device.run("sigmoid", np.array([-np.inf, -1e4, 0, 1e4, np.inf, np.nan], kind)).numpy()
    assert ends.tobytes() == np.array([0, 0, 0.5, 1, 1, np.nan], kind).tobytes()


@FLOATS
def test_diff_is_what_must_be_added_to_come_from_a_to_b(device: Device, kind: Any) -> None:
    a, b = np.array([1, 5, -2], kind), np.array([4, 5, 2], kind)
    change = device.run("diff", a, b).numpy()
    assert change.tolist() == [3, 0, 4]
    assert device.run("add", a, change).numpy().tolist() == b.tolist()


@FLOATS
def test_complex_kernels_do_what_complex_numbers_do(device: Device, kind: Any) -> None:
    rng = np.random.default_rng(8)
    x, y = rng.integers(-9, 10, (2, 5, 33, 2)).astype(kind)
    z, w = (pair[..., 0] + 1j * pair[..., 1] for pair in (x, y))

    def complexes(pairs: Any) -> Any:
        return pairs[..., 0] + 1j * pairs[..., 1]

    assert (complexes(device.run("complex_mul", x, y).numpy()) == z * w).all()
    assert (complexes(device.run("complex_conj", x).numpy()) == z.conj()).all()
    assert (complexes(device.run("complex_scale", x, re=2, im=-3).numpy()) == (2 - 3j) * z).all()
    squares = device.run("complex_abs2", x.reshape(-1, 2)).numpy()
    assert (squares == (np.abs(z) ** 2).round().reshape(-1)).all()


@pytest.mark.parametrize("shape", [(4, 3), (), (2, 0)])
def test_complex_kernels_refuse_what_is_no_pair(device: Device, shape: tuple[int, ...]) -> None:
    with pytest.raises(ShapeError) as caught:
        device.run("complex_conj", np.zeros(shape, np.float32))
    assert str(caught.value) == (
        f"kernel 'complex_conj': complex numbers are pairs (re, im), but the last axis of shape {shape} is no pair. "
        "Fix: pass arrays of shape (..., 2), for instance z.view(np.float32).reshape(*z.shape, 2) of a complex64 z."
    )


def test_every_tuning_makes_every_element_round_the_part_of_a_workgroup(device: Device) -> None:
    for name, numbers in kernels.get("scale").tunings.items():
        for n in (numbers["local"] * numbers["each"] + d for d in (-4, -1, 0, 1, 4)):
            x = np.arange(n, dtype=np.float32)
            assert (device.run("scale", x, a=2.0, tuning=name).numpy() == 2 * x).all()


@FLOATS
def test_an_output_may_replace_an_input(device: Device, kind: Any) -> None:
    x = device.array(np.array([1, 2, 3], kind))
    device.run("affine", x, a=2.0, b=1.0, out=x)
    assert x.numpy().tolist() == [3, 5, 7]


def _arguments(name: str, values: np.ndarray[Any, Any], number: float) -> tuple[list[Any], dict[str, Any]]:
    """The same values for every input, and the same number for every scalar but those that make a sum move."""
    kernel = kernels.get(name)

    def one(scalar: Scalar) -> float:
        return 0.0 if scalar.name == "b" else number

    return [values] * len(kernel.inputs), {s.name: one(s) for s in kernel.scalars}
