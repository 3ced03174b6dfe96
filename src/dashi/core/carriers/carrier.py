"""The ternary carrier: fields of -1, 0 and +1 as support times sign, packed on a device.

A field s in T^Omega, T = {-1, 0, +1}, is a set of sites (its support) and a sign for each of them; it is never a mass.
Three packings hold it without loss, and every operation takes any of them:

- "trits2": two bits per site, one of support and one of sign, sixteen sites to a word;
- "trits5": five trits to a byte, in base 3: 1.6 bits per site;
- "planes": a support plane of one bit per site and a sign plane of one bit per supported site, with tables of ranks.

Everything is computed by kernels on the field's device; what comes back to the host is an exact number, or a field
that was asked for. No operation creates support unless `grow=True` allows it, and then the result says so (`grown`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, Literal, get_args

import numpy as np
import numpy.typing as npt

from dashi.errors import DTypeError, InputError, ShapeError
from dashi.kernels._trits import words_to_bits
from dashi.runtime.array import Array, host_array
from dashi.runtime.device import Device
from dashi.types import Shape

Packing = Literal["trits2", "trits5", "planes"]
Field = npt.NDArray[np.int8]
PACKINGS: Final[tuple[Packing, ...]] = get_args(Packing)
_PLANES: Final = ("support", "signs", "blocks", "supers", "count")


@dataclass(frozen=True)
class Counts:
    """How many sites are +1, -1 and 0."""

    plus: int
    minus: int
    zero: int

    @property
    def support(self) -> int:
        return self.plus + self.minus


@dataclass(frozen=True)
class Defect:
    """How far two fields are apart."""

    sites: int
    """Sites where they differ."""
    opposite: int
    """Sites where both have support, with opposite signs."""

    @property
    def total(self) -> int:
        """The sum of |b - a| over all sites."""
        return self.sites + self.opposite

    @property
    def most(self) -> int:
        """The largest |b - a|: 0, 1 or 2."""
        return 2 if self.opposite else min(self.sites, 1)


@dataclass(frozen=True, eq=False)
class Carrier:
    """A ternary field on a device. Frozen: operations give new fields. Closing the device frees it."""

    device: Device
    shape: Shape
    packing: Packing
    parts: Mapping[str, Array]
    """The packed words, by the names that the packing's kernel gives them."""
    grown: bool = False
    """Whether support was allowed to grow anywhere on the way to this field."""

    # In and out

    @classmethod
    def from_numpy(cls, device: Device, field: npt.ArrayLike, packing: Packing = "trits2") -> Carrier:
        """The field of an array of integers -1, 0 and +1, of any shape."""
        return _packed(device, device.array(require_field(field)), packing)

    @classmethod
    def from_parts(
        cls, device: Device, support: npt.ArrayLike, signs: npt.ArrayLike, packing: Packing = "trits2"
    ) -> Carrier:
        """The field with this support (booleans) and these signs (+1 or -1), one for each supported site in order."""
        held, values = np.asarray(support), np.asarray(signs)
        if held.dtype != np.bool_:
            raise DTypeError(f"a support is an array of booleans, not of {held.dtype}.", "pass field != 0.")
        if values.shape != (int(held.sum()),):
            raise ShapeError(
                f"{int(held.sum())} sites have support, but the signs have shape {values.shape}.",
                "pass one sign for each supported site, in the order of the sites.",
            )
        field = np.zeros(held.shape, np.int8)
        field[held] = require_field(values)
        if np.count_nonzero(field) != values.size:
            raise InputError("a sign is 0.", "pass +1 or -1; a site without sign is not in the support.")
        return cls.from_numpy(device, field, packing)

    @classmethod
    def admit(cls, device: Device, x: Any, tau: float, packing: Packing = "trits2") -> Carrier:
        """PDA admissibility P(x): +1 (accept) where x >= tau, -1 (reject) where x <= -tau, 0 between and where x is
        NaN. x is float32 or float64, on the host or on the device."""
        return _packed(device, device.run("ternary_threshold", x, tau=tau), packing)

    def numpy(self) -> Field:
        """The field as int8 on the host."""
        return self.unpack().numpy().astype(np.int8, copy=False)

    def pack(self, packing: Packing) -> Carrier:
        """Give the field in another packing; itself where it has that packing already."""
        if packing == self.packing:
            return self
        return replace(_packed(self.device, self.unpack(), packing), grown=self.grown)

    def unpack(self) -> Array:
        """The field as int8 on the device, for kernels that take it so."""
        given = [self.parts[name] for name in (_PLANES[:4] if self.packing == "planes" else ("packed",))]
        kernel = "pq_unpack_bits" if self.packing == "planes" else f"unpack_{self.packing}"
        flat = self.device.run(kernel, *given, n=self.size)
        return self.device.part(flat, 0, self.shape)  # the kernels give lists, whose bytes are those of the grid

    # What it is

    @property
    def size(self) -> int:
        """Number of sites."""
        return math.prod(self.shape)

    @property
    def nbytes(self) -> int:
        """Bytes that it takes on the device as it is packed."""
        return sum(part.nbytes for part in self.parts.values())

    def support(self) -> npt.NDArray[np.bool_]:
        """Where the field is not zero; only the support plane is read back."""
        return words_to_bits(self.pack("planes").parts["support"].numpy(), self.size).reshape(self.shape)

    def signs(self) -> Field:
        """+1 or -1 for each supported site, in order: `field[support] = signs`."""
        planes = self.pack("planes").parts
        minus = words_to_bits(planes["signs"].numpy(), _number(planes["count"]))
        return np.where(minus, -1, 1).astype(np.int8)

    def popcount(self) -> Counts:
        """How many sites are +1, -1 and 0."""
        counts = self.device.run("ternary_popcount", self._words(), n=self.size).numpy()
        return Counts(*(int(n) for n in counts))

    def dot(self, other: Carrier) -> int:
        """The sum of the products of both fields, exactly."""
        return _number(self.device.run("ternary_dot", self._words(), self._match(other)))

    def defect(self, other: Carrier) -> Defect:
        """How far the other field is from this one."""
        counts = self.device.run("ternary_defect", self._words(), self._match(other)).numpy()
        return Defect(*(int(n) for n in counts))

    def description_length(self, bits_per_code: int = 0, residual_bytes: int = 0) -> int:
        """Bits that describe it: n for the support, one sign and one code for each supported site, and a residual."""
        planes = self.pack("planes").parts
        return _number(
            self.device.run(
                "description_length",
                planes["support"],
                n=self.size,
                bits_per_code=bits_per_code,
                residual_bytes=residual_bytes,
            )
        )

    # What is done with it

    def majority(
        self,
        radius: int = 1,
        eta: int = 1,
        *,
        centre: int = 1,
        weights: npt.ArrayLike | None = None,
        grow: bool = False,
    ) -> Carrier:
        """M(r, eta): on the support, the sign of the sum over the periodic box of that radius where its magnitude
        reaches eta, else 0. The site itself counts `centre` times; `weights` (odd lengths, its middle the site's own)
        replace box and centre. `grow=True` lets sites without support gain it, and the result is marked `grown`."""
        field = self.unpack()
        if weights is None:
            signs = self.device.run("ternary_majority", field, radius=radius, eta=eta, centre=centre, grow=int(grow))
        else:
            numbers = np.asarray(weights)
            if numbers.dtype.kind not in "iu":
                raise DTypeError(
                    f"weights are integers, not {numbers.dtype}.", "scale and round them: sums of integers are exact."
                )
            grid = np.atleast_2d(numbers).astype(np.int32)
            signs = self.device.run("ternary_majority_weighted", field, grid, eta=eta, grow=int(grow))
        return self._next(signs, grown=grow)

    def annihilate(self, coherence: Any, eps: float = 0.0) -> Carrier:
        """The field where its coherence exceeds eps, 0 elsewhere: no sign changes, no support appears."""
        return self._next(self.device.run("ternary_annihilate", self.unpack(), coherence, eps=eps))

    def annihilate_pairs(self, radius: int = 1) -> Carrier:
        """The field without the sites that have both signs in the periodic box of that radius round them."""
        return self._next(self.device.run("ternary_annihilate_pairs", self.unpack(), radius=radius))

    def _next(self, field: Array, grown: bool = False) -> Carrier:
        return replace(_packed(self.device, field, self.packing), grown=self.grown or grown)

    def _words(self) -> Array:
        return self.pack("trits2").parts["packed"]

    def _match(self, other: Carrier) -> Array:
        if other.shape != self.shape:
            raise ShapeError(
                f"a field of shape {self.shape} does not compare with one of shape {other.shape}.",
                "pass fields of one shape.",
            )
        if other.device is not self.device:
            raise InputError(
                f"the other field lives on {other.device.info.name!r}, not on {self.device.info.name!r}.",
                "move it: Carrier.from_numpy(device, other.numpy()).",
            )
        return other.pack("trits2").parts["packed"]

    def __repr__(self) -> str:
        return f"Carrier(shape={self.shape}, {self.packing}, {self.nbytes} bytes on {self.device.info.name!r})"


def require_field(values: npt.ArrayLike) -> Field:
    """The values as a new int8 field; an error unless they are integers -1, 0 and +1."""
    host = host_array(values)
    if host.dtype.kind not in "iu":
        raise DTypeError(
            f"a ternary field holds integers, not {host.dtype}.",
            "project real values with Carrier.admit(device, x, tau), or convert with .astype(np.int8).",
        )
    wrong = np.argwhere((host != 0) & (host != 1) & (host.astype(np.int64) != -1))
    if wrong.size:
        site = tuple(int(i) for i in wrong[0])
        raise InputError(f"a ternary field holds -1, 0 and +1, but site {site} is {host[site]}.", "pass trits.")
    return host.astype(np.int8)


def _packed(device: Device, field: Array, packing: Packing) -> Carrier:
    if packing not in PACKINGS:
        raise InputError(f"there is no packing {packing!r}.", f"pass one of {', '.join(PACKINGS)}.")
    parts: dict[str, Array]
    if packing == "planes":
        parts = dict(zip(_PLANES, device.run("pq_pack_bits", field), strict=True))
    else:
        parts = {"packed": device.run(f"pack_{packing}", field)}
    return Carrier(device, field.shape, packing, parts)


def _number(array: Array) -> int:
    """The one number that an array holds."""
    return int(array.numpy().reshape(-1)[0])
