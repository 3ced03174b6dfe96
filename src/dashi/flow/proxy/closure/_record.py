"""The steps of training on a device: rollouts that store every stage, and their adjoint, run backwards."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dashi.flow._operator import DeviceTables
from dashi.flow._schemes import Sum
from dashi.flow.proxy.closure._operator import SUMS, chained, limited
from dashi.runtime.array import Array
from dashi.runtime.device import Device, Step
from dashi.types import HostArray, Shape

Term = tuple[Array, str]
"""Modes, and the name of the table that weights them."""


@dataclass(frozen=True)
class RolloutBatch:
    """Sizes of a batch of rollouts: `members` at once, of `frames` frames with `steps` steps between; a state has
    `held` numbers, on an n x n grid."""

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
        return 6 + 3 * self.depth

    @property
    def shape(self) -> Shape:
        """Shape of the half spectra of all members."""
        return (self.members, self.n, self.n // 2 + 1, 2)


@dataclass(frozen=True, eq=False)
class StageStack:
    """One array for each stage of a rollout, in one allocation: gradients of the tables are sums over all stages."""

    whole: Array
    parts: Sequence[Array]


class AdjointProgram:
    """Arrays of one iteration, and the steps that fill them. The caller writes `start` and the tables, runs `forward`,
    reads `output`, writes the gradient in it to `output_adjoint`, runs `back` and reads `table_gradients`."""

    def __init__(
        self, device: Device, batch: RolloutBatch, stages: Sequence[Sum], tables: Mapping[str, HostArray], kind: Any,
        allowance: float,
    ) -> None:  # fmt: skip
        self._device, self._batch, self._stages, self._kind = device, batch, stages, kind
        self._allowance = allowance
        self.tables = DeviceTables(device, tables)
        self._inputs, self._unlimited, self._tendency_adjoints = self._stack(), self._stack(), self._stack()
        self._lifted = [self._stack() for _ in range(batch.depth)]
        self._advected, self._pulled = ([self._stack() for _ in range(batch.depth + 1)] for _ in range(2))
        flat = (batch.members, batch.held)
        self.start = device.empty(flat, kind)
        self.output, self.output_adjoint = (device.empty((batch.frames * flat[0], flat[1]), kind) for _ in range(2))
        sizes = self.start.nbytes
        self._ends = [device.part(self.output, j * sizes, flat) for j in range(batch.frames)]
        self._begins = [device.part(self.output_adjoint, j * sizes, flat) for j in range(batch.frames)]
        names = [f"keep_{i}" for i in range(batch.depth)] + [f"gain_{j}" for j in range(batch.depth + 1)]
        names += [f"lift_{i}{j}" for i in range(batch.depth) for j in range(i + 1)]
        row = (1, batch.n * (batch.n // 2 + 1) * 2)
        self.table_gradients = {name: device.empty(row, kind) for name in (*names, "drain")}

    def _stack(self) -> StageStack:
        batch = self._batch
        whole = self._device.empty((batch.count * batch.members, *batch.shape[1:]), self._kind)
        size = whole.nbytes // batch.count
        return StageStack(whole, [self._device.part(whole, j * size, batch.shape) for j in range(batch.count)])

    def _work(self, name: str, shape: Shape | None = None) -> Array:
        return self.tables.work(name, shape or self._batch.shape, self._kind)

    def _sum(self, terms: Sequence[Term], out: Array) -> Step:
        room = next(count for count in SUMS if count >= len(terms))
        # A term with a table of zeros fills a sum that has too many.
        filled = [*terms, *[(terms[0][0], "zero")] * (room - len(terms))]
        arrays = [*(x for x, _ in filled), *(self.tables[name] for _, name in filled)]
        return self._device.bind(f"mode_sum{room}", *arrays, out=out)

    def _enter(self, z: Array, out: Array) -> Step:
        return self._device.bind("proxy_to_modes", z, self.tables["codes"], out=out)

    def forward(self) -> list[Step]:
        """Steps of the rollouts, from `start` to `output`."""
        steps, batch = [self._enter(self.start, self._inputs.parts[0])], self._batch
        nothing = self._device.empty((batch.members, 0), self._kind)
        for first in range(0, batch.count, batch.stages):
            known = [self._inputs.parts[first]]
            for number, stage in enumerate(self._stages):
                known.append(self._work(f"tendency_{number}"))
                steps += self._tendency(first + number, known[-1])
                steps.append(self._sum([(known[j], name) for j, name in stage.terms], self._next(first + number)))
            frame, rest = divmod(first // batch.stages + 1, batch.steps)
            if not rest:
                end, operands = (
                    self._ends[frame - 1],
                    (self._next(first + batch.stages - 1), self.tables["places"], nothing),
                )
                steps.append(self._device.bind("modes_to_proxy", *operands, out=end, size=batch.held))
        return steps

    def _next(self, stage: int) -> Array:
        return self._inputs.parts[stage + 1] if stage + 1 < self._batch.count else self._work("end")

    def _tendency(self, stage: int, out: Array) -> list[Step]:
        state, raw = self._inputs.parts[stage], self._unlimited.parts[stage]
        advected, lifted = ([one.parts[stage] for one in each] for each in (self._advected, self._lifted))
        return [
            *chained(self._device, self.tables, state, advected, lifted, raw),
            limited(self._device, self.tables, state, raw, self._allowance, out),
            self._device.bind("mode_force", out, self.tables["force"], out=out),
        ]

    def back(self) -> list[Step]:
        """Steps of the adjoint, from `output_adjoint` to `table_gradients`."""
        steps, batch = list[Step](), self._batch
        adjoint: Array | None = None
        for first in range(batch.count - batch.stages, -1, -batch.stages):
            frame, rest = divmod(first // batch.stages + 1, batch.steps)
            if not rest:
                frame_adjoint, total = self._work("frame_adjoint"), self._work("total")
                steps.append(self._enter(self._begins[frame - 1], frame_adjoint))
                steps.append(
                    self._sum([(frame_adjoint, "one"), *([(adjoint, "one")] if adjoint is not None else [])], total)
                )
                adjoint = total
            assert adjoint is not None
            turn = first // batch.stages % 2
            before = self._work(f"before_{turn}")
            steps += self._step_back(first, adjoint, before)
            adjoint = before
        return [*steps, *self._table_gradients()]

    def _step_back(self, first: int, adjoint: Array, out: Array) -> list[Step]:
        """Adjoint of a step: gradient in the state after it in, in the state before it out."""
        stages = self._stages
        steps = [step for i in range(self._batch.depth + 1) for step in self._fields(i, first)]
        ends = {len(stages): adjoint}
        for number in range(len(stages), 0, -1):
            limited_adjoint = self._work("limited_adjoint")
            steps.append(self._sum(_uses(stages, ends, number), limited_adjoint))
            ends[number - 1] = self._work(f"adjoint_{number - 1}")
            steps += self._stage_back(first, number - 1, limited_adjoint, ends[number - 1])
        return [*steps, self._sum([*_uses(stages, ends, 0), (ends[0], "one")], out)]

    def _fields(self, i: int, first: int) -> list[Step]:
        """u, v, w_x and w_y of a_i in all stages of a step."""
        batch, device = self._batch, self._device
        source = self._lifted[i - 1] if i else self._inputs
        many, n, modes = batch.stages * batch.members, batch.n, batch.n // 2 + 1
        begin = source.whole.nbytes // batch.count * first
        spectra = self._work("spectra", (many, 4, n, modes, 2))
        waves = [self.tables[name] for name in ("wave_x", "wave_y", "inverse", "fields")]
        values = self._work(f"values_{i}", (many, 4, n, n))
        flat = (
            device.part(spectra, 0, (many * 4, n, modes, 2)),
            self.tables["twiddles"],
            self.tables["twiddles_columns"],
        )
        return [
            device.bind("spectral_fields", device.part(source.whole, begin, (many, n, modes, 2)), *waves, out=spectra),
            device.bind("irfft2", *flat, scratch=self.tables.room, out=device.part(values, 0, (many * 4, n, n))),
        ]

    def _stage_back(self, first: int, number: int, limited_adjoint: Array, out: Array) -> list[Step]:
        """Adjoint of a stage: gradient in its tendency in, in its state out."""
        stage, depth = first + number, self._batch.depth
        tendency_adjoint, by_limit = self._tendency_adjoints.parts[stage], self._work("limit_adjoint")
        operands = (self._inputs.parts[stage], self._unlimited.parts[stage], limited_adjoint)
        grid_tables = (self.tables[name] for name in ("drain", "inverse", "count"))
        pull = self._device.bind(
            "energy_limit_pull", *operands, *grid_tables, out=(tendency_adjoint, by_limit), allowance=self._allowance
        )
        steps: list[Step] = [pull]
        terms: list[Term] = [(by_limit, "one")]
        for i in range(depth, -1, -1):
            adjoint, pulled = self._work("advection_adjoint"), self._pulled[i].parts[stage]
            above = [(self._pulled[m].parts[stage], f"lift_{m - 1}{i}") for m in range(i + 1, depth + 1)]
            steps.append(self._sum([(tendency_adjoint, f"gain_{i}"), *above], adjoint))
            steps += self._pull(i, number, adjoint, pulled)
            terms.append((pulled, f"keep_{i - 1}" if i else "held"))
        if len(terms) > SUMS[-1]:
            steps.append(self._sum(terms[: SUMS[-1]], self._work("partly")))
            terms = [(self._work("partly"), "one"), *terms[SUMS[-1] :]]
        return [*steps, self._sum(terms, out)]

    def _pull(self, i: int, number: int, adjoint: Array, out: Array) -> list[Step]:
        """Adjoint of the advection N(a_i): gradient in N in, in a_i out."""
        batch, device, t = self._batch, self._device, self.tables
        many, n, modes = batch.members, batch.n, batch.n // 2 + 1
        values = self._work(f"values_{i}", (batch.stages * many, 4, n, n))
        here = device.part(values, values.nbytes // batch.stages * number, (many, 4, n, n))
        spectra, gradients = (
            self._work("gradient_spectra", (many, 2, n, modes, 2)),
            self._work("gradient_fields", (many, 2, n, n)),
        )
        products, transformed = (
            self._work("products", (2, many, n, n)),
            self._work("transformed", (2 * many, n, modes, 2)),
        )
        twiddles = (t["twiddles"], t["twiddles_columns"])
        waves = [t[name] for name in ("wave_x", "wave_y", "inverse", "derivatives")]
        flat = device.part(spectra, 0, (2 * many, n, modes, 2)), *twiddles
        fields = device.part(products, 0, (2 * many, n, n)), *twiddles
        both = [device.part(transformed, j * transformed.nbytes // 2, batch.shape) for j in (0, 1)]
        return [
            device.bind("spectral_fields", adjoint, *waves, out=spectra),
            device.bind("irfft2", *flat, scratch=t.room, out=device.part(gradients, 0, (2 * many, n, n))),
            device.bind("advection_pull", here, gradients, out=products),
            device.bind("rfft2", *fields, scratch=t.room, out=transformed, modes=modes, scale=1.0 / (n * n)),
            self._sum([(both[0], "reach"), (both[1], "less")], out),
        ]

    def _table_gradients(self) -> list[Step]:
        """Gradients in the tables: products of modes, added over all members and stages."""
        pairs = {"drain": (self._tendency_adjoints, self._inputs)}
        pairs |= {f"gain_{j}": (self._tendency_adjoints, one) for j, one in enumerate(self._advected)}
        for i, pulled in enumerate(self._pulled[1:]):
            pairs[f"keep_{i}"] = (pulled, self._inputs)
            pairs |= {f"lift_{i}{j}": (pulled, self._advected[j]) for j in range(i + 1)}
        steps: list[Step] = []
        whole = self._work("dots", self._inputs.whole.shape)
        rows = self._device.part(whole, 0, (whole.shape[0], whole.size // whole.shape[0]))
        for name, (a, b) in pairs.items():
            steps.append(self._device.bind("mul", a.whole, b.whole, out=whole))
            steps.append(self._device.bind("gemm_scalar", self.tables["ones"], rows, out=self.table_gradients[name]))
        return steps


def _uses(stages: Sequence[Sum], ends: Mapping[int, Array], known: int) -> list[Term]:
    """Terms of the gradient in the state (0) or in a tendency: gradients in the ends of the stages that used it."""
    return [(ends[n], name) for n, stage in enumerate(stages, 1) if n in ends for j, name in stage.terms if j == known]
