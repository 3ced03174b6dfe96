"""The NumPy twin of the portable maths: canonical values, special cases, errors in ulp, and no subnormal on the way."""

from __future__ import annotations

import ast
import importlib.util
import sys
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from dashi.errors import DTypeError
from dashi.kernels import portable
from dashi.kernels.portable import _accuracy as accuracy
from dashi.kernels.portable._bits import F32, F64, Format
from dashi.kernels.portable._roots import newton_rsqrt, refine_reciprocal
from dashi.kernels.portable._tables import table_of

FORMS = [pytest.param(F32, id="f32"), pytest.param(F64, id="f64")]
EXACT = ["floor", "ceil", "trunc", "round"]
UNARY = ["reciprocal", "sqrt", "rsqrt", "exp", "log", "sin", "cos", "tanh", "softplus", "erf", "atan", *EXACT]
INF, NAN = float("inf"), float("nan")


def random_bits(form: Format, count: int, seed: int = 0) -> np.ndarray:
    words = np.random.default_rng(seed).integers(0, np.iinfo(form.word).max, count, form.word, endpoint=True)
    return words.view(form.float)


def adversarial(form: Format) -> np.ndarray:
    """Random bits, every special value, both sides of each threshold, and subnormals."""
    info = np.finfo(form.float)
    tiny = 2.0**form.tiny_exponent
    points = np.array([0, 1, 0.5, 2, tiny, info.tiny, info.smallest_subnormal, info.max, INF, NAN, np.pi], form.float)
    near = points.view(form.word)[:, None] + np.arange(-3, 4).astype(form.word)
    small = tiny * 2.0 ** np.random.default_rng(1).uniform(-30, 30, 2000)
    work = np.random.default_rng(2).uniform(-100, 100, 4000)
    parts = [near.ravel().view(form.float), small.astype(form.float), work.astype(form.float), random_bits(form, 20000)]
    values = np.concatenate(parts)
    return np.concatenate([values, -values])


@pytest.mark.parametrize("form", FORMS)
def test_canon_keeps_canonical_values_and_replaces_all_others(form):
    values = adversarial(form)
    out = portable.canon(values)
    bits = out.view(form.word)
    size = bits & form.magnitude
    assert np.all((bits == 0) | (size >= form.tiny))
    assert np.all(bits[np.isnan(values)] == form.nan)
    kept = np.abs(values) >= form.float(2.0**form.tiny_exponent)
    assert np.array_equal(bits[kept], values.view(form.word)[kept])
    assert np.all(bits[~kept & ~np.isnan(values)] == 0)
    assert np.array_equal(portable.canon(out).view(form.word), bits)


@pytest.mark.parametrize("form", FORMS)
def test_mul_flushes_small_products_to_positive_zero(form):
    root = form.float(2.0 ** (form.tiny_exponent // 2))
    a = np.array([root, -root, root, 0, 3], form.float)
    b = np.array([root, root, root / 2, -5, -2], form.float)
    expected = np.array([0, 0, 0, 0, -6], form.float)
    if form.tiny_exponent % 2 == 0:
        expected[:2] = [root * root, -root * root]
    assert portable.mul(a, b).tobytes() == expected.tobytes()


@pytest.mark.parametrize("form", FORMS)
def test_order_keys_sort_like_numpy_with_nan_last(form):
    values = portable.canon(adversarial(form))
    keys = portable.order_key(values)
    order = np.argsort(keys, kind="stable")
    assert values[order].tobytes() == np.sort(values, kind="stable").tobytes()
    assert np.array_equal(portable.order_value(keys).view(form.word), values.view(form.word))
    assert int(np.argmax(keys)) == int(np.argmax(values))


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", UNARY)
def test_results_are_canonical(form, name):
    out = getattr(portable, name)(adversarial(form))
    assert out.dtype == form.float
    assert np.array_equal(portable.canon(out).view(form.word), out.view(form.word))


ZEROS = [0.0, -0.0]
SPECIAL = {
    "reciprocal": ([*ZEROS, INF, -INF, NAN, 4], [INF, INF, 0, 0, NAN, 0.25]),
    "sqrt": ([*ZEROS, INF, -INF, -1, NAN, 9], [0, 0, INF, NAN, NAN, NAN, 3]),
    "rsqrt": ([*ZEROS, INF, -INF, -1, NAN], [INF, INF, 0, NAN, NAN, NAN]),
    "exp": ([*ZEROS, INF, -INF, NAN, 1e30, -1e30], [1, 1, INF, 0, NAN, INF, 0]),
    "log": ([*ZEROS, INF, -INF, -1, NAN, 1], [-INF, -INF, INF, NAN, NAN, NAN, 0]),
    "sin": ([*ZEROS, INF, -INF, NAN], [0, 0, NAN, NAN, NAN]),
    "cos": ([*ZEROS, INF, -INF, NAN], [1, 1, NAN, NAN, NAN]),
    "tanh": ([*ZEROS, INF, -INF, NAN, 50, -50], [0, 0, 1, -1, NAN, 1, -1]),
    "softplus": ([INF, -INF, NAN, 1e30, -1e30], [INF, 0, NAN, 1e30, 0]),
    "erf": ([*ZEROS, INF, -INF, NAN, 7, -7], [0, 0, 1, -1, NAN, 1, -1]),
    "atan": ([*ZEROS, INF, -INF, NAN], [0, 0, np.pi / 2, -np.pi / 2, NAN]),
    "floor": ([*ZEROS, INF, -INF, NAN, 0.5, -0.5, 2.75, -2, 1e30], [0, 0, INF, -INF, NAN, 0, -1, 2, -2, 1e30]),
    "ceil": ([*ZEROS, INF, -INF, NAN, 0.5, -0.5, 2.75, -2, 1e30], [0, 0, INF, -INF, NAN, 1, 0, 3, -2, 1e30]),
    "trunc": ([*ZEROS, INF, -INF, NAN, 0.5, -0.5, 2.75, -2.75, 1e30], [0, 0, INF, -INF, NAN, 0, 0, 2, -2, 1e30]),
    "round": ([*ZEROS, INF, -INF, NAN, 0.5, -0.5, 1.5, 2.5, -2.75], [0, 0, INF, -INF, NAN, 0, 0, 2, 2, -3]),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", UNARY)
def test_special_values(form, name):
    given, results = (np.array(values, form.float) for values in SPECIAL[name])
    expected = portable.canon(results)
    assert getattr(portable, name)(given).tobytes() == expected.tobytes()


@pytest.mark.parametrize("form", FORMS)
def test_division_by_zero_and_infinity(form):
    a = np.array([1, -1, 0, INF, INF, -INF, 5, -5, NAN, 1, 0], form.float)
    b = np.array([0, -0.0, 0, INF, -2, 0, INF, -INF, 1, NAN, -3], form.float)
    expected = np.array([INF, -INF, NAN, NAN, -INF, -INF, 0, 0, NAN, NAN, 0], form.float)
    assert portable.divide(a, b).tobytes() == portable.canon(expected).tobytes()


@pytest.mark.parametrize("form", FORMS)
def test_powers_are_those_of_ieee_but_for_negative_zero(form):
    cases = [
        (0, 0, 1), (NAN, 0, 1), (1, NAN, 1), (1, INF, 1), (-1, INF, 1), (-1, -INF, 1), (NAN, 1, NAN), (2, NAN, NAN),
        (0, 3, 0), (0, -3, INF), (-0.0, -3, INF), (0, INF, 0), (0, -INF, INF), (INF, 2, INF), (INF, -2, 0),
        (-INF, 3, -INF), (-INF, 2, INF), (-INF, 0.5, INF), (-INF, -3, 0), (2, INF, INF), (2, -INF, 0), (0.5, INF, 0),
        (0.5, -INF, INF), (-2, 3, -8), (-2, 2, 4), (-2, 0.5, NAN), (-2, 1e30, INF), (3, 4, 81), (10, 2, 100),
        (7, -1, 1 / 7), (5, 1, 5), (-2, -1, -0.5), (1e30, 1e30, INF), (1e30, -1e30, 0),
    ]  # fmt: skip
    x, y, expected = (np.array(column, form.float) for column in zip(*cases, strict=True))
    assert portable.pow(x, y).tobytes() == portable.canon(expected).tobytes()


@pytest.mark.parametrize("form", FORMS)
def test_angles_go_round_and_have_no_negative_zero(form):
    y = np.array([0, 0, -0.0, 1, -1, 1, 1, -1, -1, INF, INF, -INF, INF, 5, -5, NAN, 1], form.float)
    x = np.array([0, 1, -1, 0, 0, 1, -1, -1, 1, INF, -INF, -INF, 2, INF, -INF, 1, NAN], form.float)
    eighths = [0, 0, 4, 2, -2, 1, 3, -3, -1, 1, 3, -3, 2, 0, -4, NAN, NAN]
    expected = (np.array(eighths, np.longdouble) * np.arctan(np.longdouble(1))).astype(form.float)
    assert portable.atan2(y, x).tobytes() == portable.canon(expected).tobytes()


def test_functions_of_two_arrays_broadcast_and_refuse_mixed_types():
    x, y = np.linspace(1, 2, 5, dtype=np.float32)[:, None], np.linspace(-1, 3, 4, dtype=np.float32)
    both = [np.ascontiguousarray(values) for values in np.broadcast_arrays(x, y)]
    for function in (portable.pow, portable.atan2):
        assert function(x, y).tobytes() == function(*both).tobytes()
        with pytest.raises(DTypeError, match="cannot mix float32 with float64"):
            function(x, y.astype(np.float64))


@pytest.mark.parametrize("name", UNARY)
def test_any_shape_goes_in_and_comes_out(name):
    values = np.linspace(0.1, 2, 24, dtype=np.float32)
    function = getattr(portable, name)
    flat = function(values)
    assert function(values.reshape(2, 3, 4)).tobytes() == flat.tobytes()
    assert function(values[::3]).tobytes() == flat[::3].tobytes()
    assert function(values[5]) == flat[5]
    assert function(values[:0]).shape == (0,)


# Bounds with a reason: half an ulp is correct rounding; the others sum up their roundings, rsqrt keeps one part only.
BOUNDS = dict.fromkeys(UNARY, 1.0) | {"divide": 0.5, "reciprocal": 0.5, "sqrt": 0.5, "rsqrt": 1.3}
BOUNDS |= dict.fromkeys(["pow", "atan", "atan2"], 0.75)
BOUNDS |= dict.fromkeys(EXACT, 0.0)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("function", accuracy.FUNCTIONS, ids=lambda f: f.name)
def test_errors_stay_within_the_stated_ulp(form, function):
    row = accuracy.measure(function, form, samples=1 << 14, seed=3)
    assert 0 <= row.ulp <= BOUNDS[function.name], row
    assert row.ulp > 0 or function.name in EXACT
    assert row.samples > 1 << 14


def test_a_wrong_function_shows_in_the_measured_error(monkeypatch):
    monkeypatch.setattr(portable, "exp", lambda x: np.nextafter(np.nextafter(np.exp(x), x.dtype.type(9)), np.inf))
    exp = next(f for f in accuracy.FUNCTIONS if f.name == "exp")
    assert accuracy.measure(exp, F32, samples=1 << 10, seed=0).ulp > 1


def test_the_table_has_one_line_per_function():
    rows = [
        accuracy.AccuracyRow("exp", "float32", 0.81, (1.0,), 5),
        accuracy.AccuracyRow("exp", "float64", 0.5, (1.0,), 5),
    ]
    assert accuracy.markdown(rows).splitlines()[2] == "| exp | 0.810 | 0.500 (correctly rounded) |"
    assert accuracy.markdown([accuracy.AccuracyRow("floor", "float32", 0.0, (1.0,), 5)]).splitlines()[2] == (
        "| floor | 0.000 (exact) | - |"
    )


def shader_divide(n: np.ndarray, d: np.ndarray, form: Format) -> tuple[np.ndarray, np.ndarray]:
    """The shader's quotient of significands (as integers), and how far its estimate was from the floor."""
    word, table = form.word, table_of(form)
    unit_bits, hidden = form.float(1).view(word), word(1 << form.fraction_bits)
    signed = np.int32 if word is np.uint32 else np.int64
    less = n < d
    value = (n - hidden + unit_bits).view(form.float) * np.where(less, form.float(2), form.float(1))
    estimate = value * refine_reciprocal(
        (d - hidden + unit_bits).view(form.float), table.reciprocal, table.newton_steps, form
    )
    q = estimate.view(word) - unit_bits + hidden
    rest = ((n << (less.astype(word) + word(form.fraction_bits))) - q * d).view(signed)
    off = rest // d.view(signed)
    rest = rest - off * d.view(signed)
    return q + off.astype(word) + (rest + rest > d.view(signed)).astype(word), off


@pytest.mark.parametrize("form", FORMS)
def test_the_integer_division_of_the_shader_is_correctly_rounded(form):
    rng = np.random.default_rng(6)
    low, high, count = 1 << form.fraction_bits, 2 << form.fraction_bits, 1 << 18
    d = rng.integers(low, high, count, form.word)
    n = rng.integers(low, high, count, form.word)
    edge = np.concatenate([np.arange(low, low + 512), np.arange(high - 512, high)]).astype(form.word)
    d = np.concatenate([d, d, np.repeat(edge, 64), np.tile(edge[::16], 1024)])
    n = np.concatenate([n, np.maximum(d[:count] - form.word(1), form.word(low)), np.tile(edge[::16], 1024)])
    n = np.concatenate([n, np.repeat(edge, 64)])
    q, off = shader_divide(n, d, form)
    hidden, unit_bits = form.word(low), form.float(1).view(form.word)
    significands = (n - hidden + unit_bits).view(form.float) / (d - hidden + unit_bits).view(form.float)
    expected = np.where(n < d, form.float(2) * significands, significands)
    assert np.array_equal(q + unit_bits - hidden, expected.view(form.word))
    assert off.min() >= -3
    assert off.max() <= (2 if form is F32 else 3), "the shader corrects this far and no further"


@pytest.mark.parametrize("form", FORMS)
def test_the_integer_root_of_the_shader_is_correctly_rounded(form):
    word, table = form.word, table_of(form)
    hidden, unit_bits = word(1 << form.fraction_bits), form.float(1).view(word)
    signed = np.int32 if word is np.uint32 else np.int64
    span = word(2) << word(form.fraction_bits)
    near = np.arange(4096, dtype=word)
    bits = np.concatenate(
        [unit_bits + near, unit_bits + span - word(1) - near, unit_bits + hidden + near, unit_bits + hidden - near]
    )
    bits = np.concatenate([bits, unit_bits + np.random.default_rng(7).integers(0, int(span), 1 << 18, word)])
    m = bits.view(form.float)
    s = (m * newton_rsqrt(m, form, table)).view(word) - unit_bits + hidden
    shift = (bits >> word(form.fraction_bits)) - word(form.bias) + word(form.fraction_bits)
    rest = ((((bits & (hidden - word(1))) | hidden) << shift) - s * s).view(signed)
    twice = (s + s).view(signed)
    off = (rest > twice).astype(signed) + (rest >= 2 * twice + 4)
    off -= (rest < 0).astype(signed) + (rest <= -twice) + (rest < 4 - 2 * twice)
    rest = rest - off * (twice + off)
    s = s + off.view(word)
    assert np.all((rest >= 0) & (rest <= (s + s).view(signed))), "s must be the floor of the root"
    s = s + (rest > s.view(signed)).astype(word)
    assert np.array_equal(s + unit_bits - hidden, np.sqrt(m).view(word))


class _Checked(ast.NodeTransformer):
    """Sends every +, - and * of a module through `checked`."""

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        self.generic_visit(node)
        if not isinstance(node.op, ast.Add | ast.Sub | ast.Mult):
            return node
        name = ast.Constant(type(node.op).__name__)
        call = ast.Call(ast.Name("checked", ast.Load()), [name, node.left, node.right], [])
        return ast.copy_location(call, node)


def checked_modules(monkeypatch: pytest.MonkeyPatch, found: list[str]) -> dict[str, ModuleType]:
    """Copies of the twin's modules that report every intermediate which hardware might flush."""

    def checked(op: str, a: Any, b: Any) -> Any:
        out: Any = a + b if op == "Add" else a - b if op == "Sub" else a * b
        kind = np.asarray(out).dtype
        if kind in (np.float32, np.float64) and not isinstance(out, float):
            size = np.abs(out)
            lost = (np.asarray(a) != 0) & (np.asarray(b) != 0) & (size == 0) if op == "Mult" else False
            bad = ((size > 0) & (size <= np.finfo(kind).tiny)) | lost
            if np.any(bad):
                found.append(
                    f"{op} of {np.broadcast_to(a, bad.shape)[bad][0]} and {np.broadcast_to(b, bad.shape)[bad][0]}"
                )
        return out

    by_name: dict[str, ModuleType] = {}
    for part in ("_roots", "_exp", "_trig", "_atan", "_erf", "_pow"):
        name = f"dashi.kernels.portable.{part}"
        spec = importlib.util.find_spec(name)
        assert spec is not None
        assert spec.origin is not None
        with open(spec.origin, encoding="utf-8") as file:
            tree = ast.fix_missing_locations(_Checked().visit(ast.parse(file.read())))
        module = importlib.util.module_from_spec(spec)
        module.__dict__["checked"] = checked
        monkeypatch.setitem(sys.modules, name, module)  # the next part imports this copy
        exec(compile(tree, spec.origin, "exec"), module.__dict__)
        by_name[part] = module
    return by_name


@pytest.mark.parametrize("form", FORMS)
def test_no_intermediate_is_subnormal(form, monkeypatch):
    found: list[str] = []
    modules = checked_modules(monkeypatch, found)
    hard = np.concatenate([adversarial(form), accuracy.hard_arguments(form)])
    for part, names in {
        "_roots": ["rsqrt"],
        "_exp": ["exp", "log", "tanh", "softplus"],
        "_trig": ["sin", "cos"],
        "_atan": ["atan", "atan2"],
        "_erf": ["erf"],
        "_pow": ["pow"],
    }.items():
        for name in names:
            inputs = (hard, np.random.default_rng(4).permutation(hard))[: 1 + (name in ("atan2", "pow"))]
            out = getattr(modules[part], name)(*inputs)
            assert out.tobytes() == getattr(portable, name)(*inputs).tobytes()
            assert not found, f"{name}: {found[:3]}"


def test_the_check_for_subnormal_intermediates_can_fail(monkeypatch):
    names: list[str] = []
    roots = checked_modules(monkeypatch, names)["_roots"]
    roots.polynomial(np.array([2.0**-70], np.float32), (0.0, 0.0, 2.0**-70), F32)
    assert names


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_sine_and_cosine_together_have_the_bits_of_each(kind: Any) -> None:
    rng = np.random.default_rng(5)
    wide = rng.standard_normal(3000) * 10.0 ** rng.integers(-30, 30, 3000)
    x = np.concatenate([wide, [*ZEROS, INF, -INF, NAN]]).astype(kind).reshape(-1, 5)
    sine, cosine = portable.sincos(x)
    assert sine.tobytes() == portable.sin(x).tobytes()
    assert cosine.tobytes() == portable.cos(x).tobytes()
