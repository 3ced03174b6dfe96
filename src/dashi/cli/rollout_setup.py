"""What `dashi rollout` is asked to run: options checked, inputs read, strides chosen."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Final

from dashi.cli.output import remark
from dashi.cli.rollout import Request
from dashi.core.certificates.certificate import STATE, Source
from dashi.core.certificates.inputs import as_floats, make_operator, operator_sources, read_source, run_dtype
from dashi.core.operators.affine import Affine, Linear
from dashi.core.operators.operator import Operator
from dashi.core.rollouts.checkpoint import identity
from dashi.core.rollouts.observer import Observer
from dashi.core.rollouts.observers import Hashes, Sheet, StateMetrics
from dashi.errors import InputError, ShapeError
from dashi.io.files import require_writable
from dashi.io.run_folder import require_ours
from dashi.types import Array

COMMAND: Final = "rollout"
_HASHES, _OBSERVED, _BANDS = 1000, 200, 16
_NO_STRIDE: Final = "give a stride of 1 or more, or leave the option away."


@dataclass(frozen=True)
class Strides:
    """After how many steps what is looked at; 0 is never."""

    hash: int
    observe: int
    sheet: int
    bands: int
    keep: int


@dataclass(frozen=True, eq=False)
class Setup:
    """What is run: the operator, the initial states `(m, *shape)`, and where they were read."""

    operator: Operator
    z0: Array
    sources: dict[str, Source]
    strides: Strides

    @cached_property
    def identity(self) -> str:
        """What a checkpoint must belong to."""
        return identity(self.operator, self.z0)

    @property
    def observers(self) -> list[Observer[Any]]:
        """Those whose records a checkpoint holds."""
        every = self.strides
        return [Hashes(every.hash), StateMetrics(every.observe), Sheet(every.sheet, every.bands)]

    def settings(self, request: Request) -> dict[str, object]:
        """All that decides the results of a run: how and where it runs does not."""
        every = self.strides
        return {
            "operator": self.operator.kind, "dtype": self.operator.dtype, "inputs": self.identity,
            "steps": request.steps, "hash-every": every.hash, "observe-every": every.observe,
            "sheet-every": every.sheet, "bands": every.bands, "fast": request.fast, "keep-going": request.keep_going,
        }  # fmt: skip

    def resumed(self, request: Request, settings: Mapping[str, Mapping[str, int]]) -> Setup:
        """The same with the strides of the run that goes on; one that was given must be the same."""
        sheet = settings.get("sheet", {})
        kept = [settings.get(name, {}).get("every", 0) for name in ("hashes", "observations", "sheet")]
        kept.append(sheet.get("bands", self.strides.bands))
        asked = (request.hash_every, request.observe_every, request.sheet_every, request.bands)
        for name, new, old in zip(
            ("--hash-every", "--observe-every", "--sheet-every", "--bands"), asked, kept, strict=True
        ):
            if new is not None and new != old:
                raise InputError(
                    f"the run that goes on has {name} {old}, not {new}.", f"leave {name} away, or start a new run."
                )
        return replace(self, strides=Strides(*kept, keep=self.strides.keep))


def check_request(request: Request) -> None:
    """Refuses what cannot be meant, before anything is read."""
    named = {"--hash-every": request.hash_every, "--observe-every": request.observe_every}
    named |= {"--sheet-every": request.sheet_every, "--checkpoint-every": request.checkpoint_every}
    for option, value in named.items():
        if value is not None and value < 1:
            raise InputError(f"{option} is {value}.", _NO_STRIDE)
    if request.steps < 1:
        raise InputError(f"--steps is {request.steps}.", "ask for 1 step or more.")
    if (request.matrix is None) == (request.operator is None):
        raise InputError("an operator is needed, and one only.", "give --A FILE, or --operator FILE.")
    if request.operator and (request.bias or request.psi != "none" or request.fast):
        raise InputError("--b, --psi and --fast go with --A.", "leave them away, or give --A.")
    if (request.resume or request.checkpoint_every) and not request.out:
        raise InputError("checkpoints are kept in a run folder.", "name one with --out.")
    if request.fast and request.certificate:
        raise InputError(
            "a fast run is not portable, so nobody could verify its certificate elsewhere.",
            "leave --fast or --certificate away.",
        )
    for file in (request.certificate, request.metrics):
        if file is not None:
            require_writable(file)
    if request.out is not None:
        require_writable(request.out, folder=True)
        require_ours(request.out, COMMAND, overwrite=request.overwrite)


def read_setup(request: Request) -> Setup:
    """Reads and checks the inputs."""
    sources = {STATE: read_source(request.z0, STATE)}
    dtype = run_dtype(request.dtype, sources[STATE].values)
    z0 = as_floats(STATE, sources[STATE].values, dtype)
    if request.operator:
        stored, arrays = operator_sources(request.operator)
        operator = make_operator(stored.kind, stored.version, stored.arrays, stored.parameters, dtype)
        sources |= arrays
    else:
        files = {"A": request.matrix, "b": request.bias}
        sources |= {name: read_source(file, name) for name, file in files.items() if file}
        operator = _dense(request, {n: as_floats(n, s.values, dtype) for n, s in sources.items() if n != STATE})
    for name, source in sources.items():
        if source.values.dtype.kind == "f" and source.values.dtype != dtype:
            remark(f"{name} is {source.values.dtype} in {source.path}; it is used as {dtype}")
    states = z0[None] if z0.shape == operator.shape else z0
    if states.shape[1:] != operator.shape:
        shape = ", ".join(str(n) for n in operator.shape)
        raise ShapeError(
            f"z0 has shape {z0.shape}; the operator advances states of shape {operator.shape}.",
            f"give z0 of shape {operator.shape}, or (M, {shape}) for an ensemble.",
        )
    return Setup(operator, states, sources, _strides(request, operator))


def _dense(request: Request, arrays: dict[str, Array]) -> Operator:
    if "b" not in arrays and request.psi == "none":
        return Linear(arrays["A"], portable=not request.fast)
    numbers = {"alpha": request.alpha, "low": request.low, "high": request.high}
    return Affine(arrays["A"], arrays.get("b"), request.psi, portable=not request.fast, **numbers)


def _strides(request: Request, operator: Operator) -> Strides:
    observe = request.observe_every or max(1, request.steps // _OBSERVED)
    return Strides(
        hash=request.hash_every or min(_HASHES, request.steps),
        observe=observe,
        sheet=request.sheet_every or (observe if request.out else 0),
        bands=request.bands or min(_BANDS, operator.shape[-1]),
        keep=request.checkpoint_every or 0,
    )
