"""The compiler wheel: pinned, deterministic, safe in threads, and kind when it is missing."""

from __future__ import annotations

import gc
import resource
import threading
from pathlib import Path

import pytest

from dashi.errors import CompileError, CompilerMissingError
from dashi.kernels import _build as build
from dashi.kernels import _compiler as compiler
from dashi.kernels._compiler import Compiler

SOURCE = """#version 460
layout(local_size_x = 64) in;
layout(set = 0, binding = 0, std430) buffer B { float x[]; };
void main() { x[gl_GlobalInvocationID.x] *= 2.0; }
"""


def test_the_pinned_wheel_is_the_extra_of_the_project() -> None:
    project = Path(__file__).parents[2] / "pyproject.toml"
    assert f'compile = ["{compiler.WHEEL}=={compiler.VERSION}"]' in project.read_text()
    assert compiler.available()
    assert compiler.TOOLCHAIN.startswith(f"{compiler.WHEEL} {compiler.VERSION} ")


def test_the_same_text_gives_the_same_bytes_in_every_thread() -> None:
    with Compiler() as shared:
        first = shared.compile(SOURCE, "x")
        got: list[bytes] = []
        threads = [threading.Thread(target=lambda: got.append(shared.compile(SOURCE, "x"))) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert got == [first] * 8


def test_two_compilers_do_not_disturb_each_other() -> None:
    with Compiler() as outer:
        first = outer.compile(SOURCE, "x")
        with Compiler() as inner:
            assert inner.compile(SOURCE, "x") == first
        assert outer.compile(SOURCE, "x") == first


def test_compiling_does_not_leak() -> None:
    with Compiler() as shared:
        bad = SOURCE.replace("2.0", "missing")

        def work() -> None:
            for _ in range(100):
                shared.compile(SOURCE, "x")
                with pytest.raises(CompileError):
                    shared.compile(bad, "x")

        work()
        gc.collect()
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        work()
        work()
        gc.collect()
        # A leak of one shader per compilation would be more than ten megabytes here.
        assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 4096


def test_a_closed_compiler_says_so() -> None:
    opened = Compiler()
    opened.close()
    opened.close()
    with pytest.raises(CompileError) as error:
        opened.compile(SOURCE, "x")
    assert str(error.value) == "shader x was given to a closed compiler. Fix: open a new Compiler."


def test_text_with_a_nul_is_refused() -> None:
    with Compiler() as opened, pytest.raises(CompileError) as error:
        opened.compile(SOURCE + "\0", "x")
    assert str(error.value) == "shader x holds a NUL character. Fix: remove it from the GLSL."


def test_text_that_is_no_unicode_is_refused() -> None:
    with Compiler() as opened, pytest.raises(CompileError, match=r"shader x is no text: .*surrogates not allowed"):
        opened.compile(SOURCE + "// \ud800", "x")


@pytest.mark.parametrize(
    "text",
    ["+".join(["1"] * 20_000), "\n#define A 1+1+1+1+1+1+1+1\n#define B A+A+A+A+A+A+A+A\n" + "+".join(["B"] * 200)],
)
def test_a_statement_that_would_end_the_process_is_refused_also_behind_macros(text: str) -> None:
    *macros, last = text.split("\n")
    source = "\n".join([SOURCE, *macros, f"int long_one() {{ return {last}; }}"])
    with Compiler() as opened, pytest.raises(CompileError, match=r"shader x has a statement of \d+ characters; 16384"):
        opened.compile(source, "x")


@pytest.mark.parametrize(
    ("installed", "text"),
    [
        (None, "building shaders needs the compiler wheel vkdispatch-vulkan-native 0.1.0."),
        ("9.9", "the compiler wheel is vkdispatch-vulkan-native 9.9, but binaries are built with 0.1.0 alone."),
    ],
)
def test_without_the_pinned_wheel_there_is_a_command_to_run(
    installed: str | None, text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compiler, "installed", lambda: installed)
    with pytest.raises(CompilerMissingError) as error:
        Compiler()
    assert str(error.value) == f"{text} Fix: pip install 'dashi-compute[compile]'"
    assert not compiler.available()


def test_loading_needs_no_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    import dashi.kernels

    monkeypatch.setattr(compiler, "installed", lambda: None)
    assert build.load(dashi.kernels.get("add"), "main", "f32").words
