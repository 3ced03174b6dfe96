"""What a decoded rollout is asked for, and what runs: z and its schema, the operator or model, the statistics of a
residual."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

from dashi.core.certificates._certificate import array_digest
from dashi.core.certificates.inputs import as_floats, load_operator, read_source
from dashi.core.learning.ridge import fit_pairs
from dashi.core.operators.affine import Linear
from dashi.core.operators.operator import Operator
from dashi.errors import InputError
from dashi.flow.decode import Settings, Statistics, fit_statistics, load_statistics
from dashi.flow.equations import Flow
from dashi.flow.proxy.catalogue import load_model
from dashi.flow.proxy.encode import choose_anchors, encode
from dashi.flow.proxy.files import load_z
from dashi.flow.proxy.model import Model
from dashi.flow.proxy.schema import Schema
from dashi.flow.windows import windows_from_run
from dashi.io import _run_folder as run_folder
from dashi.io._run_names import DECODED, FIELDS, FILM, PICTURES, Z
from dashi.io.arrays import file_digest
from dashi.kernels.portable import canon
from dashi.lab._capacity import require_disk, require_memory
from dashi.lab._job import AnyPath, Request
from dashi.lab._kept_states import check_states, claimed_stride
from dashi.runtime.device import Device
from dashi.types import HostArray, Shape

OBSERVERS: Final = ("none", "metrics", "snapshots", "visualize")
"""What comes back of decoded fields: nothing, energies and counts, the fields, or pictures."""
_MEASURES, _MEMBER, _CLOCK, _HASH = 1024, 96, 40, 400
"""About how many bytes of memory a decode takes that is looked at, and each member of it; one that is not; a hash."""
_K_CUT, _RIDGE = 8.0, 1e-6
_CLAIMS: Final = ("hash_every", "states_every", "states_bits")
_NO_HASH: Final = "a model is not hashed, so {} changes nothing."
_ONE_OF: Final = "give `z0=` with `A=`, `operator=` or `model=`; `start=` with `model=`; or `fit_from=` alone."


@dataclass(frozen=True, kw_only=True, eq=False)
class FollowRequest(Request):
    """z advanced by a model, a matrix or an operator for so many steps, and decoded to fields on a stride. What is None
    has its default; what the rest of the request makes idle is refused. One that was stopped goes on by
    `remaining_request(run)`, as a run of its own."""

    z0: AnyPath | None = None
    """A file of `save_z`: z (D,) or (members, D) with its schema."""
    A: AnyPath | None = None
    """The matrix of z' = z A, as .npz with the key A."""
    operator: AnyPath | None = None
    """An operator of any kind as one .npz, instead of `A`."""
    model: AnyPath | None = None
    """The file of a fit, instead of `A`; steps are frames of its model."""
    start: AnyPath | None = None
    """With `model`: a run, at whose first frame it starts."""
    fit_from: AnyPath | None = None
    """A run to whose frames a matrix is fitted; it starts at the first."""
    k_cut: float | None = None
    """With `fit_from`: modes up to this wave number are in z; 8."""
    anchors: int | None = None
    """With `fit_from`: z also holds so many strong modes up to 1.5 times k_cut; none."""
    ridge: float | None = None
    """With `fit_from`: the penalty of the fit; 1e-6."""
    steps: int = 100
    decode_every: int = 10
    """z0 is decoded, and z after every so many steps."""
    decode_device: str | None = None
    """Where fields are decoded, beside the steps: another device, by name, or that of the steps, on a queue of its own;
    None: on that device, behind the steps. The files are the same."""
    fft_device: str | None = None
    """Where the Fourier transforms of a decode are computed, by name; None: where it decodes."""
    observer: str = "metrics"
    """What comes back of decoded fields: none, metrics, snapshots or visualize; the last two need a run folder."""
    residual: str = "none"
    """What is put where z holds no modes: none, seeded or statistics."""
    gate: str | None = None
    """Where a residual is let through: support, signed or open; support."""
    seed: int | None = None
    """The seed of a residual; 0."""
    statistics: AnyPath | None = None
    """For the residual statistics: a file of `save_statistics`; those of the run that it starts from."""
    dtype: str = "float32"
    """The element type of z and of fields."""
    hash_every: int | None = None
    """Steps between hashes of the state, not with a model; 10 hashes."""
    states_every: int | None = None
    """Steps between states that are kept in the run folder, for its certificate; not with a model."""
    states_bits: int | None = None
    """Bits of the digests of kept states: 128, or 256; 128."""
    stage_times: bool = True
    """Whether the stages of a decode are measured, apart, before the run."""

    @property
    def hash_stride(self) -> int:
        """Steps between hashes."""
        return claimed_stride(self.states_every, self.hash_every, max(1, self.steps // 10))

    @property
    def settings(self) -> Settings:
        """How fields are made."""
        return Settings(residual=self.residual, gate=self.gate or "support", seed=self.seed or 0, dtype=self.dtype)


@dataclass(frozen=True, eq=False)
class FollowSetup:
    """What advances z, the initial states (members, D), and what lays them out. `interval` is the flow time of a
    step."""

    schema: Schema
    advances: Operator | Model
    z0: HostArray
    statistics: Statistics | None
    interval: float | None
    truth: HostArray | None = None
    """The fields that z0 was encoded from, where they are known."""
    flow: Flow | None = None
    """The flow that z is of, where that is known."""

    @property
    def kind(self) -> str:
        """The name of what advances z."""
        return self.advances.name if isinstance(self.advances, Model) else self.advances.kind

    @property
    def shape(self) -> Shape:
        return (self.schema.size,)

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.z0.dtype

    @property
    def portable(self) -> bool:
        """Whether hashes hold on every device; the rollouts of models are not hashed."""
        return not isinstance(self.advances, Model) and self.advances.portable


def check_follow(request: FollowRequest, out: Path | None) -> None:
    """Refuses a request that contradicts itself, before anything is read."""
    starts = (request.z0, request.start, request.fit_from)
    if sum(path is not None for path in starts) != 1:
        raise InputError("a rollout starts from one place: a z, a run, or a run to fit.", _ONE_OF)
    advances = (request.A, request.operator, request.model)
    if request.fit_from is not None and any(path is not None for path in advances):
        raise InputError("`fit_from=` fits the operator itself.", "leave `A=`, `operator=` and `model=` away.")
    if request.fit_from is None and sum(path is not None for path in advances) != 1:
        raise InputError("z is advanced by one of `A=`, `operator=` and `model=`.", _ONE_OF)
    if request.start is not None and request.model is None:
        raise InputError("`start=` goes with `model=`, which knows how z is laid out.", _ONE_OF)
    _check_numbers(request)
    _check_idle(request)
    check_states(request, out, portable=request.model is None)
    _ = request.hash_stride  # refuses one that leaves out a kept state
    if request.residual == "statistics" and request.statistics is None and request.z0 is not None:
        raise InputError(
            "the residual statistics needs those of training data.", "give `statistics=`, or start from a run."
        )
    if request.observer not in OBSERVERS:
        raise InputError(f"there is no observer {request.observer!r}.", f"use one of {', '.join(OBSERVERS)}.")
    if request.observer in ("snapshots", "visualize") and out is None:
        what = f'`observer="{request.observer}"` has nowhere to put fields.'
        raise InputError(what, "name a run folder with `out=`.")
    _ = request.settings  # refuses a residual, a gate, a seed or a dtype that is none
    require_room(request, out, 1, 1)


def _check_numbers(request: FollowRequest) -> None:
    for name in ("steps", "decode_every", "hash_every"):
        value: int | None = getattr(request, name)
        if value is not None and value < 1:
            raise InputError(f"`{name}=` is {value}.", "use 1 or more.")
    if request.anchors is not None and request.anchors < 0:
        raise InputError(f"`anchors=` is {request.anchors}.", "use 0 or more.")
    if request.ridge is not None and not (math.isfinite(request.ridge) and request.ridge >= 0):
        raise InputError(f"`ridge=` is {request.ridge:g}.", "use a finite number, 0 or more; 1e-6 is the default.")


def _check_idle(request: FollowRequest) -> None:
    """Refuses what would change nothing: whoever asks for it means something by it."""
    fits, draws = request.fit_from is not None, request.residual != "none"
    idle = {
        **({} if fits else dict.fromkeys(("k_cut", "anchors", "ridge"), "{} goes with `fit_from=`.")),
        **({} if draws else dict.fromkeys(("gate", "seed"), "{} goes with a residual, and there is none.")),
        **(dict.fromkeys(_CLAIMS, _NO_HASH) if request.model is not None else {}),
    }
    if request.residual != "statistics":
        idle["statistics"] = '{} goes with `residual="statistics"`.'
    for name, why in idle.items():
        if getattr(request, name) is not None:
            raise InputError(why.format(f"`{name}=`"), f"leave `{name}=` away.")


def settings_of(request: FollowRequest, setup: FollowSetup) -> dict[str, object]:
    """All that decides the results of a rollout: where it runs does not. Files count by what is in them."""
    drawn = request.settings
    values: dict[str, object] = {
        "steps": request.steps, "decode-every": request.decode_every, "observer": request.observer,
        "residual": drawn.residual, "gate": drawn.gate, "seed": drawn.seed, "dtype": request.dtype,
        "hash-every": request.hash_every,
    }  # fmt: skip
    if request.states_every is not None:
        values |= {"states-every": request.states_every, "states-bits": request.states_bits}
    for name in ("A", "operator", "model", "z0", "statistics"):
        path: AnyPath | None = getattr(request, name)
        values |= {} if path is None else {name: file_digest(Path(path))}
    if setup.truth is not None:
        values |= {"start": array_digest(setup.truth)}
    if request.fit_from is not None:
        values |= {"k-cut": _k_cut(request), "anchors": request.anchors or 0, "ridge": _ridge(request)}
    return values


def _k_cut(request: FollowRequest) -> float:
    return _K_CUT if request.k_cut is None else request.k_cut


def _ridge(request: FollowRequest) -> float:
    return _RIDGE if request.ridge is None else request.ridge


def files_of(request: FollowRequest) -> tuple[str, ...]:
    """What a rollout may leave."""
    more = {"snapshots": (FIELDS,), "visualize": (PICTURES, FILM)}.get(request.observer, ())
    return (run_folder.METRICS, run_folder.CERTIFICATE, run_folder.INPUTS, run_folder.STATES, Z, DECODED, *more)


def require_room(request: FollowRequest, out: Path | None, n: int, members: int) -> None:
    """Refuses more decodes than there is memory or disk for: before the first step, and not after a night of them."""
    snapshots = request.steps // request.decode_every + 1
    looked = request.observer != "none" and out is not None
    hashes = 0 if request.model is not None else request.steps // (request.hash_every or request.steps)
    require_memory(
        snapshots * (_MEASURES + members * _MEMBER if looked else _CLOCK) + hashes * _HASH,
        f"what is kept of {snapshots} decodes and {hashes} hashes would",
        "use fewer `steps=`, or a larger `decode_every=` and `hash_every=`.",
    )
    if out is None:
        return
    each = {"snapshots": np.dtype(request.dtype).itemsize + 8, "visualize": 1}.get(request.observer, 0)
    require_disk(
        out, snapshots * members * n * n * each, f"{snapshots} decoded fields of {n} x {n} would",
        'use fewer `steps=`, a larger `decode_every=`, or `observer="metrics"`.',
    )  # fmt: skip


def make_setup(request: FollowRequest, device: Device, out: Path | None) -> FollowSetup:
    """Reads or fits what runs; refuses what there is no room for."""
    statistics = None if request.statistics is None else load_statistics(Path(request.statistics))
    if request.fit_from is not None:
        return _fitted(request, Path(request.fit_from), statistics, device, out)
    if request.model is not None:
        setup = _modelled(request, Path(request.model), statistics, device)
    else:
        setup = _mapped(request, statistics)
    require_room(request, out, setup.schema.n, len(setup.z0))
    return setup


def _states(schema: Schema, z: HostArray, dtype: np.dtype[Any]) -> HostArray:
    return canon(np.ascontiguousarray(z.reshape(-1, schema.size).astype(dtype)))


def _mapped(request: FollowRequest, statistics: Statistics | None) -> FollowSetup:
    """A matrix or an operator from a file."""
    assert request.z0 is not None  # check_follow saw to it
    schema, z0 = load_z(Path(request.z0))
    dtype = np.dtype(request.dtype)
    if request.operator is not None:
        operator = load_operator(Path(request.operator), dtype)
    else:
        assert request.A is not None
        operator = Linear(as_floats("A", read_source(Path(request.A), "A").values, dtype))
    if operator.shape != (schema.size,):
        raise InputError(
            f"the operator advances states of shape {operator.shape}; z in {request.z0} has {schema.size} numbers.",
            "use the operator that was fitted to z of this schema.",
        )
    return FollowSetup(schema, operator, _states(schema, z0, dtype), statistics, None)


def _modelled(request: FollowRequest, path: Path, statistics: Statistics | None, device: Device) -> FollowSetup:
    """The model of a fit, from a z or from the first frame of a run."""
    model, dtype = load_model(path), np.dtype(request.dtype)
    schema = model.schema
    truth: HostArray | None = None
    flow: Flow | None = getattr(model, "flow", None)
    if request.start is not None:
        windows = windows_from_run(Path(request.start))
        flow = windows.flow
        if (windows.flow.n, windows.flow.length) != (schema.n, schema.length):
            raise InputError(
                f"{request.start} has {windows.flow.n} x {windows.flow.n} points in a box of {windows.flow.length:g}, "
                f"the model is for {schema.n} x {schema.n} in {schema.length:g}.",
                "start from a run on the grid of the model, or fit a model to this one, as `source=`.",
            )
        truth = windows.fields[:, 0]
        z = encode(schema, truth.astype(dtype), device=device)
        if statistics is None and request.residual == "statistics":
            statistics = fit_statistics(schema, windows.fields)
    else:
        assert request.z0 is not None  # check_follow saw to it
        other, z = load_z(Path(request.z0))
        if other.digest != schema.digest:
            raise InputError(
                f"z in {request.z0} is laid out for n = {other.n}, k_cut = {other.k_cut:g}, {len(other.anchors)} "
                f"anchors, the model for n = {schema.n}, k_cut = {schema.k_cut:g}, {len(schema.anchors)}.",
                "encode the start with the schema of the model, or give a run as `start=`.",
            )
    return FollowSetup(schema, model, _states(schema, z, dtype), statistics, model.interval, truth, flow)


def _fitted(
    request: FollowRequest, run: Path, statistics: Statistics | None, device: Device, out: Path | None
) -> FollowSetup:
    """A matrix fitted to the frames of a run."""
    windows = windows_from_run(run)
    flow, dtype = windows.flow, np.dtype(request.dtype)
    require_room(request, out, flow.n, len(windows))
    fields = windows.fields.astype(dtype)
    schema = Schema(flow.n, _k_cut(request), length=flow.length)
    if request.anchors:
        schema = choose_anchors(schema, fields, request.anchors, device=device)
    z = encode(schema, fields, device=device)
    try:
        matrix = fit_pairs(z.astype(np.float64), _ridge(request), device=device)
    except InputError as error:
        # What it says of lam is said of ridge here.
        raise InputError(
            f"`ridge={_ridge(request):g}` does not do for {run}: {error.what}",
            "use a larger `ridge=` (1e-6 is the default), or a smaller `k_cut=` and fewer `anchors=`.",
        ) from error
    if statistics is None and request.residual == "statistics":
        statistics = fit_statistics(schema, windows.fields)
    states, step = _states(schema, z[:, 0], dtype), windows.interval * flow.dt
    return FollowSetup(schema, Linear(matrix.astype(dtype)), states, statistics, step, windows.fields[:, 0], flow)
