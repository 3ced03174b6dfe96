"""Certifying a run: its claims from what was executed, and the inputs that they are to be repeated from."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import ValidationError

from dashi.core.certificates._certificate import (
    STATE,
    VERSION,
    WITH_STATES,
    Certificate,
    Claim,
    DeviceRecord,
    InputRecord,
    OperatorRecord,
    Source,
    StateRecord,
    StateRecords,
    array_digest,
    first_fault,
    write_certificate,
)
from dashi.core.certificates.inputs import save_inputs
from dashi.core.operators.operator import Operator
from dashi.core.rollouts._state_files import StateFiles, state_name
from dashi.core.rollouts.run import Run
from dashi.errors import CertificateError
from dashi.io._run_folder import CERTIFICATE, INPUTS, STATES
from dashi.io._run_names import is_folder
from dashi.runtime.info import DeviceInfo
from dashi.types import HostArray


def certify(run: Run, file: Path, sources: Mapping[str, Source], states: Path | None = None) -> Certificate:
    """The certificate of a run, to be written to `file` (`write_certificate`); of one that was stopped, up to its last
    hash. `sources` are `z0` and the operator's arrays, by name; `states` is the folder of states that were kept on the
    way, if it names them. Raises CertificateError where nothing was hashed."""
    import dashi

    every = run.hash_every
    hashes = [taken for taken in run.hashes if not run.stopped or taken.step % every == 0]
    if not hashes or run.device is None:
        raise CertificateError("a certificate needs hashes, and none was taken.", "run at least one step, with hashes.")
    steps, facts = hashes[-1].step if run.stopped else run.steps, run.operator
    try:
        records = _states(run, steps, file, states) if states is not None else None
        added: dict[str, Any] = {"kind": "rollout", "float_rules": run.device.float_rules, "states": records}
        return Certificate(
            schema_version=WITH_STATES if records else VERSION,
            dashi_version=dashi.__version__,
            operator=OperatorRecord(
                kind=facts.kind, version=facts.version, parameters=dict(sorted(facts.parameters.items()))
            ),
            inputs=tuple(_input(file, name, source) for name, source in sources.items()),
            dtype="float64" if facts.dtype == np.float64 else "float32",
            tier=0,
            portable=facts.portable,
            device=_device(run.device, rules=records is None),
            kernels=dict(run.kernels),
            way=run.strategy,  # pyright: ignore[reportArgumentType] - the model checks it
            steps=steps,
            hash_every=min(every, steps),
            hashes=tuple(Claim(step=taken.step, hash=taken.digest) for taken in hashes),
            **(added if records else {}),
        )
    except ValidationError as error:
        raise CertificateError(
            f"this run gets no certificate: {first_fault(error)}.",
            "certify a run with the hashes of every stride and of its last step.",
        ) from error


def certify_folder(
    run: Run, folder: Path, operator: Operator, z0: HostArray, z0_digest: Callable[[], str] | None = None
) -> str | None:
    """Puts the inputs of a run and its certificate into its folder, and returns the certificate's digest; None, and
    nothing is written, where the run has no hash on its stride or is not portable. `z0_digest` gives the digest of z0,
    where somebody has computed it."""
    claims = [one for one in run.hashes if not run.stopped or one.step % run.hash_every == 0]
    if not claims or not run.operator.portable:
        return None
    file, states = folder / CERTIFICATE, folder / STATES if is_folder(folder / STATES) else None
    sources = save_inputs(folder / INPUTS, operator, z0)
    if z0_digest is not None:
        sources[STATE] = replace(sources[STATE], digest=z0_digest())
    return write_certificate(file, certify(run, file, sources, states))


def _states(run: Run, steps: int, file: Path, folder: Path) -> StateRecords | None:
    """The states that were kept within so many steps; None where there are none."""
    observer = next((each for each in run.observers if isinstance(each, StateFiles)), None)
    states = [state for state in run.records.get(StateFiles.name, ()) if state.step <= steps]
    if observer is None or not states:
        return None
    files = (
        StateRecord(step=s.step, file=_relative(file, folder / state_name(s.step)), digest=s.digest) for s in states
    )
    bits: Any = observer.bits  # the model checks it
    return StateRecords(every=observer.every, bits=bits, files=tuple(files))


def _device(info: DeviceInfo, *, rules: bool) -> DeviceRecord:
    version = info.driver_info or info.driver_version
    if rules and info.float_rules:
        # In the text of a field that is free: readers of schema version 1 refuse fields that they do not know.
        version = f"{version}; rounding and NaN {info.float_rules}"
    return DeviceRecord(spec=info.spec, name=info.name, type=info.type, driver=info.driver, driver_version=version)


def _input(file: Path, name: str, source: Source) -> InputRecord:
    return InputRecord(
        name=name,
        path=_relative(file, source.path),
        key=source.key,
        dtype=source.values.dtype.name,
        shape=source.values.shape,
        digest=source.digest or array_digest(source.values),
    )


def _relative(file: Path, named: Path) -> str:
    """A path as a certificate names it: lexical, as the reader will join it; symbolic links stay what they are
    called."""
    return Path(os.path.relpath(named.absolute(), file.absolute().parent)).as_posix()
