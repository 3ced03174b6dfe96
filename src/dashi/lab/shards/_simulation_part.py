"""What a simulation does of what it was asked for: all of it, or the members of one shard."""

from __future__ import annotations

import platform
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Annotated, Any, Final

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from dashi.flow._host_fft import Transforms
from dashi.flow._operator import Vorticity
from dashi.flow._trajectory_layout import FlowStrides
from dashi.flow.equations import Flow, Stochastic
from dashi.flow.grid import Floats
from dashi.io._run_mark import as_settings
from dashi.io._shards import ShardRecord
from dashi.lab._seeds import follow_each_other, seed_count
from dashi.lab.simulation_setup import SimulateRequest, member_seeds, named_start, settings_of, states_of
from dashi.runtime.device import Device

COMMAND: Final = "flow simulate"
UNIT: Final = "members"
_Text = Annotated[str, Field(max_length=4000)]
_Count = Annotated[int, Field(ge=0, lt=1 << 53)]


class SimulationWork(BaseModel):
    """What a shard says of the whole simulation, for whoever merges it."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    flow: dict[str, int | float | str]
    seeds: Annotated[list[int], Field(min_length=1, max_length=1 << 20)]
    """The seeds of all members; the first alone where the others follow it."""
    steps: Annotated[int, Field(ge=1, lt=1 << 53)]
    look: _Count
    frame: _Count
    hash: _Count
    fields: Annotated[list[_Text], Field(min_length=1, max_length=32)]
    transfer: bool
    host_fft: bool
    initial: _Text
    initial_options: _Text

    def member_seeds(self, members: int) -> list[int]:
        """The seeds of all members."""
        return list(range(self.seeds[0], self.seeds[0] + members)) if len(self.seeds) == 1 else self.seeds

    @property
    def every(self) -> FlowStrides:
        return FlowStrides(self.look, self.frame, self.hash)


@dataclass(frozen=True, eq=False)
class SimulationPart:
    """The members that a job advances."""

    request: SimulateRequest
    """What is asked for them."""
    states: Floats
    settings: dict[str, object]
    """All that decides what the folder holds in the end."""
    record: ShardRecord | None = None
    """What the folder says of the whole; None where it is all of it."""

    @classmethod
    def of(
        cls, request: SimulateRequest, every: FlowStrides, progress: Callable[[int], None],
        device: Device | None = None,
    ) -> SimulationPart:  # fmt: skip
        """The part that was asked for, with its initial states, which a `device` helps to make."""
        if request.shard is None:
            states = states_of(request, progress, device)
            return cls(request, states, settings_of(request, every, states))
        if request.states is None and not request.from_file:
            total = seed_count(request.seeds)
            part = request.shard.part(total, UNIT)
            own = replace(request, seeds=request.seeds[part.start : part.stop], shard=None)
            states, settings = states_of(own, progress), settings_of(request, every, None)
        else:
            whole = states_of(request, progress)
            total, settings = len(whole), settings_of(request, every, whole)
            part = request.shard.part(total, UNIT)
            states = np.ascontiguousarray(whole[part.start : part.stop])
            own = replace(
                request, flow=kicked_from(request.seeded_flow, part.start), states=states, initial="random",
                initial_options={}, seeds=(request.seeds[0] + part.start,), shard=None,
            )  # fmt: skip
        record = _record(request, every, total, settings)
        return cls(own, states, {**settings, "shard": str(request.shard)}, record)


def kicked_from(flow: Flow, member: int) -> Flow:
    """The flow whose first member is kicked as a later one of all is."""
    forcing = flow.forcing
    return (
        replace(flow, forcing=replace(forcing, seed=forcing.seed + member)) if isinstance(forcing, Stochastic) else flow
    )


def _record(request: SimulateRequest, every: FlowStrides, total: int, settings: dict[str, object]) -> ShardRecord:
    import dashi

    assert request.shard is not None
    name, numbers = named_start(request)
    known = request.states is None and not request.from_file
    seeds = list(request.seeds) if known and not follow_each_other(request.seeds) else member_seeds(request, 1)[:1]
    work = SimulationWork(
        flow=request.seeded_flow.parameters, seeds=seeds, steps=request.steps, look=every.look, frame=every.frame,
        hash=every.hash, fields=list(request.fields), transfer=request.transfer, host_fft=request.host_fft,
        initial=name, initial_options=", ".join(numbers),
    )  # fmt: skip
    return ShardRecord(
        dashi_version=dashi.__version__, command=COMMAND, index=request.shard.index, count=request.shard.count,
        total=total, unit=UNIT, settings=as_settings(settings), bits=_bits(request), work=work.model_dump(mode="json"),
    )  # fmt: skip


def _bits(request: SimulateRequest) -> dict[str, str]:
    """What else decides the bits: of kernels nothing but the operator's version, of a host's transforms its own."""
    bits = {"operator": f"{Vorticity.kind} {Vorticity.version}"}
    if request.host_fft:
        bits |= host_bits(request.flow.n)
    return bits


def host_bits(n: int) -> dict[str, str]:
    """Versions of what computes on the host, and the instructions that NumPy uses there."""
    config: Any = np.show_config(mode="dicts")
    extensions: list[str] = config.get("SIMD Extensions", {}).get("found", [])
    return {
        "transforms": Transforms(n).name, "NumPy": np.__version__, "machine": platform.machine(),
        "instructions": " ".join(extensions) or "baseline",
    }  # fmt: skip
