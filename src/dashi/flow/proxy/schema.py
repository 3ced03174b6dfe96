"""The layout of z, the compact state of a flow: which modes it holds, in which order, and the scalars after them.

    z = [ low modes: re, im, re, im, ... | anchors: re, im, ... | energy, enstrophy, mid energy, high energy ]

Modes are Fourier coefficients of vorticity, divided by n^2 as the solver's; of each conjugate pair one is held. The low
modes are all with 0 < |k| <= k_cut (|k| in units of 2 pi / L), row by row of the half spectrum; anchors are chosen ones
of the mid band, k_cut < |k| <= mid_cut. The scalars are means over the box of the whole field: energy (u^2 + v^2) / 2,
enstrophy w^2 / 2, and the energies of the mid band and of all beyond it.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from operator import index
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from dashi.errors import InputError
from dashi.flow import grid
from dashi.flow.equations import LARGEST_NUMBER, Flow
from dashi.kernels.hash._blake3 import hexdigest128

VERSION: Final = 1
"""Version of the layout. It rises when the same numbers would mean something else."""
SCALARS: Final = ("energy", "enstrophy", "mid_energy", "high_energy")
MID: Final = 1.5
"""The mid band ends at so many times k_cut, unless told otherwise."""
MOST_ANCHORS: Final = 65_536

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Schema:
    """The layout of the z of an n x n grid. `anchors` are (ky, kx); mid_cut = 0 means 1.5 k_cut where it fits."""

    n: int
    k_cut: float
    mid_cut: float = 0.0
    anchors: tuple[tuple[int, int], ...] = ()
    length: float = 2 * math.pi

    def __post_init__(self) -> None:
        Flow(self.n, length=self.length)
        cut = (self.n - 1) // 3
        for name in ("k_cut", "mid_cut"):
            value: object = getattr(self, name)
            # A whole number may be larger than any float.
            if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) < LARGEST_NUMBER:
                raise InputError(f"{name} is {repr(value)[:40]}.", "pass a finite number.")
            object.__setattr__(self, name, float(value))
        if not 1 <= self.k_cut <= cut:
            raise InputError(
                f"k_cut is {self.k_cut:g}; a grid of {self.n} x {self.n} points keeps wave numbers up to {cut}.",
                f"use a k_cut from 1 to {cut}, or a finer grid.",
            )
        if not self.mid_cut:
            object.__setattr__(self, "mid_cut", max(self.k_cut, min(MID * self.k_cut, float(cut))))
        if not self.k_cut <= self.mid_cut <= cut:
            raise InputError(
                f"mid_cut is {self.mid_cut:g}, k_cut is {self.k_cut:g}.", f"use a mid_cut from k_cut to {cut}."
            )
        object.__setattr__(self, "length", float(self.length))
        self._check_anchors()

    def _check_anchors(self) -> None:
        anchors = _pairs(self.anchors)
        if len(anchors) > MOST_ANCHORS:
            raise InputError(f"there are {len(anchors)} anchors.", f"use at most {MOST_ANCHORS}.")
        if len(set(anchors)) < len(anchors):
            raise InputError(f"the {len(anchors)} anchors hold a mode twice.", "name every mode once.")
        for ky, kx in anchors:
            inside = self.k_cut**2 < ky * ky + kx * kx <= self.mid_cut**2
            if not inside or not (kx > 0 or (kx == 0 and ky > 0)):
                raise InputError(
                    f"the anchor (ky, kx) = ({ky}, {kx}) is not in the half of the mid band that is held.",
                    f"use modes with {self.k_cut:g} < |k| <= {self.mid_cut:g} and kx > 0, or kx = 0 and ky > 0.",
                )
        object.__setattr__(self, "anchors", anchors)

    @cached_property
    def low(self) -> Ints:
        """(ky, kx) of the low modes, (M, 2)."""
        return half_plane(self.n, 0.0, self.k_cut)

    @cached_property
    def mid(self) -> Ints:
        """(ky, kx) of the modes of the mid band, of which anchors can be chosen."""
        return half_plane(self.n, self.k_cut, self.mid_cut)

    @cached_property
    def modes(self) -> Ints:
        """(ky, kx) of all modes that are held, in their order: low modes, then anchors."""
        return _fixed(np.concatenate([self.low, np.array(self.anchors, np.int64).reshape(-1, 2)]))

    @cached_property
    def places(self) -> Ints:
        """Where the held modes lie in the half spectrum (n, n/2 + 1), flat."""
        return _fixed(places_of(self.n, self.modes))

    @property
    def numbers(self) -> int:
        """Numbers that the low modes take: 2 M."""
        return 2 * len(self.low)

    @property
    def size(self) -> int:
        """Numbers in a z."""
        return self.numbers + 2 * len(self.anchors) + len(SCALARS)

    @property
    def parts(self) -> dict[str, slice]:
        """Where each part of a z lies."""
        held = self.numbers + 2 * len(self.anchors)
        parts = {
            "low": slice(0, self.numbers),
            "anchors": slice(self.numbers, held),
            "modes": slice(0, held),
            "scalars": slice(held, self.size),
        }
        return parts | {name: slice(held + j, held + j + 1) for j, name in enumerate(SCALARS)}

    @property
    def parameters(self) -> dict[str, int | float | str]:
        """Plain numbers and text, for files and certificates."""
        named = " ".join(f"{ky},{kx}" for ky, kx in self.anchors) or "none"
        return {
            "n": self.n, "k_cut": self.k_cut, "mid_cut": self.mid_cut, "length": self.length, "anchors": named,
        }  # fmt: skip

    @classmethod
    def restore(cls, parameters: Mapping[str, Any]) -> Schema:
        """The inverse of `parameters`. Raises InputError."""
        names = {"n", "k_cut", "mid_cut", "length", "anchors"}
        if set(parameters) != names:
            odd = min(names ^ set(parameters))
            raise InputError(
                f"a schema with {odd!r} missing or too much is none of ours.",
                f"give exactly {', '.join(sorted(names))}.",
            )
        n, text = parameters["n"], parameters["anchors"]
        if type(n) is not int or not isinstance(text, str) or len(text) > 12 * MOST_ANCHORS:
            raise InputError(f"the schema's n or anchors are damaged: n = {n!r}.", "write the file again.")
        numbers = {name: parameters[name] for name in ("k_cut", "mid_cut", "length")}
        if not all(type(value) in (int, float) for value in numbers.values()):
            raise InputError("the schema's cuts or length are not numbers.", "write the file again.")
        return cls(n, numbers["k_cut"], numbers["mid_cut"], _anchors(text), numbers["length"])

    @property
    def digest(self) -> str:
        """Tells layouts apart: 32 hexadecimal digits of the version and the parameters."""
        return hexdigest128(json.dumps([VERSION, self.parameters], sort_keys=True).encode())

    def require_flow(self, flow: Flow) -> None:
        """Refuses a flow on another grid or box."""
        if (flow.n, flow.length) != (self.n, self.length):
            raise InputError(
                f"the flow has {flow.n} x {flow.n} points in a box of {flow.length:g}, the schema is for {self.n} x "
                f"{self.n} in {self.length:g}.",
                f"use a flow on the grid of the schema, or a schema for this one: Schema(n={flow.n}, k_cut=..., "
                f"length={flow.length!r}), with a k_cut from 1 to {flow.cut}.",
            )


def half_plane(n: int, above: float, up_to: float) -> Ints:
    """(ky, kx) of one of each conjugate pair with above < |k| <= up_to that an n x n grid keeps, row by row."""
    square = grid.squares(n)
    rows, columns = grid.rows(n)[:, None], grid.columns(n)[None, :]
    inside = (square > above * above) & (square <= up_to * up_to) & grid.dealiased(n)
    chosen = inside & ((columns > 0) | (rows > 0))
    ky, kx = np.nonzero(chosen)
    return _fixed(np.stack([grid.rows(n)[ky], grid.columns(n)[kx]], axis=1).astype(np.int64))


def places_of(n: int, modes: Ints) -> Ints:
    """Where modes (ky, kx) lie in the half spectrum of an n x n grid, flat."""
    return (modes[:, 0] % n) * (n // 2 + 1) + modes[:, 1]


def _fixed(values: Any) -> Ints:
    made = np.ascontiguousarray(values, np.int64)
    made.setflags(write=False)
    return made


def _pairs(anchors: Any) -> tuple[tuple[int, int], ...]:
    """Anchors as pairs of whole numbers."""
    try:
        pairs = tuple((index(ky), index(kx)) for ky, kx in anchors)
    except (TypeError, ValueError) as error:
        raise InputError(
            f"the anchors are no pairs of whole numbers: {error}.", "pass pairs (ky, kx), such as ((0, 4), (4, 1))."
        ) from error
    return pairs


def _anchors(text: str) -> tuple[tuple[int, int], ...]:
    try:
        pairs = [one.split(",") for one in text.split()] if text != "none" else []
        return tuple((int(ky), int(kx)) for ky, kx in pairs)
    except ValueError as error:
        raise InputError(f"the schema's anchors are damaged: {text[:40]!r}.", "write the file again.") from error
