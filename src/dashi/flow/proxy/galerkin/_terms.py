"""The Galerkin truncation of a flow to the modes that z holds, exactly, as tables and lists.

With w(x) = sum of w_k exp(i k x) over the held modes and their conjugates, the advection of vorticity is

    N_k = sum over pairs {p, q}, p + q = k, of -(p x q) (1/|p|^2 - 1/|q|^2) w_p w_q,   p x q = p_x q_y - p_y q_x

(R. H. Kraichnan, Phys. Fluids 10, 1967, doi 10.1063/1.1762301, section 2): quadratic, and it conserves energy and
enstrophy, triad by triad. The same on a grid: products of fields whose modes reach up to K are free of aliasing in
those modes where the grid has more than 3 K points along a side (S. Orszag, J. Atmos. Sci. 28, 1971).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from dashi.errors import InputError
from dashi.flow import grid
from dashi.flow._operator import steady_force
from dashi.flow._schemes import Tableau, coefficients, stages_of
from dashi.flow.equations import SMALLEST, Flow, Kolmogorov
from dashi.flow.grid import Floats
from dashi.flow.proxy.lowpass import codes
from dashi.flow.proxy.schema import Ints, places_of
from dashi.kernels.fft._roots import is_length
from dashi.kernels.portable import canon
from dashi.kernels.proxy._mode_triads import pack_words

MOST_PAIRS: Final = 1 << 25
"""Pairs of modes that are tried for triads: k_cut up to about 43."""


def smallest_grid(modes: Ints) -> int:
    """The smallest n of a solver on which products of fields of these modes are free of aliasing in them."""
    reach = int(np.abs(modes).max(initial=1))
    return next(n for n in range(SMALLEST, 8 * reach + 8, 2) if n > 3 * reach and is_length(n))


def decays(flow: Flow, modes: Ints, eddy: Floats) -> Floats:
    """L dt of modes: -((nu + nu_e) k^2 + nu_p k^(2 p) + mu) dt."""
    scale = grid.unit(flow)
    square = (modes**2).sum(axis=1) * (scale * scale)
    rate = (flow.nu + np.asarray(eddy, np.float64)) * square + flow.drag
    if flow.hyperviscosity:
        rate = rate + replace(flow, nu=0.0, drag=0.0).damping(square)
    return -rate * flow.dt


def mode_tables(flow: Flow, modes: Ints, eddy: Floats) -> Tableau:
    """The tables of the flow's scheme, one number for each mode; those of the mean keep what it is."""
    decay = decays(flow, modes, eddy)
    values, place = np.unique(decay, return_inverse=True)
    numbers = coefficients(flow.scheme, values, flow.dt)
    stages = stages_of(flow.scheme)
    states = {stage.terms[0][1] for stage in stages}
    mean = (modes == 0).all(axis=1)
    tables: dict[str, Floats] = {}
    for name in sorted({name for stage in stages for _, name in stage.terms}):
        row = np.where(mean, 1.0 if name in states else 0.0, numbers[name][place.reshape(-1)])
        tables[name] = canon(row.astype(flow.numpy_dtype))
    return Tableau(stages, tables)


def grid_tables(n: int, modes: Ints, tables: Mapping[str, Floats]) -> dict[str, Floats]:
    """Tables of modes on the half spectrum of an n x n grid, 0 for modes that are not held."""
    code = codes(n, modes).astype(np.int64)
    held, which = code >= 2, np.maximum(code // 2 - 1, 0)
    return {name: np.where(held, values[which], values.dtype.type(0)) for name, values in tables.items()}


def force_of(flow: Flow, modes: Ints) -> Floats:
    """The steady force on modes, (K, 2), in float64."""
    if not isinstance(flow.forcing, Kolmogorov):
        return np.zeros((len(modes), 2))
    return steady_force(flow, flow.forcing).reshape(-1, 2)[places_of(flow.n, modes)]


@dataclass(frozen=True, eq=False)
class Triads:
    """A list of triads: entry e adds weights[e] w_p w_q to its mode, with p and q (maybe conjugate) as words[e] says
    (`dashi.kernels.proxy._mode_triads`); those of mode k lie from ends[k] to ends[k + 1]."""

    weights: Floats
    words: Floats
    ends: Floats

    @property
    def longest(self) -> int:
        """The most triads of a mode."""
        return int(np.diff(self.ends.astype(np.int64)).max(initial=0))


def triads_of(modes: Ints) -> Triads:
    """All triads of modes (ky, kx), one of each conjugate pair, in float64. The box does not matter: a triad has no
    dimension."""
    count = len(modes)
    full = np.concatenate([modes, -modes])
    if len(full) * count > MOST_PAIRS:
        raise InputError(
            f"{count} modes have too many triads to list.", "use the strategy grid, whose work grows far more slowly."
        )
    owner, conjugate = np.tile(np.arange(count), 2), np.repeat([0, 1], count)
    reach = int(np.abs(full).max(initial=1))
    lookup = np.full((4 * reach + 1, 4 * reach + 1), -1)
    lookup[full[:, 0] + 2 * reach, full[:, 1] + 2 * reach] = np.arange(len(full))
    # For every output k and every p: q = k - p, where it is held; of (p, q) and (q, p) one is enough.
    apart = modes[:, None, :] - full[None, :, :]
    q = lookup[apart[..., 0] + 2 * reach, apart[..., 1] + 2 * reach]
    out, p = np.nonzero(q > np.arange(len(full))[None, :])
    q = q[out, p]
    square = (full**2).sum(axis=1).astype(np.float64)
    cross = full[p, 1] * full[q, 0] - full[p, 0] * full[q, 1]
    weight = -cross * (1.0 / square[p] - 1.0 / square[q])
    some = weight != 0
    out, p, q = out[some], p[some], q[some]
    words = pack_words(owner[p], owner[q], conjugate[p], conjugate[q])
    ends = np.searchsorted(out, np.arange(count + 1)).astype(np.uint32)
    return Triads(weight[some], words, ends)
