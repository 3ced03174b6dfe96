"""Certificates: what a rollout claims, so that anyone can repeat it anywhere and compare every hash.

A certificate names its inputs (path, key and digest), the operator, and the state's hash every so many steps. Device,
driver and the digests of the kernels' SPIR-V are recorded, not compared: a portable run gives the same hashes
everywhere. The last field is the digest of all the others, so an edited certificate is known at once.

Version 1 is the certificate of a run that is repeated from its start. Version 2 may name states that were kept on the
way, from which segments of the run are repeated apart.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Final, Literal, cast

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from dashi.core.operators.operator import Strategy
from dashi.core.rollouts._state_files import BITS_OF
from dashi.errors import CertificateError
from dashi.io._array_digest import array_digest as array_digest
from dashi.io._files import read_plain, write_text
from dashi.io.metrics import Count, Digest, Fingerprint
from dashi.kernels.hash._blake3 import hexdigest128
from dashi.types import HostArray

VERSION: Final = 1
WITH_STATES: Final = 2
_ADDED: Final = ("kind", "float_rules", "states")
"""Fields of version 2 that version 1 does not have."""
STATE: Final = "z0"
"""The input that is not an array of the operator: the initial states."""

_LARGEST: Final = 1 << 28
_AGAIN: Final = "get the original, or certify a rollout anew."
_Name = Annotated[str, Field(min_length=1, max_length=200)]
_Whole = Annotated[int, Field(ge=1, lt=1 << 53)]
_Text = Annotated[str, Field(max_length=1000)]
_Version = Annotated[str, Field(max_length=60, pattern=r"^[0-9][0-9A-Za-z.+!_-]*$")]
_Path = Annotated[str, Field(max_length=4096, pattern=r"^[^\x00]+$")]
_KernelName = Annotated[str, Field(max_length=200, pattern=r"^\w+/\w+\.\w+$")]


class _StrictModel(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class InputRecord(_StrictModel):
    """An array that the run read."""

    name: _Name
    path: _Path
    """Relative to the certificate's folder, with forward slashes."""
    key: _Name
    dtype: _Name
    shape: tuple[Count, ...]
    digest: Digest


class OperatorRecord(_StrictModel):
    """The operator: its arrays are inputs."""

    kind: _Name
    version: _Whole
    parameters: dict[str, int | float | str]


class DeviceRecord(_StrictModel):
    """Where it ran."""

    spec: Annotated[str, Field(max_length=1000, pattern=r"^(cpu|null|vulkan:.+)$")]
    name: _Text
    type: Literal["discrete", "integrated", "virtual", "software", "other", "reference", "null"]
    driver: _Text
    driver_version: _Text


class Claim(_StrictModel):
    """The state's hash after so many steps."""

    step: _Whole
    hash: Digest


class StateRecord(_StrictModel):
    """States that were kept after so many steps: where they are, and BLAKE3 of their bytes."""

    step: _Whole
    file: _Path
    """Relative to the certificate's folder, with forward slashes."""
    digest: Digest | Fingerprint


class StateRecords(_StrictModel):
    """The states of every so many steps, each an .npy file of the run's shape and type."""

    every: _Whole
    bits: Literal[128, 256]
    """Length of their digests; the hashes of the run have 128 bits."""
    files: Annotated[tuple[StateRecord, ...], Field(min_length=1)]

    @model_validator(mode="after")
    def _fit(self) -> StateRecords:
        wrong = next((r.step for r in self.files if BITS_OF[len(r.digest)] != self.bits), None)
        if wrong is not None:
            raise ValueError(f"the digest of the state after step {wrong} does not have {self.bits} bits")
        if len({record.file for record in self.files}) < len(self.files):
            raise ValueError("two states are in one file")
        return self


class Certificate(_StrictModel):
    """All that is claimed, in the order of the file; the digest comes last and is not part of the model."""

    schema_version: Literal[1, 2]
    dashi_version: _Version
    kind: Literal["rollout"] | None = None
    """What is repeated; of version 2."""
    operator: OperatorRecord
    inputs: Annotated[tuple[InputRecord, ...], Field(min_length=1, max_length=64)]
    dtype: Literal["float32", "float64"]
    tier: Annotated[int, Field(ge=0, le=2)]
    portable: bool
    device: DeviceRecord
    kernels: Annotated[dict[_KernelName, Fingerprint], Field(max_length=1000)]
    float_rules: Annotated[str, Field(pattern=r"^(declared for [a-z0-9 ]{1,40}|by custom|)$")] | None = None
    """Whether its modules declared rounding and NaN, or these were held by custom; empty where there was no driver. Of
    version 2; version 1 has it behind the driver's version."""
    way: Strategy
    steps: _Whole
    hash_every: _Whole
    hashes: Annotated[tuple[Claim, ...], Field(min_length=1)]
    states: StateRecords | None = None
    """States that were kept on the way; of version 2."""

    @model_validator(mode="after")
    def _in_order(self) -> Certificate:
        # Counted before they are listed: a few bytes can claim more steps than fit into memory.
        due = -(-self.steps // self.hash_every)
        steps = [claim.step for claim in self.hashes]
        if len(steps) != due or steps != list(hashed_steps(self.steps, self.hash_every)):
            raise ValueError(f"the hashes are not those of every {self.hash_every} steps up to {self.steps}")
        if self.hash_every > self.steps:
            raise ValueError(f"hash_every is {self.hash_every}, and there are only {self.steps} steps")
        if self.portable and self.tier:
            raise ValueError(f"a portable run has tier 0, not {self.tier}")
        names = [one.name for one in self.inputs]
        if STATE not in names or len(set(names)) < len(names):
            raise ValueError("the inputs must be z0 and the operator's arrays, each once")
        return self

    @model_validator(mode="after")
    def _of_its_version(self) -> Certificate:
        there = self.model_fields_set & set(_ADDED)
        if self.schema_version == VERSION and there:
            raise ValueError(f"version {VERSION} has no field {min(there)!r}")
        if self.schema_version == WITH_STATES:
            if self.states is None or None in (self.kind, self.float_rules):
                raise ValueError(f"version {WITH_STATES} has the fields {', '.join(_ADDED)}")
            self._require_claimed(self.states)
        return self

    def _require_claimed(self, states: StateRecords) -> None:
        if states.every % self.hash_every:
            raise ValueError(f"states of every {states.every} steps have no hashes of every {self.hash_every}")
        # Counted before they are listed, as hashes are.
        steps = [record.step for record in states.files]
        if len(steps) != self.steps // states.every or steps != [*range(states.every, self.steps + 1, states.every)]:
            raise ValueError(f"the states are not those of every {states.every} steps up to {self.steps}")
        for record in states.files:
            claimed = self.hashes[record.step // self.hash_every - 1]
            if not record.digest.startswith(claimed.hash):
                raise ValueError(f"the digest of the state after step {record.step} is not its hash")


def hashed_steps(steps: int, every: int) -> Sequence[int]:
    """The steps after which a certified run hashes its state: every so many, and the last."""
    strides = range(every, steps + 1, every)
    return strides if steps % every == 0 else [*strides, steps]


@dataclass(frozen=True)
class Source:
    """Where an input was read: the file, the key in it, and the array as it stands there."""

    path: Path
    key: str
    values: HostArray
    digest: str = ""
    """Digest of the array (`array_digest`), where it is known already."""


def to_json(certificate: Certificate) -> str:
    """The file's text: the certificate, and its digest as the last field."""
    return _text(certificate)[0]


def _text(certificate: Certificate) -> tuple[str, str]:
    older = certificate.schema_version == VERSION
    document = certificate.model_dump(mode="json", exclude=set(_ADDED) if older else None)
    digest = document_digest(document)
    return json.dumps({**document, "digest": digest}, indent=1, allow_nan=False) + "\n", digest


def document_digest(document: Mapping[str, Any]) -> str:
    """The digest of a document without its own: of its canonical JSON (sorted keys, no spaces, ASCII)."""
    body = {key: value for key, value in document.items() if key != "digest"}
    return hexdigest128(json.dumps(body, sort_keys=True, separators=(",", ":"), allow_nan=False).encode())


def write_certificate(file: Path, certificate: Certificate) -> str:
    """Writes the file, all or nothing, and returns the certificate's digest."""
    text, digest = _text(certificate)
    write_text(file, text)
    return digest


def read_certificate(file: Path) -> Certificate:
    """Reads a certificate; raises CertificateError if it was edited, or is of a kind that is not known here."""
    data = read_plain(file, _LARGEST)
    document, digest = _parse(file, data)
    version = document.get("schema_version")
    if type(version) is not int or version not in (VERSION, WITH_STATES):
        raise CertificateError(
            f"{file} is a certificate of version {str(version)[:40]}; this dashi reads versions {VERSION} and "
            f"{WITH_STATES}.",
            "use the dashi that made it, or a newer one.",
        )
    if document.get("digest") != digest:
        raise CertificateError(f"{file} was changed after it was made: its digest does not fit.", _AGAIN)
    try:
        return Certificate.model_validate_json(json.dumps({k: v for k, v in document.items() if k != "digest"}))
    except ValidationError as error:
        raise CertificateError(f"{file} is not a certificate of dashi: {first_fault(error)}.", _AGAIN) from error
    except MemoryError as error:
        raise _too_large(file) from error


def first_fault(error: ValidationError) -> str:
    """What pydantic found wrong first, and where."""
    first = error.errors()[0]
    return f"{'.'.join(str(part) for part in first['loc']) or 'the certificate'}: {first['msg']}"


def _too_large(file: Path) -> CertificateError:
    return CertificateError(
        f"{file} does not fit into memory.", "use a machine with more, or a certificate of fewer hashes."
    )


def _parse(file: Path, data: bytes) -> tuple[dict[str, Any], str]:
    """The document, and what its digest should be."""
    try:
        found: Any = json.loads(data, object_pairs_hook=_unique, parse_constant=_refuse)
        if isinstance(found, dict):
            document = cast("dict[str, Any]", found)
            return document, document_digest(document)
    except (ValueError, RecursionError) as error:
        raise CertificateError(f"{file} is not a certificate: it is damaged or cut short ({error}).", _AGAIN) from error
    except MemoryError as error:
        raise _too_large(file) from error
    raise CertificateError(f"{file} is not a certificate.", _AGAIN)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    document = dict(pairs)
    if len(document) < len(pairs):
        raise ValueError("a key is there twice")
    return document


def _refuse(text: str) -> Any:
    raise ValueError(f"{text} is not a number of JSON")
