"""Certifying a run: its claims from what was executed, and the inputs that they are to be repeated from."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from pydantic import ValidationError

from dashi.core.certificates._certificate import (
    VERSION,
    Certificate,
    Claim,
    DeviceRecord,
    InputRecord,
    OperatorRecord,
    Source,
    array_digest,
    first_fault,
    write_certificate,
)
from dashi.core.certificates.inputs import save_inputs
from dashi.core.operators.operator import Operator
from dashi.core.rollouts.run import Run
from dashi.errors import CertificateError
from dashi.io._run_folder import CERTIFICATE, INPUTS
from dashi.runtime.info import DeviceInfo
from dashi.types import HostArray


def certify(run: Run, file: Path, sources: Mapping[str, Source]) -> Certificate:
    """The certificate of a run, to be written to `file` (`write_certificate`); of one that was stopped, up to its last
    hash. `sources` are `z0` and the operator's arrays, by name. Raises CertificateError where nothing was hashed."""
    import dashi

    every = run.hash_every
    hashes = [taken for taken in run.hashes if not run.stopped or taken.step % every == 0]
    if not hashes or run.device is None:
        raise CertificateError("a certificate needs hashes, and none was taken.", "run at least one step, with hashes.")
    steps, facts = hashes[-1].step if run.stopped else run.steps, run.operator
    try:
        return Certificate(
            schema_version=VERSION,
            dashi_version=dashi.__version__,
            operator=OperatorRecord(
                kind=facts.kind, version=facts.version, parameters=dict(sorted(facts.parameters.items()))
            ),
            inputs=tuple(_input(file, name, source) for name, source in sources.items()),
            dtype="float64" if facts.dtype == np.float64 else "float32",
            tier=0,
            portable=facts.portable,
            device=_device(run.device),
            kernels=dict(run.kernels),
            way=run.strategy,  # pyright: ignore[reportArgumentType] - the model checks it
            steps=steps,
            hash_every=min(every, steps),
            hashes=tuple(Claim(step=taken.step, hash=taken.digest) for taken in hashes),
        )
    except ValidationError as error:
        raise CertificateError(
            f"this run gets no certificate: {first_fault(error)}.",
            "certify a run with the hashes of every stride and of its last step.",
        ) from error


def certify_folder(run: Run, folder: Path, operator: Operator, z0: HostArray) -> str | None:
    """Puts the inputs of a run and its certificate into its folder, and returns the certificate's digest; None, and
    nothing is written, where the run has no hash on its stride or is not portable."""
    claims = [one for one in run.hashes if not run.stopped or one.step % run.hash_every == 0]
    if not claims or not run.operator.portable:
        return None
    file = folder / CERTIFICATE
    return write_certificate(file, certify(run, file, save_inputs(folder / INPUTS, operator, z0)))


def _device(info: DeviceInfo) -> DeviceRecord:
    version = info.driver_info or info.driver_version
    if info.float_rules:
        # In the text of a field that is free: readers of schema version 1 refuse fields that they do not know.
        version = f"{version}; rounding and NaN {info.float_rules}"
    return DeviceRecord(spec=info.spec, name=info.name, type=info.type, driver=info.driver, driver_version=version)


def _input(file: Path, name: str, source: Source) -> InputRecord:
    # Lexical, as the reader will join it; symbolic links stay what they are called.
    relative = Path(os.path.relpath(source.path.absolute(), file.absolute().parent))
    return InputRecord(
        name=name,
        path=relative.as_posix(),
        key=source.key,
        dtype=source.values.dtype.name,
        shape=source.values.shape,
        digest=array_digest(source.values),
    )
