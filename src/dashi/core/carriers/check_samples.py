"""What a kernel is checked on: fields, alone or with further arrays, and transformations of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, cast

import numpy as np
import numpy.typing as npt

from dashi.core.carriers.carrier import Field, require_field
from dashi.errors import InputError
from dashi.runtime.array import host_array
from dashi.types import HostArray, Shape

Transform = Callable[[Any], Any]


@dataclass(frozen=True, eq=False)
class FieldSample:
    """A field and the further inputs of the kernel. Those of the field's shape (`moving`: a coherence, say) belong to
    its sites: they are moved and cut with it. Others (weights) are left as they are."""

    field: Field
    extras: tuple[HostArray, ...] = ()
    moving: tuple[bool, ...] = ()

    def with_field(self, field: Field) -> FieldSample:
        """Other trits at the same sites."""
        return FieldSample(field, self.extras, self.moving)

    def moved(self, move: Transform) -> FieldSample:
        """Field and moving extras through one transformation of sites."""
        pairs = zip(self.extras, self.moving, strict=True)
        extras = tuple(np.ascontiguousarray(move(x)) if moves else x for x, moves in pairs)
        return FieldSample(np.ascontiguousarray(move(self.field)), extras, self.moving)


@dataclass(frozen=True)
class Symmetry:
    """A transformation of fields. `moves_sites`: it moves sites (a translation), so that a coherence moves along;
    otherwise it acts on the values of the field alone (a sign flip)."""

    name: str
    apply: Transform
    moves_sites: bool = False

    def of(self, sample: FieldSample) -> FieldSample:
        return (
            sample.moved(self.apply) if self.moves_sites else sample.with_field(require_field(self.apply(sample.field)))
        )


SIGN_FLIP: Final = Symmetry("sign flip", np.negative)
QUARTER_TURN: Final = Symmetry("quarter turn", np.rot90, moves_sites=True)


def translation(axis: int, by: int = 1) -> Symmetry:
    """All sites along an axis, round the end."""
    return Symmetry(f"translation by {by} along axis {axis}", lambda x: np.roll(x, by, axis), moves_sites=True)


def reflection(axis: int) -> Symmetry:
    """The order of the sites along an axis, reversed."""
    return Symmetry(f"reflection of axis {axis}", lambda x: np.flip(x, axis), moves_sites=True)


def torus(ndim: int) -> tuple[Symmetry, ...]:
    """The symmetries of a periodic ring, square grid, ..., and the sign flip. Translations by one and reflections of
    every axis, and the quarter turn, generate all others."""
    moves = [move(axis) for axis in range(ndim) for move in (translation, reflection)]
    return (*moves, *((QUARTER_TURN,) if ndim == 2 else ()), SIGN_FLIP)


def named_symmetries(transforms: Mapping[str, Transform] | Iterable[Symmetry | Transform]) -> tuple[Symmetry, ...]:
    """Symmetries of a mapping from names to callables, or of a list of either; callables act on the field alone."""
    if isinstance(transforms, Mapping):
        named = cast("Mapping[str, Transform]", transforms)
        return tuple(Symmetry(name, apply) for name, apply in named.items())
    return tuple(s if isinstance(s, Symmetry) else Symmetry(getattr(s, "__name__", "symmetry"), s) for s in transforms)


def read_samples(entries: Iterable[Any]) -> tuple[FieldSample, ...]:
    """Samples from fields, or tuples of a field and further arrays."""
    samples: list[FieldSample] = []
    for one in entries:
        field, *extras = cast("tuple[Any, ...]", one) if isinstance(one, tuple) else (one,)
        trits = require_field(field)
        arrays: tuple[HostArray, ...] = tuple(host_array(x) for x in extras)
        samples.append(FieldSample(trits, arrays, tuple(x.shape == trits.shape for x in arrays)))
    if not samples:
        raise InputError("there are no samples to check the kernel on.", "pass fields, for instance fields((16, 16)).")
    return tuple(samples)


def fields(*shapes: Shape, seed: int = 0) -> Iterator[Field]:
    """Fields worth trying, the same at every call: empty, full of either sign, one site, stripes, a checkerboard, and
    random ones from sparse to full."""
    for shape in shapes:
        rng = np.random.default_rng(seed)
        yield np.zeros(shape, np.int8)
        yield np.ones(shape, np.int8)
        yield np.full(shape, -1, np.int8)
        one = np.zeros(shape, np.int8)
        one.reshape(-1)[one.size // 2 : one.size // 2 + 1] = -1
        yield one
        places: npt.NDArray[np.int64] = np.indices(shape).sum(axis=0)
        yield (1 - 2 * (places % 2)).astype(np.int8)
        yield (1 - 2 * (np.indices(shape)[-1] // 2 % 2)).astype(np.int8)
        for density in (0.1, 0.3, 0.6, 1.0):
            signs = 2 * rng.integers(0, 2, shape, dtype=np.int8) - 1
            yield np.where(rng.random(shape) < density, signs, 0).astype(np.int8)


def picture(field: Field) -> Sequence[str]:
    """Lines of `+`, `-` and `.`; none for fields of more than two dimensions or too large to read."""
    rows = np.atleast_2d(field)
    if rows.ndim != 2 or rows.shape[0] > 24 or rows.shape[1] > 48:
        return ()
    return ["".join(".+-"[int(v)] for v in row) for row in rows]
