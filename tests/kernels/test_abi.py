"""The rules of the ABI and of plans: each broken on purpose, each with its own words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import dashi.kernels
from dashi.errors import AbiError, LimitError
from dashi.kernels import _registry as registry
from dashi.kernels import _scaffold as scaffold
from dashi.kernels._calls import resolve_call
from dashi.kernels._glsl import FEATURES
from dashi.kernels._validate import check_plan, validate
from dashi.kernels.abi import Binding, Call, Case, Dispatch, Kernel, Limits, Operand, Plan, Scalar, Shader, Spec
from dashi.types import DTYPES


@pytest.fixture(scope="module")
def kernel(tmp_path_factory: pytest.TempPathFactory) -> Kernel:
    return registry.read(scaffold.new("probe", tmp_path_factory.mktemp("kernels")))


def shader(**changes: Any) -> dict[str, Any]:
    base = Shader((Binding("x"), Binding("result", access="write")), (Scalar("n", "u32"),))
    return {"shaders": {"main": replace(base, **changes)}}


X, OUT = Operand("x"), Operand("result")
BUFFERS = (Binding("x"), Binding("result", access="write"))


@pytest.mark.parametrize(
    ("changes", "what", "fix"),
    [
        ({"summary": " "}, "has no one-line summary", "say in one line what it computes."),
        (
            {"dtypes": ("f32", "f31")},
            "has the dtypes ('f32', 'f31')",
            f"name each once, out of {', '.join(DTYPES)}.",
        ),
        ({"inputs": (Operand("x", "W"),)}, "gives x the dtype 'W'", f"use one of {', '.join(sorted({'T', *DTYPES}))}."),
        (
            {"inputs": (Operand("x", "f32"),)},
            "has the variants f32, f64, but no input of type T to tell them apart",
            'give an input the dtype "T", or the kernel one dtype.',
        ),
        ({"outputs": ()}, "has no output", "declare what it makes in `outputs`."),
        ({"outputs": (X,)}, "uses the name 'x' 2 times in the interface", "make the names unique."),
        (
            {"outputs": (Operand("out"),)},
            "uses the name 'out' in the interface, a reserved word of GLSL",
            "choose another (`result`?).",
        ),
        ({"inputs": (Operand("gl_x"),)}, "uses the name 'gl_x' in the interface", "use a plain identifier."),
        ({"inputs": (Operand("a b"),)}, "uses the name 'a b' in the interface", "use a plain identifier."),
        (
            {"inputs": (Operand("x", shape=("n", 0)),)},
            "gives x the dimension 0",
            "use a name or a positive number.",
        ),
        (
            {"inputs": (Operand("x", shape=("n",)),)},
            "gives the output result any shape, but no input has one",
            "name its dimensions.",
        ),
        (
            {"outputs": (Operand("result", shape=("k",)),)},
            "gives the output result the dimension k, which no input has",
            "use a dimension of an input, or an integer scalar of that name.",
        ),
        (
            {"inputs": (Operand("x", shape=("n/0",)),)},
            "gives x the dimension 'n/0'",
            "use a name or a positive number.",
        ),
        (
            {"inputs": (Operand("x", shape=("n/32",)), Operand("y", shape=("n",)))},
            "gives x the dimension n/32, but no operand before it has n",
            "name a dimension of an earlier input, or an integer scalar.",
        ),
        (
            {"inputs": (Operand("x", shape=("n",)),), "outputs": (Operand("result", shape=("k/2",)),)},
            "gives the output result the dimension k/2, which no input has",
            "use a dimension of an input, or an integer scalar of that name.",
        ),
        (
            {"bound": 1e-6},
            "is portable, yet has an error bound or a tier above 0",
            "drop them, or set portable=False.",
        ),
        (
            {"portable": False},
            "is not portable and has the error bound None",
            "state one between 0 and 1.",
        ),
        (
            {"portable": False, "bound": 1e-6, "tier": 3},
            "has the tier 3",
            "use 0 (fixed order), 1 or 2 (float atomics).",
        ),
        ({"shaders": {}}, "has no shader", "declare at least one in `shaders`."),
        ({"cases": ()}, "has no cases", "give at least one, so that it is tested and measured."),
        (
            {"cases": (Case({"y": (3,)}),)},
            "gives case 0 shapes for ['y']",
            "give them for ['x'].",
        ),
        (
            {"inputs": (X, Operand("at", "u32")), "cases": (Case({"x": (3,), "at": (3,)}),)},
            "has no `fill` for at in case 0",
            "give one: only float inputs are filled by themselves.",
        ),
        (
            shader(buffers=(Binding("x", "f15"), BUFFERS[1])),
            "has in shader main the buffer x of dtype 'f15', access 'read'",
            f"use T, W, V, P, u32x4, {', '.join(DTYPES)}, and read, write or readwrite.",
        ),
        (
            shader(buffers=(Binding("x"),)),
            "writes no buffer in shader main",
            'give its output access="write".',
        ),
        (
            shader(push=(Scalar("x", "u32"),)),
            "uses the name 'x' 2 times in shader main",
            "make the names unique.",
        ),
        (
            shader(push=tuple(Scalar(f"p{i}") for i in range(17))),
            "has 136 bytes of push constants in shader main.f64",
            "pass at most 128; put the rest into a buffer.",
        ),
        (
            shader(local=("tile", 1, 1)),
            "names ['tile'] in the workgroup size of shader main",
            "name specialisation constants, each once.",
        ),
        (
            shader(local=("tile", "tile", 1), spec=(Spec("tile", 8),)),
            "names ['tile', 'tile'] in the workgroup size of shader main",
            "name specialisation constants, each once.",
        ),
        (
            shader(local=(2048, 1, 1)),
            "has the workgroup size (2048, 1, 1) in shader main",
            "use 1 to 1024 invocations.",
        ),
        (
            shader(spec=(Spec("tile", -1),)),
            "has a specialisation constant in shader main that is no u32",
            "use 0 to 2^32 - 1.",
        ),
        (
            shader(file="../kernel.comp"),
            "names the file '../kernel.comp' in shader main",
            "use a plain name such as kernel.comp.",
        ),
        (
            shader(features=frozenset({"magic"})),
            "asks for the feature 'magic' in shader main",
            f"use {', '.join(sorted(FEATURES))}.",
        ),
    ],
)
def test_a_broken_rule_is_named(kernel: Kernel, changes: Mapping[str, Any], what: str, fix: str) -> None:
    with pytest.raises(AbiError) as error:
        validate(replace(kernel, **changes))
    assert str(error.value) == f"kernel 'probe' {what}. Fix: {fix}"


def test_a_missing_shader_file_is_named(kernel: Kernel, tmp_path: Path) -> None:
    with pytest.raises(AbiError) as error:
        validate(replace(kernel, folder=tmp_path))
    assert str(error.value) == (
        f"kernel 'probe' has no file kernel.comp for shader main. Fix: write {tmp_path / 'kernel.comp'}."
    )


@pytest.fixture(scope="module")
def call(kernel: Kernel) -> Call:
    return resolve_call(kernel, "f32", [(10,)], {"a": 2})


GOOD = Dispatch("main", ("x", "result"), {"n": 10, "stride": 1024, "a": 2.0}, (1, 1, 1), 9, {"LOCAL": 256, "EACH": 4})


def test_the_plan_of_the_pattern_is_sound(kernel: Kernel, call: Call) -> None:
    assert check_plan(kernel, call, kernel.plan(call)).dispatches == (GOOD,)


@pytest.mark.parametrize(
    ("dispatch", "what", "fix"),
    [
        (replace(GOOD, shader="other"), "dispatches the shader 'other'", "use main."),
        (replace(GOOD, buffers=("x",)), "binds 1 buffers in a dispatch of main", "bind 2."),
        (
            replace(GOOD, push={"n": 1}),
            "pushes ['n'] in a dispatch of main",
            "push exactly ['a', 'n', 'stride'].",
        ),
        (replace(GOOD, spec={"tile": 1}), "sets ['tile'] in a dispatch of main", "set declared constants only."),
        (
            replace(GOOD, groups=(0, 1, 1)),
            "asks for (0, 1, 1) groups in a dispatch of main",
            "leave empty dispatches out.",
        ),
        (
            replace(GOOD, buffers=("x", "x")),
            "writes its input x in a dispatch of main",
            "write to an output or to scratch.",
        ),
        (
            replace(GOOD, buffers=("z", "result")),
            "binds 'z', which is neither operand nor scratch",
            "declare it in `Plan.scratch`.",
        ),
        (
            replace(GOOD, buffers=("x", "wide")),
            "binds wide to result of another element size in a dispatch of main",
            "make the dtypes agree.",
        ),
    ],
)
def test_an_unsound_dispatch_is_named(kernel: Kernel, call: Call, dispatch: Dispatch, what: str, fix: str) -> None:
    with pytest.raises(AbiError) as error:
        check_plan(kernel, call, Plan((dispatch,), {"wide": ("u64", 4)}))
    assert str(error.value) == f"kernel 'probe' {what}. Fix: {fix}"


def test_a_loop_longer_than_the_device_can_run_is_refused(kernel: Kernel, call: Call) -> None:
    with pytest.raises(LimitError, match="would loop 70000 times in one invocation; this device is only right up to"):
        check_plan(kernel, call, Plan((replace(GOOD, trips=70000),)))


def test_the_pattern_never_loops_longer_than_its_limits_allow(kernel: Kernel) -> None:
    big = resolve_call(kernel, "f32", [(1 << 31,)], {}, Limits())
    (dispatch,) = check_plan(kernel, big, kernel.plan(big)).dispatches
    assert dispatch.groups == (65535, 1, 1)
    assert dispatch.trips == 33 * 9
    assert 33 * dispatch.push["stride"] >= 1 << 31


def test_an_empty_array_needs_no_dispatch(kernel: Kernel) -> None:
    empty = resolve_call(kernel, "f32", [(0, 3)])
    assert kernel.plan(empty).dispatches == ()
    assert kernel.cost(empty).dispatches == 0


def test_costs_count_every_array_once(kernel: Kernel) -> None:
    cost = kernel.cost(resolve_call(kernel, "f64", [(5, 7)]))
    assert (cost.flops, cost.bytes, cost.dispatches) == (35, 2 * 35 * 8, 1)


@pytest.mark.parametrize("name", dashi.kernels.names())
def test_the_plans_of_every_kernel_are_sound(name: str) -> None:
    kernel = dashi.kernels.get(name)
    for case in kernel.cases:
        shapes = [case.shapes[operand.name] for operand in kernel.inputs]
        for variant in kernel.dtypes:
            for limits in (Limits(), Limits(groups=3, loop_trips=1 << 40), Limits(groups=1 << 31)):
                call = resolve_call(kernel, variant, shapes, case.scalars, limits)
                try:
                    plan = check_plan(kernel, call, kernel.plan(call))
                except LimitError:
                    # Workgroups that wait for each other cannot be dispatched in parts.
                    assert limits.groups == 3
                    assert any("rendezvous" in shader.features for shader in kernel.shaders.values())
                    continue
                assert kernel.cost(call).dispatches == len(plan.dispatches)
