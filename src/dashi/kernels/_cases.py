"""Inputs for the cases of a kernel: named distributions, the same arrays for the same seed on every machine."""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable
from typing import Any, Final, cast

import numpy as np
import numpy.typing as npt

from dashi.errors import AbiError, InputError
from dashi.kernels.abi import Case, Kernel, Operand
from dashi.types import DTYPES, DType, HostArray, Shape

Words = npt.NDArray[Any]
Maker = Callable[[np.random.Generator, int, DType], HostArray]


def inputs(kernel: Kernel, case: Case, variant: str, distribution: str, seed: int) -> dict[str, HostArray]:
    """Every input of a case by name: those in `Case.fill` from the case's own function, float ones from the
    distribution, those of type T in an integer variant from random words."""
    if distribution not in DISTRIBUTIONS:
        raise InputError(f"there is no distribution {distribution!r}.", f"use one of {', '.join(DISTRIBUTIONS)}.")
    arrays: dict[str, HostArray] = {}
    for index, operand in enumerate(kernel.inputs):
        # Each input has its own stream, so that adding one does not change the others.
        label = zlib.crc32(f"{kernel.name} {distribution} {operand.name}".encode())
        rng = np.random.default_rng([seed, label, index])
        arrays[operand.name] = _input(kernel, operand, case, DTYPES[variant], DISTRIBUTIONS[distribution], rng)
    return arrays


def _input(
    kernel: Kernel, operand: Operand, case: Case, variant: DType, maker: Maker, rng: np.random.Generator
) -> HostArray:
    shape: Shape = tuple(case.shapes[operand.name])
    kind = variant if operand.dtype == "T" else DTYPES[operand.dtype]
    if operand.name in case.fill:
        array = np.asarray(case.fill[operand.name](rng, shape))
        if operand.dtype == "T":
            array = kind.to_stored(array.astype(kind.numpy))
    elif kind.is_float:
        array = maker(rng, math.prod(shape), kind).reshape(shape)
    elif operand.dtype == "T":
        # An integer variant of a kernel that moves or mixes data: any word will do.
        array = np.frombuffer(rng.bytes(math.prod(shape) * kind.size), dtype=kind.stored).reshape(shape)
        if kind.kind == "b":
            array = (array.view(np.uint8) & 1).astype(np.bool_)
    else:
        raise AbiError(
            f"kernel {kernel.name!r} has a case without a `fill` for {operand.name}.",
            "give one: only float inputs are filled by themselves.",
        )
    if array.shape != shape or array.dtype != kind.stored:
        raise AbiError(
            f"kernel {kernel.name!r}: the `fill` of {operand.name} made {array.dtype}{array.shape} "
            f"instead of {kind.stored}{shape}.",
            "return an array of the shape and type asked for.",
        )
    return array


def _normal(rng: np.random.Generator, n: int, kind: DType) -> HostArray:
    return kind.to_stored(rng.standard_normal(n).astype(kind.numpy))


def _integers(rng: np.random.Generator, n: int, kind: DType) -> HostArray:
    return kind.to_stored(rng.integers(-8, 9, n).astype(kind.numpy))


def _uniform_wide(rng: np.random.Generator, n: int, kind: DType) -> HostArray:
    """Every normal exponent alike, both signs."""
    return _floats(rng, n, kind, 1, _form(kind).top)


def _subnormal_heavy(rng: np.random.Generator, n: int, kind: DType) -> HostArray:
    """Half subnormal, most of the rest near the canonical threshold, some ordinary."""
    form = _form(kind)
    parts = (
        _floats(rng, n, kind, 0, 1),
        _floats(rng, n, kind, max(form.tiny - 6, 0), form.tiny + 6),
        _floats(rng, n, kind, 1, max(form.tiny, 2)),
        _normal(rng, n, kind),
    )
    return np.choose(rng.choice(4, n, p=(0.5, 0.25, 0.15, 0.1)), parts)


def _adversarial(rng: np.random.Generator, n: int, kind: DType) -> HostArray:
    """Every awkward value with every other: drawn from a table, with some ordinary numbers between."""
    table = specials(kind)
    drawn = table[rng.integers(0, len(table), n)]
    return np.where(rng.random(n) < 0.8, drawn, _normal(rng, n, kind))


def specials(kind: DType) -> HostArray:
    """NaNs with payloads, infinities, zeros, subnormals, the neighbourhoods of every threshold, exact powers."""
    form = _form(kind)
    sign = 1 << (form.bits - 1)
    unity, infinity, mantissa = form.bias << form.fraction, form.top << form.fraction, (1 << form.fraction) - 1
    quiet = 1 << (form.fraction - 1)
    edges = [1, form.tiny, form.tiny // 2, form.bias // 2, form.bias - form.fraction, form.top - 1]
    # The square root of a threshold is where products of equals begin to be flushed.
    edges += [(form.tiny + form.bias) // 2, (1 + form.bias) // 2, form.bias + form.fraction + 1, form.bias + 1]
    values = [0, 1, 2, mantissa, mantissa - 1, quiet, unity, unity + 1, unity - 1, infinity, infinity - 1]
    values += [infinity | quiet, infinity | quiet | 0x123, infinity | 1, infinity | mantissa]
    for exponent in edges:
        power = max(exponent, 1) << form.fraction
        values += [power - 1, power, power + 1, power | mantissa]
    both = [v | s for v in values for s in (0, sign)]
    return np.array(both, dtype=form.word).view(kind.stored)


class _Form:
    """The layout of a float type; `tiny` is the exponent field of the canonical threshold."""

    def __init__(self, bits: int, fraction: int, tiny_power: int) -> None:
        self.bits, self.fraction = bits, fraction
        self.top = (1 << (bits - 1 - fraction)) - 1
        self.bias = self.top // 2
        self.tiny = self.bias + tiny_power
        self.word = np.dtype(f"u{bits // 8}")


def _form(kind: DType) -> _Form:
    # Halves have no canonical form: subnormals are numbers like others there, and the threshold is theirs.
    if kind.name == "bf16":
        return _Form(16, 7, -102)
    return {2: _Form(16, 10, -14), 4: _Form(32, 23, -102), 8: _Form(64, 52, -969)}[kind.size]


def _floats(rng: np.random.Generator, n: int, kind: DType, low: int, high: int) -> HostArray:
    """Random signs and fractions, exponent fields from low up to, but without, high."""
    form = _form(kind)
    whole = (1 << form.bits) - 1
    words = cast("Words", rng.integers(0, whole, n, dtype=form.word, endpoint=True))
    exponents = rng.integers(low, high, n).astype(form.word)
    keep = form.word.type(whole ^ (form.top << form.fraction))
    return ((words & keep) | (exponents << form.word.type(form.fraction))).view(kind.stored)


DISTRIBUTIONS: Final[dict[str, Maker]] = {
    "normal": _normal,
    "uniform_wide": _uniform_wide,
    "adversarial": _adversarial,
    "subnormal_heavy": _subnormal_heavy,
    "integers": _integers,
}
