"""Dynamic mode decomposition as a baseline: fitted by PyDMD (the extra `dmd`), rolled out without it.

P. Schmid, J. Fluid Mech. 656, 2010, doi 10.1017/S0022112010001217; N. Demo, M. Tezzele and G. Rozza, J. Open Source
Softw. 3, 2018, doi 10.21105/joss.00530.
"""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Final

import numpy as np

from dashi.core.operators.operator import Parameter, require_finite
from dashi.errors import InputError, install_extra
from dashi.flow.equations import Flow
from dashi.flow.grid import Floats
from dashi.flow.proxy._judge import Judge
from dashi.flow.proxy._options import Number, Option
from dashi.flow.proxy.model import ON_HOST, Model
from dashi.flow.proxy.schema import Schema
from dashi.flow.proxy.states import encoded, require_start
from dashi.flow.windows import Windows
from dashi.runtime.device import Device
from dashi.types import HostArray

RANKS: Final = (4, 8, 16, 32, 64, 96, 128, 160, 200)
"""Ranks that are tried; the validation windows choose. Few pairs of frames want a low one, many a high one."""


class Dmd(Model):
    """z of frame t is modes (amplitudes eigenvalues^t), the amplitudes by least squares from z0. The scalars of z stay
    as they were."""

    name: ClassVar[str] = "dmd"
    takes: ClassVar[Mapping[str, Option]] = {"rank": Number(1, whole=True)}

    def __init__(self, schema: Schema, interval: float, modes: Floats, eigenvalues: Floats, summary: str = "") -> None:
        self.schema, self.interval = schema, interval
        self._modes, self._eigenvalues, self._summary = modes, eigenvalues, summary
        held = schema.parts["modes"].stop
        if modes.ndim != 2 or modes.shape != (held, len(eigenvalues)):
            raise InputError(
                f"the modes have shape {modes.shape}, the eigenvalues {eigenvalues.shape}.",
                f"pass modes of shape ({held}, rank), as the schema has it.",
            )

    @classmethod
    def check(
        cls, schema: Schema, flow: Flow, frames: int, options: Mapping[str, Any], *, device: Device
    ) -> None:  # fmt: skip
        super().check(schema, flow, frames, options, device=device)
        require_pydmd()

    @classmethod
    def learn(
        cls, schema: Schema, train: Windows, validation: Windows | None, *, device: Device,
        progress: Callable[[int], None] | None = None, **options: Any,
    ) -> Dmd:  # fmt: skip
        """Fits all pairs of frames that follow each other; the rank, unless given as `rank`, by `validation_score` on
        validation windows (the training windows, without any), as other models choose; of equals, the one that
        correlates best."""
        interval = cls.begin(schema, train, validation, options, device=device)
        library = require_pydmd()
        held = schema.parts["modes"]
        z = encoded(schema, train, device=device)[..., held].astype(np.float64)
        before, after = (part.reshape(-1, z.shape[-1]).T for part in (z[:, :-1], z[:, 1:]))
        given = options.get("rank")
        ranks = [given] if given else sorted({min(r, *before.shape) for r in RANKS})
        made = [_decomposed(library, schema, interval, before, after, rank) for rank in ranks]
        judge = Judge(schema, validation if validation is not None else train, device)
        return max(made, key=judge.score_and_correlation)

    def where(self, device: Device, states: int) -> str:
        return ON_HOST

    def advance(self, z0: Floats, frames: int, *, device: Device) -> Floats:
        held = self.schema.parts["modes"]
        z0 = require_start(self.schema, z0, np.asarray(z0).dtype)
        with np.errstate(over="ignore", invalid="ignore"):
            powers = self._eigenvalues[:, None] ** np.arange(1, frames + 1)
            # One by one: BLAS gives a state other bits beside others than alone.
            advanced = np.stack([self._advanced(state, powers) for state in z0[:, held]])
        z = np.repeat(z0[:, None], frames + 1, axis=1)
        with np.errstate(over="ignore"):
            z[:, 1:, held] = advanced.astype(z0.dtype)
        return z

    def _advanced(self, state: Floats, powers: Any) -> Floats:
        """The frames (frames, 2 K) after one state."""
        start = np.linalg.lstsq(self._modes, state.astype(np.complex128), rcond=None)[0]
        return np.einsum("dr,r,rf->fd", self._modes, start, powers, optimize=True).real

    @property
    def state_size(self) -> int:
        return len(self._modes)

    @property
    def arrays(self) -> Mapping[str, HostArray]:
        parts = {"modes": self._modes, "eigenvalues": self._eigenvalues}
        return {f"{name}_{half}": getattr(v, half) for name, v in parts.items() for half in ("real", "imag")}

    @property
    def parameters(self) -> Mapping[str, Parameter]:
        return {"told": self._summary} if self._summary else {}

    @classmethod
    def restore(
        cls, schema: Schema, interval: float, arrays: Mapping[str, HostArray], parameters: Mapping[str, Parameter]
    ) -> Dmd:
        names = ("modes_real", "modes_imag", "eigenvalues_real", "eigenvalues_imag")
        if set(arrays) != set(names):
            raise InputError(f"a dmd model has the arrays {', '.join(sorted(arrays))}.", "fit it again.")
        halves = [np.asarray(arrays[name], np.float64) for name in names]
        if halves[0].shape != halves[1].shape or halves[2].shape != halves[3].shape or halves[2].ndim != 1:
            raise InputError("the parts of a dmd model do not fit each other.", "fit it again.")
        for name, values in zip(names, halves, strict=True):
            require_finite(name, values)
        summary = str(parameters.get("told", ""))
        return cls(schema, interval, halves[0] + 1j * halves[1], halves[2] + 1j * halves[3], summary)

    @property
    def description(self) -> str:
        return self._summary or self.name


def require_pydmd() -> Any:
    """The module pydmd. Raises InputError with how to install it."""
    try:
        return importlib.import_module("pydmd")
    except ImportError as error:
        raise InputError(
            "PyDMD is not installed, and the baseline `dmd` is fitted by it.",
            f"{install_extra('dmd')}, or choose other baselines with `baselines=`.",
        ) from error


def _decomposed(library: Any, schema: Schema, interval: float, before: Floats, after: Floats, rank: int) -> Dmd:
    with warnings.catch_warnings():
        # It warns of badly conditioned data; such a fit is not chosen where a better one is there.
        warnings.simplefilter("ignore")
        fit = library.DMD(svd_rank=int(rank)).fit(before, after)
    modes, eigenvalues = np.asarray(fit.modes, np.complex128), np.asarray(fit.eigs, np.complex128)
    largest = float(np.abs(eigenvalues).max(initial=0.0))
    numbers, pairs = before.shape
    summary = (
        f"DMD by PyDMD {_version()}, rank {len(eigenvalues)} of {numbers} from {pairs} pairs of frames, "
        f"largest |eigenvalue| {largest:.4f}"
    )
    return Dmd(schema, interval, modes, eigenvalues, summary)


def _version() -> str:
    from importlib.metadata import version

    return version("pydmd")
