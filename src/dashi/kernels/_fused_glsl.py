"""The numbered parts of the fused template in GLSL: structures of values, loads and stores, one of each for every
operand that a fused kernel can have. They stand before the shader's own file (`Shader.prelude`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

INPUTS: Final = 16
OUTPUTS: Final = 8
SCALARS: Final = 8
AXES: Final = 8
"""Most axes that are left after neighbours which every operand walks through alike have become one."""
STORAGE: Final = ("f32", "f64", "f16", "bf16", "u32", "i32", "u64", "i64", "u16", "i16", "u8", "i8", "bool")
FLOAT_STORAGE: Final = ("f32", "f64", "f16", "bf16")
"""Element types in memory whose numbers only formulas of floats read and write."""


def flat() -> str:
    """Vectors in, vectors out."""
    return (
        _structure("Vectors", "V", "x", INPUTS)
        + _values()
        + _structure("ResultVectors", "V", "y", OUTPUTS)
        + _each(INPUTS, lambda k: f"V load{k}(uint j) {{ return in{k}[j]; }}\n")
        + _each(OUTPUTS, lambda k: f"void store{k}(uint j, V v) {{ out{k}[j] = v; }}\n")
        + f"Vectors bring(uint j) {{ return Vectors({_list(INPUTS, 'load{}(j)')}); }}\n"
        + f"void tail(uint j, ResultVectors results) {{ {_stores('j')} }}\n"
        + f"Values lane_of(Vectors v, uint lane) {{ return Values({_list(INPUTS, 'flushed(v.x{}[lane])')}); }}\n"
        + f"#define JOIN_ALL {_list(OUTPUTS, 'JOIN(y{})')}\n"
    )


def strided() -> str:
    """Numbers of T, read where strides say."""
    return (
        _place()
        + _values()
        + _each(INPUTS, lambda k: f"T load{k}(Place at) {{ return in{k}[{_index(k)}]; }}\n")
        + _each(OUTPUTS, lambda k: f"void store{k}(uint i, T v) {{ out{k}[i] = v; }}\n")
        + f"Values bring(Place at) {{ return Values({_list(INPUTS, 'load{}(at)')}); }}\n"
        + f"void tail(uint i, Results results) {{ {_stores('i')} }}\n"
        + f"Values flushed_values(Values v) {{ return Values({_list(INPUTS, 'flushed(v.x{})')}); }}\n"
        + f"Results canonical(Results r) {{ return Results({_list(OUTPUTS, 'canon(r.y{})')}); }}\n"
    )


def mixed(*, floats: bool) -> str:
    """Words of 32 bits, from which numbers of any element type become values of T, and which these become again. Macros
    call every function once, so that the compiler keeps them."""
    served = [s for s in STORAGE if floats or s not in FLOAT_STORAGE]
    puts = _each(OUTPUTS, lambda k: " ".join(f"put_{to}{k}(i, w);" for to in ("word", "half", "byte")) + " ")
    pairs = _each(OUTPUTS, lambda k: f"put_wide{k}(i, uvec2(w)); ")
    return (
        _place()
        + _values()
        + _structure("Words", "uint", "w", OUTPUTS)
        + "bool ends_word(uint i, uint last);\n"
        + _each(INPUTS, lambda k: f"uint index{k}(Place at) {{ return {_index(k)}; }}\n")
        + _each(INPUTS, lambda k: f"uint word{k}(uint j) {{ return in{k}[j]; }}\n")
        + _each(OUTPUTS, _put)
        + f"#define EVERY_WORD(at) {_list(INPUTS, 'T(word{0}(index{0}(at)))')}\n"
        + f"#define READ_EVERY {' '.join(f'total += {_read(s)};' for s in served)}\n"
        + f"#define WRITE_EVERY {' '.join(map(_write, served))} {puts}{pairs}\n"
        + f"Results canonical(Results r) {{ return Results({_list(OUTPUTS, 'canon(r.y{})')}); }}\n"
        + f"const Words NO_WORDS = Words({_list(OUTPUTS, '0u')});\n"
    )


def width(storage: str) -> int:
    """Bytes of an element."""
    return 1 if storage == "bool" else int(storage.lstrip("bfiu")) // 8


def _values() -> str:
    return (
        "T flushed(T v);\nT canon(T v);\n"
        + _structure("Values", "T", "x", INPUTS)
        + _structure("Results", "T", "y", OUTPUTS)
        + f"#define EVERY_VALUE(v) {_list(INPUTS, 'v.x{}')}\n"
        + f"#define FIRST_VALUES(v) {_list(OUTPUTS, 'v.x{}')}\n"
        + f"#define OTHER_ZEROS {', '.join(['T(0)'] * (OUTPUTS - 1))}\n"
    )


def _place() -> str:
    """Coordinates of an element; the last axis is the fastest."""
    lines = "".join(f"at.c{a} = i % SIZE{a}; i /= SIZE{a}; " for a in reversed(range(1, AXES)))
    fields = ", ".join(f"c{a}" for a in range(AXES))
    return f"struct Place {{ uint {fields}; }};\nPlace place_of(uint i) {{ Place at; {lines}at.c0 = i; return at; }}\n"


def _index(k: int) -> str:
    return " + ".join([f"OFFSET{k}", *(f"at.c{axis} * STRIDE{k}_{axis}" for axis in range(AXES))])


def _put(k: int) -> str:
    """Writers of result k: whole words, a pair of them, and words that are full, or the last, of small elements."""
    return (
        f"void put_word{k}(uint i, uint w) {{ out{k}[i] = w; }}\n"
        f"void put_wide{k}(uint i, uvec2 w) {{ out{k}[2u * i] = w.x; out{k}[2u * i + 1u] = w.y; }}\n"
        f"void put_half{k}(uint i, uint w) {{ if (ends_word(i, 1u)) out{k}[i >> 1] = w; }}\n"
        f"void put_byte{k}(uint i, uint w) {{ if (ends_word(i, 3u)) out{k}[i >> 2] = w; }}\n"
    )


def _read(storage: str) -> str:
    return {
        8: f"from_{storage}(word0(low_word(w)), word0(high_word(w)))",
        4: f"from_{storage}(w)",
        2: f"from_{storage}(half_at(word0(half_word(w)), w))",
        1: f"from_{storage}(byte_at(word0(byte_word(w)), w))",
    }[width(storage)]


def _write(storage: str) -> str:
    return f"w += to_{storage}(v){'.x' if width(storage) == 8 else ''};"


def _structure(name: str, kind: str, letter: str, count: int) -> str:
    return f"struct {name} {{ {kind} {_list(count, letter + '{}')}; }};\n"


def _stores(place: str) -> str:
    return _each(OUTPUTS, lambda k: f"store{k}({place}, results.y{k}); ")


def _each(count: int, text: Callable[[int], str]) -> str:
    return "".join(text(k) for k in range(count))


def _list(count: int, text: str) -> str:
    return ", ".join(text.format(k) for k in range(count))
