"""Kernels from text: compiled, checked like all others, kept in the cache, and held to their references."""

from __future__ import annotations

import errno
import hashlib
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dashi
from dashi.core.rollouts._fingerprint import fingerprints
from dashi.errors import (
    AbiError,
    CompileError,
    CompilerMissingError,
    DTypeError,
    InputError,
    KernelError,
    KernelNotFoundError,
    PortabilityError,
    TwinError,
)
from dashi.kernels import _compiled as compiled
from dashi.kernels import _compiler as compiler
from dashi.kernels._calls import resolve_call
from dashi.kernels.portable import canon, mul, tanh
from dashi.runtime._cpu_device import CpuDevice
from dashi.runtime._null_device import NullDevice
from dashi.runtime._vulkan_device import VulkanDevice
from dashi.runtime.device import Device

pytestmark = pytest.mark.skipif(not compiler.available(), reason="needs the compiler")
FLOATS = pytest.mark.parametrize("kind", [np.float32, np.float64])
AXPY = "T apply(T x, T y) { return mul(a, x) + y; }"
ROWS = """
void main() {
    for (uint i = gl_GlobalInvocationID.x; i < items; i += stride) {
        T total = T(0);
        for (uint j = 0u; j < n; j++) {
            total += mul(canon(x[i * n + j]), canon(v[j]));
        }
        result[i] = mul(canon(a), canon(total));
    }
}
"""


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache folder of the test's own."""
    monkeypatch.setenv("DASHI_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache" / "kernels"


def axpy(**options: Any) -> dashi.Kernel:
    return dashi.kernel(AXPY, inputs="x y", scalars="a", reference=lambda x, y, a: mul(a, x) + y, **options)


def rows_reference(x: Any, v: Any, a: float) -> Any:
    total = np.zeros(x.shape[0], x.dtype)
    for j in range(x.shape[1]):
        total = total + mul(canon(x[:, j]), canon(v[j : j + 1]))
    return canon(mul(canon(np.full(1, a, x.dtype)), canon(total)))


def rows(**options: Any) -> dashi.Kernel:
    return dashi.kernel(
        ROWS, inputs="x[m,n] v[n]", outputs="result[m]", scalars="a", trips=lambda call: call.dims["n"], **options
    )


@FLOATS
def test_a_function_of_values_gives_the_bits_of_the_kernel_that_computes_the_same(device: Device, kind: Any) -> None:
    x, y = (np.random.default_rng(seed).standard_normal(1001).astype(kind) for seed in range(2))
    x[:4] = [np.nan, np.inf, -0.0, 1e-40]
    kernel = axpy()
    assert device.run(kernel, x, y, a=-0.3).numpy().tobytes() == device.run("axpy", x, y, a=-0.3).numpy().tobytes()
    step = device.bind(kernel, device.array(x), device.array(y), a=2)
    with device.program([step]) as program:
        program.run()
    assert step.outputs[0].numpy().tobytes() == device.run("axpy", x, y, a=2).numpy().tobytes()


def test_a_function_of_values_stretches_its_arrays(device: Device) -> None:
    x, y = np.arange(12, dtype=np.float32).reshape(3, 4), np.array([[1], [2], [3]], np.float32)
    assert device.run(axpy(), x, y, a=2).numpy().tolist() == (2 * x + y).tolist()


def test_a_function_of_integers_is_a_kernel_too(device: Device) -> None:
    kernel = dashi.kernel(
        "T apply(T x) { return (x ^ (x >> 3)) * T(a); }",
        scalars="a",
        dtypes=("u32",),
        reference=lambda x, a: (x ^ (x >> np.uint32(3))) * a,
    )
    x = np.array([0, 1, 99, 2**32 - 1, 12345678], np.uint32)
    assert device.run(kernel, x, a=5).numpy().tolist() == ((x ^ (x >> np.uint32(3))) * np.uint32(5)).tolist()


def test_a_whole_shader_knows_its_arrays_numbers_and_lengths(device: Device) -> None:
    x = np.random.default_rng(3).standard_normal((37, 5)).astype(np.float32)
    kernel = rows(reference=rows_reference)
    got = device.run(kernel, x, x[0].copy(), a=2).numpy()
    assert got.tobytes() == rows_reference(x, x[0].copy(), 2).tobytes()
    kernel.check(device)


def test_a_name_is_still_a_name() -> None:
    assert dashi.kernel("axpy") is dashi.kernels.get("axpy")
    with pytest.raises(KernelNotFoundError, match="there is no kernel 'Axpy'"):
        dashi.kernel("Axpy")
    with pytest.raises(InputError) as caught:
        dashi.kernel("axpy", inputs="x")
    assert str(caught.value) == (
        "'axpy' is the name of a kernel, but inputs belong to one from text. "
        "Fix: leave them away, or pass GLSL: `T apply(T x) { ... }`."
    )


def test_text_that_does_not_compile_is_shown_with_the_authors_own_line() -> None:
    with pytest.raises(CompileError) as caught:
        dashi.kernel("T apply(T x) {\n    T twice = x + x;\n    return twine;\n}", name="broken")
    assert str(caught.value) == (
        "shader broken/flat.f32 does not compile:\n"
        "  ERROR: text:3: 'twine' : undeclared identifier\n"
        "  ERROR: text:3: '' : compilation terminated\n"
        " Fix: correct the lines named above."
    )


def test_lines_count_on_after_an_include() -> None:
    text = '#include "philox.glsl"\nT apply(T x) {\n    return wrong;\n}'
    with pytest.raises(CompileError, match="ERROR: text:3: 'wrong' : undeclared identifier"):
        dashi.kernel(text)


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        ("T apply(T x, T y) { return x; }", {"name": "few"}, "the text of kernel 'few' does not define `T apply(T x)`"),
        ("T other(T x) { return x; }", {"name": "none"}, "the text of kernel 'none' defines neither apply nor main."),
        ("T apply(T x) { return x; }", {"inputs": "x["}, "inputs: 'x[' is no operand."),
        ("T apply(T x) { return x; }", {"inputs": ""}, "inputs is empty."),
        ("T apply(T x) { return x; }", {"inputs": "x:f99"}, "inputs: 'x:f99' has the element type 'f99'."),
        ("T apply(T x) { return x; }", {"scalars": "a[n]"}, "scalars: 'a[n]' is no scalar."),
        ("T apply(T x) { return x; }", {"inputs": "x[n]", "name": "odd"}, "kernel 'odd': an apply of values takes"),
        ("T apply(T x) { return x; }", {"outputs": "u v", "name": "odd"}, "kernel 'odd' has 1 inputs, 2 outputs"),
        ("T apply(T x) { return x; }", {"scalars": "stride", "name": "odd"}, "kernel 'odd': the scalar 'stride' has"),
        ("T apply(T x) { return x; }", {"dtypes": ("f16",), "name": "odd"}, "kernel 'odd': an apply of values has no"),
        ("T apply(T x) { return x; }", {"name": "Odd"}, "'Odd' is not a kernel name."),
        ("T apply(T x) { return x; }", {"inputs": "float", "name": "odd"}, "kernel 'odd' uses the name 'float'"),
        ("T apply(T x) { return x; }", {"portable": False, "name": "odd"}, "kernel 'odd' is not portable and has the"),
    ],
)
def test_an_interface_that_does_not_fit_is_refused_with_a_fix(text: str, options: Any, message: str) -> None:
    with pytest.raises(AbiError) as caught:
        dashi.kernel(text, **options)
    assert str(caught.value).startswith(message)
    assert " Fix: " in str(caught.value)


def test_text_that_is_no_unicode_is_refused_with_a_fix() -> None:
    with pytest.raises(AbiError, match=r"the text of a kernel is none: .*surrogates not allowed.* Fix: "):
        dashi.kernel("T apply(T x) { return x; } // \ud800", inputs="x")


def test_text_that_is_not_portable_is_refused_with_the_function_to_use() -> None:
    with pytest.raises(PortabilityError, match=r"it uses OpFDiv in apply\. Fix: use p_divide of portable\.glsl\."):
        dashi.kernel("T apply(T x) { return x / T(3); }")
    kernel = dashi.kernel("T apply(T x) { return x / T(3); }", portable=False, bound=1e-6, reference=lambda x: x / 3)
    with CpuDevice() as cpu:
        assert cpu.run(kernel, np.ones(4, np.float32)).numpy().shape == (4,)


def test_a_reference_that_disagrees_is_named_with_its_first_index_and_both_bits(vulkan: VulkanDevice) -> None:
    kernel = dashi.kernel("T apply(T x) { return x + T(1); }", reference=lambda x: x + x.dtype.type(2), name="off")
    with pytest.raises(TwinError) as caught:
        vulkan.run(kernel, np.zeros(3, np.float32))
    error = caught.value
    assert str(error).startswith(
        f"kernel 'off' on {vulkan.info.name!r} is not its reference (f32, x[64], normal values):"
    )
    assert error.index == 0
    assert {error.got[:2], error.expected[:2]} == {"0x"}
    assert f"(bits {error.got}, of the reference {error.expected}). Fix: correct the text" in str(error)
    with pytest.raises(TwinError):  # it is not taken for checked afterwards
        vulkan.run(kernel, np.zeros(3, np.float32))
    with pytest.raises(TwinError):
        kernel.check(vulkan)


def test_a_reference_is_compared_once_on_each_device(vulkan: VulkanDevice) -> None:
    calls: list[int] = []

    def reference(x: Any) -> Any:
        calls.append(x.size)
        return x + x

    kernel = dashi.kernel("T apply(T x) { return x + x; }", reference=reference)
    vulkan.run(kernel, np.ones(3, np.float32))
    compared = len(calls)
    assert compared
    vulkan.run(kernel, np.ones(5, np.float32))
    assert len(calls) == compared


def test_a_kernel_without_a_reference_says_that_it_is_unproved(vulkan: VulkanDevice) -> None:
    kernel = dashi.kernel("T apply(T x) { return x + x; }", name="twice")
    assert repr(kernel) == ("<Kernel twice(x) -> result, f32 f64; unproved: it has no reference to be checked against>")
    assert kernel.summary == "from text, unproved"
    assert vulkan.run(kernel, np.ones(3, np.float32)).numpy().tolist() == [2, 2, 2]
    with pytest.raises(InputError, match="has no NumPy reference, so that there is nothing to check it against"):
        kernel.check(vulkan)
    with CpuDevice() as cpu, pytest.raises(KernelError, match=r"it is unproved, and cpu cannot run it\. Fix:"):
        cpu.run(kernel, np.ones(3, np.float32))
    with NullDevice() as null:
        null.bind(kernel, null.zeros(3))
    assert "unproved" not in repr(axpy())


def test_what_a_run_records_of_its_kernels_says_which_are_unproved() -> None:
    kernels = {"twice": dashi.kernel("T apply(T x) { return x + x; }", name="twice"), "axpy": axpy(name="checked")}
    used = [
        (k, resolve_call(k, "f32", [(4,)] * len(k.inputs), {s.name: 1 for s in k.scalars})) for k in kernels.values()
    ]
    recorded = fingerprints(used)
    assert list(recorded) == ["checked/flat.f32", "twice/flat.f32 (unproved)"]
    binaries = kernels["twice"].binaries
    assert binaries is not None
    assert recorded["twice/flat.f32 (unproved)"] == hashlib.sha256(binaries.words("flat", "f32")).hexdigest()


def without_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiler, "installed", lambda: None)


def test_the_second_time_comes_from_the_cache_without_a_compiler(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = axpy()
    assert first.binaries is not None
    words = first.binaries.words("flat", "f32")
    (path,) = cache.iterdir()
    without_compiler(monkeypatch)
    again = axpy()
    assert again.binaries is not None
    assert (again.binaries.key, again.binaries.words("flat", "f32")) == (first.binaries.key, words)
    assert path.read_bytes()[64:] == words
    with pytest.raises(CompilerMissingError, match=r"Fix: pip install 'dashi-compute\[compile\]'"):
        dashi.kernel("T apply(T x) { return x; }")


def sealed(body: bytes) -> bytes:
    return hashlib.sha256(body).digest() + body


def test_a_cache_file_that_is_not_what_it_should_be_is_compiled_anew(cache: Path, tmp_path: Path) -> None:
    kernel = axpy()
    assert kernel.binaries is not None
    words = kernel.binaries.words("flat", "f32")
    (path,) = cache.iterdir()
    good = path.read_bytes()
    identity = good[32:64]
    dashi.kernel("T apply(T x, T y) { return x - y; }", inputs="x y", scalars="a")
    foreign = next(p for p in cache.iterdir() if p != path).read_bytes()
    elsewhere = tmp_path / "elsewhere"
    elsewhere.write_bytes(good)
    for bad in (b"", good[:-4], good[:-1] + b"\xff", foreign, sealed(identity + words[:-4]), sealed(identity + b"no")):
        path.write_bytes(bad)
        again = axpy()
        assert again.binaries is not None
        assert again.binaries.words("flat", "f32") == words
        assert path.read_bytes() == good
    path.unlink()
    os.symlink(elsewhere, path)
    axpy()
    assert not path.is_symlink()


def test_a_binary_for_another_interface_in_the_cache_is_compiled_anew(cache: Path) -> None:
    kernel = axpy()
    assert kernel.binaries is not None
    words = kernel.binaries.words("flat", "f32")
    (path,) = cache.iterdir()
    other = dashi.kernel("T apply(T x) { return x; }")
    assert other.binaries is not None
    path.write_bytes(sealed(path.read_bytes()[32:64] + kernel.binaries.words("strided", "f64")))
    again = axpy()
    assert again.binaries is not None
    assert again.binaries.words("flat", "f32") == words


def test_a_full_disk_is_said_and_does_no_harm(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("dashi._atomic_file.os.replace", full)
    with pytest.warns(RuntimeWarning, match=r"kernel 'axpy_text' works, but cannot be kept in .*No space left") as said:
        kernel = axpy(name="axpy_text")
    assert "Fix: make room there, or set DASHI_CACHE_DIR" in str(said[0].message)
    assert kernel.binaries is not None
    assert kernel.binaries.words("flat", "f32")


def test_functions_of_the_portable_include_are_there(device: Device) -> None:
    kernel = dashi.kernel(
        "T apply(T x) { return p_tanh(mul(b, x)); }", scalars="b", reference=lambda x, b: tanh(mul(b, x))
    )
    x = np.linspace(-3, 3, 65, dtype=np.float32)
    assert device.run(kernel, x, b=0.5).numpy().tobytes() == device.run("squash", x, alpha=0.5).numpy().tobytes()


def test_the_source_of_what_is_cached_is_part_of_its_name() -> None:
    keys = {
        kernel.binaries.key
        for kernel in (axpy(), dashi.kernel(AXPY + " ", inputs="x y", scalars="a"), rows())
        if kernel.binaries is not None
    }
    assert len(keys) == 3
    assert compiled.TOOLCHAIN == compiler.TOOLCHAIN


PICK = """
void main() {
    for (uint i = gl_GlobalInvocationID.x; i < items; i += stride) {
        U at = index[i] + U(shift);
        result[i] = canon(x[uint(at)]);
        place[i] = S(at);
    }
}
"""


def pick(**options: Any) -> dashi.Kernel:
    def reference(x: Any, index: Any, like: Any, shift: int) -> Any:
        at = index + index.dtype.type(shift)
        return canon(x[at.astype(np.int64)]), at.astype(like.dtype)

    settings: dict[str, Any] = {
        "inputs": "x[n] index:U[m] like:S[m]",
        "outputs": "result[m] place:S[m]",
        "scalars": "shift:u32",
        "types": {"U": ("u32", "u64"), "S": ("i32", "i64")},
        "reference": reference,
        "name": "pick",
    }
    return dashi.kernel(PICK, **(settings | options))


@pytest.mark.parametrize("index", [np.uint32, np.uint64])
@pytest.mark.parametrize("like", [np.int32, np.int64])
@FLOATS
def test_type_variables_are_what_the_arrays_of_a_call_are(device: Device, index: Any, like: Any, kind: Any) -> None:
    x = np.arange(7).astype(kind) / 3
    at = np.array([4, 0, 3], index)
    result, place = device.run(pick(), x, at, np.zeros(3, like), shift=2)
    assert result.dtype == kind
    assert np.array_equal(result.numpy(), x[[6, 2, 5]])
    assert np.array_equal(place.numpy(), np.array([6, 2, 5], like))
    assert place.numpy().dtype == like


def test_a_kernel_with_type_variables_is_checked_for_each_choice(vulkan: VulkanDevice) -> None:
    def wrong(x: Any, index: Any, like: Any, shift: int) -> Any:
        off = 1 if index.dtype == np.uint64 else 0  # for one of the types alone
        at = index + index.dtype.type(shift)
        return canon(x[at.astype(np.int64)]), at.astype(like.dtype) + like.dtype.type(off)

    kernel = pick(reference=wrong)
    x, like = np.arange(9, dtype=np.float32), np.zeros(2, np.int32)
    assert vulkan.run(kernel, x, np.array([1, 0], np.uint32), like, shift=1)[1].numpy().tolist() == [2, 1]
    with pytest.raises(TwinError, match="pick"):
        vulkan.run(kernel, x, np.array([1, 0], np.uint64), like, shift=1)


def test_arrays_that_no_type_variable_stands_for_are_refused() -> None:
    x, like = np.zeros(4, np.float32), np.zeros(2, np.int32)
    same = dashi.kernel(
        PICK.replace("S(at)", "at"),
        inputs="x[n] index:U[m] like:U[m]",
        outputs="result[m] place:U[m]",
        scalars="shift:u32",
        types={"U": ("i32", "u32")},
        name="same",
    )
    with CpuDevice() as cpu:
        with pytest.raises(DTypeError, match=r"index is f32, but U is one of u32, u64\. Fix: convert it: ind"):
            cpu.run(pick(), x, np.zeros(2, np.float32), like, shift=0)
        with pytest.raises(DTypeError, match=r"like is i32, but index is u32, and both are U\. Fix: convert one of"):
            cpu.run(same, x, np.zeros(2, np.uint32), like, shift=0)


TYPES: dict[str, tuple[dict[str, Any], str]] = {
    "small": ({"types": {"u": ("u32",)}}, r"'u' is no name for a type variable\. Fix: use capitals"),
    "taken": ({"types": {"T": ("u32",)}}, r"'T' is no name for a type variable"),
    "unused": ({"types": {"U": ("u32",), "S": ("i32",), "Q": ("u8",)}}, r"no input has the type variable 'Q'"),
    "unknown": (
        {"types": {"U": ("u33",), "S": ("i32",)}},
        r"the type variable 'U' stands for 'u33'\. Fix: list",
    ),
    "none": ({"types": {"U": (), "S": ("i32",)}}, r"the type variable 'U' stands for 'nothing'\. Fix: list element"),
}


@pytest.mark.parametrize("name", TYPES)
def test_type_variables_that_say_nothing_are_refused(name: str) -> None:
    options, text = TYPES[name]
    with pytest.raises(AbiError, match=text):
        pick(**options)


def test_a_function_of_values_has_no_type_variables() -> None:
    with pytest.raises(
        AbiError, match=r"takes arrays of one type, T, and no type variables\. Fix: write a whole shader"
    ):
        axpy(types={"U": ("u32",)})
