"""What `dashi flow rollout` runs: the z and its schema, the operator, the statistics of a residual."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

from dashi.cli.flow_rollout import Request
from dashi.core.certificates.certificate import array_digest
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
from dashi.flow.windows.recorded import windows_from_run
from dashi.io import run_folder
from dashi.io.arrays import file_digest
from dashi.io.files import require_writable
from dashi.io.run_names import DECODED, FIELDS, FILM, PICTURES, Z
from dashi.kernels.portable import canon
from dashi.lab.capacity import require_disk, require_memory
from dashi.runtime.device import Device
from dashi.types import Array, Shape

COMMAND: Final = "flow rollout"
"""The last z, with its schema."""
_MEASURES, _MEMBER, _CLOCK, _HASH = 1024, 96, 40, 400
"""About how many bytes of memory a decode takes that is looked at, and each member of it; one that is not; a hash."""
_ONE_OF: Final = "give --z0 FILE with --A, --operator or --model FILE; --from RUN with --model FILE; or --fit-from RUN."


@dataclass(frozen=True, eq=False)
class Setup:
    """What advances z, the initial states (members, D), and what lays them out. `interval` is the flow time of a
    step."""

    schema: Schema
    advances: Operator | Model
    z0: Array
    statistics: Statistics | None
    interval: float | None
    truth: Array | None = None
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


def check_request(request: Request) -> Settings:
    """Refuses options that contradict each other, and places that cannot be written, before anything is read. How
    fields are made."""
    starts = (request.z0, request.start, request.fit_from)
    if sum(one is not None for one in starts) != 1:
        raise InputError("a rollout starts from one place: a z, a run, or a run to fit.", _ONE_OF)
    given = (request.matrix, request.operator, request.model)
    if request.fit_from is not None and any(one is not None for one in given):
        raise InputError("--fit-from fits the operator itself.", "leave --A, --operator and --model away.")
    if request.fit_from is None and sum(one is not None for one in given) != 1:
        raise InputError("z is advanced by one of --A, --operator and --model.", _ONE_OF)
    if request.start is not None and request.model is None:
        raise InputError("--from goes with --model, which knows how z is laid out.", _ONE_OF)
    _check_numbers(request)
    _check_idle(request)
    if request.residual == "statistics" and request.statistics is None and request.z0 is not None:
        raise InputError(
            "the residual statistics needs those of training data.", "give --statistics FILE, or start from a run."
        )
    if request.observer in ("snapshots", "visualize") and request.out is None:
        raise InputError(f"--observer {request.observer} has nowhere to put fields.", "name a run folder with --out.")
    settings = Settings(
        residual=str(request.residual), gate=str(request.gate), seed=request.seed, dtype=str(request.dtype)
    )
    require_room(request, 1, 1)
    if request.out is not None:
        require_writable(request.out, folder=True)
        run_folder.require_ours(request.out, COMMAND, overwrite=request.overwrite)
    if request.trace is not None:
        require_writable(request.trace)
    return settings


def _check_numbers(request: Request) -> None:
    counts = {"--steps": request.steps, "--decode-every": request.decode_every, "--hash-every": request.hash_every}
    for name, value in counts.items():
        if value is not None and value < 1:
            raise InputError(f"{name} is {value}.", "use 1 or more.")
    if request.anchors < 0:
        raise InputError(f"--anchors is {request.anchors}.", "use 0 or more.")
    if not (math.isfinite(request.ridge) and request.ridge >= 0):
        raise InputError(f"--ridge is {request.ridge:g}.", "use a finite number, 0 or more; 1e-6 is the default.")


def _check_idle(request: Request) -> None:
    """Refuses options that would change nothing: whoever gives one means something by it."""
    fits, draws = request.fit_from is not None, request.residual != "none"
    idle = {
        "n": "--n goes with --compat v4; otherwise the grid is that of z.",
        **({} if fits else dict.fromkeys(("k_cut", "anchors", "ridge"), "{} goes with --fit-from.")),
        **({} if draws else dict.fromkeys(("gate", "seed"), "{} goes with a residual, and there is none.")),
        **({"hash_every": "a model is not hashed, so {} changes nothing."} if request.model is not None else {}),
    }
    if request.residual != "statistics":
        idle["statistics"] = "{} goes with --residual statistics."
    for name, told in idle.items():
        if name in request.given:
            option = request.given[name]
            raise InputError(told.format(option), f"leave {option} away.")


def settings_of(request: Request, setup: Setup) -> dict[str, object]:
    """All that decides the results of a rollout: where it runs does not. Files count by what is in them."""
    made: dict[str, object] = {
        name.replace("_", "-"): getattr(request, name)
        for name in ("steps", "decode_every", "observer", "residual", "gate", "seed", "dtype", "hash_every")
    }
    named = {"A": request.matrix, "operator": request.operator, "model": request.model, "z0": request.z0}
    for name, file in {**named, "statistics": request.statistics}.items():
        made |= {} if file is None else {name: file_digest(file)}
    if setup.truth is not None:
        made |= {"start": array_digest(setup.truth)}
    if request.fit_from is not None:
        made |= {"k-cut": request.k_cut, "anchors": request.anchors, "ridge": request.ridge}
    return made


def files_of(request: Request) -> tuple[str, ...]:
    """What a rollout may leave."""
    more = {"snapshots": (FIELDS,), "visualize": (PICTURES, FILM)}.get(str(request.observer), ())
    return (run_folder.METRICS, run_folder.CERTIFICATE, run_folder.INPUTS, Z, DECODED, *more)


def require_room(request: Request, n: int, members: int) -> None:
    """Refuses more decodes than there is memory or disk for: before the first step, and not after a night of them."""
    snapshots = request.steps // request.decode_every + 1
    looked = request.observer != "none" and request.out is not None
    hashes = 0 if request.model is not None else request.steps // (request.hash_every or request.steps)
    require_memory(
        snapshots * (_MEASURES + members * _MEMBER if looked else _CLOCK) + hashes * _HASH,
        f"what is kept of {snapshots} decodes and {hashes} hashes would",
        "use fewer --steps, or a larger --decode-every and --hash-every.",
    )
    if request.out is None:
        return
    each = {"snapshots": np.dtype(request.dtype).itemsize + 8, "visualize": 1}.get(str(request.observer), 0)
    require_disk(
        request.out, snapshots * members * n * n * each, f"{snapshots} decoded fields of {n} x {n} would",
        "use fewer --steps, a larger --decode-every, or --observer metrics.",
    )  # fmt: skip


def make_setup(request: Request, device: Device) -> Setup:
    """Reads or fits what runs; refuses what there is no room for."""
    given = None if request.statistics is None else load_statistics(request.statistics)
    if request.fit_from is not None:
        return _fitted(request, request.fit_from, given, device)
    if request.model is not None:
        return _modelled(request, request.model, given, device)
    assert request.z0 is not None  # check_request saw to it
    schema, z0 = load_z(request.z0)
    kind = np.dtype(request.dtype)
    if request.operator is not None:
        operator = load_operator(request.operator, kind)
    else:
        assert request.matrix is not None
        operator = Linear(as_floats("A", read_source(request.matrix, "A").values, kind))
    if operator.shape != (schema.size,):
        raise InputError(
            f"the operator advances states of shape {operator.shape}; z in {request.z0} has {schema.size} numbers.",
            "use the operator that was fitted to z of this schema.",
        )
    return _roomy(request, Setup(schema, operator, _states(schema, z0, kind), given, None))


def _roomy(request: Request, setup: Setup) -> Setup:
    require_room(request, setup.schema.n, len(setup.z0))
    return setup


def _states(schema: Schema, z: Array, kind: np.dtype[Any]) -> Array:
    return canon(np.ascontiguousarray(z.reshape(-1, schema.size).astype(kind)))


def _modelled(request: Request, path: Path, statistics: Statistics | None, device: Device) -> Setup:
    model, kind = load_model(path), np.dtype(request.dtype)
    schema = model.schema
    truth: Array | None = None
    flow: Flow | None = getattr(model, "flow", None)
    if request.start is not None:
        windows = windows_from_run(request.start)
        flow = windows.flow
        if (windows.flow.n, windows.flow.length) != (schema.n, schema.length):
            raise InputError(
                f"{request.start} has {windows.flow.n} x {windows.flow.n} points in a box of {windows.flow.length:g}, "
                f"the model is for {schema.n} x {schema.n} in {schema.length:g}.",
                "start from a run on the grid of the model, or fit a model to this one: `dashi flow fit`.",
            )
        truth = windows.fields[:, 0]
        z = encode(schema, truth.astype(kind), device=device)
        if statistics is None and request.residual == "statistics":
            statistics = fit_statistics(schema, windows.fields)
    else:
        assert request.z0 is not None  # check_request saw to it
        found, z = load_z(request.z0)
        if found.digest != schema.digest:
            raise InputError(
                f"z in {request.z0} is laid out for n = {found.n}, k_cut = {found.k_cut:g}, {len(found.anchors)} "
                f"anchors, the model for n = {schema.n}, k_cut = {schema.k_cut:g}, {len(schema.anchors)}.",
                "encode the start with the schema of the model, or give --from RUN.",
            )
    return _roomy(request, Setup(schema, model, _states(schema, z, kind), statistics, model.interval, truth, flow))


def _fitted(request: Request, run: Path, statistics: Statistics | None, device: Device) -> Setup:
    windows = windows_from_run(run)
    flow, kind = windows.flow, np.dtype(request.dtype)
    require_room(request, flow.n, len(windows))
    fields = windows.fields.astype(kind)
    schema = Schema(flow.n, request.k_cut, length=flow.length)
    if request.anchors:
        schema = choose_anchors(schema, fields, request.anchors, device=device)
    z = encode(schema, fields, device=device)
    try:
        made = fit_pairs(z.astype(np.float64), request.ridge, device=device)
    except InputError as error:
        # What it says of lam is said of --ridge here.
        raise InputError(
            f"--ridge {request.ridge:g} does not do for {run}: {error.what}",
            "use a larger --ridge (1e-6 is the default), or a smaller --k-cut and fewer --anchors.",
        ) from error
    if statistics is None and request.residual == "statistics":
        statistics = fit_statistics(schema, windows.fields)
    states, step = _states(schema, z[:, 0], kind), windows.interval * flow.dt
    return Setup(schema, Linear(made.astype(kind)), states, statistics, step, windows.fields[:, 0], flow)
