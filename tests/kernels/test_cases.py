"""Inputs of the cases: the same for the same seed, and as awkward as their names say."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pytest

import dashi.kernels
from dashi.errors import AbiError, InputError
from dashi.kernels._cases import DISTRIBUTIONS, inputs, specials
from dashi.kernels.abi import Case, Kernel, Operand
from dashi.kernels.patterns import SHAPES
from dashi.types import DTYPES, Shape

BIG = Case({"x": (1 << 14,), "y": (1 << 14,)}, {"a": 2.0})
THRESHOLD = {"f32": 2.0**-102, "f64": 2.0**-969}
NORMAL = {"f32": 2.0**-126, "f64": 2.0**-1022}


@pytest.fixture(scope="module")
def axpy() -> Kernel:
    return dashi.kernels.get("axpy")


@pytest.mark.parametrize("variant", ["f32", "f64"])
@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_a_seed_names_its_arrays(axpy: Kernel, name: str, variant: str) -> None:
    first, again, other = (inputs(axpy, BIG, variant, name, seed) for seed in (1, 1, 2))
    for key in ("x", "y"):
        assert first[key].dtype == DTYPES[variant].numpy
        assert first[key].shape == (1 << 14,)
        assert first[key].tobytes() == again[key].tobytes() != other[key].tobytes()
    assert first["x"].tobytes() != first["y"].tobytes()


@pytest.mark.parametrize("variant", ["f32", "f64"])
def test_wide_inputs_meet_every_exponent_and_both_signs(axpy: Kernel, variant: str) -> None:
    x = np.asarray(inputs(axpy, BIG, variant, "uniform_wide", 0)["x"], dtype=np.float64)
    assert np.isfinite(x).all()
    assert (np.abs(x) >= NORMAL[variant]).all()
    exponents = np.frexp(x)[1]
    assert len(np.unique(exponents)) >= (254 if variant == "f32" else 2000)
    assert 0.45 < (x < 0).mean() < 0.55


@pytest.mark.parametrize("variant", ["f32", "f64"])
def test_subnormal_heavy_inputs_are(axpy: Kernel, variant: str) -> None:
    x = np.asarray(inputs(axpy, BIG, variant, "subnormal_heavy", 0)["x"], dtype=np.float64)
    size = np.abs(x)
    assert 0.4 < (size < NORMAL[variant]).mean() < 0.6
    near = (size > THRESHOLD[variant] / 128) & (size < THRESHOLD[variant] * 128)
    assert near.mean() > 0.2
    assert (size[near] < THRESHOLD[variant]).any()
    assert (size[near] >= THRESHOLD[variant]).any()


@pytest.mark.parametrize("variant", ["f32", "f64"])
def test_adversarial_inputs_hold_every_special_value(axpy: Kernel, variant: str) -> None:
    x = inputs(axpy, BIG, variant, "adversarial", 0)["x"]
    word = np.uint32 if variant == "f32" else np.uint64
    seen = set(x.view(word).tolist())
    assert seen >= set(specials(DTYPES[variant]).view(word).tolist())


@pytest.mark.parametrize("variant", ["f32", "f64"])
def test_specials_are_what_their_names_say(variant: str) -> None:
    values = np.asarray(specials(DTYPES[variant]))
    word = np.uint32 if variant == "f32" else np.uint64
    bits = values.view(word)
    assert len(np.unique(bits[np.isnan(values)])) >= 8
    assert {np.inf, -np.inf, 1.0, -1.0, THRESHOLD[variant], -THRESHOLD[variant], NORMAL[variant]} <= set(
        values.tolist()
    )
    limits = np.finfo(np.float32 if variant == "f32" else np.float64)
    assert limits.max in values
    assert limits.smallest_subnormal in values
    assert np.count_nonzero(values == 0) == 2
    below = np.nextafter(values.dtype.type(THRESHOLD[variant]), values.dtype.type(0))
    assert below in values


def test_integers_are_small_and_exact(axpy: Kernel) -> None:
    x = np.asarray(inputs(axpy, BIG, "f32", "integers", 0)["x"])
    assert set(x.tolist()) == set(range(-8, 9))


def test_cases_of_the_pattern_go_round_the_awkward_sizes(axpy: Kernel) -> None:
    assert [case.shapes["x"] for case in axpy.cases] == list(SHAPES)
    assert {case.scalars["a"] for case in axpy.cases} == {2.0, -0.3, 1.0e-30, 0.0}


def fill(rng: np.random.Generator, shape: Shape) -> npt.NDArray[np.uint32]:
    return rng.integers(0, 10, shape).astype(np.uint32)


@pytest.fixture(scope="module")
def indexed(axpy: Kernel) -> Kernel:
    return replace(axpy, name="indexed", inputs=(Operand("x"), Operand("at", "u32")))


def test_other_inputs_come_from_the_case(indexed: Kernel) -> None:
    case = Case({"x": (5,), "at": (7,)}, fill={"at": fill})
    arrays = inputs(indexed, case, "f64", "normal", 0)
    assert arrays["at"].dtype == np.uint32
    assert arrays["at"].shape == (7,)
    assert arrays["x"].dtype == np.float64


def test_integer_variants_get_any_words(axpy: Kernel) -> None:
    made = inputs(replace(axpy, dtypes=("u64",)), BIG, "u64", "normal", 0)["x"]
    assert made.dtype == np.uint64
    assert len(np.unique(made)) > 16000


def test_a_missing_or_wrong_fill_is_named(indexed: Kernel) -> None:
    shapes = {"x": (5,), "at": (7,)}
    with pytest.raises(AbiError) as error:
        inputs(indexed, Case(shapes), "f32", "normal", 0)
    assert str(error.value) == (
        "kernel 'indexed' has a case without a `fill` for at. "
        "Fix: give one: only float inputs are filled by themselves."
    )
    with pytest.raises(AbiError) as error:
        inputs(indexed, Case(shapes, fill={"at": lambda rng, shape: np.zeros(3)}), "f32", "normal", 0)
    assert str(error.value) == (
        "kernel 'indexed': the `fill` of at made float64(3,) instead of uint32(7,). "
        "Fix: return an array of the shape and type asked for."
    )


def test_an_unknown_distribution_is_named(axpy: Kernel) -> None:
    with pytest.raises(InputError) as error:
        inputs(axpy, BIG, "f32", "odd", 0)
    assert str(error.value) == (
        "there is no distribution 'odd'. Fix: use one of normal, uniform_wide, adversarial, subnormal_heavy, integers."
    )
