"""The loop trips that a plan declares are no fewer than those that its shaders make, counted on the device.

Some drivers end long loops silently (lavapipe 22.3.6 after 65,535 iterations of an invocation), so every dispatch says
how many it makes at most, and one that says too few is wrong without a word. Here every shader is built once more with
a counter in each of its loops, which leaves the largest count of an invocation in a buffer of its own; so are the
templates that kernels of formulas are made from, before their holes are filled.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Final

import numpy as np
import pytest

from dashi import kernels
from dashi.errors import LimitError
from dashi.kernels import _fusion, _product_fusion, _rows
from dashi.kernels import _glsl as glsl
from dashi.kernels._build import Binary
from dashi.kernels._calls import resolve_call
from dashi.kernels._compiler import Compiler
from dashi.kernels._registry import templates
from dashi.kernels._validate import check_plan
from dashi.kernels._window_fusion import fuse_window_product
from dashi.kernels.abi import Binding, Call, Dispatch, Kernel, Plan, View
from dashi.kernels.expressions import arguments, where
from dashi.kernels.spirv._emit import Emission, Template
from dashi.kernels.spirv._module import Module, parse
from dashi.kernels.spirv._portable_lint import forbid_contraction
from dashi.runtime._lowering import origin_of
from dashi.runtime._operands import dtype_of_operand
from dashi.runtime._probes import expected
from dashi.runtime._scratch import scratch_arrays
from dashi.runtime._vulkan_device import VulkanDevice
from dashi.runtime.conformance import Sample, missing_features, samples
from dashi.runtime.device import Step

COUNTS: Final = "counted_trips"
COUNTER: Final = Binding(COUNTS, "u32", "readwrite")
_LOOP: Final = re.compile(r"(?P<unroll>\[\[unroll\]\]\s*)?\b(?:for|while)\s*\(")
_CONSTANT: Final = re.compile(r"uint \w+ = (?:\d+u|[A-Z_]+); \w+ < [A-Z0-9_ */+-]+u?; ")
"""From a number, or a macro's parameter that is one, to a constant or specialisation constant: with [[unroll]]
compilers leave no loop of it."""
_COMMENT: Final = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)


@dataclass(frozen=True)
class Count:
    """A dispatch, and the most iterations that one of its invocations made."""

    shader: str
    declared: int
    counted: int


def with_counters(text: str) -> str:
    """The GLSL that counts an iteration at the beginning of every loop's body, and keeps the most at the end."""
    plain = _COMMENT.sub(" ", text)
    parts: list[str] = []
    end = 0
    for loop in _LOOP.finditer(plain):
        depth, at = 1, loop.end()
        while depth:
            depth += {"(": 1, ")": -1}.get(plain[at], 0)
            at += 1
        if loop["unroll"] and _CONSTANT.match(plain, loop.end()):
            continue
        body = plain.index("{", at)
        assert not plain[at:body].strip(), f"a loop without braces is not counted: {plain[loop.start() : at + 40]!r}"
        parts += [plain[end : body + 1], f" {COUNTS}_own += 1u;"]
        end = body + 1
    counted = "".join([*parts, plain[end:]])
    renamed, mains = re.subn(r"\bvoid\s+main\s*\(\s*\)", "void uncounted_main()", counted)
    assert mains, "a shader has a main"
    assert "do {" not in plain, "loops that begin with do are not counted"
    # The counter is declared where the buffers are: before every function.
    head, sign, rest = renamed.partition("layout(local_size_x")
    return (
        f"{head}uint {COUNTS}_own = 0u;\n{sign}{rest}\n"
        f"void main() {{ uncounted_main(); atomicMax({COUNTS}[0], {COUNTS}_own); }}\n"
    )


class Counting:
    """Runs cases of kernels with counters in their loops on a device, whose binaries of them it makes itself."""

    def __init__(self, device: VulkanDevice, compiler: Compiler) -> None:
        self.device, self.compiler = device, compiler
        self.templates: dict[tuple[str, str, str], tuple[Template, int]] = {}

    def counts(self, kernel: Kernel, sample: Sample, tuning: str | None) -> list[Count]:
        """What each dispatch of a call declares and makes."""
        device = self.device
        chosen = device.tuning_for(kernel, sample.variant, tuning)
        numbers = None if chosen is None else kernel.tunings[chosen]
        shapes = [values.shape for values in sample.inputs]
        limits = device.limits_for(kernel)
        call = resolve_call(kernel, sample.variant, shapes, sample.scalars, limits, numbers)
        plan = check_plan(kernel, call, kernel.plan(call))
        inputs = tuple(device.array(values) for values in sample.inputs)
        outputs = tuple(
            device.empty(call.shapes[o.name], dtype_of_operand(o, call.dtype).numpy) for o in kernel.outputs
        )
        names = [o.name for o in (*kernel.inputs, *kernel.outputs)]
        arrays = dict(zip(names, (*inputs, *outputs), strict=True))
        counters = {f"{COUNTS}_{j}": device.array(np.zeros(1, np.uint32)) for j in range(len(plan.dispatches))}
        counted = self._counted(kernel, {d.shader for d in plan.dispatches}, sample.variant)
        arrays |= scratch_arrays(device, kernel, call, plan, {})
        lowered = device.lower(counted, call, _with_buffers(plan), {**arrays, **counters})
        with device.program([Step(counted, call, inputs, outputs, lowered, chosen)]) as program:
            program.run()
        made = [int(counter.numpy()[0]) for counter in counters.values()]
        return [Count(d.shader, d.trips, count) for d, count in zip(plan.dispatches, made, strict=True)]

    def _counted(self, kernel: Kernel, used: set[str], variant: str) -> Kernel:
        """The kernel whose shaders have one buffer more; the binaries of those used are put where the device looks."""
        shaders = {name: replace(shader, buffers=(*shader.buffers, COUNTER)) for name, shader in kernel.shaders.items()}
        counted = replace(kernel, shaders=shaders, binaries=None)
        place = Path("counted") / (kernel.binaries.key if kernel.binaries else kernel.name)
        for shader in used:
            key = (origin_of(replace(counted, folder=place)), shader, variant)
            if key not in self.device._binaries:  # pyright: ignore[reportPrivateUsage]
                words = (
                    self._emitted(kernel, shader, variant)
                    if kernel.binaries
                    else self._compiled(counted, shader, variant)
                )
                self.device._binaries[key] = Binary(words, hashlib.sha256(words).hexdigest())  # pyright: ignore[reportPrivateUsage]
        return replace(counted, folder=place)

    def _compiled(self, kernel: Kernel, shader: str, variant: str) -> bytes:
        text = with_counters(glsl.source(kernel, shader, variant))
        module = parse(self.compiler.compile(text, f"{kernel.name}/{shader}.{variant}"))
        if kernel.portable or not kernel.shaders[shader].contracted:
            module = forbid_contraction(module)
        return module.to_bytes()

    def _emitted(self, kernel: Kernel, shader: str, variant: str) -> bytes:
        """The binary of a kernel of formulas: its template with counters, and one buffer more behind the others."""
        assert kernel.binaries
        emitted = Emission.module

        def template(name: str, of: str, filled: str) -> Template:
            return self._template(name, of, filled)[0]

        def module(emission: Emission, bindings: Mapping[int, int]) -> Module:
            (last,) = (last for template, last in self.templates.values() if template is emission.template)
            return emitted(emission, {**bindings, last: len(kernel.shaders[shader].buffers)})

        with pytest.MonkeyPatch.context() as during:
            during.setattr(_fusion, "_template", partial(template, "fused"))
            during.setattr(_rows, "_template", partial(template, "rows"))
            during.setattr(_product_fusion, "_template", template)
            during.setattr(Emission, "module", module)
            return kernel.binaries.words(shader, variant)

    def _template(self, name: str, shader: str, variant: str) -> tuple[Template, int]:
        """A template with counters, and the binding that they have in it."""
        if (name, shader, variant) not in self.templates:
            kernel = templates().get(name)
            last = len(kernel.shaders[shader].buffers)
            more = replace(kernel.shaders[shader], buffers=(*kernel.shaders[shader].buffers, COUNTER))
            counted = replace(kernel, shaders={**kernel.shaders, shader: more})
            self.templates[name, shader, variant] = Template(parse(self._compiled(counted, shader, variant))), last
        return self.templates[name, shader, variant]


def _with_buffers(plan: Plan) -> Plan:
    def more(number: int, dispatch: Dispatch) -> Dispatch:
        return replace(dispatch, buffers=(*dispatch.buffers, f"{COUNTS}_{number}"))

    return replace(plan, dispatches=tuple(more(j, dispatch) for j, dispatch in enumerate(plan.dispatches)))


@pytest.fixture(scope="module")
def counting(vulkan_session: VulkanDevice) -> Iterator[Counting]:
    with Compiler() as compiler:
        yield Counting(vulkan_session, compiler)


WRITTEN: Final = [name for name in kernels.names() if kernels.get(name).binaries is None]
"""Kernels with a shader of their own."""
BY_FORMULA: Final = [name for name in kernels.names() if name not in WRITTEN]

FEW: Final = (
    "argsort", "axpy", "band_energies", "cholesky", "gemm_scalar", "hash_state", "layer_norm", "pq_rank", "prefix_scan",
    "qfeat", "quadratic_step", "reduce_max", "reduce_sum", "rollout", "scatter_add_sorted", "spmv_csr", "state_metrics",
    "ternary_majority", "tile", "triangular_solve",
)  # fmt: skip
"""Kernels of every sort of loop that take seconds together; all others are counted in the long test."""
UNDERSTATED: Final = {"iterate": "it measures the very limit that honest ones are held to"}


def too_few(counting: Counting, kernel: Kernel, variant: str, tuning: str | None) -> list[str]:
    """Every dispatch of every case that makes more trips than it declares, in words."""
    draw = samples(kernel)
    wrong: list[str] = []
    for number, case in enumerate(kernel.cases):
        if missing_features(counting.device, kernel, variant, tuning, case):
            continue
        with np.errstate(all="ignore"):
            counts = counting.counts(kernel, draw(variant, number, "normal"), tuning)
        wrong += [
            f"{kernel.name}/{count.shader}.{variant}, case {number}: {count.counted} loop iterations, and "
            f"{count.declared} are declared"
            for count in counts
            if count.counted > count.declared
        ]
    return wrong


@pytest.mark.parametrize("name", FEW)
def test_no_dispatch_makes_more_loop_trips_than_it_declares(name: str, counting: Counting) -> None:
    kernel = kernels.get(name)
    assert too_few(counting, kernel, kernel.dtypes[0], None) == []


@pytest.mark.long
@pytest.mark.parametrize("name", [name for name in WRITTEN if name not in UNDERSTATED])
def test_no_dispatch_of_any_variant_or_tuning_makes_more_loop_trips_than_it_declares(
    name: str, counting: Counting
) -> None:
    kernel = kernels.get(name)
    wrong: list[str] = []
    for variant in kernel.dtypes:
        for tuning in tuple(kernel.tunings) or (None,):
            try:
                wrong += too_few(counting, kernel, variant, tuning)
            except LimitError:
                continue  # a tuning made for larger devices
    assert wrong == []


def formulas() -> dict[str, Kernel]:
    """Kernels of every template and each of its shaders, by what they are."""
    x, y, value, bias = arguments("x y value bias")
    weights, windows = View((2, 5, 54), (270, 54, 1)), View((2, 12, 3, 3, 8, 9), (1320, 110, 11, 1, 11, 1))
    return {
        "flat": kernels.fuse(x * y + 1),
        "strided": kernels.fuse(x + 1, views={"x": View((6, 5), (1, 6))}),
        "several results": kernels.fuse(x + y, x - y),
        "mixed types": kernels.fuse(where(x, y, 0.0), types={"x": "bool", "y": "f16"}),
        "integers": kernels.fuse(x * y, types={"x": "i8", "y": "i16", "result": "i64"}, compute="i64"),
        "sums of rows": kernels.reduce_rows("sum", x * x, axes=1),
        "greatest of columns": kernels.reduce_rows("max", x, axes=0),
        "places": kernels.reduce_rows("argmax", x, axes=-1),
        "softmax": kernels.row_map("softmax", x, axes=-1),
        "norms of two axes": kernels.row_map("layer_norm", x + y, axes=(0, 1)),
        "product": kernels.fuse_product(value + bias),
        "product in any order": kernels.fuse_product(value * 2, portable=False),
        "windows": fuse_window_product(value + 1, "value", weights, windows, {}),
    }


def test_formulas_make_no_more_loop_trips_than_they_declare(counting: Counting) -> None:
    wrong = {name: too_few(counting, kernel, kernel.dtypes[0], None) for name, kernel in formulas().items()}
    assert not any(wrong.values()), wrong


@pytest.mark.long
@pytest.mark.parametrize("name", [*formulas(), *BY_FORMULA])
def test_formulas_of_any_variant_and_tuning_make_no_more_loop_trips_than_they_declare(
    name: str, counting: Counting
) -> None:
    kernel = formulas().get(name) or kernels.get(name)
    wrong: list[str] = []
    for variant in kernel.dtypes:
        for tuning in tuple(kernel.tunings) or (None,):
            with suppress(LimitError):  # a tuning made for larger devices
                wrong += too_few(counting, kernel, variant, tuning)
    assert wrong == []


def test_the_counter_sees_formulas_that_declare_too_few(counting: Counting) -> None:
    unseen: list[str] = []
    for name, kernel in formulas().items():

        def understated(call: Call, kernel: Kernel = kernel) -> Plan:
            plan = kernel.plan(call)
            return replace(plan, dispatches=tuple(replace(d, trips=0) for d in plan.dispatches))

        if not too_few(counting, replace(kernel, plan=understated), kernel.dtypes[0], None):
            unseen.append(name)
    assert unseen == []


def test_the_counter_sees_a_plan_that_declares_too_few(counting: Counting) -> None:
    kernel = kernels.get("axpy")

    def understated(call: Call) -> Plan:
        plan = kernel.plan(call)
        return replace(plan, dispatches=tuple(replace(d, trips=0) for d in plan.dispatches))

    wrong = too_few(counting, replace(kernel, plan=understated), "f32", None)
    assert wrong
    assert "1 loop iterations, and 0 are declared" in wrong[0]


def test_the_probe_of_loops_makes_as_many_trips_as_it_is_told(counting: Counting) -> None:
    kernel = kernels.get("iterate")
    sample = Sample(kernel, "u32", {"steps": 1000}, [np.arange(5, dtype=np.uint32)])
    (count,) = counting.counts(kernel, sample, None)
    assert (count.declared, count.counted) == (1, 1 + 1000)


def test_loops_that_are_unrolled_over_constants_are_no_loops_to_the_driver(counting: Counting) -> None:
    """So they need not be declared: 60,000 trips of 64 each are far beyond what lavapipe 22.3.6 does in loops."""
    device, kernel = counting.device, kernels.get("iterate")
    text = glsl.source(kernel, "main", "u32")
    loop = "for (uint step = 0u; step < steps; step++) {"
    assert loop in text
    unrolled = text.replace(loop, f"for (uint o = 0u; o < steps / 64u; o++) [[unroll]] {loop.replace('steps', '64u')}")
    extension = "#extension GL_EXT_control_flow_attributes : require\n"
    words = counting.compiler.compile(unrolled.replace("#define T ", f"{extension}#define T ", 1), "unrolled")
    place = Path("unrolled") / kernel.name
    binaries = device._binaries  # pyright: ignore[reportPrivateUsage]
    binaries[(origin_of(replace(kernel, folder=place)), "main", "u32")] = Binary(
        words, hashlib.sha256(words).hexdigest()
    )
    steps = 60_000 * 64
    result = device.run(replace(kernel, folder=place), np.array([1], np.uint32), steps=steps).numpy()
    assert int(result[0]) == expected(1, steps)
