"""The portable maths on devices: every function of the include has the bits of its NumPy twin, on hostile inputs too.

One small kernel per function, made in a temporary folder, so that functions no kernel of the house uses yet are held
to the contract as well.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import dashi
from dashi.kernels import _build as build
from dashi.kernels import _compiler as compiler
from dashi.kernels import _registry as registry
from dashi.kernels import portable
from dashi.kernels.abi import Kernel
from dashi.kernels.portable import _accuracy as accuracy
from dashi.kernels.portable._bits import F32, F64, Format
from dashi.runtime.device import Device

FORMS = [pytest.param(F32, id="f32"), pytest.param(F64, id="f64")]
UNARY = ["reciprocal", "sqrt", "rsqrt", "exp", "log", "sin", "cos", "tanh", "softplus"]
INCLUDED = {"erf": "erf", "atan": "atan", "floor": "round", "ceil": "round", "trunc": "round", "round": "round"}
"""Functions that a shader includes by name, and the file that has them."""
INCLUDED_BINARY = {"pow": "pow", "atan2": "atan"}
EXPRESSIONS = {name: f"p_{name}(x[i])" for name in [*UNARY, *INCLUDED]} | {
    **{name: f"p_{name}(x[i], y[i])" for name in INCLUDED_BINARY},
    "canon": "canon(x[i])",
    "divide": "p_divide(x[i], y[i])",
    "mul": "mul(canon(x[i]), canon(y[i]))",
    "order_value": "VALUE(order_key(x[i]))",
}
REFERENCES = {"mul": "mul(canon(x), canon(y))", "order_value": "order_value(order_key(x))"}
BINARY = {"divide", "mul", *INCLUDED_BINARY}

pytestmark = pytest.mark.skipif(
    not compiler.available(), reason="the compiler of dashi-compute[compile] is not installed"
)


@pytest.fixture(scope="module")
def device() -> Iterator[Device]:
    if not any(info.spec.startswith("vulkan") for info in dashi.devices()):
        pytest.skip("there is no Vulkan driver on this machine")
    with dashi.open("vulkan:0") as opened:
        yield opened


def kernel_of(name: str, folder: Path) -> Kernel:
    """A built kernel that applies one function of the include to each element."""
    operands = '("x", "y")' if name in BINARY else '("x",)'
    arguments = "x, y" if name in BINARY else "x"
    twin = REFERENCES.get(name, f"{name}({arguments})")
    place = folder / f"apply_{name}"
    place.mkdir()
    file = (INCLUDED | INCLUDED_BINARY).get(name)
    include = f'#include "portable_{file}.glsl"\n' if file else ""
    macro = "#if T_IS_F64\n#define VALUE order_value_f64\n#else\n#define VALUE order_value_f32\n#endif\n"
    (place / "kernel.comp").write_text(f"{include}{macro}T apply(uint i) {{\n    return {EXPRESSIONS[name]};\n}}\n")
    (place / "kernel.py").write_text(
        "from dashi.kernels.patterns import elementwise\nfrom dashi.kernels.portable import *\n\n\n"
        f"def reference({arguments}):\n    return canon({twin})\n\n\n"
        f'KERNEL = elementwise(summary="{name}", inputs={operands}, takes="index", reference=reference)\n'
    )
    kernel = registry.read(place)
    build.build(kernel)
    return kernel


def hostile(form: Format, seed: int) -> np.ndarray:
    """Random bits (NaN payloads and subnormals among them), working ranges, thresholds, hard arguments of sin."""
    rng = np.random.default_rng(seed)
    count = 1 << 14
    tiny = 2.0**form.tiny_exponent
    parts = [
        rng.integers(0, np.iinfo(form.word).max, count, form.word, endpoint=True).view(form.float),
        rng.integers(0, int(form.tiny), count, form.word).view(form.float),
        tiny * 2.0 ** rng.uniform(-2, 2, count),
        *(rng.uniform(-r, r, count) for r in (1.0, 20.0, 100.0, 800.0, 1e6)),
        2.0 ** rng.uniform(-40, 2, count),
        1 + rng.integers(-1000, 1000, count) * np.finfo(form.float).eps,
        np.array([0.0, -0.0, np.inf, -np.inf, np.nan, -np.nan]),
        accuracy.hard_arguments(form),
    ]
    return rng.permutation(np.concatenate([part.astype(form.float) for part in parts]))


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", sorted(EXPRESSIONS))
def test_the_include_has_the_bits_of_its_twin(name, form, device, tmp_path):
    if form is F64 and not {"fp64", "int64"} <= device.info.features:
        pytest.skip(f"{device.info.name} has no fp64")
    inputs = [hostile(form, seed) for seed in range(1 + (name in BINARY))]
    kernel = kernel_of(name, tmp_path)
    got = device.run(kernel, *inputs).numpy()
    expected = np.asarray(kernel.reference(*inputs))
    differ = np.flatnonzero(got.view(form.word) != expected.view(form.word))
    assert differ.size == 0, [(*(float(x[i]) for x in inputs), got[i], expected[i]) for i in differ[:3]]
    assert np.array_equal(portable.canon(got).view(form.word), got.view(form.word))


@pytest.mark.parametrize("form", FORMS)
def test_division_on_the_device_is_right_at_its_hardest(form, device, tmp_path):
    if form is F64 and not {"fp64", "int64"} <= device.info.features:
        pytest.skip(f"{device.info.name} has no fp64")
    rng = np.random.default_rng(0)
    unit_bits = form.float(1).view(form.word)
    count = 1 << 17
    b = (unit_bits + rng.integers(0, 1 << form.fraction_bits, count, form.word)).view(form.float)
    # Quotients next to a representable number, and next to the middle between two of them.
    q = (unit_bits + rng.integers(0, 1 << form.fraction_bits, count, form.word)).view(form.float)
    a = (b * q).view(form.word) + rng.integers(-2, 3, count).astype(form.word)
    inputs = [portable.canon(a.view(form.float)), b]
    got = device.run(kernel_of("divide", tmp_path), *inputs).numpy()
    assert got.tobytes() == (inputs[0] / inputs[1]).tobytes()
