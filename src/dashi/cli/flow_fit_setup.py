"""What `dashi flow fit` refuses before the work, and which options mean something for recorded data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from dashi.cli.flow_data import Naming
from dashi.cli.flow_fit import FitRequest
from dashi.cli.flow_setup import FIELD_FILES, flow_of, named_numbers
from dashi.errors import FileError, InputError
from dashi.flow.equations import Flow
from dashi.flow.evaluation.fits import require_model
from dashi.flow.proxy.catalogue import MODELS
from dashi.flow.proxy.encode import require_anchors
from dashi.flow.proxy.schema import Schema
from dashi.flow.windows import UNKNOWN, Windows, frames_in
from dashi.io.arrays import read_arrays
from dashi.io.files import require_writable
from dashi.lab.capacity import require_memory
from dashi.runtime.device import Device

_NO_SIMULATION = ("initial", "options", "fast")
"""Parameters that decide how data are made, which recorded ones are already."""
_COPIES = 2
"""Of the windows, in memory at the same time."""


def check_request(request: FitRequest) -> None:
    """Refuses what cannot be meant, before a device is opened or anything is read."""
    for name in ("train_steps", "seeds", "windows", "frame_every"):
        value: int | None = getattr(request, name)
        if value is not None and value < 1:
            raise InputError(f"--{name.replace('_', '-')} is {value}.", "use 1 or more.")
    for name in ("validation_seeds", "spin_up", "anchors"):
        if getattr(request, name) < 0:
            raise InputError(f"--{name.replace('_', '-')} is {getattr(request, name)}.", "use 0 or more.")
    require_model(request.model)
    require_writable(request.out)
    # Whatever is there is replaced only if it is an earlier fit.
    if request.out.exists() and not is_fit(request.out):
        raise FileError(f"{request.out} is there already and is no model.", "choose another with --out.")
    Naming.of(request.variable, request.dims, request.source)
    if request.source is not None:
        for name in [name for name in _NO_SIMULATION if name in request.given]:
            raise InputError(
                f"{request.given[name]} is for simulations, and --from reads what is there.", "leave one of them away."
            )
        return
    if is_file(request) and request.options:
        raise InputError("--set goes with a named initial condition.", "leave it away with a file.")
    flow, frames = flow_of(request), frames_in(request.train_steps, request.frame_every)
    count = request.seeds + request.validation_seeds
    require_memory(
        _COPIES * count * (request.windows or 1) * frames * flow.n**2 * flow.kind.itemsize,
        f"{count} seed(s) with {request.windows or 1} window(s) of {frames} frames each",
        "use fewer --seeds or --windows, a shorter --train-steps, or a larger --frame-every.",
    )


def is_file(request: FitRequest) -> bool:
    """Whether the flow starts from the fields of a file."""
    return Path(request.initial).suffix in FIELD_FILES


def is_fit(path: Path) -> bool:
    """Whether a file holds a model."""
    try:
        return path.is_file() and "model" in read_arrays(path)
    except FileError:
        return False


def check_models(
    request: FitRequest, flow: Flow, frames: int, baselines: Sequence[str], options: Mapping[str, Any], device: Device
) -> Schema:
    """The schema, once it is known that it and all models fit the flow and windows of so many frames."""
    schema = Schema(flow.n, request.k_cut, length=flow.length)
    require_anchors(schema, request.anchors)
    # Which modes the anchors are, the data will say; how many numbers z has is known already.
    some = tuple((int(ky), int(kx)) for ky, kx in schema.mid[: request.anchors])
    like = replace(schema, anchors=some)
    MODELS[request.model].check(like, flow, frames, options, device=device)
    for name in baselines:
        if name != request.model:
            MODELS[name].check(like, flow, frames, {}, device=device)
    return schema


def check_recorded(request: FitRequest, made: Windows) -> None:
    """Refuses options that say otherwise than the record does: nothing that was asked for is passed over."""
    source, asked, given = request.source, flow_of(request), request.given
    found, wanted = made.flow.parameters, asked.parameters
    for name in ("n", "dt", "nu", "drag", "length", "smagorinsky", "scheme", "dtype", "forcing"):
        if name in given and not _same(found[name], wanted[name]):
            raise _other(source, f"{name} = {found[name]}", given[name], wanted[name])
    for name, value in named_numbers("--force", request.force).items():
        if found.get(f"force_{name}") != value:
            raise _other(source, f"{name} = {found.get(f'force_{name}', 'none')}", "--force", f"{name}={value}")
    if "frame_every" in given and made.interval != request.frame_every:
        raise _other(source, f"a frame every {made.interval} steps", given["frame_every"], request.frame_every)
    for name in [name for name in ("train_seed", "seeds") if name in given and UNKNOWN in made.seeds]:
        raise InputError(
            f"{source} says of no window which seed made it, so {given[name]} chooses nothing.", "leave it away."
        )


def first_seed(request: FitRequest, made: Windows) -> int | None:
    """The first seed of a record to train on, where seeds are chosen at all."""
    if request.train_seed is None and "seeds" in request.given:
        return min(made.seeds)
    return request.train_seed


def _same(found: int | float | str, wanted: int | float | str) -> bool:
    if isinstance(found, str) or isinstance(wanted, str):
        return found == wanted
    # A length is measured from coordinates in some files.
    return abs(found - wanted) <= 1e-6 * abs(wanted)


def _other(source: Path | None, has: str, option: str, value: object) -> InputError:
    return InputError(f"{source} has {has}, and {option} says {value}.", f"leave {option} away: the record decides.")


def model_options(given: tuple[str, ...]) -> dict[str, Any]:
    """NAME=VALUE pairs; what is not a number is a word."""
    made: dict[str, Any] = {}
    for text in given:
        name, equals, value = text.partition("=")
        if not equals or not name.isidentifier() or not value:
            raise InputError(f"--option {text} is not NAME=VALUE.", "write for instance --option factor=1.")
        if name in made:
            raise InputError(f"--option {name} is given twice.", "leave one of them away.")
        try:
            made |= named_numbers("--option", (text,))
        except InputError:
            made[name] = value
    return made
