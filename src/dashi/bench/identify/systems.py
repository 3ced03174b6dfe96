"""Known operators whose rules a learner must find again: band energies on a tree, a reaction with diffusion, coupled
oscillators, and waves.

All are local: what a site does depends on its own values x and on their graph Laplacian, Lx = sum over neighbours of
(own - neighbour's). The increment of a site is a sum of terms of these, with coefficients that the learners do not
know. Each system also names candidate terms: the true ones among others that do not occur.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

Values = npt.NDArray[np.float64]
"""States are (sites, channels), or (states, sites, channels)."""


@dataclass(frozen=True, eq=False)
class System:
    """A local operator x -> x + terms(x, L x) truth, on a graph. `truth` has a row per candidate term."""

    name: str
    equation: str
    laplacian: Values
    names: tuple[str, ...]
    truth: Values
    terms: Callable[[Values, Values], Values]
    start: Callable[[np.random.Generator], Values]
    highest: float
    """States to compare whole operators on are drawn from 0 to this, every site by itself."""

    @property
    def sites(self) -> int:
        return len(self.laplacian)

    @property
    def channels(self) -> int:
        return self.truth.shape[1]

    def surroundings(self, x: Values) -> tuple[Values, Values]:
        """What a site knows: its own values, and their Laplacian."""
        return x, self.laplacian @ x

    def increment(self, x: Values) -> Values:
        """How much one step changes x."""
        return self.terms(*self.surroundings(x)) @ self.truth

    def trajectory(self, start: Values, steps: int) -> Values:
        """The states from the start on, (steps + 1, *start.shape)."""
        states = [start]
        for _ in range(steps):
            states.append(states[-1] + self.increment(states[-1]))
        return np.stack(states)

    def states(self, rng: np.random.Generator, count: int) -> Values:
        """States that no trajectory need pass through."""
        return rng.uniform(0, self.highest, (count, self.sites, self.channels))


def graph_laplacian(sites: int, edges: list[tuple[int, int]]) -> Values:
    """(L x)(v) = sum over neighbours w of x(v) - x(w)."""
    laplacian = np.zeros((sites, sites))
    for v, w in edges:
        laplacian[[v, w], [v, w]] += 1
        laplacian[[v, w], [w, v]] -= 1
    return laplacian


BANDS: Final = 3
DEPTH: Final = 5


def tree_bands() -> System:
    """E_b'(v) = D_b[E_b](v) + lambda sum over c != b of C[b, c] phi(E_c(v)) |D_c[E_c](v)| on a binary tree of 31 nodes,
    with D_b = (1 - leak_b) - spread_b L and phi = tanh.

    From the starts drawn here energies stay positive, so |D_c[E_c]| = D_c[E_c], and the coupling is a sum of
    phi(E_c) E_c and phi(E_c) L E_c.
    """
    sites = (1 << DEPTH) - 1
    leak, spread = np.array([0.01, 0.015, 0.02]), np.array([0.22, 0.12, 0.05])
    # Each band feeds one other and draws on the third; columns sum to 0, so the coupling moves energy and makes none.
    coupling = 0.06 * np.array([[0.0, 1.0, -0.7], [-0.8, 0.0, 0.7], [0.8, -1.0, 0.0]])
    bands = range(BANDS)
    kinds = ("E{}", "L E{}", "phi(E{}) E{}", "phi(E{}) L E{}", "E{}^2")
    names = tuple(kind.replace("{}", str(b)) for kind in kinds for b in bands)
    truth = np.zeros((len(names), BANDS))
    for b in bands:
        truth[b, b], truth[BANDS + b, b] = -leak[b], -spread[b]
    truth[2 * BANDS : 3 * BANDS] = coupling.T * (1 - leak)[:, None]
    truth[3 * BANDS : 4 * BANDS] = coupling.T * -spread[:, None]

    def terms(x: Values, diffused: Values) -> Values:
        phi = np.tanh(x)
        return np.concatenate([x, diffused, phi * x, phi * diffused, x * x], axis=-1)

    def start(rng: np.random.Generator) -> Values:
        return 0.6 + rng.gamma(2.0, 0.4, (sites, BANDS))

    edges = [((v - 1) // 2, v) for v in range(1, sites)]
    return System(
        "tree",
        "E_b' = D_b[E_b] + lambda sum_c C[b,c] phi(E_c) |D_c[E_c]|, 31 nodes, 3 bands",
        graph_laplacian(sites, edges),
        names,
        truth,
        terms,
        start,
        highest=2.5,
    )


RING: Final = 64


def reaction_diffusion() -> System:
    """Gray and Scott's reaction on a ring of 64 sites, one unit of time a step.

    u' = u - 0.16 L u - u v^2 + F (1 - u), v' = v - 0.08 L v + u v^2 - (F + k) v with F = 0.035, k = 0.06. (P. Gray and
    S. K. Scott, Chem. Eng. Sci. 38, 1983, doi 10.1016/0009-2509(83)80132-8.)
    """
    feed, kill = 0.035, 0.06
    names = ("1", "u", "v", "u^2", "u v", "v^2", "u^3", "u^2 v", "u v^2", "v^3", "L u", "L v")
    truth = np.zeros((len(names), 2))
    truth[names.index("1")] = feed, 0
    truth[names.index("u")] = -feed, 0
    truth[names.index("v")] = 0, -(feed + kill)
    truth[names.index("u v^2")] = -1, 1
    truth[names.index("L u"), 0], truth[names.index("L v"), 1] = -0.16, -0.08

    def terms(x: Values, diffused: Values) -> Values:
        u, v = x[..., 0], x[..., 1]
        powers = (np.ones_like(u), u, v, u * u, u * v, v * v, u**3, u * u * v, u * v * v, v**3)
        return np.concatenate([np.stack(powers, axis=-1), diffused], axis=-1)

    def start(rng: np.random.Generator) -> Values:
        x = np.stack([np.ones(RING), np.zeros(RING)], axis=-1)
        for _ in range(3):
            patch = (rng.integers(RING) + np.arange(rng.integers(4, 10))) % RING
            x[patch] = rng.uniform(0.3, 0.6), rng.uniform(0.2, 0.4)
        return x + 0.02 * rng.random(x.shape)

    edges = [(v, (v + 1) % RING) for v in range(RING)]
    return System(
        "reaction",
        "u' = u - 0.16 L u - u v^2 + F (1 - u), v' = v - 0.08 L v + u v^2 - (F + k) v, ring of 64",
        graph_laplacian(RING, edges),
        names,
        truth,
        terms,
        start,
        highest=1.0,
    )


OSCILLATORS: Final = 48


def coupled_oscillators() -> System:
    """Oscillators near their onset (Stuart and Landau), on a ring of 48, 0.1 of time a step.

    z' = z + 0.1 ((1 + 2 i) z - (1 + 0.5 i) |z|^2 z - 0.3 L z), z = a + i b. Alone each goes to a circle and round it;
    coupled, they come into step, or travel as waves. (Y. Kuramoto, Chemical Oscillations, Waves, and Turbulence, 1984,
    doi 10.1007/978-3-642-69689-3, ch. 2.)
    """
    dt, pull, turn, shear, couple = 0.1, 1.0, 2.0, 0.5, 0.3
    names = ("a", "b", "a^2", "a b", "b^2", "a^3", "a^2 b", "a b^2", "b^3", "L a", "L b")
    truth = np.zeros((len(names), 2))
    at = {name: j for j, name in enumerate(names)}
    truth[at["a"]], truth[at["b"]] = (dt * pull, dt * turn), (-dt * turn, dt * pull)
    # -(1 + i s) (a^2 + b^2) (a + i b): real part -(a - s b) r^2, imaginary part -(b + s a) r^2.
    truth[at["a^3"]], truth[at["a b^2"]] = (-dt, -dt * shear), (-dt, -dt * shear)
    truth[at["a^2 b"]], truth[at["b^3"]] = (dt * shear, -dt), (dt * shear, -dt)
    truth[at["L a"], 0] = truth[at["L b"], 1] = -dt * couple

    def terms(x: Values, diffused: Values) -> Values:
        a, b = x[..., 0], x[..., 1]
        powers = (a, b, a * a, a * b, b * b, a**3, a * a * b, a * b * b, b**3)
        return np.concatenate([np.stack(powers, axis=-1), diffused], axis=-1)

    def start(rng: np.random.Generator) -> Values:
        return rng.uniform(-1.2, 1.2, (OSCILLATORS, 2))

    edges = [(v, (v + 1) % OSCILLATORS) for v in range(OSCILLATORS)]
    return System(
        "oscillators",
        "z' = z + 0.1 ((1 + 2 i) z - (1 + 0.5 i) |z|^2 z - 0.3 L z), z = a + i b, ring of 48",
        graph_laplacian(OSCILLATORS, edges),
        names,
        truth,
        terms,
        start,
        highest=1.5,
    )


WAVES: Final = 48


def waves() -> System:
    """A wave field on a ring of 48 sites with a restoring force that stiffens, 0.1 of time a step.

    h' = h + 0.1 s, s' = s + 0.1 (-4 L h - 0.2 h^3 - 0.05 s) - 0.12 L s: height and speed; the last term damps what is
    short, so that explicit steps are stable.
    """
    names = ("h", "s", "h^2", "h s", "s^2", "h^3", "s^3", "L h", "L s")
    truth = np.zeros((len(names), 2))
    at = {name: j for j, name in enumerate(names)}
    truth[at["s"]] = 0.1, -0.005
    truth[at["h^3"], 1], truth[at["L h"], 1], truth[at["L s"], 1] = -0.02, -0.4, -0.12

    def terms(x: Values, diffused: Values) -> Values:
        h, s = x[..., 0], x[..., 1]
        return np.concatenate([np.stack((h, s, h * h, h * s, s * s, h**3, s**3), axis=-1), diffused], axis=-1)

    def start(rng: np.random.Generator) -> Values:
        place = 2 * np.pi * np.arange(WAVES) / WAVES
        shapes = [
            rng.normal() * np.cos(k * place + rng.uniform(0, 2 * np.pi)) / k for _ in range(2) for k in range(1, 7)
        ]
        return np.stack([sum(shapes[:6], start=np.zeros(WAVES)), sum(shapes[6:], start=np.zeros(WAVES))], axis=-1)

    edges = [(v, (v + 1) % WAVES) for v in range(WAVES)]
    return System(
        "waves",
        "h' = h + 0.1 s, s' = s + 0.1 (-4 L h - 0.2 h^3 - 0.05 s) - 0.12 L s, ring of 48",
        graph_laplacian(WAVES, edges),
        names,
        truth,
        terms,
        start,
        highest=1.5,
    )


SYSTEMS: Final = {
    "tree": tree_bands, "reaction": reaction_diffusion, "oscillators": coupled_oscillators, "waves": waves,
}  # fmt: skip
