"""Whatever the bytes, the SPIR-V reader answers with a module or with a SpirvError."""

from __future__ import annotations

import contextlib
import struct
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dashi.kernels
from dashi.errors import KernelError, SpirvError
from dashi.kernels import _build as build
from dashi.kernels import _glsl as glsl
from dashi.kernels._compiler import Compiler
from dashi.kernels.spirv._module import MAGIC, parse
from dashi.kernels.spirv._ops import OPS
from dashi.kernels.spirv._portable_lint import forbid_contraction, lint_portable
from dashi.kernels.spirv._reflect import reflect
from dashi.kernels.spirv._structure import check_structure

U32 = st.integers(0, (1 << 32) - 1)
SMALL = st.one_of(st.integers(0, 60), U32)


@pytest.fixture(scope="module")
def real() -> bytes:
    kernel = dashi.kernels.get("axpy")
    with Compiler() as compiler:
        return compiler.compile(glsl.source(kernel, "main", "f64"), "axpy")


def read(data: bytes) -> None:
    """The whole path of a binary from outside: every stage may refuse it, none may stumble."""
    kernel = dashi.kernels.get("axpy")
    stages: list[Callable[[], object]] = [
        lambda: check_structure(parse(data)),
        lambda: reflect(parse(data)),
        lambda: lint_portable(forbid_contraction(parse(data)), "fuzz"),
        lambda: build.validate(data, kernel, "main", "f64"),
    ]
    for stage in stages:
        with contextlib.suppress(KernelError):
            stage()


@given(st.binary(max_size=400))
def test_random_bytes_are_refused(data: bytes) -> None:
    with pytest.raises(SpirvError):
        parse(data)


@given(st.lists(st.tuples(st.sampled_from(sorted(OPS)), st.lists(SMALL, max_size=8)), max_size=40), st.integers(1, 80))
@settings(max_examples=300)
def test_random_instructions_never_trip_the_reader(code: list[tuple[int, list[int]]], bound: int) -> None:
    words = [MAGIC, 0x10500, 0, bound, 0]
    for op, operands in code:
        words += [(len(operands) + 1) << 16 | op, *operands]
    read(struct.pack(f"<{len(words)}I", *words))


@given(st.lists(st.tuples(st.floats(0, 1, exclude_max=True), SMALL), min_size=1, max_size=6))
@settings(max_examples=300)
def test_changed_words_never_trip_the_reader(real: bytes, changes: list[tuple[float, int]]) -> None:
    words = list(struct.unpack(f"<{len(real) // 4}I", real))
    for place, value in changes:
        words[int(place * len(words))] = value
    read(struct.pack(f"<{len(words)}I", *words))


@given(st.data())
@settings(max_examples=200)
def test_cut_doubled_and_swapped_instructions_never_trip_the_reader(real: bytes, data: st.DataObject) -> None:
    module = parse(real)
    chunks = [
        struct.pack(f"<{len(i.words) + 1}I", (len(i.words) + 1) << 16 | i.info.number, *i.words)
        for i in module.instructions
    ]
    a, b = (data.draw(st.integers(0, len(chunks) - 1)) for _ in range(2))
    match data.draw(st.sampled_from(["cut", "double", "swap"])):
        case "cut":
            del chunks[a]
        case "double":
            chunks.insert(b, chunks[a])
        case _:
            chunks[a], chunks[b] = chunks[b], chunks[a]
    read(real[:20] + b"".join(chunks))


@given(st.floats(0, 1, exclude_max=True))
def test_every_truncation_is_refused(real: bytes, where: float) -> None:
    with pytest.raises(SpirvError):
        check_structure(parse(real[: int(where * len(real))]))
