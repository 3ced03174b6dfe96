"""What a fit is asked for, and what of it is refused before the work."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from dashi.errors import FileError, InputError
from dashi.flow._initial_files import is_field_file
from dashi.flow.equations import Flow
from dashi.flow.evaluation._fits import require_model
from dashi.flow.proxy.catalogue import MODELS
from dashi.flow.proxy.encode import require_anchors
from dashi.flow.proxy.schema import Schema
from dashi.flow.windows import UNKNOWN, Naming, Windows, frames_in
from dashi.io._files import require_writable
from dashi.io._shards import Shard
from dashi.io.arrays import read_arrays
from dashi.lab._capacity import require_memory
from dashi.lab._job import AnyPath, Request
from dashi.lab._seeds import frozen_seeds, require_seeds, seed_count
from dashi.runtime.device import Device

_INTERVAL: Final = 10
_SPIN_UP: Final = 100
_SEEDS: Final = 2
_INITIAL: Final = "random"
_COPIES: Final = 2
"""Copies of the windows in memory at the same time."""


@dataclass(frozen=True, kw_only=True, eq=False)
class FitRequest(Request):
    """A model of a flow, fitted to windows that are simulated or read; lengths in steps of dt. There is nothing to
    resume: a fit takes minutes and is one search over all its data, so one that was stopped is asked for again."""

    model: str = "galerkin"
    flow: Flow | None = None
    """What is simulated; with `source`, what its caller says of a record, which must agree with it."""
    source: AnyPath | None = None
    """The folder of a run, a NetCDF file or a Zarr store, instead of a simulation."""
    stated: frozenset[str] | None = None
    """The parameters of `flow` that a record must have; None is all of them. Others are the record's own."""
    variables: tuple[str, ...] = ()
    """How a file names vorticity, or the velocities along x and along y."""
    dims: Mapping[str, str] = field(default_factory=dict[str, str])
    """How a file names its axes time, y, x or member."""
    train: Sequence[int] | int | None = None
    """Seeds to train on, or how many. None is two in a simulation, in a record all that are not for validation."""
    validate: Sequence[int] | int = 1
    """Seeds to choose on, or how many; of a record with one seed, how many windows."""
    train_steps: int = 200
    """Steps of a training window."""
    frame_every: int | None = None
    """Steps between frames: 10, or those of the record."""
    windows: int | None = None
    """Windows of each seed, one after another: 1, or all that the record has."""
    spin_up: int | None = None
    """Steps before the first window: 100, in a record none."""
    initial: str | None = None
    """The name of an initial condition (random), or a file that holds vorticity."""
    initial_options: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Numbers of a named initial condition, such as peak."""
    k_cut: float = 8.0
    """z holds all modes up to this wave number."""
    anchors: int = 0
    """z also holds so many of the strongest modes up to 1.5 times k_cut."""
    model_options: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Options of the model, such as factor of galerkin."""
    baselines: tuple[str, ...] = ()
    """Models to compare with; none named are those that belong beside every model."""
    host_fft: bool = False
    """NumPy's own transforms on the device cpu: quick, not portable."""
    shard: Shard | None = None
    """Only the data of the seeds of this part, in a folder that `lab.merge` fits to: `lab.fit_data`."""

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("train", "validate"):
            seeds: Sequence[int] | int | None = getattr(self, name)
            if seeds is not None and not isinstance(seeds, int):
                object.__setattr__(self, name, frozen_seeds(name, seeds))

    @property
    def path(self) -> Path | None:
        """Where the record lies, if it is one."""
        return None if self.source is None else Path(self.source)

    @property
    def naming(self) -> Naming:
        return Naming(self.variables, self.dims)

    @property
    def interval(self) -> int:
        """Steps between frames of a simulation."""
        return _INTERVAL if self.frame_every is None else self.frame_every

    @property
    def first_step(self) -> int:
        """The step where the first window begins."""
        if self.spin_up is not None:
            return self.spin_up
        return _SPIN_UP if self.source is None else 0

    @property
    def start(self) -> str:
        """The initial condition of a simulation."""
        return _INITIAL if self.initial is None else str(self.initial)

    @property
    def from_file(self) -> bool:
        """Whether the flow starts from the fields of a file."""
        return is_field_file(self.start)

    @property
    def simulated_seeds(self) -> tuple[Sequence[int], Sequence[int]]:
        """Seeds of a simulation to train on, and to choose on."""
        train = _SEEDS if self.train is None else self.train
        some = range(train) if isinstance(train, int) else train
        if not isinstance(self.validate, int):
            return some, self.validate
        first = (some[-1] if isinstance(some, range) else max(some)) + 1
        return some, range(first, first + self.validate)

    @property
    def simulated_flow(self) -> Flow:
        """The flow to simulate."""
        if self.flow is None:
            raise InputError("there is nothing to fit a model to.", "pass `flow=`, or a record as `source=`.")
        return self.flow


def check_fit(request: FitRequest, out: Path | None) -> None:
    """Refuses what cannot be meant, before a device is opened or anything is read."""
    for name in ("train_steps", "windows", "frame_every"):
        value: int | None = getattr(request, name)
        if value is not None and value < 1:
            raise InputError(f"`{name}=` is {value}.", "use 1 or more.")
    for name in ("spin_up", "anchors"):
        value = getattr(request, name)
        if value is not None and value < 0:
            raise InputError(f"`{name}=` is {value}.", "use 0 or more.")
    _check_seeds(request)
    require_model(request.model)
    if out is not None:
        require_writable(out)
        # Whatever is there is replaced only if it is an earlier fit.
        if out.exists() and not is_fit(out):
            raise FileError(f"{out} is there already and is no model.", "choose another with `out=`.")
    request.naming.require_own(request.path)
    if request.source is None:
        _check_simulation(request)
        return
    idle = {"initial": request.initial is not None, "initial_options": request.initial_options}
    for name, asked in {**idle, "host_fft": request.host_fft}.items():
        if asked:
            raise InputError(
                f"`{name}={'True' if asked is True and name == 'host_fft' else ''}` is for simulations, and `source=` "
                "reads what is there.",
                "leave one of them away.",
            )


def _check_seeds(request: FitRequest) -> None:
    for name, least in (("train", 1), ("validate", 0)):
        seeds: Sequence[int] | int | None = getattr(request, name)
        if isinstance(seeds, int) and seeds < least:
            raise InputError(f"`{name}=` is {seeds}.", f"use {least} or more.")
        if seeds is not None and not isinstance(seeds, int):
            require_seeds(name, seeds, least)


def _check_simulation(request: FitRequest) -> None:
    if request.from_file and request.initial_options:
        raise InputError("`initial_options=` goes with a named initial condition.", "leave it away with a file.")
    flow, frames = request.simulated_flow, frames_in(request.train_steps, request.interval)
    train, validate = request.simulated_seeds
    count, each = seed_count(train) + seed_count(validate), request.windows or 1
    require_memory(
        _COPIES * count * each * frames * flow.n**2 * flow.numpy_dtype.itemsize,
        f"{count} seed(s) with {each} window(s) of {frames} frames each",
        "use fewer seeds or `windows=`, a shorter `train_steps=`, or a larger `frame_every=`.",
    )
    both = sorted({*train} & {*validate})
    if both:
        raise InputError(f"seed {both[0]} is in `train=` and in `validate=`.", "choose on seeds not trained on.")


def is_fit(path: Path) -> bool:
    """Whether a file holds a model."""
    try:
        return path.is_file() and "model" in read_arrays(path)
    except FileError:
        return False


def check_models(request: FitRequest, flow: Flow, frames: int, baselines: Sequence[str], device: Device) -> Schema:
    """The schema, once it is known that it and all models fit the flow and windows of so many frames."""
    schema = Schema(flow.n, request.k_cut, length=flow.length)
    require_anchors(schema, request.anchors)
    # Which modes the anchors are, the data will say; how many numbers z has is known already.
    some = tuple((int(ky), int(kx)) for ky, kx in schema.mid[: request.anchors])
    like = replace(schema, anchors=some)
    MODELS[request.model].check(like, flow, frames, request.model_options, device=device)
    for name in baselines:
        if name != request.model:
            MODELS[name].check(like, flow, frames, {}, device=device)
    return schema


def check_recorded(request: FitRequest, record: Windows) -> None:
    """Refuses a request that says otherwise than the record does: nothing that was asked for is passed over."""
    source = request.source
    if request.flow is not None:
        has, stated = record.flow.parameters, request.flow.parameters
        for name in [name for name in stated if request.stated is None or name in request.stated]:
            if name not in has or not _same(has[name], stated[name]):
                raise _other(source, f"{name} = {has.get(name, 'none')}", f"`{name.split('_')[0]}=`", stated[name])
    if request.frame_every not in (None, record.interval):
        raise _other(source, f"a frame every {record.interval} steps", "`frame_every=`", request.frame_every)
    if UNKNOWN in record.seeds and (request.train is not None or not isinstance(request.validate, int)):
        raise InputError(
            f"{source} says of no window which seed made it, so none can be chosen.", "leave seeds to train on away."
        )


def _same(has: int | float | str, stated: int | float | str) -> bool:
    if isinstance(has, str) or isinstance(stated, str):
        return has == stated
    # A length is measured from coordinates in some files.
    return abs(has - stated) <= 1e-6 * abs(stated)


def _other(source: AnyPath | None, has: str, argument: str, value: object) -> InputError:
    return InputError(
        f"{source} has {has}, and {argument} says {value}.", f"leave {argument} away: the record decides."
    )
