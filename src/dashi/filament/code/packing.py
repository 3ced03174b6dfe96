"""The embedded code of a field: any prefix of the bytes decodes, and a longer one is never further from the field.

The bytes are a header, atoms by falling gain, and what is left of the field in an orthonormal basis, bit plane by
bit plane (`_zero_blocks`), all but the header in one range code. The encoder knows what a decoder would have after
every few bits, and marks the points at which the error is smaller than ever before; a decoder stands at the last
mark that its bytes make certain. So error never rises with the prefix, by construction and not on average. All
decisions are made with whole numbers and operations that IEEE 754 rounds correctly: the same field gives the same
bytes everywhere.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from dashi.errors import FileError, InputError
from dashi.filament.code import _atom_code as atom_code
from dashi.filament.code._header import CodeHeader, read_header
from dashi.filament.code._pursuit import fitted, pursue
from dashi.filament.code._range_coder import RangeDecoder, RangeEncoder, UncertainError
from dashi.filament.code._residuals import BASES, bands_of, coefficients_of, empty, field_of
from dashi.filament.code._zero_blocks import CONTEXTS, MARK, walk
from dashi.filament.threads.blobs import Floats, require_field
from dashi.flow._resample import resample

DEFAULT_ERROR: Final = 1e-3
_PIECE: Final = 16
"""Bits between marks, at least."""
_SMALLEST_ERROR: Final = 1e-12
_COUNTS: Final = (0, 8, 16, 32, 64)
"""Numbers of atoms that are tried, until two in a row are no better."""
_LEAST_GAIN: Final = 1e-9
"""The error of a mark is below that of the last by more than rounding, as a share."""
_MEAN: Final = 0.1
_ALL: Final = CONTEXTS + atom_code.CONTEXTS


@dataclass(frozen=True, eq=False)
class Packed:
    """The code of a field, and what its parts take."""

    data: bytes
    error: float
    """The norm of the difference to the field that it decodes to, over that of the field."""
    basis: str
    atoms: int
    bits: dict[str, int]
    """Description length by part: header, geometry (places), carrier (circulation), internal (radii), residual."""
    curve: tuple[tuple[int, float], ...]
    """Bytes, and the error of the field that so many decode to, at marks."""

    def __repr__(self) -> str:
        return f"<Packed: {len(self.data)} bytes, {self.atoms} atoms and {self.basis}, error {self.error:.3g}>"


@dataclass(frozen=True, eq=False)
class Unpacked:
    """A field, and how much of its code was there."""

    field: Floats
    complete: bool
    missing: str
    """What a prefix lacks, in words; empty where nothing is missing."""
    atoms: int
    marks: int


def pack(
    field: Any, *, max_error: float | None = None, max_bytes: int | None = None, basis: str = "auto",
    atoms: int | str = "auto",
) -> Packed:  # fmt: skip
    """The code of a square periodic field, up to a relative error (0.001 unless told) or a number of bytes.

    `basis` is `wavelets`, `modes` or `auto`, which tries both and takes the shorter; `atoms` is a number, at most, or
    `auto`, which tries several. Raises InputError.
    """
    values = _require(field, max_error, max_bytes, basis, atoms)
    bases = BASES if basis == "auto" else (basis,)
    counts = _COUNTS if isinstance(atoms, str) else (atoms,)
    pursued = pursue(values, max(counts))
    best: Packed | None = None
    worse = 0
    for count in dict.fromkeys(min(count, len(pursued)) for count in counts):
        gaussians = fitted(values, pursued[:count])
        for name in bases:
            tried = _pack(values, max_error, max_bytes, name, gaussians)
            if best is None or _badness(tried) < _badness(best):
                best, worse = tried, -1
        worse += 1
        if worse == 2:
            break
    assert best is not None
    return best


def _badness(packed: Packed) -> tuple[float, ...]:
    return (len(packed.data), packed.error)


def _require(field: Any, max_error: float | None, max_bytes: int | None, basis: str, atoms: int | str) -> Floats:
    values = require_field(field)
    if max_error is not None and max_bytes is not None:
        raise InputError("both `max_error=` and `max_bytes=` are set.", "choose one of them.")
    if max_error is not None and not _SMALLEST_ERROR <= max_error < 1:
        raise InputError(f"`max_error=` is {max_error!r:.40}.", f"use a share from {_SMALLEST_ERROR:g} to below 1.")
    if max_bytes is not None and not max_bytes > 0:
        raise InputError(f"`max_bytes=` is {max_bytes!r:.40}.", "use 32 or more.")
    if basis not in (*BASES, "auto"):
        raise InputError(f"there is no basis {basis!r:.40}.", f"use auto, {' or '.join(BASES)}.")
    if isinstance(atoms, str) and atoms != "auto":
        raise InputError(f"`atoms=` is {atoms!r:.40}.", "use a number, or auto.")
    if not isinstance(atoms, str) and not 0 <= atoms <= atom_code.MOST:
        raise InputError(f"`atoms=` is {atoms!r:.40}.", f"use 0 to {atom_code.MOST}.")
    largest = float(np.abs(values).max())
    if not (1e-140 < largest < 1e140) and largest:
        raise InputError(f"the field has values of {largest:g}.", "scale it to ordinary numbers.")
    size = math.sqrt(float(np.cumsum(values * values)[-1]) / values.size)
    mean = abs(float(np.cumsum(values)[-1])) / values.size
    if mean > _MEAN * size:
        raise InputError(
            f"the field has a mean of {mean:.3g}, with a root mean square of {size:.3g}; vorticity in a periodic box "
            "has none.",
            "subtract it: field - field.mean().",
        )
    return values


class _Counting:
    """A coder that counts its bits."""

    def __init__(self, coder: RangeEncoder | RangeDecoder) -> None:
        self.coder = coder
        self.bits = 0

    def bit(self, context: int, bit: int = 0) -> int:
        self.bits += 1
        return self.coder.bit(context, bit)

    def even(self, bit: int = 0) -> int:
        self.bits += 1
        return self.coder.even(bit)


class _Writing:
    """A code while it grows: the error of what it decodes to, and its last mark."""

    def __init__(self, squares: float, header: CodeHeader, max_error: float | None, max_bytes: int | None) -> None:
        self.encoder = RangeEncoder(_ALL)
        self.coder = _Counting(self.encoder)
        self.header = header
        self.total = squares
        self.best = squares
        self.target = 0.0 if max_error is None else (max_error * max_error) * squares * (1.0 - _LEAST_GAIN)
        self.most = max_bytes
        self.marks = 0
        self.good = 0
        self.data = b""
        self.done = squares <= self.target
        self.marked = 0
        self.curve: list[tuple[int, float]] = []

    def mark(self, squares: float) -> None:
        """A point at which a decoder may stop, if it is nearer to the field there than ever before."""
        worse = squares >= self.best * (1.0 - _LEAST_GAIN)
        self.encoder.bit(MARK, int(worse))
        self.marks += 1
        self.marked = self.coder.bits
        if worse:
            return
        self.best, self.good = squares, self.marks
        size = self.header.size(self.marks)
        if self.most is not None and size + len(self.encoder) + 5 > self.most:
            data = self.encoder.finished()
            self.done = size + len(data) > self.most
            if self.done:
                self.good, self.best = self.fitting
                return
        self.curve.append((size + len(self.encoder) + 1, math.sqrt(max(squares, 0.0) / self.total)))
        if squares <= self.target:
            self.done = True
        if self.most is not None or self.done:
            self.data = self.encoder.finished()
            self.fitting = (self.good, self.best)

    fitting: tuple[int, float] = (0, 0.0)


def _pack(
    values: Floats, max_error: float | None, max_bytes: int | None, basis: str, gaussians: list[atom_code.Gaussian]
) -> Packed:
    """The code with these atoms, and the rest of the field in this basis."""
    n = values.shape[0]
    squares = float(np.cumsum(values * values)[-1])
    if squares == 0.0:
        data = CodeHeader(n=n, basis=basis, finest=0, planes=0, atoms=0, marks=0).with_body(b"")
        return Packed(data, 0.0, basis, 0, {"header": 8 * len(data)}, ())
    aim = max_error if max_error is not None else (DEFAULT_ERROR if max_bytes is None else _SMALLEST_ERROR)
    if max_error is None and max_bytes is None:
        max_error = aim
    amplitude = atom_code.amplitude_exponent(gaussians)
    atoms = [coded for atom in gaussians if (coded := atom_code.coded(atom, n, amplitude)).amplitude]
    left = values
    for atom in atoms:
        left = left - atom_code.render([atom], n, amplitude)
    truth = coefficients_of(basis, left)
    largest = float(np.abs(truth).max())
    # The finest plane: far below what the error asks of a coefficient, if all of them had the same.
    finest = math.frexp(aim * math.sqrt(squares) / n)[1] - 3
    planes = max(0, math.frexp(largest)[1] - finest) if largest > 0 else 0
    header = CodeHeader(n=n, basis=basis, finest=finest, planes=planes, atoms=len(atoms), marks=0, amplitude=amplitude)
    if max_bytes is not None and max_bytes < header.size(0):
        raise InputError(
            f"`max_bytes={max_bytes}` is less than the header of {header.size(0)} bytes.", "allow 32 bytes or more."
        )
    writing = _Writing(squares, header, max_error, max_bytes)
    writing.fitting = (0, squares)
    bits = _write_atoms(writing, values, atoms, n, amplitude)
    if not writing.done:
        _write_residual(writing, truth, basis, n, finest, planes)
    if not writing.done or not writing.data:
        writing.data = writing.encoder.finished()
    data = header.with_marks(writing.good).with_body(writing.data)
    error = math.sqrt(max(writing.best, 0.0) / squares)
    if max_error is not None and error > max_error:
        raise InputError(f"an error of {max_error:g} is below what rounding allows.", "allow a larger `max_error=`.")
    bits["header"] = 8 * (len(data) - len(writing.data))
    bits["residual"] = 8 * len(data) - sum(bits.values())
    return Packed(data, error, basis, len(atoms), bits, tuple(writing.curve))


def _write_atoms(
    writing: _Writing, values: Floats, atoms: list[atom_code.CodedAtom], n: int, amplitude: int
) -> dict[str, int]:
    """Codes the atoms, each followed by a mark; the bits of their parts."""
    bits = {"geometry": 0, "carrier": 0, "internal": 0}
    left = values
    for atom in atoms:
        for part, used in atom_code.write(writing.coder, atom, n, CONTEXTS).items():
            bits[part] += used
        left = left - atom_code.render([atom], n, amplitude)
        writing.mark(float(np.cumsum(left * left)[-1]))
        if writing.done:
            break
    return bits


def _write_residual(writing: _Writing, truth: Floats, basis: str, n: int, finest: int, planes: int) -> None:
    unit = math.ldexp(1.0, finest)
    bands, wheres = bands_of(basis, n, truth / unit)
    exact = [np.ascontiguousarray(np.pad(truth[where] / unit, 1)).ravel() for where in wheres]
    here = [np.zeros_like(values) for values in exact]
    # Views: numbers of NumPy would make each step dearer.
    views: dict[int, tuple[Any, Any]] = {
        id(band): (exact[index].data, here[index].data) for index, band in enumerate(bands)
    }
    squares, plane = 0.0, planes
    for band, block, old in walk(writing.coder, bands, range(planes - 1, -1, -1)):
        if block.plane != plane:
            # Summed anew: differences of large squares would lose what is small beside them.
            plane = block.plane
            others = [float(np.cumsum((a - b) ** 2)[-1]) for a, b in zip(exact, here, strict=True)]
            squares = sum(others)
        values, known = views[id(band)]
        size, new = values[block.place], block.value
        known[block.place] = new
        squares += (new - size) ** 2 - (old - size) ** 2
        if writing.coder.bits - writing.marked >= _PIECE:
            writing.mark(squares * unit * unit)
            if writing.done:
                return
    writing.mark(squares * unit * unit)


def unpack(data: bytes, *, n: int | None = None) -> Unpacked:
    """The field that a code, or a prefix of one, decodes to; on a grid of n x n points where `n` is set. Raises
    FileError for what is no code, was edited, or ends within the header."""
    header, body = read_header(data)
    if n is not None and not 4 <= n <= 4096:
        raise InputError(f"`n=` is {n!r:.40}.", "use 4 to 4096 points along a side.")
    reading = _Reading(header, body)
    complete = reading.read()
    if complete and not header.is_sound(body):
        raise FileError("the code was edited, or bytes follow its end.", "get it again from where it was packed.")
    field = reading.field()
    missing = "" if complete else f"{reading.good} of {header.marks} marks are there; the rest is missing"
    if n is not None and n != header.n:
        field = resample(field[None, None], n)[0, 0]
    return Unpacked(field, complete, missing, min(reading.good, len(reading.atoms)), reading.good)


class _Reading:
    """A code while it is read."""

    def __init__(self, header: CodeHeader, body: bytes) -> None:
        self.header = header
        self._decoder = RangeDecoder(_ALL, body)
        self.coder = _Counting(self._decoder)
        self.atoms: list[atom_code.CodedAtom] = []
        self.bands, self.wheres = bands_of(header.basis, header.n)
        self.marks = 0
        self.good = 0
        self.marked = 0
        self.sure: dict[tuple[int, int], float] = {}
        """Values of coefficients at the last good mark, by band and place."""
        self._since: dict[tuple[int, int], float] = {}
        self.good_atoms = 0

    def read(self) -> bool:
        """Reads up to the last mark that is certain; whether that is all."""
        header = self.header
        try:
            for _ in range(header.atoms):
                if self.marks >= header.marks:
                    break
                self.atoms.append(atom_code.read(self.coder, header.n, CONTEXTS))
                self._mark()
            numbers = {id(band): number for number, band in enumerate(self.bands)}
            if self.marks < header.marks:
                for band, block, _ in walk(self.coder, self.bands, range(header.planes - 1, -1, -1)):
                    self._since[numbers[id(band)], block.place] = block.value
                    if self.coder.bits - self.marked >= _PIECE:
                        self._mark()
                        if self.marks >= header.marks:
                            break
                else:
                    self._mark()
        except UncertainError:
            return False
        return self.marks >= header.marks

    def _mark(self) -> None:
        worse = self._decoder.bit(MARK)
        self.marks += 1
        self.marked = self.coder.bits
        if not worse:
            self.good, self.good_atoms = self.marks, len(self.atoms)
            self.sure.update(self._since)
            self._since = {}

    def field(self) -> Floats:
        """The field at the last good mark."""
        header = self.header
        values = empty(header.basis, header.n)
        for number, (band, where) in enumerate(zip(self.bands, self.wheres, strict=True)):
            part = values[where]
            stride = band.strides[0]
            for (owner, place), value in self.sure.items():
                if owner == number:
                    part[place // stride - 1, place % stride - 1] = value
        field = (
            field_of(header.basis, values * math.ldexp(1.0, header.finest)) if self.sure else np.zeros((header.n,) * 2)
        )
        for atom in self.atoms[: self.good_atoms]:
            field = field + atom_code.render([atom], header.n, header.amplitude)
        return field
