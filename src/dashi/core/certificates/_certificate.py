"""Certificates: what a rollout claims, so that anyone can repeat it anywhere and compare every hash.

A certificate names its inputs (path, key and digest), the operator, and the state's hash every so many steps. Device,
driver and the digests of the kernels' SPIR-V are recorded, not compared: a portable run gives the same hashes
everywhere. The last field is the digest of all the others, so an edited certificate is known at once.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Final, Literal, cast

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from dashi.core.operators.operator import Strategy
from dashi.errors import CertificateError
from dashi.io._array_digest import array_digest as array_digest
from dashi.io._files import read_plain, write_text
from dashi.io.metrics import Count, Digest, Fingerprint
from dashi.kernels.hash._blake3 import hexdigest128
from dashi.types import HostArray

VERSION: Final = 1
STATE: Final = "z0"
"""The input that is not an array of the operator: the initial states."""

_LARGEST: Final = 1 << 28
_AGAIN: Final = "get the original, or certify a rollout anew."
_Name = Annotated[str, Field(min_length=1, max_length=200)]
_Whole = Annotated[int, Field(ge=1, lt=1 << 53)]
_Text = Annotated[str, Field(max_length=1000)]
_Version = Annotated[str, Field(max_length=60, pattern=r"^[0-9][0-9A-Za-z.+!_-]*$")]
_KernelName = Annotated[str, Field(max_length=200, pattern=r"^\w+/\w+\.\w+$")]


class _StrictModel(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class InputRecord(_StrictModel):
    """An array that the run read."""

    name: _Name
    path: Annotated[str, Field(max_length=4096, pattern=r"^[^\x00]+$")]
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


class Certificate(_StrictModel):
    """All that is claimed, in the order of the file; the digest comes last and is not part of the model."""

    schema_version: Literal[1]
    dashi_version: _Version
    operator: OperatorRecord
    inputs: Annotated[tuple[InputRecord, ...], Field(min_length=1, max_length=64)]
    dtype: Literal["float32", "float64"]
    tier: Annotated[int, Field(ge=0, le=2)]
    portable: bool
    device: DeviceRecord
    kernels: Annotated[dict[_KernelName, Fingerprint], Field(max_length=1000)]
    way: Strategy
    steps: _Whole
    hash_every: _Whole
    hashes: Annotated[tuple[Claim, ...], Field(min_length=1)]

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


def to_json(certificate: Certificate) -> str:
    """The file's text: the certificate, and its digest as the last field."""
    return _text(certificate)[0]


def _text(certificate: Certificate) -> tuple[str, str]:
    document = certificate.model_dump(mode="json")
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
    if type(version) is not int or version != VERSION:
        raise CertificateError(
            f"{file} is a certificate of version {str(version)[:40]}; this dashi reads version {VERSION}.",
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
