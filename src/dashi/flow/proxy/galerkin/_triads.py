"""The Galerkin step by a list of triads: a dispatch for each stage, or many steps in one, each state in a workgroup."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dashi.core.operators.operator import Constants
from dashi.flow._operator import DeviceTables
from dashi.flow._schemes import Tableau
from dashi.flow.equations import Flow
from dashi.flow.proxy.galerkin._terms import Triads, force_of
from dashi.flow.proxy.schema import Ints
from dashi.kernels._interleaved_lists import interleave
from dashi.kernels._lists import ROLLOUT_TUNINGS, prefer_rollout, too_large
from dashi.kernels.abi import Limits
from dashi.kernels.proxy._galerkin_stages import staged
from dashi.kernels.proxy._mode_triads import TERMS
from dashi.runtime.array import Array
from dashi.runtime.device import Device, Step
from dashi.types import HostArray


class ByTriads:
    """The truncated step by a list of triads: a dispatch for each stage."""

    def __init__(self, flow: Flow, modes: Ints, tableau: Tableau, listed: Triads) -> None:
        self._flow, self._modes, self._tableau, self._listed = flow, modes, tableau, listed

    def unsupported_reason(self, limits: Limits) -> str:
        """Why one workgroup cannot take many steps of a state; empty if it can."""
        lanes = ROLLOUT_TUNINGS[prefer_rollout(limits, self._flow.numpy_dtype.name)]["lanes"]
        chip = staged(2 * len(self._modes), self._listed.longest, len(self._tableau.stages), lanes, limits)
        return too_large("galerkin_rollout", chip, self._flow.numpy_dtype.itemsize, limits)

    def load(self, device: Device) -> Constants:
        """The list and the tables of the stages."""
        kind, listed = self._flow.numpy_dtype, self._listed
        constants: dict[str, HostArray] = {
            "weights": listed.weights.astype(kind),
            "words": listed.words,
            "ends": listed.ends,
            "force": force_of(self._flow, self._modes).reshape(-1).astype(kind),
        }
        for number, stage in enumerate(self._tableau.stages):
            constants[f"tables_{number}"] = np.stack([self._tableau.tables[name] for _, name in stage.terms])
        if not self.unsupported_reason(device.limits):
            # One workgroup reads the lists side by side, and has the tables of all stages.
            heads, (weights, words) = interleave(listed.ends, constants["weights"], constants["words"])
            constants |= {"heads": heads, "weights_slab": weights, "words_slab": words, "tables": self._rows()}
        return DeviceTables(device, constants)

    def _rows(self) -> HostArray:
        """Five rows of tables for each stage, 0 where it adds no such term."""
        stages = self._tableau.stages
        rows = np.zeros((TERMS * len(stages), len(self._modes)), self._flow.numpy_dtype)
        for number, stage in enumerate(stages):
            for j, name in stage.terms:
                rows[TERMS * number + j] = self._tableau.tables[name]
        return rows

    def step_many(self, device: Device, constants: Constants, source: Array, target: Array, count: int) -> Step:
        """`count` steps of all states in one dispatch, each state in one workgroup."""
        stages = self._tableau.stages
        used = sum(1 << TERMS * number + j for number, stage in enumerate(stages) for j, _ in stage.terms)
        lists = (constants[name] for name in ("weights_slab", "words_slab", "heads", "force", "tables"))
        longest = self._listed.longest
        return device.bind(
            "galerkin_rollout", source, *lists, out=target, steps=count, stages=len(stages), used=used, longest=longest
        )

    def step(self, device: Device, constants: DeviceTables, source: Array, target: Array) -> list[Step]:
        """One step of all states (m, 2 K)."""
        kind, stages = self._flow.numpy_dtype, self._tableau.stages
        between = [constants.work(f"stage_{j}", source.shape, kind) for j in (0, 1)]
        known, steps, now = [source], list[Step](), source
        for number, stage in enumerate(stages):
            known.append(constants.work(f"tendency_{number}", source.shape, kind))
            output = target if number + 1 == len(stages) else between[number % 2]
            operands = [known[j] for j, _ in stage.terms[:-1]]
            tables = constants[f"tables_{number}"]
            steps.append(self._stage(device, constants, now, tables, operands, (known[-1], output)))
            now = output
        return steps

    def tendency(self, device: Device, constants: DeviceTables, source: Array, target: Array) -> list[Step]:
        """N of all states: the first half of a stage."""
        kind, modes = self._flow.numpy_dtype, source.shape[1] // 2
        unused = constants.work("stage_0", source.shape, kind)
        tables = constants.work("no_tables", (2, modes), kind)
        return [self._stage(device, constants, source, tables, [source], (target, unused))]

    def _stage(
        self, device: Device, constants: DeviceTables, state: Array, tables: Array, known: Sequence[Array],
        out: tuple[Array, Array],
    ) -> Step:  # fmt: skip
        lists = (constants[name] for name in ("weights", "words", "ends", "force"))
        longest = self._listed.longest
        kernel = f"galerkin_stage{len(known) + 1}"
        return device.bind(kernel, state, *lists, tables, *known, out=out, longest=longest)
