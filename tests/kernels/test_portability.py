"""The lint of portable kernels: every planted fault is caught, and what is exact is let through."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from dashi.errors import PortabilityError, SpirvError
from dashi.kernels import _build as build
from dashi.kernels import _glsl as glsl
from dashi.kernels import _registry as registry
from dashi.kernels import _scaffold as scaffold
from dashi.kernels._compiler import Compiler
from dashi.kernels.abi import Binding, Kernel, Scalar, Shader
from dashi.kernels.spirv._module import Module, parse
from dashi.kernels.spirv._portable_lint import contractable, forbid_contraction, lint_portable

SHADER = Shader((Binding("x"), Binding("result", access="write")), (Scalar("n", "u32"),), includes=("portable.glsl",))


@pytest.fixture
def kernel(tmp_path: Path) -> Kernel:
    return replace(registry.read(scaffold.new("probe", tmp_path)), shaders={"main": SHADER})


def built(kernel: Kernel, body: str, variant: str = "f32") -> Module:
    (kernel.folder / "kernel.comp").write_text(f"void main() {{ uint i = gl_GlobalInvocationID.x; {body} }}\n")
    with Compiler() as compiler:
        return parse(build.compile_variant(kernel, "main", variant, compiler).binary.words)


@pytest.mark.parametrize(
    ("body", "what", "fix"),
    [
        ("result[i] = x[i] / x[i + 1];", "it uses OpFDiv in main", "use p_divide of portable.glsl."),
        ("result[i] = sqrt(x[i]);", "it uses GLSL.std.450 Sqrt", "use p_sqrt of portable.glsl."),
        ("result[i] = exp(x[i]);", "it uses GLSL.std.450 Exp", "use p_exp of portable.glsl."),
        ("result[i] = fma(x[i], x[i], x[i]);", "it uses GLSL.std.450 Fma", "write mul(a, b) + c, which rounds twice."),
        ("result[i] = max(x[i], x[i + 1]);", "it uses GLSL.std.450 FMax", "compare order_key values."),
        (
            "result[i] = dot(vec2(x[i], x[0]), vec2(x[1], x[2]));",
            "it uses OpDot in main",
            "write the products with mul and add them in order.",
        ),
        (
            "vec2 v = vec2(x[i], x[0]) * x[1]; result[i] = v.x;",
            "it uses OpVectorTimesScalar in main",
            "multiply the parts one by one with mul.",
        ),
        (
            "result[i] = isnan(x[i]) ? 1.0 : 0.0;",
            "it uses OpIsNan in main",
            "test the bits with is_nan_bits.",
        ),
        (
            "mat2 m = mat2(x[i]) * mat2(x[0]); result[i] = m[0].x;",
            "it uses OpMatrixTimesMatrix in main",
            "use add, subtract, multiply, compares, integers and the functions of portable.glsl.",
        ),
        (
            "result[i] = floor(x[i]);",
            "it uses GLSL.std.450 Floor",
            "use add, subtract, multiply, compares, integers and the functions of portable.glsl.",
        ),
        (
            "mediump float v = x[i]; v += x[0]; result[i] = v;",
            "it relaxes precision (mediump, lowp or fast maths)",
            "remove the precision qualifier.",
        ),
    ],
)
def test_a_planted_fault_is_caught_and_named(kernel: Kernel, body: str, what: str, fix: str) -> None:
    with pytest.raises(PortabilityError) as error:
        built(kernel, body)
    assert str(error.value) == f"probe/main.f32 is declared portable, but {what}. Fix: {fix}"


def test_narrowing_a_double_is_caught(kernel: Kernel) -> None:
    with pytest.raises(PortabilityError, match="it narrows a double to a float, which rounds as the driver likes"):
        built(kernel, "result[i] = double(float(x[i]));", "f64")


def test_subgroup_sums_are_caught(kernel: Kernel) -> None:
    shader = replace(SHADER, features=frozenset({"subgroup"}))
    with pytest.raises(PortabilityError, match="it uses OpGroupNonUniformFAdd in main"):
        built(replace(kernel, shaders={"main": shader}), "result[i] = subgroupAdd(x[i]);")


def test_a_kernel_that_makes_no_promise_may_divide(kernel: Kernel) -> None:
    assert built(replace(kernel, portable=False, bound=1e-6), "result[i] = x[i] / x[i + 1];")


@pytest.mark.parametrize(
    "body",
    [
        "result[i] = mul(canon(x[i]), canon(x[0])) + canon(x[1]);",
        "result[i] = abs(-x[i]);",
        "result[i] = x[i] < x[0] ? T(1) : T(0);",
        "result[i] = T(int(i)) - x[i];",
        "result[i] = T(min(i, 3u));",
        (
            "T best = x[0]; for (uint k = 1u; k < 9u; k++) if (order_key(x[k]) > order_key(best)) best = x[k]; "
            "result[i] = best;"
        ),
    ],
)
@pytest.mark.parametrize("variant", ["f32", "f64"])
def test_exact_operations_pass(kernel: Kernel, body: str, variant: str) -> None:
    assert built(kernel, body, variant)


@pytest.mark.parametrize("variant", ["f32", "f64"])
def test_the_shared_maths_passes_its_own_lint(kernel: Kernel, variant: str) -> None:
    calls = "p_divide(v, v) + p_sqrt(v) + p_rsqrt(v) + p_reciprocal(v) + p_exp(v) + p_log(v) + p_sin(v) + p_cos(v)"
    assert built(kernel, f"T v = canon(x[i]); result[i] = {calls} + p_tanh(v) + p_softplus(v);", variant)


def test_contraction_is_forbidden_on_every_float_operation_and_only_there(kernel: Kernel) -> None:
    (kernel.folder / "kernel.comp").write_text(
        "void main() { uint i = gl_GlobalInvocationID.x; precise T v = x[i] * x[0]; result[i] = v + x[1] - (-x[2]); }"
    )
    with Compiler() as compiler:
        raw = parse(compiler.compile(glsl.source(kernel, "main", "f32"), "raw"))
    assert len(contractable(raw)) == 3  # `precise` guards the product already
    done = forbid_contraction(raw)
    assert contractable(done) == []
    assert len(done.instructions) == len(raw.instructions) + 3
    assert forbid_contraction(done) == done
    assert [i for i in done.instructions if i.info.name != "Decorate"] == [
        i for i in raw.instructions if i.info.name != "Decorate"
    ]
    with pytest.raises(PortabilityError, match="its arithmetic may be contracted"):
        lint_portable(raw, "raw")
    lint_portable(done, "done")


def test_the_number_of_workgroups_is_refused_in_every_kernel(kernel: Kernel) -> None:
    with pytest.raises(SpirvError) as error:
        built(replace(kernel, portable=False, bound=1e-6), "result[i] = T(gl_NumWorkGroups.x);")
    assert str(error.value) == (
        "the binary of probe/main.f32 does not fit its ABI: a built-in used is NumWorkgroups, declared is "
        "none that a split dispatch would change (take a push constant). "
        "Fix: run `dashi kernels build probe`, or correct the ABI."
    )


def test_arithmetic_on_undefined_floats_is_caught() -> None:
    from dashi.kernels.spirv._module import Instruction
    from dashi.kernels.spirv._ops import OPS

    kinds = (Instruction(OPS[22], (1, 32)), Instruction(OPS[1], (1, 2)))
    with pytest.raises(PortabilityError, match=r"it uses OpUndef\. Fix: give the variable a value on every path"):
        lint_portable(Module(0x10500, 0, 3, kinds), "probe")
