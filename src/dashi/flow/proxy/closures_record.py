"""The steps of training on a device: rollouts that leave every stage behind, and the way back through them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dashi.flow.operator import Loaded
from dashi.flow.proxy.closures_operator import SUMS, chained
from dashi.flow.schemes import Sum
from dashi.runtime.array import Array
from dashi.runtime.device import Device, Step
from dashi.types import Array as HostArray
from dashi.types import Shape

Term = tuple[Array, str]
"""Modes, and the name of the table that weights them."""


@dataclass(frozen=True)
class Rolls:
    """So many rollouts at once, of so many frames, with so many steps between; `held` numbers in a state, on an
    n x n grid."""

    members: int
    frames: int
    steps: int
    depth: int
    held: int
    n: int
    stages: int

    @property
    def count(self) -> int:
        """Stages of a rollout."""
        return self.frames * self.steps * self.stages

    @property
    def stacks(self) -> int:
        """Arrays that hold all stages."""
        return 5 + 3 * self.depth

    @property
    def shape(self) -> Shape:
        """Of the modes of all members."""
        return (self.members, self.n, self.n // 2 + 1, 2)


@dataclass(frozen=True, eq=False)
class Stacked:
    """The same array of every stage, one after another: slopes in the tables are sums over all."""

    whole: Array
    parts: Sequence[Array]


class Record:
    """Arrays of one iteration, and the steps that fill them. The caller writes `start` and the tables, runs `forward`,
    reads `seen`, writes slopes in it to `late`, runs `back` and reads `dots`."""

    def __init__(
        self, device: Device, rolls: Rolls, stages: Sequence[Sum], tables: Mapping[str, HostArray], kind: Any
    ) -> None:
        self._device, self._rolls, self._stages, self._kind = device, rolls, stages, kind
        self.tables = Loaded(device, tables)
        self._inputs, self._slopes = self._stack(), self._stack()
        self._lifted = [self._stack() for _ in range(rolls.depth)]
        self._advected, self._pulled = ([self._stack() for _ in range(rolls.depth + 1)] for _ in range(2))
        flat = (rolls.members, rolls.held)
        self.start = device.empty(flat, kind)
        self.seen, self.late = (device.empty((rolls.frames * flat[0], flat[1]), kind) for _ in range(2))
        sizes = self.start.nbytes
        self._ends = [device.part(self.seen, j * sizes, flat) for j in range(rolls.frames)]
        self._begins = [device.part(self.late, j * sizes, flat) for j in range(rolls.frames)]
        names = [f"keep_{i}" for i in range(rolls.depth)] + [f"gain_{j}" for j in range(rolls.depth + 1)]
        names += [f"lift_{i}{j}" for i in range(rolls.depth) for j in range(i + 1)]
        row = (1, rolls.n * (rolls.n // 2 + 1) * 2)
        self.dots = {name: device.empty(row, kind) for name in (*names, "undrained")}

    def _stack(self) -> Stacked:
        rolls = self._rolls
        whole = self._device.empty((rolls.count * rolls.members, *rolls.shape[1:]), self._kind)
        size = whole.nbytes // rolls.count
        return Stacked(whole, [self._device.part(whole, j * size, rolls.shape) for j in range(rolls.count)])

    def _work(self, name: str, shape: Shape | None = None) -> Array:
        return self.tables.work(name, shape or self._rolls.shape, self._kind)

    def _sum(self, terms: Sequence[Term], out: Array) -> Step:
        room = next(count for count in SUMS if count >= len(terms))
        # A term with a table of zeros fills a sum that has too many.
        filled = [*terms, *[(terms[0][0], "zero")] * (room - len(terms))]
        arrays = [*(x for x, _ in filled), *(self.tables[name] for _, name in filled)]
        return self._device.bind(f"mode_sum{room}", *arrays, out=out)

    def _enter(self, z: Array, out: Array) -> Step:
        return self._device.bind("proxy_to_modes", z, self.tables["codes"], out=out)

    def forward(self) -> list[Step]:
        """From `start` to `seen`."""
        steps, rolls = [self._enter(self.start, self._inputs.parts[0])], self._rolls
        nothing = self._device.empty((rolls.members, 0), self._kind)
        for first in range(0, rolls.count, rolls.stages):
            known = [self._inputs.parts[first]]
            for number, stage in enumerate(self._stages):
                known.append(self._work(f"tendency_{number}"))
                steps += self._tendency(first + number, known[-1])
                steps.append(self._sum([(known[j], name) for j, name in stage.terms], self._next(first + number)))
            frame, rest = divmod(first // rolls.stages + 1, rolls.steps)
            if not rest:
                end, given = (
                    self._ends[frame - 1],
                    (self._next(first + rolls.stages - 1), self.tables["places"], nothing),
                )
                steps.append(self._device.bind("modes_to_proxy", *given, out=end, size=rolls.held))
        return steps

    def _next(self, stage: int) -> Array:
        return self._inputs.parts[stage + 1] if stage + 1 < self._rolls.count else self._work("end")

    def _tendency(self, stage: int, out: Array) -> list[Step]:
        state, raw = self._inputs.parts[stage], self._work("undamped")
        advected, lifted = ([one.parts[stage] for one in each] for each in (self._advected, self._lifted))
        return [
            *chained(self._device, self.tables, state, advected, lifted, raw),
            self._sum([(raw, "one"), (state, "undrained")], out),
            self._device.bind("mode_force", out, self.tables["force"], out=out),
        ]

    def back(self) -> list[Step]:
        """From `late` to `dots`."""
        steps, rolls = list[Step](), self._rolls
        slope: Array | None = None
        for first in range(rolls.count - rolls.stages, -1, -rolls.stages):
            frame, rest = divmod(first // rolls.stages + 1, rolls.steps)
            if not rest:
                given, total = self._work("given"), self._work("total")
                steps.append(self._enter(self._begins[frame - 1], given))
                steps.append(self._sum([(given, "one"), *([(slope, "one")] if slope is not None else [])], total))
                slope = total
            assert slope is not None
            turn = first // rolls.stages % 2
            before = self._work(f"before_{turn}")
            steps += self._step_back(first, slope, before)
            slope = before
        return [*steps, *self._dots()]

    def _step_back(self, first: int, slope: Array, out: Array) -> list[Step]:
        """The slope before a step, of that after it."""
        stages = self._stages
        steps = [step for i in range(self._rolls.depth + 1) for step in self._fields(i, first)]
        ends = {len(stages): slope}
        for number in range(len(stages), 0, -1):
            late = self._slopes.parts[first + number - 1]
            steps.append(self._sum(_uses(stages, ends, number), late))
            ends[number - 1] = self._work(f"slope_{number - 1}")
            steps += self._stage_back(first, number - 1, late, ends[number - 1])
        return [*steps, self._sum([*_uses(stages, ends, 0), (ends[0], "one")], out)]

    def _fields(self, i: int, first: int) -> list[Step]:
        """u, v, w_x and w_y of a_i in all stages of a step."""
        rolls, device = self._rolls, self._device
        source = self._lifted[i - 1] if i else self._inputs
        many, n, modes = rolls.stages * rolls.members, rolls.n, rolls.n // 2 + 1
        begin = source.whole.nbytes // rolls.count * first
        spectra = self._work("spectra", (many, 4, n, modes, 2))
        waves = [self.tables[name] for name in ("wave_x", "wave_y", "inverse", "fields")]
        values = self._work(f"values_{i}", (many, 4, n, n))
        flat = device.part(spectra, 0, (many * 4, n, modes, 2)), self.tables["turns"], self.tables["turns_h"]
        return [
            device.bind("spectral_fields", device.part(source.whole, begin, (many, n, modes, 2)), *waves, out=spectra),
            device.bind("irfft2", *flat, scratch=self.tables.room, out=device.part(values, 0, (many * 4, n, n))),
        ]

    def _stage_back(self, first: int, number: int, late: Array, out: Array) -> list[Step]:
        """The slope in a stage's state, of that in its tendency."""
        stage, depth = first + number, self._rolls.depth
        steps: list[Step] = []
        terms: list[Term] = [(late, "undrained")]
        for i in range(depth, -1, -1):
            slope, pulled = self._work("advected_slope"), self._pulled[i].parts[stage]
            above = [(self._pulled[m].parts[stage], f"lift_{m - 1}{i}") for m in range(i + 1, depth + 1)]
            steps.append(self._sum([(late, f"gain_{i}"), *above], slope))
            steps += self._pull(i, number, slope, pulled)
            terms.append((pulled, f"keep_{i - 1}" if i else "held"))
        if len(terms) > SUMS[-1]:
            steps.append(self._sum(terms[: SUMS[-1]], self._work("partly")))
            terms = [(self._work("partly"), "one"), *terms[SUMS[-1] :]]
        return [*steps, self._sum(terms, out)]

    def _pull(self, i: int, number: int, slope: Array, out: Array) -> list[Step]:
        """Through the advection of a_i."""
        rolls, device, t = self._rolls, self._device, self.tables
        many, n, modes = rolls.members, rolls.n, rolls.n // 2 + 1
        values = self._work(f"values_{i}", (rolls.stages * many, 4, n, n))
        here = device.part(values, values.nbytes // rolls.stages * number, (many, 4, n, n))
        spectra, slopes = self._work("slope_spectra", (many, 2, n, modes, 2)), self._work("slopes", (many, 2, n, n))
        made, turned = self._work("products", (2, many, n, n)), self._work("turned", (2 * many, n, modes, 2))
        turns = (t["turns"], t["turns_h"])
        waves = [t[name] for name in ("wave_x", "wave_y", "inverse", "derivatives")]
        flat = device.part(spectra, 0, (2 * many, n, modes, 2)), *turns
        fields = device.part(made, 0, (2 * many, n, n)), *turns
        both = [device.part(turned, j * turned.nbytes // 2, rolls.shape) for j in (0, 1)]
        return [
            device.bind("spectral_fields", slope, *waves, out=spectra),
            device.bind("irfft2", *flat, scratch=t.room, out=device.part(slopes, 0, (2 * many, n, n))),
            device.bind("advection_pull", here, slopes, out=made),
            device.bind("rfft2", *fields, scratch=t.room, out=turned, modes=modes, scale=1.0 / (n * n)),
            self._sum([(both[0], "reach"), (both[1], "less")], out),
        ]

    def _dots(self) -> list[Step]:
        """Slopes in the tables: products of modes, added over all members and stages."""
        pairs = {"undrained": (self._slopes, self._inputs)}
        pairs |= {f"gain_{j}": (self._slopes, one) for j, one in enumerate(self._advected)}
        for i, pulled in enumerate(self._pulled[1:]):
            pairs[f"keep_{i}"] = (pulled, self._inputs)
            pairs |= {f"lift_{i}{j}": (pulled, self._advected[j]) for j in range(i + 1)}
        steps: list[Step] = []
        whole = self._work("dots", self._inputs.whole.shape)
        rows = self._device.part(whole, 0, (whole.shape[0], whole.size // whole.shape[0]))
        for name, (a, b) in pairs.items():
            steps.append(self._device.bind("mul", a.whole, b.whole, out=whole))
            steps.append(self._device.bind("gemm_scalar", self.tables["ones"], rows, out=self.dots[name]))
        return steps


def _uses(stages: Sequence[Sum], ends: Mapping[int, Array], known: int) -> list[Term]:
    """What the slope in the state (0) or in a tendency is made of: slopes in the ends of stages that used it."""
    return [(ends[n], name) for n, stage in enumerate(stages, 1) if n in ends for j, name in stage.terms if j == known]
