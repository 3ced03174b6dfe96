"""Data types and costs: the leaves that every other part may import."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final, cast

import numpy as np
import numpy.typing as npt

from dashi.errors import DTypeError

Shape = tuple[int, ...]
HostArray = npt.NDArray[np.generic]


@dataclass(frozen=True, eq=False, repr=False)
class DType:
    """A storable element type: its short name, NumPy type, GLSL type and features.

    It compares equal to NumPy's dtype and to everything that NumPy takes for it (`np.float32`, "float32"), hashes like
    NumPy's dtype, and NumPy takes it wherever a dtype belongs: `np.dtype(d)`, `np.zeros(3, d)`.

    NumPy has no bf16: values of it are float32 on the host (`numpy`), and u16 words, the upper halves of an fp32, in
    memory (`stored`). It compares equal to "bf16" and "bfloat16" alone.
    """

    name: str
    numpy: np.dtype[np.generic]
    glsl: str
    word: str
    features: frozenset[str] = frozenset()
    stored: np.dtype[np.generic] = field(init=False)
    """NumPy's type of an element in memory: what kernels' references see."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "stored", np.dtype(np.uint16) if self.name == "bf16" else self.numpy)

    @property
    def dtype(self) -> np.dtype[np.generic]:
        """NumPy's own dtype: `np.dtype` takes an object by this attribute."""
        return self.numpy

    @property
    def size(self) -> int:
        """Bytes per element."""
        return self.stored.itemsize

    @property
    def itemsize(self) -> int:
        """Bytes per element, under NumPy's name."""
        return self.stored.itemsize

    @property
    def kind(self) -> str:
        """NumPy's letter for the sort of number: f, i, u, or b for truth values."""
        return self.numpy.kind

    @property
    def is_float(self) -> bool:
        return self.numpy.kind == "f"

    @property
    def vector(self) -> str:
        """The GLSL type of 16 bytes of it, which devices load at once. Smaller elements have none as long: words are
        used."""
        return _VECTORS.get(self.name, "uvec4")

    def from_bytes(self, values: HostArray) -> HostArray:
        """The values that bytes of the device hold, flat. Any byte but 0 is True; bf16 is widened to float32."""
        words = self.words(values)
        if self.name != "bf16":
            return words
        return (words.astype(np.uint32) << np.uint32(16)).view(np.float32)

    def words(self, values: HostArray) -> HostArray:
        """The elements that bytes of the device hold, flat, as they are stored: bf16 as u16 words."""
        return values != 0 if self.kind == "b" else values.view(self.stored)

    def to_stored(self, values: HostArray) -> HostArray:
        """Values of the host as they are stored: float32 rounded to bf16 words, to the nearest, ties to even; NaN stays
        one, and so does the sign of 0. Values of other types are what they are."""
        if self.name != "bf16" or values.dtype == self.stored:
            return values
        bits = np.ascontiguousarray(values, np.float32).view(np.uint32).astype(np.uint64)
        rounded = (bits + 0x7FFF + (bits >> 16 & 1)) >> 16
        return np.where(np.isnan(values), bits >> 16 | 0x40, rounded).astype(np.uint16).reshape(values.shape)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, DType):
            return self.name == other.name
        if other is None:  # NumPy takes None for float64
            return False
        if isinstance(other, str) and other in _NAMES:
            return self.name == _NAMES[other]
        if self.name == "bf16":
            return False
        try:
            return self.numpy == np.dtype(cast("Any", other))
        except (TypeError, ValueError):
            return False

    def __hash__(self) -> int:
        return hash(self.name if self.name == "bf16" else self.numpy)

    def __str__(self) -> str:
        return "bfloat16" if self.name == "bf16" else self.numpy.name

    def __repr__(self) -> str:
        return f"DType({self})"


_VECTORS: Final = {
    "f32": "vec4", "f64": "dvec2", "u32": "uvec4", "i32": "ivec4", "u64": "u64vec2", "i64": "i64vec2",
}  # fmt: skip

# `word` is the integer type of the same size: kernels that only move data use it, so that no driver touches the bits.
# fp64 needs int64 because the portable maths works on the bits of doubles.
_ALL: Final = (
    DType("f32", np.dtype(np.float32), "float", "uint"),
    DType("f64", np.dtype(np.float64), "double", "uvec2", frozenset({"fp64", "int64"})),
    DType("f16", np.dtype(np.float16), "float16_t", "uint16_t", frozenset({"fp16"})),
    DType("bf16", np.dtype(np.float32), "uint16_t", "uint16_t", frozenset({"int16"})),
    DType("u16", np.dtype(np.uint16), "uint16_t", "uint16_t", frozenset({"int16"})),
    DType("i16", np.dtype(np.int16), "int16_t", "uint16_t", frozenset({"int16"})),
    DType("u32", np.dtype(np.uint32), "uint", "uint"),
    DType("i32", np.dtype(np.int32), "int", "uint"),
    DType("u64", np.dtype(np.uint64), "uint64_t", "uvec2", frozenset({"int64"})),
    DType("i64", np.dtype(np.int64), "int64_t", "uvec2", frozenset({"int64"})),
    DType("i8", np.dtype(np.int8), "int8_t", "uint8_t", frozenset({"int8"})),
    DType("u8", np.dtype(np.uint8), "uint8_t", "uint8_t", frozenset({"int8"})),
    # Truth values: bytes 0 and 1; any other byte counts as 1.
    DType("bool", np.dtype(np.bool_), "uint8_t", "uint8_t", frozenset({"int8"})),
)
DTYPES: Final[dict[str, DType]] = {d.name: d for d in _ALL}
"""The element types that arrays and kernels have."""

_NAMES: Final[dict[str, str]] = {**{name: name for name in DTYPES}, "bfloat16": "bf16"}
_BY_NUMPY: Final[dict[np.dtype[np.generic], DType]] = {d.numpy: d for d in _ALL if d.name != "bf16"}


def dtype(of: str | npt.DTypeLike | DType) -> DType:
    """The DType for a short name ("f32"), a NumPy dtype or anything NumPy understands."""
    if isinstance(of, DType):
        return of
    if isinstance(of, str) and of in _NAMES:
        return DTYPES[_NAMES[of]]
    try:
        named = np.dtype(of)
    except (TypeError, ValueError):
        named = None
    match = None if named is None else _BY_NUMPY.get(named)
    if match is None:
        raise DTypeError(f"dashi has no element type {of!r}.", _conversion(named))
    return match


def _conversion(named: np.dtype[np.generic] | None) -> str:
    """How values of a type that dashi does not have become values of one that it has, and none is lost."""
    if named is not None and named.kind == "c":
        return "store complex numbers as pairs of real ones, in a last axis of 2: np.stack([z.real, z.imag], axis=-1)."
    native = None if named is None else _BY_NUMPY.get(named.newbyteorder("="))
    return (
        f"convert to one of {', '.join(map(str, _ALL))}, "
        f"for instance with .astype(np.{native.numpy if native else 'float32'})."
    )


@dataclass(frozen=True)
class Cost:
    """What a piece of work costs, counted, not measured. Costs add."""

    flops: int = 0
    bytes: int = 0
    dispatches: int = 0

    def __add__(self, other: Cost) -> Cost:
        return Cost(self.flops + other.flops, self.bytes + other.bytes, self.dispatches + other.dispatches)

    def __mul__(self, times: int) -> Cost:
        return Cost(self.flops * times, self.bytes * times, self.dispatches * times)
