"""Certificates for runs of `dashi.core.rollout`: jobs (`dashi.rollout`, `dashi.flow.simulate`) have theirs already.

run = rollout(operator, z0, 1000, device="auto", hash_every=100)
certify(run, operator, z0, "certified")
dashi.verify("certified", device="cpu").same
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from dashi.core.certificates._certify import certify_folder
from dashi.core.operators.operator import Operator, float_array
from dashi.core.rollouts.rollout import require_operator
from dashi.core.rollouts.run import Run
from dashi.errors import CertificateError, FileError, InputError, ShapeError
from dashi.io._files import require_writable
from dashi.io._paths import path_of
from dashi.io._run_folder import CERTIFICATE, INPUTS


def certify(run: Run, operator: Operator, z0: Any, out: str | Path) -> Path:
    """Writes the certificate of a run, and the operator's arrays and z0 beside it, into the folder `out`, and returns
    the certificate's file. `operator` and `z0` are what the run was made of.

    The run needs hashes (`hash_every`) and a portable operator: CertificateError says what is missing. A folder that
    has a certificate already is refused. Whether z0 is the right one only `dashi.verify` can tell.
    """
    if not isinstance(run, Run):  # pyright: ignore[reportUnnecessaryIsInstance] - callers' own
        raise InputError(f"{run!r:.80} is no run.", "pass what dashi.core.rollout returned.")
    require_operator(operator)
    folder, states = path_of("out", out), _states(operator, z0)
    facts = operator.facts
    if (facts.kind, facts.parameters, facts.dtype) != (run.operator.kind, run.operator.parameters, run.operator.dtype):
        raise CertificateError(
            f"the run is of {run.operator.kind}, {run.operator.dtype}, and the operator another: {facts.kind}, "
            f"{facts.dtype}.",
            "pass the operator that was rolled out.",
        )
    if not run.portable:
        raise CertificateError(
            "the operator is not portable, so nobody could verify its hashes elsewhere.",
            "roll out a portable operator: leave `portable=False` away.",
        )
    for name in (CERTIFICATE, INPUTS):
        if (folder / name).exists():
            raise FileError(f"{folder / name} is there already.", "name another folder with `out=`.")
    require_writable(folder, folder=True)
    if certify_folder(run, folder, operator, states) is None:
        raise CertificateError("the run has no hashes.", "roll out with `hash_every=`.")
    return folder / CERTIFICATE


def _states(operator: Operator, z0: Any) -> Any:
    """The initial states with a leading axis, as a run has them."""
    states = float_array("z0", z0)
    states = states[None] if states.shape == operator.shape else states
    if states.shape[1:] != operator.shape:
        raise ShapeError(
            f"z0 has shape {np.shape(z0)}; the operator advances states of shape {operator.shape}.",
            "pass the z0 that was rolled out.",
        )
    return states
