"""The slaved closure on SciPy's (or NumPy's) own transforms: for a processor without Vulkan, and for training. It
agrees with the kernels to rounding."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from dashi.flow import grid
from dashi.flow._host_fft import Transforms
from dashi.flow.equations import Flow
from dashi.flow.grid import Floats
from dashi.flow.proxy.closure._energy import EnergyLimit, NoLimit
from dashi.flow.proxy.closure._tables import Band, Closure
from dashi.flow.proxy.galerkin import _terms as terms
from dashi.flow.proxy.galerkin._host import FastGalerkin
from dashi.flow.proxy.galerkin._operator import Galerkin
from dashi.flow.proxy.lowpass import codes

Complex = Any


@dataclass(frozen=True, eq=False)
class Tape:
    """What the adjoint needs of one tendency: the state, T before it was limited, r_j, and -u, -v, w_x, w_y of every
    a_i."""

    state: Complex
    unlimited: Complex
    advected: tuple[Complex, ...]
    fields: tuple[Any, ...]


class Chain:
    """Advections one after another, on half spectra (m, n, columns) times n^2, and their adjoint."""

    def __init__(self, band: Band, kind: Any) -> None:
        self.n, self.band = terms.smallest_grid(band.modes), band
        self.wide, self.narrow = (int(m[:, 1].max()) + 1 for m in (band.modes, band.schema.modes))
        self.kind, self._transforms = np.dtype(kind), Transforms(self.n)
        self._complex = np.result_type(kind, np.complex64)
        self._code = codes(self.n, band.schema.modes).astype(np.int64)[:, : self.narrow]
        wave_x, wave_y, inverse = grid.waves(Flow(self.n, length=band.schema.length))
        x, y, less = wave_x[None, : self.wide], wave_y[:, None], inverse[:, : self.wide]
        made = [-1j * y * less, 1j * x * less, 1j * x + 0 * y, 1j * y + 0 * x]
        self._factors: Complex = np.stack(made).astype(self._complex)[:, None]
        self._less = less.astype(kind)
        self._reach = self.on_grid(np.ones(len(band.modes), kind))

    def on_grid(self, table: Floats) -> Floats:
        """A table of all modes up to the reach, or of the held ones, on the half spectrum."""
        modes = self.band.modes if len(table) == len(self.band.modes) else self.band.schema.modes
        columns = self.wide if len(table) == len(self.band.modes) else self.narrow
        return np.ascontiguousarray(terms.grid_tables(self.n, modes, {"": table})[""][:, :columns])

    def enter(self, z: Floats) -> Complex:
        """Half spectra (m, n, narrow) of modes (m, 2 K)."""
        values = np.asarray(z, self.kind)
        chosen = (values[:, 0::2] + 1j * values[:, 1::2])[:, np.maximum(self._code // 2 - 1, 0)]
        chosen = np.where(self._code % 2 == 1, np.conj(chosen), chosen)
        return (np.where(self._code >= 2, chosen, 0) * float(self.n**2)).astype(self._complex)

    def leave(self, states: Complex) -> Floats:
        """The modes (m, 2 K) of half spectra."""
        modes = self.band.schema.modes
        chosen = states[:, modes[:, 0] % self.n, modes[:, 1]] / float(self.n**2)
        return np.stack([chosen.real, chosen.imag], axis=-1).reshape(len(states), -1)

    def advected(self, a: Complex) -> tuple[Complex, Any]:
        """N(a) up to the reach, and the fields that it was made of."""
        fields = self._transforms.back(self._factors[..., : a.shape[-1]] * a)
        u, v, w_x, w_y = fields
        return self._transforms.forward(u * w_x + v * w_y, self.wide) * self._reach, fields

    def pulled(self, fields: Any, adjoint: Complex) -> Complex:
        """The transpose of the derivative of N at a, applied to a gradient.

        With J(p, q) = p_y q_x - p_x q_y and psi = w / k^2, N(w) = -J(psi, w); by parts, its transposed derivative is
        g -> J(psi, g) - J(w, g) / k^2, without an error where products are free of aliasing."""
        u, v, w_x, w_y = fields
        g_x, g_y = self._transforms.back(self._factors[2:] * adjoint)
        carried = self._transforms.forward(u * g_x + v * g_y, self.wide)
        rotated = self._transforms.forward(w_y * g_x - w_x * g_y, self.wide)
        return -(carried + self._less * rotated) * self._reach


class Stack:
    """A closure's tables on the grid of a chain. It may feed `allowance` <w, w>, or, without one, whatever it does."""

    def __init__(self, chain: Chain, closure: Closure, allowance: float | None) -> None:
        self.chain, self.depth = chain, closure.depth
        plain = Flow(chain.n, length=chain.band.schema.length, dtype=chain.kind.name)
        self._limit = NoLimit() if allowance is None else EnergyLimit(plain, chain.narrow, allowance)
        self.keep = [chain.on_grid(row) for row in closure.keep]
        self.gain = [chain.on_grid(row) for row in closure.gain]
        self.drain = chain.on_grid(closure.drain)
        self.lift = [[chain.on_grid(closure.lift[i, j]) for j in range(i + 1)] for i in range(closure.depth)]

    def tendency(self, state: Complex) -> tuple[Complex, Tape]:
        """sum of gain_j r_j less what is drained, within its limit, narrow, of a narrow state."""
        first, fields = self.chain.advected(state)
        advected, tape = [first], [fields]
        for keep, lifts in zip(self.keep, self.lift, strict=True):
            a: Complex = lifts[0] * advected[0]
            for table, r in zip(lifts[1:], advected[1:], strict=True):
                a += table * r
            a[..., : self.chain.narrow] += keep * state
            advection, fields = self.chain.advected(a)
            advected.append(advection)
            tape.append(fields)
        parts = [gain * r[..., : self.chain.narrow] for gain, r in zip(self.gain, advected, strict=True)]
        total = sum(parts[1:], start=parts[0])
        total -= self.drain * state
        return self._limit.apply(state, total), Tape(state, total, tuple(advected), tuple(tape))

    def back(self, tape: Tape, adjoint: Complex, gradients: TableGradients) -> Complex:
        """Adjoint of `tendency`: gradient in the tendency in, in the state out; those in the tables are added to
        `gradients`."""
        chain, few = self.chain, self.chain.narrow
        adjoint, state_adjoint = self._limit.pull(tape.state, tape.unlimited, adjoint)
        state_adjoint = state_adjoint - self.drain * adjoint
        gradients.drain -= _dot(adjoint, tape.state)
        advected_adjoints: list[Complex] = []
        for j, (gain, r) in enumerate(zip(self.gain, tape.advected, strict=True)):
            gradients.gain[j] += _dot(adjoint, r[..., :few])
            wide = np.zeros_like(r)
            wide[..., :few] = gain * adjoint
            advected_adjoints.append(wide)
        for i in range(self.depth, 0, -1):
            a = chain.pulled(tape.fields[i], advected_adjoints[i])
            for j, table in enumerate(self.lift[i - 1]):
                gradients.lift[i - 1][j] += _dot(a, tape.advected[j])
                advected_adjoints[j] += table * a
            gradients.keep[i - 1] += _dot(a[..., :few], tape.state)
            state_adjoint += self.keep[i - 1] * a[..., :few]
        return state_adjoint + chain.pulled(tape.fields[0], advected_adjoints[0])[..., :few]


class TableGradients:
    """Sums of gradients in the tables of a closure, on the grid; `of_modes` gives them for its modes."""

    def __init__(self, chain: Chain, depth: int) -> None:
        self._chain = chain
        few, many = (chain.n, chain.narrow), (chain.n, chain.wide)
        self.keep, self.gain = np.zeros((depth, *few)), np.zeros((depth + 1, *few))
        self.drain, self.lift = np.zeros(few), np.zeros((depth, depth, *many))

    def of_modes(self) -> Closure:
        """Gradient in every table of the closure, each mode and its conjugate together."""
        band = self._chain.band
        held, every = band.schema.modes, band.modes
        tables = [self._taken(part, held) for part in (self.keep, self.gain, self.drain)]
        return Closure(tables[0], self._taken(self.lift, every), tables[1], tables[2])

    def _taken(self, on_grid: Floats, modes: Any) -> Floats:
        # A half spectrum holds both of a pair in its first column, and one of the two, for both, elsewhere.
        # States and gradients are n^2 times coefficients.
        return 2 / float(self._chain.n) ** 4 * on_grid[..., modes[:, 0] % self._chain.n, modes[:, 1]]


def _dot(a: Complex, b: Complex) -> Floats:
    return np.einsum("mij,mij->ij", a.real, b.real) + np.einsum("mij,mij->ij", a.imag, b.imag)


class FastSlaved(FastGalerkin):
    """A step of the closure for many states at once."""

    def __init__(self, operator: Galerkin, band: Band, closure: Closure, theta: float) -> None:
        super().__init__(operator)
        self._stack = Stack(Chain(band, operator.dtype), closure, theta * operator.flow.nu)

    def tendency(self, states: Complex) -> Complex:
        closed, _ = self._stack.tendency(states)
        return closed if self._force is None else closed + self._force
