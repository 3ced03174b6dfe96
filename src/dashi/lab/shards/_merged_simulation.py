"""Simulations made of shards: frames and series member by member, hashes of all members from the states that the shards
kept. Frames and states pass in pieces; of whole arrays, one state of all members is in memory at a time."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Any, Final

import numpy as np
from pydantic import ValidationError

from dashi.core.certificates._certificate import (
    STATE,
    Certificate,
    Claim,
    InputRecord,
    OperatorRecord,
    array_digest,
    hashed_steps,
    read_certificate,
    write_certificate,
)
from dashi.core.certificates.inputs import save_inputs
from dashi.errors import FileError, InputError
from dashi.flow._derived_fields import require_fields
from dashi.flow._fields import Octets, StoredFields
from dashi.flow._operator import Vorticity
from dashi.flow._trajectory import Trajectory
from dashi.flow._trajectory_layout import SPECTRA, TOTALS, TRANSFER, TrajectoryLayout
from dashi.flow.equations import Flow
from dashi.flow.grid import Floats
from dashi.io._array_digest import digest_of
from dashi.io._run_folder import CERTIFICATE, INPUTS, METRICS
from dashi.io._run_folder import STATE as LAST
from dashi.io._run_names import FIELDS, HASHED
from dashi.io._shards import ShardFolder
from dashi.io.arrays import LIMIT, read_arrays
from dashi.io.metrics import HashRecord, Metrics, read_metrics, write_metrics
from dashi.kernels.hash._blake3 import hexdigest128_of
from dashi.lab._capacity import require_disk, require_memory
from dashi.lab.events import Events
from dashi.lab.shards._hashed_states import StoredStates
from dashi.lab.shards._merged_metrics import merged_metrics
from dashi.lab.shards._simulation_part import SimulationWork, kicked_from
from dashi.lab.simulations import provenance_of, write_state
from dashi.types import HostArray, Shape

_AGAIN: Final = "run that shard again."


@dataclass(frozen=True, eq=False)
class _Part:
    """One shard of a simulation, read without trust."""

    shard: ShardFolder
    work: SimulationWork
    flow: Flow

    @property
    def members(self) -> int:
        return len(self.shard.record.part)

    @cached_property
    def metrics(self) -> Metrics:
        metrics = read_metrics(self.shard.file(METRICS))
        if metrics.steps != self.work.steps or metrics.stopped or metrics.states != self.members:
            raise self._odd("its metrics are of another run")
        # Counted before they are listed: a few bytes can claim more steps than fit into memory.
        count = -(-self.work.steps // self.work.hash) if self.work.hash else 0
        taken = [one.step for one in metrics.hashes]
        if len(taken) != count or (count and taken != list(hashed_steps(self.work.steps, self.work.hash))):
            raise self._odd("its hashes are of other steps")
        return metrics

    @cached_property
    def certificate(self) -> Certificate:
        certificate = read_certificate(self.shard.file(CERTIFICATE))
        claims = [(one.step, one.hash) for one in certificate.hashes]
        facts = Vorticity(kicked_from(self.flow, self.shard.record.part.start)).facts
        if claims != [(one.step, one.hash) for one in self.metrics.hashes] or [i.name for i in certificate.inputs] != [
            STATE
        ]:
            raise self._odd("its certificate is of another run")
        if (certificate.operator.kind, certificate.operator.version) != (facts.kind, facts.version):
            raise self._odd("its certificate is of another operator")
        if dict(certificate.operator.parameters) != dict(facts.parameters):
            raise self._odd("its certificate is of an operator with other parameters")
        return certificate

    @cached_property
    def fields(self) -> StoredFields:
        layout = TrajectoryLayout(self.flow, self.members, tuple(self.work.fields), self.work.every, self.work.transfer)
        lengths = {"time": self.work.steps // self.work.frame + 1, "time_look": look_count(self.work)}
        return StoredFields(self.shard.file(FIELDS), layout.variables, lengths)

    @cached_property
    def states(self) -> StoredStates:
        return StoredStates(self.shard.file(HASHED), self.flow, self.members, self.work.hash, self.work.steps)

    def array(self, name: str, key: str) -> HostArray:
        """The first or the last states of its members."""
        shape = (self.members, self.flow.n, self.flow.modes, 2)
        size = math.prod(shape) * self.flow.numpy_dtype.itemsize
        values = read_arrays(self.shard.file(name), [key], most=size)[key]
        if values.shape != shape or values.dtype != self.flow.numpy_dtype:
            raise self._odd(f"{key} of its {name} has shape {values.shape} of {values.dtype}, not {shape}")
        return values

    def hashed(self, step: int, last: HostArray) -> Iterator[bytes | memoryview]:
        """The bytes of its states after a step that is hashed."""
        if step % self.work.hash == 0:
            return self.states.pieces(step)
        return iter([_octets(last)])

    def require_claim(self, step: int, digest: str) -> None:
        """Refuses states that have not the hash that the shard itself took of them."""
        claimed = next(one.hash for one in self.metrics.hashes if one.step == step)
        if digest != claimed:
            raise self._odd(f"its states after step {step} have the hash {digest}, and it claims {claimed}")

    def _odd(self, what: str) -> FileError:
        return FileError(f"{self.shard} is damaged, or no shard of this run: {what}.", _AGAIN)


def look_count(work: SimulationWork) -> int:
    """Looks of a run: on the stride, from the first step on, and at the last step."""
    return work.steps // work.look + 1 + (work.steps % work.look > 0) if work.look else 0


def parts_of(shards: Sequence[ShardFolder]) -> list[_Part]:
    """The shards of a simulation, as far as they can be held against each other before anything is read."""
    try:
        work = SimulationWork.model_validate_json(json.dumps(shards[0].record.work))
        flow = Flow.restore(work.flow)
        total = shards[0].record.total
        if len(work.seeds) not in (1, total):
            raise InputError("the seeds do not fit the members.", "run it again.")
        require_fields(work.fields)
    except (ValidationError, InputError) as error:
        raise FileError(f"{shards[0]} does not say what was simulated.", _AGAIN) from error
    size = total * flow.n * flow.modes * 2 * flow.numpy_dtype.itemsize
    if size > LIMIT:
        raise FileError(f"{shards[0]} claims {total} members of {flow.n} x {flow.n} points.", _AGAIN)
    require_memory(2 * size, f"states of {total} members of {flow.n} x {flow.n}", "merge on a larger machine.")
    return [_Part(shard, work, flow) for shard in shards]


def _require_room(parts: Sequence[_Part], out: Path) -> None:
    """Refuses a disk that is too small for the frames."""
    work, flow, total = parts[0].work, parts[0].flow, parts[0].shard.record.total
    frames = (work.steps // work.frame + 1) * len(work.fields) if work.frame else 0
    needed = frames * total * flow.n**2 * flow.numpy_dtype.itemsize
    require_disk(out, needed, f"{frames} frames of {total} members", "make room, or merge to another disk.")


def merge_simulation(shards: Sequence[ShardFolder], folder: Path, out: Path, events: Events) -> str | None:
    """Fills a folder with what the whole simulation would have left; gives the digest of its certificate, if any."""
    parts = parts_of(shards)
    _require_room(parts, out)
    work = parts[0].work
    metrics = [part.metrics for part in parts]
    if work.frame:
        _merge_fields(parts, folder / FIELDS, events)
    last = np.concatenate([part.array(LAST, "z") for part in parts])
    hashes = _merge_hashes(parts, last, events)
    write_state(folder, last, work.steps)
    del last
    digest = _certify(parts, folder, hashes) if hashes and not work.host_fft else None
    write_metrics(folder / METRICS, merged_metrics(metrics, hashes, digest))
    return digest


def _merge_fields(parts: Sequence[_Part], path: Path, events: Events) -> None:
    work, flow, record = parts[0].work, parts[0].flow, parts[0].shard.record
    device = ", ".join(dict.fromkeys(part.metrics.op_device for part in parts))
    provenance = provenance_of(device, work.initial, work.initial_options, host_fft=work.host_fft)
    store = Trajectory(
        path, flow, work.member_seeds(record.total), work.fields, work.every, transfer=work.transfer,
        provenance={**provenance, "source": f"dashi {record.dashi_version}"},
    )  # fmt: skip
    steps = range(0, work.steps + 1, work.frame)
    with events.progress("frames", len(steps), "frames") as advance:
        for index, step in enumerate(steps):
            store.add_from(step, {name: _frame(parts, name, index) for name in work.fields})
            advance(1)
        store.commit_series(work.steps, _series(parts))


def _frame(parts: Sequence[_Part], name: str, index: int) -> Iterator[bytes]:
    """The bytes of a frame of all members."""
    for part in parts:
        yield from part.fields.frame(name, index)


def _series(parts: Sequence[_Part]) -> dict[str, HostArray]:
    """The series of all members: side by side, and the largest Courant number of any."""
    work = parts[0].work
    if not work.look:
        return {}
    names = [*TOTALS, *SPECTRA, *(TRANSFER if work.transfer else ())]
    series = {name: np.concatenate([part.fields.series(name) for part in parts], axis=1) for name in names}
    largest = np.max([part.fields.series("courant") for part in parts], axis=0)
    # Only now: that many looks are on disk.
    times = np.minimum(np.arange(len(largest)) * work.look, work.steps) * parts[0].flow.dt
    return {"time_look": times, "courant": largest, **series}


def _merge_hashes(parts: Sequence[_Part], last: Floats, events: Events) -> list[HashRecord]:
    work = parts[0].work
    if not work.hash:
        return []
    steps = hashed_steps(work.steps, work.hash)
    hashes: list[HashRecord] = []
    with events.progress("hashes", len(steps), "hashes") as advance:
        for step in steps:
            for part in parts:
                own = _of(part, last)
                part.require_claim(step, _digest(work, own.shape, own.dtype.name, part.hashed(step, own)))
            whole = chain.from_iterable(part.hashed(step, _of(part, last)) for part in parts)
            hashes.append(HashRecord(step=step, hash=_digest(work, last.shape, last.dtype.name, whole)))
            advance(1)
    if hashes[-1].hash != _digest(work, last.shape, last.dtype.name, [_octets(last)]):
        raise FileError("the last states of the shards are not those that they hashed.", _AGAIN)
    return hashes


def _digest(work: SimulationWork, shape: Shape, dtype: str, pieces: Iterable[Octets]) -> str:
    """The hash of states, from their bytes in pieces; one that was taken on the host is of type and shape too."""
    octets = hexdigest128_of(pieces)
    return digest_of(dtype, shape, octets) if work.host_fft else octets


def _of(part: _Part, all_states: Floats) -> Floats:
    members = part.shard.record.part
    return all_states[members.start : members.stop]


def _octets(values: Floats) -> memoryview:
    little: Any = np.ascontiguousarray(values, values.dtype.newbyteorder("<"))
    return little.reshape(-1).view(np.uint8).data


def _certify(parts: Sequence[_Part], folder: Path, hashes: Sequence[HashRecord]) -> str:
    """The certificate of the whole, as the first shard's says where it ran; its inputs are all initial states."""
    first, flow = parts[0].certificate, parts[0].flow
    starts: list[HostArray] = []
    for part in parts:
        values = part.array(INPUTS, STATE)
        if array_digest(values) != part.certificate.inputs[0].digest:
            raise FileError(f"{part.shard} has other initial states than its certificate claims.", _AGAIN)
        starts.append(values)
    whole = np.concatenate(starts)
    del starts
    source = save_inputs(folder / INPUTS, Vorticity(flow), whole)[STATE]
    start = replace(source, digest=array_digest(whole))
    facts = Vorticity(flow).facts
    more: dict[str, Any] = {
        "operator": OperatorRecord(
            kind=facts.kind, version=facts.version, parameters=dict(sorted(facts.parameters.items()))
        ),
        "inputs": (
            InputRecord(
                name=STATE, path=INPUTS, key=start.key, dtype=whole.dtype.name, shape=whole.shape, digest=start.digest
            ),
        ),
        "kernels": {name: digest for part in parts for name, digest in part.certificate.kernels.items()},
        "hashes": tuple(Claim(step=one.step, hash=one.hash) for one in hashes),
    }
    return write_certificate(folder / CERTIFICATE, first.model_copy(update=more))
