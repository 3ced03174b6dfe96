"""What a rollout job is asked to run: the request checked, inputs read, strides chosen."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Final

import numpy as np

from dashi.core.certificates._certificate import STATE, Source
from dashi.core.certificates.inputs import as_floats, make_operator, operator_sources, read_source, run_dtype
from dashi.core.operators.affine import Affine, Linear
from dashi.core.operators.operator import Operator
from dashi.core.rollouts._checkpoint import identity
from dashi.core.rollouts._observers import BandSheet, Hashes, StateMetrics
from dashi.core.rollouts._state_files import BITS, StateFiles
from dashi.core.rollouts.observer import Observer, require_observers
from dashi.core.rollouts.rollout import require_operator
from dashi.errors import DTypeError, InputError, ShapeError
from dashi.io._files import require_writable
from dashi.lab._job import AnyPath, Job, Request, as_path
from dashi.lab._kept_states import check_states, claimed_stride, require_same_states, require_states_room
from dashi.lab.events import Events
from dashi.types import HostArray

_HASHES, _OBSERVED, _BANDS = 1000, 200, 16
_PATH: Final = (str, os.PathLike)
_STRIDES: Final = ("hash_every", "observe_every", "sheet_every", "bands")


@dataclass(frozen=True, kw_only=True, eq=False)
class RolloutRequest(Request):
    """A rollout: an operator, or the A (and b, psi) of z' = psi(z A + b), from z0 for `steps` steps.

    Inputs are arrays, an `Operator`, or files: `.npz` with keys z0, A, b, and what `save_operator` writes. A stride
    that is None has its default: hashes every 1000 steps, 200 observations, a row of the sheet for each where there is
    a run folder, no checkpoints.
    """

    z0: HostArray | AnyPath
    """Initial states, (*shape) or (m, *shape) for an ensemble."""
    steps: int
    operator: Operator | AnyPath | None = None
    A: HostArray | AnyPath | None = None
    b: HostArray | AnyPath | None = None
    psi: str = "none"
    alpha: float = 1.0
    low: float = -1.0
    high: float = 1.0
    portable: bool = True
    """Whether products with A have the same bits on every device; False takes the order that is fastest on one."""
    dtype: str | None = None
    """float32 or float64; that of z0 where None."""
    hash_every: int | None = None
    observe_every: int | None = None
    sheet_every: int | None = None
    bands: int | None = None
    checkpoint_every: int | None = None
    states_every: int | None = None
    """Steps between states that are kept in the run folder, for its certificate: from each of them what follows can be
    verified apart."""
    states_bits: int | None = None
    """Bits of the digests of kept states: 128, or 256; 128."""
    certificate: AnyPath | None = None
    """A file for a certificate that names the input files; a run folder has one in any case."""
    metrics: AnyPath | None = None
    """A file for the metrics, besides that of the run folder."""
    strategy: str = "auto"
    stop_on_nonfinite: bool = True
    observers: tuple[Observer[Any], ...] = ()
    """What looks besides; the records of each are in `Run.records`, by its name."""

    def __post_init__(self) -> None:
        super().__post_init__()
        require_observers(self.observers)
        if self.operator is not None and not isinstance(self.operator, _PATH):
            require_operator(self.operator)


@dataclass(frozen=True)
class RolloutStrides:
    """After how many steps what is looked at; 0 is never."""

    hash: int
    observe: int
    sheet: int
    bands: int
    keep: int
    states: int = 0
    bits: int = BITS[0]
    """Bits of the digests of kept states."""


@dataclass(frozen=True, eq=False)
class RolloutSetup:
    """What is run: the operator, the initial states `(m, *shape)`, and the files they were read from."""

    operator: Operator
    z0: HostArray
    sources: Mapping[str, Source]
    """Inputs that came from files, by name."""
    strides: RolloutStrides

    @cached_property
    def identity(self) -> str:
        """What a checkpoint must belong to."""
        return identity(self.operator, self.z0)

    @property
    def observers(self) -> list[Observer[Any]]:
        """The observers whose records a checkpoint holds."""
        every = self.strides
        return [
            Hashes(every.hash), StateMetrics(every.observe), BandSheet(every.sheet, every.bands),
            StateFiles(every.states, None, every.bits),
        ]  # fmt: skip

    def settings(self, request: RolloutRequest) -> dict[str, object]:
        """All that decides the results of a run: how and where it runs does not."""
        every = self.strides
        return {
            "operator": self.operator.kind, "dtype": self.operator.dtype, "inputs": self.identity,
            "steps": request.steps, "hash-every": every.hash, "observe-every": every.observe,
            "sheet-every": every.sheet, "bands": every.bands, "fast": not request.portable,
            "keep-going": not request.stop_on_nonfinite,
            **({"states-every": every.states, "states-bits": every.bits} if every.states else {}),
        }  # fmt: skip

    def resumed(self, request: RolloutRequest, settings: Mapping[str, Mapping[str, int]]) -> RolloutSetup:
        """The setup with the strides of the run that goes on; one that was asked for must be the same."""
        former = self.following(settings)
        every = former.strides
        require_same_states(request, every.states, every.bits)
        for name, old in zip(_STRIDES, (every.hash, every.observe, every.sheet, every.bands), strict=True):
            new: int | None = getattr(request, name)
            if new is not None and new != old:
                raise InputError(
                    f"the run that goes on has `{name}=` {old}, not {new}.",
                    f"leave `{name}=` away, or start a new run.",
                )
        return former

    def following(self, settings: Mapping[str, Mapping[str, int]]) -> RolloutSetup:
        """The setup with the strides that a checkpoint tells (`read_settings`)."""
        strides = [settings.get(name, {}).get("every", 0) for name in ("hashes", "observations", "sheet")]
        bands = settings.get("sheet", {}).get("bands", self.strides.bands)
        state_files = settings.get(StateFiles.name, {})
        every = RolloutStrides(
            *strides,
            bands=bands,
            keep=self.strides.keep,
            states=state_files.get("every", 0),
            bits=state_files.get("bits", BITS[0]),
        )
        return replace(self, strides=every)


def check_request(request: RolloutRequest, job: Job) -> None:
    """Refuses what cannot be meant, before anything is read."""
    for name in ("hash_every", "observe_every", "sheet_every", "checkpoint_every"):
        value: int | None = getattr(request, name)
        if value is not None and value < 1:
            raise InputError(f"`{name}=` is {value}.", "give a stride of 1 or more, or leave the option away.")
    if request.steps < 1:
        raise InputError(f"`steps=` is {request.steps}.", "ask for 1 step or more.")
    if (request.A is None) == (request.operator is None):
        raise InputError("an operator is needed, and one only.", "give `A=`, or `operator=`.")
    if request.operator is not None and (request.b is not None or request.psi != "none" or not request.portable):
        raise InputError("`b=`, `psi=` and `portable=False` go with `A=`.", "leave them away, or give `A=`.")
    if request.checkpoint_every and job.out is None:
        raise InputError("checkpoints are kept in a run folder.", "name one with `out=`.")
    if not request.portable and request.certificate:
        raise InputError(
            "sums in the device's own order are not portable: nobody could verify the certificate elsewhere.",
            "leave `portable=False` or `certificate=` away.",
        )
    if request.certificate is not None and any(not isinstance(one, _PATH) for one in _inputs(request)):
        raise InputError(
            "a certificate names the files of its inputs, and some of these are arrays.",
            "give `out=` instead of `certificate=`: a run folder keeps the inputs beside its certificate.",
        )
    check_states(request, job.out, portable=request.portable)
    for file in (as_path(request.certificate), as_path(request.metrics)):
        if file is not None:
            require_writable(file)
    job.require_place()


def read_setup(request: RolloutRequest, job: Job) -> RolloutSetup:
    """Reads and checks the inputs."""
    sources: dict[str, Source] = {}

    def values_of(name: str, value: HostArray | AnyPath) -> HostArray:
        if not isinstance(value, _PATH):
            return np.asarray(value)
        sources[name] = read_source(Path(value), name)
        return sources[name].values

    values = values_of(STATE, request.z0)
    if isinstance(request.operator, Operator):
        operator = _with_dtype(request.operator, request.dtype)
        z0 = as_floats(STATE, values, operator.dtype)
    else:
        dtype = run_dtype(request.dtype, values)
        z0 = as_floats(STATE, values, dtype)
        if request.operator is not None:
            stored, arrays = operator_sources(Path(request.operator))
            operator = make_operator(stored.kind, stored.version, stored.arrays, stored.parameters, dtype)
            sources |= arrays
        else:
            dense = {name: value for name, value in (("A", request.A), ("b", request.b)) if value is not None}
            operator = _dense(request, {n: as_floats(n, values_of(n, value), dtype) for n, value in dense.items()})
    _remark_on_types(sources, operator, job.events)
    states = z0[None] if z0.shape == operator.shape else z0
    if states.shape[1:] != operator.shape:
        shape = ", ".join(str(n) for n in operator.shape)
        raise ShapeError(
            f"z0 has shape {z0.shape}; the operator advances states of shape {operator.shape}.",
            f"give z0 of shape {operator.shape}, or (M, {shape}) for an ensemble.",
        )
    require_states_room(job.out, request, states)
    return RolloutSetup(operator, states, sources, _strides(request, operator, sheet=job.out is not None))


def _inputs(request: RolloutRequest) -> list[object]:
    return [one for one in (request.z0, request.operator, request.A, request.b) if one is not None]


def _with_dtype(operator: Operator, dtype: str | None) -> Operator:
    if dtype is not None and operator.dtype != np.dtype(dtype):
        raise DTypeError(
            f"the operator is of {operator.dtype}, and {dtype} is asked for.",
            f"make the operator of arrays of {dtype}, or leave `dtype=` away.",
        )
    return operator


def _remark_on_types(sources: Mapping[str, Source], operator: Operator, events: Events) -> None:
    for name, source in sources.items():
        if source.values.dtype.kind == "f" and source.values.dtype != operator.dtype:
            events.remark(f"{name} is {source.values.dtype} in {source.path}; it is used as {operator.dtype}")


def _dense(request: RolloutRequest, arrays: dict[str, HostArray]) -> Operator:
    if "b" not in arrays and request.psi == "none":
        return Linear(arrays["A"], portable=request.portable)
    numbers = {"alpha": request.alpha, "low": request.low, "high": request.high}
    return Affine(arrays["A"], arrays.get("b"), request.psi, portable=request.portable, **numbers)


def _strides(request: RolloutRequest, operator: Operator, *, sheet: bool) -> RolloutStrides:
    observe = request.observe_every or max(1, request.steps // _OBSERVED)
    return RolloutStrides(
        hash=claimed_stride(request.states_every, request.hash_every, min(_HASHES, request.steps)),
        observe=observe,
        sheet=request.sheet_every or (observe if sheet else 0),
        bands=request.bands or min(_BANDS, operator.shape[-1]),
        keep=request.checkpoint_every or 0,
        states=request.states_every or 0,
        bits=request.states_bits or BITS[0],
    )
